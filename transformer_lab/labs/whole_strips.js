// The data in the drawing: on each arrow a strip of coloured cells per token, and the links of an attention block.

import { range } from "./maths.js";
import { element, set, setText } from "./ui.js";
import { paintCells } from "./whole_cells.js";

/** @typedef {import("./whole_maths.js").Tensor} Tensor */
/** @typedef {{ trace: import("./whole_maths.js").Trace, names: Record<string, string[]> }} Data */
/** @typedef {(flow: string, side: string) => string} IdOf The tensor of an arrow in the visible layer. */

const VIEW = { left: 0, top: 0, width: 340, height: 610 }; // the view box of the drawing
const MAX_ROW = 12; // the largest height of a token's strip
const MIN_ROW = 10.5; // the smallest height that has space for a label

// An arrow’s `data-room` in the drawing stores the top and the height of its strip. All columns have the same width.
export const LEFT = { encoder: 32, decoder: 192 };
export const WIDTH = 116;
const LENS = 142; // the width of the box with links
// The strips of the position vectors are on the arrows that come from the side.
const POS_BOX = { encoder: [60, 510, 15, 16], decoder: [265, 510, 15, 16] };

// Long labels are compressed to the available width.
const fitText = (text, width) => ({
  textLength: text.length > 6 ? width : null,
  lengthAdjust: text.length > 6 ? "spacingAndGlyphs" : null,
});

// The strips of all arrows, on a canvas over the drawing; and their labels, in the drawing.
/**
 * @type {(svg: SVGElement) => {
 *   node: HTMLCanvasElement,
 *   draw: (data: Data, idOf: IdOf, isGone: (flow: string, side: string) => boolean) => void }}
 */
export function strips(svg) {
  const scale = 2;
  const node = element("canvas", {
    "class": "tl-data",
    "width": VIEW.width * scale,
    "height": VIEW.height * scale,
    "aria-hidden": "true",
  });
  const ctx = node.getContext("2d");
  const labels = element("g", { "class": "labels", "aria-hidden": "true" });
  svg.append(labels);
  const tiles = new Map(); // the canvas of each place
  let drawn = []; // what is currently drawn
  let count = 0;

  const write = (text, x, y) => {
    const label = labels.children[count++] ?? labels.appendChild(element("text"));
    set(label, { x, y, ...fitText(text, 36) });
    setText(label, text);
  };
  const strip = (place, tensor, [left, top, width, height], theme) => {
    const weights = place.endsWith("probabilities");
    if (!tiles.has(place)) tiles.set(place, element("canvas"));
    const tile = tiles.get(place);
    paintCells(tile, tensor.shape, tensor.values, weights, theme);
    const rows = tensor.shape[0];
    const gap = height / rows > 4 ? 1 : 0; // the gap between tokens
    for (const i of range(rows)) {
      const [y, y2] = [top + (i * height) / rows, top + ((i + 1) * height) / rows - gap];
      const at = [left - VIEW.left, y - VIEW.top, width, y2 - y].map((x) => Math.round(x * scale));
      ctx.drawImage(tile, 0, i, tensor.shape[1], 1, at[0], at[1], at[2], at[3]);
    }
  };

  function draw({ trace, names }, idOf, isGone) {
    const theme = getComputedStyle(node).colorScheme;
    const shown = [];
    for (const side of ["encoder", "decoder"]) {
      const positions = trace[`${side}.positions`];
      if (positions && !isGone("positions", side)) {
        shown.push({ place: `${side}.positions`, tensor: positions, box: POS_BOX[side], theme });
      }
      /** @type {NodeListOf<SVGElement>} */
      const arrows = svg.querySelectorAll(`[data-side=${side}][data-room]`);
      for (const arrow of arrows) {
        const { flow, room } = arrow.dataset;
        const [top, most] = room.split(" ").map(Number);
        const tensor = isGone(flow, side) ? null : trace[idOf(flow, side)];
        if (!tensor) continue;
        const height = Math.min(most, MAX_ROW * tensor.shape[0]);
        const box = [LEFT[side], top + (most - height) / 2, WIDTH, height];
        shown.push({ place: `${side}.${flow}`, tensor, box, theme, names: names[side] });
      }
    }
    const isSame = ({ place, tensor, theme }, i) =>
      place === drawn[i].place && tensor === drawn[i].tensor && theme === drawn[i].theme;
    if (drawn.length === shown.length && shown.every(isSame)) return;
    drawn = shown;
    ctx.imageSmoothingEnabled = false;
    ctx.clearRect(0, 0, node.width, node.height);
    count = 0;
    for (const { place, tensor, box, names: tokens } of shown) {
      strip(place, tensor, box, theme);
      const rowH = box[3] / tensor.shape[0];
      const onWire = place.startsWith("d") && !isGone("memory", "encoder") && box[1] > 150 && box[1] < 330;
      if (!tokens || rowH < MIN_ROW || onWire) continue; // no labels on the wire to the cross-attention
      for (const [i, name] of tokens.entries()) write(name.slice(0, 7), box[0] - 3, box[1] + (i + 0.5) * rowH + 4);
    }
    while (labels.children.length > count) labels.lastChild.remove();
  }
  return { node, draw };
}

