// The broadcasting lab aligns two shapes from the right. It shows which axes stretch, and the result's shape or the
// error.

import { numbersCodec, optionCodec, textCodec, traitsInUrl } from "./address.js";
import { alignment, combine, explain, sourceIndex, valueA, valueB } from "./broadcasting_rules.js";
import { hueOf } from "./colours.js";
import { frame } from "./frame.js";
import { tensorGrid } from "./grid.js";
import { clamp, product, ravel } from "./maths.js";
import { choice, commit, element, field, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { setText } from "./ui.js";
import { grouped, parseShape, shapeText } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./broadcasting_rules.js").Combined} Combined */
/** @typedef {import("./broadcasting_rules.js").Column} Column */
/** @typedef {{ mode: "elementwise" | "matmul", a: number[], b: number[], result: Combined }} State */

const MAX_DRAWN = 160;
const MAX_ROW_LENGTH = 8;

const operatorOf = (mode) => (mode === "matmul" ? "@" : "+");
const clashText = (reason) => `These shapes do not fit: ${reason}.`;
/** @type {(shapes: Pick<State, "mode" | "a" | "b">, result: Combined) => string} */
const verdictText = ({ mode, a, b }, { reason, shape }) =>
  `${shapeText(a)} ${operatorOf(mode)} ${shapeText(b)} ${reason ? `raises: ${reason}.` : `→ ${shapeText(shape)}`}`;

// A size that the reader can drag from 1 to 8, the range that can be drawn. Larger sizes must be typed.
function draggableSize(label, currentSize, resize) {
  let start = null;
  const endDrag = () => {
    start = null;
  };
  return element("span", {
    class: "tl-size tl-draggable",
    role: "spinbutton",
    tabindex: "0",
    "aria-label": label,
    "aria-valuemin": 0,
    onkeydown: (event) => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      resize(currentSize() + step);
      event.preventDefault();
    },
    onpointerdown: (event) => {
      start = { x: event.clientX, size: currentSize() };
      event.currentTarget.setPointerCapture(event.pointerId);
      event.currentTarget.focus();
      event.preventDefault();
    },
    onpointermove: (event) => {
      if (start) resize(clamp(start.size + Math.round((event.clientX - start.x) / 18), 1, Math.max(8, start.size)));
    },
    onpointerup: endDrag,
    onpointercancel: endDrag,
  });
}

// The table of axes: a, b and the result, one below the other.
/** @type {(model: Model) => { node: HTMLElement, draw: (state: State) => void }} */
function axesTable(model) {
  const table = element("table", { class: "tl-align" });
  const limits = model.get("limits");

  function resize(name, axis, size) {
    const shape = [...model.get(name)];
    const clipped = clamp(size, 0, limits.size);
    if (shape[axis] === clipped) return;
    shape[axis] = clipped;
    commit(model, { [name]: shape, index: [] });
  }

  // A cell: a draggable size, the 1 that broadcasting adds, or nothing.
  function operandCell(name, size, axis) {
    if (size === undefined) return { cell: element("td") };
    const arrow = element("span", { class: "tl-arrow" });
    const currentSize = () => model.get(name)[axis];
    const node =
      size === null
        ? element("span", { class: "tl-size" })
        : draggableSize(`${name}, axis ${axis}`, currentSize, (newSize) => resize(name, axis, newSize));
    return { cell: element("td", {}, node, arrow), node, arrow };
  }

  // The table is rebuilt only when the number of axes changes, since an element that is removed from the document
  // during a drag loses the pointer capture.
  let cells = [];
  let drawnKey = null;
  function build(columns) {
    const nextAxis = { a: 0, b: 0 };
    const operand = (name, size) => operandCell(name, size, typeof size === "number" ? nextAxis[name]++ : null);
    cells = columns.map(({ a, b }) => ({
      a: operand("a", a),
      b: operand("b", b),
      result: element("td"),
      reason: element("span"),
    }));
    const row = (name, nodes, className = "") =>
      element("tr", { class: className }, element("th", { scope: "row" }, name), nodes);
    const reasonCells = cells.map(({ reason }) => element("td", {}, reservedBox(reason)));
    table.replaceChildren(
      ...["a", "b"].map((name) =>
        row(
          name,
          cells.map((each) => each[name].cell),
        ),
      ),
      row(
        "result",
        cells.map((each) => each.result),
        "tl-result",
      ),
      element("tr", { class: "" }, element("td"), reasonCells),
    );
    for (const { reason } of cells) reserveSpace(reason, "new axis of a", "new axis of b");
  }

  /** @type {(operand: any, size: number | null, stretches: boolean, column: Column) => void} */
  function drawOperand({ cell, node, arrow }, size, stretches, { role, out }) {
    if (!node) return;
    setText(node, String(size ?? (role === "batch" ? 1 : "—")));
    if (size !== null) set(node, { "aria-valuenow": size });
    setText(arrow, stretches ? ` → ${out}` : "");
    cell.className = stretches ? "tl-stretch" : size === null ? "tl-added" : "";
  }

  function draw({ mode, a, b }) {
    const columns = alignment(mode, a, b);
    const key = `${mode}|${a.length}|${b.length}`;
    if (key !== drawnKey) build(columns);
    drawnKey = key;
    for (const [i, column] of columns.entries()) {
      const { result, reason } = cells[i];
      for (const name of ["a", "b"]) drawOperand(cells[i][name], column[name], column.stretch === name, column);
      setText(result, { clash: "✗", summed: "Σ" }[column.role] ?? String(column.out ?? "—"));
      setText(reason, column.reason);
      reason.closest("td").className = `tl-why tl-${column.role}`;
    }
  }
  return { node: table, draw };
}

