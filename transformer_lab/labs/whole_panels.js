// The content of the side panel: the computation of the open part.

import { clamp, dot, range, sum } from "./maths.js";
import { EPS, isOn } from "./whole_maths.js";
import { axesText, placeOf, share } from "./whole_words.js";
import { fixed, quoted } from "./words.js";

/**
 * The data of a panel.
 * @typedef {object} State
 * @property {import("./whole_maths.js").Model} model
 * @property {import("./whole_maths.js").Trace} trace
 * @property {string} id The open place.
 * @property {Record<string, string[]>} names The input tokens of each side.
 * @property {Record<string, number[]>} ids
 * @property {Record<string, string>} says Sentences of the panels.
 * @property {number} count The number of answer tokens that the model reads.
 * @property {{ tokens: number[] }} answer
 * @property {number[]} at The selected head, row and column.
 * @property {(head: number, row: number, column: number) => void} choose
 * @property {import("./whole_learning.js").Sampling} sampling
 * @property {(row: number, column: number) => void} [pick] Selects a cell of the current head.
 */
// The elements of a panel, and a description.
/** @typedef {{ parts: import("./whole_tables.js").Part[], text: string }} View */

const num = (x) => fixed(x);
const small = (x) => (x > 0 && x < 0.005 ? "< 0.01" : num(x));
const factor = (x) => (x < 0 ? `(${num(x)})` : num(x));
const clip = (x, n) => clamp(x, 0, n - 1);
const rowOf = ({ shape, values }, i) => range(shape.at(-1), i * shape.at(-1)).map((k) => values[k]);
// The cells of a matrix, or of one matrix of a cube.
const cells = ({ shape, values }, layer = 0) => {
  const [rows, columns] = shape.slice(-2);
  return { shape: [rows, columns], value: (i, j) => values[(layer * rows + i) * columns + j] };
};
// Rows as a table.
const asTable = (rows) => ({ shape: [rows.length, rows[0].length], value: (i, j) => rows[i][j] });
const weightOf = (model, name, row) => rowOf(model.parameters[`${name}.weight`], row);

// The name of the tensor that leaves a block: the sum in pre-norm, the norm in post-norm.
const endOf = (model) => (model.normFirst ? "sum" : "norm");

