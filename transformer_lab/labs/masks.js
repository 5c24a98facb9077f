// The mask lab: scores → masked scores → weights → output for any mask, correct or with a classic mistake.

import { integerCodec, numbersCodec, optionCodec, textCodec, traitsInUrl } from "./address.js";
import { BLUES, cellColours, signedCellColours } from "./colours.js";
import { frame } from "./frame.js";
import { compute, PAD, presetMask, sideNames } from "./masks_maths.js";
import { stageTable } from "./masks_stage.js";
import {
  consequencesText,
  leakText,
  longestTexts,
  MAX_OUTPUT,
  MIN_SHOWN,
  MISTAKES,
  outputText,
} from "./masks_words.js";
import { parseTokens, presetText, rowText } from "./masks_words.js";
import { clamp, range, sum } from "./maths.js";
import { makePaintable } from "./paint.js";
import { button, choice, commit, element, field, getTraits, group, observe, parsedInput, reservedBox } from "./ui.js";
import { CHIPS, reserveSpace, set, setText, widest, widthInEms } from "./ui.js";
import { fixed, parseNumber, quoted, shapeText, short } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./masks_maths.js").State} State */
/** @typedef {import("./masks_maths.js").Computed} Computed */

const TRAITS = ["tokens", "source", "preset", "window", "prefix", "flipped", "mistake", "at", "given"];

/** @type {(model: Model) => State} */
function stateOf(model) {
  const presets = Object.fromEntries(model.get("presets").map((preset) => [preset.name, preset]));
  const state = { ...getTraits(model, [...TRAITS, "limits"]), presets };
  return { ...state, ...sideNames(state) };
}

// The selected cell, clamped to the table, since a sentence may have become shorter.
/** @type {(state: Pick<State, "at" | "queries" | "keys">) => [number, number]} */
const selectedCell = ({ at, queries, keys }) => [Math.min(at[0], queries.length - 1), Math.min(at[1], keys.length - 1)];

const labelledRow = (text, ...controls) =>
  element("div", { class: "tl-row tl-presets" }, element("span", { class: "tl-note" }, text), ...controls);

// A control for a small number: a field, with buttons − and +.
function stepper(label, pick) {
  /** @type {[number, number]} */
  let ends = [0, 0];
  let shown = 0;
  const name = `${label[0].toUpperCase()}${label.slice(1)}`;
  const number = parsedInput((text) => parseNumber(text, name, ends), pick, {
    "aria-label": name,
    inputmode: "numeric",
  });
  const step = (change) => pick(shown + change);
  const less = button("−", () => step(-1), { "aria-label": `Less ${label}` });
  const more = button("+", () => step(1), { "aria-label": `More ${label}` });
  const note = element("span", { class: "tl-note" }, name);
  const show = (value, least, most) => {
    [ends, shown] = [[least, most], value];
    number.show(String(value));
    set(less, { disabled: value <= least });
    set(more, { disabled: value >= most });
  };
  const parts = [note, less, number.input, more, number.error];
  return { node: element("div", { class: "tl-stepper", role: "group", "aria-label": label }, parts), show };
}

// The typed sentences, and the number of padding tokens at the end of the keys.
/** @type {(model: Model) => { node: HTMLElement, draw: (state: State) => void }} */
function sentencePanel(model) {
  const limits = model.get("limits");
  const hint = `Up to ${limits.tokens} tokens; ${PAD} is padding`;
  const sentenceField = (name) => {
    const accept = (value) => commit(model, { [name]: value });
    return field("", hint, (text) => parseTokens(text, limits), accept);
  };
  const fields = { tokens: sentenceField("tokens"), source: sentenceField("source") };
  const paddingCount = (keys) => keys.length - 1 - keys.findLastIndex((token) => token !== PAD);
  const padding = stepper("padding", (count) => {
    const { keys, source } = stateOf(model);
    const name = keys === source ? "source" : "tokens";
    commit(model, { [name]: [...keys.slice(0, keys.length - paddingCount(keys)), ...Array(count).fill(PAD)] });
  });
  const hidden = Boolean(model.get("given"));
  const node = element("div", { class: "tl-row", hidden }, fields.tokens.node, fields.source.node, padding.node);

  function draw(state) {
    const { queries, keys, presets, preset } = state;
    for (const [name, { node, show }] of Object.entries(fields)) {
      show(state[name].join(" "));
      node.hidden = queries !== state[name] && keys !== state[name];
    }
    const isCross = queries !== keys;
    const target = presets[preset].is_block ? "Target sentence" : "Sentence";
    setText(fields.tokens.label, isCross ? "Target sentence (the queries)" : target);
    setText(fields.source.label, isCross ? "Source sentence (the keys)" : "Source sentence");
    const nPads = paddingCount(keys);
    if (nPads === keys.length)
      padding.show(nPads, 1, nPads); // at least one token remains
    else padding.show(nPads, 0, nPads + limits.tokens - keys.length);
  }
  return { node, draw };
}

