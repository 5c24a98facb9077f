// The budget lab: the cost of a model of a given shape, in parameters, FLOPs and memory, and how the cost changes with
// the shape.

import { decodeAll, encodeAll, pythonCode } from "./budget_address.js";
import { parseConfig, withBigInts } from "./budget_config.js";
import { activeParameters, COMPONENTS, costs, headFeatures, isGated, isOwn, keyFeatures } from "./budget_counts.js";
import { QUANTITIES, ruleOfThumb, total } from "./budget_counts.js";
import { changeSetting, choices, OF_SHAPE, read, same, sameShape } from "./budget_settings.js";
import { contextOf, find, known } from "./budget_known.js";
import { SLIDERS } from "./budget_settings.js";
import { cacheText, compact, compactSigned, describe, equalContext, introduction } from "./budget_words.js";
import { attentionCostText, baselineText, NO_CACHE, ofEachToken, ruleText, share, signed } from "./budget_words.js";
import { times, trainingText, warningText, windowsText } from "./budget_words.js";
import { frame } from "./frame.js";
import { button, choice, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { CHIPS, parsedInput, setText, sliderWithInput, sortedByWidth, widest } from "./ui.js";
import { grouped, parseNumber, plural } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./budget_counts.js").Counts} Counts */
/** @typedef {import("./budget_settings.js").Setting} Setting */
/** @typedef {import("./budget_settings.js").State} State */
/** @typedef {import("./budget_settings.js").Known} Known */
/** @typedef {import("./budget_settings.js").World} World */
/** A setting, the base of the comparison, and the costs of both. */
/** @typedef {{ now: State, base: Known, cost: Record<string, Counts>, before: Record<string, Counts> }} Compared */
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
const stories = new WeakMap();

// Controls to choose a preset and the base of the comparison.
/** @type {(model: Model, world: World) => any} */
function presetPanel(model, { all }) {
  const pick = (i) => {
    const { shape, seq, batch, bytes_per_value } = all[i];
    commit(model, { shape, seq, batch, bytes_per_value });
  };
  const presets = choice(
    "Start from",
    all.map((each, i) => [i, each.name]),
    pick,
    CHIPS,
  );
  const published = element("p");
  const other = element("option", { value: "other", hidden: true });
  const options = [...all.map((each) => element("option", { value: each.key }, each.name)), other];
  const props = { class: "tl-against", "aria-label": "Changes are shown against" };
  const against = element("select", { ...props, onchange: () => commit(model, { base: against.value }) }, options);
  const compare = element("label", { class: "tl-compare" }, "Thin bars and marks, and all changes: against", against);
  const label = element("p", { class: "tl-label" }, "Start from");
  const nodes = [label, presets.node, reservedBox(published, "tl-note tl-published")];
  /** @type {(compared: Compared) => void} */
  const draw = ({ now, base }) => {
    presets.show(all.findIndex((each) => sameShape(each.shape, now.shape)));
    const isPasted = base.key === "other";
    set(other, { hidden: !now.base_config, disabled: !now.base_config });
    if (isPasted) setText(other, base.name);
    else setText(other, "what you pasted");
    against.value = base.key;
    setText(published, baselineText(base));
  };
  const reserveAll = () => reserveSpace(published, ...all.map(baselineText));
  return { nodes, compare, draw, reserveAll };
}

// A slider over the offered values, with a mark at the base's value. Other valid numbers can be typed.
/** @type {(name: string, world: World, change: Change, letGo: () => void, shape: () => any) => any} */
function shapeSlider(name, { all, start, limits }, change, letGo, shape) {
  const was = element("span", { class: "tl-base-mark", "aria-hidden": "true" });
  const more = element("span", { class: "tl-code" });
  let offered = [];
  let offeredFor = "";

  function parse(text) {
    const parsed = parseNumber(text, LABELS[name], limits[name]);
    const width = shape().d_model;
    const wrong = name === "n_heads" && !shape().d_head && !parsed.error && width % parsed.value;
    return wrong ? { error: `d_model ${grouped(width)} is not a multiple of ${grouped(parsed.value)}.` } : parsed;
  }
  /** @type {(at: number, shape: import("./budget_counts.js").Shape) => string} */
  function moreOf(at, shape) {
    if (name === "n_heads") return `× ${grouped(headFeatures(shape))}`;
    return name === "d_ff" ? `(${Number((at / shape.d_model).toFixed(2))} ×)` : "";
  }
  const head = element("p", {}, `${LABELS[name]} `, reservedBox(more));
  const props = { onchange: letGo };
  const how = { positionOf: (value) => offered.indexOf(value), valueAt: (place) => offered[place] };
  const turn = sliderWithInput(
    LABELS[name],
    { ends: limits[name], head, marks: was, parse, props, ...how },
    (value) => {
      change(name, value);
      if (document.activeElement === turn.typed) letGo();
    },
  );
  set(turn.node, { class: "tl-slider tl-setting" });
  const most = grouped(limits[name][1]);
  reserveSpace(more, { n_heads: `× ${most}`, d_ff: "(11.11 ×)" }[name] ?? "");

  // The base's position, interpolated between the two nearest values.
  function positionOf(before, last) {
    const above = offered.findIndex((each) => each >= before);
    if (above < 0) return last;
    return above === 0 ? 0 : above - (offered[above] - before) / (offered[above] - offered[above - 1]);
  }
  /** @type {(compared: Compared) => void} */
  function draw({ now, base }) {
    const at = read(now, name);
    set(turn.node, { hidden: at === null });
    if (at === null) return;
    const before = read(base, name) ?? at;
    const { d_model } = now.shape;
    if (offeredFor !== `${at} ${d_model}`) offered = choices(name, now, limits, [start, ...all]);
    offeredFor = `${at} ${d_model}`;
    const last = Math.max(offered.length - 1, 1);
    set(turn.input, { min: 0, max: last, disabled: offered.length < 2 });
    turn.show(at);
    setText(more, moreOf(at, now.shape));
    const width = name === "n_heads" ? ` heads of ${plural(headFeatures(now.shape), "feature")}` : "";
    const other = at === before ? "" : `; ${base.name}: ${grouped(before)}`;
    set(turn.input, { "aria-valuetext": `${grouped(at)}${width}${other}` });
    set(was, { style: `--at: ${(positionOf(before, last) / last).toFixed(4)}`, hidden: at === before });
  }
  return { draw, node: turn.node };
}

// All sliders, and the bytes per value.
/** @type {(model: Model, world: World, change: Change, letGo: () => void, compare: HTMLElement) => any} */
function slidersPanel(model, world, change, letGo, compare) {
  const shape = () => model.get("shape");
  const sliders = SLIDERS.map((name) => shapeSlider(name, world, change, letGo, shape));
  const options = [
    [4, "4: float32"],
    [2, "2: half"],
  ];
  const formats = choice("Bytes per value", options, (bytes_per_value) => commit(model, { bytes_per_value }));
  const warning = element("p");
  const format = element("div", { class: "tl-setting" }, element("p", {}, "Bytes per value"), formats.node);
  const turns = sliders.map((each) => each.node);
  const nodes = [
    element("div", { class: "tl-settings tl-sticky" }, turns, format, compare),
    reservedBox(warning, "tl-note tl-warning"),
  ];
  /** @type {(compared: Compared) => void} */
  const draw = (compared) => {
    const { seq, shape, bytes_per_value } = compared.now;
    for (const each of sliders) each.draw(compared);
    formats.show(bytes_per_value);
    setText(warning, seq > (shape.n_positions ?? seq) ? warningText(seq, shape) : "");
  };
  const longest = (family) => warningText(world.limits.seq[1], { family, n_positions: world.limits.n_positions[1] });
  const reserveAll = () => reserveSpace(warning, longest("gpt2"), longest("llama"));
  return { nodes, draw, reserveAll };
}

const greyClass = (hue) => (hue === null ? " tl-grey" : "");
const percent = (part, whole) => `${Number(((100 * Number(part)) / Number(whole)).toFixed(2))}%`;

// One quantity as a bar divided into components, and a thin bar for the base below it.
/** @type {(quantity: string, el: HTMLElement, names: string[]) => any} */
function costBar(quantity, el, names) {
  const { unit, name } = QUANTITIES[quantity];
  const [amount, by] = [element("strong", {}), element("span", { class: "tl-by" })];
  const note = element("span");
  const aside = element("p", {}, note);
  const sums = element("span", {}, amount, " ", by);
  const components = Object.entries(COMPONENTS[quantity]);
  const pieces = (named) =>
    components.map(([component, [, hue]]) => {
      const props = { class: `tl-piece${greyClass(hue)}`, style: `--hue: ${hue ?? 0}`, "data-name": component };
      return element("span", props, named ? element("span", {}, component) : []);
    });
  const stack = element("div", { class: "tl-stack", role: "img" }, pieces(true));
  const shadow = element("div", { class: "tl-stack tl-shadow", "aria-hidden": "true" }, pieces(false));
  const head = element("p", { class: "tl-cost-head" }, element("span", {}, name), reservedBox(sums, "tl-sums"));
  // A line below the bar names the component under the pointer: most segments are too narrow for a name.
  let message = "";
  let shown = null;
  const point = ({ target }) => {
    const component = target.closest(".tl-piece")?.dataset.name;
    if (!component || !shown) return;
    const [counts, whole] = shadow.contains(target) ? shown.before : shown.now;
    const count = counts[component] ?? 0n;
    setText(
      note,
      `${component}: ${grouped(count)}${unit && ` ${unit}`}, ${share(count, whole)} of ${compact(whole, unit)}`,
    );
  };
  const bars = element(
    "div",
    { class: "tl-bars", onpointermove: point, onpointerdown: point, onpointerleave: () => setText(note, message) },
    stack,
    shadow,
  );
  const say = (text) => {
    message = text;
    setText(note, text);
  };
  const node = element("div", { class: "tl-cost" }, head, bars, reservedBox(aside, "tl-note tl-aside"));
  const far = `111.1 M${unit}`;
  const longest = [`−${far} · 1.11·10¹¹ ×`, `as ${widest(el, names)}`];
  const copy = (change) => [element("strong", {}, far), " ", element("span", { class: "tl-by" }, change)];
  reserveSpace(sums, ...longest.map(copy));

  // The length of a bar is relative to the longest bar; segments are proportional to their counts.
  const styleOf = (counts, whole, longest) => {
    const columns = components.map(([component]) => percent(counts[component] ?? 0n, whole));
    return `width: ${percent(whole, longest)}; grid-template-columns: ${columns.join(" ")}`;
  };
  /** @type {(compared: Compared) => void} */
  function draw({ base, cost, before }) {
    const [mine, theirs] = [cost[quantity], before[quantity]];
    const [whole, ghost] = [total(mine), total(theirs)];
    const most = whole > ghost ? whole : ghost;
    const change = `${compactSigned(whole - ghost, unit)} · ${times(whole, ghost)}`;
    setText(amount, compact(whole, unit));
    setText(by, whole === ghost ? `as ${base.name}` : change);
    const shares = Object.keys(mine).map((component) => `${component} ${share(mine[component], whole)}`);
    set(stack, { style: styleOf(mine, whole, most), "aria-label": `${name}: ${shares.join(", ")}` });
    shown = { now: [mine, whole], before: [theirs, ghost] };
    const level = whole === ghost ? " tl-level" : "";
    set(shadow, { style: styleOf(theirs, ghost, most), class: `tl-stack tl-shadow${level}` });
  }
  return { node, say, aside, draw };
}

// The four bars, each with a note.
/** @type {(model: Model, el: HTMLElement, world: World, change: Change) => any} */
function barsPanel(model, el, { all, limits }, change) {
  const names = all.map((each) => each.name);
  const bars = Object.fromEntries(Object.keys(QUANTITIES).map((name) => [name, costBar(name, el, names)]));
  const overtake = button("", () => change("seq", equalContext(model.get("shape"))));
  bars.flops.aside.prepend(overtake);
  const equalAt = (seq) => `Equal at seq = ${grouped(seq)}`;
  const nodes = Object.values(bars).map((bar) => bar.node);

  // The cache entry of one token, and the number of tokens whose cache is as large as the weights.
  const cacheOf = (shape, count) => {
    const values = 2n * BigInt(shape.n_layers) * keyFeatures(shape);
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
    const used = shape.n_experts ? ofEachToken(shape) : "";
    bars.parameters.say(used ? `${used[0].toUpperCase()}${used.slice(1)}.` : ruleText(rule, count - rule, count));
    const equal = equalContext(shape);
    const { "scores and blend": pairs, "feed-forward": features } = compared.cost.flops;
    bars.flops.say(attentionCostText(times(pairs, features), isGated(shape), isOwn(shape)));
    setText(overtake, equalAt(equal));
    set(overtake, { "aria-pressed": String(seq === equal), hidden: !isOwn(shape) });
    bars.training.say(trainingText(bytes_per_value, isOwn(shape) && isOwn(compared.base.shape)));
    bars.generation.say(shape.family === "bert" ? NO_CACHE : cacheOf(shape, count));
  }

  /** @type {(most: Setting, dearest: Record<string, Counts>) => void} */
  function reserveAll({ shape }, costliest) {
    const count = total(costliest.parameters);
    const rule = ruleOfThumb(shape);
    const equal = element("button", { type: "button", disabled: true }, equalAt(limits.d_ff[1]));
    reserveSpace(bars.parameters.aside, ruleText(rule, rule - count, count));
    reserveSpace(bars.flops.aside, [equal, attentionCostText("111,111 ×", true)]);
    reserveSpace(
      bars.generation.aside,
      NO_CACHE,
      cacheText(2n * BigInt(shape.n_layers) * keyFeatures(shape), 111_111n, true),
    );
  }
  return { node: element("div", { class: "tl-costs" }, nodes), draw, reserveAll };
}

// A row of a table: a component, its number, and the difference from the number of the base. `hue` is undefined for the
// total.
function tableRow(name, formula, hue) {
  const [number, by, part, ratio] = ["", "", "", "tl-note"].map((kind) => element("span", { class: kind || null }));
  const swatch = { class: `tl-swatch${greyClass(hue)}`, style: `--hue: ${hue ?? 0}` };
  const marked = hue === undefined ? [] : element("span", swatch);
  const plural = formula.replaceAll("·", "·\u200b"); // allows a line break within a long product
  const note = element("span", { class: "tl-note" }, plural);
  const head = element("th", { scope: "row" }, marked, name, note);
  const cells = [element("td", {}, reservedBox(number), reservedBox(by, "tl-note")), element("td", {}, part, ratio)];
  const node = element("tr", { class: hue === undefined ? "tl-total" : null }, head, cells);
  /** @type {(counts: Counts) => bigint} */
  const countOf = (counts) => (hue === undefined ? total(counts) : (counts[name] ?? 0n));

  function draw(mine, theirs, shape) {
    set(note, { hidden: !isOwn(shape) }); // the formula holds only for this package's layers
    const [count, ghost] = [countOf(mine), countOf(theirs)];
    set(node, { hidden: !count && !ghost });
    setText(number, grouped(count));
    setText(part, share(count, total(mine)));
    setText(by, count === ghost ? "same" : signed(count - ghost));
    setText(ratio, ghost ? times(count, ghost) : "new");
  }
  function reserveAll(costliest) {
    reserveSpace(number, grouped(countOf(costliest)));
    reserveSpace(by, signed(-countOf(costliest)));
  }
  return { node, draw, reserveAll };
}

// A table of one quantity, with exact numbers.
function quantityTable(quantity) {
  const components = Object.entries(COMPONENTS[quantity]);
  const rows = [...components.map(([name, [formula, hue]]) => tableRow(name, formula, hue)), tableRow("total", "")];
  const head = (text, below) => element("th", { scope: "col" }, text, below ? element("span", {}, below) : []);
  const heads = [head("component"), head(QUANTITIES[quantity].of, "change"), head("share", "ratio")];
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
  const which = element("span", { class: "tl-note" }, "Numbers of");
  const head = element("summary", {}, "To the last digit");
  const chosen = element("div", { class: "tl-which" }, which, quantities.node);
  const open = model.get("quantity") !== "parameters";
  const node = element("details", { class: "tl-digits", open }, head, chosen, ...tables.map((each) => each.node));
  /** @type {(compared: Compared) => void} */
  function draw({ now, cost, before }) {
    quantities.show(now.quantity);
    for (const { quantity, rows, node } of tables) {
      set(node, { hidden: quantity !== now.quantity });
      if (quantity !== now.quantity) continue;
      for (const row of rows) row.draw(cost[quantity], before[quantity], now.shape);
    }
  }
  function reserveAll(costliest) {
    for (const { quantity, rows } of tables) for (const row of rows) row.reserveAll(costliest[quantity]);
  }
  return { node, draw, reserveAll };
}

// The rows of the comparison of two models: for each row a count, and a function that formats the count.
const exactly = (count) => grouped(count).replaceAll(",", ",\u200b"); // allows line breaks between groups
/** @type {Record<string, [(setting: Setting) => bigint, (count: bigint) => string]>} */
const COMPARED = {
  parameters: [(setting) => total(costs(setting).parameters), exactly],
  "for each token": [({ shape }) => activeParameters(shape), exactly],
  "forward pass": [(setting) => total(costs(setting).flops), (count) => compact(count, "FLOP")],
  cache: [(setting) => costs(setting).generation["key–value cache"] ?? 0n, (count) => compact(count, "B")],
};

// Two fields for the text of a config.json, and the two models side by side.
/** @type {(model: Model, el: HTMLElement, world: World) => any} */
function configPanel(model, el, world) {
  const { tables, limits, start } = world;
  const parse = (text) => {
    const { value, ...found } = parseConfig(text, tables, limits);
    return { ...found, value: { shape: value?.shape, text: found.text } };
  };
  // An empty field removes the pasted model.
  const accept = ({ shape, text }) => {
    const seq = shape ? Math.min(model.get("seq"), contextOf(shape)) : start.seq;
    commit(model, { config: text, shape: shape ?? start.shape, seq });
  };
  const acceptBase = ({ shape, text }) => {
    const kept = model.get("base") === "other" ? "start" : model.get("base");
    commit(model, { base_config: text, base: shape ? "other" : kept });
  };
  const configField = (label, trait, take) => {
    const { input, error, show } = parsedInput(parse, take, { rows: 3 }, "textarea");
    const name = element("label", { for: input.id }, label);
    const node = element("div", { class: "tl-field" }, name, input, error);
    return { node, draw: () => show(model.get(trait)) };
  };
  const fields = [
    configField("A model: paste its config.json", "config", accept),
    configField("Against: another config.json", "base_config", acceptBase),
  ];
  const names = [element("span"), element("span")];
  const rows = Object.entries(COMPARED).map(([name, [count, write]]) => {
    const texts = [element("span"), element("span"), element("span")];
    const cells = texts.map((each) => element("td", {}, reservedBox(each)));
    return { node: element("tr", {}, element("th", { scope: "row" }, name), cells), texts, count, write };
  });
  const named = names.map((each) => element("th", { scope: "col" }, reservedBox(each)));
  const heads = [element("td"), named, element("th", { scope: "col" }, "ratio")];
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
    const pasted = find(world, "config", now);
    const itself = pasted && sameShape(pasted.shape, now.shape);
    const breakable = (name) => name.replaceAll("_", "_\u200b");
    setText(names[0], itself ? breakable(pasted.name) : "this model");
    setText(names[1], breakable(base.name));
    for (const { texts, count, write } of rows) {
      const [mine, theirs] = [count(now), count(base)];
      setText(texts[0], write(mine));
      setText(texts[1], write(theirs));
      setText(texts[2], mine && theirs ? times(mine, theirs) : "");
    }
  }
  /** @type {(most: Setting) => void} */
  function reserveAll(most) {
    const longest = widest(
      el,
      world.all.map((each) => each.name),
    );
    for (const each of names) reserveSpace(each, longest, "gpt_\u200bbigcode, 111.1 B");
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

// Describes the change by a slider, compared with the setting at the start of the drag.
/** @type {(model: Model, limits: import("./budget_settings.js").Limits) => any} */
function changeOf(model, limits) {
  const state = () => getTraits(model, TRAITS);
  if (!stories.has(model)) stories.set(model, { from: state(), to: state(), moving: null, last: null, anchor: null });
  const story = stories.get(model);
  return {
    from: () => story.from,
    change(name, value) {
      const now = state();
      if (value === read(now, name)) return;
      if (story.last !== name || !same(now, story.to)) story.anchor = now.shape;
      if (story.moving !== name) story.from = now;
      const next = changeSetting(now, name, value, limits, story.anchor);
      Object.assign(story, { to: next, moving: name, last: name });
      commit(model, OF_SHAPE.includes(name) ? { shape: next.shape } : { [name]: value });
    },
    letGo() {
      story.moving = null;
    },
    // Something other than a slider may have changed the lab.
    goOn(now) {
      if (!same(now, story.to)) Object.assign(story, { from: story.to, to: now, moving: null, last: null });
    },
  };
}

// The longest descriptions of a change, when one slider moves from one end to the other.
/** @type {(world: World, el: HTMLElement) => { most: Setting, longest: string[] }} */
function longestChanges({ start, limits }, el) {
  const end = (which) => {
    const shape = Object.fromEntries(OF_SHAPE.map((name) => [name, limits[name][which]]));
    return { ...start, shape: { ...start.shape, ...shape }, seq: limits.seq[which], batch: limits.batch[which] };
  };
  const [least, most] = [end(0), end(1)];
  const sentences = SLIDERS.flatMap((name) => {
    const few = changeSetting(most, name, read(least, name), limits);
    return [describe(few, most), describe(most, few)];
  });
  return { most, longest: sortedByWidth(el, sentences).slice(0, 6) };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const start = model.get("start");
  /** @type {World} */
  const world = {
    all: known(model.get("presets"), start),
    start,
    limits: model.get("limits"),
    tables: withBigInts(model.get("tables")),
  };
  const { all } = world;
  const urlState = {
    prefix: "budget",
    names: TRAITS,
    encode: (state) => encodeAll(state, world),
    decode: (texts) => decodeAll(texts, world),
    code: () => pythonCode(getTraits(model, TRAITS), all),
  };
  const presets = presetPanel(model, world);
  const change = (name, value) => story.change(name, value);
  const sliders = slidersPanel(model, world, change, () => story.letGo(), presets.compare);
  const bars = barsPanel(model, el, world, change);
  const tables = tablesPanel(model);
  const configs = configPanel(model, el, world);
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
  const story = changeOf(model, world.limits);

  // Reserves space for the numbers and sentences that appear at the ends of the sliders.
  const { most, longest } = longestChanges(world, el);
  const costliest = costs(most);
  const against = (name, text) => `Against ${name}: ${text}`;
  const far = widest(
    el,
    all.map((each) => each.name),
  );
  presets.reserveAll();
  configs.reserveAll(most);
  sliders.reserveAll();
  bars.reserveAll(most, costliest);
  tables.reserveAll(costliest);
  reserveSpace(status, ...all.map((each) => introduction(each, each)), ...longest.map((text) => against(far, text)));

  // Describes the setting, or the last change of the setting.
  function stateText({ now, base }) {
    const mine = find(world, "config", now);
    if (mine && sameShape(mine.shape, now.shape)) return introduction(now, {});
    const landmark = all.find((each) => same(each, now));
    if (landmark) return introduction(now, landmark);
    return same(story.from(), now) ? against(base.name, describe(base, now)) : describe(story.from(), now);
  }

  function draw() {
    /** @type {State} */
    const now = getTraits(model, TRAITS);
    const base = find(world, now.base, now) ?? all[0];
    const [cost, before] = [costs(now), costs(base)];
    if (!isOwn(now.shape) || !isOwn(base.shape)) {
      for (const each of [cost, before]) delete each.training.activations; // known only for layers of this package
    }
    const compared = { now, base, cost, before };
    story.goOn(now);
    for (const panel of [presets, configs, sliders, bars, tables]) panel.draw(compared);
    setText(status, stateText(compared));
  }
  return observe(model, TRAITS, draw);
}

export default { render };
