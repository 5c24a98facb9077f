// The settings of the budget lab: the values of each slider, and the effect of moving a slider.

import { clamp, divisors, range } from "./maths.js";

/** @typedef {import("./budget_counts.js").Shape} Shape */
/** @typedef {import("./budget_counts.js").Setting} Setting */
/**
 * A setting with the base of the comparison, the table that is shown, and the pasted configurations.
 * @typedef {Setting & { base: string, quantity: string, config: string, base_config: string }} State
 */
/** @typedef {Record<string, [number, number]>} Limits The smallest and largest valid value of each number. */
/**
 * A named setting. A preset also has its name in the package, and its published parameter counts.
 * @typedef {Setting & { key: string, name: string, code?: string, published?: number, paper?: string }} NamedSetting
 */
/**
 * The presets and the widest of their names, the initial state, the limits, and the rules for reading a configuration.
 * @typedef {{ models: NamedSetting[], widestName?: string, start: State, limits: Limits,
 *   tables: import("./budget_config.js").Tables }} LabData
 */

export const SHAPE_KEYS = ["n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "n_positions"];
// These two numbers change with n_heads and n_layers, and have no sliders of their own. n_kv_heads is null if heads
// share no keys; n_window_layers is null if no layer has a window, or if every layer has one.
export const LINKED_KEYS = ["n_kv_heads", "n_window_layers"];
const NUMBERS = [...SHAPE_KEYS, ...LINKED_KEYS];
const RUN_KEYS = ["seq", "batch", "bytes_per_value"];
export const SLIDERS = [...SHAPE_KEYS, "seq", "batch"];

/** @type {(setting: Setting, name: string) => any} */
export const read = (setting, name) => (NUMBERS.includes(name) ? setting.shape : setting)[name];
/** @type {<T extends Setting>(setting: T, name: string, value: any) => T} */
export const write = (setting, name, value) =>
  NUMBERS.includes(name) ? { ...setting, shape: { ...setting.shape, [name]: value } } : { ...setting, [name]: value };

/** @type {(a: Shape, b: Shape) => boolean} */
export const sameShape = (a, b) => Object.keys(a).every((name) => sameOption(a, b, name));
const sameOption = (a, b, name) => String(a[name]) === String(b[name]); // bias may be a list, so === does not suffice
/** @type {(a: Shape, b: Shape) => boolean} */
export const sameOptions = (a, b) =>
  optionsOf(a).every((name) => sameOption(a, b, name)) &&
  NUMBERS.every((name) => (a[name] === null) === (b[name] === null));
/** @type {(a: Setting, b: Setting) => boolean} */
export const isSame = (a, b) => sameShape(a.shape, b.shape) && RUN_KEYS.every((name) => a[name] === b[name]);
// The names of the numbers in which two settings differ, and the fields of a shape that no slider changes.
/** @type {(a: Setting, b: Setting) => string[]} */
export const changedKeys = (a, b) => [...NUMBERS, ...RUN_KEYS].filter((name) => read(a, name) !== read(b, name));
/** @type {(shape: Shape) => string[]} */
const optionsOf = (shape) => Object.keys(shape).filter((name) => !NUMBERS.includes(name));

// Returns round numbers, with `parts` numbers in each doubling.
function doublings(least, most, parts) {
  const numbers = [];
  for (let power = least; power < most; power *= 2) {
    numbers.push(...range(parts, power, power / parts).filter(Number.isInteger));
  }
  return [...numbers, most];
}

const GRIDS = {
  n_layers: (most) => range(most, 1),
  d_model: (most) => range(most / 64, 64, 64),
  vocab_size: (most) => doublings(256, most, 8),
  n_positions: (most) => doublings(16, most, 8),
  seq: (most) => doublings(16, most, 8),
  batch: (most) => doublings(1, most, 2),
};

// The values that a slider offers: a grid, the current value, and the values in the other settings.
/** @type {(name: string, setting: Setting, limits: Limits, others?: Setting[]) => number[]} */
export function sliderValues(name, setting, limits, others = []) {
  const { d_model, d_ff, d_head, n_heads } = setting.shape;
  const most = limits[name][1];
  if (name === "n_heads") return d_head ? range(Math.max(128, n_heads), 1) : divisors(d_model);
  if (read(setting, name) === null) return [];
  const grid = name === "d_ff" ? range(16, 1).map((halves) => (halves * d_model) / 2) : GRIDS[name](most);
  const current = name === "d_ff" ? [d_ff] : [setting, ...others].map((each) => read(each, name));
  const valid = [...grid, ...current].filter((value) => Number.isInteger(value) && value <= most);
  return [...new Set(valid)].sort((a, b) => a - b);
}

// Returns the divisor of a number for which divisor / target is closest to 1.
function nearestDivisor(number, target) {
  const error = (divisor) => Math.abs(Math.log(divisor / target));
  return divisors(number).reduce((best, divisor) => (error(divisor) < error(best) ? divisor : best));
}

// Sets n_kv_heads so that the group size stays as close as possible to the group size in `anchor`.
function withGroups(setting, anchor) {
  const { n_heads, n_kv_heads } = setting.shape;
  if (n_kv_heads === null) return setting;
  return write(setting, "n_kv_heads", nearestDivisor(n_heads, (n_heads * anchor.n_kv_heads) / anchor.n_heads));
}

// Keeps the fraction of layers with a window.
function withWindows(setting, anchor) {
  const { n_layers, n_window_layers } = setting.shape;
  if (n_window_layers === null) return setting;
  const count = Math.round((n_layers * anchor.n_window_layers) / anchor.n_layers);
  return write(setting, "n_window_layers", clamp(count, 0, n_layers));
}

// Returns the setting after one slider has moved. When d_model changes, d_ff keeps its ratio to d_model in `anchor`,
// and heads keep their width, or get the nearest width that divides d_model. If the head size is set independently, the
// number of heads does not change.
/** @type {<T extends Setting>(setting: T, name: string, value: number, limits: Limits, anchor?: Shape) => T} */
export function changeSetting(setting, name, value, limits, anchor = setting.shape) {
  const next = write(setting, name, value);
  if (name === "n_layers") return withWindows(next, anchor);
  if (name === "n_heads") return withGroups(next, anchor);
  if (name !== "d_model") return next;
  const d_ff = clamp(Math.round((anchor.d_ff * value) / anchor.d_model), 1, limits.d_ff[1]);
  if (anchor.d_head) return write(next, "d_ff", d_ff);
  const n_heads = nearestDivisor(value, (value * anchor.n_heads) / anchor.d_model);
  return withGroups({ ...next, shape: { ...next.shape, n_heads, d_ff } }, anchor);
}