// The presets that are possible with these tokens.
function availablePresets(model) {
  const { presets, given, source } = stateOf(model);
  const isPossible = ({ is_block: isBlock, padding }) => !given || (!isBlock && (!padding || source.includes(PAD)));
  return Object.keys(presets).filter((name) => isPossible(presets[name]));
}

// The presets, and a description of the chosen preset.
/** @type {(model: Model) => any} */
function presetPanel(model) {
  const { presets, given, limits } = stateOf(model);
  const pick = (preset) => {
    const { keys, source, tokens } = { ...stateOf(model), ...sideNames({ ...stateOf(model), preset }) };
    const name = keys === source ? "source" : "tokens";
    const words = { source, tokens }[name];
    // Without padding, a padding preset hides nothing.
    const needsPadding = !given && presets[preset].padding && !words.includes(PAD);
    const padding = Array(Math.min(2, limits.tokens - words.length)).fill(PAD);
    commit(model, { preset, flipped: [], ...(needsPadding ? { [name]: [...words, ...padding] } : {}) });
  };
  const available = availablePresets(model);
  const possiblePresets = Object.entries(presets).filter(([name]) => available.includes(name));
  const options = (isBlock) =>
    possiblePresets.filter(([, preset]) => preset.is_block === isBlock).map(([name, { label }]) => [name, label]);
  const patterns = choice("Mask", options(false), pick, CHIPS);
  const inTransformer = choice("Place in a Transformer", options(true), pick, CHIPS);
  const description = element("p");
  const lengthStepper = (name) => stepper(name, (value) => commit(model, { [name]: value }));
  const lengths = { window: lengthStepper("window"), prefix: lengthStepper("prefix") };
  const nodes = [
    group("mask", labelledRow("Mask", patterns.node)),
    group("place", set(labelledRow("In a Transformer", inTransformer.node), { hidden: !options(true).length })),
    element("div", { class: "tl-row tl-about" }, reservedBox(description), lengths.window.node, lengths.prefix.node),
  ];

  function draw(state, { mask, base }) {
    const flipped = sum(mask.map((row, i) => row.filter((seen, j) => seen !== base[i][j]).length));
    patterns.show(flipped ? null : state.preset);
    inTransformer.show(flipped ? null : state.preset);
    for (const [name, { node, show }] of Object.entries(lengths)) {
      node.hidden = !presets[state.preset][name];
      show(state[name], name === "window" ? 1 : 0, limits.tokens);
    }
    setText(description, presetText(state, flipped));
    const longest = { ...state, window: limits.tokens, prefix: limits.tokens };
    reserveSpace(description, ...[0, limits.tokens ** 2].map((flipped) => presetText(longest, flipped)));
  }
  return { nodes, draw };
}