// The picture of the tensors, if they are small enough to draw.
function picturePanel(model) {
  // In elementwise mode, a and b are drawn stretched to the result's shape, so all three have the same indices.
  const pickIndex = (index) => {
    if (areStretched) commit(model, { index });
  };
  const grids = {
    a: tensorGrid("Tensor a", pickIndex),
    b: tensorGrid("Tensor b", pickIndex),
    result: tensorGrid("The result. Arrow keys move through it.", (index) => commit(model, { index })),
  };
  let areStretched = false;
  for (const name of ["a", "b"]) set(grids[name].node, { tabindex: null, role: "img" });
  const [operator, equals] = ["", "="].map((text) =>
    element("span", { class: "tl-sign", "aria-hidden": "true" }, text),
  );
  const labelledGrid = (sign, label, grid) =>
    element(
      "div",
      { class: "tl-part" },
      sign,
      element("div", {}, element("p", { class: "tl-label" }, label), grid.node),
    );
  const resultNode = labelledGrid(equals, "result", grids.result);
  const node = element(
    "div",
    { class: "tl-picture" },
    labelledGrid("", "a", grids.a),
    labelledGrid(operator, "b", grids.b),
    resultNode,
  );
  const note = element("p", { class: "tl-note" });

  // Returns whether the picture can be drawn.
  /** @type {(state: State) => boolean} */
  function draw({ mode, a, b, result }) {
    const isSmall = (shape) => product(shape) <= MAX_DRAWN && (shape.at(-1) ?? 1) <= MAX_ROW_LENGTH;
    const drawable = [a, b, result.shape ?? []].every(isSmall);
    node.hidden = !drawable;
    resultNode.hidden = Boolean(result.reason);
    const tooLarge =
      `Too large to draw: the picture shows up to ${MAX_DRAWN} elements, and rows of up to ${MAX_ROW_LENGTH}. ` +
      "The rule in the table above applies to every size.";
    setText(note, drawable ? "" : tooLarge);
    setText(operator, operatorOf(mode));
    areStretched = mode !== "matmul" && !result.reason;
    if (!drawable) return false;
    // In elementwise mode, the operands are drawn stretched, with a dashed border around repeated elements.
    const stretchedCell = (shape, value) => (index) => {
      const flat = ravel(sourceIndex(index, shape), shape);
      const newAxes = index.length - shape.length;
      const repeated = (i, axis) => i > 0 && (shape[axis - newAxes] ?? 1) === 1;
      const ghost = index.some(repeated);
      return { text: value(flat), hue: ghost ? null : hueOf(flat, product(shape)), ghost };
    };
    const plainCell = (shape, value) => (_, flat) => ({ text: value(flat), hue: hueOf(flat, product(shape)) });
    const drawOperand = (name, shape, value) => {
      if (areStretched) grids[name].draw(result.shape, stretchedCell(shape, value));
      else grids[name].draw(shape, plainCell(shape, value));
      set(grids[name].node, { "aria-label": `Tensor ${name}, shape ${shapeText(shape)}` });
    };
    drawOperand("a", a, (flat) => valueA(mode, flat));
    drawOperand("b", b, valueB);
    if (result.reason) return true;
    grids.result.draw(result.shape, (index, flat) => ({
      text: explain(mode, a, b, result, index).value,
      hue: hueOf(flat, product(result.shape)),
    }));
    return true;
  }

  // Marks an element of the result and the elements from which it is computed; marks nothing if there is no result.
  /** @type {(state: State, index: number[] | null, used?: { usedA: number[], usedB: number[] }) => void} */
  function mark({ mode, a, b, result }, index, used) {
    if (!index) {
      grids.a.mark(null);
      grids.b.mark(null);
      return;
    }
    grids.result.mark(index);
    if (mode === "matmul") {
      grids.a.mark(null, { "tl-outlined": used.usedA });
      grids.b.mark(null, { "tl-outlined": used.usedB });
      return;
    }
    // a and b are drawn stretched, so the chosen index is the same in all three grids. Where an element is repeated,
    // the original is outlined.
    const originalIndex = (shape) =>
      index.map((i, axis) => ((shape[axis - index.length + shape.length] ?? 1) === 1 ? 0 : i));
    grids.a.mark(index, { "tl-outlined": [ravel(originalIndex(a), result.shape)] });
    grids.b.mark(index, { "tl-outlined": [ravel(originalIndex(b), result.shape)] });
  }
  return { node, note, draw, mark };
}

