// The mask lab's texts about presets, classic mistakes and rows, and its parser for sentences.

import { PAD, rowWeights } from "./masks_maths.js";
import { range } from "./maths.js";
import { sortedByWidth } from "./ui.js";
import { fixed, listed, plural, quoted } from "./words.js";

/** @typedef {import("./masks_maths.js").State} State */
/** @typedef {import("./masks_maths.js").Computed} Computed */

export const LEAST = 0.005; // smaller weights are displayed as 0.00
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

// For each mistake its label, the formulas of the second and third stage, and the consequences.
const SOFTMAX = "softmax of each row";
export const MISTAKES = {
  none: {
    label: "none",
    masked: "hidden → −∞",
    weights: SOFTMAX,
    breaks:
      "Hidden scores become −∞ before the softmax, and e to the −∞ is 0. So every row divides a total weight of 1 " +
      "among the keys that it sees.",
  },
  "after softmax": {
    label: "after the softmax",
    masked: "nothing hidden yet",
    weights: "softmax, then × mask",
    breaks:
      "Hidden keys took their share before they were removed, so rows no longer sum to one. Hidden keys still " +
      "matter: their scores are in every denominator. No error appears, since every shape is right.",
  },
  inverted: {
    label: "inverted",
    masked: "seen → −∞",
    weights: SOFTMAX,
    breaks:
      "True was read as “hide”, as in nn.MultiheadAttention. Every query sees exactly the keys that it must not see. " +
      "No error appears: shapes are right, and rows sum to one.",
  },
  "times zero": {
    label: "scores × 0",
    masked: "hidden → 0",
    weights: SOFTMAX,
    breaks:
      "A hidden score becomes 0, and e⁰ is 1, not 0: a hidden key gets the weight of a key with score 0. No error " +
      "appears: shapes are right, and rows sum to one.",
  },
  diagonal: {
    label: "diagonal too",
    masked: "hidden, itself → −∞",
    weights: SOFTMAX,
    breaks:
      "Off by one, tril(-1) instead of tril(0): no token sees itself. Shapes are right and no error appears until a " +
      "row sees nothing and a plain softmax makes it NaN.",
  },
  "padded rows": {
    label: "padded rows too",
    masked: "hidden, padded rows → −∞",
    weights: SOFTMAX,
    breaks:
      "No query may see padding. If padding is hidden as a query too, its row contains only −∞, and a plain softmax " +
      "makes it NaN. NaN spreads: NaN × 0 is NaN, in the next layer and in the loss. Hide columns, not rows.",
  },
  "large negative": {
    label: "−10⁹, not −∞",
    masked: "hidden → −10⁹",
    weights: SOFTMAX,
    breaks:
      "If a row sees any key, the weights are the same as with −∞. A row that sees nothing has equal scores, all " +
      "−10⁹, and attends equally to all keys, even hidden ones. There is no NaN, no error and no warning.",
  },
};

// Describes a preset, or counts the cells that differ from it.
/** @type {(state: State, flipped: number) => string} */
export function presetText({ preset, presets, window, prefix, keys, queries }, flipped) {
  const { label, says, padding } = presets[preset];
  if (flipped) return `Your own mask: ${plural(flipped, "cell differs", "cells differ")} from ${quoted(label)}.`;
  const before = window === 2 ? "the token" : `the ${window - 1} tokens`;
  const filled = {
    window: window === 1 ? "itself alone" : `itself and ${before} before it`,
    prefix: plural(prefix, "token"),
    end: keys.length === queries.length ? "" : " The last query is at the position of the last key.",
  };
  const none = padding && !keys.includes(PAD) ? " There is no padding yet: add some, or type <pad>." : "";
  return says.replace(/\{(\w+)\}/g, (_, name) => filled[name]) + none;
}

// Describes the selected row.
/**
 * @type {(
 *   state: Pick<State, "queries" | "keys" | "mistake">, now: Pick<Computed, "mask" | "weights" | "sums" | "sees">,
 *   i: number,
 * ) => string}
 */
export function rowText({ queries, keys, mistake }, { mask, weights, sums, sees }, i) {
  const seen = range(keys.length).filter((j) => mask[i][j]);
  const who = quoted(queries[i]);
  if (!sees[i].some(Boolean)) {
    const hidden = `${who} should see ${plural(seen.length, "key")}, but all its scores are −∞`;
    const why = seen.length ? hidden : `${who} sees nothing`;
    return `${why}: its weights and output are 0 here, by the course’s rule. A plain softmax returns NaN.`;
  }
  const sum = fixed(sums[i]);
  if (!seen.length) return `The mask hides all keys from ${who}, but its weights still sum to ${sum}.`;
  const hidden = sums[i] - seen.reduce((own, j) => own + weights[i][j], 0);
  const share = fixed(hidden) === sum ? "all" : fixed(hidden);
  const total = hidden < LEAST ? `, sum ${sum}.` : `. The row sums to ${sum}; hidden keys have ${share} of this sum.`;
  const numbers = seen.map((j) => fixed(weights[i][j]));
  if (seen.length > 6) {
    const all = seen.length === keys.length ? "all" : `${seen.length} of`;
    const most = seen.reduce((best, j) => (weights[i][j] > weights[i][best] ? j : best), seen[0]);
    const heaviest = `${quoted(keys[most])} most: weight ${fixed(weights[i][most])}`;
    return `${who} sees ${all} ${keys.length} keys, ${heaviest}${total}`;
  }
  const names = listed(seen.map((j) => quoted(keys[j])));
  const noun = seen.length > 1 ? "weights" : "weight";
  return `${who} ${mistake === "none" ? "sees" : "may see"} ${names}; ${noun} ${numbers.join(", ")}${total}`;
}

