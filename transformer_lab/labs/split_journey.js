// Splitting and merging a small example: the layout at each step, and the description of the step.

import { range, ravel, unravel } from "./maths.js";

/** @typedef {{ seq: number, heads: number, d_head: number }} Example */
// A step's shape, and the number at each position in row-major order; in a table of scores or weights, each position
// has a pair of numbers.
/** @typedef {{ shape: number[], ids: (number | [number, number])[] }} Step */
// A step's code, its shape by axis names, and its description; `wrong` marks a mistake.
/** @typedef {{ text: string, shape: string[], words: string, wrong: boolean }} StepText */

// A number is identified by its original position: t·d_model + f is feature f of token t.
/** @type {(example: Example, splitByView: boolean, mergeByView: boolean) => Step[]} */
export function journeySteps({ seq, heads, d_head: dHead }, splitByView, mergeByView) {
  const dModel = heads * dHead;
  const x = range(seq * dModel);
  /** @type {(ids: number[], shape: number[]) => number[]} */
  const swapFirstAxes = (ids, [a, b, c]) =>
    x.map((_, flat) => {
      const [j, i, k] = unravel(flat, [b, a, c]);
      return ids[ravel([i, j, k], [a, b, c])];
    });
  const afterView = splitByView ? [heads, seq, dHead] : [seq, heads, dHead];
  const split = [heads, seq, dHead];
  const inHeads = splitByView ? x : swapFirstAxes(x, afterView);
  const scores = Array.from({ length: heads * seq * seq }, (_, flat) => {
    const [head, i, j] = unravel(flat, [heads, seq, seq]);
    return [inHeads[ravel([head, i, 0], split)], inHeads[ravel([head, j, 0], split)]];
  });
  const tokensFirst = mergeByView ? inHeads : swapFirstAxes(inHeads, split);
  const rows = [seq, dModel];
  const table = [heads, seq, seq];
  const merged = mergeByView ? split : [seq, heads, dHead];
  const step = (shape, ids) => ({ shape, ids });
  return [
    step(rows, x),
    step(rows, x),
    step(afterView, x),
    step(split, inHeads),
    step(table, scores),
    step(table, scores),
    step(split, inHeads),
    step(merged, tokensFirst),
    step(rows, tokensFirst),
    step(rows, tokensFirst),
  ];
}

// Functions that read the example: the names of its numbers, their rows and tokens, and whether a number is in the row
// of a different token.
/** @param {Example} example */
export function exampleReaders({ heads, d_head }) {
  const features = heads * d_head;
  const letterOf = (token) => String.fromCharCode(97 + token);
  const tokenOf = (id) => Math.floor(id / features);
  const nameOf = (id) =>
    Array.isArray(id) ? id.map((one) => letterOf(tokenOf(one))).join("·") : `${letterOf(tokenOf(id))}${id % features}`;
  // Whether the first axis is the axis of the heads.
  const isByHead = (shape) => shape.length === 3 && shape[0] === heads;
  const rowOf = (shape, index) => index[isByHead(shape) ? 1 : 0];
  const isMisplaced = ({ shape, ids }, flat) => {
    const id = ids[flat];
    const index = unravel(flat, shape);
    if (Array.isArray(id)) return tokenOf(id[0]) !== index[1] || tokenOf(id[1]) !== index[2];
    return tokenOf(id) !== rowOf(shape, index);
  };
  return { features, letterOf, tokenOf, nameOf, isByHead, rowOf, isMisplaced };
}

// The first and the last token whose numbers are in a head after a split by view alone.
/** @type {(head: number, heads: number, seq: number) => [number, number]} */
export const tokensOfHead = (head, heads, seq) => [
  Math.floor((head * seq) / heads),
  Math.floor(((head + 1) * seq - 1) / heads),
];

// All steps: code, shape by axis names, and description.
/** @type {(splitByView: boolean, mergeByView: boolean) => StepText[]} */
export function stepTexts(splitByView, mergeByView) {
  const seq = "seq";
  const rows = ["batch", seq, "d_model"];
  const afterView = ["batch", seq, "heads", "d_head"];
  const split = ["batch", "heads", seq, "d_head"];
  const table = ["batch", "heads", "q_len", "k_len"];
  const stepText = (text, shape, words, wrong = false) => ({ text, shape, words, wrong });
  return [
    stepText("x", rows, "x has one row for each token, with d_model features in each row."),
    stepText(
      "q = q_proj(x)",
      rows,
      "A linear layer computes each token’s query from all its features. k_proj and v_proj compute keys and values " +
        "in the same way. Each row still belongs to one token.",
    ),
    splitByView
      ? stepText(
          `q = q.view(batch, heads, ${seq}, d_head)`,
          split,
          "The shape is right, but view has distributed the numbers in reading order. Head 0 gets the first half of " +
            "the sentence, each token in two pieces, and attention treats every piece as a token.",
          true,
        )
      : stepText(
          `q = q.view(batch, ${seq}, heads, d_head)`,
          afterView,
          "Each token’s row is cut into one piece per head. No number moves.",
        ),
    splitByView
      ? stepText(
          "(no transpose)",
          split,
          "The shape is right already, so nothing warns you. A dashed cell is in a row that attention reads as the " +
            "row of another token.",
          true,
        )
      : stepText(
          "q = q.transpose(1, 2)",
          split,
          "The axis of the heads moves to the front: each head now has its own matrix, with one row for each token.",
        ),
    stepText(
      "scores = q @ k.transpose(2, 3) / √d_head",
      table,
      splitByView
        ? "Head 0 compares pieces of a and b with one another. It never sees c or d."
        : "Each head compares its own queries with its own keys: a·b is the product of a’s query and b’s key.",
    ),
    stepText(
      "weights = scores.softmax(dim=-1)",
      table,
      splitByView
        ? "Rows sum to one, but belong to the wrong tokens."
        : "Every row sums to one. These are the heatmaps of the heads.",
    ),
    stepText(
      "out = weights @ v",
      split,
      splitByView
        ? "Each row is the output for one piece of a token: a mixture of pieces of two tokens."
        : "Each head mixes its own values, and again has one row for each token.",
    ),
    mergeByView
      ? stepText("(no transpose)", split, "The transpose is left out: the heads still come first.", true)
      : stepText(
          "out = out.transpose(1, 2)",
          ["batch", seq, "heads", "d_head"],
          "The axis of the tokens comes first again, and a token’s results from all heads are side by side.",
        ),
    stepText(
      `out = out.reshape(batch, ${seq}, d_model)`,
      rows,
      mergeByView
        ? splitByView
          ? "Every letter is back in its row, as if nothing had happened. But the numbers are wrong, because no " +
            "head ever saw the whole sentence."
          : "The shape is right, but row a contains the results of head 0 for a and for b, and no result of head 1 " +
            "for a."
        : splitByView
          ? "Row a contains outputs for pieces of a and of c."
          : "The pieces of a token become one row. The transpose has left them scattered in storage, so view would " +
            "raise an error; reshape copies them.",
      mergeByView,
    ),
    stepText(
      "y = out_proj(out)",
      rows,
      splitByView || mergeByView
        ? "The last layer mixes the features of each row. No shape has shown that anything is wrong."
        : "The last layer mixes the results of the heads. Until this layer, the heads were computed separately.",
    ),
  ];
}
