// The budget lab's texts: numbers, a setting, and a change from one setting to another.

import { activeParameters, costs, dHead, isGated, isOwn, total } from "./budget_counts.js";
import { changedKeys, LINKED_KEYS, read, sameOptions } from "./budget_settings.js";
import { grouped, plural } from "./words.js";

/** @typedef {import("./budget_settings.js").Setting} Setting */
/** @typedef {import("./budget_settings.js").NamedSetting} NamedSetting */

const CACHE = "key–value cache";

/** @type {(n: bigint) => string} */
export const signed = (n) => (n < 0n ? `−${grouped(-n)}` : `+${grouped(n)}`);

// Writes a number with four digits and the prefix of a unit: 124.4 M. Parameters are counted in B, all other quantities
// in G.
/** @type {(n: bigint, unit?: string) => string} */
export function compact(n, unit = "") {
  const prefixes = unit ? ["", "k", "M", "G", "T", "P", "E", "Z", "Y"] : ["", "k", "M", "B", "T"];
  let size = Number(n);
  let i = 0;
  while (size >= 999.95 && i < prefixes.length - 1) {
    size /= 1000;
    i++;
  }
  const text = i ? size.toPrecision(4) : String(size);
  return `${text}${prefixes[i] || unit ? " " : ""}${prefixes[i]}${unit}`;
}
/** @type {(n: bigint, unit?: string) => string} */
export const compactSigned = (n, unit) => (n < 0n ? `−${compact(-n, unit)}` : `+${compact(n, unit)}`);

