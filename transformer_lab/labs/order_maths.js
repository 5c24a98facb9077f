// The arithmetic of the order lab: the costs of two orders of one product, and the recurrent form of the second order.

import { blend, dot, sum } from "./maths.js";

/** @typedef {{ n: number, d: number, m: number }} Sizes Tokens, features of a key, features of a value. */
/** @typedef {{ first: number[], second: number[], held: number[], equalN: number }} Counts */
/**
 * One step of the recurrent form: the state before and after the step, the update, and the output.
 * @typedef {object} Step
 * @property {{ S: number[][], z: number[] }} before
 * @property {number[]} keys φ(k)
 * @property {number[]} queries φ(q)
 * @property {number[][]} added
 * @property {number[][]} S
 * @property {number[]} z
 * @property {number[]} numerator
 * @property {number} denominator
 * @property {number[]} output
 */

const STEPS_PER_DOUBLING = 8; // steps of N's slider between a power of two and the next one

// The feature map, elu(x) + 1.
/** @type {(x: number) => number} */
const phi = (x) => (x > 0 ? x + 1 : Math.exp(x));

// The multiply-adds of each product in both orders, and the size of the intermediate result. Both orders cost the same
// if N is `equalN`.
/** @type {(sizes: Sizes) => Counts} */
export function counts({ n, d, m }) {
  return {
    first: [n * n * d, n * n * m],
    second: [n * d * m, n * d * m],
    held: [n * n, d * m],
    equalN: (2 * d * m) / (d + m),
  };
}

// The recurrent form, step by step: φ(k)vᵀ and φ(k) are added to the state (S, z), and then φ(q) reads the state.
/** @type {(query: number[][], key: number[][], value: number[][]) => Step[]} */
export function recurrentSteps(query, key, value) {
  let S = key[0].map(() => value[0].map(() => 0));
  let z = key[0].map(() => 0);
  return key.map((k, t) => {
    const before = { S, z };
    const keys = k.map(phi);
    const queries = query[t].map(phi);
    const added = keys.map((x) => value[t].map((v) => x * v));
    S = S.map((row, i) => row.map((x, j) => x + added[i][j]));
    z = z.map((x, i) => x + keys[i]);
    const column = (j) => S.map((row) => row[j]);
    const numerator = value[t].map((_, j) => dot(queries, column(j)));
    const denominator = dot(queries, z);
    const output = numerator.map((x) => x / denominator);
    return { before, keys, queries, added, S, z, numerator, denominator, output };
  });
}

// Row t of the parallel form: the weights φ(q)·φ(k) of the keys up to t, divided by their sum, and the output.
/**
 * @type {(query: number[][], key: number[][], value: number[][], t: number) =>
 *   { scores: number[], sum: number, weights: number[], output: number[] }}
 */
export function parallelRow(query, key, value, t) {
  const queries = query[t].map(phi);
  const scores = key.slice(0, t + 1).map((k) => dot(queries, k.map(phi)));
  const total = sum(scores);
  const weights = scores.map((score) => score / total);
  return { scores, sum: total, weights, output: blend(weights, value.slice(0, t + 1)) };
}

// The scale of N's slider is linear between powers of two, so that every step is a round number.
/** @type {(n: number) => number} */
export const sliderPosition = (n) => {
  const octave = Math.floor(Math.log2(n) + 1e-12);
  return STEPS_PER_DOUBLING * (octave - 4 + n / 2 ** octave - 1);
};
/** @type {(position: number) => number} */
export const tokensOf = (position) =>
  (STEPS_PER_DOUBLING + (position % STEPS_PER_DOUBLING)) * 2 ** (Math.floor(position / STEPS_PER_DOUBLING) + 1);
