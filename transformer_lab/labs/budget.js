// The budget lab: the cost of a model of a given shape, in parameters, FLOPs and memory, and how the cost changes with
// the shape.

import { decodeAll, encodeAll, pythonCode } from "./budget_address.js";
import { parseConfig, withBigInts } from "./budget_config.js";
import { activeParameters, COMPONENTS, costs, dHead, dKv, isGated, isOwn } from "./budget_counts.js";
import { QUANTITIES, ruleOfThumb, total } from "./budget_counts.js";
import { changeSetting, sliderValues, isSame, SHAPE_KEYS, read, sameShape } from "./budget_settings.js";
import { contextOf, find, withStart } from "./budget_known.js";
import { SLIDERS } from "./budget_settings.js";
import { cacheText, compact, compactSigned, describe, equalContext, intro } from "./budget_words.js";
import { activeText, attentionCostText, baselineText, NO_CACHE, ruleText, share, signed } from "./budget_words.js";
import { times, trainingText, warningText, windowsText } from "./budget_words.js";
import { frame } from "./frame.js";
import { button, choice, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { CHIPS, parsedInput, setText, sliderWithInput, sortedByWidth, widest } from "./ui.js";
import { grouped, parseNumber, plural } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./budget_counts.js").Counts} Counts */
/** @typedef {import("./budget_settings.js").Setting} Setting */
/** @typedef {import("./budget_settings.js").State} State */
/** @typedef {import("./budget_settings.js").NamedSetting} NamedSetting */
/** @typedef {import("./budget_settings.js").LabData} LabData */
/** @typedef {Record<string, Counts>} Costs */
/** A setting, the base of the comparison, and the costs of both. */
/** @typedef {{ now: State, base: NamedSetting, cost: Costs, baseCost: Costs }} Compared */
/** @typedef {(name: string, value: number) => void} Change Moves one slider. */

const TRAITS = ["shape", "seq", "batch", "bytes_per_value", "base", "quantity", "config", "base_config"];
const LABELS = {
  n_layers: "Layers",
  d_model: "d_model",
  n_heads: "Heads",
  d_ff: "d_ff",
  vocab_size: "Vocabulary",
  n_positions: "Positions",
  seq: "Context, seq",
  batch: "Batch",
};

// The last change of each lab, shared by all views of the lab: the setting before and after the change.
const edits = new WeakMap();

// Controls to choose a preset and the base of the comparison.
/** @type {(model: Model, data: LabData) => any} */
function presetPanel(model, { models }) {
  const pick = (i) => {
    const { shape, seq, batch, bytes_per_value } = models[i];
    commit(model, { shape, seq, batch, bytes_per_value });
  };
  const presets = choice(
    "Start from",
    models.map((each, i) => [i, each.name]),
    pick,
    CHIPS,
  );
  const published = element("p");
  const other = element("option", { value: "other", hidden: true });
  const options = [...models.map((each) => element("option", { value: each.key }, each.name)), other];
  const props = { class: "tl-against", "aria-label": "Base of the comparison" };
  const against = element("select", { ...props, onchange: () => commit(model, { base: against.value }) }, options);
  const compare = element("label", { class: "tl-compare" }, "Thin bars, marks and changes refer to", against);
  const label = element("p", { class: "tl-label" }, "Start from");
  const nodes = [label, presets.node, reservedBox(published, "tl-note tl-published")];
  /** @type {(compared: Compared) => void} */
  const draw = ({ now, base }) => {
    presets.show(models.findIndex((each) => sameShape(each.shape, now.shape)));
    const isPasted = base.key === "other";
    set(other, { hidden: !now.base_config, disabled: !now.base_config });
    if (isPasted) setText(other, base.name);
    else setText(other, "what you pasted");
    against.value = base.key;
    setText(published, baselineText(base));
  };
  const reserveAll = () => reserveSpace(published, ...models.map(baselineText));
  return { nodes, compare, draw, reserveAll };
}

// A slider that offers a list of values, with a mark at the base's value. Other valid numbers can be typed.
/** @type {(name: string, data: LabData, change: Change, endDrag: () => void, getShape: () => any) => any} */
function shapeSlider(name, { models, start, limits }, change, endDrag, getShape) {
  const mark = element("span", { class: "tl-base-mark", "aria-hidden": "true" });
  const suffix = element("span", { class: "tl-code" });
  let values = [];
  let valuesKey = "";

  function parse(text) {
    const parsed = parseNumber(text, LABELS[name], limits[name]);
    const width = getShape().d_model;
    const isWrong = name === "n_heads" && !getShape().d_head && !parsed.error && width % parsed.value;
    return isWrong ? { error: `d_model ${grouped(width)} is not a multiple of ${grouped(parsed.value)}.` } : parsed;
  }
  /** @type {(value: number, shape: import("./budget_counts.js").Shape) => string} */
  function suffixOf(value, shape) {
    if (name === "n_heads") return `× ${grouped(dHead(shape))}`;
    return name === "d_ff" ? `(${Number((value / shape.d_model).toFixed(2))} ×)` : "";
  }
  const head = element("p", {}, `${LABELS[name]} `, reservedBox(suffix));
  const props = { onchange: endDrag };
  const maps = { positionOf: (value) => values.indexOf(value), valueAt: (i) => values[i] };
  const slider = sliderWithInput(
    LABELS[name],
    { ends: limits[name], head, marks: mark, parse, props, ...maps },
    (value) => {
      change(name, value);
      if (document.activeElement === slider.typed) endDrag();
    },
  );
  set(slider.node, { class: "tl-slider tl-setting" });
  const most = grouped(limits[name][1]);
  reserveSpace(suffix, { n_heads: `× ${most}`, d_ff: "(11.11 ×)" }[name] ?? "");

  // The base's position on the slider, interpolated between the positions of the two nearest values.
  function positionOf(baseN, last) {
    const above = values.findIndex((x) => x >= baseN);
    if (above < 0) return last;
    return above === 0 ? 0 : above - (values[above] - baseN) / (values[above] - values[above - 1]);
  }
  /** @type {(compared: Compared) => void} */
  function draw({ now, base }) {
    const n = read(now, name);
    set(slider.node, { hidden: n === null });
    if (n === null) return;
    const baseN = read(base, name) ?? n;
    const { d_model } = now.shape;
    if (valuesKey !== `${n} ${d_model}`) values = sliderValues(name, now, limits, [start, ...models]);
    valuesKey = `${n} ${d_model}`;
    const last = Math.max(values.length - 1, 1);
    set(slider.input, { min: 0, max: last, disabled: values.length < 2 });
    slider.show(n);
    setText(suffix, suffixOf(n, now.shape));
    const width = name === "n_heads" ? ` heads of ${plural(dHead(now.shape), "feature")}` : "";
    const other = n === baseN ? "" : `; ${base.name}: ${grouped(baseN)}`;
    set(slider.input, { "aria-valuetext": `${grouped(n)}${width}${other}` });
    set(mark, { style: `--at: ${(positionOf(baseN, last) / last).toFixed(4)}`, hidden: n === baseN });
  }
  return { draw, node: slider.node };
}

// All sliders, and the bytes per value.
/** @type {(model: Model, data: LabData, change: Change, endDrag: () => void, compare: HTMLElement) => any} */
function slidersPanel(model, data, change, endDrag, compare) {
  const getShape = () => model.get("shape");
  const sliders = SLIDERS.map((name) => shapeSlider(name, data, change, endDrag, getShape));
  const options = [
    [4, "4: float32"],
    [2, "2: half"],
  ];
  const formats = choice("Bytes per value", options, (bytes_per_value) => commit(model, { bytes_per_value }));
  const warning = element("p");
  const format = element("div", { class: "tl-setting" }, element("p", {}, "Bytes per value"), formats.node);
  const nodes = [
    element(
      "div",
      { class: "tl-settings tl-sticky" },
      sliders.map(({ node }) => node),
      format,
      compare,
    ),
    reservedBox(warning, "tl-note tl-warning"),
  ];
  /** @type {(compared: Compared) => void} */
  const draw = (compared) => {
    const { seq, shape, bytes_per_value } = compared.now;
    for (const slider of sliders) slider.draw(compared);
    formats.show(bytes_per_value);
    setText(warning, seq > (shape.n_positions ?? seq) ? warningText(seq, shape) : "");
  };
  const longest = (family) => warningText(data.limits.seq[1], { family, n_positions: data.limits.n_positions[1] });
  const reserveAll = () => reserveSpace(warning, longest("gpt2"), longest("llama"));
  return { nodes, draw, reserveAll };
}

const greyClass = (hue) => (hue === null ? " tl-grey" : "");
const percent = (part, whole) => `${Number(((100 * Number(part)) / Number(whole)).toFixed(2))}%`;

// One quantity as a bar divided into components, and a thin bar for the base below it.
/** @type {(quantity: string, widestName: string) => any} */
function costBar(quantity, widestName) {
  const { unit, name } = QUANTITIES[quantity];
  const [amount, delta] = [element("strong", {}), element("span", { class: "tl-by" })];
  const note = element("span");
  const aside = element("p", {}, note);
  const sums = element("span", {}, amount, " ", delta);
  const components = Object.entries(COMPONENTS[quantity]);
  const segments = (labels) =>
    components.map(([component, [, hue]]) => {
      const props = { class: `tl-piece${greyClass(hue)}`, style: `--hue: ${hue ?? 0}`, "data-name": component };
      return element("span", props, labels ? element("span", {}, component) : []);
    });
  const stack = element("div", { class: "tl-stack", role: "img" }, segments(true));
  const baseBar = element("div", { class: "tl-stack tl-shadow", "aria-hidden": "true" }, segments(false));
  const head = element("p", { class: "tl-cost-head" }, element("span", {}, name), reservedBox(sums, "tl-sums"));
  // A line below the bar names the component under the pointer: most segments are too narrow for a name.
  let message = "";
  let shown = null;
  const hover = ({ target }) => {
    const component = target.closest(".tl-piece")?.dataset.name;
    if (!component || !shown) return;
    const [counts, whole] = baseBar.contains(target) ? shown.base : shown.now;
    const count = counts[component] ?? 0n;
    setText(
      note,
      `${component}: ${grouped(count)}${unit && ` ${unit}`}, ${share(count, whole)} of ${compact(whole, unit)}`,
    );
  };
  const bars = element(
    "div",
    {
      class: "tl-bars",
      onpointermove: hover,
      onpointerdown: hover,
      onpointerleave: () => setText(note, message),
    },
    stack,
    baseBar,
  );
  const setNote = (text) => {
    message = text;
    setText(note, text);
  };
  const node = element("div", { class: "tl-cost" }, head, bars, reservedBox(aside, "tl-note tl-aside"));
  const sample = `111.1 M${unit}`;
  const longest = [`−${sample} · 1.11·10¹¹ ×`, `same as ${widestName}`];
  const sampleNodes = (change) => [element("strong", {}, sample), " ", element("span", { class: "tl-by" }, change)];
  reserveSpace(sums, ...longest.map(sampleNodes));

  // The length of a bar is relative to the longer of the two bars; the segments are proportional to their counts.
  const styleOf = (counts, whole, longest) => {
    const columns = components.map(([component]) => percent(counts[component] ?? 0n, whole));
    return `width: ${percent(whole, longest)}; grid-template-columns: ${columns.join(" ")}`;
  };
  /** @type {(compared: Compared) => void} */
  function draw({ base, cost, baseCost }) {
    const [counts, baseCounts] = [cost[quantity], baseCost[quantity]];
    const [sum, baseSum] = [total(counts), total(baseCounts)];
    const most = sum > baseSum ? sum : baseSum;
    const change = `${compactSigned(sum - baseSum, unit)} · ${times(sum, baseSum)}`;
    setText(amount, compact(sum, unit));
    setText(delta, sum === baseSum ? `same as ${base.name}` : change);
    const shares = Object.keys(counts).map((component) => `${component} ${share(counts[component], sum)}`);
    set(stack, { style: styleOf(counts, sum, most), "aria-label": `${name}: ${shares.join(", ")}` });
    shown = { now: [counts, sum], base: [baseCounts, baseSum] };
    const level = sum === baseSum ? " tl-level" : "";
    set(baseBar, { style: styleOf(baseCounts, baseSum, most), class: `tl-stack tl-shadow${level}` });
  }
  return { node, setNote, aside, draw };
}

// The four bars, each with a note.
/** @type {(model: Model, data: LabData, change: Change) => any} */
function barsPanel(model, { limits, widestName }, change) {
  const bars = Object.fromEntries(Object.keys(QUANTITIES).map((name) => [name, costBar(name, widestName)]));
  const equalButton = button("", () => change("seq", equalContext(model.get("shape"))));
  bars.flops.aside.prepend(equalButton);
  const equalAt = (seq) => `Equal at seq = ${grouped(seq)}`;
  const nodes = Object.values(bars).map((bar) => bar.node);

  // The cache entry of one token, and the number of tokens whose cache is as large as the weights.
  const cacheNote = (shape, count) => {
    const values = 2n * BigInt(shape.n_layers) * dKv(shape);
    return shape.window
      ? windowsText(shape, values)
      : cacheText(values, count / values, shape.family === "llama" || Boolean(shape.d_head));
  };
  /** @type {(compared: Compared) => void} */
  function draw(compared) {
    const { shape, seq, bytes_per_value } = compared.now;
    const count = total(compared.cost.parameters);
    const rule = ruleOfThumb(shape);
    for (const bar of Object.values(bars)) bar.draw(compared);
    const used = shape.n_experts ? activeText(shape) : "";
    bars.parameters.setNote(used ? `${used[0].toUpperCase()}${used.slice(1)}.` : ruleText(rule, count - rule, count));
    const equal = equalContext(shape);
    const { "scores and blend": scores, "feed-forward": feedForward } = compared.cost.flops;
    bars.flops.setNote(attentionCostText(times(scores, feedForward), isGated(shape), isOwn(shape)));
    setText(equalButton, equalAt(equal));
    set(equalButton, { "aria-pressed": String(seq === equal), hidden: !isOwn(shape) });
    bars.training.setNote(trainingText(bytes_per_value, isOwn(shape) && isOwn(compared.base.shape)));
    bars.generation.setNote(shape.family === "bert" ? NO_CACHE : cacheNote(shape, count));
  }

  /** @type {(most: Setting, costliest: Record<string, Counts>) => void} */
  function reserveAll({ shape }, costliest) {
    const count = total(costliest.parameters);
    const rule = ruleOfThumb(shape);
    const equal = element("button", { type: "button", disabled: true }, equalAt(limits.d_ff[1]));
    reserveSpace(bars.parameters.aside, ruleText(rule, rule - count, count));
    reserveSpace(bars.flops.aside, [equal, attentionCostText("111,111 ×", true)]);
    reserveSpace(bars.generation.aside, NO_CACHE, cacheText(2n * BigInt(shape.n_layers) * dKv(shape), 111_111n, true));
  }
  return { node: element("div", { class: "tl-costs" }, nodes), draw, reserveAll };
}

// A row of a table: a component, its number, and the difference from the base's number. `hue` is undefined for the
// total.
function tableRow(name, formula, hue) {
  const [number, delta, part, ratio] = ["", "", "", "tl-note"].map((name) => element("span", { class: name || null }));
  const swatch = { class: `tl-swatch${greyClass(hue)}`, style: `--hue: ${hue ?? 0}` };
  const marker = hue === undefined ? [] : element("span", swatch);
  const formulaText = formula.replaceAll("·", "·\u200b"); // allows a line break within a long product
  const note = element("span", { class: "tl-note" }, formulaText);
  const head = element("th", { scope: "row" }, marker, name, note);
  const cells = [element("td", {}, reservedBox(number), reservedBox(delta, "tl-note")), element("td", {}, part, ratio)];
  const node = element("tr", { class: hue === undefined ? "tl-total" : null }, head, cells);
  /** @type {(counts: Counts) => bigint} */
  const countOf = (counts) => (hue === undefined ? total(counts) : (counts[name] ?? 0n));

  function draw(counts, baseCounts, shape) {
    set(note, { hidden: !isOwn(shape) }); // the formula holds only for this package's layers
    const [count, baseCount] = [countOf(counts), countOf(baseCounts)];
    set(node, { hidden: !count && !baseCount });
    setText(number, grouped(count));
    setText(part, share(count, total(counts)));
    setText(delta, count === baseCount ? "same" : signed(count - baseCount));
    setText(ratio, baseCount ? times(count, baseCount) : "new");
  }
  function reserveAll(costliest) {
    reserveSpace(number, grouped(countOf(costliest)));
    reserveSpace(delta, signed(-countOf(costliest)));
  }
  return { node, draw, reserveAll };
}

// A table of one quantity, with exact numbers.
function quantityTable(quantity) {
  const components = Object.entries(COMPONENTS[quantity]);
  const rows = [...components.map(([name, [formula, hue]]) => tableRow(name, formula, hue)), tableRow("total", "")];
  const head = (text, below) => element("th", { scope: "col" }, text, below ? element("span", {}, below) : []);
  const heads = [head("component"), head(QUANTITIES[quantity].head, "change"), head("share", "ratio")];
  const body = element(
    "tbody",
    {},
    rows.map((each) => each.node),
  );
  const table = element("table", { class: "tl-account" }, element("thead", {}, element("tr", {}, heads)), body);
  return { quantity, rows, node: element("div", { class: "tl-scroll" }, table) };
}

// The tables of all quantities, of which one is visible.
function tablesPanel(model) {
  const names = { parameters: "parameters", flops: "FLOPs", training: "training", generation: "generation" };
  const quantities = choice("Numbers of", Object.entries(names), (quantity) => commit(model, { quantity }));
  const tables = Object.keys(QUANTITIES).map(quantityTable);
  const label = element("span", { class: "tl-note" }, "Numbers of");
  const head = element("summary", {}, "Exact numbers");
  const picker = element("div", { class: "tl-which" }, label, quantities.node);
  const open = model.get("quantity") !== "parameters";
  const node = element("details", { class: "tl-digits", open }, head, picker, ...tables.map((each) => each.node));
  /** @type {(compared: Compared) => void} */
  function draw({ now, cost, baseCost }) {
    quantities.show(now.quantity);
    for (const { quantity, rows, node } of tables) {
      set(node, { hidden: quantity !== now.quantity });
      if (quantity !== now.quantity) continue;
      for (const row of rows) row.draw(cost[quantity], baseCost[quantity], now.shape);
    }
  }
  function reserveAll(costliest) {
    for (const { quantity, rows } of tables) for (const row of rows) row.reserveAll(costliest[quantity]);
  }
  return { node, draw, reserveAll };
}

// The rows of the comparison of two models: for each row a count, and a function that formats the count.
const exact = (count) => grouped(count).replaceAll(",", ",\u200b"); // allows line breaks between groups
/** @type {Record<string, [(setting: Setting) => bigint, (count: bigint) => string]>} */
const COMPARED = {
  parameters: [(setting) => total(costs(setting).parameters), exact],
  "active parameters": [({ shape }) => activeParameters(shape), exact],
  "forward pass": [(setting) => total(costs(setting).flops), (count) => compact(count, "FLOP")],
  cache: [(setting) => costs(setting).generation["key–value cache"] ?? 0n, (count) => compact(count, "B")],
};

// Two fields for the text of a config.json, and the two models side by side.
/** @type {(model: Model, data: LabData) => any} */
function configPanel(model, data) {
  const { tables, limits, start } = data;
  const parse = (text) => {
    const { value, ...parsed } = parseConfig(text, tables, limits);
    return { ...parsed, value: { shape: value?.shape, text: parsed.text } };
  };
  // An empty field removes the pasted model.
  const accept = ({ shape, text }) => {
    const seq = shape ? Math.min(model.get("seq"), contextOf(shape)) : start.seq;
    commit(model, { config: text, shape: shape ?? start.shape, seq });
  };
  const acceptBase = ({ shape, text }) => {
    const base = model.get("base") === "other" ? "start" : model.get("base");
    commit(model, { base_config: text, base: shape ? "other" : base });
  };
  const configField = (label, trait, accept) => {
    const { input, error, show } = parsedInput(parse, accept, { rows: 3 }, "textarea");
    const name = element("label", { for: input.id }, label);
    const node = element("div", { class: "tl-field" }, name, input, error);
    return { node, draw: () => show(model.get(trait)) };
  };
  const fields = [
    configField("A model: paste its config.json", "config", accept),
    configField("Compare with: another config.json", "base_config", acceptBase),
  ];
  const names = [element("span"), element("span")];
  const rows = Object.entries(COMPARED).map(([name, [count, write]]) => {
    const texts = [element("span"), element("span"), element("span")];
    const cells = texts.map((each) => element("td", {}, reservedBox(each)));
    return { node: element("tr", {}, element("th", { scope: "row" }, name), cells), texts, count, write };
  });
  const nameCells = names.map((each) => element("th", { scope: "col" }, reservedBox(each)));
  const heads = [element("td"), nameCells, element("th", { scope: "col" }, "ratio")];
  const body = element(
    "tbody",
    {},
    rows.map((each) => each.node),
  );
  const columns = element("thead", {}, element("tr", {}, heads));
  const table = element("table", { class: "tl-account tl-beside" }, columns, body);
  const inputs = element(
    "div",
    { class: "tl-pasted" },
    fields.map((each) => each.node),
  );
  const about = element("p", { class: "tl-note" }, PRIVACY_NOTE);
  const node = element(
    "details",
    { class: "tl-configs" },
    element("summary", {}, "Any published model: paste its config.json"),
    inputs,
    about,
    element("div", { class: "tl-scroll" }, table),
  );
  let drawn = false;
  /** @type {(compared: Compared) => void} */
  function draw({ now, base }) {
    for (const each of fields) each.draw();
    if (!drawn && (now.config || now.base_config)) set(node, { open: true });
    drawn = true;
    const pasted = find(data, "config", now);
    const isPasted = pasted && sameShape(pasted.shape, now.shape);
    const breakable = (name) => name.replaceAll("_", "_\u200b");
    setText(names[0], isPasted ? breakable(pasted.name) : "this model");
    setText(names[1], breakable(base.name));
    for (const { texts, count, write } of rows) {
      const [value, baseValue] = [count(now), count(base)];
      setText(texts[0], write(value));
      setText(texts[1], write(baseValue));
      setText(texts[2], value && baseValue ? times(value, baseValue) : "");
    }
  }
  /** @type {(most: Setting) => void} */
  function reserveAll(most) {
    for (const each of names) reserveSpace(each, data.widestName, "gpt_\u200bbigcode, 111.1 B");
    for (const { texts, count, write } of rows) {
      for (const each of texts.slice(0, 2)) reserveSpace(each, write(count(most)), "111.1 TFLOP");
      reserveSpace(texts[2], "1.11·10¹¹ ×", "0.111 ×");
    }
  }
  return tables.models ? { nodes: [node], draw, reserveAll } : { nodes: [], draw: () => {}, reserveAll: () => {} };
}
const PRIVACY_NOTE =
  "The text stays in your browser. The lab counts an encoder with its pooler, and a decoder with its head. If a " +
  "key cannot be counted, an error names it.";

// Tracks the change that a slider makes, from the setting at the start of the drag to the current setting.
/** @type {(model: Model, limits: import("./budget_settings.js").Limits) => any} */
function trackEdits(model, limits) {
  const state = () => getTraits(model, TRAITS);
  if (!edits.has(model)) edits.set(model, { from: state(), to: state(), moving: null, last: null, anchor: null });
  const edit = edits.get(model);
  return {
    from: () => edit.from,
    change(name, value) {
      const now = state();
      if (value === read(now, name)) return;
      if (edit.last !== name || !isSame(now, edit.to)) edit.anchor = now.shape;
      if (edit.moving !== name) edit.from = now;
      const next = changeSetting(now, name, value, limits, edit.anchor);
      Object.assign(edit, { to: next, moving: name, last: name });
      commit(model, SHAPE_KEYS.includes(name) ? { shape: next.shape } : { [name]: value });
    },
    endDrag() {
      edit.moving = null;
    },
    // Something other than a slider may have changed the lab.
    sync(now) {
      if (!isSame(now, edit.to)) Object.assign(edit, { from: edit.to, to: now, moving: null, last: null });
    },
  };
}

// The longest descriptions of the change when a slider moves from one end to the other.
/** @type {(data: LabData, el: HTMLElement) => { most: Setting, longest: string[] }} */
function longestChanges({ start, limits }, el) {
  const extreme = (i) => {
    const shape = Object.fromEntries(SHAPE_KEYS.map((name) => [name, limits[name][i]]));
    return { ...start, shape: { ...start.shape, ...shape }, seq: limits.seq[i], batch: limits.batch[i] };
  };
  const [least, most] = [extreme(0), extreme(1)];
  const sentences = SLIDERS.flatMap((name) => {
    const reduced = changeSetting(most, name, read(least, name), limits);
    return [describe(reduced, most), describe(most, reduced)];
  });
  return { most, longest: sortedByWidth(el, sentences).slice(0, 6) };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const start = model.get("start");
  const models = withStart(model.get("presets"), start);
  const widestName = widest(
    el,
    models.map((each) => each.name),
  );
  /** @type {LabData} */
  const data = {
    models,
    widestName,
    start,
    limits: model.get("limits"),
    tables: withBigInts(model.get("tables")),
  };
  const urlState = {
    prefix: "budget",
    names: TRAITS,
    encode: (state) => encodeAll(state, data),
    decode: (texts) => decodeAll(texts, data),
    code: () => pythonCode(getTraits(model, TRAITS), models),
  };
  const presets = presetPanel(model, data);
  const change = (name, value) => edit.change(name, value);
  const sliders = slidersPanel(model, data, change, () => edit.endDrag(), presets.compare);
  const bars = barsPanel(model, data, change);
  const tables = tablesPanel(model);
  const configs = configPanel(model, data);
  const { status } = frame(
    { model, el },
    "budget",
    "What does a model cost?",
    urlState,
    group("presets", presets.nodes),
    group("config", configs.nodes),
    group("sliders", sliders.nodes),
    bars.node,
    group("table", tables.node),
  );
  const edit = trackEdits(model, data.limits);

  // Reserves space for the numbers and sentences that appear at the ends of the sliders.
  const { most, longest } = longestChanges(data, el);
  const costliest = costs(most);
  const against = (name, text) => `Compared with ${name}: ${text}`;
  presets.reserveAll();
  configs.reserveAll(most);
  sliders.reserveAll();
  bars.reserveAll(most, costliest);
  tables.reserveAll(costliest);
  reserveSpace(status, ...models.map((each) => intro(each, each)), ...longest.map((text) => against(widestName, text)));

  // Describes the setting, or the last change of the setting.
  function stateText({ now, base }) {
    const pasted = find(data, "config", now);
    if (pasted && sameShape(pasted.shape, now.shape)) return intro(now, {});
    const preset = models.find((each) => isSame(each, now));
    if (preset) return intro(now, preset);
    return isSame(edit.from(), now) ? against(base.name, describe(base, now)) : describe(edit.from(), now);
  }

  function draw() {
    /** @type {State} */
    const now = getTraits(model, TRAITS);
    const base = find(data, now.base, now) ?? models[0];
    const [cost, baseCost] = [costs(now), costs(base)];
    if (!isOwn(now.shape) || !isOwn(base.shape)) {
      for (const costs of [cost, baseCost]) delete costs.training.activations; // known only for layers of this package
    }
    const compared = { now, base, cost, baseCost };
    edit.sync(now);
    for (const panel of [presets, configs, sliders, bars, tables]) panel.draw(compared);
    setText(status, stateText(compared));
  }
  return observe(model, TRAITS, draw);
}

export default { render };
