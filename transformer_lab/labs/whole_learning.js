// Choosing the next token, and the accuracy on many numbers.

import { softmax } from "./maths.js";
import { write } from "./whole_maths.js";

/** @typedef {import("./whole_maths.js").Model} Model */
/** @typedef {{ temperature: number, topK: number | null, draw: number }} Sampling `draw` is from 0 to 1. */
/** @typedef {{ token: number, probabilities: number[] }} Chosen The probabilities after temperature and top-k. */
/** @typedef {{ source: number[], answer: number[] }} Question Token ids; the answer ends with eos. */
/** @typedef {{ right: number, asked: number }} Score */

// One token: the most likely k share the probability, and `draw` selects among them, in the order of the vocabulary.
/** @type {(logits: ArrayLike<number>, sampling: Sampling) => Chosen} */
export function choose(logits, { temperature, topK, draw }) {
  const row = Array.from(logits);
  const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a] || a - b);
  const kept = new Set(order.slice(0, topK ?? row.length));
  const probabilities = softmax(row.map((score, i) => (kept.has(i) ? score / temperature : -Infinity)));
  let total = 0;
  const token = probabilities.findIndex((p) => {
    total += p;
    return draw < total;
  });
  return { token: token < 0 ? order[0] : token, probabilities }; // below 0: rounding left the sum under the draw
}

// How many questions the model answers without a wrong token. It works `budget_ms` at a time, then lets the page draw.
/**
 * @type {(model: Model, questions: Question[], options?: { budget_ms?: number, signal?: { aborted: boolean },
 *   onProgress?: (score: Score) => void }) => Promise<Score | null>} null: it was aborted
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
  const { tokens } = write(model, source, answer.length);
  score.right += Number(tokens.join() === answer.join());
  score.asked += 1;
}
