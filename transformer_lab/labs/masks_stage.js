// One stage of the mask lab as a table: a row for each query, a column for each key or feature.

import { LEAST } from "./masks_words.js";
import { element, reservedBox, set, setText } from "./ui.js";
import { fixed } from "./words.js";

/** @typedef {{ text: string, alarm?: boolean, shade: { background: string, color: string } | null }} CellStyle */
/**
 * The numbers of a table. A cell's style depends on its value, on `hidden` and on `kind`; a change of `basis` updates
 * the style of all cells.
 * @typedef {object} Drawing
 * @property {number[][]} values
 * @property {(value: number, hidden: boolean, kind: string) => CellStyle} look
 * @property {string | number} basis
 * @property {[number, number]} picked
 * @property {(i: number, j: number) => boolean} [hidden]
 * @property {(i: number, j: number) => string} [kind]
 * @property {(i: number) => number} [sumOf]
 */

let tables = 0;

// Elements are created when the names change. Otherwise, only cells whose style has changed are updated. Overlays show
// the selection, since a class on a row would cause a new layout.
/**
 * @type {(name: string, title: string) => {
 *   node: HTMLElement, matrix: HTMLElement, formula: HTMLElement, draw: (drawing: Drawing) => void,
 *   make: (rows: string[], columns: string[], summed: boolean) => void,
 *   markEmptyRows: (empty: boolean[]) => void, idOf: (i: number, j: number) => string,
 * }}
 */
export function stageTable(name, title) {
  const formula = element("span", { class: "tl-how" });
  const matrix = element("div", { class: "tl-matrix", role: "grid" });
  const head = element("div", { class: "tl-step-head" }, element("strong", {}, title), reservedBox(formula));
  const node = element("div", { class: "tl-step", "data-stage": name }, head, matrix);
  const id = `tl-cells-${Date.now().toString(36)}-${tables++}`;
  const idOf = (i, j) => `${id}-${i}-${j}`;
  const marks = ["tl-at-row", "tl-at-column", "tl-at-cell"].map((kind) =>
    element("div", { class: kind, "aria-hidden": "true" }),
  );
  let rows = [];
  let columns = [];
  let cells = [];
  let drawn = []; // the style of each cell
  let sums = [];
  let lines = [];
  let drawnKey = null;
  let based = null;

  function make(newRows, newColumns, summed) {
    const key = JSON.stringify([newRows, newColumns, summed]);
    if (key === drawnKey) return;
    drawnKey = key;
    [rows, columns, based] = [newRows, newColumns, null];
    const names = [...columns, ...(summed ? ["sum"] : [])];
    const columnNames = names.map((text) => element("span", { class: "tl-key-name" }, element("span", {}, text)));
    const square = (i, j) => ({ class: "tl-square", role: "gridcell", id: idOf(i, j), "data-at": `${i} ${j}` });
    cells = rows.map((_, i) => columns.map((_, j) => element("span", square(i, j))));
    sums = summed ? rows.map(() => element("span", { class: "tl-sum", role: "gridcell" })) : [];
    const nothing = columns.length > 2 ? "sees nothing" : "none";
    const ending = (i) => [sums[i], element("span", { class: "tl-empty", "aria-hidden": "true" }, nothing)];
    lines = rows.map((text, i) =>
      element(
        "div",
        { class: "tl-matrix-row", role: "row" },
        element("span", { class: "tl-query-name", role: "rowheader", title: text }, text),
        cells[i],
        summed ? ending(i) : [],
      ),
    );
    const corner = element("span", { class: "tl-query-name" });
    const top = element("div", { class: "tl-matrix-row tl-matrix-head", "aria-hidden": "true" }, corner, columnNames);
    matrix.style.setProperty("--columns", columnNames.length);
    matrix.replaceChildren(top, ...lines, ...marks);
  }

  function drawCell(i, j, now, look) {
    const was = drawn[i][j];
    if (now.value === was.value && now.hidden === was.hidden && now.kind === was.kind) return;
    const square = cells[i][j];
    const { text, shade, alarm } = look(now.value, now.hidden, now.kind);
    const className = `tl-square${now.hidden ? " tl-hidden" : ""}${alarm ? " tl-leak" : ""}`;
    const [background, color] = [shade?.background ?? "", shade?.color ?? ""];
    setText(square, text);
    if (className !== was.className) square.className = className;
    if (background !== was.background) square.style.backgroundColor = background;
    if (color !== was.color) square.style.color = color;
    set(square, { "aria-label": `${rows[i]}, ${columns[j]}: ${now.hidden ? "hidden, " : ""}${text || "0"}` });
    drawn[i][j] = Object.assign(now, { className, background, color });
  }

  /** @type {(drawing: Drawing) => void} */
  function draw({ values, hidden = () => false, kind = () => "", look, basis, picked: [row, column], sumOf }) {
    if (based !== basis) drawn = rows.map(() => columns.map(() => ({})));
    based = basis;
    for (let i = 0; i < rows.length; i++) {
      for (let j = 0; j < columns.length; j++) {
        drawCell(i, j, { value: values[i][j], hidden: hidden(i, j), kind: kind(i, j) }, look);
      }
    }
    for (const [i, sum] of sums.entries()) {
      setText(sum, fixed(sumOf(i)));
      sum.classList.toggle("tl-alarm", Math.abs(sumOf(i) - 1) >= LEAST);
    }
    const down = `calc(${row} * (100% + 2px))`;
    const right = `calc(${column} * (100% + 2px))`;
    const moves = [`translateY(${down})`, `translateX(${right})`, `translate(${right}, ${down})`];
    for (const [i, move] of moves.entries()) marks[i].style.transform = move;
  }

  const markEmptyRows = (empty) => {
    for (const [i, line] of lines.entries()) line.classList.toggle("tl-blind", empty[i]);
  };
  return { node, matrix, formula, make, draw, markEmptyRows, idOf };
}
