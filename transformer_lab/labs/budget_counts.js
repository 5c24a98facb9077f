// What a model costs, component by component. All counts are BigInt: at the ends of the sliders FLOPs have 23 digits,
// and a plain number is exact to 15.

/** @typedef {Record<string, any>} Shape The fields of a ModelShape. */
/** @typedef {{ shape: Shape, seq: number, batch: number, bytes_per_value: number }} Setting */
/** @typedef {Record<string, bigint>} Counts From components to numbers. */

// What is counted: its name, its unit, and the head of its table.
export const QUANTITIES = {
  parameters: { name: "Parameters", unit: "", of: "parameters" },
  flops: { name: "FLOPs of a forward pass", unit: "FLOP", of: "FLOPs" },
  training: { name: "Memory of a training step", unit: "B", of: "bytes" },
  generation: { name: "Memory of generation", unit: "B", of: "bytes" },
};

// Every component that there is: how it is counted, and its colour. In one bar, a component without a hue is grey.
export const COMPONENTS = {
  parameters: {
    "token embedding": ["V·D", 150],
    "position embedding": ["P·D", 185],
    "segment embedding": ["segments·D", 110],
    "attention weights": ["L·4·D²", 255],
    "attention biases": ["L·4·D", 275],
    "feed-forward weights": ["L·2·D·F", 55],
    "feed-forward biases": ["L·(F + D)", 75],
    norms: ["weights and biases", null],
    pooler: ["D² + D", 345],
    "output head": ["V·D, not tied", 345],
  },
  flops: {
    "attention projections": ["L·8·N·D²", 255],
    "scores and blend": ["L·4·N²·D", 300],
    "feed-forward": ["L·4·N·D·F", 55],
    pooler: ["2·D²", 345],
    "output head": ["2·N·D·V", 345],
  },
  training: {
    weights: ["one value per parameter", 220],
    gradients: ["one per parameter", 185],
    "optimizer state": ["Adam: two per parameter", 110],
    activations: ["what the backward pass needs", 40],
    "log-probabilities": ["N·V, for the loss", 345],
  },
  generation: { weights: ["one value per parameter", 220], "key–value cache": ["2·L·N·D values", 300] },
};

/** @type {(object: Record<string, any>, names: string[]) => bigint[]} */
export const bigs = (object, names) => names.map((name) => BigInt(object[name]));
/** @type {(counts: Counts) => bigint} */
export const total = (counts) => Object.values(counts).reduce((a, b) => a + b, 0n);
const present = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0n));
const finalNorm = (shape) => (shape.family === "gpt2" && shape.final_norm !== false ? 1n : 0n);
const pooler = (shape) => (shape.family === "bert" && shape.pooler ? 1n : 0n);

function parameters(shape) {
  const [L, D, F, V, P] = bigs(shape, ["n_layers", "d_model", "d_ff", "vocab_size", "n_positions"]);
  const bias = shape.bias ? 1n : 0n;
  const bert = shape.family === "bert";
  return present({
    "token embedding": V * D,
    "position embedding": P * D,
    "segment embedding": bert ? BigInt(shape.n_segments) * D : 0n,
    "attention weights": L * 4n * D * D,
    "attention biases": L * 4n * D * bias,
    "feed-forward weights": L * 2n * D * F,
    "feed-forward biases": L * (F + D) * bias,
    norms: (2n * L + (bert ? 1n : finalNorm(shape))) * (1n + bias) * D,
    pooler: pooler(shape) * (D * D + bias * D),
    "output head": bert || shape.tied ? 0n : V * D,
  });
}

function flops({ shape, seq, batch }) {
  const [L, D, F, V] = bigs(shape, ["n_layers", "d_model", "d_ff", "vocab_size"]);
  const N = BigInt(seq);
  const B = BigInt(batch);
  return present({
    "attention projections": B * L * 8n * N * D * D,
    "scores and blend": B * L * 4n * N * N * D,
    "feed-forward": B * L * 4n * N * D * F,
    pooler: B * pooler(shape) * 2n * D * D,
    "output head": shape.family === "bert" ? 0n : B * 2n * N * D * V,
  });
}

function training({ shape, seq, batch, bytes_per_value }) {
  const [L, D, H, F, V] = bigs(shape, ["n_layers", "d_model", "n_heads", "d_ff", "vocab_size"]);
  const N = BigInt(seq);
  const B = BigInt(batch);
  const bytes = BigInt(bytes_per_value);
  const bert = shape.family === "bert";
  const weights = total(parameters(shape)) * bytes;
  const norm = D + 2n;
  let values = L * N * (6n * D + 2n * F + 2n * norm);
  if (bert) values += N * norm + pooler(shape) * (N + 1n) * D;
  else values += finalNorm(shape) * N * norm + N * D;
  const sums = L * N * H; // the logarithms of the rows' sums, at least four bytes each
  return present({
    weights,
    gradients: weights,
    "optimizer state": 2n * weights,
    activations: B * (values * bytes + sums * (bytes > 4n ? bytes : 4n)),
    "log-probabilities": bert ? 0n : B * N * V * bytes,
  });
}

function generation({ shape, seq, batch, bytes_per_value }) {
  const [L, D] = bigs(shape, ["n_layers", "d_model"]);
  const bytes = BigInt(bytes_per_value);
  const cache = 2n * L * BigInt(seq) * D * BigInt(batch) * bytes;
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
