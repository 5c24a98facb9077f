// The texts of the experts lab.

import { sum } from "./maths.js";
import { fixed, grouped, listed, plural, quotedAt } from "./words.js";

const meanText = (x) => fixed(x, Number.isInteger(x) ? 0 : 2);

// Writes a vector as (0.41, −1.20), with an ellipsis for features that are not shown. On a phone the table has one
// number per line.
/** @type {(vector: number[], features: number) => string} */
export const vectorText = (vector, features) =>
  `(${[...vector.map((x) => fixed(x)), ...(features > vector.length ? ["…"] : [])].join(",\n")})`;

// Describes the experts of the chosen token.
/**
 * @type {(
 *   tokens: string[], token: number, chosen: number[], weights: number[], next: { expert: number, gap: number } | null,
 * ) => string}
 */
export function routeText(tokens, token, chosen, weights, next) {
  const targets = chosen.map((expert, i) => `expert ${expert} (${fixed(weights[i])})`);
  const nextText = next ? `Expert ${next.expert} comes next, ${fixed(next.gap, 3)} behind.` : "No expert is left out.";
  return `${quotedAt(tokens, token)} goes to ${listed(targets)}. ${nextText}`;
}

/** @type {(loads: number[], tokens: number) => string} */
export function loadsText(loads, tokens) {
  const mean = sum(loads) / loads.length;
  const most = Math.max(...loads);
  if (Math.min(...loads) === most) return `Every expert has ${plural(most, "token")}: the load is even.`;
  return `Expert ${loads.indexOf(most)} has ${most} of ${plural(tokens, "token")}; the mean is ${meanText(mean)}.`;
}

// Describes the changes that the biases cause. With a single bias, `moved` lists the tokens in the order in which the
// slider of this bias changes their experts.
/** @type {(tokens: string[], moved: number[], bias: number[]) => string} */
export function movedText(tokens, moved, bias) {
  if (!bias.some(Boolean)) return "All biases are 0.";
  if (!moved.length) return "The biases have changed no token’s experts yet.";
  const isSingle = bias.filter(Boolean).length === 1;
  if (!isSingle) return `The biases have changed the experts of ${plural(moved.length, "token")}.`;
  const first = quotedAt(tokens, moved[0]);
  if (moved.length === 1) return `The bias changed the experts of ${first} alone.`;
  return `The bias changed the experts of ${first} first, and of ${plural(moved.length, "token")} in all.`;
}

// The longest text that can occur with k experts per token.
/** @type {(tokens: string[], widestToken: number, k: number, experts: number) => string} */
export function longestText(tokens, widestToken, k, experts) {
  const next = k < experts ? { expert: 0, gap: 0 } : null;
  const zeros = Array(experts).fill(0);
  const loads = [tokens.length, ...zeros.slice(1)];
  return [
    routeText(tokens, widestToken, [...zeros.keys()].slice(0, k), zeros, next),
    loadsText(k < experts ? loads : [...loads, 0], tokens.length),
    movedText(tokens, tokens.length > 1 ? [widestToken, widestToken] : [widestToken], [1]),
  ].join(" ");
}

/**
 * @typedef {{ router: number, expert: number, shared: number, d_model: number }} Sizes The number of parameters in each
 * part, and of features in a vector.
 */
/** @type {(sizes: Sizes, experts: number, active: number, shared: boolean) => string} */
export function parametersText({ router, expert, shared: sharedSize }, experts, active, shared) {
  const extra = shared ? ` + ${grouped(sharedSize)} (shared)` : "";
  const count = (n) => router + n * expert + (shared ? sharedSize : 0);
  const share = Math.round((100 * count(active)) / count(experts));
  const size = grouped(expert);
  return (
    `Parameters in all: ${grouped(router)} (router) + ${experts} × ${size}${extra} = ${grouped(count(experts))}. ` +
    `Active for one token: ${grouped(router)} + ${active} × ${size}${extra} = ${grouped(count(active))}, ${share} %.`
  );
}
