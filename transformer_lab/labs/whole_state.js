// What the reader has set in the lab of the whole Transformer, and everything that follows from it.

import { clamp, range } from "./maths.js";
import { getTraits } from "./ui.js";
import { probsOf, samplerOf } from "./whole_learning.js";
import { byRow, decode, encode, generate, switchOff, tokenize } from "./whole_maths.js";
import { startCol } from "./whole_panels.js";
import { numberWords, placeOf } from "./whole_words.js";

/** @typedef {import("./ui.js").Model} Model The lab's traits. The neural network is called `Transformer` here. */
/** @typedef {import("./whole_maths.js").Model} Transformer */
// A step of the walk: the highlighted places, of which the first is open, and the number of tokens that are already
// written.
/** @typedef {{ lit: string[], written: number }} Stop */
/**
 * What the reader has set, and everything that follows from it.
 * @typedef {object} State
 * @property {Transformer} model the model that is shown
 * @property {string} text the input of the model
 * @property {"both" | "encoder" | "decoder"} family
 * @property {number} step the number of the step of the walk, from 1; 0 before the walk begins
 * @property {string} part the place that is open, or an empty text
 * @property {number[]} at the selected head, row and column
 * @property {{ source: number[], tokens: number[], probabilities: number[] }} answer
 * @property {string[]} words the words of the answer, without the end token
 * @property {number} sure the probability of the whole answer
 * @property {string} wanted the right answer, if the lab knows it
 * @property {boolean} right
 * @property {Stop[]} stops
 * @property {Stop} [stop] the current step of the walk
 * @property {number} count the number of answer tokens that the model reads at this step
 * @property {number} ready the number of words of the answer that are shown as written
 * @property {import("./whole_maths.js").Trace} trace
 * @property {Record<string, number[]>} ids the ids of the input tokens, on each side
 * @property {Record<string, string[]>} names the names of the input tokens, on each side
 * @property {(id: string) => boolean} exists whether this model has the place
 * @property {number} checkpoint the number of the checkpoint that is shown; the number after the last checkpoint stands
 * for the final weights
 * @property {string} missing the reason why the chosen checkpoint is not shown, or an empty text
 * @property {import("./whole_learning.js").Sampling} sampling
 */

const TRAITS = ["text", "family", "part", "at", "off", "checkpoint", "temperature", "top_k", "seed"];
const PLACES = /\.(tokens|embed|place|linear|softmax|next|(self|cross|feed_forward)(\.add)?)$/;

// Caches the last results of a function of strings and numbers.
function memoize(compute) {
  const results = new Map();
  return (...key) => {
    const name = key.join("|");
    if (results.size > 30) results.clear();
    if (!results.has(name)) results.set(name, compute(...key));
    return results.get(name);
  };
}

// Returns the steps of the walk: the encoder's layers, the decoder's layers for the first token, then a step for each
// token.
/** @type {(layers: number, family: string, words: number) => Stop[]} */
function walk(layers, family, words) {
  const stop = (...lit) => ({ lit, written: 0 });
  const through = (side, parts) => [
    stop(`${side}.tokens`),
    stop(`${side}.embed`, `${side}.place`),
    ...range(layers).flatMap((layer) =>
      parts.map((part) => stop(`${side}.${layer}.${part}`, `${side}.${layer}.${part}.add`)),
    ),
  ];
  const reading = family === "decoder" ? [] : [...through("encoder", ["self", "feed_forward"]), stop("encoder.memory")];
  if (family === "encoder") return reading;
  const parts = family === "both" ? ["self", "cross", "feed_forward"] : ["self", "feed_forward"];
  const writing = range(words).map((written) => ({
    ...stop("decoder.softmax", "decoder.linear", "decoder.next"),
    written,
  }));
  return [...reading, ...through("decoder", parts), ...writing];
}

// Returns a function that computes the state from the traits, with caches. `writing` is the number of the word that the
// model writes on arrival.
/**
 * @type {(model: Model, weights: import("./whole_learning.js").Weights) => (writing?: number | null) => State}
 */
