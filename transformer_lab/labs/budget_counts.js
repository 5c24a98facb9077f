// The cost of a model, by component. All counts are BigInt: at the ends of the sliders a count of FLOPs has 23 digits,
// and a Number is exact to only 15 digits.

/** @typedef {Record<string, any>} Shape The fields of a ModelShape. */
/** @typedef {{ shape: Shape, seq: number, batch: number, bytes_per_value: number }} Setting */
/** @typedef {Record<string, bigint>} Counts From components to numbers. */

// The quantities, each with its name, unit and table heading.
export const QUANTITIES = {
  parameters: { name: "Parameters", unit: "", head: "parameters" },
  flops: { name: "FLOPs of a forward pass", unit: "FLOP", head: "FLOPs" },
  training: { name: "Memory of a training step", unit: "B", head: "bytes" },
  generation: { name: "Memory of generation", unit: "B", head: "bytes" },
};

// All components, each with its formula and hue. A component without a hue is grey.
export const COMPONENTS = {
  parameters: {
    "token embedding": ["vocab·d_model", 150],
    "position embedding": ["n_positions·d_model", 185],
    "segment embedding": ["segments·d_model", 110],
    "embedding projection": ["(d_embedding + 1)·d_model", 130],
    "attention weights": ["2·L·d_model·(d_model + d_kv)", 255],
    "attention biases": ["2·L·(d_model + d_kv)", 275],
    router: ["L·d_model·experts", 20],
    "feed-forward weights": ["2·L·d_model·d_ff; gated: 3·…", 55],
    "feed-forward biases": ["L·(d_ff + d_model)", 75],
    norms: ["weights and biases", null],
    pooler: ["d_model² + d_model", 345],
    "output head": ["vocab·d_model, not tied", 345],
  },
  flops: {
    "embedding projection": ["2·N·d_embedding·d_model", 130],
    "attention projections": ["4·L·N·d_model·(d_model + d_kv)", 255],
    "scores and blend": ["4·L·N²·d_model", 300],
    "feed-forward": ["4·L·N·d_model·d_ff; gated: 6·…", 55],
    pooler: ["2·d_model²", 345],
    "output head": ["2·N·d_model·vocab", 345],
  },
  training: {
    weights: ["one value per parameter", 220],
    gradients: ["one per parameter", 185],
    "optimizer state": ["Adam: two per parameter", 110],
    activations: ["what the backward pass needs", 40],
    "log-probabilities": ["N·vocab, for the loss", 345],
  },
  generation: { weights: ["one value per parameter", 220], "key–value cache": ["2·L·N·d_kv values", 300] },
};

/** @type {(object: Record<string, any>, names: string[]) => bigint[]} */
export const bigs = (object, names) => names.map((name) => BigInt(object[name]));
/** @type {(counts: Counts) => bigint} */
export const total = (counts) => Object.values(counts).reduce((a, b) => a + b, 0n);
const nonzero = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0n));
/** @type {(condition: any) => bigint} */
const bit = (condition) => (condition ? 1n : 0n);
const min = (a, b) => (a < b ? a : b);
const bigOr = (value, other) => (value == null ? other : BigInt(value));
const isBert = (shape) => shape.family === "bert";
const stacksOf = (shape) => (shape.family === "transformer" ? 2n : 1n);
const hasFinalNorm = (shape) => bit(!isBert(shape) && (shape.final_norm ?? shape.family !== "transformer"));
const hasPooler = (shape) => bit(isBert(shape) && shape.pooler);
const targetVocab = (shape) => BigInt(shape.tgt_vocab_size ?? shape.vocab_size);
/** @type {(shape: Shape, place: string) => bigint} */
const hasBias = (shape, place) =>
  bit(Array.isArray(shape.bias) ? shape.bias.includes(place) : shape.bias && place !== "head");

/** @type {(shape: Shape) => boolean} */
export const isGated = (shape) => Boolean(shape.gated);
/** @type {(shape: Shape) => number} */
export const dHead = (shape) => shape.d_head ?? shape.d_model / shape.n_heads;
const dQuery = (shape) => BigInt(dHead(shape)) * BigInt(shape.n_heads);
// d_kv, the number of features of a token's keys in all heads: d_model, unless heads share keys or have a size of their
// own.
/** @type {(shape: Shape) => bigint} */
export const dKv = (shape) => BigInt(dHead(shape)) * BigInt(shape.n_kv_heads ?? shape.n_heads);
// The number of layers with a window.
const windowLayers = (shape) => (shape.window == null ? 0n : BigInt(shape.n_window_layers ?? shape.n_layers));

