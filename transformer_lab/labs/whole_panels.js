// What stands beside the drawing: the numbers of the place that is open, worked out.

import { clamp, dot, range, sum } from "./maths.js";
import { axesText, placeOf, share } from "./whole_words.js";
import { places, quoted } from "./words.js";

/**
 * All that a panel shows.
 * @typedef {object} State
 * @property {any} model
 * @property {import("./whole_maths.js").Trace} trace
 * @property {string} id The place that is open.
 * @property {Record<string, string[]>} names The tokens that go in, on each side.
 * @property {Record<string, number[]>} ids
 * @property {number[]} at Head, row and column that are pointed at.
 * @property {(head: number, row: number, column: number) => void} choose
 */
// What is drawn, and what is said of it.
/** @typedef {{ parts: import("./whole_tables.js").Part[], said: string }} View */

const num = (x) => places(x, Math.abs(x) < 9.995 ? 2 : 1);
const factor = (x) => (x < 0 ? `(${num(x)})` : num(x));
const clip = (x, n) => clamp(x, 0, n - 1);
const rowOf = ({ shape, values }, i) => range(shape.at(-1), i * shape.at(-1)).map((k) => values[k]);
// The cells of a matrix, or of one layer of a cube.
const cells = ({ shape, values }, layer = 0) => {
  const [rows, columns] = shape.slice(-2);
  return { shape: [rows, columns], value: (i, j) => values[(layer * rows + i) * columns + j] };
};
// Rows that belong together, as a table.
const stacked = (rows) => ({ shape: [rows.length, rows[0].length], value: (i, j) => rows[i][j] });
const weightOf = (model, name, row) => rowOf(model.parameters[`${name}.weight`], row);

// Where the result of a part leaves it.
const endOf = (model) => (model.normFirst ? "sum" : "norm");

