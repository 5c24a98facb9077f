// The heads lab: the attention weights of every head of a layer, and the way of a tensor into heads and back.

import { journey, namesIn, readByHead, steps } from "./heads_journey.js";
import { bestPattern, describeRow, heaviest, legible, longestRow, PATTERNS } from "./heads_patterns.js";
import { patternScores, quotedAt } from "./heads_patterns.js";
import { heatmap, largeMap, radios, rowsDown, tokenButton } from "./heads_pictures.js";
import { clamp, product, range, ravel, unravel } from "./maths.js";
import { button, choice, commit, element, follow, frame, hueOf, reserve, room, set, setText } from "./ui.js";
import { slider, tensorGrid, traitsOf, widest } from "./ui.js";
import { shapeText } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {Float32Array[]} Rows Row i holds what query i pays to each key. */
/** @typedef {{ layers: number, heads: number, queries: number, keys: number }} Counts */
// `own` says that those who look are those who are looked at.
/** @typedef {Counts & { tokens: string[], keyTokens: string[], own: boolean }} Sentence */
/**
 * What is chosen, and what follows from it: the rows of every head of the layer, those of the chosen head, and how well
 * each head of the layer fits the patterns.
 * @typedef {object} State
 * @property {number} layer
 * @property {number} head
 * @property {number} query
 * @property {number} key
 * @property {Rows[]} maps
 * @property {Rows} rows
 * @property {Record<string, number | null>[] | null} fits
 */
/** @typedef {{ layer: boolean, head: boolean, query: boolean }} Changed What must be drawn anew. */

const MOST_BUTTONS = 12; // more layers are a slider