const leakedWeightText = (who, weight, key) =>
  `${who} gives weight ${fixed(weight)} to ${key}, which it must not see. `;
const lostWeightText = (who, lost, hiddenKey, without, key, weight) =>
  `${who} lost weight ${fixed(lost)} to hidden keys. Without ${hiddenKey}, which it must not see, it would give ` +
  `${fixed(without)} to ${key}, not ${fixed(weight)}. `;

// Describes the influence of a hidden key on the row, if there is any.
/** @type {(state: State, now: Computed, i: number) => string} */
export function leakText({ queries, keys, mistake }, { mask, weights, scores, sums }, i) {
  const [seen, hidden] = [true, false].map((is) => range(keys.length).filter((j) => mask[i][j] === is));
  const best = (numbers, among) => among.reduce((top, j) => (top < 0 || numbers[j] > numbers[top] ? j : top), -1);
  const hiddenKey = best(mistake === "after softmax" ? scores[i] : weights[i], hidden);
  if (hiddenKey < 0) return "";
  const who = quoted(queries[i]);
  // A word that occurs twice is identified by its position.
  const once = keys.indexOf(keys[hiddenKey]) === keys.lastIndexOf(keys[hiddenKey]);
  const name = quoted(keys[hiddenKey]) + (once ? "" : ` at position ${hiddenKey}`);
  if (mistake !== "after softmax") {
    return weights[i][hiddenKey] >= LEAST ? leakedWeightText(who, weights[i][hiddenKey], name) : "";
  }
  const most = best(weights[i], seen);
  if (most < 0) return "";
  const others = keys.map((_, j) => j !== hiddenKey);
  const without = rowWeights(scores[i], others)[most];
  return lostWeightText(who, 1 - sums[i], name, without, quoted(keys[most]), weights[i][most]);
}

// Describes the consequences of the mistake for this mask, and names the rows that see nothing.
/** @type {(state: State, now: Computed) => string} */
export function consequencesText({ queries, given, mistake }, { mask, weights, sums, sees }) {
  const rows = range(queries.length);
  const empty = rows.filter((i) => !sees[i].some(Boolean));
  const lost = rows.filter((i) => !empty.includes(i) && Math.abs(sums[i] - 1) >= LEAST);
  const leaks = rows.flatMap((i) => weights[i].filter((weight, j) => !mask[i][j] && weight >= LEAST));
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
    "padded rows": `This mistake changes nothing here: no query is padding.${given ? "" : " Add some."}`,
    "large negative": "This mistake changes nothing here: no row is empty. Hide a whole row.",
    diagonal: "This mistake changes nothing here: the diagonal is hidden already.",
  })[mistake] ?? "This mistake changes nothing here: no key is hidden. Choose a mask.";

function emptyRowsText(rows, names) {
  const some = names.length > 3 ? "" : `, of ${listed(names)},`;
  const who = rows === 1 ? `The row of ${names[0]} sees` : `${rows} rows${some} see`;
  return `${who} nothing. Weights cannot sum to one there: the course returns zeros, and a plain softmax returns NaN.`;
}

// The longest possible descriptions for a state, in the font of `node`.
/** @type {(node: Element, state: State) => { rows: string[], leak: string, consequences: string[] }} */
export function longestTexts(node, { queries, keys, mistake, given }) {
  const queryNames = sortedByWidth(node, [...new Set(queries)]);
  const names = sortedByWidth(node, keys);
  const row = (keys, sees) => {
    const leaks = !["none", "after softmax"].includes(mistake);
    const weights = keys.map(() => (leaks ? 0.08 : 0));
    const sums = [leaks ? 0.08 * keys.length + 0.88 : 0];
    const now = { mask: [keys.map(() => true)], weights: [weights], sums, sees: [[sees]] };
    return rowText({ queries: [queryNames[0]], keys, mistake }, now, 0);
  };
  const [who, name] = [quoted(queryNames[0]), quoted(names[0])];
  const place = new Set(keys).size < keys.length ? `${name} at position 00` : name;
  const leaks = { none: "", "after softmax": lostWeightText(who, 0, place, 0, name, 0) };
  const most = {
    none: emptyRowsText(queries.length, queryNames.slice(0, 3).map(quoted)),
    "after softmax": faultyRowsText(queries.length, 0, 0, 0),
  };
  const anyMistake = faultyRowsText(0, queries.length * keys.length, 0, queries.length);
  return {
    rows: [row(names.slice(0, 6), true), row(keys, true), row(keys, false)],
    leak: leaks[mistake] ?? leakedWeightText(who, 0, place),
    consequences: [most[mistake] ?? anyMistake, ...(mistake === "none" ? [] : [nothingChangesText(mistake, given)])],
  };
}