/** @type {Record<string, (state: State) => View>} */
const VIEWS = {
  // An arrow: its tensor.
  flow({ trace, id, names, at, model, pick }) {
    const tensor = trace[id];
    const { side } = placeOf(id);
    const [i, j] = [clip(at[1], tensor.shape[0]), clip(at[2], tensor.shape[1])];
    const weights = id.endsWith("probabilities");
    const x = cells(tensor).value(i, j);
    const column = tensor.axes[1] === "vocab" ? `the word ${quoted(model.target[j])}` : `feature ${j}`;
    const text = `Shape ${axesText(tensor)}. Row ${quoted(names[side][i])}, ${column}: ${weights ? share(x) : num(x)}`;
    return {
      parts: [{ ...cells(tensor), names: names[side], at: [i, j], weights, pick }, text],
      text,
    };
  },

  // Tokens and their ids.
  tokens({ id, names, ids }) {
    const { side } = placeOf(id);
    const bars = names[side].map((name, i) => ({ name, texts: [`token ${ids[side][i]}, at position ${i}`] }));
    return { parts: [{ bars }], text: `${bars.map(({ name, texts }) => `${quoted(name)}: ${texts}`).join("; ")}.` };
  },

  // The embedding: the scaled row of the table, plus the position vector.
  embed({ trace, id, names, at, model, pick }) {
    const { side } = placeOf(id);
    const [t, j] = [clip(at[1], names[side].length), clip(at[2], model.width)];
    const root = Math.sqrt(model.width);
    const kinds = ["embedding", "positions", "input"];
    const [vector, position, total] = kinds.map((kind) => rowOf(trace[`${side}.${kind}`], t));
    const row = vector.map((x) => x / root);
    const table = {
      ...asTable([row, vector, position, total]),
      names: ["learned row", `· √${model.width}`, `position ${t}`, "sum"],
      at: [3, j],
      pick: (_, column) => pick(t, column),
    };
    const sumText = isOn(model, "positions")
      ? `${num(vector[j])} + ${factor(position[j])} = ${num(total[j])}`
      : "the position is switched off";
    const scaleText = `${num(row[j])} · √${model.width} = ${num(vector[j])}`;
    const text = `Feature ${j} of ${quoted(names[side][t])}: ${scaleText}; ${sumText}`;
    return { parts: [table, text], text };
  },

  // The positional encoding.
  place({ trace, id, names, at, model, pick }) {
    const { side } = placeOf(id);
    const [i, j] = [clip(at[1], names[side].length), clip(at[2], model.width)];
    const table = cells(trace[`${side}.positions`]);
    const wave = j % 2 ? "cos" : "sin";
    const angle = `${i} / 10000^(${j - (j % 2)}/${model.width})`;
    const text = `Position ${i}, feature ${j}: ${wave}(${angle}) = ${num(table.value(i, j))}`;
    const rows = names[side].map((name, t) => `${t}: ${name}`);
    return { parts: [{ ...table, names: rows, at: [i, j], pick }, text], text };
  },

  // Attention: the weights of all heads, and the computation for one query of one head.
  self({ trace, id, ids, count, answer, names, at, model, choose, says }) {
    const { side, kind } = placeOf(id);
    const get = (part) => trace[`${id}.${part}`];
    const queries = names[side];
    const keys = kind === "cross" ? names.encoder : queries;
    const [h, i] = [clip(at[0], model.nHeads), clip(at[1], queries.length)];
    const shares = range(keys.length).map((k) => cells(get("weights"), h).value(i, k));
    // By default, the key with the largest weight is selected.
    const j = at[2] < 0 ? shares.indexOf(Math.max(...shares)) : clip(at[2], keys.length);
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
    const isSeen = cells(get("mask")).value;
    const bars = keys.map((name, k) => ({
      name,
      size: weight(i, k),
      texts: isSeen(i, k) ? [num(score(i, k)), small(weight(i, k))] : ["masked: −∞", "0"],
      on: k === j,
    }));
    const width = get("query").shape[2];
    const [q, k] = [rowOf(get("query"), h * queries.length + i), rowOf(get("key"), h * keys.length + j)];
    const prods = q.map((x, f) => `${num(x)}·${factor(k[f])}`);
    const terms = (width > 8 ? [...prods.slice(0, 3), "…", prods.at(-1)] : prods).join(" + ");
    const product = isOn(model, "scale")
      ? `Score of ${quoted(keys[j])}: q·k / √d_head = (${terms}) / √${width} = ` +
        `${num(dot(q, k))} / √${width} = ${num(score(i, j))}`
      : `Score of ${quoted(keys[j])}, without the division: q·k = ${terms} = ${num(score(i, j))}`;
    const seen = range(keys.length).filter((key) => isSeen(i, key));
    const exponent = (key) => fixed(score(i, key), 3); // powers of the numbers shown, as on a calculator
    const power = (key) => Math.exp(Number(exponent(key).replace("−", "-")));
    const total = sum(seen.map(power));
    const softmaxed = isSeen(i, j)
      ? `Its weight is e^${exponent(j)} ≈ ${num(power(j))}, divided by the sum of e^score over all ` +
        `visible keys, ${num(total)}: ${small(weight(i, j))}`
      : says.hidden;
    const values = {
      ...asTable([
        ...range(keys.length).map((key) => rowOf(get("value"), h * keys.length + key)),
        rowOf(get("heads"), h * queries.length + i),
      ]),
      names: [...keys.map((name, key) => `${small(weight(i, key))} · ${name}`), "= mixture"],
    };
    // A row of the decoder has the name of the word that it reads; the word that it writes is the next word.
    const next = side === "decoder" && model.target[answer.tokens[i + 1 + count - ids.decoder.length]];
    const to = next ? `, to write ${quoted(next)} after ${quoted(queries[i])},` : `: ${quoted(queries[i])}`;
    const looks = `ead ${h + 1}${to} looks at`;
    const text = `, h${looks} ${quoted(keys[j])} (${small(weight(i, j))})`;
    const pick = (key) => choose(h, i, key);
    return {
      parts: [
        heads,
        `H${looks}`,
        { bars, pick, heads: ["score", "weight"] },
        product,
        softmaxed,
        isOn(model, `${id}.${h}`) ? says.mixture : says.off,
        values,
      ],
      text,
    };
  },

  // Add & norm: the input, the block's output, their sum, and the result of the norm.
  add({ trace, id, names, at, model, pick }) {
    const { side, layer, of } = placeOf(id);
    const [t, j] = [clip(at[1], names[side].length), clip(at[2], model.width)];
    const get = (kind) => rowOf(trace[`${side}.${layer}.${of}.${kind}`], t);
    const [out, total, normed] = ["output", "sum", "norm"].map(get);
    const input = total.map((x, f) => x - out[f]);
    const raw = model.normFirst ? input : total;
    const mean = sum(raw) / raw.length;
    // As in layer norm, eps avoids a division by zero.
    const std = Math.sqrt(sum(raw.map((x) => (x - mean) ** 2)) / raw.length + EPS);
    const order = model.normFirst ? [0, 3, 1, 2] : [0, 1, 2, 3];
    const table = {
      ...asTable(order.map((i) => [input, out, total, normed][i])),
      names: order.map((i) => ["input", "result", "sum", "norm"][i]),
      at: [3, j],
      pick: (_, column) => pick(t, column),
    };
    const third = side === "decoder" && model.family === "both" ? 3 : 2;
    const name = `${side}.layers.${layer}.norm${{ self: 1, cross: 2, feed_forward: third }[of]}`;
    const weight = model.parameters[`${name}.weight`].values[j];
    const bias = model.parameters[`${name}.bias`]?.values[j] ?? 0;
    const sums = `Feature ${j} of ${quoted(names[side][t])}: ${num(input[j])} + ${factor(out[j])} = ${num(total[j])}`;
    const parts = [
      table,
      sums,
      `${model.normFirst ? "The input" : "The sum"}: mean ${num(mean)}, standard deviation ${num(std)}, ` +
        `over ${model.width} features`,
      `Norm: (${num(raw[j])} − ${factor(mean)}) / ${num(std)} = ${num((raw[j] - mean) / std)}, ` +
        `times ${num(weight)}, plus ${factor(bias)}: ${num(normed[j])}`,
    ];
    return { parts, text: `${sums}; normalized ${num(normed[j])}` };
  },

  // The feed-forward block: its active hidden units, the computation of one unit, and the output.
  feed_forward({ trace, id, names, at, model, pick, says }) {
    const { side, layer } = placeOf(id);
    const [hidden, output] = [trace[`${id}.hidden`], trace[`${id}.output`]];
    const units = hidden.shape[1];
    const [i, j] = [clip(at[1], names[side].length), clip(at[2], units)];
    const before = ["cross", "self"].map((part) => trace[`${side}.${layer}.${part}.${endOf(model)}`]).find(Boolean);
    const input = model.normFirst ? trace[`${id}.norm`] : before;
    const name = `${side}.layers.${layer}.feed_forward.linear1`;
    const bias = model.parameters[`${name}.bias`]?.values[j] ?? 0;
    const x = dot(rowOf(input, i), weightOf(model, name, j)) + bias;
    const active = rowOf(hidden, i).filter((x) => x > 0).length;
    const text =
      `${active} of ${units} hidden units are active for ${quoted(names[side][i])}. Unit ${j}: ${model.width} ` +
      `products and a bias sum to ${num(x)}; ${model.activation === "relu" ? "ReLU" : "GELU"} turns this into ` +
      `${num(cells(hidden).value(i, j))}`;
    const parts = [
      { ...cells(hidden), names: names[side], at: [i, j], pick },
      text,
      says.added,
      { ...cells(output), names: names[side] },
    ];
    return { parts, text };
  },

  // Logits and probabilities of the last row: the five most likely words.
  next({ trace, at, model, id, pick, sampling: { temperature, topK } }) {
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
      texts: [linear ? num(logits[i]) : share(probabilities[i])],
      on: i === word,
    }));
    const row = last(trace["decoder.last"] ?? trace[`decoder.${model.nLayers - 1}.feed_forward.${endOf(model)}`]);
    const learned = weightOf(model, "output", word);
    const table = {
      ...asTable([row, learned, row.map((x, f) => x * learned[f])]),
      names: ["last row", "its weights", "products"],
    };
    const name = quoted(model.target[word]);
    const power = (temperature || 1) === 1 ? "e^logit" : `e^(logit / ${temperature})`;
    const parts = [
      { bars, pick: (i) => pick(at[1], words[i]), heads: [linear ? "logit" : "probability"] },
      `The decoder’s last row times the weights of ${name}: the products add up to the logit, ` +
        `${num(logits[word])}`,
      table,
      `Its probability is ${power}, divided by the sum of these powers over ` +
        `${topK ? `the ${topK} likeliest words` : `all ${logits.length} words`}: ${share(probabilities[word])}`,
    ];
    const [first] = words;
    return { parts, text: `Next: ${quoted(model.target[first])}, ${share(probabilities[first])}` };
  },
};
const ALIAS = { cross: "self", linear: "next", softmax: "next" };

// The view of a place. An arrow's view shows the tensor that the arrow carries.
/** @type {(state: State) => View} */
export const viewOf = (state) => {
  const { kind } = placeOf(state.id);
  const pick = (row, column) => state.choose(state.at[0], row, column);
  return (VIEWS[ALIAS[kind] ?? kind] ?? VIEWS.flow)({ ...state, pick });
};

// The initial column when a place is opened. In attention, the column is −1, which stands for the largest weight.
/** @type {(id: string, column: number) => number} */
export const startCol = (id, column) => (/(self|cross)$/.test(id) ? -1 : column);

// Whether the view shows a single token.
/** @type {(id: string) => boolean} */
export const isOneToken = (id) => ["embed", "add", "feed_forward", "self", "cross"].includes(placeOf(id).kind);
