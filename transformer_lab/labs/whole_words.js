// What the whole lab says: the names of parts and arrows, what they do, the right English, and where the model fails.

import { places } from "./words.js";

/** @typedef {{ side: string, layer: number | null, kind: string, of: string }} Place */

const SMALL = (
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen " +
  "eighteen nineteen"
).split(" ");
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");

// 342 → three hundred and forty two, up to 999,999.
/** @type {(n: number) => string[]} */
export function inEnglish(n) {
  if (n < 20) return [SMALL[n]];
  if (n < 100) return [TENS[Math.floor(n / 10) - 2], ...(n % 10 ? inEnglish(n % 10) : [])];
  const [size, name] = n >= 1000 ? [1000, "thousand"] : [100, "hundred"];
  const rest = n % size;
  return [
    ...inEnglish(Math.floor(n / size)),
    name,
    ...(rest && rest < 100 ? ["and"] : []),
    ...(rest ? inEnglish(rest) : []),
  ];
}

// Why the model is wrong about what is typed.
/** @type {(digits: string) => string} */
export function whyWrong(digits) {
  if (digits.length > 4)
    return `It has only seen numbers of up to four digits: a ${digits[4]} in fifth place is new to it.`;
  if (/^0./.test(digits)) return "It has never seen a number that begins with 0.";
  return "It has only seen examples, and nobody told it a rule.";
}

// "encoder.0.self.add" → its side, its layer if it has one, and what it is there.
/** @type {(id: string) => Place} */
export function placeOf(id) {
  const [side, ...rest] = id.split(".");
  const layer = /^\d+$/.test(rest[0]) ? Number(rest.shift()) : null;
  return { side, layer, kind: rest.at(-1) ?? "", of: rest[0] };
}

// What each place is called, and what happens there; ~ stands for the number of features.
const NAMES = {
  tokens: ["tokens", "The text is cut into tokens. Each has a number: its row in the table of embeddings."],
  embed: ["embedding", "Each token’s number picks a learned row of ~ numbers. Times √~, plus the position’s row."],
  embedding: ["token vectors", "One learned row for each token, times √~. Equal tokens have equal rows."],
  place: ["positions", "Attention does not know who stands where. Waves of different length, added, tell it."],
  positions: ["position vectors", "One row for each position, the same for every text."],
  input: ["into layer 1", "Token plus position: equal tokens at different places now differ."],
  self: ["self-attention", "Every token asks all tokens, and takes home a mixture of what they offer. No mask."],
  masked: ["masked self-attention", "Each token asks itself and those before it: the causal mask hides the rest."],
  cross: ["cross-attention", "Words ask digits: queries from the decoder, keys and values from the encoder."],
  add: ["add & norm", "What came in is added to what the block made of it. A norm brings each row to one scale."],
  feed_forward: [
    "feed-forward",
    "A layer of hidden units, on or off. Each token is treated alone, by the same weights.",
  ],
  output: ["out of the block", "What the block adds to each token."],
  norm: ["after add & norm", "What the next block reads."],
  sum: ["after adding", "What the next block reads."],
  memory: [
    "to the decoder",
    "One vector for each source token. Every cross-attention makes its keys and values of it.",
  ],
  last: ["last norm", "The top layer’s rows, normalized once more."],
  linear: ["linear", "The last row times each word’s row: a logit for every word that could come next."],
  logits: ["logits", "One for each word, in each row. The last row decides the next word."],
  softmax: ["softmax", "Probabilities of the next word. The likeliest is written, and read again."],
  probabilities: ["probabilities", "Each row sums to 1. The last one is about the next word."],
  next: ["next word", "The likeliest word is written, and read again with those before it."],
};
const nameOf = ({ side, kind }) => NAMES[kind === "self" && side === "decoder" ? "masked" : kind] ?? ["", ""];

/** @type {(id: string) => string} */
export function titleOf(id) {
  const place = placeOf(id);
  const { side, layer, kind, of } = place;
  const where = side === "encoder" ? "Encoder" : "Decoder";
  const behind = layer !== null && kind !== of ? `${nameOf({ ...place, kind: of })[0]}, ` : "";
  return `${where}${layer === null ? "" : `, layer ${layer + 1}`}: ${behind}${nameOf(place)[0]}`;
}

/** @type {(id: string, width: number) => string} */
export const aboutOf = (id, width) => nameOf(placeOf(id))[1].replaceAll("~", String(width));

// Where the course teaches it: a chapter's page, and a section on it.
const [VECTORS, HEADS, BLOCK] = ["01_tensor_operations", "04_multi_head", "06_normalization"];
const SECTIONS = {
  tokens: [VECTORS, "How does a sentence become a tensor?"],
  place: ["03_attention_lookup", "Where is word order?"],
  self: [HEADS, "What is a head?"],
  masked: ["05_masks", "How do you hide the future?"],
  cross: [HEADS, "The module, and two sequences"],
  add: [BLOCK, "Why add the input back?"],
  norm: [BLOCK, "What does a norm do to numbers?"],
  feed_forward: [BLOCK, "What does the feed-forward layer do?"],
  linear: ["02_matmul_broadcasting", "What does nn.Linear do?"],
  softmax: ["03_attention_lookup", "What does softmax do, and how does it break?"],
  family: [BLOCK, "Three families from the same parts"],
  whole: [BLOCK, "Assemble a Transformer"],
};
const ALSO = {
  embed: "tokens",
  embedding: "tokens",
  positions: "place",
  input: "place",
  memory: "cross",
  sum: "add",
  last: "norm",
  logits: "linear",
  next: "softmax",
  probabilities: "softmax",
};
/** @type {(id: string) => string[]} */
export function sectionOf(id) {
  const { side, kind, of } = placeOf(id);
  const key = ALSO[kind] ?? (kind === "output" ? of : kind);
  return SECTIONS[key === "self" && side === "decoder" ? "masked" : key] ?? SECTIONS.whole;
}

// (seq 3, d_model 32)
/** @type {(tensor: { shape: number[], axes: string[] }) => string} */
export const axesText = ({ shape, axes }) => `(${axes.map((axis, i) => `${axis} ${shape[i]}`).join(", ")})`;

// The three kinds of model: which parts and masks they have, and what they are for.
export const FAMILIES = {
  both: [
    "encoder–decoder",
    "The encoder reads without a mask; the decoder’s own attention is causal, its cross-attention has no mask. For turning one sequence into another, as in translation: T5, Whisper.",
  ],
  encoder: [
    "encoder only",
    "The decoder falls away, and the causal mask with it: all tokens see all. It writes nothing; its vectors serve to search, compare and classify: BERT.",
  ],
  decoder: [
    "decoder only",
    "Encoder and cross-attention fall away. Question and answer are one sequence, and the causal mask is the only one. For writing: GPT.",
  ],
};

/** @type {(p: number) => string} */
export const share = (p) => (p > 0.9995 ? "> 0.999" : p < 0.001 ? "< 0.001" : places(p, 3));