// Shows and hides cells, and selects one. `computed` returns the current numbers.
/** @type {(model: Model, computed: () => Computed) => import("./paint.js").Editor} */
function maskEditor(model, computed) {
  const hasChanged = (flipped, { flipped: previous }) => JSON.stringify(flipped) !== JSON.stringify(previous);
  return {
    paint(cells, seen, at) {
      const state = stateOf(model);
      const mask = computed().mask.map((row) => [...row]);
      const base = presetMask(state);
      for (const [i, j] of cells) mask[i][j] = seen;
      const flipped = mask.flatMap((row, i) => row.flatMap((value, j) => (value === base[i][j] ? [] : [[i, j]])));
      commit(model, { at, ...(hasChanged(flipped, state) ? { flipped } : {}) });
    },
    pick(at) {
      const [i, j] = selectedCell(stateOf(model));
      if (at[0] !== i || at[1] !== j) commit(model, { at });
    },
    // Moves the selection by rows and columns, inside the table.
    move([down, right]) {
      const { queries, keys, ...state } = stateOf(model);
      const [i, j] = selectedCell({ queries, keys, ...state });
      this.pick([clamp(i + down, 0, queries.length - 1), clamp(j + right, 0, keys.length - 1)]);
    },
    toggle() {
      const [i, j] = selectedCell(stateOf(model));
      this.paint([[i, j]], !computed().mask[i][j], [i, j]);
    },
    isSeen: ([i, j]) => computed().mask[i][j],
  };
}

// For each stage, a function that returns the style of a cell. The function for the output depends on the largest
// output.
function cellStyles({ keys, mistake }, maxScore) {
  return {
    scores: (score) => ({ text: short(score), shade: signedCellColours(score, maxScore) }),
    masked: (score, hidden) => {
      const isLargeNegative = mistake === "large negative" && hidden;
      const isMasked = score === -Infinity || isLargeNegative;
      return {
        text: isLargeNegative ? "−10⁹" : short(score),
        alarm: isMasked ? !hidden && mistake !== "inverted" : hidden,
        shade: isMasked ? null : signedCellColours(score, maxScore),
      };
    },
    weights: (weight, hidden, kind) => {
      const isZero = hidden && weight < 0.0005;
      const isLost = kind === "lost" && !hidden && mistake !== "inverted";
      const text = keys.length > 9 ? fixed(weight).replace(/^0/, "") : fixed(weight);
      return {
        text: kind === "empty" ? "" : isZero ? "0" : text,
        alarm: kind !== "empty" && (isLost || (hidden && weight >= MIN_SHOWN)),
        shade: isZero ? null : cellColours(BLUES, weight),
      };
    },
    output: (maxOutput) => (x) => ({ text: short(x), shade: signedCellColours(x, maxOutput) }),
  };
}