// Whether this package's layers implement everything in the shape: only then are the activations known.
const OWN_OPTIONS = ["n_segments", "pooler", "final_norm", "tied", "tgt_vocab_size", "n_kv_heads"];
const OWN_SIZES = ["family", "n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "n_positions", "bias"];
/** @type {(shape: Shape) => boolean} */
export function isOwn(shape) {
  const names = [...OWN_SIZES, ...OWN_OPTIONS, ...(shape.family === "transformer" && shape.gated ? [] : ["gated"])];
  return !Array.isArray(shape.bias) && Object.keys(shape).every((name) => shape[name] === null || names.includes(name));
}

// The number of weights and the number of biases of a feed-forward layer with this many features.
/** @type {(shape: Shape, features: bigint) => bigint[]} */
function feedForward(shape, features) {
  const inner = (1n + bit(isGated(shape))) * features;
  const D = BigInt(shape.d_model);
  return [D * (inner + features), (inner + D) * hasBias(shape, "feed-forward")];
}

// The number of parameters that a norm has for each feature.
/** @type {(shape: Shape) => bigint} */
function normSize(shape) {
  const norm = shape.norm ?? (shape.family === "llama" ? "rms" : "layer");
  return norm === "unlearned" ? 0n : norm === "rms" ? 1n : 1n + hasBias(shape, "norms");
}

/** @type {(shape: Shape, layers: bigint) => bigint} */
function normsOf(shape, layers) {
  const [D, E] = [BigInt(shape.d_model), bigOr(shape.d_embedding, BigInt(shape.d_model))];
  const stacks = stacksOf(shape);
  const perLayer = stacks === 2n ? 5n : bigOr(shape.norms_per_layer, 2n);
  const embeddingNorms = stacks * bit(isBert(shape) || shape.embedding_norm) * E;
  const norms = ((layers * perLayer + stacks * hasFinalNorm(shape)) * D + embeddingNorms) * normSize(shape);
  const headNorms = shape.qk_norm === "all" ? dQuery(shape) + dKv(shape) : 2n * BigInt(dHead(shape));
  return norms + (shape.qk_norm ? layers * headNorms : 0n);
}

function parameters(shape) {
  const [D, F, V, H] = bigs(shape, ["d_model", "d_ff", "vocab_size", "n_heads"]);
  const L = shape.shared_layers ? min(1n, BigInt(shape.n_layers)) : BigInt(shape.n_layers);
  const [stacks, Q, K] = [stacksOf(shape), dQuery(shape), dKv(shape)];
  const attentions = L * (2n * stacks - 1n);
  const E = bigOr(shape.d_embedding, D);
  const ownTarget = bit(stacks === 2n && !(shape.shared_embedding ?? shape.tied));
  const learned = bit(isBert(shape) || shape.family === "gpt2" || shape.learned_positions);
  let [weights, biases] = feedForward(shape, F);
  if (shape.n_experts) {
    const count = BigInt(shape.n_experts);
    const expert = feedForward(shape, bigOr(shape.d_expert, F));
    const shared = shape.d_shared_expert ? feedForward(shape, BigInt(shape.d_shared_expert)) : [0n, 0n];
    [weights, biases] = [count * expert[0] + shared[0], count * expert[1] + shared[1]];
  }
  return nonzero({
    "token embedding": (V + ownTarget * targetVocab(shape)) * E,
    "position embedding": stacks * (learned * bigOr(shape.n_positions, 0n) * E + bigOr(shape.n_relative, 0n) * H),
    "segment embedding": bigOr(shape.n_segments, 0n) * E,
    "embedding projection": shape.d_embedding ? (E + 1n) * D : 0n,
    "attention weights": attentions * 2n * D * (Q + K),
    "attention biases": attentions * ((Q + 2n * K) * hasBias(shape, "qkv") + D * hasBias(shape, "output")),
    router: L * routerRows(shape) * D,
    "feed-forward weights": L * stacks * weights,
    "feed-forward biases": L * stacks * biases,
    norms: normsOf(shape, L),
    pooler: hasPooler(shape) * D * (D + hasBias(shape, "output")),
    "output head":
      bit(!isBert(shape) && !shape.tied) * targetVocab(shape) * D + hasBias(shape, "head") * targetVocab(shape),
  });
}
// The number of rows in the router: one for each expert, and one for the gate of the shared experts, if it exists.
const routerRows = (shape) => (shape.n_experts ? BigInt(shape.n_experts) + bit(shape.shared_expert_gate) : 0n);

// The number of parameters that one token uses: all parameters except those of experts that the router does not choose.
/** @type {(shape: Shape) => bigint} */
export function activeParameters(shape) {
  const idle = BigInt((shape.n_experts ?? 0) - (shape.experts_per_token ?? 0));
  const [weights, biases] = feedForward(shape, BigInt(shape.d_expert ?? shape.d_ff));
  return total(parameters(shape)) - BigInt(shape.n_layers) * idle * (weights + biases);
}

// The sequences of an encoder and its decoder have the same number of tokens.
function flops({ shape, seq, batch }) {
  const [L, D, F] = bigs(shape, ["n_layers", "d_model", "d_ff"]);
  const [N, B, stacks] = [BigInt(seq), BigInt(batch), stacksOf(shape)];
  const [Q, K, local] = [dQuery(shape), dKv(shape), windowLayers(shape)];
  const projections = stacks === 2n ? 24n * N * D * Q : 4n * N * D * (Q + K);
  const keys = (L - local) * N + local * min(N, bigOr(shape.window, N));
  const active = BigInt(shape.experts_per_token ?? 0) * bigOr(shape.d_expert, F) + bigOr(shape.d_shared_expert, 0n);
  const matrices = 2n + bit(isGated(shape));
  return nonzero({
    "embedding projection": shape.d_embedding ? B * 2n * N * BigInt(shape.d_embedding) * D : 0n,
    "attention projections": B * L * projections,
    "scores and blend": B * (2n * stacks - 1n) * 4n * keys * N * Q,
    "feed-forward": B * L * stacks * N * D * 2n * (matrices * (shape.n_experts ? active : F) + routerRows(shape)),
    pooler: B * hasPooler(shape) * 2n * D * D,
    "output head": bit(!isBert(shape)) * B * 2n * N * D * targetVocab(shape),
  });
}

function training({ shape, seq, batch, bytes_per_value }) {
  const [N, B, bytes] = [seq, batch, bytes_per_value].map(BigInt);
  const weights = total(parameters(shape)) * bytes;
  return nonzero({
    weights,
    gradients: weights,
    "optimizer state": 2n * weights,
    activations: isOwn(shape) ? activations(shape, N, B, bytes) : 0n,
    "log-probabilities": bit(!isBert(shape)) * B * N * targetVocab(shape) * bytes,
  });
}

function activations(shape, N, B, bytes) {
  const [L, D, H, F] = bigs(shape, ["n_layers", "d_model", "n_heads", "d_ff"]);
  const norm = D + 2n;
  let values = L * N * (6n * D + 2n * F + 2n * norm);
  let wide = L * N * H; // values of at least four bytes each, such as the logarithms of the rows' sums
  let rotary = 0n; // the same for every sequence
  if (shape.family === "llama") {
    values = N * (L * (4n * D + 2n * dKv(shape) + (isGated(shape) ? 4n : 2n) * F) + D);
    wide += N * (2n * L + hasFinalNorm(shape)) * (2n * D + 1n);
    rotary = L * N * 4n * (D / H);
  } else if (shape.family === "transformer") {
    values = N * (L * (17n * D + 2n * F + 5n * norm) + hasFinalNorm(shape) * 2n * norm + (bit(L > 0n) + 1n) * D);
    wide *= 3n;
  } else if (isBert(shape)) values += N * norm + hasPooler(shape) * (N + 1n) * D;
  else values += hasFinalNorm(shape) * N * norm + N * D;
  return B * values * bytes + (B * wide + rotary) * (bytes > 4n ? bytes : 4n);
}

function generation({ shape, seq, batch, bytes_per_value }) {
  const [N, B, bytes] = [seq, batch, bytes_per_value].map(BigInt);
  const local = windowLayers(shape);
  const cached = (BigInt(shape.n_layers) - local) * N + local * min(N, bigOr(shape.window, N));
  return nonzero({
    weights: total(parameters(shape)) * bytes,
    "key–value cache": bit(!isBert(shape)) * 2n * cached * dKv(shape) * B * bytes,
  });
}

/** @type {(setting: Setting) => Record<string, Counts>} */
export const costs = (setting) => ({
  parameters: parameters(setting.shape),
  flops: flops(setting),
  training: training(setting),
  generation: generation(setting),
});

/** @type {(shape: Shape) => bigint} */
export function ruleOfThumb(shape) {
  const [L, D, V] = bigs(shape, ["n_layers", "d_model", "vocab_size"]);
  return 12n * L * D * D + V * D;
}
