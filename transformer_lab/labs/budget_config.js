// Converts a published config.json to the fields of a ModelShape, by the rules in config_models.py and with the error
// messages of config.py. All integers are BigInts here.

import { formatValue, parseJson, pythonLiteral } from "./budget_json.js";

/**
 * The tables that Python sends: the model types with their rules; the keys that change no count; the classes that are
 * counted; the fields of a ModelShape; and the options of each family.
 * @typedef {Record<string, any>} Tables
 */
/** @typedef {import("./budget_counts.js").Shape} Shape */

const equal = (a, b) => pythonLiteral(a) === pythonLiteral(b);
const isDict = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const endsIn = (text, ends) => ends.some((end) => text.endsWith(end));
const alternatives = (values) => values.map((each) => pythonLiteral(each)).join(" or ");

class CannotCount extends Error {}
function fail(message) {
  throw new CannotCount(message);
}
const refuse = (key, value, rule) => fail(`config's ${key} must be ${rule}, got ${formatValue(value)}`);

const READERS = {
  size: ({ field, more = 0n, least = 1n, null: mayBeNull }, key, value) => {
    if (value === null && mayBeNull) return {};
    if (typeof value !== "bigint" || value < least) refuse(key, value, `an integer, at least ${least}`);
    return { [field]: value + more };
  },
  switch: ({ on, off = {} }, key, value) => {
    if (typeof value !== "boolean") refuse(key, value, "true or false");
    return value ? on : off;
  },
  only: ({ values }, key, value) => {
    if (!values.some((each) => equal(each, value))) refuse(key, value, `${alternatives(values)} to be counted`);
    return {};
  },
  noted: () => ({}),
  gate: (_, key, value) => {
    if (!isText(value) || value.startsWith("gated") !== value.startsWith("gated-")) {
      refuse(key, value, "the name of an activation, such as 'relu' or 'gated-gelu'");
    }
    return { gated: value.startsWith("gated-") };
  },
  layers: ({ local, full }, key, value) => {
    if (value === null) return {};
    if (!Array.isArray(value) || !value.every((each) => each === local || each === full)) {
      refuse(key, value, `a list of ${pythonLiteral(local)} and ${pythonLiteral(full)}`);
    }
    return layersNamed(key, value.length, value.filter((each) => each === local).length);
  },
  "layers repeated": ({ local, full }, key, value) => {
    const isValid = (pair) =>
      Array.isArray(pair) &&
      pair.length === 2 &&
      Array.isArray(pair[0]) &&
      typeof pair[1] === "bigint" &&
      pair[0].every((each) => each === local || each === full);
    if (!Array.isArray(value) || !value.every(isValid)) {
      const names = `a list of ${pythonLiteral(local)} and ${pythonLiteral(full)}`;
      refuse(key, value, `pairs: ${names}, and how often it repeats`);
    }
    const total = (count) => value.reduce((sum, [names, times]) => sum + count(names) * Math.max(0, Number(times)), 0);
    return layersNamed(
      key,
      total((names) => names.length),
      total((names) => names.filter((each) => each === local).length),
    );
  },
  inside: ({ known, neutral }, key, value, tables) => {
    if (!isDict(value)) refuse(key, value, "a dict");
    for (const [name, found] of Object.entries(value)) {
      const has = Object.hasOwn(known, name);
      if (neutral.includes(name) || tables.neutral.includes(name) || (has && equal(found, known[name]))) continue;
      refuse(`${key}.${name}`, found, has ? pythonLiteral(known[name]) : "left out to be counted");
    }
    return {};
  },
};
const layersNamed = (key, all, local) => ({ n_window_layers: BigInt(local), named_layers: [key, BigInt(all)] });

// Converts the integers in a nested value to BigInts, as in a parsed configuration, or back to Numbers.
const mapDeep = (change) => (value) => {
  if (Array.isArray(value)) return value.map(mapDeep(change));
  if (isDict(value))
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapDeep(change)(each)]));
  return change(value);
};
/** @type {(value: any) => any} */
export const withBigInts = mapDeep((value) => (typeof value === "number" ? BigInt(value) : value));
const withNumbers = mapDeep((value) => (typeof value === "bigint" ? Number(value) : value));

// Returns the values of a configuration, with each alias replaced by the key that the rules use.
function unalias(config, names) {
  const aliases = names ?? {};
  const found = {};
  for (const [key, value] of Object.entries(config)) {
    const name = Object.hasOwn(aliases, key) ? aliases[key] : key;
    if (!Object.hasOwn(found, name)) found[name] = value;
    if (equal(found[name], value)) continue;
    fail(`config's ${key} and ${name} must be the same, got ${formatValue(value)} and ${formatValue(found[name])}`);
  }
  return found;
}

