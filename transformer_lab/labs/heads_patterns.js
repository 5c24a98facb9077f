// A head's behaviour: scores for known patterns, and a description of one row of its weights.

import { sum } from "./maths.js";
import { listed, quotedAt } from "./words.js";

/** @typedef {"previous" | "same" | "induction" | "first"} Pattern */
/** @typedef {number[] | Float32Array} Row The weights of one query. */

// A head's score for each of four patterns, from 0 to 1; null if the pattern cannot occur in these tokens.
//   previous    mean weight on the token before, over all queries but the first
//   same        mean weight on all keys with the same token as the query, including the query itself
//   induction   mean weight on the tokens after earlier occurrences of the query's token, over queries with such tokens
//   first       mean weight on the first token, over all queries but the first
/** @type {(rows: Row[], tokens: string[]) => Record<Pattern, number | null>} */
export function patternScores(rows, tokens) {
  const sums = { previous: [0, 0], same: [0, 0], induction: [0, 0], first: [0, 0] };
  const add = (name, weight) => {
    sums[name][0] += weight;
    sums[name][1] += 1;
  };
  for (const [i, token] of tokens.entries()) {
    const row = rows[i];
    if (i > 0) {
      add("previous", row[i - 1]);
      add("first", row[0]);
    }
    let same = 0;
    let after = 0;
    let hasEarlier = false;
    for (let j = 0; j < tokens.length; j++) {
      if (tokens[j] !== token) continue;
      same += row[j];
      if (j < i) {
        hasEarlier = true;
        after += row[j + 1];
      }
    }
    add("same", same);
    if (hasEarlier) add("induction", after);
  }
  /** @type {(sumAndCount: number[]) => number | null} */
  const mean = ([sum, count]) => (count ? sum / count : null);
  const { previous, same, induction, first } = sums;
  return { previous: mean(previous), same: mean(same), induction: mean(induction), first: mean(first) };
}

export const PATTERNS = {
  previous: "previous token",
  same: "same token",
  induction: "induction",
  first: "first token",
};
const THRESHOLD = 0.5; // a head is labelled with a pattern if its score is at least this number

// The pattern with the highest score, if it reaches the threshold.
/** @type {(scores: Record<Pattern, number | null>) => { name: Pattern, score: number } | null} */
export function bestPattern(scores) {
  const better = (best, next) => ((next[1] ?? 0) > best[1] ? next : best);
  const [name, score] = Object.entries(scores).reduce(better, [null, 0]);
  return score >= THRESHOLD ? { name, score } : null;
}

// The keys of a row, by descending weight.
/** @type {(row: Row) => number[]} */
export const keysByWeight = (row) => [...row.keys()].sort((a, b) => row[b] - row[a] || a - b);

const sumText = (total) => ` Its weights sum to ${total.toFixed(2)}.`;

// Describes the weights of one query.
/** @type {(row: Row, queryName: string, keyTokens: string[]) => string} */
export function describeRow(row, queryName, keyTokens) {
  const order = keysByWeight(row);
  const total = sum(row);
  const keyText = (j) => `${quotedAt(keyTokens, j)} (${row[j].toFixed(2)})`;
  const top = row[order[0]];
  const low = row[order.at(-1)];
  if (top === 0) return `${queryName} looks at nothing: all its weights are zero.`;
  if (row.length === 1 || top > 0.995) return `${queryName} looks at ${keyText(order[0])} alone.${sumText(total)}`;
  if (top - low < 0.02) {
    const each = (total / row.length).toFixed(2);
    return `${queryName} looks at all ${row.length} keys about equally (${each} each).${sumText(total)}`;
  }
  const next = order.slice(1, 3).filter((j) => row[j] >= 0.05);
  const then = next.length ? `, then at ${listed(next.map(keyText))}` : "";
  return `${queryName} looks most at ${keyText(order[0])}${then}.${sumText(total)}`;
}

// The longest possible description of a row.
/** @type {(queryName: string, keyName: string) => string} */
export const longestRow = (queryName, keyName) =>
  `${queryName} looks most at ${keyName} (0.00), then at ${keyName} (0.00) and ${keyName} (0.00).${sumText(0)}`;
