// The settings of the budget lab that have names: presets, the initial state, and pasted configurations.

import { parseConfig } from "./budget_config.js";
import { costs, total } from "./budget_counts.js";
import { isSame } from "./budget_settings.js";
import { compact } from "./budget_words.js";

/** @typedef {import("./budget_counts.js").Shape} Shape */
/** @typedef {import("./budget_settings.js").Setting} Setting */
/** @typedef {import("./budget_settings.js").State} State */
/** @typedef {import("./budget_settings.js").NamedSetting} NamedSetting */
/** @typedef {import("./budget_settings.js").LabData} LabData */

// The presets, and the initial state unless it is a preset.
/** @type {(presets: any[], start: State) => NamedSetting[]} */
export function withStart(presets, start) {
  const models = presets.map((preset) => ({ ...preset, ...preset.setting }));
  return models.some((each) => isSame(each, start))
    ? models
    : [{ ...start, key: "start", name: "the initial state" }, ...models];
}

// Returns a setting with the shape of a pasted configuration, and with the context, batch and bytes of `setting`.
/** @type {(text: string, data: LabData, setting: Setting, key: string) => NamedSetting | undefined} */
export function pastedSetting(text, { tables, limits }, { seq, batch, bytes_per_value }, key) {
  const { shape, type } = (text && parseConfig(text, tables, limits).value) || {};
  if (!shape) return undefined;
  const setting = { shape, seq, batch, bytes_per_value };
  return { ...setting, key, name: `${type}, ${compact(total(costs(setting).parameters))}` };
}
/** @type {(shape: Shape) => number} The initial context of a model. */
export const contextOf = (shape) => shape.n_positions ?? 512;

// Finds a named setting: a preset, the initial state, or a pasted configuration. If the
// base of the comparison is a pasted configuration, it has the lab's context.
/** @type {(data: LabData, key: string, state?: State) => NamedSetting | undefined} */
export function find(data, key, state) {
  if (state && key === "other") return pastedSetting(state.base_config, data, state, key);
  if (state && key === "config") {
    const setting = pastedSetting(state.config, data, { ...state, batch: 1, bytes_per_value: 4 }, key);
    return setting && { ...setting, seq: contextOf(setting.shape) };
  }
  return data.models.find((each) => each.key === key || (key === "start" && isSame(each, data.start)));
}