const lettersOf = (name) => name.replace(/[_-]/g, "").toLowerCase();

// Raises an error for custom code, unless its classes are the known classes of the model type.
function requireOwnCode(code, type) {
  if (code === null) return;
  if (!isDict(code)) refuse("auto_map", code, "a dict");
  for (const [key, value] of Object.entries(code)) {
    const isKnown = isText(value) && lettersOf(value.split(".").at(-1)).startsWith(lettersOf(type));
    if (!key.startsWith("AutoModel") || isKnown) continue;
    refuse(`auto_map.${key}`, value, `a class of model_type '${type}': other code may count differently`);
  }
}

// Raises an error for a model whose head is not the head that the lab counts.
function requireClasses(names, tied, { counted, alone }) {
  if (names === null) return;
  if (!Array.isArray(names) || !names.every(isText)) refuse("architectures", names, "a list of names");
  if (!names.length || names.some((name) => endsIn(name, counted))) return;
  const isAlone = names.some((name) => endsIn(name, alone));
  if (isAlone && tied !== false) return;
  const when = isAlone ? "where the head is not tied" : "to be counted";
  refuse("architectures", names, `a name that ends in ${counted.join(" or ")} ${when}`);
}

// The fields of a ModelShape that a configuration sets, and the key from which each field comes.
function shapeFields(config, tables) {
  if (!isDict(config)) fail("config must be a dict, which begins with {");
  const type = config.model_type;
  if (type === undefined) fail("config has no model_type: the key that names the architecture, such as 'llama'");
  if (!isText(type) || !Object.hasOwn(tables.models, type)) {
    refuse("model_type", type, `one of ${Object.keys(tables.models).sort().join(", ")}`);
  }
  const { family, fixed, keys, same: pairs, cases, aliases } = tables.models[type];
  const values = unalias(config, aliases);
  requireOwnCode(values.auto_map ?? null, type);
  for (const [key, value] of Object.entries(values)) {
    if (Object.hasOwn(keys, key) || [...tables.neutral, "architectures", "auto_map"].includes(key)) continue;
    const problem = `is not known for model_type '${type}', got ${formatValue(value)}`;
    fail(`config's ${key} ${problem}: leave it out if it changes no count`);
  }
  const ruleOf = (key) => tables.rules[Number(keys[key])];
  const valueOfKey = (key) => (Object.hasOwn(values, key) ? values[key] : ruleOf(key).default);
  const fields = { family, ...fixed };
  const sources = {};
  for (const key of Object.keys(keys)) {
    if (valueOfKey(key) === undefined) fail(`config has no ${key}, which model_type '${type}' needs`);
    const read = READERS[ruleOf(key).read](ruleOf(key), key, valueOfKey(key), tables);
    for (const name of Object.keys(read)) sources[name] = key;
    Object.assign(fields, read, read.bias && { bias: [...(fields.bias ?? []), ...read.bias] });
  }
  for (const [first, second] of pairs) {
    if ((values[second] ?? null) === null || equal(values[first], values[second])) continue;
    refuse(second, values[second], `equal to ${first}, ${formatValue(values[first])}, to be counted`);
  }
  for (const [conditions, changes] of cases) {
    if (Object.entries(conditions).every(([key, value]) => equal(valueOfKey(key), value)))
      Object.assign(fields, changes);
  }
  requireClasses(values.architectures ?? null, fields.tied, tables.classes[family]);
  return { fields: withoutHelpers(fields), sources };
}

// Computes fields of a ModelShape from the auxiliary fields, and removes the auxiliary fields.
function withoutHelpers({ expansion, d_embedding_unless_equal, named_layers, d_head, ...rest }) {
  const { window: span, n_window_layers, uses_window = true, first_window_layer, full_every, ...fields } = rest;
  const { n_layers, d_model } = fields;
  if (expansion) fields.d_ff = expansion * d_model;
  if ((d_embedding_unless_equal ?? d_model) !== d_model) fields.d_embedding = d_embedding_unless_equal;
  const [key, count] = named_layers ?? ["", n_layers];
  if (count !== n_layers) fail(`config's ${key} must name ${n_layers} layers, got ${count}`);
  if (d_head && d_head * fields.n_heads !== d_model) fields.d_head = d_head;
  if (!uses_window && n_window_layers) {
    refuse("use_sliding_window", false, "true where layer_types has sliding_attention");
  }
  if (span === undefined && n_window_layers) {
    fail("config's sliding_window must be an integer where layer_types has sliding_attention");
  }
  if (!uses_window || span === undefined || n_window_layers === 0n) return fields;
  let local = n_window_layers;
  if (first_window_layer !== undefined) local ??= n_layers > first_window_layer ? n_layers - first_window_layer : 0n;
  else if (full_every !== undefined) local ??= n_layers - n_layers / full_every;
  return local === 0n
    ? fields
    : { ...fields, window: span, ...(local === undefined ? {} : { n_window_layers: local }) };
}

