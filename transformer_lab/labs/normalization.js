// The normalization lab shows a cube of values (batch, seq, d_model): the entries that share a mean and a variance, and
// the entries that change when another entry is disturbed.

import { booleanCodec, nestedNumbersCodec, numbersCodec, optionCodec, traitsInUrl } from "./address.js";
import { signedCellColours } from "./colours.js";
import { frame } from "./frame.js";
import { tensorGrid } from "./grid.js";
import { divisors, range, ravel } from "./maths.js";
import { animateFrom, positionsOf } from "./motion.js";
import { countLeaks, disturbX, sliderRange, smallestSplit, standardize } from "./normalization_maths.js";
import { changeText, entryText, movedText, normCode, numberText, TABLE_TITLES } from "./normalization_words.js";
import { ruleText } from "./normalization_words.js";
import { button, choice, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { CHIPS, onOff, setText, sliderWithInput, widest, widthInEms } from "./ui.js";
import { minus, parseNumber, short } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./normalization_maths.js").Norm} Norm */
/** @typedef {import("./normalization_maths.js").Count} Count */
/** @typedef {import("./normalization_words.js").Entry} Entry */
/** @typedef {{ name: string, dims: number[], note: string, center: boolean, grouped: boolean }} KnownNorm */
/** The shape, and the initial values, flat. @typedef {{ shape: number[], initialValues: number[] }} Original */
/**
 * Everything that is computed from the lab's traits: the disturbed x, its normalized values, and the entries that
 * changed.
 * @typedef {object} State
 * @property {Norm} norm
 * @property {number} normIndex the index of the norm in the table, or -1
 * @property {number[]} lengths
 * @property {number[]} chosen
 * @property {import("./normalization_maths.js").Disturbed} disturbance
 * @property {boolean} isDisturbed whether the reader has disturbed anything
 * @property {ReturnType<typeof standardize>} result
 * @property {ReturnType<typeof countLeaks>} leaks
 */

const AXES = ["batch", "seq", "d_model"];

const indicesOf = (flags) => flags.flatMap((flag, i) => (flag ? [i] : []));

// Controls to choose a norm, by name or by axes, groups and centring; and a description of the norm.
/** @type {(model: Model, original: Original) => any} */
function normPanel(model, { shape }) {
  const features = shape[2];
  /** @type {KnownNorm[]} */
  const knownNorms = model.get("norms");
  const pick = (i) => {
    const { dims, center, grouped } = knownNorms[i];
    commit(model, { dims, center, n_groups: grouped ? smallestSplit(features) : 1 });
  };
  const norms = choice(
    "Norm",
    knownNorms.map(({ name }, i) => [i, name]),
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
  const description = element("p");
  const axesChoice = element("div", { class: CHIPS, role: "group", "aria-label": "Axes of the statistics" }, axes);
  const withLabel = (text, control) => element("div", {}, element("span", { class: "tl-note" }, text), control);
  const nodes = [
    group("norm", element("div", { class: "tl-row" }, norms.node)),
    group(
      "axes",
      element(
        "div",
        { class: "tl-row tl-settings" },
        withLabel("Statistics over", axesChoice),
        withLabel("Groups of features", groups.node),
        withLabel("Centring", centring.node),
      ),
    ),
    element("div", { class: "tl-rule" }, reservedBox(rule), reservedBox(description)),
  ];

  /** @type {(state: State) => void} */
  function draw({ norm, normIndex }) {
    norms.show(normIndex);
    for (const [axis, node] of axes.entries()) set(node, { "aria-pressed": String(norm.dims.includes(axis)) });
    groups.show(norm.groups);
    for (const node of groups.buttons) set(node, { disabled: !norm.dims.includes(2) });
    centring.show(norm.center);
    setText(code, normCode(shape, norm.dims, norm.groups, norm.center));
    setText(note, knownNorms[normIndex]?.note ?? "");
    setText(description, ruleText(norm));
  }

  // Reserves space for the text of every norm in `allNorms`.
  function reserveAll(lab, allNorms) {
    const codeOf = ({ dims, groups, center }) => normCode(shape, dims, groups, center);
    const line = (text, note = "") => [
      element("span", { class: "tl-code" }, text),
      element("span", { class: "tl-note" }, note),
    ];
    const codes = allNorms.flatMap((norm) => [true, false].map((center) => codeOf({ ...norm, center })));
    const maxGroups = divisors(features).at(-2) ?? 1;
    const lines = knownNorms.map((norm) => line(codeOf({ ...norm, groups: norm.grouped ? maxGroups : 1 }), norm.note));
    reserveSpace(rule, line(widest(lab, codes)), ...lines);
    reserveSpace(description, ...new Set(allNorms.map(ruleText)));
  }
  return { nodes, draw, reserveAll };
}

// The cube before and after normalization. Hovering previews an entry; a click or the arrow keys choose an entry.
function cubesPanel(model, { shape, initialValues }, redraw) {
  const [, seq, features] = shape;
  const largest = Math.max(...initialValues.map(Math.abs)) || 1;
  let hovered = null;
  let hovering = false;
  const pick = (index) => {
    hovered = hovering ? index : null;
    if (!hovering) commit(model, { index });
    redraw();
  };
  const setHovering = (event) => {
    hovering = event.type === "pointermove" && event.pointerType === "mouse" && !event.buttons;
  };
  const endHover = () => {
    if (!hovered) return;
    hovered = null;
    redraw();
  };
  const cube = (label) => {
    const grid = tensorGrid(label, pick);
    const { node } = grid;
    grid.draw(shape, () => ({ text: "" }), { block: ([sentence]) => `sentence ${sentence}` });
    const names = () => range(features).map((i) => element("span", {}, `f${i}`));
    for (const block of node.querySelectorAll(".tl-block")) {
      block.before(element("div", { class: "tl-columns", style: `--columns: ${features}` }, names()));
    }
    for (const event of ["pointermove", "pointerdown", "keydown"]) node.addEventListener(event, setHovering, true);
    node.addEventListener("pointerleave", endHover);
    return { grid, node, cells: [...node.querySelectorAll(".tl-cell")] };
  };
  const before = cube("x, the values. Arrow keys move from entry to entry.");
  const after = cube("The normalized values");
  set(after.node, { tabindex: null, role: "img", "aria-roledescription": null });

  function drawCell(cell, text, level) {
    setText(cell, text);
    const { background, color } = signedCellColours(Math.round(50 * level), 50); // rounded to few distinct colours
    set(cell, { style: `background: ${background}; color: ${color}` });
  }

  // Draws both cubes. Returns the entry that is shown, and the entries that share its statistics.
  /** @type {(state: State) => { shown: number[], sharers: number[] }} */
  function draw({ chosen, disturbance, result, leaks }) {
    const { x, padding } = disturbance;
    const shown = hovered ?? chosen;
    const flat = ravel(shown, shape);
    const sharers = result.ids.flatMap((id, i) => (id === result.ids[flat] && i !== flat ? [i] : []));
    for (const [i, value] of x.entries()) {
      drawCell(before.cells[i], Number.isInteger(value) ? numberText(value) : short(value), value / largest);
      drawCell(after.cells[i], short(result.values[i]), result.values[i] / 2);
      set(after.cells[i], { "data-delta": leaks.moved[i] ? changeText(leaks.delta[i]) : null });
      if (i % features) continue;
      const name = padding[i] ? "pad" : `t${Math.floor(i / features) % seq}`;
      for (const { cells } of [before, after]) set(cells[i], { "data-row": name });
    }
    const marks = { "tl-outlined": sharers, "tl-pad": indicesOf(padding) };
    const edited = x.map((value, i) => !padding[i] && value !== initialValues[i]);
    before.grid.mark(shown, { ...marks, "tl-edited": indicesOf(edited) });
    after.grid.mark(shown, { ...marks, "tl-moved": indicesOf(leaks.moved) });
    return { shown, sharers };
  }
  // The entries that share statistics are animated together from x to the result.
  const animate = (box, indices) => {
    const [from, to] = [before, after].map(({ cells }) => indices.map((i) => cells[i]));
    const keyOf = (cell) => cell.dataset.flat;
    animateFrom(positionsOf(box, from, keyOf), box, to, keyOf);
  };
  return { before: before.node, after: after.node, draw, animate };
}

// Controls for the disturbances: an outlier, and padding.
function disturbPanel(model, { shape, initialValues }) {
  const seq = shape[1];
  const { reach, step } = sliderRange(initialValues, model.get("limits").reach);
  const original = model.get("original");
  const valueLabel = element("p");
  const paddingLabel = element("p", { class: "tl-label" });
  const valueLabelBox = reservedBox(valueLabel, "tl-label");
  const parseValue = (text) =>
    parseNumber(text, "A value", [-reach, reach], { whole: false, write: (x) => minus(String(x)) });
  // Copies nested rows, and replaces one value.
  /** @type {(rows: any[], index: number[], value: number) => any[]} */
  const withValue = (rows, [i, ...inner], value) =>
    rows.map((row, j) => (j !== i ? row : inner.length ? withValue(row, inner, value) : value));
  const pickValue = (value) => commit(model, { x: withValue(model.get("x"), model.get("index"), value) });
  const pickPadding = (count) => {
    const [sentence] = model.get("index");
    commit(model, { lengths: withValue(model.get("lengths"), [sentence], seq - count) });
  };
  const value = sliderWithInput(
    "Value of the chosen entry",
    {
      ends: [-reach, reach],
      head: valueLabelBox,
      step,
      whole: false,
      write: (x) => minus(String(x)),
      parse: parseValue,
    },
    pickValue,
  );
  const padding = sliderWithInput(
    "Padding at the end of the sentence",
    { ends: [0, seq - 1], head: paddingLabel, props: { disabled: seq < 2 } },
    pickPadding,
  );
  set(padding.typed, { disabled: seq < 2 });
  const reset = () => commit(model, { x: original, lengths: original.map(() => seq) });
  const restoreButton = button("Restore x", reset);
  const node = element("div", { class: "tl-disturb" }, value.node, padding.node, restoreButton);

  /** @type {(state: State) => void} */
  function draw({ chosen, lengths, disturbance, isDisturbed }) {
    const name = `x[${chosen.join(", ")}]`;
    const flat = ravel(chosen, shape);
    const count = seq - lengths[chosen[0]];
    const disabled = disturbance.padding[flat];
    setText(valueLabel, `Chosen entry ${name} = ${disabled ? "0: padding" : numberText(disturbance.x[flat])}`);
    value.show(disturbance.x[flat]);
    set(value.input, { disabled, "aria-valuetext": `${name} is ${numberText(disturbance.x[flat])}` });
    set(value.typed, { disabled });
    setText(paddingLabel, `Padding at the end of sentence ${chosen[0]}: ${count} of ${seq} tokens`);
    padding.show(count);
    set(padding.input, { "aria-valuetext": `${count} of ${seq} tokens of sentence ${chosen[0]}` });
    set(restoreButton, { disabled: !isDisturbed });
  }
  const reserveAll = (last, longest) =>
    reserveSpace(valueLabel, ...[longest, "0: padding"].map((text) => `Chosen entry x[${last.join(", ")}] = ${text}`));
  return { node, draw, reserveAll };
}

// A table with a row for each norm: how many entries of unchanged tokens the norm changes, in the same sentence and in
// other sentences.
function leaksTable(model, { shape, initialValues }) {
  /** @type {KnownNorm[]} */
  const knownNorms = model.get("norms");
  const rows = knownNorms.map(({ name }) => {
    const [sameSentence, otherSentences] = [element("td"), element("td")];
    return {
      sameSentence,
      otherSentences,
      node: element("tr", {}, element("th", { scope: "row" }, name), sameSentence, otherSentences),
    };
  });
  const heads = ["Norm", "Same sentence", "Other sentences"].map((name) => element("th", { scope: "col" }, name));
  const body = element(
    "tbody",
    {},
    rows.map((row) => row.node),
  );
  const node = element("table", { class: "tl-leaks" }, element("thead", {}, element("tr", {}, heads)), body);

  /** @type {(state: State) => void} */
  function draw({ norm, normIndex, disturbance, isDisturbed }) {
    for (const [i, other] of knownNorms.entries()) {
      const groups = !other.grouped ? 1 : i === normIndex ? norm.groups : smallestSplit(shape[2]);
      const leaks = countLeaks(
        initialValues,
        disturbance,
        shape,
        { ...other, groups, eps: norm.eps },
        model.get("limits").moved,
      );
      for (const column of ["sameSentence", "otherSentences"]) {
        const { moved, all } = leaks[column];
        setText(rows[i][column], isDisturbed && all ? `${moved} of ${all}` : "–");
        set(rows[i][column], { class: isDisturbed && moved > 0 ? "tl-leaking" : null });
      }
      set(rows[i].node, { class: i === normIndex ? "tl-current" : null });
    }
  }
  return { node, draw };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const x = model.get("original");
  const shape = [x.length, x[0].length, x[0][0].length];
  const [batch, seq, features] = shape;
  const initialValues = x.flat(2);
  const original = { shape, initialValues };
  const limits = model.get("limits");

  const norms = normPanel(model, original);
  const cubes = cubesPanel(model, original, () => draw());
  const disturb = disturbPanel(model, original);
  const table = leaksTable(model, original);
  const verdict = element("span");
  const tableTitle = element("p");
  const isWide = batch * (36 + 34 * features) > 350; // in pixels; a wider cube does not fit in two columns
  if (isWide) disturb.node.classList.add("tl-sticky"); // on a phone, the cubes do not fit side by side
  const title = element(
    "p",
    { class: "tl-label" },
    "x: rows are tokens, columns are features. Point at an entry, or click to choose it",
  );
  const picture = element(
    "div",
    { class: `tl-cubes${isWide ? " tl-tall" : ""}` },
    element("div", {}, title, cubes.before, group("disturb", disturb.node)),
    element(
      "div",
      {},
      reservedBox(verdict, "tl-label"),
      cubes.after,
      group("table", reservedBox(tableTitle, "tl-label"), element("div", { class: "tl-scroll" }, table.node)),
    ),
  );
  const areIntegers = (numbers) => numbers.every(Number.isInteger);
  const isIndex = (numbers) =>
    areIntegers(numbers) && numbers.length === 3 && numbers.every((i, axis) => i >= 0 && i < shape[axis]);
  const areDistinctAxes = (axes) =>
    areIntegers(axes) && new Set(axes).size === axes.length && axes.every((axis) => axis >= 0 && axis < 3);
  const urlState = traitsInUrl("normalization", {
    x: nestedNumbersCodec(x, -limits.reach, limits.reach),
    lengths: nestedNumbersCodec(Array(batch).fill(seq), 1, seq),
    index: numbersCodec(isIndex, "an entry of x"),
    dims: numbersCodec(areDistinctAxes, "axes from 0 to 2", (axes) => axes.sort()),
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
  const indexOfNorm = ({ dims, groups, center }) =>
    model
      .get("norms")
      .findIndex(
        (other) =>
          `${other.dims}` === `${dims}` &&
          other.center === center &&
          (other.grouped || !dims.includes(2) || groups === 1),
      );

  /** @type {() => State} */
  function compute() {
    const { x, lengths, index, dims, n_groups, center } = getTraits(model, urlState.names);
    const norm = { dims, groups: n_groups, center, eps: model.get("eps") };
    const disturbance = disturbX(x.flat(2), initialValues, shape, lengths);
    return {
      norm,
      normIndex: indexOfNorm(norm),
      lengths,
      chosen: index,
      disturbance,
      isDisturbed: disturbance.touched.includes(true),
      result: standardize(disturbance.x, shape, norm),
      leaks: countLeaks(initialValues, disturbance, shape, norm, limits.moved),
    };
  }

  let drawnNorm = null;
  function draw() {
    const state = compute();
    const { norm, disturbance, isDisturbed, result, leaks } = state;
    const previousNorm = drawnNorm;
    drawnNorm = JSON.stringify(norm);
    norms.draw(state);
    const { shown, sharers } = cubes.draw(state);
    disturb.draw(state);
    table.draw(state);

    const flat = ravel(shown, shape);
    if (previousNorm && previousNorm !== drawnNorm) cubes.animate(picture, [flat, ...sharers]);
    const count = leaks.sameSentence.moved + leaks.otherSentences.moved;
    const all = leaks.sameSentence.all + leaks.otherSentences.all;
    setText(tableTitle, TABLE_TITLES[Number(isDisturbed)]);
    setText(verdict, isDisturbed ? movedText(count, all) : "Normalized");
    /** @type {Entry} */
    const entry = {
      index: shown,
      value: numberText(disturbance.x[flat]),
      mean: result.mean[flat],
      deviation: Math.sqrt(result.meanSquare[flat]),
      sharers: sharers.length,
      normalized: result.values[flat],
      change: leaks.moved[flat] && changeText(leaks.delta[flat]),
      moved: isDisturbed && [count, all],
    };
    setText(status, entryText(entry, norm));
  }

  // Reserves space for all norms and numbers.
  function reserveAll() {
    const all = initialValues.length;
    const last = shape.map((size) => size - 1);
    const longestNumber = "−00.00";
    const subsets = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]];
    const allNorms = subsets.flatMap((dims) =>
      [1, smallestSplit(features)].map((groups) => ({ dims, groups, center: true })),
    );
    const entry = { index: last, value: longestNumber, mean: -limits.reach, deviation: limits.reach, sharers: all };
    /** @type {Entry} */
    const longest = { ...entry, normalized: -1.11, change: changeText(-1.11), moved: ["none", all] };
    norms.reserveAll(lab, allNorms);
    disturb.reserveAll(last, longestNumber);
    reserveSpace(tableTitle, ...TABLE_TITLES);
    reserveSpace(verdict, movedText(all, all));
    reserveSpace(status, ...new Set(allNorms.map((norm) => entryText(longest, norm))));
    const numbers = [short(-1.11), short(-limits.reach)];
    lab.style.setProperty("--number", String(Math.max(...numbers.map((text) => widthInEms(lab, text, 700)))));
    lab.style.setProperty("--name", String(Math.max(...["pad", `t${seq - 1}`].map((text) => widthInEms(lab, text)))));
  }

  return observe(model, urlState.names, draw);
}

export default { render };
