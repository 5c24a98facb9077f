// The heads lab: the attention weights of every head of a layer.

import { integerCodec, optionCodec, traitsInUrl } from "./address.js";
import { observeTheme } from "./colours.js";
import { frame } from "./frame.js";
import { bestPattern, describeRow, keysByWeight, longestRow, PATTERNS, patternScores } from "./heads_patterns.js";
import { overviewPanel, OVERVIEWS } from "./heads_overview.js";
import { heatmap, largeMap, tokenChip, translateRows } from "./heads_pictures.js";
import { clamp, range } from "./maths.js";
import { choice, commit, element, getTraits, group, observe, radios, reservedBox, reserveSpace, set } from "./ui.js";
import { CHIPS, setText, sliderWithInput, widest } from "./ui.js";
import { legible, quotedAt } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {Float32Array[]} Rows Row i has the weights of query i for all keys. */
/** @typedef {{ layers: number, heads: number, queries: number, keys: number }} Counts */
// `sameTokens`: queries and keys are the same tokens.
/** @typedef {Counts & { tokens: string[], keyTokens: string[], sameTokens: boolean }} Sentence */
/**
 * The reader's choice, and the data for it: the weights of every head of the layer and of the chosen head, and the
 * pattern scores of each head of the layer.
 * @typedef {object} State
 * @property {number} sentence
 * @property {number} layer
 * @property {number} head
 * @property {number} query
 * @property {number} key
 * @property {string} overview what the grid of all heads shows
 * @property {string} theme the theme in which the maps are painted: light or dark
 * @property {Rows[]} maps
 * @property {Rows} rows
 * @property {Record<string, number | null>[] | null} layerScores
 * @property {object} packed the weights of the sentence
 * @property {(layer: number, head: number, query: number) => Float32Array} rowOf the weights of a query in any head
 * @property {(layer: number) => Record<string, number | null>[]} scoresOf the pattern scores of any layer's heads
 */
/** @typedef {{ layer: boolean, head: boolean, query: boolean }} Changed What must be redrawn. */

const MAX_BUTTONS = 12; // with more layers, a slider replaces the buttons

