// The forward pass of the whole model, with all intermediate tensors, as in transformer_lab/transformer.py.

import { range, softmax } from "./maths.js";

/**
 * A serialized model: options, vocabularies, and weights in base64.
 * @typedef {object} Stored
 * @property {"both" | "decoder"} family A Transformer, or a decoder-only LanguageModel.
 * @property {number} nHeads
 * @property {number} nLayers
 * @property {boolean} normFirst
 * @property {"relu" | "gelu"} activation
 * @property {string[]} source The input vocabulary.
 * @property {string[]} target The output vocabulary. In a decoder-only model, it begins with the input vocabulary.
 * @property {number | null} bos The first token of the answer. In a decoder-only model, it follows the prompt, or is
 * null.
 * @property {number | null} eos The token that ends the answer, or null.
 * @property {[string, number[]][]} layout Names and shapes of the weights, in order.
 * @property {"float16" | "float32"} dtype
 * @property {string} weights
 */
/**
 * @typedef {{ shape: number[], axes: string[], values: ArrayLike<number> }} Tensor The values are flat, in row-major
 * order.
 */
/** @typedef {Record<string, Tensor>} Trace All tensors, by name: "decoder.0.self.weights". */
/** @typedef {Record<string, { shape: number[], values: ArrayLike<number> }>} Parameters */
/**
 * The parts that are switched off: "mask", "positions", "residual", "scale" (the division by √d), "cross" (the output
 * of cross-attention is 0), or one head by its id, "decoder.0.self.2" (its output is 0).
 * @typedef {string[]} Switches
 */
/** @typedef {Stored & { parameters: Parameters, width: number, off: Switches }} Model `width` is d_model. */

export const EPS = 1e-5; // the eps of all norms, as in transformer_lab/normalization.py

/** @type {(stored: Stored) => Model} */
export function openModel(stored) {
  const bytes = Uint8Array.from(atob(stored.weights), (letter) => letter.charCodeAt(0)).buffer;
  const numbers =
    stored.dtype === "float16" ? Float32Array.from(new Uint16Array(bytes), toFloat) : new Float32Array(bytes);
  const parameters = {};
  let start = 0;
  for (const [name, shape] of stored.layout) {
    const end = start + shape.reduce((a, b) => a * b, 1);
    parameters[name] = { shape, values: numbers.subarray(start, end) };
    start = end;
  }
  return { ...stored, parameters, width: parameters["output.weight"].shape[1], off: [] };
}

// Returns the model with parts switched off; both models share the weights.
/** @type {(model: Model, off: Switches) => Model} */
export const switchOff = (model, off) => ({ ...model, off });

/** @type {(model: Model, part: string) => boolean} */
export const isOn = (model, part) => !model.off.includes(part);

