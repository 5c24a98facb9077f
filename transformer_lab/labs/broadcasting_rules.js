// PyTorch's broadcasting rules: the shape of the result, the axes that stretch, and the computation of one element.

import { ravel } from "./maths.js";

/** @typedef {"elementwise" | "matmul"} Mode */
/**
 * The shape of the result or the reason for an error. For matmul: the batch axes of the result, the shapes of the two
 * operands with a vector as a matrix, and the size of the axis that is summed over.
 * @typedef {object} Combined
 * @property {number[]} [shape]
 * @property {string} [reason]
 * @property {number[]} [batch]
 * @property {number[]} [left]
 * @property {number[]} [right]
 * @property {number} [k]
 */
/**
 * One column of the table of axes. A size is null if broadcasting adds the axis to the operand, and undefined if the
 * operand has no such axis at all: in a product, the rows are an axis of a and of the result, but not of b.
 * @typedef {object} Column
 * @property {number | null} [a]
 * @property {number | null} [b]
 * @property {number | null} [out]
 * @property {string} [stretch]
 * @property {"batch" | "clash" | "kept" | "summed"} role
 * @property {string} reason why the operands fit or do not fit along the axis
 */

// The shape of elementwise arithmetic. Broadcasting aligns the operands' shapes from the right.
/** @type {(a: number[], b: number[]) => Combined} */
function broadcastShapes(a, b) {
  const length = Math.max(a.length, b.length);
  const shape = [];
  for (let axis = 1; axis <= length; axis++) {
    const [x, y] = [a[a.length - axis] ?? 1, b[b.length - axis] ?? 1];
    if (x !== y && x !== 1 && y !== 1) {
      return { reason: `${x} and ${y} differ on axis −${axis}, and neither is 1` };
    }
    shape.unshift(x === 1 ? y : x);
  }
  return { shape };
}

// The shape of a @ b by torch.matmul's rules, and the operands' shapes after broadcasting.
/** @type {(a: number[], b: number[]) => Combined} */
function matmulShapes(a, b) {
  if (!a.length || !b.length)
    return { reason: "matmul needs at least one axis on each side; use * for a single number" };
  const left = a.length === 1 ? [1, a[0]] : a;
  const right = b.length === 1 ? [b[0], 1] : b;
  const [k, k2] = [left.at(-1), right.at(-2)];
  if (k !== k2) {
    const axisName = b.length === 1 ? "only" : "second-to-last";
    return { reason: `the last axis of a (${k}) and the ${axisName} axis of b (${k2}) must be equal` };
  }
  const { shape: batch, reason } = broadcastShapes(left.slice(0, -2), right.slice(0, -2));
  if (reason) return { reason: `among the batch axes, ${reason.replace(/−(\d+)/, (_, n) => `−${+n + 2}`)}` };
  const rows = a.length === 1 ? [] : left.slice(-2, -1);
  const columns = b.length === 1 ? [] : right.slice(-1);
  return { shape: [...batch, ...rows, ...columns], batch, left, right, k };
}

// How each axis of the result is computed, from the right: {a, b, out, stretch, role, reason}. The size of a missing
// axis is null.
/** @type {(mode: Mode, a: number[], b: number[]) => Column[]} */
export function alignment(mode, a, b) {
  const columns = [];
  const addColumn = (x, y) => {
    const [sizeA, sizeB] = [x ?? 1, y ?? 1];
    const fits = sizeA === sizeB || sizeA === 1 || sizeB === 1;
    const stretch = !fits || sizeA === sizeB ? "" : sizeA === 1 ? "a" : "b";
    const role = fits ? "batch" : "clash";
    columns.unshift({
      a: x,
      b: y,
      out: fits ? (sizeA === 1 ? sizeB : sizeA) : null,
      stretch,
      role,
      reason: reasonOf(x, y, stretch, fits),
    });
  };
  const [left, right] = mode === "matmul" ? [a.slice(0, -2), b.slice(0, -2)] : [a, b];
  for (let axis = 1; axis <= Math.max(left.length, right.length); axis++) {
    addColumn(left[left.length - axis] ?? null, right[right.length - axis] ?? null);
  }
  if (mode !== "matmul") return columns;
  const n = a.length > 1 ? a.at(-2) : null;
  const m = b.length > 1 ? b.at(-1) : null;
  const [k, k2] = [a.at(-1) ?? null, (b.length > 1 ? b.at(-2) : b.at(-1)) ?? null];
  const [role, reason] = [
    k === k2 && k !== null ? "summed" : "clash",
    k === k2 ? "summed over" : `${k ?? "none"} ≠ ${k2 ?? "none"}`,
  ];
  columns.push({ a: n, b: undefined, out: n, role: "kept", reason: "rows of a" });
  columns.push({ a: k, b: k2, out: undefined, role, reason });
  columns.push({ a: undefined, b: m, out: m, role: "kept", reason: "columns of b" });
  return columns;
}

function reasonOf(x, y, stretch, fits) {
  if (!fits) return `${x ?? 1} ≠ ${y ?? 1}`;
  if (x === null) return "new axis of a";
  if (y === null) return "new axis of b";
  return stretch ? `${stretch} stretches` : "equal";
}

// The index of the operand's element from which an element of the result is computed. Along a stretched axis, the index
// is 0.
/** @type {(index: number[], shape: number[]) => number[]} */
export const sourceIndex = (index, shape) =>
  shape.map((size, axis) => (size === 1 ? 0 : index[index.length - shape.length + axis]));

export const valueA = (mode, flat) => (mode === "matmul" ? flat + 1 : 10 * (flat + 1));
export const valueB = (flat) => flat + 1;

// How one element of the result is computed: the flat indices of the elements of a and b that it uses, the sum as text,
// and the value of the sum.
/**
 * @type {(mode: Mode, a: number[], b: number[], result: Combined, index: number[]) =>
 *   { usedA: number[], usedB: number[], value: number, text: string }}
 */
export function explain(mode, a, b, result, index) {
  if (mode !== "matmul") {
    const [ia, ib] = [sourceIndex(index, a), sourceIndex(index, b)];
    const [x, y] = [valueA(mode, ravel(ia, a)), valueB(ravel(ib, b))];
    return {
      usedA: [ravel(ia, a)],
      usedB: [ravel(ib, b)],
      value: x + y,
      text: `result[${index.join(", ")}] = a[${ia.join(", ")}] + b[${ib.join(", ")}] = ${x} + ${y} = ${x + y}`,
    };
  }
  const batch = index.slice(0, result.batch.length);
  const matrixIndex = index.slice(result.batch.length);
  const row = a.length === 1 ? 0 : matrixIndex[0];
  const column = b.length === 1 ? 0 : matrixIndex.at(-1);
  const batchIndex = (operand) => sourceIndex(batch, operand.slice(0, -2));
  const usedA = [];
  const usedB = [];
  const terms = [];
  let value = 0;
  for (let k = 0; k < result.k; k++) {
    const ia = ravel([...batchIndex(result.left), row, k], result.left);
    const ib = ravel([...batchIndex(result.right), k, column], result.right);
    usedA.push(ia);
    usedB.push(ib);
    terms.push(`${valueA(mode, ia)}×${valueB(ib)}`);
    value += valueA(mode, ia) * valueB(ib);
  }
  return {
    usedA,
    usedB,
    value,
    text: `result[${index.join(", ")}] = ${terms.join(" + ") || "an empty sum"} = ${value}`,
  };
}

/** @type {(mode: Mode, a: number[], b: number[]) => Combined} */
export const combine = (mode, a, b) => (mode === "matmul" ? matmulShapes(a, b) : broadcastShapes(a, b));
