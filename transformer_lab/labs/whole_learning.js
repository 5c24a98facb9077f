// The model in an experiment: the parts that are switched off, the checkpoint, and the rule that chooses words.

import { randomNumber, softmax } from "./maths.js";
import { generate, openModel, tokenize } from "./whole_maths.js";
import { numberWords } from "./whole_words.js";

/** @typedef {import("./whole_maths.js").Model} Model */
/** @typedef {import("./whole_maths.js").Chosen} Chosen */
// At temperature 0, the most likely token is written; top-k 0 keeps all tokens.
/** @typedef {{ temperature: number, topK: number, seed: number }} Sampling */
/** @typedef {{ source: number[], answer: number[] }} Question Token ids; the answer ends with eos. */
/** @typedef {{ right: number, asked: number }} Score */

// The probabilities after temperature and top-k have been applied.
/** @type {(logits: ArrayLike<number>, sampling: Sampling) => number[]} */
export function probsOf(logits, { temperature, topK }) {
  const row = Array.from(logits);
  const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a] || a - b);
  const kept = new Set(order.slice(0, topK || row.length));
  return softmax(row.map((score, i) => (kept.has(i) ? score / (temperature || 1) : -Infinity)));
}

// Returns the token that `draw`, a number from 0 to 1, selects when the probabilities are added up in the order of the
// vocabulary.
/** @type {(logits: ArrayLike<number>, sampling: Sampling, draw: number) => Chosen} */
export function choose(logits, sampling, draw) {
  const probabilities = probsOf(logits, sampling);
  let total = 0;
  const token = probabilities.findIndex((p) => {
    total += p;
    return draw < total;
  });
  const last = probabilities.findLastIndex((p) => p > 0); // rounding kept the sum below the draw
  return { token: token < 0 ? last : token, probabilities };
}

// Returns a function that chooses each token of one answer, or undefined if the most likely token is always written.
/** @type {(sampling: Sampling) => ((logits: number[]) => Chosen) | undefined} */
export function samplerOf(sampling) {
  let draws = 0;
  return sampling.temperature ? (logits) => choose(logits, sampling, randomNumber(sampling.seed, draws++)) : undefined;
}

// The models at each checkpoint, followed by the final models. `at` returns null while the page fetches weights, and if
// fetching fails; `redraw` is called when fetching ends.
/** @typedef {{ at: (checkpoint: number) => Model[] | null, failed: Set<number> }} Weights */
/** @type {(model: import("./ui.js").Model, redraw: () => void) => Weights} */
export function checkpointWeights(model, redraw) {
  const final = model.get("stored").map(openModel);
  const opened = new Map();
  const failed = new Set();
  async function fetch(checkpoint, place) {
    try {
      opened.set(checkpoint, (await model.load(place)).map(openModel));
    } catch {
      failed.add(checkpoint);
    }
    redraw();
  }
  function at(checkpoint) {
    const stored = model.get("checkpoints")[checkpoint];
    if (!stored) return final;
    if (!opened.has(checkpoint)) {
      const isHere = Array.isArray(stored); // a page stores the weights in a file
      opened.set(checkpoint, isHere ? stored.map(openModel) : null);
      if (!isHere) fetch(checkpoint, stored);
    }
    return opened.get(checkpoint);
  }
  return { at, failed };
}

// The numbers on which a model is evaluated, as inputs with their right answers.
/** @type {(model: Model, numbers: string[]) => Question[]} */
export const questionsOf = ({ source, target, eos }, numbers) =>
  numbers.map((text) => ({
    source: tokenize(text, source).value,
    answer: [...numberWords(Number(text), target.slice(target.indexOf("zero"))).map((w) => target.indexOf(w)), eos],
  }));

// Counts the questions that the model answers without a wrong token. The page can draw after every `budget_ms` of work.
/**
 * @type {(model: Model, questions: Question[], options?: { budget_ms?: number, signal?: { aborted: boolean },
 *   onProgress?: (score: Score) => void }) => Promise<Score | null>} null if it was aborted
 */
export async function accuracy(model, questions, { budget_ms = 8, onProgress, signal } = {}) {
  const score = { right: 0, asked: 0 };
  while (score.asked < questions.length) {
    const start = performance.now();
    do countOne(model, questions[score.asked], score);
    while (score.asked < questions.length && performance.now() - start < budget_ms);
    onProgress?.({ ...score });
    await new Promise((resolve) => setTimeout(resolve));
    if (signal?.aborted) return null;
  }
  return score;
}

function countOne(model, { source, answer }, score) {
  const { tokens } = generate(model, source, answer.length);
  score.right += Number(tokens.join() === answer.join());
  score.asked += 1;
}
