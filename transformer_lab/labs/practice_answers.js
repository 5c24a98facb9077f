// Answers as texts: parsing, comparison, and remarks about wrong answers. The script computes no answers: the table
// from Python contains the right answer and the answers of the known mistakes.

import { range } from "./maths.js";
import { listed, plural, quoted } from "./words.js";

/** @typedef {import("./words.js").Parsed<any>} Parsed */
/** @typedef {{ kind: string, places?: number, refusal?: string, unit?: string, total?: number, total_of?: string,
 *   what?: string[] }} Form */
/** @typedef {{ question: string, given?: string, right: any, wrong: [any, number[]][], options?: string[],
 *   start?: number[], rows?: string[], columns?: string[] }} Case */

export const ERROR = "error"; // the answer “it raises an error”

const SPECIAL_VALUES = { inf: Infinity, infinity: Infinity, "∞": Infinity, nan: NaN };
const DECIMAL = /^(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

// Parses “-inf”, “1e3”, “3*4”, “1/3” or “2**10” as a number; null if the text is not a number.
function evaluate(text) {
  const sign = text.startsWith("-") ? -1 : 1;
  const [first, ...rest] = text.replace(/^[-+]/, "").split(/(\*\*|[*/])/);
  const parsePart = (part) => SPECIAL_VALUES[part.toLowerCase()] ?? (DECIMAL.test(part) ? Number(part) : null);
  let value = parsePart(first);
  for (let i = 0; i < rest.length && value !== null; i += 2) {
    const next = parsePart(rest[i + 1]);
    if (next === null) return null;
    value = rest[i] === "**" ? value ** next : rest[i] === "*" ? value * next : value / next;
  }
  return value === null ? null : sign * value;
}

const normalize = (text) =>
  text
    .trim()
    .replace(/[−–]/g, "-")
    .replace(/\^/g, "**")
    .replace(/[×·]/g, "*")
    .replace(/\s*(\*\*|[*/])\s*/g, "$1")
    .replace(/^torch\.Size/, "");
// While the reader is typing, the beginning of a number is not an error.
const UNFINISHED =
  /(^|[\s,;([*/])[-+]?$|[*/.]$|\de[-+]?$|(^|[-\s,([])(in?|infi|infin|infini|infinit|na?|torch[.\w]*)$/i;
const decimalCommaError = (text) => ({ error: `Please write a decimal point: ${quoted(text.replace(",", "."))}.` });

// Parses one number; `value` is null while the field is empty or incomplete.
/** @type {(text: string) => Parsed} */
export function parseOneNumber(text) {
  const inner = normalize(text).replace(/^[([](.*)[)\]]$/, "$1");
  const plain = /^[-+]?\d{1,3}([,_]\d{3})+$/.test(inner) ? inner.replace(/[,_]/g, "") : inner;
  if (/^[-+]?\d+,\d+$/.test(plain)) return decimalCommaError(plain);
  const value = evaluate(plain);
  if (value !== null) return { value, text };
  if (UNFINISHED.test(plain)) return { value: null, text };
  return { error: `${quoted(inner.slice(0, 20))} is not a number.` };
}

// Parses “3,4,5”, “(3, 4, 5)” or “[3 4 5]”. If there are twice as many integers as expected numbers, as in “0,5, 0,2”,
// the commas are decimal commas, which are an error.
/** @type {(text: string, form: Form, length: number) => Parsed} */
export function parseNumbers(text, { places }, length) {
  const inner = normalize(text)
    .replace(/[()[\]]/g, " ")
    .trim()
    .replace(/[,;]$/, "");
  if (!inner) return { value: /[([]\s*[)\]]/.test(text) ? [] : null, text };
  const parts = inner.split(/\s*[,;]\s*|\s+/);
  if (places && !inner.includes(".") && parts.length === 2 * length && /\d,\d/.test(inner)) {
    return decimalCommaError(inner.match(/\d+,\d+/)[0]);
  }
  const value = parts.map(evaluate);
  const invalid = value.indexOf(null);
  if (invalid < 0) return { value, text };
  if (invalid === parts.length - 1 && UNFINISHED.test(inner)) return { value: null, text };
  return { error: `${quoted(parts[invalid].slice(0, 20))} is not a number.` };
}

// The texts of answers: “100/110” for a painted mask, “2,0,1” for an order, “1;2|3;4” for a table.
/** @type {(table: string) => string[][]} */
export const cellsIn = (table) => table.split("|").map((row) => row.split(";"));
const PARSERS = {
  number: (text) => parseOneNumber(text).value ?? null,
  numbers: (text, form, { right }) => parseNumbers(text, form, right.length).value ?? null,
  table(text) {
    const cells = cellsIn(text).map((row) => row.map((cell) => parseOneNumber(cell).value ?? null));
    return cells.flat().includes(null) ? null : cells;
  },
  mask: (text) => text || null,
  choice: (text) => (text === "" ? null : Number(text)),
  order: (text, _, { start }) => (text ? text.split(",").map(Number) : start),
};
// The reader's answer; null if it is incomplete or invalid.
/** @type {(text: string, form: Form, problem: Case) => any} */
export const parseAnswer = (text, form, problem) => (text === ERROR ? ERROR : PARSERS[form.kind](text, form, problem));

// JSON cannot represent infinite numbers and NaN, so the table stores them as texts.
const fromJson = (x) => ({ inf: Infinity, "-inf": -Infinity, nan: NaN })[x] ?? x;

// Whether the reader's answer equals this answer from the table, to within half a unit in the last place.
/** @type {(given: any, answer: any, form: Form) => boolean} */
export function matches(given, answer, form) {
  if (Array.isArray(given) && Array.isArray(answer)) {
    return given.length === answer.length && given.every((each, i) => matches(each, answer[i], form));
  }
  const [a, b] = [fromJson(given), fromJson(answer)];
  if (typeof a !== "number" || typeof b !== "number" || !form.places) return Object.is(a, b) || a === b;
  return Object.is(a, b) || a === b || Math.abs(a - b) <= 0.5 * 10 ** -form.places + 1e-9;
}

// An answer from the table, as the text that a reader would type.
/** @type {(answer: any, form: Form) => string} */
export function formatAnswer(answer, form) {
  const write = (x) => {
    const value = fromJson(x);
    if (typeof value !== "number" || !Number.isFinite(value)) return String(x);
    return form.places ? value.toFixed(form.places).replace(/^-(0\.?0*)$/, "$1") : String(value);
  };
  if (answer === ERROR) return ERROR;
  if (form.kind === "table") return answer.map((row) => row.map(write).join(";")).join("|");
  if (form.kind === "numbers") return `(${answer.map(write).join(", ")}${answer.length === 1 ? "," : ""})`;
  if (form.kind === "order") return answer.join(",");
  return form.kind === "number" ? write(answer) : String(answer);
}

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
/** @type {(n: number) => string} */
export const numberWord = (n) => COUNTS[n] ?? String(n);
/** @type {(text: string) => string} */
export const capitalize = (text) => text[0].toUpperCase() + text.slice(1);
const nameAt = (names, i) => (!names ? i : /^\d+$/.test(names[i]) ? names[i] : quoted(names[i]));
const findWrong = (given, right, form) => range(right.length).filter((i) => !matches(given[i], right[i], form));

// Remarks about wrong answers that no known mistake explains.
const REMARKS = {
  number(given, { right }, { places }) {
    const [a, b] = [fromJson(given), fromJson(right)];
    if (places && Math.abs(a - b) < 2 * 10 ** -places) return "Almost right: check the last decimal place.";
    if (a === -b) return "The sign is wrong.";
    return a > b ? "Your number is too large." : a < b ? "Your number is too small." : "";
  },
  numbers(given, { right }, form) {
    if (given.length !== right.length) {
      return `The right answer has ${plural(right.length, "number")}; yours has ${numberWord(given.length)}.`;
    }
    const wrongIndices = findWrong(given, right, form);
    const sum = given.reduce((a, b) => a + b, 0);
    const tolerance = 0.5 * (right.length + 1) * 10 ** -form.places;
    if (form.total !== undefined && Math.abs(sum - form.total) > tolerance) {
      return `${form.total_of} add up to ${form.total}; yours add up to ${Number(sum.toFixed(form.places))}.`;
    }
    if (wrongIndices.length === 1) return `Only the ${ORDINALS[wrongIndices[0]] ?? "last"} number is wrong.`;
    const unmatched = [...right];
    for (const each of given) {
      const i = unmatched.findIndex((other) => matches(each, other, form));
      if (i >= 0) unmatched.splice(i, 1);
    }
    if (!unmatched.length) return "These are the right numbers, in a different order.";
    if (wrongIndices.length === right.length) return "None of the numbers is right.";
    return `The ${listed(wrongIndices.map((i) => ORDINALS[i]))} numbers are wrong.`;
  },
  table(given, { right, rows, columns }, form) {
    const wrongIndices = right.flatMap((row, i) => findWrong(given[i], row, form).map((j) => [i, j]));
    const cellName = ([i, j]) => `row ${nameAt(rows, i)}, column ${nameAt(columns, j)}`;
    if (wrongIndices.length === 1) return `Only ${cellName(wrongIndices[0])} is wrong.`;
    const count = capitalize(numberWord(wrongIndices.length));
    return `${count} numbers are wrong, the first of them in ${cellName(wrongIndices[0])}.`;
  },
  mask(given, { right, rows }) {
    const cells = [...right].flatMap((cell, i) => (given[i] === cell ? [] : [{ isExtra: cell === "0", i }]));
    const row = right.slice(0, cells[0].i).split("/").length - 1;
    const extra = cells.filter((cell) => cell.isExtra).length;
    const missing = cells.length - extra;
    const parts = [
      ...(extra ? [`${plural(extra, "cell")} too many`] : []),
      ...(missing ? [`${missing === 1 && extra ? "1" : plural(missing, "cell")} missing`] : []),
    ];
    return `${capitalize(listed(parts))}; look at row ${nameAt(rows, row)}.`;
  },
  choice: () => "",
  order(given, { right }) {
    const first = given.findIndex((step, i) => step !== right[i]);
    if (first === 0) return "The right answer begins with a different step.";
    return `The first ${first === 1 ? "step is" : `${numberWord(first)} steps are`} right, but the next is wrong.`;
  },
};
/** @type {(given: any, problem: Case, form: Form) => string} */
export function remarkOn(given, problem, form) {
  if (problem.right === ERROR) return "";
  return given === ERROR ? "This question has a numerical answer." : REMARKS[form.kind](given, problem, form);
}
