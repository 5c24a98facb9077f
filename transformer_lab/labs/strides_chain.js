// Parsing and running a typed chain of operations.

import { product } from "./maths.js";
import { arange, fail, OperationError, operations } from "./strides_rules.js";
import { plural, quoted } from "./words.js";

/** @typedef {import("./strides_rules.js").Strided} Strided */
// One operation, and its canonical text.
/** @typedef {{ text: string, name: string, args: any[], inBrackets?: boolean }} Step */
/** @typedef {{ step?: Step, rest?: string, error?: string }} ReadResult The first step, and the rest of the text. */

const MAX_DRAWN = 128;

// The largest number of arguments, for operations that accept no list.
const MAX_ARGS = { t: 0, contiguous: 0, unsqueeze: 1, transpose: 2, flatten: 2 };

/** @type {(step: Step) => void} */
function checkArguments({ name, args, inBrackets }) {
  const most = MAX_ARGS[name];
  if (inBrackets && most !== undefined) fail(`${name} takes plain numbers, not a list of them.`);
  if (args.length > most) {
    const allowed = most ? plural(most, "number") : "no numbers";
    fail(`${name} takes ${allowed}${most > 1 ? " at most" : ""}; got ${args.length}.`);
  }
  if (!args.length && inBrackets && name === "squeeze") fail("squeeze: an empty list names no axis.");
  if (!args.length && !inBrackets && ["view", "reshape", "permute", "expand"].includes(name)) {
    fail(`${name} needs the ${name === "permute" ? "order of the axes" : "shape"}.`);
  }
}

const INTEGER = /^-?\d{1,9}$/;

// Parses .view(2, 3): returns {step, rest} or {error}. The step's text is valid Python.
/** @type {(match: string[], text: string) => ReadResult} */
function parseCall([call, name, argText], text) {
  const names = Object.keys(operations).filter((operation) => operation !== "index");
  if (!names.includes(name)) return { error: `This lab has no .${name}. It knows ${names.join(", ")} and [ ].` };
  const bracket = /^\((.*)\)$|^\[(.*)\]$/s.exec(argText.trim());
  const list = (bracket ? (bracket[1] ?? bracket[2]) : argText).trim();
  const inList = list.replace(/,$/, "").trim();
  const args = inList ? inList.split(",").map((arg) => arg.trim()) : [];
  const invalid = args.find((arg) => !INTEGER.test(arg));
  if (invalid !== undefined) return { error: `.${name} takes whole numbers here; ${quoted(invalid)} is not one.` };
  // (2) is a number; (2,) and [2] are lists of one number.
  const inBrackets = Boolean(bracket) && (bracket[2] !== undefined || list.includes(",") || !args.length);
  const numbers = args.map(Number).join(", ");
  const written = inBrackets ? `(${numbers}${args.length === 1 ? "," : ""})` : numbers;
  const step = { text: `.${name}(${written})`, name, args: args.map(Number), inBrackets };
  return { step, rest: text.slice(call.length) };
}

// Parses [0, ::2]: returns {step, rest} or {error}, as parseCall does.
/** @type {(match: string[], text: string) => ReadResult} */
function parseIndex([brackets, inside], text) {
  const args = [];
  for (const part of inside.split(",").map((part) => part.trim())) {
    const ends = part.split(":").map((end) => end.trim());
    const number = (digits) => (digits === undefined || digits === "" ? null : +digits);
    if (INTEGER.test(part)) args.push(+part);
    else if (part === "...") args.push("...");
    else if ([2, 3].includes(ends.length) && ends.every((end) => !end || INTEGER.test(end))) {
      args.push({ from: number(ends[0]), to: number(ends[1]), step: number(ends[2]) });
    } else return { error: `${quoted(part)} is not an index; write 1, or 0:2, or ::2, or “...”.` };
  }
  const ends = ({ from, to, step }) => [from, to, ...(step === null ? [] : [step])].map((end) => end ?? "").join(":");
  const written = args.map((part) => (part?.from === undefined ? part : ends(part)));
  return { step: { text: `[${written.join(", ")}]`, name: "index", args }, rest: text.slice(brackets.length) };
}

// Parses a chain: ".transpose(0, 1).view(6)" has two steps.
/** @type {(text: string, limits: { chain: number }) => import("./words.js").Parsed<Step[]>} */
export function parseChain(text, limits) {
  if (text.length > limits.chain) return { error: `At most ${limits.chain} characters here.` };
  const steps = [];
  let rest = text.trim().replace(/^x(?=[.[])/, "");
  while (rest) {
    const call = /^\s*\.\s*([A-Za-z_]+)\s*\(\s*([^()]*|\([^()]*\))\s*\)/.exec(rest);
    const index = /^\s*\[([^\]]*)\]/.exec(rest);
    if (!call && !index) {
      const start = quoted(rest.trim().slice(0, 12));
      return { error: `The error begins at ${start}. Write operations as .transpose(0, 1) or [:, 0].` };
    }
    const parsed = call ? parseCall(call, rest) : parseIndex(index, rest);
    if (parsed.error) return parsed;
    steps.push(parsed.step);
    rest = parsed.rest.trimStart();
  }
  return { value: steps, text: chainText(steps) };
}

/** @type {(steps: Step[]) => string} */
export const chainText = (steps) => steps.map((step) => step.text).join("");

// Runs a chain on a fresh tensor: returns all intermediate tensors, and the error that ended the chain, if there was
// one.
/** @type {(shape: number[], steps: Step[]) => { tensors: Strided[], failedStep?: number, reason?: string }} */
export function runChain(shape, steps) {
  const tensors = [arange(shape)];
  for (const [i, step] of steps.entries()) {
    try {
      checkArguments(step);
      const next = operations[step.name](tensors.at(-1), ...step.args);
      const count = product(next.shape);
      if (count > MAX_DRAWN) fail(`${step.name}: ${count} elements are more than this lab draws (${MAX_DRAWN}).`);
      tensors.push({ ...next, copied: next.storage !== tensors.at(-1).storage });
    } catch (error) {
      if (!(error instanceof OperationError)) throw error;
      return { tensors, failedStep: i, reason: error.message };
    }
  }
  return { tensors };
}
