// The arithmetic of a mixture of experts: scores, the choice of the best k, weights, loads, and biases that balance the
// loads.

import { blend, clamp, range, softmax, sum } from "./maths.js";

/**
 * @typedef {object} Settings
 * @property {number[][]} logits for each token, one logit for each expert
 * @property {number} n_active
 * @property {"softmax-topk" | "topk-softmax" | "sigmoid-topk"} order
 * @property {boolean} renormalize
 * @property {number[]} bias one for each expert
 */
/**
 * One list for each token: the scores of all experts; the chosen experts, best expert first; and the weights of these
 * experts.
 * @typedef {{ scores: number[][], chosen: number[][], weights: number[][] }} Routes
 */

const sigmoid = (logits) => logits.map((logit) => 1 / (1 + Math.exp(-logit)));
const addVectors = (a, b) => a.map((x, i) => x + b[i]);
const topK = (numbers, k) => [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a]).slice(0, k);

// The biases affect the choice, but not the weights.
/** @type {(settings: Settings) => Routes} */
export function route({ logits, n_active, order, renormalize, bias }) {
  const scores = logits.map(order === "sigmoid-topk" ? sigmoid : softmax);
  const chosen = scores.map((row) => topK(addVectors(row, bias), n_active));
  const chosenValues = (rows, i) => chosen[i].map((expert) => rows[i][expert]);
  const weights = chosen.map((_, i) => {
    if (order === "topk-softmax") return softmax(chosenValues(logits, i));
    const chosenScores = chosenValues(scores, i);
    return renormalize ? chosenScores.map((score) => score / sum(chosenScores)) : chosenScores;
  });
  return { scores, chosen, weights };
}

// Rounds to a multiple of a step such as 0.01, without a floating-point error: to 0.07, not 0.06999999999999999.
/** @type {(step: number, x: number) => number} */
export const roundTo = (step, x) => Math.round(x / step) / Math.round(1 / step);

// The number of tokens that each expert receives.
/** @type {(chosen: number[][], experts: number) => number[]} */
export const loadsOf = (chosen, experts) =>
  range(experts).map((expert) => chosen.filter((indices) => indices.includes(expert)).length);

// Returns the biases after some steps. Each step raises the bias of every expert below the mean load, and lowers the
// bias of every expert above it.
/** @type {(settings: Settings, steps: number, limits: { bias: number, step: number }) => number[]} */
export function balance(settings, steps, limits) {
  let { bias } = settings;
  for (let i = 0; i < steps; i++) {
    const loads = loadsOf(route({ ...settings, bias }).chosen, bias.length);
    const mean = sum(loads) / loads.length;
    bias = bias.map((x, expert) => {
      const stepped = x + limits.step * Math.sign(mean - loads[expert]);
      return clamp(roundTo(limits.step, stepped), -limits.bias, limits.bias);
    });
  }
  return bias;
}

// Returns the tokens that get different experts because of the biases. Their order is the order in which they change
// their experts while all biases grow from zero to their current values.
/** @type {(settings: Settings) => number[]} */
export function movedTokens(settings) {
  const { bias } = settings;
  const { scores, chosen } = route({ ...settings, bias: bias.map(() => 0) });
  // For each token, the smallest factor of all biases at which an unchosen expert overtakes a chosen expert.
  const overtakenAt = chosen.map((experts, i) => {
    const unchosen = range(bias.length).filter((expert) => !experts.includes(expert));
    const fractions = experts.flatMap((expert) =>
      unchosen
        .filter((other) => bias[other] > bias[expert])
        .map((other) => (scores[i][expert] - scores[i][other]) / (bias[other] - bias[expert])),
    );
    return Math.min(...fractions, Infinity);
  });
  const biasedChoice = route(settings).chosen;
  const moved = [...biasedChoice.keys()].filter((i) => biasedChoice[i].some((expert) => !chosen[i].includes(expert)));
  return moved.sort((a, b) => overtakenAt[a] - overtakenAt[b]);
}

// The best expert that is not chosen, and the distance of its biased score from that of the last chosen expert.
/** @type {(scores: number[], bias: number[], chosen: number[]) => { expert: number, gap: number } | null} */
export function bestUnchosen(scores, bias, chosen) {
  const biased = addVectors(scores, bias);
  const [last, next] = topK(biased, chosen.length + 1).slice(chosen.length - 1);
  return next === undefined ? null : { expert: next, gap: biased[last] - biased[next] };
}

// The weighted sum of the outputs of one token's experts, plus the output of the shared experts if there is one.
/** @type {(chosen: number[], weights: number[], outputs: number[][], shared: number[] | null) => number[]} */
export const combineOutputs = (chosen, weights, outputs, shared) =>
  blend(
    [...weights, ...(shared ? [1] : [])],
    [...chosen.map((expert) => outputs[expert]), ...(shared ? [shared] : [])],
  );
