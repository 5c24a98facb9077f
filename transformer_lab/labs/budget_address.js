// The budget lab's state as text: in a URL, a preset and the differences from that preset, as in
// gpt2.n_layers-24.seq-2048; in a notebook, Python code.

import { quotedStart } from "./address.js";
import { QUANTITIES } from "./budget_counts.js";
import { parseConfig } from "./budget_config.js";
import { parseJson, pythonLiteral } from "./budget_json.js";
import {
  changedKeys,
  LINKED_KEYS,
  isSame,
  SHAPE_KEYS,
  read,
  sameOptions,
  sameShape,
  write,
} from "./budget_settings.js";
import { contextOf, find } from "./budget_known.js";
import { grouped } from "./words.js";

/** @typedef {import("./budget_settings.js").State} State */
/** @typedef {import("./budget_settings.js").LabData} LabData */

const ALIASES = { bytes_per_value: "bytes", base: "against", quantity: "show" };

// Returns a state as text, or null for the initial state.
/** @type {(state: State, data: LabData) => string | null} */
export function encode(state, data) {
  const { models, start } = data;
  if (isSame(state, start) && state.base === start.base && state.quantity === start.quantity) return null;
  const bases = [...models, find(data, "config", state)].filter((each) => each && sameOptions(each.shape, state.shape));
  const diff = (from) => changedKeys(from, state).length;
  const from = bases.reduce((a, b) => (diff(b) < diff(a) ? b : a), bases[0] ?? models[0]);
  const parts = changedKeys(from, state).map((name) => `${ALIASES[name] ?? name}-${read(state, name)}`);
  if (state.base !== from.key) parts.push(`against-${state.base}`);
  if (state.quantity !== "parameters") parts.push(`show-${state.quantity}`);
  return [from.key, ...parts].join(".");
}

// Returns the whole state as query parameters: one for each pasted configuration, and one for all other settings.
const PASTED = { config: "config", base_config: "other" };
/** @type {(state: State, data: LabData) => Record<string, string>} */
export function encodeAll(state, data) {
  const text = encode(state, data);
  const texts = Object.entries(PASTED).map(([name, word]) => [
    word,
    state[name] === data.start[name] ? "" : state[name],
  ]);
  return Object.fromEntries([["", text ?? ""], ...texts].filter(([, each]) => each));
}
/** @type {(texts: Record<string, string>, data: LabData) => { state?: any, error?: string }} */
export function decodeAll(texts, data) {
  const params = data.tables.models ? Object.values(PASTED) : [];
  const unknown = Object.keys(texts).find((word) => word && !params.includes(word));
  if (unknown) return { error: `${quotedStart(unknown)} is not a setting of this lab` };
  const configs = {};
  for (const [name, word] of Object.entries(PASTED)) {
    const { text, error } = parseConfig(texts[word] ?? data.start[name], data.tables, data.limits);
    if (error) return { error: `${word} cannot be read: ${error}` };
    configs[name] = text;
  }
  if (texts[""] === undefined) return { state: configs };
  const { state, error } = decode(texts[""], data, configs);
  return error ? { error } : { state };
}

// Parses a state: returns {state} or {error}.
/** @type {(text: string, data: LabData, configs?: any) => { state?: any, error?: string }} */
export function decode(text, data, configs = { config: "", base_config: "" }) {
  const [key, ...parts] = text.split(".");
  const from = key === "other" ? undefined : find(data, key, { ...data.start, ...configs });
  if (!from) return { error: `it names the model ${quotedStart(key)}, which this lab does not know` };
  const { shape, seq, batch, bytes_per_value } = from;
  let state = { shape, seq, batch, bytes_per_value, base: from.key, quantity: "parameters", ...configs };
  for (const part of parts) {
    const decoded = decodePart(part, state, data, configs);
    if (decoded.error) return decoded;
    state = decoded.state;
  }
  const { d_model, n_heads, n_kv_heads, d_head, n_layers, n_window_layers } = state.shape;
  if (n_window_layers > n_layers) return { error: `it has windows in ${n_window_layers} of ${n_layers} layers` };
  if (!d_head && d_model % n_heads) return { error: `d_model ${d_model} is not a multiple of ${n_heads}` };
  return n_heads % (n_kv_heads ?? 1) ? { error: `${n_heads} heads cannot share ${n_kv_heads} key heads` } : { state };
}

function decodePart(part, state, data, configs) {
  const [, word, value] = /^([a-z_]+)-(.+)$/.exec(part) ?? [];
  const name = Object.keys(ALIASES).find((each) => ALIASES[each] === word) ?? word;
  if (name === "base") {
    if (value !== "config" && find(data, value, { ...data.start, ...configs }))
      return { state: { ...state, base: value } };
    return { error: `it compares with ${quotedStart(value)}, which this lab does not know` };
  }
  if (name === "quantity") {
    if (Object.hasOwn(QUANTITIES, value)) return { state: { ...state, quantity: value } };
    return { error: `it asks to show ${quotedStart(value)}, which this lab does not list` };
  }
  const unknown = word === "bytes_per_value" || !Object.hasOwn(data.limits, name ?? "");
  const nullable = LINKED_KEYS.includes(name) || name === "n_positions";
  if (unknown || (nullable && state.shape[name] === null)) {
    return { error: `${quotedStart(part)} is not a setting of this lab` };
  }
  const [least, most] = data.limits[name];
  const number = /^\d{1,9}$/.test(value) ? Number(value) : NaN;
  if (number >= least && number <= most && !(word === "bytes" && number === 3)) {
    return { state: write(state, name, number) };
  }
  const expected = word === "bytes" ? "2 or 4" : `a whole number from ${least} to ${grouped(most)}`;
  return { error: `${word} is ${quotedStart(value)}, but must be ${expected}` };
}

// Returns the state as Python code.
/** @type {(state: State, models: import("./budget_settings.js").NamedSetting[]) => string} */
export function pythonCode(state, models) {
  const { shape } = state;
  const preset = models.find((each) => each.code && sameShape(each.shape, shape));
  const python = (value) => pythonLiteral(typeof value === "number" ? BigInt(value) : value);
  const defaults = {
    n_segments: 2,
    pooler: true,
    tied: true,
    gated: shape.family === "llama",
    bias: shape.family !== "llama",
  };
  const first = SHAPE_KEYS.filter((name) => shape[name] !== null);
  const rest = Object.keys(shape).filter((name) => name !== "family" && !SHAPE_KEYS.includes(name));
  const names = [...first, ...rest.filter((name) => ![null, defaults[name]].includes(shape[name]))];
  const named = names.map((name) => `${name}=${python(shape[name])}`);
  const parts = [preset ? `tl.${preset.code}` : `tl.ModelShape("${shape.family}", ${named.join(", ")})`];
  if (state.seq !== contextOf(shape)) parts.push(`seq=${state.seq}`);
  if (state.batch !== 1) parts.push(`batch=${state.batch}`);
  if (state.bytes_per_value !== 4) parts.push(`bytes_per_value=${state.bytes_per_value}`);
  const itself = models.find((each) => each.code && isSame(each, state));
  if (state.base === "other") parts.push(`base=${pythonLiteral(parseJson(state.base_config).value)}`);
  else if (!["start", "config", itself?.key].includes(state.base)) parts.push(`base="${state.base}"`);
  if (state.quantity !== "parameters") parts.push(`quantity="${state.quantity}"`);
  return `tl.labs.BudgetLab(${parts.join(", ")})`;
}
