// The texts of the influence lab, and its numbers as text.

import { clamp } from "./maths.js";
import { fixed, listed, quoted } from "./words.js";

/** @typedef {(number | null)[][]} Table How far output i moves when token j is replaced, at [j][i]; null is NaN. */
/**
 * @typedef {object} StoredModel A model that the lab stores.
 * @property {string} letter
 * @property {string} claim what the model is claimed to be
 * @property {string} verdict the right verdict
 * @property {string} title
 * @property {string} story
 * @property {string} thread
 * @property {string} link
 * @property {Record<string, Table>} tables
 */

/** @type {(x: number | null) => string} */
export function moveText(x) {
  if (x === null) return "NaN";
  if (x === 0) return "0";
  return x < 0.005 ? "<0.01" : fixed(x, x < 9.95 ? 2 : 0);
}

// The position of a move on the colour map, from 0 to 1, by its order of magnitude.
/** @type {(x: number | null) => number} */
export const colourLevel = (x) => (x ? clamp(0.75 + 0.16 * Math.log10(x), 0.2, 0.9) : 0);

// A token's number, or a dash for padding: a word would not fit in a narrow cell.
/** @type {(row: string, j: number) => string} */
export const tokenLabel = (row, j) => (row === "padded" && j < 3 ? "–" : String(j));

// Writes numbers of outputs: output 3, outputs 3 and 5, outputs 3 to 7.
function outputsText(numbers) {
  const [first, last] = [numbers[0], numbers.at(-1)];
  const isRange = numbers.length > 2 && last - first === numbers.length - 1;
  return `output${numbers.length > 1 ? "s" : ""} ${isRange ? `${first} to ${last}` : listed(numbers.map(String))}`;
}

// Describes which outputs move when token j is replaced, and which of these outputs come before the token.
/** @type {(table: Table, j: number, row: string) => string} */
export function influenceText(table, j, row) {
  const change =
    tokenLabel(row, j) === "–" ? `The padding at position ${j} gets a different number` : `Token ${j} is replaced`;
  const moved = [...table[j].keys()].filter((i) => table[j][i] !== 0);
  if (!moved.length) return `${change}: no output moves.`;
  if (table[j].every((x) => x === null)) return `${change}: every output is NaN, before and after the change.`;
  const farthest = moved.reduce((a, b) => (table[j][b] > table[j][a] ? b : a));
  const movedText = `${outputsText(moved)} move${moved.length > 1 ? "" : "s"}`;
  const distance = `by ${moveText(table[j][farthest])} times the outputs’ standard deviation`;
  const sentence = `${change}: ${movedText}${moved.length > 1 ? `, output ${farthest} farthest,` : ""} ${distance}.`;
  const earlier = moved.filter((i) => i < j);
  const verb = earlier.length > 1 ? "come" : "comes";
  return earlier.length ? `${sentence} ${outputsText(earlier).replace("o", "O")} ${verb} before the token.` : sentence;
}

/** @type {(verdict: string, right: string, texts: Record<string, string>) => string} */
export function verdictText(verdict, right, texts) {
  if (!verdict) return "";
  const answer = quoted(texts[verdict]);
  return verdict === right ? ` ${answer} is the right answer.` : ` ${answer} is not the right answer.`;
}