// Links from each query to its keys, above an attention block; the width of a link shows the weight in the chosen head.
/** @typedef {{ id: string, tensor: Tensor, keys: string[], queries: string[], head: number, row: number }} Links */
/** @type {() => { node: SVGElement, draw: (shown: Links | null) => void }} */
export function links() {
  const box = element("rect", { class: "lens", rx: 8 });
  const title = element("text", { class: "lens-title" });
  const lines = element("g", { fill: "none" });
  const texts = element("g");
  const { left, top, width, height } = VIEW;
  const props = {
    "class": "tl-transformer tl-links",
    "viewBox": `${left} ${top} ${width} ${height}`,
    "aria-hidden": "true",
  };
  const node = element("svg", props, box, lines, texts, title);
  function draw(shown) {
    set(node, { hidden: !shown });
    if (!shown) return;
    const { tensor, keys, queries, head, row } = shown;
    const [side, , kind] = shown.id.split(".");
    const [, seq, kLen] = tensor.shape;
    const bottom = kind === "cross" ? 312 : 414; // the links end above the block
    const step = Math.min(13.5, 175 / Math.max(seq, kLen));
    const height = step * Math.max(seq, kLen) + 20;
    const left = kind === "cross" ? 182 : LEFT[side] - (side === "encoder" ? 24 : 42); // over its own column alone
    const top = bottom - height;
    set(box, { x: left, y: top, width: LENS, height });
    set(title, { x: left + LENS / 2, y: top + 12 });
    setText(title, `head ${head + 1} of ${tensor.shape[0]}`);
    const [a, b] = [left + 45, left + LENS - 45];
    const y = (i, count) => top + 14 + ((i + 0.5) * (height - 20)) / count;
    const paths = [];
    for (const i of range(seq)) {
      for (const j of range(kLen)) {
        const weight = tensor.values[(head * seq + i) * kLen + j];
        if (weight < 0.02) continue;
        const [from, to] = [y(i, seq), y(j, kLen)];
        const middle = (a + b) / 2;
        paths.push({
          "d": `M${a} ${from}C${middle} ${from} ${middle} ${to} ${b} ${to}`,
          "stroke-width": (0.4 + 4.6 * weight).toFixed(2),
          "class": i === row ? "chosen" : null,
        });
      }
    }
    while (lines.children.length > paths.length) lines.lastChild.remove();
    for (const [i, path] of paths.entries()) set(lines.children[i] ?? lines.appendChild(element("path")), path);
    const names = [
      ...queries.map((name, i) => ({ name, x: a - 4, y: y(i, seq), end: "end" })),
      ...keys.map((name, j) => ({ name, x: b + 4, y: y(j, kLen), end: "start" })),
    ];
    while (texts.children.length > names.length) texts.lastChild.remove();
    for (const [i, { name, x, y, end }] of names.entries()) {
      const text = texts.children[i] ?? texts.appendChild(element("text"));
      set(text, { x, "y": y + 4, "style": `text-anchor: ${end}`, ...fitText(name.slice(0, 8), 38) });
      setText(text, name.slice(0, 8));
    }
  }
  return { node, draw };
}