// The four stages. A narrow page shows one stage at a time.
/** @type {(model: Model, el: HTMLElement, computed: () => Computed, redraw: () => void) => any} */
function stagesPanel(model, el, computed, redraw) {
  const given = model.get("given");
  const stages = {
    scores: stageTable("scores", "scores"),
    masked: stageTable("masked", "masked scores"),
    weights: stageTable("weights", "weights"),
    output: stageTable("output", "output"),
  };
  const showsAll = model.get("controls")?.includes("stages") ?? true;
  const names = Object.keys(stages).filter((name) =>
    name === "weights" ? true : showsAll && (name !== "output" || !given || given.value),
  );
  let frontStage = "weights";
  const options = names.map((name) => [name, name]);
  const tabs = choice("Stage", options, (name) => {
    frontStage = name;
    redraw();
  });
  tabs.node.classList.add("tl-tabs");
  const stageNodes = names.map((name) => stages[name].node);
  const node = element("div", { class: "tl-sticky" }, showsAll ? tabs.node : [], stageNodes);
  const mistakes = Object.values(MISTAKES);
  reserveSpace(stages.masked.formula, ...new Set(mistakes.map(({ masked }) => masked)));
  reserveSpace(stages.weights.formula, ...new Set(mistakes.map(({ weights }) => weights)));

  const editor = maskEditor(model, computed);
  for (const name of ["scores", "masked", "weights"]) makePaintable(stages[name].matrix, el, editor);
  stages.output.matrix.addEventListener("pointermove", ({ target }) => {
    /** @type {HTMLElement} */
    const square = target instanceof Element ? target.closest(".tl-square") : null;
    if (square) editor.pick([+square.dataset.at.split(" ")[0], selectedCell(stateOf(model))[1]]);
  });

  function drawFormulas(mistake) {
    setText(stages.scores.formula, "q · k / √d");
    setText(stages.masked.formula, MISTAKES[mistake].masked);
    setText(stages.weights.formula, MISTAKES[mistake].weights);
    setText(stages.output.formula, "weights ·\u00a0v");
    stages.masked.formula.classList.toggle("tl-alarm", mistake !== "none");
    stages.weights.formula.classList.toggle("tl-alarm", mistake === "after softmax");
  }

  function drawTables(state, { mask, visible, scores, masked, weights, sums, output }) {
    const { queries, keys, mistake } = state;
    const picked = selectedCell(state);
    const maxScore = Math.max(...scores.flat().map(Math.abs), 1e-9);
    const styles = cellStyles(state, maxScore);
    const empty = visible.map((row) => !row.some(Boolean));
    const hidden = (i, j) => !mask[i][j];
    const kind = (i, j) => (empty[i] ? "empty" : visible[i][j] ? "seen" : "lost");
    for (const name of ["scores", "masked", "weights"]) stages[name].build(queries, keys, name === "weights");
    stages.scores.draw({ values: scores, styleOf: styles.scores, basis: maxScore, picked });
    stages.masked.draw({ values: masked, styleOf: styles.masked, basis: `${mistake} ${maxScore}`, picked, hidden });
    const sumOf = (i) => sums[i];
    stages.weights.draw({ values: weights, styleOf: styles.weights, basis: mistake, picked, hidden, kind, sumOf });
    if (output) {
      const maxOutput = Math.max(...output.flat().map(Math.abs), 1e-9);
      const columns = output[0].slice(0, MAX_OUTPUT).map((_, j) => String(j));
      stages.output.build(queries, columns, false);
      stages.output.draw({
        values: output,
        styleOf: styles.output(maxOutput),
        basis: maxOutput,
        picked: [picked[0], -1],
      });
    }
    for (const name of names) stages[name].markEmptyRows(empty);
  }

  // On a narrow page, only the visible table can have the keyboard focus.
  /** @type {(at: [number, number]) => void} */
  function makeFocusable(at) {
    for (const [name, { matrix, idOf }] of Object.entries(stages)) {
      const chosen = name === (frontStage === "output" ? "weights" : frontStage);
      set(matrix, {
        tabindex: chosen ? "0" : null,
        "aria-label": chosen
          ? `${name}. Arrow keys move the selection; Space hides a key from a query, or shows it again.`
          : name,
        "aria-activedescendant": chosen ? idOf(...at) : null,
      });
    }
  }

  /** @type {(state: State, computedStages: Computed) => void} */
  function draw(state, computedStages) {
    const { keys, mistake } = state;
    const columns = computedStages.output ? Math.min(computedStages.output[0].length, MAX_OUTPUT) : 0;
    tabs.show(frontStage);
    drawFormulas(mistake);
    drawTables(state, computedStages);
    node.style.setProperty("--n", keys.length);
    node.style.setProperty("--total", 3 * keys.length + 1 + columns);
    const size = keys.length <= 6 ? "tl-up-to-6" : keys.length <= 9 ? "tl-up-to-9" : "tl-over-9";
    node.className = `tl-flow ${showsAll ? size : "tl-weights-only"}`;
    for (const name of names) stages[name].node.classList.toggle("tl-front", name === frontStage);
    makeFocusable(selectedCell(state));
  }

  // Reserves space for the widest names and numbers, in the font of `text`.
  /** @type {(text: Element, state: State, computed: Computed, maxValue: number) => void} */
  function reserveAll(text, { queries, keys, mistake }, { scores }, maxValue) {
    const widestOf = (texts, weight = 400) => Math.max(...texts.map((name) => widthInEms(text, name, weight)));
    const maxWidth = widthInEms(text, "n".repeat(keys.length > 9 ? 6 : 8));
    const hidden = mistake === "large negative" ? "−10⁹" : "−∞";
    const numbers = [...scores.flat().map(short), short(-maxValue), keys.length > 9 ? ".00" : "0.00", hidden];
    node.style.setProperty("--name", Math.min(widestOf([...queries, ...keys, "sum"]), maxWidth));
    node.style.setProperty("--number", Math.max(widestOf(numbers), widestOf(["0.00"], 700)));
  }
  return { node: element("div", { class: "tl-flow-box" }, node), draw, reserveAll };
}

