// The whole lab: a trained Transformer that runs in the page, with a drawing whose parts can be opened.

import { optionCodec, textCodec, traitsInUrl } from "./address.js";
import { observeTheme } from "./colours.js";
import { frame } from "./frame.js";
import { clamp, range } from "./maths.js";
import { button, choice, commit, element, observe, parsedInput, reservedBox, reserveSpace, set } from "./ui.js";
import { setText, slider } from "./ui.js";
import { decode, encode, openModel, tokenize, write } from "./whole_maths.js";
import { columnIn, isOfOneToken, viewOf } from "./whole_panels.js";
import { picture } from "./whole_picture.js";
import { content } from "./whole_tables.js";
import { describePlace, numberWords, placeOf, reasonWrong, share } from "./whole_words.js";
import { counted, quoted } from "./words.js";

/** @typedef {import("./ui.js").Model} Model The lab's traits; what the reader plays with is a `Transformer`. */
/** @typedef {import("./whole_maths.js").Model} Transformer */
// A step of the walk: the highlighted places, of which the first is open, and the number of tokens written so far.
/** @typedef {{ lit: string[], written: number }} Stop */
/**
 * What the reader has set, and everything that follows from it.
 * @typedef {object} State
 * @property {Transformer} model of those that the lab holds, the one that is on show
 * @property {string} text what it reads
 * @property {"both" | "encoder" | "decoder"} family
 * @property {number} step of the walk, from 1; 0 before it begins
 * @property {string} part the place that is open, or nothing
 * @property {number[]} at head, row and column that are pointed at
 * @property {{ source: number[], tokens: number[], probabilities: number[] }} answer
 * @property {string[]} words of the answer, without what ends it
 * @property {string} wanted the right answer, where the lab knows it
 * @property {boolean} right
 * @property {Stop[]} stops
 * @property {Stop} [stop] where the walk is
 * @property {number} count how many tokens of the answer the model reads at this step
 * @property {number} ready how many of its words are on show
 * @property {import("./whole_maths.js").Trace} trace
 * @property {Record<string, number[]>} ids of the tokens that go in, on each side
 * @property {Record<string, string[]>} names of the same
 * @property {(id: string) => boolean} isThere whether this model has the place
 */

const PACE = { first: 2500, again: 900 }; // milliseconds per step while playing
const PLACES = /\.(tokens|embed|place|linear|softmax|next|(self|cross|feed_forward)(\.add)?)$/;

// Caches the last results of a function of strings and numbers.
function memoize(compute) {
  const results = new Map();
  return (...key) => {
    const name = key.join("|");
    if (results.size > 30) results.clear();
    if (!results.has(name)) results.set(name, compute(...key));
    return results.get(name);
  };
}

// The steps of the walk: the encoder's layers, the decoder's layers for the first token, then one step per token.
/** @type {(layers: number, family: string, words: number) => Stop[]} */
function walk(layers, family, words) {
  const stop = (...lit) => ({ lit, written: 0 });
  const through = (side, parts) => [
    stop(`${side}.tokens`),
    stop(`${side}.embed`, `${side}.place`),
    ...range(layers).flatMap((layer) =>
      parts.map((part) => stop(`${side}.${layer}.${part}`, `${side}.${layer}.${part}.add`)),
    ),
  ];
  const reading = family === "decoder" ? [] : [...through("encoder", ["self", "feed_forward"]), stop("encoder.memory")];
  if (family === "encoder") return reading;
  const parts = family === "both" ? ["self", "cross", "feed_forward"] : ["self", "feed_forward"];
  const writing = range(words).map((written) => ({
    ...stop("decoder.softmax", "decoder.linear", "decoder.next"),
    written,
  }));
  return [...reading, ...through("decoder", parts), ...writing];
}

