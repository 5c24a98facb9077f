// The cost of a model, by component. All counts are BigInt: at the ends of the sliders FLOPs have 23 digits, and a
// Number is exact to 15.

/** @typedef {Record<string, any>} Shape The fields of a ModelShape. */
/** @typedef {{ shape: Shape, seq: number, batch: number, bytes_per_value: number }} Setting */
/** @typedef {Record<string, bigint>} Counts From components to numbers. */

// The quantities: name, unit, and table heading.
export const QUANTITIES = {
  parameters: { name: "Parameters", unit: "", of: "parameters" },
  flops: { name: "FLOPs of a forward pass", unit: "FLOP", of: "FLOPs" },
  training: { name: "Memory of a training step", unit: "B", of: "bytes" },
  generation: { name: "Memory of generation", unit: "B", of: "bytes" },
};

// All components: formula and hue. A component without a hue is grey.
export const COMPONENTS = {
  parameters: {
    "token embedding": ["vocab·d_model", 150],
    "position embedding": ["n_positions·d_model", 185],
    "segment embedding": ["segments·d_model", 110],
    "attention weights": ["2·L·d_model·(d_model + d_kv)", 255],
    "attention biases": ["2·L·(d_model + d_kv)", 275],
    "feed-forward weights": ["2·L·d_model·d_ff, gated 3", 55],
    "feed-forward biases": ["L·(d_ff + d_model)", 75],
    norms: ["weights and biases", null],
    pooler: ["d_model² + d_model", 345],
    "output head": ["vocab·d_model, not tied", 345],
  },
  flops: {
    "attention projections": ["4·L·N·d_model·(d_model + d_kv)", 255],
    "scores and blend": ["4·L·N²·d_model", 300],
    "feed-forward": ["4·L·N·d_model·d_ff, gated 6", 55],
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
const present = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0n));
const finalNorm = (shape) => (shape.family !== "bert" && shape.final_norm !== false ? 1n : 0n);
const pooler = (shape) => (shape.family === "bert" && shape.pooler ? 1n : 0n);

/** @type {(shape: Shape) => boolean} */
export const isGated = (shape) => shape.family === "llama" && shape.gated;
// The features of a token's keys in all heads, d_kv: d_model, unless heads share keys.
/** @type {(shape: Shape) => bigint} */
export function keyFeatures(shape) {
  const [D, H] = bigs(shape, ["d_model", "n_heads"]);
  return (D / H) * BigInt(shape.n_kv_heads ?? shape.n_heads);
}

function parameters(shape) {
  const [L, D, F, V, P] = bigs(shape, ["n_layers", "d_model", "d_ff", "vocab_size", "n_positions"]);
  const bias = shape.bias ? 1n : 0n;
  const [bert, llama] = [shape.family === "bert", shape.family === "llama"];
  const K = keyFeatures(shape);
  const gates = isGated(shape) ? 1n : 0n;
  return present({
    "token embedding": V * D,
    "position embedding": llama ? 0n : P * D,
    "segment embedding": bert ? BigInt(shape.n_segments) * D : 0n,
    "attention weights": L * 2n * D * (D + K),
    "attention biases": L * 2n * (D + K) * bias,
    "feed-forward weights": L * (2n + gates) * D * F,
    "feed-forward biases": L * ((1n + gates) * F + D) * bias,
    norms: (2n * L + (bert ? 1n : finalNorm(shape))) * (llama ? 1n : 1n + bias) * D,
    pooler: pooler(shape) * (D * D + bias * D),
    "output head": bert || shape.tied ? 0n : V * D,
  });
}

function flops({ shape, seq, batch }) {
  const [L, D, F, V] = bigs(shape, ["n_layers", "d_model", "d_ff", "vocab_size"]);
  const N = BigInt(seq);
  const B = BigInt(batch);
  return present({
    "attention projections": B * L * 4n * N * D * (D + keyFeatures(shape)),
    "scores and blend": B * L * 4n * N * N * D,
    "feed-forward": B * L * (isGated(shape) ? 6n : 4n) * N * D * F,
    pooler: B * pooler(shape) * 2n * D * D,
    "output head": shape.family === "bert" ? 0n : B * 2n * N * D * V,
  });
}

function training({ shape, seq, batch, bytes_per_value }) {
  const [L, D, H, F, V] = bigs(shape, ["n_layers", "d_model", "n_heads", "d_ff", "vocab_size"]);
  const N = BigInt(seq);
  const B = BigInt(batch);
  const bytes = BigInt(bytes_per_value);
  const [bert, llama] = [shape.family === "bert", shape.family === "llama"];
  const weights = total(parameters(shape)) * bytes;
  const norm = D + 2n;
  let values = L * N * (6n * D + 2n * F + 2n * norm);
  let sums = L * N * H; // the logarithms of the rows' sums, at least four bytes each
  let turns = 0n; // the same for every sequence
  if (llama) {
    values = N * (L * (4n * D + 2n * keyFeatures(shape) + (isGated(shape) ? 4n : 2n) * F) + D);
    sums += N * (2n * L + finalNorm(shape)) * (2n * D + 1n);
    turns = L * N * 4n * (D / H);
  } else if (bert) values += N * norm + pooler(shape) * (N + 1n) * D;
  else values += finalNorm(shape) * N * norm + N * D;
  return present({
    weights,
    gradients: weights,
    "optimizer state": 2n * weights,
    activations: B * values * bytes + (B * sums + turns) * (bytes > 4n ? bytes : 4n),
    "log-probabilities": bert ? 0n : B * N * V * bytes,
  });
}

function generation({ shape, seq, batch, bytes_per_value }) {
  const bytes = BigInt(bytes_per_value);
  const cache = 2n * BigInt(shape.n_layers) * BigInt(seq) * keyFeatures(shape) * BigInt(batch) * bytes;
  return present({
    weights: total(parameters(shape)) * bytes,
    "key–value cache": shape.family === "bert" ? 0n : cache,
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
