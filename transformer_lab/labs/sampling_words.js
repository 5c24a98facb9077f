// The sampling lab's texts, and the parsers of its fields.

import { plural, grouped, legible, parseNumber, fixed, quoted } from "./words.js";

/** @typedef {import("./sampling_maths.js").Choice} Choice */
/** @typedef {import("./sampling_maths.js").Stored} Stored */

// Parses a number with `steps` steps from one whole number to the next, such as 0.05, 0.10, …
/**
 * @type {(text: string, name: string, ends: [number, number], steps: number) =>
 *   import("./words.js").Parsed<number>}
 */
export function parseStep(text, name, ends, steps) {
  const read = parseNumber(text, name, ends, { whole: false, write: String });
  if (read.error) return read;
  const value = Math.round(read.value * steps) / steps;
  if (Math.abs(value - read.value) > 1e-9) return { error: `${name} is set in steps of ${1 / steps}.` };
  return { value, text: String(value) };
}

// Parses top-k: at most the number of stored tokens, or the whole vocabulary.
/** @type {(text: string, stored: number, all: number) => import("./words.js").Parsed<number | null>} */
export function parseTopK(text, stored, all) {
  if (text.trim() === "all") return { value: null, text: "all" };
  const read = parseNumber(text, "Top-k", [1, all]);
  if (!read.error && read.value > stored && read.value < all) {
    return { error: `Top-k ranges from 1 to ${stored}, or is “all”.` };
  }
  if (read.error) return { error: `Top-k is a whole number from 1 to ${stored}, or “all”.` };
  return read.value === all ? { value: null, text: "all" } : read;
}

export const tokenText = (token) => quoted(legible(token));
export const othersText = (count) => `${grouped(count)} others`;

// Formats a probability to three places. A nonzero probability is never written as zero.
/** @type {(p: number) => string} */
export const shareText = (p) => (p > 0 && p < 0.0005 ? "< 0.001" : fixed(p, 3));

/** @type {(stored: Stored, temperature: number, choice: Choice) => string} */
export function choiceText(stored, temperature, { after, kept, mass }) {
  const best = tokenText(stored.tokens[0]);
  if (temperature === 0) return `Greedy: the highest score wins, ${best}. Nothing is drawn.`;
  const all = kept === stored.vocab_size;
  const some = `${plural(kept, "token")} of ${grouped(stored.vocab_size)} ${kept === 1 ? "is" : "are"} kept`;
  const what = all ? `All ${grouped(kept)} tokens are kept` : `${some}, ${shareText(mass)} of the probability`;
  return `${what}; ${best} is likeliest, with ${shareText(after[0])}.`;
}

/** @type {(place: number, number: number, token: string) => string} */
export const drawText = (place, number, token) =>
  ` Draw ${grouped(place)}: the number ${number.toFixed(4)} falls on ${token}.`;