// Everything that follows from the traits; cached.
/** @type {(model: Model) => () => State} */
function stateOf(model) {
  const models = model.get("stored").map(openModel);
  const { written: most } = model.get("limits");
  const { why } = model.get("says");
  const of = (writes) => models.find((each) => (each.family === "decoder") === (writes === "decoder")) ?? models[0];
  const answerOf = memoize((writes, text) => {
    const source = tokenize(text, of(writes).source).value ?? [0];
    return { source, ...write(of(writes), source, most) };
  });
  const traceOf = memoize((family, text, count) => {
    const { source, tokens } = answerOf(family === "decoder" ? family : "both", text);
    return family === "encoder" ? encode(of(family), source) : decode(of(family), source, tokens.slice(0, count));
  });
  return () => {
    const [text, family, part, at] = ["text", "family", "part", "at"].map((name) => model.get(name));
    const used = of(family);
    const answer = answerOf(family === "decoder" ? family : "both", text);
    const ended = answer.tokens.at(-1) === used.eos;
    const words = answer.tokens.slice(0, ended ? -1 : undefined).map((i) => used.target[i]);
    const { target } = models[0];
    const wanted = why ? numberWords(Number(text), target.slice(target.indexOf("zero"))).join(" ") : "";
    const right = ended && words.join(" ") === wanted;
    const stops = walk(used.nLayers, family, answer.tokens.length);
    const step = clamp(model.get("step"), 0, stops.length);
    const stop = stops[step - 1];
    const count = stop ? stop.written : answer.tokens.length - 1;
    const ready = !stop || stop.lit.includes("decoder.softmax") ? count + 1 : 0; // visible tokens
    const trace = traceOf(family, text, count);
    const given = [...(used.bos === null ? [] : [used.bos]), ...answer.tokens.slice(0, count)];
    const ids = { encoder: answer.source, decoder: [...(family === "decoder" ? answer.source : []), ...given] };
    const names = {
      encoder: ids.encoder.map((i) => used.source[i]),
      decoder: ids.decoder.map((i) => used.target[i]),
    };
    const isThere = (id) => {
      const { side, layer, of } = placeOf(id);
      if (["d_model", "vocab"].includes(trace[id]?.axes[1])) return true;
      return PLACES.test(id) && Boolean(trace[layer === null ? `${side}.input` : `${side}.${layer}.${of}.output`]);
    };
    return {
      model: used,
      text,
      family,
      answer,
      words,
      wanted,
      right,
      stops,
      step,
      stop,
      count,
      ready,
      trace,
      ids,
      names,
      at,
      isThere,
      part: isThere(part) ? part : "",
    };
  };
}

// Links to the section that teaches it, if this page is part of the course; elsewhere only its name.
function linkToLesson(node, { page, section }) {
  /** @type {HTMLAnchorElement} */
  const known = document.querySelector(`a[href*="${page}.html"]`);
  const here = location.pathname.endsWith(`${page}.html`);
  const id = section
    .toLowerCase()
    .match(/[a-z0-9]+/g)
    .join("-");
  const href = here || known ? `${here ? "" : known.href.split("#")[0]}#${id}` : null;
  setText(node, `chapter ${Number(page.slice(0, 2))}, ${section}`);
  set(node, { href });
}

// Parses what is typed: its canonical text, or an error.
function parseInput(vocabulary, typed, most, says) {
  const { error, text } = tokenize(typed, vocabulary, most, says);
  return error ? { error } : { value: text, text };
}

// The input field, and buttons for examples.
/** @type {(model: Model, parse: (text: string) => any, redraw: () => void) => any} */
function askPanel(model, parse, redraw) {
  const examples = model.get("examples");
  const { label, inputmode, unknown } = model.get("says");
  const pick = (text) => commit(model, { text, step: 0 });
  const { input, error, show } = parsedInput(parse, pick, { inputmode });
  set(input, { oninput: redraw, "ontl-reset": redraw });
  const tries = choice(
    "Examples to try",
    examples.map((text) => [text, text]),
    (text) => {
      show(text);
      pick(text);
      redraw();
    },
  );
  const or = element(
    "div",
    { class: "tl-tries", hidden: !examples.length },
    element("span", { class: "tl-note" }, "or try"),
    tries.node,
  );
  let before;
  /** @type {(state: State) => void} */
  const draw = ({ text }) => {
    reserveSpace(error, unknown);
    if (text !== before) show(text); // keeps invalid input that the reader is still typing
    before = text;
    tries.show(text);
  };
  const name = element("label", { for: input.id }, label);
  return { node: element("div", { class: "tl-ask tl-field" }, name, input, or, reservedBox(error)), draw, error };
}