// Writes the ratio a / b: exactly if it is an integer, and otherwise with at most three digits.
/** @type {(a: bigint, b: bigint) => string} */
export function times(a, b) {
  if (a % b === 0n && a / b < 1_000_000n) return `${grouped(a / b)} ×`;
  const ratio = Number(a) / Number(b);
  const [digits, power] = ratio.toExponential(2).split("e");
  const text = Number(ratio.toPrecision(ratio < 0.1 ? 2 : 3));
  if (text === 1) return "≈ 1 ×";
  if (ratio < 0.001) return "≈ 0 ×";
  if (ratio < 1e6) return `${text >= 1000 ? grouped(text) : text} ×`;
  const exponent = [...power.slice(1)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `${digits}·10${exponent} ×`;
}

// A percentage.
/** @type {(part: bigint, whole: bigint) => string} */
export function share(part, whole) {
  const percent = (100 * Number(part)) / Number(whole);
  if (part === whole) return "100 %";
  return percent < 0.01 ? (part ? "≈ 0 %" : "0 %") : `${percent.toFixed(percent < 9.995 ? 2 : 1)} %`;
}

// Describes a setting, and compares it with the published weights if it is a preset.
/** @type {(setting: Setting, ref: Partial<NamedSetting>) => string} */
export function intro(setting, ref) {
  const cost = costs(setting);
  const count = total(cost.parameters);
  const subject = ref.published ? ref.name : "This model";
  const exact = ref.published && BigInt(ref.published) === count;
  const published = exact ? `, as many as its published weights; its paper says ${ref.paper}` : "";
  const sequences = setting.batch > 1 ? ` in each of ${grouped(setting.batch)} sequences` : "";
  const flops = compact(total(cost.flops), "FLOP");
  const pass = `A forward pass over ${grouped(setting.seq)} tokens${sequences} takes ${flops}`;
  const cache = setting.shape.family === "bert" ? "" : `; the ${CACHE} takes ${compact(cost.generation[CACHE], "B")}`;
  const training = isOwn(setting.shape) ? `; a step of training takes ${compact(total(cost.training), "B")}` : "";
  const active = setting.shape.n_experts ? `; ${activeText(setting.shape)}` : "";
  return `${subject} has ${grouped(count)} parameters${published}${active}. ${pass}${training}${cache}.`;
}

// The active parameters of a mixture of experts.
/** @type {(shape: import("./budget_counts.js").Shape) => string} */
export const activeText = (shape) =>
  `a token uses ${grouped(activeParameters(shape))} parameters: ` +
  `${shape.experts_per_token} of ${shape.n_experts} experts in each layer`;

/** @type {(base: NamedSetting) => string} */
export function baselineText({ key, name, published, paper, seq }) {
  if (key === "other") return `Compared with ${name}, which you pasted, for the same context.`;
  if (!published) return "Compared with the lab’s initial state.";
  const count = `${grouped(published)} parameters in the published weights`;
  return `Compared with ${name}: ${count}, ${paper} in the paper; context ${grouped(seq)}.`;
}

/** @type {(seq: number, shape: import("./budget_counts.js").Shape) => string} */
export function warningText(seq, { family, n_positions, learned_positions }) {
  const learned = ["bert", "gpt2"].includes(family) || learned_positions;
  const reason = learned ? "later tokens have no position embedding" : "the model has never seen a text of this length";
  return `Context ${grouped(seq)} exceeds the ${grouped(n_positions)} positions: ${reason}.`;
}

// The notes below the bars.
/** @type {(rule: bigint, missed: bigint, count: bigint) => string} */
export const ruleText = (rule, missed, count) => {
  const by = missed < 0n ? -missed : missed;
  const error = missed ? `${grouped(by)} too ${missed < 0n ? "many" : "few"}, ${share(by, count)}` : "exact";
  return `Rule of thumb, 12·L·d_model² + vocab·d_model: ${grouped(rule)}, ${error}.`;
};
/** @type {(ratio: string, gated: boolean, own?: boolean) => string} */
export const attentionCostText = (ratio, gated, own = true) =>
  `Scores and blend take ${ratio} the feed-forward FLOPs` +
  `${own ? `, ${gated ? "2·seq\u00a0/\u00a03·d_ff" : "seq\u00a0/\u00a0d_ff"}` : ""}.`;
// The context length at which attention costs as many FLOPs as the feed-forward layers; gated layers have a third
// matrix.
/** @type {(shape: import("./budget_counts.js").Shape) => number} */
export const equalContext = (shape) => (isGated(shape) ? 1.5 : 1) * shape.d_ff;
/** @type {(bytes: number, own?: boolean) => string} */
export const trainingText = (bytes, own = true) =>
  `Each parameter takes ${4 * bytes} bytes: weight, gradient, and Adam's two moments.` +
  `${own ? "" : " Activations are not counted: they are known only for this package's layers."}`;
/** @type {(shape: import("./budget_counts.js").Shape, values: bigint) => string} */
export const windowsText = ({ n_layers, n_window_layers, window: span }, values) =>
  `A token adds 2·L·d_kv = ${grouped(values)} values, until ${n_window_layers ?? n_layers} of ${n_layers} layers ` +
  `keep only the last ${grouped(span)} tokens.`;
/** @type {(values: bigint, tokens: bigint, shared: boolean) => string} */
export const cacheText = (values, tokens, shared) =>
  `A token adds 2·L·${shared ? "d_kv" : "d_model"} = ${grouped(values)} values. ` +
  `The cache of ${grouped(tokens)} tokens is as large as the weights.`;
export const NO_CACHE = "A BERT model reads a whole sentence in one pass: it generates no tokens and needs no cache.";

// Describes the change from one setting to another.
/** @type {(from: Setting, to: Setting) => string} */
export function describe(from, to) {
  const facts = factsOf(from, to);
  const changed = changedKeys(from, to).filter((name) => !LINKED_KEYS.includes(name)); // these two follow other numbers
  const { count, work, ratio } = facts;
  const own = isOwn(from.shape) && isOwn(to.shape);
  const memory = own ? `, and a step of training ${ratio("training")} the memory` : facts.cache;
  if (!sameOptions(from.shape, to.shape)) return `A different model: ${count}. ${work}${memory}.`;
  if (!own) {
    const changes = changed.map((name) => `${name} ${facts.instead(name)}`);
    return `${changes.slice(0, 3).join(", ")}: ${count}. ${work}${memory}.`;
  }
  const isWidth = changed[0] === "d_model" && changed.every((name) => ["d_model", "n_heads", "d_ff"].includes(name));
  if (isWidth) return CHANGES.d_model(facts);
  if (changed.length === 1) return CHANGES[changed[0]](facts);
  return `${count[0].toUpperCase()}${count.slice(1)}. ${work}${memory}.`;
}

// Numbers and phrases for the sentences in CHANGES.
function factsOf(from, to) {
  const [before, after] = [costs(from), costs(to)];
  const [a, b] = [from.shape, to.shape];
  const by = total(after.parameters) - total(before.parameters);
  const ratio = (what) => times(total(after[what]), total(before[what]));
  const change = `${signed(by)} parameters, ${ratio("parameters")} as many`;
  const overtaken = ({ seq, shape }) => seq > equalContext(shape);
  const amount = overtaken(to) ? "more FLOPs" : "no more FLOPs";
  return {
    a,
    b,
    by,
    ratio,
    bert: b.family === "bert",
    count: by ? change : "no change in parameters",
    work: `A forward pass takes ${ratio("flops")} the FLOPs`,
    // The factors by which a setting and a component have changed.
    of: (name) => times(BigInt(read(to, name)), BigInt(read(from, name))),
    part: (what, name) => times(after[what][name], before[what][name]),
    instead: (name, one = "", many = one) =>
      `${grouped(read(to, name))}${read(to, name) > 1 ? many : one} instead of ${grouped(read(from, name))}`,
    cache: [a, b].some(({ family }) => family === "bert")
      ? ""
      : `, and the cache ${times(after.generation[CACHE], before.generation[CACHE])} the memory`,
    crossing:
      overtaken(to) === overtaken(from) ? "" : ` Scores and blend now take ${amount} than the feed-forward layers.`,
  };
}

const CHANGES = {
  d_model: ({ a, b, count, work, of, part, instead, cache }) => {
    const width = plural(dHead(b), "feature");
    const heads = plural(b.n_heads, "head");
    const kept = dHead(b) === dHead(a);
    const headText = kept
      ? `Heads keep their width of ${width}: the model now has ${heads}.`
      : `The model now has ${heads} of ${width}.`;
    const square = `The attention matrices grow with the square of d_model, ${part("parameters", "attention weights")}`;
    const linear = `the embeddings only with d_model itself, ${of("d_model")}`;
    return `d_model ${instead("d_model")}: ${count}. ${square}; ${linear}. ${headText} ${work}${cache}.`;
  },
  n_layers: ({ a, b, by, count, work, instead, cache }) => {
    const each = grouped(by / BigInt(b.n_layers - a.n_layers));
    const layers = instead("n_layers", " layer", " layers");
    return `${layers}: ${count}. Each layer has ${each}; the embeddings do not change. ${work}${cache}.`;
  },
  n_heads: ({ a, b, by, count, work, instead, cache }) => {
    const width = plural(dHead(b), "feature");
    const features = `${width} in each instead of ${grouped(dHead(a))}`;
    const shared = "Heads divide d_model among themselves.";
    if (by) return `${instead("n_heads", " head", " heads")}, ${features}: ${count}. ${work}${cache}.`;
    return `${instead("n_heads", " head", " heads")}, ${features}: no change in parameters or FLOPs. ${shared}`;
  },
  d_ff: ({ count, work, instead, crossing }) =>
    `d_ff ${instead("d_ff")}: ${count}, all in the feed-forward layers. ${work}.${crossing}`,
  vocab_size: ({ b, bert, count, ratio, of, instead }) => {
    const where = bert || b.tied ? "all in the token embedding" : "in the token embedding and the output head";
    const matrix = b.tied ? ", which is the same matrix," : "";
    const head = `The output head${matrix} takes ${of("vocab_size")} the FLOPs, and a forward pass ${ratio("flops")}`;
    const lookup = "FLOPs do not change: rows are looked up, not multiplied";
    return `A vocabulary of ${instead("vocab_size")}: ${count}, ${where}. ${bert ? lookup : head}.`;
  },
  n_positions: ({ by, count, instead }) =>
    `${instead("n_positions", " positions")}: ${count}, ` +
    `${by ? "all in the position embedding" : "since positions are not learned"}. ` +
    "FLOPs and cache depend on the number of tokens, not on the number of positions.",
  seq: ({ bert, count, work, of, part, instead, crossing }) => {
    const context = `A context of ${instead("seq", " token", " tokens")}: ${count}`;
    const rest = `${bert ? "its other products" : "everything else"} ${of("seq")}`;
    return `${context}. ${work}: scores and blend ${part("flops", "scores and blend")}, ${rest}.${crossing}`;
  },
  batch: ({ bert, count, ratio, of, instead }) => {
    const sequences = instead("batch", " sequence", " sequences");
    const scale = `FLOPs${bert ? " and activations" : ", activations and cache"} scale with the batch, ${of("batch")}`;
    const training = `a step of training takes ${ratio("training")} the memory`;
    return `${sequences} at a time: ${count}. ${scale}; weights, gradients and optimizer state do not: ${training}.`;
  },
  bytes_per_value: ({ ratio, part, instead }) =>
    `${instead("bytes_per_value", " bytes")} for each value: no change in parameters or FLOPs. ` +
    `Weights take ${part("training", "weights")} the memory, and a step of training ${ratio("training")}.`,
};
