// The arithmetic of the mask lab: masks, and every stage of attention, correct or with a mistake.

import { blend, dot, range, softmax, sum } from "./maths.js";

/** @typedef {{ query: number[][], key: number[][], value: number[][] | null }} Vectors */
/**
 * A preset: what it hides, which sentences provide queries and keys, its label and its description.
 * @typedef {object} Preset
 * @property {string} label
 * @property {string} description
 * @property {boolean} causal
 * @property {boolean} padding
 * @property {boolean} window
 * @property {boolean} prefix
 * @property {"tokens" | "source"} queries
 * @property {"tokens" | "source"} keys
 * @property {boolean} is_block whether it is one of a Transformer's attention blocks
 */
/** @typedef {{ tokens: number, letters: number, d_head: number, d_value: number }} Limits */
/**
 * The lab's traits, and the names of queries and keys.
 * @typedef {object} State
 * @property {string[]} tokens
 * @property {string[]} source
 * @property {string} preset
 * @property {number} window
 * @property {number} prefix
 * @property {[number, number][]} flipped
 * @property {string} mistake
 * @property {[number, number]} at
 * @property {Vectors | null} given
 * @property {Record<string, Preset>} presets
 * @property {Limits} limits
 * @property {string[]} queries
 * @property {string[]} keys
 */
/**
 * All stages of attention. `visible` is true where a score is not set to −∞.
 * @typedef {object} Stages
 * @property {number[][]} scores
 * @property {number[][]} masked
 * @property {boolean[][]} visible
 * @property {number[][]} weights
 * @property {number[]} sums
 * @property {number[][] | null} output
 */
// All stages, with the mask, the preset's mask, the values, and the stages without the mistake.
/** @typedef {Stages & { mask: boolean[][], base: boolean[][], correct: Stages, value: number[][] | null }} Computed */

export const PAD = "<pad>"; // as in masks.py

// Returns numbers from −2 to 2 with one decimal: a hash of the word and its role, as in hashed_vector in masks.py.
/** @type {(word: string, role: string, features: number) => number[]} */
function hashedVector(word, role, features) {
  let hash = 5728;
  for (const letter of role[0] + word) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619);
  return range(features).map(() => {
    hash = (hash + 2654435769) | 0;
    let mixed = Math.imul(hash ^ (hash >>> 16), 2246822507);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 3266489909);
    return ((((mixed ^ (mixed >>> 16)) >>> 0) % 41) - 20) / 10;
  });
}

// The names of queries and keys.
/** @type {(state: any) => { queries: string[], keys: string[] }} */
export function sideNames({ preset, presets, given, ...sentences }) {
  const { queries, keys } = presets[preset];
  return { queries: sentences[queries], keys: given ? sentences.source : sentences[keys] };
}

/** @type {(state: State) => boolean[][]} */
export function presetMask({ preset, presets, window, prefix, queries, keys }) {
  const rule = presets[preset];
  const shift = keys.length - queries.length; // the last query is at the position of the last key
  const isSeen = (i, j) =>
    (!rule.causal || j <= i + shift || (rule.prefix && j < prefix)) &&
    (!rule.window || j > i + shift - window) &&
    (!rule.padding || keys[j] !== PAD);
  return queries.map((_, i) => keys.map((_, j) => isSeen(i, j)));
}

function maskOf(state) {
  const mask = presetMask(state);
  for (const [i, j] of state.flipped) if (mask[i]?.[j] !== undefined) mask[i][j] = !mask[i][j];
  return mask;
}

// The weights of one row over its visible keys; zeros if the row sees no key.
/** @type {(scores: number[], visible: boolean[]) => number[]} */
export function rowWeights(scores, visible) {
  if (!visible.some(Boolean)) return scores.map(() => 0);
  return softmax(scores.map((score, j) => (visible[j] ? score : -Infinity)));
}

// Whether a score stays finite under this mistake.
function isVisible(mistake, seen, onDiagonal, realQuery) {
  const visibleUnder = {
    "after softmax": true,
    "times zero": true,
    "large negative": true,
    inverted: !seen,
    diagonal: seen && !onDiagonal,
    "padded rows": seen && realQuery,
  };
  return visibleUnder[mistake] ?? seen;
}

// All stages of attention with `mask`, computed with `mistake`.
/** @type {(given: any) => Stages} */
function attend({ query, key, value, mask, mistake, realQueries }) {
  const scores = query.map((q) => key.map((k) => dot(q, k) / Math.sqrt(q.length)));
  const shift = key.length - query.length;
  const visible = mask.map((row, i) => row.map((seen, j) => isVisible(mistake, seen, j === i + shift, realQueries[i])));
  const masked = scores.map((row, i) =>
    row.map((score, j) => {
      if (!visible[i][j]) return -Infinity;
      if (mask[i][j] || mistake === "after softmax" || mistake === "inverted") return score;
      return mistake === "large negative" ? -1e9 : 0;
    }),
  );
  const weights = masked.map((row, i) =>
    rowWeights(row, visible[i]).map((w, j) => (mistake === "after softmax" && !mask[i][j] ? 0 : w)),
  );
  const sums = weights.map(sum);
  return { scores, masked, visible, weights, sums, output: value && weights.map((row) => blend(row, value)) };
}

// All numbers for a state.
/** @type {(state: State) => Computed} */
export function compute(state) {
  const { queries, keys, limits } = state;
  const vectorsOf = (words, role, features) => words.map((word) => hashedVector(word, role, features));
  const vectors = state.given ?? {
    query: vectorsOf(queries, "query", limits.d_head),
    key: vectorsOf(keys, "key", limits.d_head),
    value: vectorsOf(keys, "value", limits.d_value),
  };
  const mask = maskOf(state);
  const inputs = { ...vectors, mask, realQueries: queries.map((token) => token !== PAD) };
  const correct = attend({ ...inputs, mistake: "none" });
  const shown = state.mistake === "none" ? correct : attend({ ...inputs, mistake: state.mistake });
  return { ...shown, mask, base: presetMask(state), correct, value: vectors.value };
}