// The answer, token by token with probabilities, and the verdict.
/** @type {(model: Model, state: () => State, unread: () => string) => any} */
function answerPanel(model, state, unread) {
  const { why } = model.get("says");
  const goTo = (word) => {
    const { stops, answer } = state();
    commit(model, { step: stops.length - answer.tokens.length + word + 1, part: "decoder.softmax" });
  };
  const chips = range(model.get("limits").written).map((i) => {
    const [name, bar] = [element("span"), element("span", { class: "tl-bar" })];
    const node = button("", () => goTo(i), { class: "tl-word" });
    node.append(name, element("span", { class: "tl-part" }, bar));
    return { name, bar, node };
  });
  const all = element(
    "div",
    { "class": "tl-words", "role": "group", "aria-label": "The answer" },
    chips.map(({ node }) => node),
  );
  const judged = element("p");
  /** @type {(state: State) => void} */
  function draw({ model: used, answer, words, family, ready, text, step, wanted, right }) {
    const writes = family !== "encoder";
    for (const [i, { node, name, bar }] of chips.entries()) {
      set(node, { hidden: !writes || i >= answer.tokens.length });
      if (node.hidden) continue;
      const word = used.target[answer.tokens[i]];
      setText(name, word);
      bar.style.transform = `scaleX(${answer.probabilities[i]})`;
      const later = i >= ready;
      node.classList.toggle("tl-later", later);
      set(node, {
        "aria-label": later ? "not written yet" : `${word}, probability ${share(answer.probabilities[i])}`,
        "aria-pressed": String(step > 0 && i === ready - 1),
      });
    }
    const wrong = `${words.length ? "" : "It writes nothing. "}Wrong: it is ${wanted}.`;
    const says = right ? "Right." : `${wrong} ${wanted && reasonWrong(text, why)}`;
    const vectors = `${counted(answer.source.length, "vector")}, and no answer.`;
    const typing = unread();
    const later = ready < answer.tokens.length;
    setText(judged, typing ? `Still showing ${text}.` : writes ? wanted && says : vectors);
    const kind = typing || !writes ? "" : later ? "tl-unsaid" : right ? "tl-right" : "tl-wrong";
    set(judged, { class: `tl-verdict ${kind}` });
  }
  return { node: element("div", { class: "tl-answer" }, all, judged), draw };
}

// The initial selection when a place is opened: in the decoder, the row of the next token.
/** @type {(state: State, part: string, written?: number) => number[]} */
function lastRow({ at, ids, count }, part, written = count) {
  const row = placeOf(part).side === "decoder" ? ids.decoder.length - 1 - count + written : at[1];
  return [at[0], row, columnIn(part, at[2])];
}

// Controls for the walk: a slider, Back, Next, and Play.
/** @type {(model: Model, state: () => State) => any} */
function walkPanel(model, state) {
  let timer = 0;
  const go = (step) => {
    const stop = state().stops[step - 1];
    commit(model, { step, part: stop?.lit[0] ?? "", at: lastRow(state(), stop?.lit[0] ?? "", stop?.written) });
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    setText(play, "▶");
    set(play, { "aria-label": "Play" });
  };
  const byHand = (step) => {
    stop();
    go(clamp(step, 0, state().stops.length));
  };
  const next = () => {
    const { step, stops } = state();
    if (!node.isConnected || step === stops.length) return stop();
    go(step + 1);
    const { written, lit } = stops[step];
    timer = setTimeout(next, written || /\.[1-9]/.test(lit[0]) ? PACE.again : PACE.first);
  };
  const start = () => {
    if (timer) return stop();
    if (state().step === state().stops.length) go(0);
    setText(play, "❚❚");
    set(play, { "aria-label": "Pause" });
    next();
  };
  const play = button("▶", start, { "aria-label": "Play" });
  const back = button("‹", () => byHand(state().step - 1), { "aria-label": "Step back" });
  const on = button("›", () => byHand(state().step + 1), { "aria-label": "Step on" });
  const input = slider("Walk through the model", 0, 1, byHand, { class: "tl-steps" });
  const said = element("span", { class: "tl-note" });
  const node = element("div", { class: "tl-walk" }, play, back, input, on, reservedBox(said));
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  /** @type {(state: State) => void} */
  function draw({ step, stops, stop: at }) {
    if (timer && step === stops.length) stop();
    set(play, { hidden: still.matches });
    set(input, {
      max: stops.length,
      "aria-valuetext": at
        ? `Step ${step}: ${describePlace(model.get("words"), at.lit[0]).title}`
        : `Not started, ${stops.length} steps`,
    });
    input.value = step;
    set(back, { "aria-disabled": String(step === 0) });
    set(on, { "aria-disabled": String(step === stops.length) });
    setText(said, at ? `step ${step} of ${stops.length}` : `walk: ${stops.length} steps`);
    reserveSpace(said, "walk: 88 steps", "step 88 of 88");
  }
  return { node, draw, stop };
}

