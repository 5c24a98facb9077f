// One stage of the mask lab as a table: a row for each query, a column for each key or feature.

import { MIN_SHOWN } from "./masks_words.js";
import { element, reservedBox, set, setText } from "./ui.js";
import { fixed } from "./words.js";

/** @typedef {{ text: string, alarm?: boolean, shade: { background: string, color: string } | null }} CellStyle */
/**
 * The numbers of a table. A cell's style depends on its value, on `hidden` and on `kind`; a change of `basis` updates
 * the style of all cells.
 * @typedef {object} Drawing
 * @property {number[][]} values
 * @property {(value: number, hidden: boolean, kind: string) => CellStyle} styleOf
 * @property {string | number} basis
 * @property {[number, number]} picked
 * @property {(i: number, j: number) => boolean} [hidden]
 * @property {(i: number, j: number) => string} [kind]
 * @property {(i: number) => number} [sumOf]
 */

let tableCount = 0;

// Elements are created when the names change. Otherwise, only cells whose style has changed are updated. Overlays show
// the selection, since a class on a row would cause a new layout.
/**
 * @type {(name: string, title: string) => {
 *   node: HTMLElement, matrix: HTMLElement, formula: HTMLElement, draw: (drawing: Drawing) => void,
 *   build: (rows: string[], columns: string[], hasSums: boolean) => void,
 *   markEmptyRows: (empty: boolean[]) => void, idOf: (i: number, j: number) => string,
 * }}
 */
export function stageTable(name, title) {
  const formula = element("span", { class: "tl-formula" });
  const matrix = element("div", { class: "tl-matrix", role: "grid" });
  const head = element("div", { class: "tl-step-head" }, element("strong", {}, title), reservedBox(formula));
  const node = element("div", { class: "tl-step", "data-stage": name }, head, matrix);
  const id = `tl-cells-${Date.now().toString(36)}-${tableCount++}`;
  const idOf = (i, j) => `${id}-${i}-${j}`;
  const marks = ["tl-at-row", "tl-at-column", "tl-at-cell"].map((name) =>
    element("div", { class: name, "aria-hidden": "true" }),
  );
  let rows = [];
  let columns = [];
  let cells = [];
  let drawnStyles = []; // the style of each cell
  let sums = [];
  let lines = [];
  let drawnKey = null;
  let drawnBasis = null;

  function build(newRows, newColumns, hasSums) {
    const key = JSON.stringify([newRows, newColumns, hasSums]);
    if (key === drawnKey) return;
    drawnKey = key;
    [rows, columns, drawnBasis] = [newRows, newColumns, null];
    const names = [...columns, ...(hasSums ? ["sum"] : [])];
    const columnNames = names.map((text) => element("span", { class: "tl-key-name" }, element("span", {}, text)));
    const squareProps = (i, j) => ({ class: "tl-square", role: "gridcell", id: idOf(i, j), "data-at": `${i} ${j}` });
    cells = rows.map((_, i) => columns.map((_, j) => element("span", squareProps(i, j))));
    sums = hasSums ? rows.map(() => element("span", { class: "tl-sum", role: "gridcell" })) : [];
    const emptyText = columns.length > 2 ? "sees nothing" : "none";
    const rowEnd = (i) => [sums[i], element("span", { class: "tl-empty", "aria-hidden": "true" }, emptyText)];
    lines = rows.map((text, i) =>
      element(
        "div",
        { class: "tl-matrix-row", role: "row" },
        element("span", { class: "tl-query-name", role: "rowheader", title: text }, text),
        cells[i],
        hasSums ? rowEnd(i) : [],
      ),
    );
    const corner = element("span", { class: "tl-query-name" });
    const top = element("div", { class: "tl-matrix-row tl-matrix-head", "aria-hidden": "true" }, corner, columnNames);
    matrix.style.setProperty("--columns", columnNames.length);
    matrix.replaceChildren(top, ...lines, ...marks);
  }

  function drawCell(i, j, cell, styleOf) {
    const old = drawnStyles[i][j];
    if (cell.value === old.value && cell.hidden === old.hidden && cell.kind === old.kind) return;
    const square = cells[i][j];
    const { text, shade, alarm } = styleOf(cell.value, cell.hidden, cell.kind);
    const className = `tl-square${cell.hidden ? " tl-hidden" : ""}${alarm ? " tl-leak" : ""}`;
    const [background, color] = [shade?.background ?? "", shade?.color ?? ""];
    setText(square, text);
    if (className !== old.className) square.className = className;
    if (background !== old.background) square.style.backgroundColor = background;
    if (color !== old.color) square.style.color = color;
    set(square, { "aria-label": `${rows[i]}, ${columns[j]}: ${cell.hidden ? "hidden, " : ""}${text || "0"}` });
    drawnStyles[i][j] = Object.assign(cell, { className, background, color });
  }

  /** @type {(drawing: Drawing) => void} */
  function draw({ values, hidden = () => false, kind = () => "", styleOf, basis, picked: [row, column], sumOf }) {
    if (drawnBasis !== basis) drawnStyles = rows.map(() => columns.map(() => ({})));
    drawnBasis = basis;
    for (let i = 0; i < rows.length; i++) {
      for (let j = 0; j < columns.length; j++) {
        drawCell(i, j, { value: values[i][j], hidden: hidden(i, j), kind: kind(i, j) }, styleOf);
      }
    }
    for (const [i, sum] of sums.entries()) {
      setText(sum, fixed(sumOf(i)));
      sum.classList.toggle("tl-alarm", Math.abs(sumOf(i) - 1) >= MIN_SHOWN);
    }
    const down = `calc(${row} * (100% + 2px))`;
    const right = `calc(${column} * (100% + 2px))`;
    const moves = [`translateY(${down})`, `translateX(${right})`, `translate(${right}, ${down})`];
    for (const [i, move] of moves.entries()) marks[i].style.transform = move;
  }

  const markEmptyRows = (empty) => {
    for (const [i, line] of lines.entries()) line.classList.toggle("tl-sees-nothing", empty[i]);
  };
  return { node, matrix, formula, build, draw, markEmptyRows, idOf };
}