// Decodes float16: one bit for the sign, five bits for the exponent, and ten bits for the fraction.
/** @type {(bits: number) => number} */
function toFloat(bits) {
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

// Returns ids, such as [3, 4, 2] for "342", or an error. The text is split into characters if every token is one
// character, and otherwise into words.
/**
 * @type {(text: string, tokens: string[], most?: number, says?: Record<string, string>) =>
 *   import("./words.js").Parsed<number[]>}
 */
export function tokenize(text, tokens, most = Infinity, says = {}) {
  const fail = (kind, text) => ({ error: says[kind]?.replace("~", text) ?? kind });
  const letters = tokens.every((token) => [...token].length === 1);
  const parts = letters ? [...text].filter((part) => part.trim() || tokens.includes(part)) : text.match(/\S+/g) || [];
  const unknown = parts.find((part) => !tokens.includes(part));
  if (unknown !== undefined) return fail("unknown", unknown);
  if (!parts.length) return fail("empty", "");
  if (parts.length > most) return fail("many", parts.length);
  return { value: parts.map((part) => tokens.indexOf(part)), text: parts.join(letters ? "" : " ") };
}

// Returns all tensors of the encoder.
/** @type {(model: Model, source: number[]) => Trace} */
export function encode(model, source) {
  const trace = {};
  const x = stack(model, "encoder", trace, embed(model, "encoder", "src_embedding", source, trace));
  trace["encoder.memory"] = x;
  return trace;
}

// Returns all tensors of the model after these tokens; the last row of probabilities belongs to the next token.
/** @type {(model: Model, source: number[], written: number[], encoded?: Trace) => Trace} */
export function decode(model, source, written, encoded = model.family === "both" ? encode(model, source) : {}) {
  const trace = { ...encoded };
  const both = model.family === "both";
  const given = [...(both ? [] : source), ...(model.bos === null ? [] : [model.bos]), ...written];
  const x = embed(model, "decoder", both ? "tgt_embedding" : "embedding", given, trace);
  const logits = linear(model, "output", stack(model, "decoder", trace, x, trace["encoder.memory"]), "vocab");
  trace["decoder.logits"] = logits;
  trace["decoder.probabilities"] = { ...logits, values: byRow(logits, softmax) };
  return trace;
}

/** @typedef {{ token: number, probabilities: number[] }} Chosen A token, and the probabilities of all tokens. */
/** @type {(logits: number[]) => Chosen} */
function greedy(logits) {
  const probabilities = softmax(logits);
  return { token: probabilities.indexOf(Math.max(...probabilities)), probabilities };
}

// Decodes until eos or `most` tokens: greedily, unless `pick` chooses each token from the logits.
/**
 * @type {(model: Model, source: number[], most: number, pick?: (logits: number[]) => Chosen) =>
 *   { tokens: number[], probabilities: number[] }}
 */
export function generate(model, source, most, pick = greedy) {
  const tokens = [];
  const probabilities = [];
  const encoded = model.family === "both" ? encode(model, source) : {};
  while (tokens.length < most) {
    const chosen = pick(rowsOf(decode(model, source, tokens, encoded)["decoder.logits"]).at(-1));
    tokens.push(chosen.token);
    probabilities.push(chosen.probabilities[chosen.token]);
    if (chosen.token === model.eos) break;
  }
  return { tokens, probabilities };
}

function embed(model, side, name, tokens, trace) {
  const { shape, values } = model.parameters[`${name}.weight`];
  const width = shape[1];
  const axes = ["seq", "d_model"];
  const table = (value) => ({
    shape: [tokens.length, width],
    axes,
    values: tokens.flatMap((token, place) => range(width).map((feature) => value(token, place, feature))),
  });
  const embedding = table((token, _, feature) => values[token * width + feature] * Math.sqrt(width));
  const positions = table((_, place, feature) => position(place, feature, width));
  trace[`${side}.embedding`] = embedding;
  trace[`${side}.positions`] = positions;
  trace[`${side}.input`] = isOn(model, "positions") ? add(embedding, positions) : embedding;
  return trace[`${side}.input`];
}

// Sine and cosine alternate; each pair has a lower frequency than the pair before.
/** @type {(place: number, feature: number, width: number) => number} */
function position(place, feature, width) {
  const angle = place / 10000 ** ((feature - (feature % 2)) / width);
  return feature % 2 ? Math.cos(angle) : Math.sin(angle);
}

function stack(model, side, trace, x, memory = null) {
  for (const layer of range(model.nLayers)) {
    const name = `${side}.layers.${layer}`;
    const id = `${side}.${layer}`;
    const attend = (kind, x, memory) =>
      attention(model, `${name}.${kind}_attention`, trace, `${id}.${kind}`, x, memory, side === "decoder");
    x = residual(model, `${name}.norm1`, trace, `${id}.self`, x, (x) => attend("self", x, null));
    if (memory) x = residual(model, `${name}.norm2`, trace, `${id}.cross`, x, (x) => attend("cross", x, memory));
    const last = `${name}.norm${memory ? 3 : 2}`;
    x = residual(model, last, trace, `${id}.feed_forward`, x, (x) =>
      feedForward(model, `${name}.feed_forward`, trace, `${id}.feed_forward`, x),
    );
  }
  if (!model.parameters[`${side}.norm.weight`]) return x;
  trace[`${side}.last`] = norm(model, `${side}.norm`, x);
  return trace[`${side}.last`];
}

// Adds part(x) to x, and applies a norm before the part (pre-norm) or after the sum (post-norm).
function residual(model, name, trace, id, x, part) {
  const normed = (x) => {
    trace[`${id}.norm`] = norm(model, name, x);
    return trace[`${id}.norm`];
  };
  const output = part(model.normFirst ? normed(x) : x);
  const isCut = id.endsWith(".cross") && !isOn(model, "cross");
  trace[`${id}.output`] = isCut ? { ...output, values: output.values.map(() => 0) } : output;
  trace[`${id}.sum`] = isOn(model, "residual") ? add(x, trace[`${id}.output`]) : trace[`${id}.output`];
  return model.normFirst ? trace[`${id}.sum`] : normed(trace[`${id}.sum`]);
}

function attention(model, name, trace, id, x, memory, causal) {
  const [seq, width] = x.shape;
  const kLen = (memory || x).shape[0];
  const heads = model.nHeads;
  const dHead = width / heads;
  const [qAxis, kAxis] = memory ? ["q_len", "k_len"] : ["seq", "seq"];
  const split = (projection, from, axis) => {
    const { values } = linear(model, `${name}.${projection}`, from, "d_model");
    const length = from.shape[0];
    const at = (head, place, feature) => values[place * width + head * dHead + feature];
    return cube(["heads", axis, "d_head"], [heads, length, dHead], at);
  };
  const query = split("q_proj", x, qAxis);
  const key = split("k_proj", memory || x, kAxis);
  const value = split("v_proj", memory || x, kAxis);
  const scores = cube(["heads", "q_len", "k_len"], [heads, seq, kLen], (head, i, j) => {
    let product = 0;
    for (let f = 0; f < dHead; f++) {
      product += query.values[(head * seq + i) * dHead + f] * key.values[(head * kLen + j) * dHead + f];
    }
    return isOn(model, "scale") ? product / Math.sqrt(dHead) : product;
  });
  const isSeen = (i, j) => memory || !causal || !isOn(model, "mask") || j <= i;
  const mask = range(seq).flatMap((i) => range(kLen).map((j) => (isSeen(i, j) ? 1 : 0)));
  const hidden = scores.values.map((score, at) => (mask[at % mask.length] ? score : -Infinity));
  const weights = { ...scores, values: byRow({ ...scores, values: hidden }, softmax) };
  const output = cube(["heads", "q_len", "d_head"], [heads, seq, dHead], (head, i, f) => {
    let blend = 0;
    if (!isOn(model, `${id}.${head}`)) return blend;
    for (let j = 0; j < kLen; j++) {
      blend += weights.values[(head * seq + i) * kLen + j] * value.values[(head * kLen + j) * dHead + f];
    }
    return blend;
  });
  const merged = range(seq).flatMap((i) =>
    range(width).map((f) => output.values[(Math.floor(f / dHead) * seq + i) * dHead + (f % dHead)]),
  );
  const tensors = { query, key, value, scores, weights, heads: output };
  for (const [part, tensor] of Object.entries(tensors)) trace[`${id}.${part}`] = tensor;
  trace[`${id}.mask`] = { shape: [seq, kLen], axes: ["q_len", "k_len"], values: mask };
  return linear(model, `${name}.out_proj`, { ...x, values: merged }, "d_model");
}

function feedForward(model, name, trace, id, x) {
  const inner = linear(model, `${name}.linear1`, x, "d_ff");
  const activate = model.activation === "relu" ? (x) => Math.max(x, 0) : gelu;
  trace[`${id}.hidden`] = { ...inner, values: inner.values.map(activate) };
  return linear(model, `${name}.linear2`, trace[`${id}.hidden`], "d_model");
}

// GELU: x times the normal distribution function at x, by a series for erf with positive terms only. Beyond ±6 the
// distribution function is 0 or 1.
/** @type {(x: number) => number} */
function gelu(x) {
  if (Math.abs(x) > 6) return Math.max(x, 0);
  let term = x;
  let sum = x;
  for (let n = 3; Math.abs(term) > 1e-17; n += 2) {
    term *= (x * x) / n;
    sum += term;
  }
  return x * (0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI));
}