// Returns the shape with these fields, completed and validated as in Python's ModelShape.
function shapeWith(fields, sources, tables) {
  const { family } = fields;
  const defaults = tables.families[family];
  const shape = { ...Object.fromEntries(tables.fields.map((name) => [name, null])), ...fields };
  for (const name of tables.always) shape[name] ??= defaults[name] ?? null;
  const keyOf = (name) => sources[name] ?? name;
  const failLimit = (name, limit) =>
    fail(
      `config cannot be counted: ${keyOf(name)} must ${limit} ${keyOf(LIMITED_BY[name])}, got ${keyOf(name)} ` +
        `${shape[name]} and ${keyOf(LIMITED_BY[name])} ${shape[LIMITED_BY[name]]}`,
    );
  if (shape.d_head === null && shape.d_model % shape.n_heads) failLimit("n_heads", "divide");
  if (shape.n_kv_heads !== null && shape.n_heads % shape.n_kv_heads) failLimit("n_kv_heads", "divide");
  if (shape.window === 0n) fail(`config cannot be counted: ${keyOf("window")} must be at least 1, got 0`);
  if (shape.experts_per_token > (shape.n_experts ?? 0n)) failLimit("experts_per_token", "be at most");
  shape.d_ff ??= shape.gated ? (8n * shape.d_model) / 3n : 4n * shape.d_model;
  const biases = tables.places.filter((place) => shape.bias?.includes(place));
  const usual = tables.places.slice(0, -1);
  shape.bias = shape.bias === null ? family !== "llama" : equal(biases, usual) ? true : biases.length ? biases : false;
  for (const [name, value] of Object.entries(defaults)) {
    if (!tables.own.includes(name) && !tables.always.includes(name) && shape[name] === value) shape[name] = null;
  }
  return shape;
}
const LIMITED_BY = { n_heads: "d_model", n_kv_heads: "n_heads", experts_per_token: "n_experts" };

// Raises an error for a field outside the lab's limits. The error names the key from which the field comes.
const DEFAULT_RANGE = [0, 2 ** 20];
function requireLimits(shape, sources, limits) {
  for (const [name, size] of Object.entries(shape)) {
    const [least, most] = limits[name] ?? DEFAULT_RANGE;
    if (typeof size !== "bigint") continue;
    if (size < least || size > most) {
      fail(`config's ${sources[name] ?? name} must be from ${least} to ${most} in this lab, got ${size}`);
    }
  }
}

// The keys of a configuration that affect the shape, as JSON: a configuration of the same shape, short enough for a
// link.
function shrink(config, tables) {
  const { keys, same: pairs, cases, aliases } = tables.models[config.model_type];
  const values = unalias(config, aliases);
  const conditionKeys = [...pairs.map(([, second]) => second), ...cases.flatMap(([when]) => Object.keys(when))];
  const isNeeded = ([key, value]) => {
    const rule = Object.hasOwn(keys, key) ? tables.rules[Number(keys[key])] : { read: "noted" };
    if (rule.read === "inside" || (rule.read === "noted" && !conditionKeys.includes(key))) return false;
    return rule.default === undefined || !equal(value, rule.default);
  };
  const kept = Object.fromEntries([["model_type", config.model_type], ...Object.entries(values).filter(isNeeded)]);
  return JSON.stringify(withNumbers(kept));
}

// Parses a pasted config.json: returns its shape and the JSON of the keys that affect the shape, or an error. An empty
// text means that there is no model.
/**
 * @type {(text: string, tables: Tables, limits: Record<string, [number, number]>) =>
 *   { value?: { shape: Shape, type: string } | null, text?: string, error?: string }}
 */
export function parseConfig(text, tables, limits) {
  if (!text.trim()) return { value: null, text: "" };
  const { value: config, error } = parseJson(text);
  if (error) return { error };
  try {
    const { fields, sources } = shapeFields(config, tables);
    const shape = shapeWith(fields, sources, tables);
    requireLimits(shape, sources, limits);
    if (shape.family === "llama") shape.n_kv_heads ??= shape.n_heads; // the slider for heads sets both fields
    return { value: { shape: withNumbers(shape), type: config.model_type }, text: shrink(config, tables) };
  } catch (problem) {
    if (problem instanceof CannotCount) return { error: problem.message };
    throw problem;
  }
}
