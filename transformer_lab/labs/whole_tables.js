// Tables of coloured cells, bars, and panels that combine them with lines of text.

import { clamp, range } from "./maths.js";
import { button, element, set, setText } from "./ui.js";
import { paintCells } from "./whole_cells.js";

/**
 * A table: its cells, the names of its rows and optionally of its columns, and the marked cell.
 * @typedef {object} Table
 * @property {string} [label]
 * @property {number[]} shape
 * @property {(i: number, j: number) => number} value
 * @property {string[]} names
 * @property {string[]} [tops]
 * @property {number[]} [at]
 * @property {(i: number, j: number) => void} [pick]
 * @property {boolean} [weights] whether the numbers range from 0 to 1; other numbers are scaled by the largest absolute
 * value
 * @property {boolean} [on] whether the table is chosen
 */
/** @typedef {{ name: string, size?: number, texts: string[], on?: boolean }} Bar */
/** @typedef {{ bars: Bar[], pick?: (i: number) => void, heads?: string[] }} Bars `heads`: headings above the texts. */
/** @typedef {string | Table | Bars | Table[]} Part A line of text, a table, bars, or tables side by side. */

function fill(node, names) {
  while (node.children.length > names.length) node.lastChild.remove();
  while (node.children.length < names.length) node.append(element("span"));
  for (const [i, name] of names.entries()) setText(node.children[i], name);
}

// A table of coloured cells. Pointer, touch and arrow keys select a cell.
/** @type {() => { node: HTMLElement, draw: (table: Table) => void }} */
function heat() {
  const canvas = element("canvas");
  const spot = element("div", {
    class: "tl-spot",
    role: "gridcell",
    id: `tl-cells-${Math.random().toString(36).slice(2)}-`,
  });
  const row = element("div", { class: "tl-spot-row", role: "row" }, spot);
  const [left, top] = ["tl-heat-rows", "tl-heat-tops"].map((name) =>
    element("div", { class: name, "aria-hidden": "true" }),
  );
  const sheet = element("div", { class: "tl-sheet" }, canvas, row);
  const node = element("div", { class: "tl-heat" }, top, left, sheet);
  /** @type {any} */
  let now = {};
  const pick = (i, j) => now.pick?.(clamp(i, 0, now.shape[0] - 1), clamp(j, 0, now.shape[1] - 1));
  const pickAt = ({ clientX, clientY }) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    pick(Math.floor(((clientY - top) / height) * now.shape[0]), Math.floor(((clientX - left) / width) * now.shape[1]));
  };
  set(sheet, {
    onpointerdown: pickAt,
    onpointermove: (event) => event.pointerType === "mouse" && pickAt(event),
    onkeydown: (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      pick(now.at[0] + step[0], now.at[1] + step[1]);
    },
  });

  function draw(table) {
    now = table;
    const { label = "Numbers", shape, value, names, tops = [], at, weights = false, on = false } = table;
    const [rows, columns] = shape;
    const flat = range(rows * columns).map((k) => value(Math.floor(k / columns), k % columns));
    paintCells(canvas, shape, flat, weights, getComputedStyle(node).colorScheme);
    fill(left, names);
    fill(top, tops);
    set(node, {
      style: `--rows: ${rows}; --columns: ${columns}`,
      class: `tl-heat tl-${weights ? "weights" : "signed"}${on ? " tl-on" : ""}`,
    });
    set(sheet, {
      "aria-label": label,
      role: table.pick ? "grid" : "img",
      tabindex: table.pick ? 0 : null,
      "aria-activedescendant": table.pick && spot.id,
    });
    if (!at) return;
    row.style.transform = `translateY(${100 * at[0]}%)`;
    spot.style.transform = `translateX(${100 * at[1]}%)`;
    const [i, j] = at;
    set(spot, { "aria-label": `${names[i] ?? `row ${i}`}, ${tops[j] ?? j}: ${value(i, j).toFixed(2)}` });
  }
  return { node, draw };
}

// Rows, each with a name, a bar and texts. A press on a row calls `pick`.
/** @type {() => { node: HTMLElement, draw: (bars: Bars) => void }} */
function bars() {
  const tops = range(4).map(() => element("span"));
  const node = element("div", { class: "tl-bars" }, element("div", { class: "tl-bar-heads tl-note" }, tops));
  const rows = [];
  /** @type {any} */
  let now = {};
  const addRow = (i) => {
    const [name, bar, ...texts] = range(4).map((j) => element("span", { class: j === 1 && "tl-bar" }));
    const row = button("", () => now.pick?.(i), { class: "tl-bar-row" });
    row.append(name, element("span", { class: "tl-part" }, bar), ...texts);
    node.append(row);
    rows.push({ row, name, bar, texts });
  };
  function draw(data) {
    now = data;
    const { heads = [] } = data;
    for (const [j, node] of tops.entries()) setText(node, heads[j - 2] ?? "");
    while (rows.length < data.bars.length) addRow(rows.length);
    for (const [i, { row, name, bar, texts }] of rows.entries()) {
      const each = data.bars[i];
      set(row, { hidden: !each });
      if (!each) continue;
      setText(name, each.name);
      for (const [j, node] of texts.entries()) setText(node, each.texts[j] ?? "");
      const facts = each.texts.map((text, j) => `${heads[j] ?? ""} ${text}`);
      set(row, { "aria-pressed": String(Boolean(each.on)), "aria-label": [each.name, ...facts].join(", ") });
      set(bar.parentNode, { hidden: each.size === undefined });
      bar.style.transform = `scaleX(${each.size ?? 0})`;
    }
  }
  return { node, draw };
}

function line() {
  const node = element("p", { class: "tl-worked" });
  return { node, draw: (text) => setText(node, text) };
}

function side() {
  const node = element("div", {
    "class": "tl-beside",
    "role": "group",
    "aria-label": "Weights, a table for each head",
  });
  return { node, draw: content(node) };
}

// Returns a function that draws parts into a node, and reuses existing elements.
/** @type {(node: HTMLElement) => (parts: Part[]) => void} */
export function content(node) {
  const makers = { line, heat, bars, side };
  const cache = {};
  const kindOf = (part) =>
    typeof part === "string" ? "line" : Array.isArray(part) ? "side" : "bars" in part ? "bars" : "heat";
  return (parts) => {
    const nodes = parts.map((part, i) => {
      const kind = kindOf(part);
      cache[kind + i] ??= makers[kind]();
      cache[kind + i].draw(part);
      return cache[kind + i].node;
    });
    if (nodes.length !== node.children.length || nodes.some((each, i) => node.children[i] !== each)) {
      node.replaceChildren(...nodes);
    }
  };
}
