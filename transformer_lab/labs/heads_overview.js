// The overview of the heads lab: all heads of all layers in one grid, as small maps or as scores for a pattern.

import { PATTERNS } from "./heads_patterns.js";
import { heatmap } from "./heads_pictures.js";
import { clamp, range } from "./maths.js";
import { choice, commit, element, reservedBox, reserveSpace, set, setText } from "./ui.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./heads.js").Sentence} Sentence */
/** @typedef {import("./heads.js").State} State */

const MAPS = "maps"; // what the grid shows where it does not show scores
export const OVERVIEWS = { [MAPS]: "small maps", ...PATTERNS };

// What the line below the grid says of the chosen head: its score, and its rank among all heads.
/** @type {(overview: string, place: number[], score: number | null, rank: number, count: number) => string} */
export function overviewInWords(overview, [layer, head], score, rank, count) {
  if (overview === MAPS) return "A map for each head: a row for each token that looks, strong where it looks.";
  const name = `Layer ${layer}, head ${head}`;
  if (score === null) return `${name}: “${PATTERNS[overview]}” cannot occur in this sentence.`;
  return `${name}: “${PATTERNS[overview]}” scores ${score.toFixed(2)}, rank ${rank} of ${count} heads.`;
}

// Empty rows above a small map and empty columns left of it, for the line between maps: it hides no weight.
const gapOf = (tokens) => 2 + Math.floor(tokens / 16);

// All small maps as the rows of one map. A layer is a band of rows: the gap, then a row for each query.
/** @type {(layers: number, heads: number, queries: number, keys: number,
 *   rowsOf: (layer: number, head: number) => Float32Array[]) => Float32Array[]} */
export function tiled(layers, heads, queries, keys, rowsOf) {
  const [above, left] = [gapOf(queries), gapOf(keys)];
  return range(layers).flatMap((layer) => {
    const band = range(above + queries).map(() => new Float32Array(heads * (left + keys)));
    for (const head of range(heads)) {
      for (const [i, row] of rowsOf(layer, head).entries()) band[above + i].set(row, head * (left + keys) + left);
    }
    return band;
  });
}

// Numbers along an edge of the grid, as many as have space.
const edge = (count, most) => {
  const step = Math.ceil(count / most);
  return range(count).map((i) => element("span", {}, element("span", {}, i % step ? "" : String(i))));
};

/** @type {(model: Model, all: Sentence[]) => { node: HTMLElement, draw: (state: State) => void }} */
export function overviewPanel(model, all) {
  const { layers, heads } = all[0];
  const sides = ({ queries, keys }) => [layers * (gapOf(queries) + queries), heads * (gapOf(keys) + keys)];
  const maps = all.map((sentence) => heatmap(...sides(sentence)));
  const scored = heatmap(layers, heads);
  const spot = element("div", { class: "tl-spot" });
  let at = [0, 0];
  const choose = (layer, head) =>
    commit(model, { layer: clamp(layer, 0, layers - 1), head: clamp(head, 0, heads - 1) });
  const sheet = element(
    "div",
    {
      class: "tl-stack",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "grid of heads",
      "aria-label": "All heads. Up and Down choose the layer, Left and Right the head.",
      onclick: (event) => {
        const box = sheet.getBoundingClientRect();
        const [down, right] = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
        choose(Math.floor(down * layers), Math.floor(right * heads));
      },
      onkeydown: (event) => {
        const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        if (!by) return;
        event.preventDefault();
        choose(at[0] + by[0], at[1] + by[1]);
      },
    },
    [...maps, scored].map((each) => each.node),
    element("div", { class: "tl-lines" }),
    spot,
  );
  const options = Object.entries(OVERVIEWS);
  const buttons = choice("In each cell", options, (overview) => commit(model, { overview }));
  const told = element("p", { class: "tl-note", "aria-live": "polite" });
  const node = element(
    "div",
    { class: "tl-overview" },
    element("p", { class: "tl-label" }, `All heads of all ${layers} layers: choose one`),
    all[0].own ? buttons.node : [],
    element(
      "div",
      {
        class: "tl-map tl-short",
        style: `--layers: ${layers}; --heads: ${heads}; --high: ${100 / layers}%; --wide: ${100 / heads}%`,
      },
      element("span", { class: "tl-across tl-note" }, "head"),
      element("span", { class: "tl-down tl-note" }, "layer"),
      element("div", { class: "tl-columns", "aria-hidden": "true" }, edge(heads, 6)),
      element("div", { class: "tl-rows", "aria-hidden": "true" }, edge(layers, 30)),
      sheet,
    ),
    reservedBox(told),
  );

  const count = layers * heads;
  const longest = (overview) =>
    [0, null].map((score) => overviewInWords(overview, [layers - 1, heads - 1], score, count, count));
  reserveSpace(told, ...Object.keys(OVERVIEWS).flatMap(longest));

  let painted = [];
  /** @type {(state: State) => void} */
  function draw({ sentence, layer, head, overview, theme, packed, rowsOf, scoresOf }) {
    const scores = overview === MAPS ? [] : range(layers).map((i) => scoresOf(i).map((each) => each[overview]));
    const asked = [sentence, overview, theme, packed];
    if (asked.some((value, i) => value !== painted[i])) {
      painted = asked;
      const shown = overview === MAPS ? maps[sentence] : scored;
      const { queries, keys } = all[sentence];
      for (const each of [...maps, scored]) set(each.node, { hidden: each !== shown });
      set(sheet, { class: shown !== scored && keys > 24 ? "tl-stack tl-fine" : "tl-stack" });
      shown.draw(shown === scored ? scores : tiled(layers, heads, queries, keys, rowsOf), theme);
      buttons.show(overview);
    }
    at = [layer, head];
    spot.style.transform = `translate(${100 * head}%, ${100 * layer}%)`;
    const score = scores[layer]?.[head] ?? null;
    const rank = 1 + scores.flat().filter((other) => other > score).length;
    setText(told, overviewInWords(overview, at, score, rank, count));
  }
  return { node, draw };
}
