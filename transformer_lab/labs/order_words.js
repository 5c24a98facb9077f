// The order lab's numbers and texts.

import { grouped, listed, minus, parseNumber, quoted, tuple } from "./words.js";

/** @typedef {import("./order_maths.js").Sizes} Sizes */
/** @typedef {import("./order_maths.js").Counts} Counts */

// Formats a number with at most two decimals.
/** @type {(x: number) => string} */
export const numberText = (x) => {
  if (x !== 0 && Math.abs(x) < 0.005) return "≈0";
  return minus(Math.abs(x) >= 1000 ? x.toFixed(0) : String(Number(x.toFixed(2))));
};
// Formats a positive number with at most two decimals, but never as “≈0”, so that ≈0 / ≈0 does not occur.
/** @type {(x: number) => string} */
export const positiveText = (x) => (x > 0 && x < 0.005 ? minus(String(Number(x.toPrecision(1)))) : numberText(x));
// Formats a number for a cell, in which about four characters fit.
/** @type {(x: number) => string} */
export const cellText = (x) =>
  Math.abs(x) < 10 ? numberText(x) : minus(String(Number(x.toFixed(Math.abs(x) < 100 ? 1 : 0))));
/** @type {(numbers: number[], write?: (x: number) => string) => string} */
export const vectorText = (numbers, write = numberText) => tuple(numbers, write);
// Writes a dot product as 2·3 + 0.5·(−1).
/** @type {(a: number[], b: number[], write?: (x: number) => string) => string} */
export function sumText(a, b, write = numberText) {
  const factor = (x) => (x < 0 ? `(${write(x)})` : write(x));
  return a.map((x, i) => `${positiveText(x)}·${factor(b[i])}`).join(" + ");
}
/** @type {(ratio: number) => string} */
const ratioText = (ratio) =>
  ratio >= 10 ? grouped(Math.round(ratio)) : String(Number(ratio.toFixed(ratio < 1.1 ? 3 : 2)));
/** @type {(x: number) => string} */
export const sizeText = (x) => (Number.isInteger(x) ? grouped(x) : x.toFixed(1));

/** @type {(name: string, text: string, limits: [number, number]) => import("./words.js").Parsed<number>} */
export const parseSize = (name, text, limits) => parseNumber(text, name.toUpperCase(), limits);

// The reasons why the order can or cannot be chosen.
export const REASONS = {
  nothing: "Matrix products are associative: both orders give the same numbers.",
  softmax:
    "Softmax exponentiates each score and divides by the sum of its row. All N × N scores must exist before V is used.",
  causal:
    "A single φ(K)ᵀV would contain the future, so S is built token by token: add, then read. The counts do not change.",
};
export const ORDER_NAMES = ["Queries with keys first", "Keys with values first"];
/** @type {(sizes: Sizes) => { first: string[], second: string[] }} */
export const formulas = ({ n, d, m }) => ({
  first: [
    `N²D = ${grouped(n)}² × ${d}`,
    `N²M = ${grouped(n)}² × ${m}`,
    `N²(D + M) = ${grouped(n)}² × ${d + m}`,
    `N² = ${grouped(n)}² numbers`,
  ],
  second: [
    ...Array(2).fill(`NDM = ${grouped(n)} × ${d} × ${m}`),
    `2NDM = 2 × ${grouped(n)} × ${d} × ${m}`,
    `DM = ${d} × ${m} numbers`,
  ],
});
/** @type {(total: number, held: number) => string} */
export const oneOrderText = (total, held) =>
  `With softmax in between, only one order is possible: ${grouped(total)} multiply-adds and ${grouped(held)} numbers ` +
  "stored in between. Twice as many tokens cost four times as much.";
/** @type {(order: string, ratio: number, totals: [number, number], equalN: number) => string} */
export const cheaperOrderText = (order, ratio, [less, more], equalN) =>
  `${quoted(order)} takes ${ratioText(ratio)} times fewer multiply-adds: ` +
  `${grouped(less)} instead of ${grouped(more)}. ` +
  `The costs are equal at N = 2DM/(D + M) = ${sizeText(equalN)}. `;
/** @type {(held: number[]) => string} */
export const heldNumbersText = (held) => `Numbers stored in between: ${grouped(held[0])} or ${grouped(held[1])}.`;
/** @type {(totals: number[], counts: Counts) => string} */
export function ordersText([a, b], { held, equalN }) {
  const costText =
    a === b
      ? `Both orders take ${grouped(a)} multiply-adds: N is 2DM/(D + M). `
      : a > b
        ? cheaperOrderText(ORDER_NAMES[1], a / b, [b, a], equalN)
        : cheaperOrderText(ORDER_NAMES[0], b / a, [a, b], equalN);
  return costText + heldNumbersText(held);
}
// `sides`: names and sizes of the sides that would be thinner than `leastPixels` at this scale.
/** @type {(sides: [string, number][], scale: number, leastPixels: number) => string} */
export function thinSidesText(sides, scale, leastPixels) {
  const isPlural = sides.length > 1;
  const names = listed(sides.map(([name, size]) => `${name} = ${size}`));
  const pixels = `${isPlural ? "at most " : ""}${Math.max(...sides.map(([, size]) => size * scale)).toFixed(2)} pixels`;
  const [subject, pronoun] = isPlural ? ["These sides are", "they are"] : ["This side is", "it is"];
  return (
    `At this scale, ${names} would be ${pixels} wide. ` +
    `${subject} drawn ${leastPixels} pixels wide, so that ${pronoun} visible.`
  );
}
