// The settings of the budget lab that have names: presets, the initial state, and pasted configurations.

import { parseConfig } from "./budget_config.js";
import { costs, total } from "./budget_counts.js";
import { same } from "./budget_settings.js";
import { compact } from "./budget_words.js";

/** @typedef {import("./budget_counts.js").Shape} Shape */
/** @typedef {import("./budget_settings.js").Setting} Setting */
/** @typedef {import("./budget_settings.js").State} State */
/** @typedef {import("./budget_settings.js").Known} Known */
/** @typedef {import("./budget_settings.js").World} World */

// The presets, and the initial state unless it is a preset.
/** @type {(presets: any[], start: State) => Known[]} */
export function known(presets, start) {
  const named = presets.map((preset) => ({ ...preset, ...preset.setting }));
  return named.some((each) => same(each, start)) ? named : [{ ...start, key: "start", name: "the start" }, ...named];
}

// A setting with the pasted configuration and with this context, batch and format.
/** @type {(text: string, world: World, setting: Setting, key: string) => Known | undefined} */
export function pasted(text, { tables, limits }, { seq, batch, bytes_per_value }, key) {
  const { shape, type } = (text && parseConfig(text, tables, limits).value) || {};
  if (!shape) return undefined;
  const setting = { shape, seq, batch, bytes_per_value };
  return { ...setting, key, name: `${type}, ${compact(total(costs(setting).parameters))}` };
}
/** @type {(shape: Shape) => number} The initial context of a model. */
export const contextOf = (shape) => shape.n_positions ?? 512;

// Finds a named setting: a preset, the initial state, or a pasted configuration. A pasted base uses the lab's context.
/** @type {(world: World, key: string, state?: State) => Known | undefined} */
export function find(world, key, state) {
  if (state && key === "other") return pasted(state.base_config, world, state, key);
  if (state && key === "config") {
    const found = pasted(state.config, world, { ...state, batch: 1, bytes_per_value: 4 }, key);
    return found && { ...found, seq: contextOf(found.shape) };
  }
  return world.all.find((each) => each.key === key || (key === "start" && same(each, world.start)));
}
