// The arithmetic of the normalization lab. All norms are one function with different axes.

import { divisors, ravel } from "./maths.js";

/** @typedef {{ dims: number[], groups: number, center: boolean, eps: number }} Norm */
/** @typedef {{ x: number[], padding: boolean[], touched: boolean[] }} Disturbed */

// Returns a number for each entry; entries that share statistics have equal numbers.
/** @type {(shape: number[], dims: number[], groups: number) => number[]} */
function statisticsIds(shape, dims, groups) {
  const groupSize = shape[2] / groups;
  const ids = [];
  const reducedIndex = (i, axis) => (!dims.includes(axis) ? i : axis === 2 ? i - (i % groupSize) : 0);
  for (let b = 0; b < shape[0]; b++) {
    for (let s = 0; s < shape[1]; s++) {
      for (let f = 0; f < shape[2]; f++)
        ids.push(ravel([reducedIndex(b, 0), reducedIndex(s, 1), reducedIndex(f, 2)], shape));
    }
  }
  return ids;
}

// Normalizes x. `meanSquare` is the mean square of the values, which is the variance if the mean has been subtracted.
/**
 * @type {(x: number[], shape: number[], norm: Norm) =>
 *   { ids: number[], mean: number[], meanSquare: number[], values: number[] }}
 */
export function standardize(x, shape, { dims, groups, center, eps }) {
  const ids = statisticsIds(shape, dims, groups);
  const average = (numbers) => {
    const sum = ids.map(() => 0);
    const count = ids.map(() => 0);
    ids.forEach((id, i) => {
      sum[id] += numbers[i];
      count[id]++;
    });
    return ids.map((id) => sum[id] / count[id]);
  };
  const mean = average(x);
  const centred = center ? x.map((value, i) => value - mean[i]) : x;
  const meanSquare = average(centred.map((value) => value * value));
  return { ids, mean, meanSquare, values: centred.map((value, i) => value / Math.sqrt(meanSquare[i] + eps)) };
}

// The changed x. For each entry: its value, which is zero for padding; whether the entry is padding; and whether any
// feature of its token was changed.
/** @type {(x: number[], original: number[], shape: number[], lengths: number[]) => Disturbed} */
export function disturbX(x, original, shape, lengths) {
  const [, seq, features] = shape;
  const tokenOf = (flat) => Math.floor(flat / features);
  const padding = x.map((_, flat) => tokenOf(flat) % seq >= lengths[Math.floor(tokenOf(flat) / seq)]);
  const touchedTokens = new Set();
  x.forEach((value, flat) => {
    if (padding[flat] || value !== original[flat]) touchedTokens.add(tokenOf(flat));
  });
  return {
    x: x.map((value, flat) => (padding[flat] ? 0 : value)),
    padding,
    touched: x.map((_, flat) => touchedTokens.has(tokenOf(flat))),
  };
}

// The entries that move by `least` or more under a norm, although their tokens are unchanged. `sameSentence` counts
// these entries in sentences with a changed token, and `otherSentences` in the other sentences.
/** @typedef {{ moved: number, all: number }} Count */
/**
 * @type {(original: number[], disturbance: Disturbed, shape: number[], norm: Norm, least: number) =>
 *   { delta: number[], moved: boolean[], sameSentence: Count, otherSentences: Count }}
 */
export function countLeaks(original, { x, touched }, shape, norm, least) {
  const after = standardize(x, shape, norm).values;
  const before = standardize(original, shape, norm).values;
  const delta = after.map((value, flat) => value - before[flat]);
  const moved = delta.map((change, flat) => !touched[flat] && Math.abs(change) >= least);
  const sameSentence = { moved: 0, all: 0 };
  const otherSentences = { moved: 0, all: 0 };
  const size = shape[1] * shape[2];
  for (let start = 0; start < x.length; start += size) {
    const count = touched.slice(start, start + size).includes(true) ? sameSentence : otherSentences;
    for (let flat = start; flat < start + size; flat++) {
      if (touched[flat]) continue;
      count.all++;
      if (moved[flat]) count.moved++;
    }
  }
  return { delta, moved, sameSentence, otherSentences };
}

// The smallest possible number of groups above 1, or 1 if no such number exists.
/** @type {(features: number) => number} */
export const smallestSplit = (features) => divisors(features)[1] ?? 1;

// The range and step of the slider: up to five times the largest value, rounded up to one digit.
/** @type {(original: number[], most: number) => { reach: number, step: number }} */
export function sliderRange(original, most) {
  const largest = 5 * Math.max(...original.map(Math.abs)) || 10;
  const unit = 10 ** Math.floor(Math.log10(largest));
  const reach = Math.min(Number((Math.ceil(largest / unit - 1e-9) * unit).toPrecision(1)), most);
  return { reach, step: Number((unit / 10).toPrecision(1)) };
}
