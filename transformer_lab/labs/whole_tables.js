// Tensors of the whole lab as tables of coloured cells, numbers as bars, and a panel that is made of them and of lines.

import { clamp, range } from "./maths.js";
import { BLUES, button, element, pixelsOf, SIGNED, set, setText } from "./ui.js";

/**
 * A table: its cells, the names of its rows and, where they have some, of its columns, and the cell that is marked.
 * @typedef {object} Table
 * @property {string} label
 * @property {number[]} shape
 * @property {(i: number, j: number) => number} value
 * @property {string[]} names
 * @property {string[]} [tops]
 * @property {number[]} [at]
 * @property {(i: number, j: number) => void} [pick]
 * @property {boolean} [weights] from 0 to 1; other numbers are shown as far as the largest goes
 * @property {boolean} [on] whether it is the chosen one
 */
/** @typedef {{ name: string, size?: number, text: string, on?: boolean }} Bar */
/** @typedef {{ bars: Bar[], pick?: (i: number) => void }} Bars */
/** @typedef {string | Table | Bars | Table[]} Part A line of text, a table, bars, or tables side by side. */

const PIXELS = { weights: pixelsOf(BLUES), signed: pixelsOf(SIGNED) };

function fill(node, names) {
  while (node.children.length > names.length) node.lastChild.remove();
  while (node.children.length < names.length) node.append(element("span"));
  for (const [i, name] of names.entries()) setText(node.children[i], name);
}

// A table of coloured cells. Pointing, touch and the arrow keys pick a cell.
/** @type {() => { node: HTMLElement, draw: (table: Table) => void }} */
function heat() {
  const canvas = element("canvas");
  const context = canvas.getContext("2d", { alpha: false });
  const [row, spot] = ["tl-spot-row", "tl-spot"].map((name) => element("div", { class: name }));
  const [left, top] = ["tl-heat-rows", "tl-heat-tops"].map((name) =>
    element("div", { class: name, "aria-hidden": "true" }),
  );
  const sheet = element(
    "div",
    { class: "tl-sheet", role: "application", "aria-roledescription": "table of numbers" },
    canvas,
    row,
    spot,
  );
  const node = element("div", { class: "tl-heat" }, top, left, sheet);
  /** @type {any} */
  let now = {};
  const pick = (i, j) => now.pick?.(clamp(i, 0, now.shape[0] - 1), clamp(j, 0, now.shape[1] - 1));
  const point = ({ clientX, clientY }) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    pick(Math.floor(((clientY - top) / height) * now.shape[0]), Math.floor(((clientX - left) / width) * now.shape[1]));
  };
  set(sheet, {
    onpointerdown: point,
    onpointermove: (event) => event.pointerType === "mouse" && point(event),
    onkeydown: (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by) return;
      event.preventDefault();
      pick(now.at[0] + by[0], now.at[1] + by[1]);
    },
  });

  function draw(table) {
    now = table;
    const { label, shape, value, names, tops = [], at, weights = false, on = false } = table;
    const [rows, columns] = shape;
    const flat = range(rows * columns).map((k) => value(Math.floor(k / columns), k % columns));
    const limit = Math.max(...flat.map(Math.abs), 1e-9);
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const map = PIXELS[weights ? "weights" : "signed"];
    const tints = map[getComputedStyle(node).colorScheme] ?? map.light;
    for (const [k, x] of flat.entries()) {
      pixels[k] = tints[Math.round(clamp(weights ? x : x / limit / 2 + 0.5, 0, 1) * 255)];
    }
    if (canvas.width !== columns || canvas.height !== rows) set(canvas, { width: columns, height: rows });
    context.putImageData(image, 0, 0);
    fill(left, names);
    fill(top, tops);
    const keys = table.pick ? ". Arrow keys pick a cell." : "";
    set(node, { style: `--rows: ${rows}; --columns: ${columns}`, class: `tl-heat${on ? " tl-on" : ""}` });
    set(sheet, {
      "aria-label": label + keys,
      tabindex: table.pick ? 0 : null,
      class: at ? "tl-sheet" : "tl-sheet tl-nowhere",
    });
    if (!at) return;
    row.style.transform = `translateY(${100 * at[0]}%)`;
    spot.style.transform = `translate(${100 * at[1]}%, ${100 * at[0]}%)`;
  }
  return { node, draw };
}

// Names with a bar and a text each. With `pick` they are buttons.
/** @type {() => { node: HTMLElement, draw: (bars: Bars) => void }} */
function bars() {
  const node = element("div", { class: "tl-bars" });
  const rows = [];
  /** @type {any} */
  let now = {};
  const make = (i) => {
    const [name, bar, text] = [element("span"), element("span", { class: "tl-bar" }), element("span")];
    const row = button("", () => now.pick?.(i), { class: "tl-bar-row" });
    row.append(name, element("span", { class: "tl-part" }, bar), text);
    node.append(row);
    rows.push({ row, name, bar, text });
  };
  function draw(given) {
    now = given;
    while (rows.length < given.bars.length) make(rows.length);
    for (const [i, { row, name, bar, text }] of rows.entries()) {
      const each = given.bars[i];
      set(row, { hidden: !each });
      if (!each) continue;
      setText(name, each.name);
      setText(text, each.text);
      set(row, { "aria-pressed": String(Boolean(each.on)) });
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
  const node = element("div", { class: "tl-beside" });
  return { node, draw: content(node) };
}

// Draws parts into a node, with elements that were made before where there are some.
/** @type {(node: HTMLElement) => (parts: Part[]) => void} */
export function content(node) {
  const makers = { line, heat, bars, side };
  const made = { line: [], heat: [], bars: [], side: [] };
  const kindOf = (part) =>
    typeof part === "string" ? "line" : Array.isArray(part) ? "side" : "bars" in part ? "bars" : "heat";
  return (parts) => {
    const used = { line: 0, heat: 0, bars: 0, side: 0 };
    const nodes = parts.map((part) => {
      const kind = kindOf(part);
      const i = used[kind]++;
      made[kind][i] ??= makers[kind]();
      made[kind][i].draw(part);
      return made[kind][i].node;
    });
    if (nodes.length !== node.children.length || nodes.some((each, i) => node.children[i] !== each)) {
      node.replaceChildren(...nodes);
    }
  };
}