// Chooses the architecture: encoder and decoder, or one of them; with a description.
function familyPanel(model) {
  const texts = model.get("words").families;
  const offered = ["both", "encoder", "decoder"].filter((family) => family in model.get("says").about);
  const pick = (family) => commit(model, { family, step: 0, part: "" });
  const families = choice(
    "Kind of Transformer",
    offered.map((family) => [family, texts[family][0]]),
    pick,
  );
  const said = element("p", { class: "tl-note" });
  /** @type {(state: State) => void} */
  const draw = ({ family }) => {
    families.show(family);
    setText(said, texts[family][1]);
    reserveSpace(said, ...offered.map((each) => texts[each][1]));
  };
  return { node: element("div", { class: "tl-family" }, families.node, reservedBox(said)), draw };
}

// The panel beside the drawing: the numbers of one place of the model.
/** @type {(model: Model, state: () => State, shut: () => void) => any} */
function sidePanel(model, state, shut) {
  const first = state().model;
  let shown;
  const choose = (...at) => commit(model, { at });
  const title = element("p", { "class": "tl-name", "role": "heading", "aria-level": 3 });
  const about = element("p");
  const close = button("×", shut, { "aria-label": "Close" });
  const layers = choice(
    "Layer",
    range(first.nLayers).map((layer) => [layer, `layer ${layer + 1}`]),
    (layer) => commit(model, { part: shown.id.replace(/\d+/, layer) }),
  );
  const { tokens: read, written } = model.get("limits");
  const tokens = range(read + written + 1).map((i) =>
    button("", () => choose(shown.at[0], i, columnIn(shown.id, shown.at[2]))),
  );
  const tokenChoice = element("div", { "class": "tl-choice", "role": "group", "aria-label": "Token" }, tokens);
  const { about: task, facts = "" } = model.get("says");
  const hello = element("div"); // shown while no place is open
  const body = element("div");
  const fillBody = content(body);
  const link = element("a");
  const lead = element("span");
  const taught = element("p", { class: "tl-note" }, lead, link);
  const scale = element("p", { class: "tl-note tl-scale" });
  scale.innerHTML = model.get("words").scales;
  const head = element("div", { class: "tl-side-head" }, title, close);
  const who = element("div", { class: "tl-who" }, layers.node, tokenChoice);
  const props = { "class": "tl-side", "tabindex": "0", "role": "group", "aria-label": "What is inside" };
  const node = element("div", props, head, about, who, hello, body, taught, scale);

  // Returns a description of what is shown.
  /** @type {(now: State, id: string) => string} */
  function draw(now, id) {
    shown = { ...now, id, choose };
    const view = id ? viewOf(shown) : { parts: [], said: "" };
    const { side, layer } = placeOf(id);
    const names = now.names[side] ?? [];
    fillBody(view.parts);
    set(close, { hidden: !id });
    const { end, others, todo, ...words } = model.get("words");
    hello.innerHTML = id ? "" : task[now.family] + todo + facts;
    const { title: name, about: text, ...where } = describePlace(words, id);
    setText(title, name);
    const more = now.step && now.ready === 1 && now.answer.tokens[1] !== undefined ? others : "";
    setText(about, text.replaceAll("~", String(now.model.width)) + more);
    const atEnd = now.step === now.stops.length;
    setText(lead, atEnd ? "Now build it. Start with " : "Taught in ");
    linkToLesson(link, atEnd ? { page: end[0], section: end[1] } : where);
    set(layers.node, { hidden: layer === null || first.nLayers === 1 });
    layers.show(layer);
    set(tokenChoice, { hidden: !isOfOneToken(id) });
    const token = Math.min(now.at[1], names.length - 1);
    for (const [i, each] of tokens.entries()) {
      set(each, { "hidden": i >= names.length, "aria-pressed": String(i === token) });
      setText(each, names[i] ?? "");
    }
    return view.said;
  }
  return { node, draw };
}

// The first tokens that fit into the drawing, and the last one.
function abbreviated(tokens, most = 20) {
  const cut = (count) => [...tokens.slice(0, count), "…", tokens.at(-1)].join(" ");
  if (tokens.join(" ").length <= most) return tokens.join(" ");
  return cut(tokens.findIndex((_, i) => cut(i + 1).length > most)).slice(-most);
}

// A codec for integers of up to three digits.
const digitsCodec = (form, toValue) => ({
  write: String,
  read: (text) => (form.test(text) ? { value: toValue(text) } : { error: "whole numbers up to 999" }),
});