function linear(model, name, x, axis) {
  const { shape, values: weight } = model.parameters[`${name}.weight`];
  const bias = model.parameters[`${name}.bias`];
  const [rows, columns, width] = [x.shape[0], ...shape];
  const given = x.values;
  const values = new Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      let product = bias ? bias.values[j] : 0;
      for (let f = 0; f < width; f++) product += given[i * width + f] * weight[j * width + f];
      values[i * columns + j] = product;
    }
  }
  return { shape: [rows, columns], axes: [x.axes[0], axis], values };
}

function norm(model, name, x) {
  const { values: weight } = model.parameters[`${name}.weight`];
  const bias = model.parameters[`${name}.bias`];
  const values = byRow(x, (row) => {
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const variance = row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length;
    return row.map((b, f) => ((b - mean) / Math.sqrt(variance + EPS)) * weight[f] + (bias ? bias.values[f] : 0));
  });
  return { ...x, values };
}

const add = (x, y) => ({ ...x, values: x.values.map((a, i) => a + y.values[i]) });

// Returns the rows of a tensor, along its last axis.
/** @type {(x: Tensor) => number[][]} */
function rowsOf({ shape, values }) {
  const width = shape.at(-1);
  return range(values.length / width).map((i) => Array.prototype.slice.call(values, i * width, (i + 1) * width));
}

/** @type {(x: Tensor, change: (row: number[]) => number[]) => number[]} */
export const byRow = (x, change) => rowsOf(x).flatMap(change);

// Creates a tensor with three axes from a function of the index.
function cube(axes, shape, at) {
  const [a, b, c] = shape;
  const values = range(a).flatMap((i) => range(b).flatMap((j) => range(c).map((k) => at(i, j, k))));
  return { shape, axes, values };
}