// A bar that shows the weights of one row, and the row's output as text.
function blendBar() {
  const strip = element("div", { class: "tl-blend" });
  const result = element("span", { class: "tl-code" });
  const label = element("span", { class: "tl-note" });
  const node = element("div", { class: "tl-blend-row" }, reservedBox(label), strip, reservedBox(result));
  let segments = [];

  function drawLost(segment, lost) {
    set(segment, { class: "tl-portion tl-lost", hidden: lost < MIN_SHOWN });
    setText(segment, lost > 0.999 ? "nothing" : lost > 0.12 ? `${fixed(lost)} lost` : "");
  }
  function drawShare(segment, weight, key, seen) {
    const { background, color } = cellColours(BLUES, weight);
    set(segment, { class: `tl-portion${seen ? "" : " tl-leak"}`, hidden: weight < 0.001 });
    setText(segment, weight > 0.085 ? key : "");
    Object.assign(segment.style, { backgroundColor: background, color });
  }

  // `seen` says for each key whether it is visible. If the weights sum to less than one, the missing weight is drawn as
  // lost. A hidden bar has no segments.
  function draw(text, { keys, weights, total, output, seen }, hidden = false) {
    node.hidden = hidden;
    setText(label, text);
    setText(result, output ? outputText(output) : "");
    const count = hidden ? 0 : keys.length + 1;
    if (segments.length !== count) {
      segments = range(count).map(() => element("span", {}));
      strip.replaceChildren(...segments);
    }
    if (hidden) return;
    let left = 0;
    for (const [j, size] of [...weights, 1 - total].entries()) {
      if (j < keys.length) drawShare(segments[j], size, keys[j], seen[j]);
      else drawLost(segments[j], size);
      Object.assign(segments[j].style, { left: `${100 * left}%`, width: `${100 * size}%` });
      left += size;
    }
  }
  return { node, label, result, draw };
}

// The classic mistakes and their consequences. This panel comes last, since a mistake makes the panel's text longer,
// and the buttons above must not move while a reader presses them.
/** @type {(model: Model) => any} */
function mistakePanel(model) {
  const options = Object.entries(MISTAKES).map(([name, { label }]) => [name, label]);
  const mistakes = choice("Mistake", options, (mistake) => commit(model, { mistake }), CHIPS);
  const effect = element("span", { "aria-live": "polite" });
  const leak = element("span", {});
  const consequences = element("strong", {});
  const mistakeText = element("p", {}, effect, " ", leak, consequences);
  const verdict = reservedBox(mistakeText, "tl-verdict-box");
  const bar = blendBar();
  const nodes = [labelledRow("Classic mistake", mistakes.node), bar.node, verdict];

  /** @type {(state: State, stages: Computed, i: number) => void} */
  function draw(state, stages, i) {
    const { keys, mistake } = state;
    const isMistake = mistake !== "none";
    mistakes.show(mistake);
    const row = {
      keys,
      weights: stages.weights[i],
      total: stages.sums[i],
      output: stages.output?.[i],
      seen: stages.mask[i],
    };
    bar.draw("with the mistake", row, !isMistake);
    setText(effect, MISTAKES[mistake].effect);
    setText(leak, isMistake ? leakText(state, stages, i) : "");
    setText(consequences, consequencesText(state, stages));
    verdict.classList.toggle("tl-broken", isMistake);
  }

  function reserveAll(mistake, { leak, consequences }) {
    const text = `${MISTAKES[mistake].effect} ${leak}`;
    reserveSpace(mistakeText, ...consequences.map((consequence) => [text, element("strong", {}, consequence)]));
    reserveSpace(bar.label, "with the mistake");
  }
  return { nodes, draw, reserveAll, bar };
}

