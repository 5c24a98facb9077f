// The mask lab's texts about presets, classic mistakes and rows, and its parser for sentences.

import { PAD, rowWeights } from "./masks_maths.js";
import { range } from "./maths.js";
import { sortedByWidth } from "./ui.js";
import { fixed, listed, plural, quoted } from "./words.js";

/** @typedef {import("./masks_maths.js").State} State */
/** @typedef {import("./masks_maths.js").Computed} Computed */

export const MIN_SHOWN = 0.005; // smaller weights are displayed as 0.00
export const MAX_OUTPUT = 4; // at most this many output columns are drawn

// A sentence as tokens: words and punctuation marks.
/**
 * @type {(text: string, limits: import("./masks_maths.js").Limits) => import("./words.js").Parsed<string[]>}
 */
export function parseTokens(text, limits) {
  const value = text.match(/[^\s\p{Cc}.,;:!?"“”()…]+|[.,;:!?"“”()…]/gu) ?? [];
  if (!value.length) return { error: "Type at least one word." };
  if (value.length > limits.tokens) return { error: `At most ${limits.tokens} tokens here, not ${value.length}.` };
  const long = value.map((token) => [...token]).find((letters) => letters.length > limits.letters);
  if (!long) return { value, text: value.join(" ") };
  const start = quoted(`${long.slice(0, limits.letters).join("")}…`);
  return { error: `A token has at most ${limits.letters} characters here; ${start} has ${long.length}.` };
}

// Formats an output: its first few numbers.
/** @type {(output: number[]) => string} */
export function outputText(output) {
  const first = output.slice(0, MAX_OUTPUT).map((x) => fixed(x));
  return `= (${first.join(", ")}${output.length > MAX_OUTPUT ? ", …" : ""})`;
}

// For each mistake: its label, the formulas of the second and third stages, and its effect.
const SOFTMAX = "softmax of each row";
export const MISTAKES = {
  none: {
    label: "none",
    masked: "hidden → −∞",
    weights: SOFTMAX,
    effect:
      "Hidden scores become −∞ before the softmax, and e to the −∞ is 0. So every row divides a total weight of 1 " +
      "among the keys that it sees.",
  },
  "after softmax": {
    label: "after the softmax",
    masked: "nothing hidden yet",
    weights: "softmax, then × mask",
    effect:
      "Hidden keys took their share before they were removed, so rows no longer sum to one. Hidden keys still " +
      "matter: their scores are in every denominator. No error appears, since every shape is right.",
  },
  inverted: {
    label: "inverted",
    masked: "seen → −∞",
    weights: SOFTMAX,
    effect:
      "True was read as “hide”, as in nn.MultiheadAttention. Every query sees exactly the keys that it must not see. " +
      "No error appears: shapes are right, and rows sum to one.",
  },
  "times zero": {
    label: "scores × 0",
    masked: "hidden → 0",
    weights: SOFTMAX,
    effect:
      "A hidden score becomes 0, and e⁰ is 1, not 0: a hidden key gets the weight of a key with score 0. No error " +
      "appears: shapes are right, and rows sum to one.",
  },
  diagonal: {
    label: "diagonal too",
    masked: "hidden, itself → −∞",
    weights: SOFTMAX,
    effect:
      "The mask is off by one: with tril(-1) instead of tril(0), no token sees itself. Shapes are right, and no " +
      "error appears until a row sees nothing and a plain softmax turns this row into NaN.",
  },
  "padded rows": {
    label: "padded rows too",
    masked: "hidden, padded rows → −∞",
    weights: SOFTMAX,
    effect:
      "No query may see padding. If padding is hidden as a query too, its row contains only −∞, and a plain softmax " +
      "turns the row into NaN. NaN spreads: NaN × 0 is NaN, in the next layer and in the loss. Hide columns, not rows.",
  },
  "large negative": {
    label: "−10⁹, not −∞",
    masked: "hidden → −10⁹",
    weights: SOFTMAX,
    effect:
      "If a row sees any key, the weights are the same as with −∞. A row that sees nothing has equal scores, all " +
      "−10⁹, and attends equally to all keys, even hidden ones. There is no NaN, no error and no warning.",
  },
};

