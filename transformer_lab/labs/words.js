// Formatting numbers, shapes and lists for readers, and parsing typed input.

// Writes a number with a Unicode minus, and without a minus before zero.
/** @type {(text: string) => string} */
export const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));

/** @type {(x: number, digits?: number) => string} */
export const fixed = (x, digits = 2) => minus(x.toFixed(digits));

// Formats a number for a cell, in about four characters.
/** @type {(x: number) => string} */
export function short(x) {
  if (x === -Infinity) return "−∞";
  if (Math.abs(x) >= 1000) return minus(x.toExponential(0).replace("+", ""));
  return fixed(x, Math.abs(x) < 9.95 ? 1 : 0);
}

// Formats an integer as 1,234,567. A drag formats hundreds of numbers per second; toLocaleString takes several times as
// long.
/** @type {(n: number | bigint | string) => string} */
export const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

// Writes a count with a noun: 1 head, 1,024 heads.
/** @type {(count: number, one: string, many?: string) => string} */
export const plural = (count, one, many = `${one}s`) => `${grouped(count)} ${count === 1 ? one : many}`;

/** @type {(text: string) => string} */
export const quoted = (text) => `“${text}”`;

// Makes the whitespace of a token visible.
/** @type {(token: string) => string} */
export const legible = (token) => token.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥") || "∅";
// Quotes a token of a sentence, with its position if the token occurs more than once.
/** @type {(tokens: string[], i: number) => string} */
export const quotedAt = (tokens, i) =>
  quoted(legible(tokens[i])) + (tokens.indexOf(tokens[i]) === tokens.lastIndexOf(tokens[i]) ? "" : ` [${i}]`);

// Lists things: “a”, “a and b”, “a, b and c”.
/** @type {(things: string[]) => string} */
export const listed = (things) =>
  things.length < 2 ? things.join("") : `${things.slice(0, -1).join(", ")} and ${things.at(-1)}`;

// Writes a vector as (1, −2), and a single number without brackets.
/** @type {(numbers: number[], write: (x: number) => string) => string} */
export const tuple = (numbers, write) =>
  numbers.length > 1 ? `(${numbers.map((x) => write(x)).join(", ")})` : write(numbers[0]);

// Writes a shape as Python does: (2, 3) and (2,).
/** @type {(shape: (number | string)[]) => string} */
export const shapeText = (shape) => (shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`);

/**
 * The value of a reader's text and its canonical form, or an error message.
 * @template T
 * @typedef {{ value?: T, text?: string, error?: string }} Parsed
 */

// Parses a number: "1,024" becomes 1024.
/**
 * @type {(
 *   text: string, name: string, ends: [number, number],
 *   options?: { whole?: boolean, write?: (value: number) => string },
 * ) => Parsed<number>}
 */
export function parseNumber(text, name, [least, most], { whole = true, write = grouped } = {}) {
  const plain = text
    .trim()
    .replace("−", "-")
    .replace(/(\d)[,_ ](?=\d{3}(\D|$))/g, "$1");
  const limits = `from ${write(least)} to ${write(most)}`;
  const pattern = whole ? /^\d+$/ : /^(\d+\.?\d*|\.\d+)$/;
  if (!pattern.test(least < 0 ? plain.replace(/^-/, "") : plain)) {
    return { error: `${name} must be a ${whole ? "whole number" : "number"} ${limits}.` };
  }
  const value = Number(plain);
  if (value >= least && value <= most) return { value, text: write(value) };
  const typed = plain.length > 15 ? `a number of ${plain.length} digits` : minus(grouped(plain));
  return { error: `${name} must be ${limits}, not ${typed}.` };
}

// Parses a shape: "2, 3, 4" becomes [2, 3, 4]. Brackets are optional; an empty text is the shape of a scalar.
/** @type {(text: string, limits: { axes: number, size: number, least?: number }) => Parsed<number[]>} */
export function parseShape(text, { axes, size, least = 0 }) {
  const inner = text
    .trim()
    .replace(/^[([]/, "")
    .replace(/[)\]]$/, "")
    .replace(/,\s*$/, "")
    .trim();
  if (!inner) return { value: [], text: "" };
  const value = [];
  for (const part of inner.split(/\s*,\s*|\s+/)) {
    if (!/^\d+$/.test(part)) {
      return { error: `A size must be a whole number, not ${quoted(part)}. Write a shape as 2, 3, 4.` };
    }
    if (+part < least || +part > size) {
      return { error: `A size must be from ${least} to ${grouped(size)}, not ${part}.` };
    }
    value.push(+part);
  }
  if (value.length > axes) return { error: `At most ${axes} axes here, not ${value.length}.` };
  return { value, text: value.join(", ") };
}