export function stateOf(model, weights) {
  const { written: most, switches } = model.get("limits");
  const { why } = model.get("says");
  const { fetching } = model.get("words");
  const last = model.get("checkpoints").length;
  const { target } = weights.at(last)[0];
  const netOf = memoize((writes, checkpoint, ...off) => {
    const models = weights.at(checkpoint);
    const net = models.find((each) => (each.family === "decoder") === (writes === "decoder")) ?? models[0];
    return switchOff(net, off);
  });
  const answerOf = memoize((writes, text, temperature, topK, seed, ...setup) => {
    const net = netOf(writes, ...setup);
    const source = tokenize(text, net.source).value ?? [0];
    return { source, ...generate(net, source, most, samplerOf({ temperature, topK, seed })) };
  });
  const traceOf = memoize((family, text, count, temperature, topK, seed, ...setup) => {
    const net = netOf(family, ...setup);
    const { source, tokens } = answerOf(
      family === "decoder" ? family : "both",
      text,
      temperature,
      topK,
      seed,
      ...setup,
    );
    if (family === "encoder") return encode(net, source);
    const trace = decode(net, source, tokens.slice(0, count));
    if (!temperature && !topK) return trace;
    const logits = trace["decoder.logits"];
    const values = byRow(logits, (row) => probsOf(row, { temperature, topK, seed }));
    return { ...trace, "decoder.probabilities": { ...logits, values } };
  });
  return (writing = null) => {
    const now = getTraits(model, TRAITS);
    const { text, family, part, at } = now;
    const missing = weights.at(now.checkpoint) ? "" : fetching[+weights.failed.has(now.checkpoint)];
    const checkpoint = missing ? last : now.checkpoint;
    // The current family may lack a part that was switched off in a different family.
    const setup = [checkpoint, ...now.off.filter((name) => switches[family].includes(name))];
    const net = netOf(family, ...setup);
    const chosen = [now.temperature, now.top_k, now.seed];
    const answer = answerOf(family === "decoder" ? family : "both", text, ...chosen, ...setup);
    const ended = answer.tokens.at(-1) === net.eos;
    const words = answer.tokens.slice(0, ended ? -1 : undefined).map((i) => net.target[i]);
    const wanted = why ? numberWords(Number(text), target.slice(target.indexOf("zero"))).join(" ") : "";
    const right = ended && words.join(" ") === wanted;
    const stops = walk(net.nLayers, family, answer.tokens.length);
    const step = clamp(model.get("step"), 0, stops.length);
    const stop = stops[step - 1];
    const count = stop ? stop.written : (writing ?? answer.tokens.length - 1);
    const ready = !stop || stop.lit.includes("decoder.softmax") ? count + 1 : 0; // visible tokens
    const trace = traceOf(family, text, count, ...chosen, ...setup);
    const given = [...(net.bos === null ? [] : [net.bos]), ...answer.tokens.slice(0, count)];
    const ids = { encoder: answer.source, decoder: [...(family === "decoder" ? answer.source : []), ...given] };
    const names = {
      encoder: ids.encoder.map((i) => net.source[i]),
      decoder: ids.decoder.map((i) => net.target[i]),
    };
    const exists = (id) => {
      const { side, layer, of } = placeOf(id);
      if (["d_model", "vocab"].includes(trace[id]?.axes[1])) return true;
      return PLACES.test(id) && Boolean(trace[layer === null ? `${side}.input` : `${side}.${layer}.${of}.output`]);
    };
    return {
      model: net,
      text,
      family,
      answer,
      words,
      wanted,
      right,
      sure: answer.probabilities.reduce((a, p) => a * p, 1),
      stops,
      step,
      stop,
      count,
      ready,
      trace,
      ids,
      names,
      at,
      exists,
      part: exists(part) ? part : "",
      checkpoint,
      missing,
      sampling: { temperature: now.temperature, topK: now.top_k, seed: now.seed },
    };
  };
}

// Returns the initial selection when a place is opened; in the decoder, the row of the next token.
/** @type {(state: State, part: string, written?: number) => number[]} */
export function startCell({ at, ids, count }, part, written = count) {
  const row = placeOf(part).side === "decoder" ? ids.decoder.length - 1 - count + written : at[1];
  return [at[0], row, startCol(part, at[2])];
}