/** @type {Record<string, (state: State) => View>} */
const VIEWS = {
  // A tensor that flows in an arrow.
  flow({ trace, id, names, at, model, choose }) {
    const tensor = trace[id];
    const { side } = placeOf(id);
    const [i, j] = [clip(at[1], tensor.shape[0]), clip(at[2], tensor.shape[1])];
    const weights = id.endsWith("probabilities");
    const x = cells(tensor).value(i, j);
    const column = tensor.axes[1] === "vocab" ? `the word ${quoted(model.target[j])}` : `feature ${j}`;
    const said = `Shape ${axesText(tensor)}. Row ${quoted(names[side][i])}, ${column}: ${weights ? share(x) : num(x)}`;
    const pick = (row, column) => choose(at[0], row, column);
    return {
      parts: [{ ...cells(tensor), label: "Tensor", names: names[side], at: [i, j], weights, pick }, said],
      said,
    };
  },

  // Tokens and their numbers.
  tokens({ id, names, ids }) {
    const { side } = placeOf(id);
    const bars = names[side].map((name, i) => ({ name, text: `token ${ids[side][i]}, at position ${i}` }));
    return { parts: [{ bars }], said: `${bars.map(({ name, text }) => `${quoted(name)}: ${text}`).join("; ")}.` };
  },

  // The embedding: a row of the table, scaled, and the position added.
  embed({ trace, id, names, at, model, choose }) {
    const { side } = placeOf(id);
    const [t, j] = [clip(at[1], names[side].length), clip(at[2], model.width)];
    const root = Math.sqrt(model.width);
    const kinds = ["embedding", "positions", "input"];
    const [vector, position, both] = kinds.map((kind) => rowOf(trace[`${side}.${kind}`], t));
    const row = vector.map((x) => x / root);
    const table = {
      ...stacked([row, vector, position, both]),
      label: "Embedding plus position",
      names: ["learned row", `· √${model.width}`, `position ${t}`, "sum"],
      at: [3, j],
      pick: (_, column) => choose(at[0], t, column),
    };
    const said =
      `Feature ${j} of ${quoted(names[side][t])}: ${num(row[j])} · √${model.width} = ${num(vector[j])}; ` +
      `${num(vector[j])} + ${factor(position[j])} = ${num(both[j])}`;
    return { parts: [table, said], said };
  },

  // The waves of the positions.
  place({ trace, id, names, at, model, choose }) {
    const { side } = placeOf(id);
    const [i, j] = [clip(at[1], names[side].length), clip(at[2], model.width)];
    const table = cells(trace[`${side}.positions`]);
    const wave = j % 2 ? "cos" : "sin";
    const angle = `${i} / 10000^(${j - (j % 2)}/${model.width})`;
    const said = `Position ${i}, feature ${j}: ${wave}(${angle}) = ${num(table.value(i, j))}`;
    const rows = names[side].map((name, t) => `${t}: ${name}`);
    const pick = (row, column) => choose(at[0], row, column);
    return { parts: [{ ...table, label: "Positions", names: rows, at: [i, j], pick }, said], said };
  },

  // Attention: the weights of every head; for one query of one head all that leads to its row, and what it takes home.
  self({ trace, id, names, at, model, choose }) {
    const { side, kind } = placeOf(id);
    const get = (part) => trace[`${id}.${part}`];
    const queries = names[side];
    const keys = kind === "cross" ? names.encoder : queries;
    const [h, i, j] = [clip(at[0], model.nHeads), clip(at[1], queries.length), clip(at[2], keys.length)];
    const heads = range(model.nHeads).map((head) => ({
      ...cells(get("weights"), head),
      label: `Weights of head ${head + 1}`,
      names: head ? [] : queries,
      tops: keys,
      at: [i, j],
      weights: true,
      on: head === h,
      pick: (row, column) => choose(head, row, column),
    }));
    const [score, weight] = ["scores", "weights"].map((part) => cells(get(part), h).value);
    const sees = cells(get("mask")).value;
    const bars = keys.map((name, k) => ({
      name,
      size: weight(i, k),
      text: sees(i, k) ? `score ${num(score(i, k))}, weight ${places(weight(i, k))}` : "masked: −∞, weight 0",
      on: k === j,
    }));
    const width = get("query").shape[2];
    const [q, k] = [rowOf(get("query"), h * queries.length + i), rowOf(get("key"), h * keys.length + j)];
    const all = q.map((x, f) => `${num(x)}·${factor(k[f])}`);
    const terms = (width > 8 ? [...all.slice(0, 3), "…", all.at(-1)] : all).join(" + ");
    const product =
      `Score of ${quoted(keys[j])}: q·k / √d_head = (${terms}) / √${width} = ` +
      `${num(dot(q, k))} / ${num(Math.sqrt(width))} = ${num(score(i, j))}`;
    const seen = range(keys.length).filter((key) => sees(i, key));
    const whole = sum(seen.map((key) => Math.exp(score(i, key))));
    const softmaxed = sees(i, j)
      ? `Its weight: e^${num(score(i, j))} / sum over ${seen.length} = ` +
        `${places(Math.exp(score(i, j)), 2)} / ${places(whole, 2)} = ${places(weight(i, j))}`
      : "The mask hides it: its score becomes −∞, and e^−∞ = 0.";
    const values = {
      ...stacked([
        ...range(keys.length).map((key) => rowOf(get("value"), h * keys.length + key)),
        rowOf(get("heads"), h * queries.length + i),
      ]),
      label: "Values",
      names: [...keys.map((name, key) => `${places(weight(i, key))} · ${name}`), "= takes home"],
    };
    const best = seen.reduce((a, b) => (weight(i, b) > weight(i, a) ? b : a));
    const said =
      `Head ${h + 1}: ${quoted(queries[i])} gives ${quoted(keys[j])} the weight ${places(weight(i, j))}; most goes ` +
      `to ${quoted(keys[best])}, ${places(weight(i, best))}. Weights have shape ${axesText(get("weights"))}`;
    const asks = `Head ${h + 1}: ${quoted(queries[i])} asks`;
    const pick = (key) => choose(h, i, key);
    return { parts: [heads, asks, { bars, pick }, product, softmaxed, "Values, by their weights:", values], said };
  },

  // Add & norm: what came in, what the block made of it, their sum, and the sum normalized.
  add({ trace, id, names, at, model, choose }) {
    const { side, layer, of } = placeOf(id);
    const [t, j] = [clip(at[1], names[side].length), clip(at[2], model.width)];
    const get = (kind) => rowOf(trace[`${side}.${layer}.${of}.${kind}`], t);
    const [made, whole, normed] = ["output", "sum", "norm"].map(get);
    const came = whole.map((x, f) => x - made[f]);
    const raw = model.normFirst ? came : whole;
    const mean = sum(raw) / raw.length;
    // As layer norm does it: the small number keeps it from dividing by zero.
    const deviation = Math.sqrt(sum(raw.map((x) => (x - mean) ** 2)) / raw.length + 1e-5);
    const rows = model.normFirst ? [came, normed, made, whole] : [came, made, whole, normed];
    const table = {
      ...stacked(rows),
      label: "Add and norm",
      names: model.normFirst ? ["came in", "its norm", "made of it", "sum"] : ["came in", "made of it", "sum", "norm"],
      at: [3, j],
      pick: (_, column) => choose(at[0], t, column),
    };
    const third = side === "decoder" && model.family === "both" ? 3 : 2;
    const name = `${side}.layers.${layer}.norm${{ self: 1, cross: 2, feed_forward: third }[of]}`;
    const weight = model.parameters[`${name}.weight`].values[j];
    const bias = model.parameters[`${name}.bias`]?.values[j] ?? 0;
    const sums = `Feature ${j} of ${quoted(names[side][t])}: ${num(came[j])} + ${factor(made[j])} = ${num(whole[j])}`;
    const parts = [
      table,
      sums,
      `${model.normFirst ? "What came in" : "The sum"}: mean ${num(mean)}, standard deviation ${num(deviation)}, ` +
        `over ${model.width} features`,
      `Norm: (${num(raw[j])} − ${factor(mean)}) / ${num(deviation)} = ${num((raw[j] - mean) / deviation)}, ` +
        `times ${num(weight)}, plus ${factor(bias)}: ${num(normed[j])}`,
    ];
    return { parts, said: `${sums}; normalized ${num(normed[j])}` };
  },

  // The feed-forward block: which hidden units are on, how one comes to its number, and what they add.
  feed_forward({ trace, id, names, at, model, choose }) {
    const { side, layer } = placeOf(id);
    const [hidden, output] = [trace[`${id}.hidden`], trace[`${id}.output`]];
    const [i, j] = [clip(at[1], names[side].length), clip(at[2], model.dFf)];
    const pick = (row, column) => choose(at[0], row, column);
    const before = ["cross", "self"].map((part) => trace[`${side}.${layer}.${part}.${endOf(model)}`]).find(Boolean);
    const came = model.normFirst ? trace[`${id}.norm`] : before;
    const name = `${side}.layers.${layer}.feed_forward.linear1`;
    const bias = model.parameters[`${name}.bias`]?.values[j] ?? 0;
    const x = dot(rowOf(came, i), weightOf(model, name, j)) + bias;
    const on = rowOf(hidden, i).filter((x) => x > 0).length;
    const said =
      `${on} of ${model.dFf} hidden units are on for ${quoted(names[side][i])}. Unit ${j}: ${model.width} products ` +
      `and a bias sum to ${num(x)}; ${model.activation === "relu" ? "ReLU" : "GELU"} makes it ` +
      `${num(cells(hidden).value(i, j))}`;
    const parts = [
      { ...cells(hidden), label: "Hidden units", names: names[side], at: [i, j], pick },
      said,
      "What they add to each token:",
      { ...cells(output), label: "What the block adds", names: names[side] },
    ];
    return { parts, said };
  },

  // The last row to logits, and logits to probabilities: the five likeliest words.
  next({ trace, at, model, id, choose }) {
    const last = (tensor) => rowOf(tensor, tensor.shape[0] - 1);
    const [logits, probabilities] = ["logits", "probabilities"].map((kind) => last(trace[`decoder.${kind}`]));
    const words = range(logits.length)
      .sort((a, b) => logits[b] - logits[a])
      .slice(0, 5);
    const word = words.includes(at[2]) ? at[2] : words[0];
    const linear = id.endsWith("linear");
    const bars = words.map((i) => ({
      name: model.target[i],
      size: probabilities[i],
      text: linear ? `logit ${num(logits[i])}` : share(probabilities[i]),
      on: i === word,
    }));
    const row = last(trace["decoder.last"] ?? trace[`decoder.${model.nLayers - 1}.feed_forward.${endOf(model)}`]);
    const learned = weightOf(model, "output", word);
    const table = {
      ...stacked([row, learned, row.map((x, f) => x * learned[f])]),
      label: "Products",
      names: ["last row", "the word’s", "products"],
    };
    const name = quoted(model.target[word]);
    const parts = [
      { bars, pick: (i) => choose(at[0], at[1], words[i]) },
      table,
      `${name}: the ${model.width} products sum to its logit, ${num(logits[word])}`,
      `Softmax: e^${num(logits[word])} / sum over ${logits.length} words = ${share(probabilities[word])}`,
    ];
    return {
      parts,
      said: `Next: ${bars
        .slice(0, 3)
        .map(({ name }, i) => `${quoted(name)} ${share(probabilities[words[i]])}`)
        .join(", ")}`,
    };
  },
};
const SAME = { cross: "self", linear: "next", softmax: "next" };

// How a place is shown; arrows show their tensor.
/** @type {(state: State) => View} */
export const viewOf = (state) => {
  const { kind } = placeOf(state.id);
  return (VIEWS[SAME[kind] ?? kind] ?? VIEWS.flow)(state);
};

// Whether one of its tokens is looked at by itself.
/** @type {(id: string) => boolean} */
export const isOfOneToken = (id) => ["embed", "add", "feed_forward", "self", "cross"].includes(placeOf(id).kind);