function vectorsText(given, { d_head, d_value }) {
  if (!given) {
    return (
      `The vectors are invented: each word has its own query and key of ${d_head} numbers and a value of ${d_value}; ` +
      "equal words have equal vectors."
    );
  }
  const sizes = (name) => `${name} ${shapeText([given[name].length, given[name][0].length])}`;
  return `Your own tensors: ${sizes("query")}, ${sizes("key")}, ${given.value ? sizes("value") : "no value"}.`;
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const given = model.get("given");
  /** @type {Computed} */
  let computed = null;
  const sentences = sentencePanel(model);
  const presets = presetPanel(model);
  const stages = stagesPanel(
    model,
    el,
    () => computed,
    () => draw(),
  );
  const bar = blendBar();
  const mistakes = mistakePanel(model);
  const hint =
    "Click or tap a cell, or drag sideways over several cells, to hide or show keys. Arrow keys move the selection, " +
    "and Space hides or shows the selected cell.";
  const limits = model.get("limits");
  const arePairs = (numbers) => numbers.every((x) => Number.isInteger(x) && x >= 0) && numbers.length % 2 === 0;
  const toPairs = (numbers) => range(numbers.length / 2).map((i) => numbers.slice(2 * i, 2 * i + 2));
  const sentenceCodec = textCodec(
    (text) => parseTokens(text, limits),
    (tokens) => tokens.join(" "),
    "a short sentence",
  );
  const urlState = traitsInUrl("masks", {
    ...(given ? {} : { tokens: sentenceCodec, source: sentenceCodec }),
    preset: optionCodec(availablePresets(model)),
    window: integerCodec(1, limits.tokens),
    prefix: integerCodec(0, limits.tokens),
    flipped: numbersCodec(arePairs, "pairs of query and key", toPairs),
    mistake: optionCodec(Object.keys(MISTAKES)),
    at: numbersCodec((numbers) => arePairs(numbers) && numbers.length === 2, "a query and a key"),
  });
  const vectorsNote = element("p", { class: "tl-note" }, vectorsText(given, limits));
  const { status } = frame(
    { model, el },
    "masks",
    "Who sees whom: masks",
    urlState,
    group("sentence", sentences.node),
    presets.nodes,
    stages.node,
    element("p", { class: "tl-note tl-hint" }, hint),
    group("blend", bar.node, vectorsNote),
    group("mistake", mistakes.nodes),
  );

  // Reserves space for the longest texts, again whenever the sentence or the mistake has changed.
  let reservedKey = "";
  function reserveAll(state) {
    const { queries, keys, mistake } = state;
    const key = JSON.stringify([queries, keys, mistake]);
    if (key === reservedKey) return;
    reservedKey = key;
    const longest = longestTexts(status, state);
    const rowName = widest(status, queries.map(quoted));
    const maxValue = computed.value ? Math.max(...computed.value.flat().map(Math.abs)) : 0;
    reserveSpace(status, ...longest.rows);
    mistakes.reserveAll(mistake, longest);
    reserveSpace(bar.label, `${rowName} receives`, `${rowName}, correct`);
    stages.reserveAll(status, state, computed, maxValue);
    if (!computed.output) return;
    for (const { result } of [bar, mistakes.bar])
      reserveSpace(result, outputText(computed.output[0].map(() => -maxValue)));
  }

  function draw() {
    const state = stateOf(model);
    computed = compute(state);
    const { weights, sums, output } = computed.correct;
    const [i] = selectedCell(state);
    const rowName = quoted(state.queries[i]);
    const label = state.mistake === "none" ? `${rowName} receives` : `${rowName}, correct`;
    reserveAll(state);
    sentences.draw(state);
    presets.draw(state, computed);
    stages.draw(state, computed);
    bar.draw(label, {
      keys: state.keys,
      weights: weights[i],
      total: sums[i],
      output: output?.[i],
      seen: computed.mask[i],
    });
    mistakes.draw(state, computed, i);
    setText(status, rowText(state, computed, i));
  }
  return observe(model, TRAITS, draw);
}

export default { render };