// Reserves space for every text that can appear while a size is dragged.
function reserveAll({ mode, a, b }, verdict, status) {
  const enlarged = (shape, least) => shape.map((size) => Math.max(size, least));
  const [largeA, largeB] = [enlarged(a, 8), enlarged(b, 8)];
  const misfits = [enlarged(b, 7), [...enlarged(b.slice(0, -2), 7), ...largeB.slice(-2)]];
  const clashes = misfits.flatMap((shape) => combine(mode, largeA, shape).reason ?? []);
  const axes = Math.max(a.length, b.length);
  const shape = Array(axes).fill(8);
  const indexText = (count) => `[${Array(count).fill(7).join(", ")}]`;
  const sums = {
    matmul: Array(8).fill(`${MAX_DRAWN}×${MAX_DRAWN}`).join(" + "),
    elementwise: `a${indexText(a.length)} + b${indexText(b.length)} = ${10 * MAX_DRAWN} + ${MAX_DRAWN}`,
  };
  const verdicts = [...clashes.map((reason) => ({ reason })), { shape }];
  reserveSpace(verdict, ...verdicts.map((result) => verdictText({ mode, a: largeA, b: largeB }, result)));
  const end = `${10 * MAX_DRAWN}. The product has shape ${shapeText(shape)}.`;
  reserveSpace(status, `result${indexText(axes)} = ${sums[mode]} = ${end}`, ...clashes.map(clashText));
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const operations = [
    ["elementwise", "a + b"],
    ["matmul", "a @ b"],
  ];
  const modes = choice("Operation", operations, (mode) => commit(model, { mode, index: [] }));
  const parse = (text) => parseShape(text, model.get("limits"));
  const operand = (name) =>
    field(`Shape of ${name}`, "Such as 3, 1", parse, (shape) => commit(model, { [name]: shape, index: [] }));
  const fields = { a: operand("a"), b: operand("b") };
  const table = axesTable(model);
  const verdict = element("span");
  const verdictBox = reservedBox(verdict, "tl-verdict");
  const picture = picturePanel(model);
  const shape = textCodec(parse, (sizes) => sizes.join(","), "sizes like 3,1");
  const isIndex = (numbers) => numbers.every((x) => x >= 0 && Number.isInteger(x));
  const urlState = traitsInUrl("broadcasting", {
    a: shape,
    b: shape,
    mode: optionCodec(operations.map(([mode]) => mode)),
    index: numbersCodec(isIndex, "an element of the result"),
  });
  // The picture comes last: its height changes with the tensors, and the parts above it must not move.
  const { status } = frame(
    { model, el },
    "broadcasting",
    "Two shapes, aligned from the right",
    urlState,
    group("mode", element("div", { class: "tl-row" }, modes.node)),
    group("shapes", element("div", { class: "tl-row" }, fields.a.node, fields.b.node)),
    element("div", { class: "tl-scroll" }, table.node),
    element(
      "p",
      { class: "tl-note" },
      "Drag a size sideways, or focus it and use the arrow keys. Point at an element of the result to see its sum.",
    ),
    verdictBox,
    group("picture", picture.node, picture.note),
  );

  let drawnKey = null;
  let drawable = false;

  function drawShapes(state) {
    const { mode, a, b, result } = state;
    modes.show(mode);
    fields.a.show(a.join(", "));
    fields.b.show(b.join(", "));
    table.draw(state);
    setText(verdict, verdictText(state, result));
    verdictBox.classList.toggle("tl-clash", Boolean(result.reason));
    reserveAll(state, verdict, status);
    drawable = picture.draw(state);
  }

  function drawChosen(state, requested) {
    const { mode, a, b, result } = state;
    if (result.reason) {
      picture.mark(state, null);
      setText(status, clashText(result.reason));
      return;
    }
    const shapeSentence = `${mode === "matmul" ? "The product" : "The sum"} has shape ${shapeText(result.shape)}`;
    if (!drawable || !product(result.shape)) {
      const count = result.shape.reduce((count, size) => count * BigInt(size), 1n); // the count may have 72 digits
      setText(status, `${shapeSentence}: ${grouped(count)} elements.`);
      return;
    }
    const inResult =
      requested.length === result.shape.length && requested.every((i, axis) => i >= 0 && i < result.shape[axis]);
    const index = inResult ? requested : result.shape.map(() => 0);
    const chosen = explain(mode, a, b, result, index);
    picture.mark(state, index, chosen);
    setText(status, `${chosen.text}. ${shapeSentence}.`);
  }

  return observe(model, urlState.names, () => {
    const { index, ...shapes } = getTraits(model, urlState.names);
    const state = { ...shapes, result: combine(shapes.mode, shapes.a, shapes.b) };
    const key = JSON.stringify(shapes);
    if (key !== drawnKey) drawShapes(state);
    drawnKey = key;
    drawChosen(state, index);
  });
}

export default { render };
