// The normalization lab shows a cube of values (batch, seq, d_model): the entries that share a mean and a variance, and
// the entries that change when another entry is disturbed.

import { booleanCodec, nestedNumbersCodec, numbersCodec, optionCodec, traitsInUrl } from "./address.js";
import { signedCellColours } from "./colours.js";
import { frame } from "./frame.js";
import { tensorGrid } from "./grid.js";
import { divisors, range, ravel } from "./maths.js";
import { animateFrom, positionsOf } from "./motion.js";
import { disturbed, leaks, sliderRange, smallestSplit, standardize } from "./normalization_maths.js";
import { asCode, changeText, entryText, movedText, numberText, QUESTIONS } from "./normalization_words.js";
import { ruleText } from "./normalization_words.js";
import { button, choice, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { CHIPS, onOff, setText, sliderWithInput, widest, widthInEms } from "./ui.js";
import { minus, parseNumber, short } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./normalization_maths.js").Norm} Norm */
/** @typedef {import("./normalization_maths.js").Count} Count */
/** @typedef {import("./normalization_words.js").Entry} Entry */
/** @typedef {{ name: string, dims: number[], note: string, center: boolean, grouped: boolean }} KnownNorm */
/** The initial values as a flat array, and their shape. @typedef {{ shape: number[], clean: number[] }} Beginning */
/**
 * Everything that is computed from the lab's traits: the disturbed x, its normalized values, and the entries that
 * changed.
 * @typedef {object} State
 * @property {Norm} norm
 * @property {number} own the index of the norm in the table, or -1
 * @property {number[]} lengths
 * @property {number[]} chosen
 * @property {import("./normalization_maths.js").Disturbed} now
 * @property {boolean} anything whether the reader has disturbed anything
 * @property {ReturnType<typeof standardize>} found
 * @property {ReturnType<typeof leaks>} leaked
 */

const AXES = ["batch", "seq", "d_model"];

const indicesOf = (marks) => marks.flatMap((is, i) => (is ? [i] : []));

// Controls to choose a norm, by name or by axes, groups and centring; and a description of the norm.
/** @type {(model: Model, beginning: Beginning) => any} */
function normPanel(model, { shape }) {
  const features = shape[2];
  /** @type {KnownNorm[]} */
  const known = model.get("norms");
  const pick = (i) => {
    const { dims, center, grouped } = known[i];
    commit(model, { dims, center, n_groups: grouped ? smallestSplit(features) : 1 });
  };
  const norms = choice(
    "Norm",
    known.map(({ name }, i) => [i, name]),
    pick,
  );
  const toggle = (axis) => {
    const dims = model.get("dims");
    commit(model, { dims: dims.includes(axis) ? dims.filter((dim) => dim !== axis) : [...dims, axis].sort() });
  };
  const axes = AXES.map((name, axis) => button(name, () => toggle(axis)));
  const groups = choice(
    "Groups of features",
    divisors(features).map((n) => [n, String(n)]),
    (n_groups) => commit(model, { n_groups }),
  );
  const centring = onOff("subtract the mean", () => commit(model, { center: !model.get("center") }));
  const code = element("span", { class: "tl-code" });
  const note = element("span", { class: "tl-note" });
  const rule = element("p", {}, code, note);
  const words = element("p");
  const axesChoice = element("div", { class: CHIPS, role: "group", "aria-label": "Axes that share" }, axes);
  const noted = (text, control) => element("div", {}, element("span", { class: "tl-note" }, text), control);
  const nodes = [
    group("norm", element("div", { class: "tl-row" }, norms.node)),
    group(
      "axes",
      element(
        "div",
        { class: "tl-row tl-settings" },
        noted("Statistics over", axesChoice),
        noted("Groups of features", groups.node),
        noted("Centring", centring.node),
      ),
    ),
    element("div", { class: "tl-rule" }, reservedBox(rule), reservedBox(words)),
  ];

  /** @type {(state: State) => void} */
  function draw({ norm, own }) {
    norms.show(own);
    for (const [axis, each] of axes.entries()) set(each, { "aria-pressed": String(norm.dims.includes(axis)) });
    groups.show(norm.groups);
    for (const each of groups.buttons) set(each, { disabled: !norm.dims.includes(2) });
    centring.show(norm.center);
    setText(code, asCode(shape, norm.dims, norm.groups, norm.center));
    setText(note, known[own]?.note ?? "");
    setText(words, ruleText(norm));
  }

  // Reserves space for the text of every norm in `any`.
  function reserveAll(lab, any) {
    const codeOf = ({ dims, groups, center }) => asCode(shape, dims, groups, center);
    const line = (text, note = "") => [
      element("span", { class: "tl-code" }, text),
      element("span", { class: "tl-note" }, note),
    ];
    const codes = any.flatMap((norm) => [true, false].map((center) => codeOf({ ...norm, center })));
    const most = divisors(features).at(-2) ?? 1;
    const lines = known.map((norm) => line(codeOf({ ...norm, groups: norm.grouped ? most : 1 }), norm.note));
    reserveSpace(rule, line(widest(lab, codes)), ...lines);
    reserveSpace(words, ...new Set(any.map(ruleText)));
  }
  return { nodes, draw, reserveAll };
}

// The cube before and after normalization. Hovering previews an entry; a click or the arrow keys choose an entry.
function cubesPanel(model, { shape, clean }, redraw) {
  const [, seq, features] = shape;
  const brightest = Math.max(...clean.map(Math.abs)) || 1;
  let pointed = null;
  let hovering = false;
  const point = (index) => {
    pointed = hovering ? index : null;
    if (!hovering) commit(model, { index });
    redraw();
  };
  const hover = (event) => {
    hovering = event.type === "pointermove" && event.pointerType === "mouse" && !event.buttons;
  };
  const leave = () => {
    if (!pointed) return;
    pointed = null;
    redraw();
  };
  const cube = (label) => {
    const grid = tensorGrid(label, point);
    const { node } = grid;
    grid.draw(shape, () => ({ text: "" }), { block: ([sentence]) => `sentence ${sentence}` });
    const names = () => range(features).map((i) => element("span", {}, `f${i}`));
    for (const block of node.querySelectorAll(".tl-block")) {
      block.before(element("div", { class: "tl-columns", style: `--columns: ${features}` }, names()));
    }
    for (const event of ["pointermove", "pointerdown", "keydown"]) node.addEventListener(event, hover, true);
    node.addEventListener("pointerleave", leave);
    return { grid, node, cells: [...node.querySelectorAll(".tl-cell")] };
  };
  const before = cube("x, the values. Arrow keys move through them.");
  const after = cube("The normalized values");
  set(after.node, { tabindex: null, role: "img", "aria-roledescription": null });

  function paint(cell, text, size) {
    setText(cell, text);
    const { background, color } = signedCellColours(Math.round(50 * size), 50); // rounded to few distinct colours
    set(cell, { style: `background: ${background}; color: ${color}` });
  }

  // Returns the entry that is shown, and the entries that share its statistics.
  /** @type {(state: State) => { shown: number[], sharers: number[] }} */
  function draw({ chosen, now, found, leaked }) {
    const { x, padding } = now;
    const shown = pointed ?? chosen;
    const flat = ravel(shown, shape);
    const sharers = found.ids.flatMap((id, i) => (id === found.ids[flat] && i !== flat ? [i] : []));
    for (const [i, value] of x.entries()) {
      paint(before.cells[i], Number.isInteger(value) ? numberText(value) : short(value), value / brightest);
      paint(after.cells[i], short(found.values[i]), found.values[i] / 2);
      set(after.cells[i], { "data-delta": leaked.moved[i] ? changeText(leaked.delta[i]) : null });
      if (i % features) continue;
      const name = padding[i] ? "pad" : `t${Math.floor(i / features) % seq}`;
      for (const { cells } of [before, after]) set(cells[i], { "data-row": name });
    }
    const marks = { "tl-outlined": sharers, "tl-pad": indicesOf(padding) };
    const edited = x.map((value, i) => !padding[i] && value !== clean[i]);
    before.grid.mark(shown, { ...marks, "tl-edited": indicesOf(edited) });
    after.grid.mark(shown, { ...marks, "tl-moved": indicesOf(leaked.moved) });
    return { shown, sharers };
  }
  // The entries that share statistics are animated together from x to the result.
  const walk = (box, together) => {
    const [from, to] = [before, after].map(({ cells }) => together.map((i) => cells[i]));
    const numberOf = (cell) => cell.dataset.flat;
    animateFrom(positionsOf(box, from, numberOf), box, to, numberOf);
  };
  return { before: before.node, after: after.node, draw, walk };
}

// Controls for the disturbances: an outlier, and padding.
function disturbPanel(model, { shape, clean }) {
  const seq = shape[1];
  const { reach, step } = sliderRange(clean, model.get("limits").reach);
  const original = model.get("original");
  const reading = element("p");
  const padReading = element("p", { class: "tl-label" });
  const readingBox = reservedBox(reading, "tl-label");
  const entryIn = (text) =>
    parseNumber(text, "A value", [-reach, reach], { whole: false, write: (x) => minus(String(x)) });
  // Copies nested rows, and replaces one value.
  /** @type {(rows: any[], index: number[], value: number) => any[]} */
  const changed = (rows, [i, ...inner], value) =>
    rows.map((row, j) => (j !== i ? row : inner.length ? changed(row, inner, value) : value));
  const pickValue = (value) => commit(model, { x: changed(model.get("x"), model.get("index"), value) });
  const pickPadding = (count) => {
    const [sentence] = model.get("index");
    commit(model, { lengths: changed(model.get("lengths"), [sentence], seq - count) });
  };
  const value = sliderWithInput(
    "Value of the chosen entry",
    { ends: [-reach, reach], head: readingBox, step, whole: false, write: (x) => minus(String(x)), parse: entryIn },
    pickValue,
  );
  const pads = sliderWithInput(
    "Padding at the end of the sentence",
    { ends: [0, seq - 1], head: padReading, props: { disabled: seq < 2 } },
    pickPadding,
  );
  set(pads.typed, { disabled: seq < 2 });
  const reset = () => commit(model, { x: original, lengths: original.map(() => seq) });
  const restore = button("Restore x", reset);
  const node = element("div", { class: "tl-disturb" }, value.node, pads.node, restore);

  /** @type {(state: State) => void} */
  function draw({ chosen, lengths, now, anything }) {
    const place = `x[${chosen.join(", ")}]`;
    const at = ravel(chosen, shape);
    const count = seq - lengths[chosen[0]];
    const disabled = now.padding[at];
    setText(reading, `Chosen entry ${place} = ${disabled ? "0: padding" : numberText(now.x[at])}`);
    value.show(now.x[at]);
    set(value.input, { disabled, "aria-valuetext": `${place} is ${numberText(now.x[at])}` });
    set(value.typed, { disabled });
    setText(padReading, `Padding at the end of sentence ${chosen[0]}: ${count} of ${seq} tokens`);
    pads.show(count);
    set(pads.input, { "aria-valuetext": `${count} of ${seq} tokens of sentence ${chosen[0]}` });
    set(restore, { disabled: !anything });
  }
  const reserveAll = (last, far) =>
    reserveSpace(reading, ...[far, "0: padding"].map((text) => `Chosen entry x[${last.join(", ")}] = ${text}`));
  return { node, draw, reserveAll };
}

// A table of all norms, and the entries that each of them changes.
function leaksTable(model, { shape, clean }) {
  /** @type {KnownNorm[]} */
  const known = model.get("norms");
  const rows = known.map(({ name }) => {
    const [near, far] = [element("td"), element("td")];
    return { near, far, node: element("tr", {}, element("th", { scope: "row" }, name), near, far) };
  });
  const heads = ["Norm", "Same sentence", "Other sentences"].map((name) => element("th", { scope: "col" }, name));
  const body = element(
    "tbody",
    {},
    rows.map((row) => row.node),
  );
  const node = element("table", { class: "tl-leaks" }, element("thead", {}, element("tr", {}, heads)), body);

  /** @type {(state: State) => void} */
  function draw({ norm, own, now, anything }) {
    for (const [i, other] of known.entries()) {
      const groups = !other.grouped ? 1 : i === own ? norm.groups : smallestSplit(shape[2]);
      const leaked = leaks(clean, now, shape, { ...other, groups, eps: norm.eps }, model.get("limits").moved);
      for (const where of ["near", "far"]) {
        const { moved, all } = leaked[where];
        setText(rows[i][where], anything && all ? `${moved} of ${all}` : "–");
        set(rows[i][where], { class: anything && moved > 0 ? "tl-leaking" : null });
      }
      set(rows[i].node, { class: i === own ? "tl-current" : null });
    }
  }
  return { node, draw };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const original = model.get("original");
  const shape = [original.length, original[0].length, original[0][0].length];
  const [batch, seq, features] = shape;
  const beginning = { shape, clean: original.flat(2) };
  const { clean } = beginning;
  const limits = model.get("limits");

  const norms = normPanel(model, beginning);
  const cubes = cubesPanel(model, beginning, () => draw());
  const disturb = disturbPanel(model, beginning);
  const table = leaksTable(model, beginning);
  const verdict = element("span");
  const question = element("p");
  const wide = batch * (36 + 34 * features) > 350; // in pixels; a wider cube does not fit in two columns
  if (wide) disturb.node.classList.add("tl-sticky"); // on a phone, the cubes do not fit side by side
  const title = element(
    "p",
    { class: "tl-label" },
    "x: rows are tokens, columns features. Point at an entry, or click to choose it",
  );
  const picture = element(
    "div",
    { class: `tl-cubes${wide ? " tl-tall" : ""}` },
    element("div", {}, title, cubes.before, group("disturb", disturb.node)),
    element(
      "div",
      {},
      reservedBox(verdict, "tl-label"),
      cubes.after,
      group("table", reservedBox(question, "tl-label"), element("div", { class: "tl-scroll" }, table.node)),
    ),
  );
  const whole = (all) => all.every(Number.isInteger);
  const within = (all) => whole(all) && all.length === 3 && all.every((i, axis) => i >= 0 && i < shape[axis]);
  const areDistinctAxes = (all) =>
    whole(all) && new Set(all).size === all.length && all.every((axis) => axis >= 0 && axis < 3);
  const urlState = traitsInUrl("normalization", {
    x: nestedNumbersCodec(original, -limits.reach, limits.reach),
    lengths: nestedNumbersCodec(Array(batch).fill(seq), 1, seq),
    index: numbersCodec(within, "an entry of x"),
    dims: numbersCodec(areDistinctAxes, "axes from 0 to 2", (all) => all.sort()),
    n_groups: optionCodec(divisors(features).map(String), Number),
    center: booleanCodec,
  });
  const { lab, status } = frame(
    { model, el },
    "normalization",
    "Who shares a mean and a variance?",
    urlState,
    norms.nodes,
    picture,
  );
  reserveAll();

  // Returns the index of this norm in the table.
  const nameOf = ({ dims, groups, center }) =>
    model
      .get("norms")
      .findIndex(
        (known) =>
          `${known.dims}` === `${dims}` &&
          known.center === center &&
          (known.grouped || !dims.includes(2) || groups === 1),
      );

  /** @type {() => State} */
  function compute() {
    const { x, lengths, index, dims, n_groups, center } = getTraits(model, urlState.names);
    const norm = { dims, groups: n_groups, center, eps: model.get("eps") };
    const now = disturbed(x.flat(2), clean, shape, lengths);
    return {
      norm,
      own: nameOf(norm),
      lengths,
      chosen: index,
      now,
      anything: now.touched.includes(true),
      found: standardize(now.x, shape, norm),
      leaked: leaks(clean, now, shape, norm, limits.moved),
    };
  }

  let walked = null;
  function draw() {
    const state = compute();
    const { norm, now, anything, found, leaked } = state;
    const last = walked;
    walked = JSON.stringify(norm);
    norms.draw(state);
    const { shown, sharers } = cubes.draw(state);
    disturb.draw(state);
    table.draw(state);

    const flat = ravel(shown, shape);
    if (last && last !== walked) cubes.walk(picture, [flat, ...sharers]);
    const count = leaked.near.moved + leaked.far.moved;
    const all = leaked.near.all + leaked.far.all;
    setText(question, QUESTIONS[Number(anything)]);
    setText(verdict, anything ? movedText(count, all) : "Normalized");
    /** @type {Entry} */
    const entry = {
      index: shown,
      value: numberText(now.x[flat]),
      mean: found.mean[flat],
      deviation: Math.sqrt(found.square[flat]),
      sharers: sharers.length,
      normalized: found.values[flat],
      by: leaked.moved[flat] && changeText(leaked.delta[flat]),
      moved: anything && [count, all],
    };
    setText(status, entryText(entry, norm));
  }

  // Reserves space for all norms and numbers.
  function reserveAll() {
    const all = clean.length;
    const last = shape.map((size) => size - 1);
    const far = "−00.00";
    const subsets = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]];
    const any = subsets.flatMap((dims) =>
      [1, smallestSplit(features)].map((groups) => ({ dims, groups, center: true })),
    );
    const entry = { index: last, value: far, mean: -limits.reach, deviation: limits.reach, sharers: all };
    /** @type {Entry} */
    const longest = { ...entry, normalized: -1.11, by: changeText(-1.11), moved: ["none", all] };
    norms.reserveAll(lab, any);
    disturb.reserveAll(last, far);
    reserveSpace(question, ...QUESTIONS);
    reserveSpace(verdict, movedText(all, all));
    reserveSpace(status, ...new Set(any.map((norm) => entryText(longest, norm))));
    const numbers = [short(-1.11), short(-limits.reach)];
    lab.style.setProperty("--number", String(Math.max(...numbers.map((text) => widthInEms(lab, text, 700)))));
    lab.style.setProperty("--name", String(Math.max(...["pad", `t${seq - 1}`].map((text) => widthInEms(lab, text)))));
  }

  return observe(model, urlState.names, draw);
}

export default { render };
