// The sampling lab's arithmetic: the kept tokens, their probabilities, and the tokens that random numbers select.

import { range, softmax, sum } from "./maths.js";

/**
 * The stored data of one prompt: its best tokens one by one, and sums over all other tokens, which sampling.py
 * computes.
 * @typedef {object} StoredPrompt
 * @property {string} key
 * @property {string} text
 * @property {boolean} chat
 * @property {number} vocab_size
 * @property {string[]} tokens
 * @property {number[]} logits
 * @property {number[]} others for each temperature, the probability of all other tokens together
 * @property {[number, number][][]} nucleus for each temperature and the largest values of top_p: the number of kept
 * tokens, their total probability
 * @property {[number, number][][]} likely for each temperature and the smallest values of min_p: the same two numbers
 */
/**
 * @typedef {object} Settings
 * @property {number} temperature
 * @property {number | null} top_k
 * @property {number} top_p
 * @property {number} min_p
 */
/**
 * The probabilities of the stored tokens and, in the last entry, of all other tokens, before and after the cut.
 * @typedef {{ before: number[], after: number[], kept: number, mass: number }} CutResult
 */

// A tolerance for rounding, since 0.1 + 0.2 must count as 0.3.
const ROUNDING = 1e-12;

/** @type {(stored: StoredPrompt, temperature: number, steps: number) => number[]} */
function probabilities({ logits, others }, temperature, steps) {
  if (temperature === 0) return [1, ...range(logits.length).fill(0)];
  const rest = others[Math.round(temperature * steps) - 1];
  return [...softmax(logits.map((x) => x / temperature)).map((p) => p * (1 - rest)), rest];
}

// The number of kept tokens, which are always the most likely tokens, and their total probability.
/** @type {(stored: StoredPrompt, settings: Settings, steps: Record<string, number>, before: number[]) =>
 *   [number, number]} */
function keptTokens(stored, { temperature, top_k, top_p, min_p }, steps, before) {
  if (temperature === 0) return [1, 1];
  const best = before.slice(0, -1);
  let total = 0;
  const cumulative = best.map((p) => {
    total += p;
    return total;
  });
  const row = Math.round(temperature * steps.temperature) - 1;
  let [count, mass] = top_k === null ? [stored.vocab_size, 1] : [top_k, cumulative[top_k - 1]];
  const topPStep = Math.round(top_p * steps.top_p);
  if (topPStep < steps.top_p) {
    const threshold = (topPStep / steps.top_p) * mass - ROUNDING;
    const below = cumulative.slice(0, count).filter((p) => p < threshold).length;
    const sets = stored.nucleus[row];
    [count, mass] = below < best.length ? [below + 1, cumulative[below]] : sets[topPStep - steps.top_p + sets.length];
  }
  const minPStep = Math.round(min_p * steps.min_p);
  if (minPStep > 0) {
    const sets = stored.likely[row];
    const likely = best.filter((p) => p >= (minPStep / steps.min_p) * best[0]).length;
    const [n, nMass] = minPStep <= sets.length ? sets[minPStep - 1] : [likely, cumulative[likely - 1]];
    if (n < count) [count, mass] = [n, nMass];
  }
  return [count, mass];
}

/** @type {(stored: StoredPrompt, settings: Settings, steps: Record<string, number>) => CutResult} */
export function applyCuts(stored, settings, steps) {
  const before = probabilities(stored, settings.temperature, steps.temperature);
  const last = before.length - 1;
  const [kept, mass] = keptTokens(stored, settings, steps, before);
  const after = before.map((p, i) => (i < Math.min(kept, last) ? p : 0));
  if (kept > last) after[last] = Math.max(mass - sum(after), 0);
  const total = sum(after);
  return { before, after: after.map((p) => p / total), kept, mass };
}

// The entry on which a random number falls: the first entry at which the running sum of probabilities exceeds the
// number.
/** @type {(number: number, cut: CutResult) => number} */
export function drawnIndex(number, { after, kept }) {
  const last = Math.min(kept, after.length) - 1;
  let total = 0;
  for (let i = 0; i < last; i++) {
    total += after[i];
    if (number < total) return i;
  }
  return last;
}
