// The sampling lab's texts, and the parsers of its fields.

import { fixed, grouped, legible, parseNumber, plural, quoted } from "./words.js";

/** @typedef {import("./sampling_maths.js").CutResult} CutResult */
/** @typedef {import("./sampling_maths.js").StoredPrompt} StoredPrompt */

// Parses a number with `steps` steps from one whole number to the next, such as 0.05, 0.10, …
/**
 * @type {(text: string, name: string, ends: [number, number], steps: number) =>
 *   import("./words.js").Parsed<number>}
 */
export function parseStep(text, name, ends, steps) {
  const parsed = parseNumber(text, name, ends, { whole: false, write: String });
  if (parsed.error) return parsed;
  const value = Math.round(parsed.value * steps) / steps;
  if (Math.abs(value - parsed.value) > 1e-9) return { error: `${name} is set in steps of ${1 / steps}.` };
  return { value, text: String(value) };
}

// Parses top-k: at most the number of stored tokens, or the whole vocabulary.
/** @type {(text: string, stored: number, vocabSize: number) => import("./words.js").Parsed<number | null>} */
export function parseTopK(text, stored, vocabSize) {
  if (text.trim() === "all") return { value: null, text: "all" };
  const parsed = parseNumber(text, "Top-k", [1, vocabSize]);
  if (parsed.error || (parsed.value > stored && parsed.value < vocabSize)) {
    return { error: `Top-k must be a whole number from 1 to ${stored}, or “all”.` };
  }
  return parsed.value === vocabSize ? { value: null, text: "all" } : parsed;
}

export const tokenText = (token) => quoted(legible(token));
export const othersText = (count) => `${grouped(count)} others`;

// Formats a probability to three decimals. A nonzero probability is never written as zero.
/** @type {(p: number) => string} */
export const shareText = (p) => (p > 0 && p < 0.0005 ? "< 0.001" : fixed(p, 3));

/** @type {(stored: StoredPrompt, temperature: number, cut: CutResult) => string} */
export function cutText(stored, temperature, { after, kept, mass }) {
  const best = tokenText(stored.tokens[0]);
  if (temperature === 0) return `Greedy: ${best} has the highest score, so every draw returns it.`;
  const keepsAll = kept === stored.vocab_size;
  const keptText = `${plural(kept, "token")} of ${grouped(stored.vocab_size)} ${kept === 1 ? "is" : "are"} kept`;
  const summary = keepsAll
    ? `All ${grouped(kept)} tokens are kept`
    : `${keptText}, with ${shareText(mass)} of the probability`;
  return `${summary}; ${best} is the most likely, with ${shareText(after[0])}.`;
}

/** @type {(draw: number, number: number, token: string) => string} */
export const drawText = (draw, number, token) =>
  ` Draw ${grouped(draw)}: the number ${number.toFixed(4)} falls on ${token}.`;