// Weights are sent as 16-bit integers in base64, and are decoded once for all views of a lab.
const unpackedWeights = new WeakMap();
function unpack(packed) {
  if (!unpackedWeights.has(packed)) {
    const bytes = atob(packed.data);
    const weights = new Float32Array(bytes.length / 2);
    for (let i = 0; i < weights.length; i++) {
      weights[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / packed.levels;
    }
    const [layers, heads, queries, keys] = packed.shape;
    const rowOf = (layer, head, i) => {
      const start = ((layer * heads + head) * queries + i) * keys;
      return weights.subarray(start, start + keys);
    };
    const rowsOf = (layer, head) => range(queries).map((i) => rowOf(layer, head, i));
    unpackedWeights.set(packed, { layers, heads, queries, keys, rowOf, rowsOf, scores: new Map() });
  }
  return unpackedWeights.get(packed);
}

// The pattern scores of each head of a layer, computed on first use and then cached.
function scoresIn(packed, layer, tokens) {
  const { heads, rowsOf, scores } = unpack(packed);
  if (!scores.has(layer)) {
    scores.set(
      layer,
      range(heads).map((head) => patternScores(rowsOf(layer, head), tokens)),
    );
  }
  return scores.get(layer);
}

const label = (...inside) => element("p", { class: "tl-label" }, ...inside);

// Controls to choose the layer: buttons or, if there are many layers, a slider.
/** @type {(model: Model, layers: number) => { nodes: HTMLElement[], draw: (layer: number) => void }} */
function layerPanel(model, layers) {
  const pick = (layer) => commit(model, { layer });
  if (layers <= MAX_BUTTONS) {
    const options = range(layers).map((i) => [i, String(i)]);
    const buttons = choice("Layer", options, pick);
    const node = element("div", { class: "tl-layers" }, label("Layer"), buttons.node);
    return { nodes: layers > 1 ? [node] : [], draw: buttons.show };
  }
  const input = sliderWithInput("Layer", { ends: [0, layers - 1], head: label(`Layer, of 0 to ${layers - 1}`) }, pick);
  const draw = (layer) => {
    input.show(layer);
    set(input.input, { "aria-valuetext": `layer ${layer}` });
  };
  return { nodes: [input.node], draw };
}

// Small maps of all heads of a layer, each with the name of the head's pattern and a mark on the row of the chosen
// query.
/**
 * @type {(model: Model, sentence: Sentence) =>
 *   { node: HTMLElement, draw: (state: State, changed: Changed) => void }}
 */
function smallMapsPanel(model, { heads, queries, keys, keyTokens }) {
  const smallHeatmaps = range(heads).map((i) => {
    const map = heatmap(queries, keys);
    const [topKey, badge, band] = ["tl-top-key", "tl-badge", "tl-band"].map((name) => element("span", { class: name }));
    const framed = element("span", { class: "tl-frame" }, map.node, band);
    const caption = element("span", { class: "tl-caption" }, `head ${i}`);
    return { map, topKey, badge, band, node: element("button", { class: "tl-mini" }, framed, caption, badge, topKey) };
  });
  const style = `--ratio: ${clamp(keys / queries, 0.5, 4)}; --cell-height: ${100 / queries}%`;
  const nodes = smallHeatmaps.map(({ node }) => node);
  const headRadios = radios("Head", { class: "tl-minis", style }, nodes, (head) => commit(model, { head }));

  function draw({ head, query, maps, layerScores, theme }, changed) {
    headRadios.show(head);
    for (const [i, { map, topKey, badge, band }] of smallHeatmaps.entries()) {
      if (changed.layer) {
        map.draw(maps[i], theme);
        const pattern = layerScores && bestPattern(layerScores[i]);
        setText(badge, pattern ? `${pattern.name} ${pattern.score.toFixed(2)}` : " ");
      }
      if (changed.query) {
        band.style.transform = translateRows(query);
        const row = maps[i][query];
        const top = row.indexOf(row.reduce((a, b) => Math.max(a, b)));
        setText(topKey, `${row[top].toFixed(2)} ${legible(keyTokens[top])}`);
      }
    }
  }
  return { node: headRadios.node, draw };
}

// The pattern scores of the chosen head.
function patternsTable() {
  const rows = Object.entries(PATTERNS).map(([name, text]) => {
    const value = element("td");
    const bar = element("span", { class: "tl-meter" });
    const head = element("th", { scope: "row" }, text);
    return { name, value, bar, node: element("tr", {}, head, element("td", {}, bar), value) };
  });
  const nodes = rows.map((row) => row.node);
  const table = element("table", { class: "tl-fits" }, element("tbody", {}, nodes));
  const draw = (scores) => {
    for (const { name, value, bar } of rows) {
      setText(value, scores[name] === null ? "–" : scores[name].toFixed(2));
      bar.style.setProperty("--size", scores[name] ?? 0);
    }
  };
  return { node: element("div", {}, label("How well the head fits each pattern"), table), draw };
}

const weightText = (index, weight) => `weights[${index.join(", ")}] = ${weight.toFixed(4)}`;

// A large map of the chosen head, and the weight under the pointer.
/** @type {(model: Model, sentence: Sentence) => any} */
function headPanel(model, { layers, heads, queries, keys, tokens, keyTokens, sameTokens }) {
  const map = largeMap(queries, keys, [tokens, keyTokens], (query, key) => commit(model, { query, key }));
  const table = patternsTable();
  const name = element("span", {});
  const weightLine = element("p");
  const shareLine = element("p");
  const dHead = (model.get("d_model") ?? 0) / heads;
  const features = (head) => `, features ${head * dHead} to ${(head + 1) * dHead - 1} of ${heads * dHead}`;
  const nameOf = (layer, head) => `Layer ${layer}, head ${head}${dHead ? features(head) : ""}`;
  const shareText = (queryName, keyName) => `This is the share of ${keyName} in the result of ${queryName}.`;
  const node = element(
    "div",
    { class: "tl-map-and-values" },
    element("div", { class: "tl-sticky" }, label(name), map.node),
    element(
      "div",
      {},
      sameTokens ? group("patterns", table.node) : [],
      label("Point at a weight in the map to read its value"),
      reservedBox(weightLine, "tl-reading"),
      reservedBox(shareLine, "tl-note"),
    ),
  );

  /** @type {(state: State, changed: Changed) => void} */
  function draw({ layer, head, query, key, rows, layerScores, theme }, changed) {
    if (changed.head) {
      map.draw(rows, theme);
      setText(name, nameOf(layer, head));
      if (layerScores) table.draw(layerScores[head]);
    }
    map.show(query, key);
    setText(weightLine, weightText([layer, head, query, key], rows[query][key]));
    setText(shareLine, shareText(quotedAt(tokens, query), quotedAt(keyTokens, key)));
  }

  function reserveAll(queryName, keyName) {
    reserveSpace(weightLine, weightText([layers - 1, heads - 1, queries - 1, keys - 1], 0));
    reserveSpace(shareLine, shareText(queryName, keyName));
  }
  return { node, draw, reserveAll };
}

// The sentence: its queries, and its keys shaded by their weight.
/** @type {(model: Model, sentence: Sentence, rows: () => Rows) => any} */
function sentencePanel(model, { tokens, keyTokens, sameTokens }, rows) {
  const queryButtons = tokens.map((token) => tokenChip("button", token));
  const keyButtons = sameTokens ? queryButtons : keyTokens.map((token) => tokenChip("span", token));
  const queryRadios = radios(
    "Who looks",
    { class: "tl-strip tl-chips" },
    queryButtons.map((button) => button.node),
    (query) => commit(model, { query, key: keysByWeight(rows()[query])[0] }),
  );
  const prompt = sameTokens
    ? "Choose who looks (outlined); the shade shows the weight of each token"
    : "Choose who looks";
  const keyNodes = keyButtons.map((token) => token.node);
  const nodes = [
    label(prompt),
    queryRadios.node,
    sameTokens ? [] : [label("What it looks at"), element("div", { class: "tl-strip tl-chips" }, keyNodes)],
  ].flat();

  /** @type {(state: State, status: HTMLElement) => void} */
  function draw({ layer, head, query, rows }, status) {
    queryRadios.show(query);
    for (const [j, token] of keyButtons.entries()) token.show(rows[query][j]);
    const queryName = quotedAt(tokens, query);
    setText(status, `Layer ${layer}, head ${head}: ${describeRow(rows[query], queryName, keyTokens)}`);
  }

  return { nodes, draw };
}

// The longest query and key of a sentence, and the longest status line.
/** @type {(status: HTMLElement, sentence: Sentence) => { queryName: string, keyName: string, text: string }} */
function longestOf(status, { layers, heads, tokens, keyTokens }) {
  const longest = (names) => {
    const texts = names.map((_, i) => quotedAt(names, i));
    return widest(status, texts);
  };
  const [queryName, keyName] = [tokens, keyTokens].map(longest);
  const text = `Layer ${layers - 1}, head ${heads - 1}: ${longestRow(queryName, keyName)}`;
  return { queryName, keyName, text };
}

// Controls to choose the sentence, if there are several.
/** @type {(model: Model, sentences: Sentence[]) => { nodes: HTMLElement[], draw: (sentence: number) => void }} */
function sentenceChoice(model, sentences) {
  const options = sentences.map(({ tokens }, i) => [i, tokens.map(legible).join(" ")]);
  const buttons = choice("Sentence", options, (sentence) => commit(model, { sentence }), CHIPS);
  const node = element("div", { class: "tl-sentences" }, label("Sentence"), buttons.node);
  return { nodes: sentences.length > 1 ? [node] : [], draw: buttons.show };
}

// All panels that show one sentence.
/** @type {(model: Model, sentence: Sentence, rows: () => Rows) => any} */
function panelsOf(model, sentence, rows) {
  const headMaps = smallMapsPanel(model, sentence);
  const chosenHead = headPanel(model, sentence);
  const tokensPanel = sentencePanel(model, sentence, rows);
  const inside = [
    group("heads", label("Heads of the layer: choose a head"), headMaps.node),
    chosenHead.node,
    group("tokens", tokensPanel.nodes),
  ];
  const node = element("div", {}, inside);
  const controls = model.get("controls");
  for (const part of controls ? node.querySelectorAll("[data-group]") : []) {
    if (!controls.includes(part.dataset.group)) part.remove();
  }
  return { headMaps, chosenHead, tokensPanel, node };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const others = model.get("others") ?? [];
  const packedOf = (i) => (i ? others[i - 1].weights : model.get("weights"));
  const tokenLists = [[model.get("tokens"), model.get("key_tokens")], ...others.map(({ tokens }) => [tokens, tokens])];
  /** @type {Sentence[]} */
  const sentences = tokenLists.map(([tokens, keyTokens], i) => {
    const { layers, heads, queries, keys } = unpack(packedOf(i));
    return { layers, heads, queries, keys, tokens, keyTokens, sameTokens: `${tokens}` === `${keyTokens}` };
  });
  const { layers, heads } = sentences[0];
  const largest = (axis) => Math.max(...sentences.map((sentence) => sentence[axis]));
  const layerControl = layerPanel(model, layers);
  const sentenceButtons = sentenceChoice(model, sentences);
  const overview = model.get("overview") ? overviewPanel(model, sentences) : null;
  const body = element("div", {});
  const indexCodec = (count) => integerCodec(0, count - 1);
  const urlState = traitsInUrl("heads", {
    sentence: indexCodec(sentences.length),
    layer: indexCodec(layers),
    head: indexCodec(heads),
    query: indexCodec(largest("queries")),
    key: indexCodec(largest("keys")),
    ...(overview && { overview: optionCodec(Object.keys(OVERVIEWS)) }),
  });
  const { lab, status } = frame(
    { model, el },
    "heads",
    overview ? "Every head of every layer" : "Every head of a layer",
    urlState,
    group("sentences", sentenceButtons.nodes),
    overview ? overview.node : [],
    group("layer", layerControl.nodes),
    body,
  );
  const longest = sentences.map((sentence) => longestOf(status, sentence));
  reserveSpace(status, ...longest.map(({ text }) => text));
  overview?.reserveAll(longest.map(({ queryName, keyName }) => [queryName, keyName]));
  const panelsBySentence = new Map(); // the panels of each sentence that has been shown
  function panelsFor(i) {
    if (!panelsBySentence.has(i)) {
      const panels = panelsOf(model, sentences[i], () => state.rows);
      body.append(panels.node);
      panels.chosenHead.reserveAll(longest[i].queryName, longest[i].keyName);
      panelsBySentence.set(i, panels);
    }
    for (const [j, { node }] of panelsBySentence) set(node, { hidden: j !== i });
    return panelsBySentence.get(i);
  }

  /** @type {State} */
  let state = null;

  // Updates the state with the reader's choice, and returns which parts have changed since the last drawing.
  function updateState() {
    const chosen = getTraits(model, urlState.names);
    const { tokens, queries, keys, sameTokens } = sentences[chosen.sentence];
    const packed = packedOf(chosen.sentence);
    chosen.query = Math.min(chosen.query, queries - 1);
    chosen.key = Math.min(chosen.key, keys - 1);
    const previous = state;
    const theme = getComputedStyle(lab).colorScheme;
    const layerChanged = previous?.packed !== packed || previous.layer !== chosen.layer || previous.theme !== theme;
    const { rowOf, rowsOf } = unpack(packed);
    const scoresOf = (layer) => scoresIn(packed, layer, tokens);
    const maps = layerChanged ? range(heads).map((i) => rowsOf(chosen.layer, i)) : previous.maps;
    const layerScores = sameTokens ? scoresOf(chosen.layer) : null;
    state = { packed, theme, ...chosen, maps, rows: maps[chosen.head], layerScores, rowOf, scoresOf };
    return {
      layer: layerChanged,
      head: layerChanged || previous.head !== chosen.head,
      query: layerChanged || previous.query !== chosen.query,
    };
  }

  function drawHeads() {
    const changed = updateState();
    const { headMaps, chosenHead, tokensPanel } = panelsFor(state.sentence);
    sentenceButtons.draw(state.sentence);
    overview?.draw(state);
    if (changed.layer) layerControl.draw(state.layer);
    if (changed.head || changed.query) headMaps.draw(state, changed);
    chosenHead.draw(state, changed);
    if (changed.head || changed.query) tokensPanel.draw(state, status);
  }

  const disposers = [observe(model, ["weights", ...urlState.names], drawHeads), observeTheme(lab, drawHeads)];
  return () => {
    for (const dispose of disposers) dispose();
  };
}

export default { render };