/** @type {(view: import("./ui.js").View) => () => void} */
function render(view) {
  const { model } = view;
  const state = stateOf(model);
  let peeked = null;
  const steps = walkPanel(model, state);
  const shut = () => {
    /** @type {HTMLElement} */
    const opened = drawing.node.querySelector("[tabindex='0']");
    opened.focus();
    peeked = null;
    commit(model, { part: "", step: 0 });
    draw();
  };
  const side = sidePanel(model, state, shut);
  const peek = (id) => {
    if (id === peeked) return;
    peeked = id;
    draw();
  };
  const open = (part) => {
    steps.stop();
    peeked = null;
    const now = state();
    const at = lastRow(now, part);
    if (placeOf(part).side === placeOf(now.part).side) at[1] = now.at[1];
    commit(model, { part, at });
    draw();
    // Scrolls the panel into view if it is below the window.
    const { top } = side.node.getBoundingClientRect();
    if (top > 0.85 * innerHeight) scrollBy({ top: top - 0.6 * innerHeight, behavior: "instant" });
  };
  const titleOf = (id) => describePlace(model.get("words"), id).title;
  const drawing = picture(model.get("drawing"), titleOf, state().model.normFirst, peek, open);
  const { tokens } = model.get("limits");
  const read = (text) => parseInput(model.get("stored")[0].source, text, tokens, model.get("says"));
  const asking = askPanel(model, read, () => draw());
  const unread = () => asking.error.textContent;
  const panels = [asking, answerPanel(model, state, unread), familyPanel(model), steps];
  const [ask, answer, family, walking] = panels.map((panel) => panel.node);
  const stage = element("div", { class: "tl-stage" }, family, drawing.node, side.node, walking);
  set(stage, { onkeydown: ({ key }) => key === "Escape" && shut() });
  const urlState = traitsInUrl("whole", {
    text: textCodec(read),
    family: optionCodec(["both", "encoder", "decoder"]),
    step: digitsCodec(/^\d{1,3}$/, Number),
    part: textCodec((text) => ({ value: text })),
    at: digitsCodec(/^(\d{1,3},){2}(\d{1,3}|-1)$/, (text) => text.split(",").map(Number)),
  });
  const { lab, status } = frame(view, "whole", "A whole Transformer", urlState, ask, answer, stage);
  set(lab.querySelector(".tl-title"), { "role": "heading", "aria-level": 2 });
  reserveSpace(status, "noon ".repeat(30));

  /** @type {(now: State) => void} */
  function drawPicture(now) {
    const { nLayers: layers, normFirst, target } = now.model;
    const layer = { encoder: 0, decoder: 0 };
    for (const id of [now.stop?.lit[0] ?? "", now.part]) {
      const place = placeOf(id);
      if (place.layer !== null) layer[place.side] = place.layer;
    }
    const open = placeOf(now.part);
    const layerText = (side) =>
      open.side === side && open.layer !== null ? `${open.layer + 1} of ${layers}` : `× ${layers}`;
    drawing.draw({
      family: now.family,
      layers,
      normFirst,
      finalNorm: Boolean(now.trace["decoder.last"]),
      layer,
      texts: {
        encoder: layerText("encoder"),
        decoder: layerText("decoder"),
        source: abbreviated(now.names.encoder),
        target: abbreviated(now.names.decoder),
        next: now.ready ? target[now.answer.tokens[now.count]] : "",
        vectors: counted(now.ids.encoder.length, "vector"),
      },
      lit: new Set(now.stop?.lit),
      open: now.part,
    });
  }

  function draw() {
    const now = state();
    const id = peeked && now.isThere(peeked) ? peeked : now.part;
    for (const panel of panels) panel.draw(now);
    drawPicture(now);
    const text = side.draw(now, id);
    const said = text.startsWith(",") ? text : `. ${text}`;
    const verdict = now.wanted && (now.right ? ": right" : ": wrong");
    const written = now.words.length ? `writes ${quoted(now.words.join(" "))}` : "stops at once, without a word";
    const writes = `It reads ${quoted(now.text)} and ${written}${verdict}.`;
    const whole =
      now.family === "encoder" ? `An encoder alone: vectors for ${quoted(now.text)}, and no words.` : writes;
    const still = unread() && `Not read: ${unread()} Still showing ${now.text}.`;
    setText(status, still || (id ? `${now.step ? `Step ${now.step}. ` : ""}${titleOf(id)}${said}` : whole));
  }
  const ends = [observe(model, urlState.names, draw), observeTheme(lab, draw)];
  return () => {
    steps.stop();
    for (const end of ends) end();
  };
}

export default { render };
