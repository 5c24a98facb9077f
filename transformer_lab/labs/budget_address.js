// The budget lab's state as text: in a URL, a preset and the differences from it, gpt2.n_layers-24.seq-2048; and as
// Python code.

import { quotedStart } from "./address.js";
import { QUANTITIES } from "./budget_counts.js";
import { changedIn, find, OF_SHAPE, optionsOf, read, same, sameShape, write } from "./budget_settings.js";
import { grouped } from "./words.js";

/** @typedef {import("./budget_settings.js").State} State */
/** @typedef {import("./budget_settings.js").World} World */

const WORDS = { bytes_per_value: "bytes", base: "against", quantity: "show" };

// A state as text, or null for the initial state.
/** @type {(state: State, world: World) => string | null} */
export function encode(state, { all, start }) {
  if (same(state, start) && state.base === start.base && state.quantity === start.quantity) return null;
  const near = all.filter(({ shape }) => optionsOf(shape).every((name) => shape[name] === state.shape[name]));
  const far = (from) => changedIn(from, state).length;
  const from = near.reduce((best, each) => (far(each) < far(best) ? each : best), near[0] ?? all[0]);
  const parts = changedIn(from, state).map((name) => `${WORDS[name] ?? name}-${read(state, name)}`);
  if (state.base !== from.key) parts.push(`against-${state.base}`);
  if (state.quantity !== "parameters") parts.push(`show-${state.quantity}`);
  return [from.key, ...parts].join(".");
}

// Parses a state: {state}, or {error}.
/** @type {(text: string, world: World) => { state?: State, error?: string }} */
export function decode(text, world) {
  const [key, ...parts] = text.split(".");
  const from = find(world, key);
  if (!from) return { error: `it names the model ${quotedStart(key)}, which this lab does not know` };
  const { shape, seq, batch, bytes_per_value } = from;
  let state = { shape, seq, batch, bytes_per_value, base: from.key, quantity: "parameters" };
  for (const part of parts) {
    const found = decodePart(part, state, world);
    if (found.error) return found;
    state = found.state;
  }
  const { d_model, n_heads, n_kv_heads } = state.shape;
  if (d_model % n_heads) return { error: `${n_heads} heads cannot share its d_model ${d_model}` };
  return n_heads % (n_kv_heads ?? 1) ? { error: `${n_heads} heads cannot share ${n_kv_heads} of keys` } : { state };
}

function decodePart(part, state, world) {
  const [, word, value] = /^([a-z_]+)-(.+)$/.exec(part) ?? [];
  const name = Object.keys(WORDS).find((each) => WORDS[each] === word) ?? word;
  if (name === "base") {
    if (find(world, value)) return { state: { ...state, base: value } };
    return { error: `it compares with ${quotedStart(value)}, which this lab does not know` };
  }
  if (name === "quantity") {
    if (Object.hasOwn(QUANTITIES, value)) return { state: { ...state, quantity: value } };
    return { error: `it asks to show ${quotedStart(value)}, which this lab does not list` };
  }
  const unknown = word === "bytes_per_value" || !Object.hasOwn(world.limits, name ?? "");
  if (unknown || (name === "n_kv_heads" && state.shape.family !== "llama")) {
    return { error: `${quotedStart(part)} in it says nothing to this lab` };
  }
  const [least, most] = world.limits[name];
  const number = /^\d{1,9}$/.test(value) ? Number(value) : NaN;
  if (number >= least && number <= most && !(word === "bytes" && number === 3)) {
    return { state: write(state, name, number) };
  }
  const fits = word === "bytes" ? "2 or 4" : `a whole number from ${least} to ${grouped(most)}`;
  return { error: `its ${word} is ${quotedStart(value)}, where ${fits} can stand` };
}

// The state as Python code.
/** @type {(state: State, all: import("./budget_settings.js").Known[]) => string} */
export function pythonCode(state, all) {
  const { shape } = state;
  const preset = all.find((each) => each.code && sameShape(each.shape, shape));
  const optional = { n_segments: 2, pooler: true, tied: true, final_norm: null, gated: true };
  const literal = (value) => (value === true ? "True" : value === false ? "False" : value === null ? "None" : value);
  const usual = { ...optional, n_kv_heads: null, bias: shape.family !== "llama" };
  const names = [...OF_SHAPE, ...Object.keys(usual).filter((name) => ![null, usual[name]].includes(shape[name]))];
  const named = names.map((name) => `${name}=${literal(shape[name])}`);
  const parts = [preset ? `tl.${preset.code}` : `tl.ModelShape("${shape.family}", ${named.join(", ")})`];
  if (state.seq !== shape.n_positions) parts.push(`seq=${state.seq}`);
  if (state.batch !== 1) parts.push(`batch=${state.batch}`);
  if (state.bytes_per_value !== 4) parts.push(`bytes_per_value=${state.bytes_per_value}`);
  const itself = all.find((each) => each.code && same(each, state));
  if (state.base !== "start" && state.base !== itself?.key) parts.push(`base="${state.base}"`);
  if (state.quantity !== "parameters") parts.push(`quantity="${state.quantity}"`);
  return `tl.labs.BudgetLab(${parts.join(", ")})`;
}