// Weights arrive as whole numbers of two bytes, in base64, and are unpacked once for all views of a lab.
const unpacked = new WeakMap();
function unpack(packed) {
  if (!unpacked.has(packed)) {
    const bytes = atob(packed.data);
    const weights = new Float32Array(bytes.length / 2);
    for (let i = 0; i < weights.length; i++) {
      weights[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / packed.levels;
    }
    const [layers, heads, queries, keys] = packed.shape;
    const row = (layer, head, i) => {
      const start = ((layer * heads + head) * queries + i) * keys;
      return weights.subarray(start, start + keys);
    };
    const rows = (layer, head) => range(queries).map((i) => row(layer, head, i));
    unpacked.set(packed, { layers, heads, queries, keys, rows });
  }
  return unpacked.get(packed);
}

const label = (...inside) => element("p", { class: "tl-label" }, ...inside);

// Which layer: buttons, or a slider where there are many.
/** @type {(model: Model, layers: number) => { nodes: HTMLElement[], draw: (layer: number) => void }} */
function layerPanel(model, layers) {
  const pick = (layer) => commit(model, { layer });
  const name = element("span", { class: "tl-code" });
  if (layers <= MOST_BUTTONS) {
    const options = range(layers).map((i) => [i, String(i)]);
    const buttons = choice("Layer", options, pick);
    return { nodes: layers > 1 ? [label("Layer ", name), buttons.node] : [], draw: buttons.show };
  }
  const input = slider("Layer", 0, layers - 1, pick);
  const draw = (layer) => {
    setText(name, `${layer} of 0 to ${layers - 1}`);
    input.value = layer;
    set(input, { "aria-valuetext": `layer ${layer}` });
  };
  return { nodes: [label("Layer ", name), input], draw };
}

// The heads of a layer, small: the pattern that each fits, and where the chosen token looks.
/**
 * @type {(model: Model, sentence: Sentence) =>
 *   { node: HTMLElement, draw: (state: State, changed: Changed) => void }}
 */
function smallMaps(model, { heads, queries, keys, keyTokens }) {
  const minis = range(heads).map((i) => {
    const map = heatmap(queries, keys);
    const [looks, badge, band] = ["tl-looks", "tl-badge", "tl-band"].map((kind) => element("span", { class: kind }));
    const framed = element("span", { class: "tl-frame" }, map.node, band);
    const caption = element("span", { class: "tl-caption" }, `head ${i}`);
    return { map, looks, badge, band, node: element("button", { class: "tl-mini" }, framed, caption, badge, looks) };
  });
  const style = `--ratio: ${clamp(keys / queries, 0.5, 4)}; --high: ${100 / queries}%`;
  const nodes = minis.map((mini) => mini.node);
  const group = radios("Head", { class: "tl-minis", style }, nodes, (head) => commit(model, { head }));

  function draw({ head, query, maps, fits }, changed) {
    group.show(head);
    for (const [i, { map, looks, badge, band }] of minis.entries()) {
      if (changed.layer) {
        map.draw(maps[i]);
        const best = fits && bestPattern(fits[i]);
        setText(badge, best ? `${best.name} ${best.score.toFixed(2)}` : " ");
      }
      if (changed.query) {
        band.style.transform = rowsDown(query);
        const row = maps[i][query];
        const best = row.indexOf(row.reduce((a, b) => Math.max(a, b)));
        setText(looks, `${row[best].toFixed(2)} ${legible(keyTokens[best])}`);
      }
    }
  }
  return { node: group.node, draw };
}

// How well the chosen head fits the patterns.
function patternsTable() {
  const rows = Object.entries(PATTERNS).map(([name, text]) => {
    const value = element("td");
    const bar = element("span", { class: "tl-meter" });
    const head = element("th", { scope: "row" }, text);
    return { name, value, bar, node: element("tr", {}, head, element("td", {}, bar), value) };
  });
  const nodes = rows.map((row) => row.node);
  const table = element("table", { class: "tl-fits" }, element("tbody", {}, nodes));
  const draw = (fits) => {
    for (const { name, value, bar } of rows) {
      setText(value, fits[name] === null ? "–" : fits[name].toFixed(2));
      bar.style.setProperty("--size", fits[name] ?? 0);
    }
  };
  return { node: element("div", {}, label("How much it fits a pattern"), table), draw };
}

const weightInWords = (place, weight) => `weights[${place.join(", ")}] = ${weight.toFixed(4)}`;

// The chosen head, large, and the weight that is pointed at.
/** @type {(model: Model, sentence: Sentence) => any} */
function headPanel(model, { layers, heads, queries, keys, tokens, keyTokens, own }) {
  const map = largeMap(queries, keys, [tokens, keyTokens], (query, key) => commit(model, { query, key }));
  const table = patternsTable();
  const name = element("span", {});
  const reading = element("p");
  const share = element("p");
  const shareInWords = (asker, target) => `What ${asker} takes from ${target}.`;
  const node = element(
    "div",
    { class: "tl-halves" },
    element("div", {}, label(name), map.node),
    element(
      "div",
      {},
      own ? table.node : [],
      label("The weight that is pointed at"),
      room(reading, "tl-reading"),
      room(share, "tl-note"),
    ),
  );

  /** @type {(state: State, changed: Changed) => void} */
  function draw({ layer, head, query, key, rows, fits }, changed) {
    if (changed.head) {
      map.draw(rows);
      setText(name, `Layer ${layer}, head ${head}`);
      if (fits) table.draw(fits[head]);
    }
    map.show(query, key);
    setText(reading, weightInWords([layer, head, query, key], rows[query][key]));
    setText(share, shareInWords(quotedAt(tokens, query), quotedAt(keyTokens, key)));
  }

  function makeRoom(asker, target) {
    reserve(reading, weightInWords([layers - 1, heads - 1, queries - 1, keys - 1], 0));
    reserve(share, shareInWords(asker, target));
  }
  return { node, draw, makeRoom };
}

// The sentence: who looks, and what is looked at.
/** @type {(model: Model, sentence: Sentence, rows: () => Rows) => any} */
function sentencePanel(model, { layers, heads, tokens, keyTokens, own }, rows) {
  const askers = tokens.map((token) => tokenButton("button", token));
  const looked = own ? askers : keyTokens.map((token) => tokenButton("span", token));
  const group = radios(
    "Who looks",
    { class: "tl-strip tl-chips" },
    askers.map((asker) => asker.node),
    (query) => commit(model, { query, key: heaviest(rows()[query])[0] }),
  );
  const words = element("p", { role: "status", "aria-live": "polite" });
  const ask = own ? "Choose who looks (outlined); the shade says how much each token is looked at" : "Choose who looks";
  const others = looked.map((token) => token.node);
  const nodes = [
    label(ask),
    group.node,
    own ? [] : [label("What it looks at"), element("div", { class: "tl-strip tl-chips" }, others)],
    room(words, "tl-status"),
  ].flat();

  /** @type {(state: State) => void} */
  function draw({ layer, head, query, rows }) {
    group.show(query);
    for (const [j, token] of looked.entries()) token.show(rows[query][j]);
    const who = quotedAt(tokens, query);
    setText(words, `Layer ${layer}, head ${head}: ${describeRow(rows[query], who, keyTokens)}`);
  }

  // The longest tokens are known here: it returns who asks and what is looked at.
  function makeRoom() {
    const longest = (names) =>
      widest(
        words,
        names.map((_, i) => quotedAt(names, i)),
      );
    const [asker, target] = [tokens, keyTokens].map(longest);
    reserve(words, `Layer ${layers - 1}, head ${heads - 1}: ${longestRow(asker, target)}`);
    return [asker, target];
  }
  return { nodes, draw, makeRoom };
}

// The bar of stages: a step's code, its shape in axis words, and its shape in numbers.
function stageBar(model, count) {
  const stages = range(count).map(() => {
    const code = element("code");
    const [shape, sizes] = ["tl-shape", "tl-sizes"].map((kind) => element("span", { class: kind }));
    return { code, shape, sizes, node: element("button", { class: "tl-stage" }, code, shape, sizes) };
  });
  const nodes = stages.map((stage) => stage.node);
  const pick = (stage) => commit(model, { stage });
  const group = radios("Steps of multi-head attention", { class: "tl-stages" }, nodes, pick);
  const draw = (told, chosen, sizes) => {
    for (const [i, { text, shape, wrong }] of told.entries()) {
      setText(stages[i].code, text);
      setText(stages[i].shape, shapeText(shape));
      setText(stages[i].sizes, shapeText(shape.map((axis) => sizes[axis])));
      stages[i].node.classList.toggle("tl-wrong", wrong);
    }
    group.show(chosen);
  };
  return { node: group.node, draw };
}

const TENSORS = ["x", "q", "q", "q", "scores", "weights", "out", "out", "out", "y"]; // at each stage

// The example's tensor before a step and after it. One number is followed.
function beforeAndAfter(model, example) {
  const { letter, tokenOf, nameOf, byHead, rowOf, astray } = namesIn(example);
  let column = 0; // in a table of scores: which key
  const pictures = ["Before this step", "After this step"].map((text) => {
    const picture = { step: null, drawn: "" };
    const grid = tensorGrid(`${text}. Arrow keys follow a number.`, (index) => {
      const { ids, shape } = picture.step;
      const id = ids[ravel(index, shape)];
      if (Array.isArray(id)) column = index[2];
      commit(model, { cell: [id].flat()[0] });
    });
    const name = element("span", {});
    const shape = element("span", { class: "tl-code" });
    return Object.assign(picture, { grid, name, shape, node: element("div", {}, label(name, " ", shape), grid.node) });
  });

  // Draws the step after stage `at`, of the way that `which` names.
  function drawOne(picture, step, at, which, cell) {
    const { grid, name } = picture;
    picture.node.hidden = !step;
    if (!step) return;
    const { shape, ids } = step;
    const found = (id) =>
      Array.isArray(id) ? Math.floor(id[0] / example.d_head) === Math.floor(cell / example.d_head) : id === cell;
    setText(name, TENSORS[Math.max(at, 0)]);
    setText(picture.shape, shapeText(shape));
    if (picture.drawn !== `${at} ${which}`) {
      const hue = (id) => hueOf(tokenOf([id].flat()[0]), example.seq);
      grid.draw(shape, (_, flat) => ({ text: nameOf(ids[flat]), hue: hue(ids[flat]) }), {
        block: (index) => (byHead(shape) ? `head ${index[0]}` : letter(index[0])),
        row: (index) => (byHead(shape) || shape.length === 2 ? letter(rowOf(shape, index)) : `head ${index[1]}`),
      });
      picture.drawn = `${at} ${which}`;
      picture.step = step;
    }
    const index = unravel(ids.findIndex(found), shape);
    if (Array.isArray(ids[0])) index[2] = Math.min(column, shape[2] - 1);
    grid.mark(index, { "tl-astray": range(ids.length).filter((flat) => astray(step, flat)) });
  }

  const draw = (way, ends, which, cell) => {
    for (const [i, at] of ends.entries()) drawOne(pictures[i], way[at], at, which, cell);
  };
  const nodes = pictures.map((picture) => picture.node);
  return { node: element("div", { class: "tl-row tl-before-after" }, nodes), draw };
}

const EACH_ROW = "Each row is one token’s look at all tokens, and each head has a table of its own.";
const lostInWords = (lost, all) => `${lost} of ${all} cells compare other tokens than their row and column say.`;

// The way into heads and back.
/** @type {(model: Model, sentence: Sentence) => any} */
function journeyPanel(model, { heads, queries, keys, tokens, own }) {
  const seq = own ? "seq" : "q_len";
  const example = model.get("example");
  const { features, letter, tokenOf, nameOf, byHead, rowOf, astray } = namesIn(example);
  const bar = stageBar(model, steps(false, false, seq).length);
  const toggle = (trait, text) =>
    button(text, () => commit(model, { [trait]: !model.get(trait) }), { "aria-pressed": "false" });
  const toggles = {
    split_by_view: toggle("split_by_view", "view alone to split"),
    merge_by_view: toggle("merge_by_view", "view alone to merge"),
  };
  const lesson = element("p");
  const picture = beforeAndAfter(model, example);
  const sizes =
    `tokens a to ${letter(example.seq - 1)}, d_model ${features}, ${example.heads} heads, ` +
    `d_head ${example.d_head}`;
  const mistakes = element(
    "div",
    { class: "tl-choice", role: "group", "aria-label": "A mistake" },
    Object.values(toggles),
  );
  const nodes = [
    element("p", { class: "tl-label tl-second" }, "The way into heads and back: choose a step"),
    bar.node,
    element(
      "div",
      { class: "tl-row tl-toggles" },
      element("span", { class: "tl-note" }, "What would happen with"),
      mistakes,
    ),
    room(lesson, "tl-lesson"),
    element("p", { class: "tl-note" }, `In small, and without batch: ${sizes}. b3 is feature 3 of token b.`),
    picture.node,
  ];

  // What a mistake in splitting would do to the reader's own sentence.
  function yoursInWords(splitByView) {
    if (!splitByView || heads === 1) return "";
    const [from, to] = readByHead(0, heads, queries);
    const last = to > from ? ` to ${quotedAt(tokens, to)}` : " alone";
    return ` On your sentence, head 0 of ${heads} would read ${quotedAt(tokens, from)}${last}.`;
  }

  function placeInWords(shape, index) {
    const row = letter(rowOf(shape, index));
    if (shape.length === 2) return `row ${row}`;
    return byHead(shape) ? `head ${index[0]}, row ${row}` : `token ${row}, piece ${index[1]}`;
  }

  // The number that is followed: where it stands, and who takes it for what.
  function cellInWords(step, cell, lost) {
    const { ids, shape } = step;
    const place = ids.indexOf(cell);
    if (place < 0) return lost ? lostInWords(lost, ids.length) : EACH_ROW;
    const index = unravel(place, shape);
    const feature = `${nameOf(cell)}, feature ${cell % features} of token ${letter(tokenOf(cell))}`;
    const taken = astray(step, place) ? ` That row is taken for token ${letter(rowOf(shape, index))}.` : "";
    const wrong = lost ? ` ${lost} of ${ids.length} numbers are in the wrong row.` : "";
    return `${feature}, stands at [${index.join(", ")}]: ${placeInWords(shape, index)}.${taken}${wrong}`;
  }

  function draw(status) {
    const { stage, cell, split_by_view: split, merge_by_view: merge } = traitsOf(model, PICTURED);
    const told = steps(split, merge, seq);
    const way = journey(example, split, merge);
    const whole = model.get("d_model");
    const lengths = { batch: 1, seq: queries, q_len: queries, k_len: keys, heads };
    const widths = { d_model: whole ?? "d_model", d_head: whole ? whole / heads : "d_head" };
    bar.draw(told, stage, { ...lengths, ...widths });
    set(toggles.split_by_view, { "aria-pressed": String(split) });
    set(toggles.merge_by_view, { "aria-pressed": String(merge) });
    // A transpose that is left out changes nothing: what stands before it is then what the view began with.
    const start = stage - (told[stage].wrong && stage !== 2 && stage !== 8 ? 2 : 1);
    picture.draw(way, [start, stage], `${split} ${merge}`, cell);
    setText(lesson, told[stage].words);

    const step = way[stage];
    const lost = range(step.ids.length).filter((flat) => astray(step, flat)).length;
    const yours = yoursInWords(split);
    const most = product([example.heads, example.seq, example.seq]);
    const last = letter(example.seq - 1);
    const wrong = ` That row is taken for token ${last}. ${most} of ${most} numbers are in the wrong row.`;
    const stands = `${last}0, feature 0 of token ${last}, stands at [0, 0, 0]: token ${last}, piece 0.`;
    const longest = [EACH_ROW, lostInWords(most, most), `${stands}${split || merge ? wrong : ""}`];
    reserve(status, ...longest.map((text) => `${text}${yours}`));
    setText(status, `${cellInWords(step, cell, lost)}${stage > 1 && stage < 7 ? yours : ""}`);
  }

  // Room for what each step is about, with each of the mistakes.
  function makeRoom() {
    const both = [false, true];
    const all = both.flatMap((merge) => both.flatMap((split) => steps(split, merge, seq)));
    reserve(lesson, ...new Set(all.map((step) => step.words)));
  }
  return { nodes, draw, makeRoom };
}

const CHOSEN = ["layer", "head", "query", "key"];
const PICTURED = ["stage", "cell", "split_by_view", "merge_by_view"];

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const [tokens, keyTokens] = [model.get("tokens"), model.get("key_tokens")];
  const own = JSON.stringify(tokens) === JSON.stringify(keyTokens);
  const { layers, heads, queries, keys } = unpack(model.get("weights"));
  /** @type {Sentence} */
  const sentence = { layers, heads, queries, keys, tokens, keyTokens, own };
  const layer = layerPanel(model, layers);
  const minis = smallMaps(model, sentence);
  const large = headPanel(model, sentence);
  const words = sentencePanel(model, sentence, () => state.rows);
  const stages = journeyPanel(model, sentence);
  const { status } = frame(
    { model, el },
    "Every head of a layer",
    [...CHOSEN, ...PICTURED],
    layer.nodes,
    label("Its heads: choose one"),
    minis.node,
    large.node,
    words.nodes,
    stages.nodes,
  );
  const [asker, target] = words.makeRoom();
  large.makeRoom(asker, target);
  stages.makeRoom();

  /** @type {State & { packed: object }} */
  let state = null;
  const fits = new Map(); // of layers that have been on show

  // What is chosen, and what of it was not on show before.
  function compute() {
    const packed = model.get("weights");
    const chosen = traitsOf(model, CHOSEN);
    const before = state;
    if (before?.packed !== packed) fits.clear();
    const layer = before?.packed !== packed || before.layer !== chosen.layer;
    const maps = layer ? range(heads).map((i) => unpack(packed).rows(chosen.layer, i)) : before.maps;
    if (!fits.has(chosen.layer)) {
      fits.set(chosen.layer, own ? maps.map((rows) => patternScores(rows, tokens)) : null);
    }
    state = { packed, ...chosen, maps, rows: maps[chosen.head], fits: fits.get(chosen.layer) };
    return { layer, head: layer || before.head !== chosen.head, query: layer || before.query !== chosen.query };
  }

  function drawHeads() {
    const changed = compute();
    if (changed.layer) layer.draw(state.layer);
    if (changed.head || changed.query) minis.draw(state, changed);
    large.draw(state, changed);
    if (changed.head || changed.query) words.draw(state);
  }

  const ends = [follow(model, ["weights", ...CHOSEN], drawHeads), follow(model, PICTURED, () => stages.draw(status))];
  return () => {
    for (const end of ends) end();
  };
}

export default { render };
