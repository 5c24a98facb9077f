// The normalization lab's texts about axes, norms and entries.

import { fixed, minus, plural, shapeText } from "./words.js";

/** @typedef {import("./normalization_maths.js").Norm} Norm */

// Describes the statistics of a norm: the unit that has its own statistics, and the entries from which they are
// computed.
/** @type {(dims: number[], groups: number) => string[]} */
function statisticsText(dims, groups) {
  const grouped = groups > 1 && dims.includes(2);
  const descriptions = {
    "": ["entry", "itself alone"],
    "0": ["position and feature", "all sentences"],
    "1": ["sentence and feature", "all its tokens"],
    "2": ["token", "all its features"],
    "01": ["feature", "all tokens of all sentences"],
    "02": ["position", "all sentences and features"],
    "12": ["sentence", "all its tokens and features"],
    "012": ["the whole cube"],
  };
  const groupDescriptions = {
    "2": ["token and group of features", "the group"],
    "02": ["position and group of features", "the group in all sentences"],
    "12": ["sentence and group of features", "the group in all its tokens"],
    "012": ["group of features", "the group in all tokens of all sentences"],
  };
  return (grouped ? groupDescriptions : descriptions)[dims.join("")];
}

// Describes the entries that share statistics with an entry.
/** @type {(dims: number[], groups: number) => string} */
function sharersText(dims, groups) {
  const features = groups > 1 ? "the features of its group" : "all features";
  return (
    {
      "0": "its feature and position in every sentence",
      "1": "its feature in every token of its sentence",
      "2": groups > 1 ? "the features of its group in its token" : "the features of its token",
      "01": "its feature in every token of every sentence",
      "02": `${features} at its position in every sentence`,
      "12": `${features} in every token of its sentence`,
      "012": `${features} in every token of every sentence`,
    }[dims.join("")] ?? ""
  );
}

// Writes the norm as code.
/** @type {(shape: number[], dims: number[], groups: number, center: boolean) => string} */
export function normCode(shape, dims, groups, center) {
  if (!dims.length) return center ? "x − x" : "x / |x|";
  const grouped = groups > 1 && dims.includes(2);
  const input = grouped ? `x.view(${[shape[0], shape[1], groups, shape[2] / groups].join(", ")})` : "x";
  const axes = shapeText(dims.map((dim) => (grouped && dim === 2 ? 3 : dim)));
  return center ? `standardize(${input}, dims=${axes})` : `x / sqrt(mean(${input}², dims=${axes}) + eps)`;
}

/** @type {(x: number) => string} */
export const numberText = (x) => (Number.isInteger(x) ? minus(String(x)) : fixed(x));
// Formats the change of an entry.
/** @type {(x: number) => string} */
export const changeText = (x) =>
  Number(x.toFixed(2)) === 0 ? "≈0" : `${x > 0 ? "+" : ""}${fixed(x, Math.abs(x) >= 10 ? 1 : 2)}`;

// Describes the shared statistics.
/** @type {(norm: Norm) => string} */
export function ruleText({ dims, groups, center }) {
  const [unit, entries] = statisticsText(dims, groups);
  return `One ${center ? "mean and variance" : "mean square"} for ${entries ? `each ${unit}, over ${entries}` : unit}.`;
}

/**
 * An entry: its value, its statistics, the number of entries that share them, and its normalized value; and the number
 * of changed entries of other tokens, with the number of all entries of other tokens.
 * @typedef {object} Entry
 * @property {number[]} index
 * @property {string} value
 * @property {number} mean
 * @property {number} deviation
 * @property {number} sharers
 * @property {number} normalized
 * @property {string | false} change
 * @property {[number | string, number] | false} moved
 */
/** @type {(entry: Entry, norm: Omit<Norm, "eps">) => string} */
export function entryText({ index, value, mean, deviation, sharers, normalized, change, moved }, norm) {
  const sharedText = norm.center
    ? `its mean ${fixed(mean)} and standard deviation ${fixed(deviation)}`
    : `its root mean square ${fixed(deviation)}`;
  const others = sharers ? `${plural(sharers, "other")}: ${sharersText(norm.dims, norm.groups)}` : "no other entry";
  const normalizedText = `Its normalized value is ${fixed(normalized)}${change ? `, moved by ${change}` : ""}.`;
  const [count, all] = moved || [];
  const verb = count === 1 || !count ? "has" : "have";
  const leakText = moved ? ` Of ${all} entries of other tokens, ${count || "none"} ${verb} moved.` : "";
  return `x[${index.join(", ")}] = ${value} shares ${sharedText} with ${others}. ${normalizedText}${leakText}`;
}

/** @type {(count: number, all: number) => string} */
export const movedText = (count, all) => `Normalized: ${count} of ${all} entries of other tokens moved`;
export const TABLE_TITLES = [
  "Drag a slider: which norms move entries of other tokens?",
  "Moved entries of other tokens",
];
