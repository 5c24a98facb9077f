// The arithmetic that labs share, without drawing, DOM or text. Tests compare it with transformer_lab on random inputs.

/** @typedef {number[]} Shape Sizes of a tensor's axes, as in PyTorch. */
/** @typedef {number[]} Index One position on each axis. */

/** @typedef {{ reduce(add: (total: number, x: number) => number, start: number): number }} Numbers Any array. */
/** @type {(numbers: Numbers) => number} */
export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
/** @type {(sizes: number[]) => number} */
export const product = (sizes) => sizes.reduce((a, b) => a * b, 1);
/** @type {(a: number[], b: number[]) => number} */
export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
/** @type {(x: number, least: number, most: number) => number} */
export const clamp = (x, least, most) => Math.min(Math.max(x, least), most);

/** @type {(count: number, first?: number, step?: number) => number[]} */
export const range = (count, first = 0, step = 1) => Array.from({ length: count }, (_, i) => first + i * step);

// All divisors of n, in ascending order.
/** @type {(n: number) => number[]} */
export function divisors(n) {
  const small = range(Math.floor(Math.sqrt(n)), 1).filter((i) => n % i === 0);
  return [...new Set([...small, ...small.map((i) => n / i).reverse()])];
}

// Positive weights that sum to one.
/** @type {(scores: number[]) => number[]} */
export function softmax(scores) {
  const max = Math.max(...scores);
  const exp = scores.map((score) => Math.exp(score - max));
  const total = sum(exp);
  return exp.map((x) => x / total);
}

// The weighted sum of rows.
/** @type {(weights: number[], rows: number[][]) => number[]} */
export const blend = (weights, rows) =>
  rows[0].map((_, column) =>
    dot(
      weights,
      rows.map((row) => row[column]),
    ),
  );

// The index of the element with this flat index, in row-major order.
/** @type {(flat: number, shape: Shape) => Index} */
export function unravel(flat, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/** @type {(index: Index, shape: Shape) => number} */
export const ravel = (index, shape) => index.reduce((flat, i, axis) => flat * shape[axis] + i, 0);

/** @type {(shape: Shape) => number[]} */
export function contiguousStrides(shape) {
  const strides = [];
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= Math.max(shape[axis], 1);
  }
  return strides;
}

// Returns the number at `index` in the pseudo-random sequence of `seed`: at least 0 and below 1, by mulberry32.
/** @type {(seed: number, index: number) => number} */
export function randomNumber(seed, index) {
  let a = (Math.imul(seed, 0x9e3779b1) + Math.imul(index + 1, 0x6d2b79f5)) >>> 0;
  a = Math.imul(a ^ (a >>> 15), a | 1);
  a ^= a + Math.imul(a ^ (a >>> 7), a | 61);
  return ((a ^ (a >>> 14)) >>> 0) / 2 ** 32;
}