// Describes a preset, or counts the cells that differ from it.
/** @type {(state: State, flipped: number) => string} */
export function presetText({ preset, presets, window, prefix, keys, queries }, flipped) {
  const { label, description, padding } = presets[preset];
  if (flipped) return `Your own mask: ${plural(flipped, "cell differs", "cells differ")} from ${quoted(label)}.`;
  const previous = window === 2 ? "the token" : `the ${window - 1} tokens`;
  const values = {
    window: window === 1 ? "itself alone" : `itself and ${previous} before it`,
    prefix: plural(prefix, "token"),
    end: keys.length === queries.length ? "" : " The last query is at the position of the last key.",
  };
  const noPadding = padding && !keys.includes(PAD) ? " There is no padding yet: add some, or type <pad>." : "";
  return description.replace(/\{(\w+)\}/g, (_, name) => values[name]) + noPadding;
}

// Describes the selected row.
/**
 * @type {(
 *   state: Pick<State, "queries" | "keys" | "mistake">,
 *   stages: Pick<Computed, "mask" | "weights" | "sums" | "visible">,
 *   i: number,
 * ) => string}
 */
export function rowText({ queries, keys, mistake }, { mask, weights, sums, visible }, i) {
  const seen = range(keys.length).filter((j) => mask[i][j]);
  const queryName = quoted(queries[i]);
  if (!visible[i].some(Boolean)) {
    const allMasked = `${queryName} should see ${plural(seen.length, "key")}, but all its scores are −∞`;
    const reason = seen.length ? allMasked : `${queryName} sees nothing`;
    return `${reason}: its weights and output are 0 here, by the course’s rule. A plain softmax returns NaN.`;
  }
  const sum = fixed(sums[i]);
  if (!seen.length) return `The mask hides all keys from ${queryName}, but its weights still sum to ${sum}.`;
  const hiddenWeight = sums[i] - seen.reduce((total, j) => total + weights[i][j], 0);
  const share = fixed(hiddenWeight) === sum ? "all" : fixed(hiddenWeight);
  const sumText =
    hiddenWeight < MIN_SHOWN ? `, sum ${sum}.` : `. The row sums to ${sum}; hidden keys have ${share} of this sum.`;
  const numbers = seen.map((j) => fixed(weights[i][j]));
  if (seen.length > 6) {
    const countText = seen.length === keys.length ? "all" : `${seen.length} of`;
    const most = seen.reduce((best, j) => (weights[i][j] > weights[i][best] ? j : best), seen[0]);
    const heaviest = `${quoted(keys[most])} most: weight ${fixed(weights[i][most])}`;
    return `${queryName} sees ${countText} ${keys.length} keys, ${heaviest}${sumText}`;
  }
  const names = listed(seen.map((j) => quoted(keys[j])));
  const noun = seen.length > 1 ? "weights" : "weight";
  return `${queryName} ${mistake === "none" ? "sees" : "may see"} ${names}; ${noun} ${numbers.join(", ")}${sumText}`;
}

const leakedWeightText = (queryName, weight, key) =>
  `${queryName} gives weight ${fixed(weight)} to ${key}, which it must not see. `;
const lostWeightText = (queryName, lost, hiddenKey, weightWithout, key, weight) =>
  `${queryName} lost weight ${fixed(lost)} to hidden keys. It must not see ${hiddenKey}: without this key, ` +
  `${queryName} would give weight ${fixed(weightWithout)} to ${key}, not ${fixed(weight)}. `;

// Describes the influence of a hidden key on the row, if there is any.
/** @type {(state: State, stages: Computed, i: number) => string} */
export function leakText({ queries, keys, mistake }, { mask, weights, scores, sums }, i) {
  const [seen, hidden] = [true, false].map((value) => range(keys.length).filter((j) => mask[i][j] === value));
  const argmax = (numbers, indices) =>
    indices.reduce((best, j) => (best < 0 || numbers[j] > numbers[best] ? j : best), -1);
  const hiddenKey = argmax(mistake === "after softmax" ? scores[i] : weights[i], hidden);
  if (hiddenKey < 0) return "";
  const queryName = quoted(queries[i]);
  // A word that occurs twice is identified by its position.
  const isUnique = keys.indexOf(keys[hiddenKey]) === keys.lastIndexOf(keys[hiddenKey]);
  const name = quoted(keys[hiddenKey]) + (isUnique ? "" : ` at position ${hiddenKey}`);
  if (mistake !== "after softmax") {
    return weights[i][hiddenKey] >= MIN_SHOWN ? leakedWeightText(queryName, weights[i][hiddenKey], name) : "";
  }
  const topKey = argmax(weights[i], seen);
  if (topKey < 0) return "";
  const others = keys.map((_, j) => j !== hiddenKey);
  const weightWithout = rowWeights(scores[i], others)[topKey];
  return lostWeightText(queryName, 1 - sums[i], name, weightWithout, quoted(keys[topKey]), weights[i][topKey]);
}

