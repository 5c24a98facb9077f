// The overview of the heads lab: all heads of all layers in one grid, as small maps or as one number each.

import { PATTERNS } from "./heads_patterns.js";
import { heatmap } from "./heads_pictures.js";
import { clamp, range } from "./maths.js";
import { choice, commit, element, reservedBox, reserveSpace, set, setText } from "./ui.js";
import { quotedAt } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./heads.js").Sentence} Sentence */
/** @typedef {import("./heads.js").State} State */

const SMALL_MAPS = "maps";
const CHOSEN_WEIGHT = "weight";
export const OVERVIEWS = { [SMALL_MAPS]: "small maps", [CHOSEN_WEIGHT]: "chosen weight", ...PATTERNS };

// The line below the grid, which describes the chosen head: its value in the grid, and its rank among all heads.
/** @type {(overview: string, index: number[], pair: string[], value: number | null, rank: number, count: number) =>
 *   string} */
export function overviewText(overview, [layer, head], [queryName, keyName], value, rank, count) {
  if (overview === SMALL_MAPS) return "One map per head: a row for each query, with strong colours for large weights.";
  const name = `Layer ${layer}, head ${head}`;
  if (value === null) return `${name}: “${PATTERNS[overview]}” cannot occur in this sentence.`;
  const claim =
    overview === CHOSEN_WEIGHT ? `weight of ${queryName} for ${keyName}` : `score for “${PATTERNS[overview]}”`;
  return `${name}: the ${claim} is ${value.toFixed(2)}, rank ${rank} of ${count} heads.`;
}

// Empty rows above a small map and empty columns to its left leave room for the line between maps, so that the line
// hides no weight.
const gapSize = (tokens) => 2 + Math.floor(tokens / 16);

// Returns the rows of one large map that contains all the small maps. A layer is a band of rows: the gap, then a row
// for each query.
/** @type {(layers: number, heads: number, queries: number, keys: number,
 *   rowOf: (layer: number, head: number, query: number) => Float32Array) => Float32Array[]} */
export function tileMaps(layers, heads, queries, keys, rowOf) {
  const [above, left] = [gapSize(queries), gapSize(keys)];
  return range(layers).flatMap((layer) => {
    const band = range(above + queries).map(() => new Float32Array(heads * (left + keys)));
    for (const head of range(heads)) {
      for (const i of range(queries)) band[above + i].set(rowOf(layer, head, i), head * (left + keys) + left);
    }
    return band;
  });
}

// Labels along an edge of the grid, as many as fit.
const edgeLabels = (count, maxLabels) => {
  const step = Math.ceil(count / maxLabels);
  return range(count).map((i) => element("span", {}, element("span", {}, i % step ? "" : String(i))));
};

/** @type {(model: Model, sentences: Sentence[]) =>
 *   { node: HTMLElement, draw: (state: State) => void, reserveAll: (pairs: string[][]) => void }} */
export function overviewPanel(model, sentences) {
  const { layers, heads } = sentences[0];
  const maps = sentences.map(({ queries, keys }) =>
    heatmap(layers * (gapSize(queries) + queries), heads * (gapSize(keys) + keys)),
  );
  const scoreMap = heatmap(layers, heads);
  const cellMark = element("div", { class: "tl-cell-mark" });
  let chosen = [0, 0];
  const choose = (layer, head) =>
    commit(model, { layer: clamp(layer, 0, layers - 1), head: clamp(head, 0, heads - 1) });
  const grid = element(
    "div",
    {
      class: "tl-stack",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "grid of heads",
      "aria-label": "All heads. Up and Down choose the layer, Left and Right the head.",
      onclick: (event) => {
        const box = grid.getBoundingClientRect();
        const [down, right] = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
        choose(Math.floor(down * layers), Math.floor(right * heads));
      },
      onkeydown: (event) => {
        const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        if (!step) return;
        event.preventDefault();
        choose(chosen[0] + step[0], chosen[1] + step[1]);
      },
    },
    [...maps, scoreMap].map(({ node }) => node),
    element("div", { class: "tl-lines" }),
    cellMark,
  );
  const options = Object.entries(OVERVIEWS).filter(([name]) => sentences[0].sameTokens || !PATTERNS[name]);
  const buttons = choice("In each cell", options, (overview) => commit(model, { overview }));
  const status = element("p", { class: "tl-note", "aria-live": "polite" });
  const node = element(
    "div",
    { class: "tl-overview" },
    element("p", { class: "tl-label" }, "All heads, a row for each layer: choose a head"),
    buttons.node,
    element(
      "div",
      {
        class: "tl-map tl-short",
        style: `--layers: ${layers}; --heads: ${heads}; --cell-height: ${100 / layers}%; --cell-width: ${100 / heads}%`,
      },
      element("span", { class: "tl-x-title tl-note" }, "head"),
      element("span", { class: "tl-y-title tl-note" }, "layer"),
      element("div", { class: "tl-columns", "aria-hidden": "true" }, edgeLabels(heads, 6)),
      element("div", { class: "tl-rows", "aria-hidden": "true" }, edgeLabels(layers, 30)),
      grid,
    ),
    reservedBox(status),
  );

  const count = layers * heads;
  let drawnInputs = [];
  /** @type {(state: State) => void} */
  function draw({ sentence, layer, head, query, key, overview, theme, packed, rowOf, scoresOf }) {
    const { queries, keys, tokens, keyTokens } = sentences[sentence];
    const cellValue = (i, j) => (overview === CHOSEN_WEIGHT ? rowOf(i, j, query)[key] : scoresOf(i)[j][overview]);
    const values = overview === SMALL_MAPS ? [] : range(layers).map((i) => range(heads).map((j) => cellValue(i, j)));
    const inputs = [sentence, overview, theme, packed, ...(overview === CHOSEN_WEIGHT ? [query, key] : [])];
    if (inputs.some((value, i) => value !== drawnInputs[i])) {
      drawnInputs = inputs;
      const shownMap = overview === SMALL_MAPS ? maps[sentence] : scoreMap;
      for (const map of [...maps, scoreMap]) set(map.node, { hidden: map !== shownMap });
      set(grid, { class: overview === SMALL_MAPS && keys > 24 ? "tl-stack tl-fine" : "tl-stack" });
      shownMap.draw(overview === SMALL_MAPS ? tileMaps(layers, heads, queries, keys, rowOf) : values, theme);
      buttons.show(overview);
    }
    chosen = [layer, head];
    cellMark.style.transform = `translate(${100 * head}%, ${100 * layer}%)`;
    const value = values[layer]?.[head] ?? null;
    const rank = 1 + values.flat().filter((other) => other > value).length;
    const pair = [quotedAt(tokens, query), quotedAt(keyTokens, key)];
    setText(status, overviewText(overview, chosen, pair, value, rank, count));
  }

  /** @type {(pairs: string[][]) => void} */
  function reserveAll(pairs) {
    const lastHead = [layers - 1, heads - 1];
    const valueTexts = options.flatMap(([name]) =>
      pairs.map((pair) => overviewText(name, lastHead, pair, 0, count, count)),
    );
    const missingTexts = Object.keys(PATTERNS).map((name) =>
      overviewText(name, lastHead, pairs[0], null, count, count),
    );
    reserveSpace(status, ...new Set([...valueTexts, ...missingTexts]));
  }
  return { node, draw, reserveAll };
}
