// Parts of the heads lab: heatmaps, and tokens with a weight.

import { BLUES, cellColours, pixelsOf } from "./colours.js";
import { clamp, range } from "./maths.js";
import { element, set } from "./ui.js";
import { legible } from "./words.js";

// The colour map of weights in 256 steps, as CSS colours and as pixels.
const CELL_COLOURS = range(256).map((level) => cellColours(BLUES, level / 255));
const PIXELS = pixelsOf(BLUES);
const levelOf = (weight) => Math.round(clamp(weight, 0, 1) * 255);

// A mark is as high as a row, so a transform of 100 % moves the mark by one row, and the browser need not recompute the
// layout.
export const translateRows = (i) => `translateY(${100 * i}%)`;

// A matrix of weights, one pixel per weight, on a canvas that CSS stretches. A change of theme repaints the
// canvas.
/** @type {(queries: number, keys: number) =>
 *   { node: HTMLElement, draw: (rows: ArrayLike<number>[], theme: string) => void }} */
export function heatmap(queries, keys) {
  const node = element("canvas", { width: keys, height: queries, "aria-hidden": "true" });
  const context = node.getContext("2d", { alpha: false });
  const image = context.createImageData(keys, queries);
  const pixels = new Uint32Array(image.data.buffer);
  const draw = (rows, theme) => {
    const colours = PIXELS[theme] ?? PIXELS.light;
    for (const [i, row] of rows.entries()) {
      for (let j = 0; j < keys; j++) pixels[i * keys + j] = colours[levelOf(row[j])];
    }
    context.putImageData(image, 0, 0);
  };
  return { node, draw };
}

// The large map: pointing at a cell chooses the query of its row and the key of its column.
/**
 * @type {(queries: number, keys: number, tokenLists: [string[], string[]], choose: (i: number, j: number) => void) =>
 *   { node: HTMLElement, draw: (rows: ArrayLike<number>[], theme: string) => void,
 *     show: (i: number, j: number) => void }}
 */
export function largeMap(queries, keys, tokenLists, choose) {
  const map = heatmap(queries, keys);
  const band = element("div", { class: "tl-band" });
  const cellMark = element("div", { class: "tl-cell-mark" });
  let chosen = [0, 0];
  const node = element(
    "div",
    {
      class: "tl-sheet",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "heatmap",
      "aria-label": "Weights of the chosen head. Up and Down choose the query, Left and Right the key.",
    },
    map.node,
    band,
    cellMark,
  );
  /** @type {(index: number[]) => [number, number]} */
  const clampIndices = ([i, j]) => [clamp(i, 0, queries - 1), clamp(j, 0, keys - 1)];
  const chooseAt = (event) => {
    const box = map.node.getBoundingClientRect();
    choose(
      ...clampIndices([
        Math.floor(((event.clientY - box.top) / box.height) * queries),
        Math.floor(((event.clientX - box.left) / box.width) * keys),
      ]),
    );
  };
  set(node, {
    onpointermove: (event) => {
      if (event.pointerType === "mouse" || event.buttons) chooseAt(event);
    },
    onpointerdown: chooseAt,
    onkeydown: (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(...clampIndices([chosen[0] + step[0], chosen[1] + step[1]]));
    },
  });
  const label = (token) => element("span", {}, element("span", {}, legible(token)));
  const rows = tokenLists[0].map(label);
  const columns = tokenLists[1].map(label);
  const show = (i, j) => {
    for (const label of [rows[chosen[0]], columns[chosen[1]]]) set(label, { class: false });
    chosen = [i, j];
    for (const label of [rows[i], columns[j]]) set(label, { class: "tl-on" });
    band.style.transform = translateRows(i);
    cellMark.style.transform = `translate(${100 * j}%, ${100 * i}%)`;
  };
  // Two letters fit without rotation.
  const hasShortTokens = tokenLists[1].every((token) => [...legible(token)].length < 3);
  const ratio = clamp(keys / queries, 0.6, 4);
  const mapWithLabels = element(
    "div",
    {
      class: `tl-map${Math.max(queries, keys) > 20 ? " tl-dense" : ""}${hasShortTokens ? " tl-short" : ""}`,
      style: `--ratio: ${ratio}; --keys: ${keys}; --cell-height: ${100 / queries}%; --cell-width: ${100 / keys}%`,
    },
    element("span", { class: "tl-x-title tl-note" }, "k_len (what is looked at)"),
    element("span", { class: "tl-y-title tl-note" }, "q_len (who looks)"),
    element("div", { class: "tl-columns", "aria-hidden": "true" }, columns),
    element("div", { class: "tl-rows", "aria-hidden": "true" }, rows),
    node,
  );
  return { node: mapWithLabels, draw: map.draw, show };
}

// A token shaded by its weight. The shade is a span inside the button, since restyling the span takes a third of the
// time of restyling the button.
/** @type {(tag: string, token: string) => { node: HTMLElement, show: (weight: number) => void }} */
export function tokenChip(tag, token) {
  const weight = new Text();
  const text = legible(token);
  const shade = element(
    "span",
    { class: "tl-shade" },
    element("span", { class: text.length > 6 ? "tl-token tl-long" : "tl-token" }, text),
    element("small", {}, weight),
  );
  let shown = {};
  const show = (value) => {
    const next = { ...CELL_COLOURS[levelOf(value)], data: value >= 0.005 ? value.toFixed(2) : "0" };
    if (next.background !== shown.background) shade.style.backgroundColor = next.background;
    if (next.color !== shown.color) shade.style.color = next.color;
    if (next.data !== shown.data) weight.data = next.data;
    shown = next;
  };
  return { node: element(tag, { class: "tl-chip" }, shade), show };
}