// Describes the consequences of the mistake for this mask or, without a mistake, names the rows that see nothing.
/** @type {(state: State, stages: Computed) => string} */
export function consequencesText({ queries, given, mistake }, { mask, weights, sums, visible }) {
  const rows = range(queries.length);
  const empty = rows.filter((i) => !visible[i].some(Boolean));
  const lost = rows.filter((i) => !empty.includes(i) && Math.abs(sums[i] - 1) >= MIN_SHOWN);
  const leaks = rows.flatMap((i) => weights[i].filter((weight, j) => !mask[i][j] && weight >= MIN_SHOWN));
  if (mistake !== "none") {
    return (
      faultyRowsText(lost.length, leaks.length, Math.max(...leaks), empty.length) || nothingChangesText(mistake, given)
    );
  }
  return empty.length ? emptyRowsText(empty.length, [...new Set(empty.map((i) => quoted(queries[i])))]) : "";
}

function faultyRowsText(lost, leaks, most, empty) {
  const faults = [];
  if (lost) faults.push(`${plural(lost, "row does", "rows do")} not sum to one`);
  if (leaks) faults.push(`${plural(leaks, "hidden cell gets", "hidden cells get")} weight, up to ${fixed(most)}`);
  if (empty) faults.push(`${plural(empty, "row is", "rows are")} all −∞`);
  return faults.length ? `Here ${faults.join(", ").replace(/, (?=\d+ rows? (is|are) all)/, ", and ")}.` : "";
}

const nothingChangesText = (mistake, given) =>
  ({
    "padded rows": `This mistake changes nothing here: no query is padding.${given ? "" : " Add padding."}`,
    "large negative": "This mistake changes nothing here: no row is empty. Hide a whole row.",
    diagonal: "This mistake changes nothing here: the diagonal is hidden already.",
  })[mistake] ?? "This mistake changes nothing here: no key is hidden. Choose a mask.";

function emptyRowsText(rows, names) {
  const listedNames = names.length > 3 ? "" : `, of ${listed(names)},`;
  const subject = rows === 1 ? `The row of ${names[0]} sees` : `${rows} rows${listedNames} see`;
  const rule = "Weights cannot sum to one there: the course returns zeros, and a plain softmax returns NaN.";
  return `${subject} nothing. ${rule}`;
}

// The longest possible descriptions for a state, in the font of `node`.
/** @type {(node: Element, state: State) => { rows: string[], leak: string, consequences: string[] }} */
export function longestTexts(node, { queries, keys, mistake, given }) {
  const queryNames = sortedByWidth(node, [...new Set(queries)]);
  const names = sortedByWidth(node, keys);
  const longestRow = (keys, visible) => {
    const hasLeaks = !["none", "after softmax"].includes(mistake);
    const weights = keys.map(() => (hasLeaks ? 0.08 : 0));
    const sums = [hasLeaks ? 0.08 * keys.length + 0.88 : 0];
    const stages = { mask: [keys.map(() => true)], weights: [weights], sums, visible: [[visible]] };
    return rowText({ queries: [queryNames[0]], keys, mistake }, stages, 0);
  };
  const [queryName, name] = [quoted(queryNames[0]), quoted(names[0])];
  const longestName = new Set(keys).size < keys.length ? `${name} at position 00` : name;
  const leakTexts = { none: "", "after softmax": lostWeightText(queryName, 0, longestName, 0, name, 0) };
  const longestFaults = {
    none: emptyRowsText(queries.length, queryNames.slice(0, 3).map(quoted)),
    "after softmax": faultyRowsText(queries.length, 0, 0, 0),
  };
  const anyMistake = faultyRowsText(0, queries.length * keys.length, 0, queries.length);
  return {
    rows: [longestRow(names.slice(0, 6), true), longestRow(keys, true), longestRow(keys, false)],
    leak: leakTexts[mistake] ?? leakedWeightText(queryName, 0, longestName),
    consequences: [
      longestFaults[mistake] ?? anyMistake,
      ...(mistake === "none" ? [] : [nothingChangesText(mistake, given)]),
    ],
  };
}
