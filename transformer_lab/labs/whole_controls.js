// The controls of WholeLab: the input, the answer, the walk, and the kind of Transformer.

import { clamp, range } from "./maths.js";
import { button, CHIPS, choice, commit, element, parsedInput, reservedBox, reserveSpace } from "./ui.js";
import { set, setText, slider } from "./ui.js";
import { tokenize } from "./whole_maths.js";
import { startCell } from "./whole_state.js";
import { percent, placeText, reasonWrong, share } from "./whole_words.js";
import { plural } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./whole_state.js").State} State */

const DELAY = { first: 900, again: 500 }; // milliseconds per step of Play

// Parses the typed text: returns its canonical text, or an error.
export function parseInput(vocabulary, typed, most, says) {
  const { error, text } = tokenize(typed, vocabulary, most, says);
  return error ? { error } : { value: text, text };
}

// The input field, and buttons for examples.
/** @type {(model: Model, parse: (text: string) => any, redraw: () => void) => any} */
export function askPanel(model, parse, redraw) {
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
    CHIPS,
  );
  const tryRow = element(
    "div",
    { class: "tl-tries", hidden: !examples.length },
    element("span", { class: "tl-note" }, "or try"),
    tries.node,
  );
  let last;
  /** @type {(state: State) => void} */
  const draw = ({ text }) => {
    reserveSpace(error, unknown);
    if (text !== last) show(text); // keeps invalid input that the reader is still typing
    last = text;
    tries.show(text);
  };
  const name = element("label", { for: input.id }, label);
  return { node: element("div", { class: "tl-ask tl-field" }, name, input, tryRow, reservedBox(error)), draw, error };
}

// Returns the reader's change that explains a wrong answer, if there is one.
/** @type {(now: State, last: number) => string} `last`: the checkpoint with the final weights */
function changeOf({ model, sampling, checkpoint }, last) {
  if (model.off.length) return model.off.length > 1 ? "several" : "off";
  if (sampling.temperature) return "drawn";
  return checkpoint < last ? "early" : "";
}

// The answer, token by token with its probabilities, and the verdict.
/** @type {(model: Model, state: () => State, unread: () => string) => any} */
export function answerPanel(model, state, unread) {
  const { why, longest } = model.get("says");
  const last = model.get("checkpoints").length;
  const goTo = (word) => {
    const { stops, answer } = state();
    commit(model, { step: stops.length - answer.tokens.length + word + 1, part: "decoder.softmax" });
  };
  // Goes to the next unwritten word; after the last word, to the first again.
  const writeNext = () => {
    const { step, ready, answer } = state();
    goTo(step && ready < answer.tokens.length ? ready : 0);
  };
  const chips = range(model.get("limits").written).map((i) => {
    const [name, bar] = [element("span"), element("span", { class: "tl-bar" })];
    const node = button("", () => goTo(i), { class: "tl-word" });
    node.append(name, element("span", { class: "tl-part" }, bar));
    return { name, bar, node };
  });
  const strip = element(
    "div",
    { "class": "tl-words", "role": "group", "aria-label": "The answer" },
    chips.map(({ node }) => node),
  );
  const next = button("Next word", writeNext);
  const { hints } = model.get("words");
  const hint = element("span", { class: "tl-note" });
  const sureText = element("span", { class: "tl-sure" });
  const verdict = element("span");
  const note = element("p", {}, verdict, " ", sureText, " ", hint);
  /** @type {(state: State) => void} */
  function draw(now) {
    const { model: net, answer, words, family, ready, text, step, wanted, right, sure } = now;
    const writes = family !== "encoder";
    for (const [i, { node, name, bar }] of chips.entries()) {
      set(node, { hidden: !writes || i >= answer.tokens.length });
      if (node.hidden) continue;
      const word = net.target[answer.tokens[i]];
      setText(name, word);
      bar.style.transform = `scaleX(${answer.probabilities[i]})`;
      const later = i >= ready;
      node.classList.toggle("tl-later", later);
      set(node, {
        "aria-label": `${word}, ${later ? "not written yet" : `probability ${share(answer.probabilities[i])}`}`,
        "aria-pressed": String(step > 0 && i === ready - 1),
      });
    }
    const wrong = `${words.length ? "" : "Nothing is written. "}Wrong: it is ${wanted}.`;
    const says = right
      ? "Right."
      : `${wrong} ${wanted && (why[changeOf(now, last)]?.replace("~", net.off.length) ?? reasonWrong(text, why))}`;
    const vectors = `${plural(answer.source.length, "vector")}, and no answer.`;
    const typing = unread();
    const later = ready < answer.tokens.length;
    setText(verdict, typing ? `Still showing ${text}.` : writes ? wanted && says : vectors);
    for (const node of [next, hint]) set(node, { hidden: !writes });
    setText(hint, hints[+later]);
    const kind = typing || !writes ? "" : later ? "tl-unsaid" : right ? "tl-right" : "tl-wrong";
    set(verdict, { class: `tl-verdict ${kind}` });
    setText(sureText, `${percent(sure)} sure${kind === "tl-wrong" ? ", and wrong" : ""}.`);
    set(sureText, { "hidden": !/right|wrong/.test(kind) || !wanted, "data-verdict": kind });
    reserveSpace(note, longest ?? `Still showing ${text}.`);
  }
  const row = element("div", { class: "tl-answer-row" }, next, reservedBox(note));
  return { node: element("div", { class: "tl-answer" }, strip, row), draw };
}

// Controls for the walk: a slider, Back, Next, and Play.
/** @type {(model: Model, state: () => State) => any} */
export function walkPanel(model, state) {
  let timer = 0;
  let speed = 1;
  const go = (step) => {
    const stop = state().stops[step - 1];
    commit(model, { step, part: stop?.lit[0] ?? "", at: startCell(state(), stop?.lit[0] ?? "", stop?.written) });
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    setText(play, "▶");
    set(play, { "aria-label": "Play" });
  };
  const jump = (step) => {
    stop();
    go(clamp(step, 0, state().stops.length));
  };
  const next = () => {
    const { step, stops } = state();
    if (!node.isConnected || step === stops.length) return stop();
    go(step + 1);
    const { written, lit } = stops[step];
    timer = setTimeout(next, (written || /\.[1-9]/.test(lit[0]) ? DELAY.again : DELAY.first) / speed);
  };
  const start = () => {
    if (timer) return stop();
    if (state().step === state().stops.length) go(0);
    setText(play, "❚❚");
    set(play, { "aria-label": "Pause" });
    next();
  };
  const play = button("▶", start, { "aria-label": "Play" });
  const speeds = choice(
    "Speed",
    [
      [1, "1×"],
      [2, "2×"],
    ],
    (factor) => {
      speed = factor;
      speeds.show(factor);
    },
  );
  speeds.show(speed);
  const back = button("‹", () => jump(state().step - 1), { "aria-label": "Step back" });
  const fwd = button("›", () => jump(state().step + 1), { "aria-label": "Next step" });
  const input = slider("Walk through the model", 0, 1, jump, { class: "tl-steps" });
  const note = element("span", { class: "tl-note" });
  const node = element("div", { class: "tl-walk" }, play, speeds.node, back, input, fwd, reservedBox(note));
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  /** @type {(state: State) => void} */
  function draw({ step, stops, stop: at }) {
    if (timer && step === stops.length) stop();
    for (const node of [play, speeds.node]) set(node, { hidden: reduced.matches });
    set(input, {
      max: stops.length,
      "aria-valuetext": at
        ? `Step ${step}: ${placeText(model.get("words"), at.lit[0]).title}`
        : `Not started, ${stops.length} steps`,
    });
    input.value = step;
    set(back, { "aria-disabled": String(step === 0) });
    set(fwd, { "aria-disabled": String(step === stops.length) });
    setText(note, at ? `step ${step} of ${stops.length}` : `walk: ${stops.length} steps`);
    reserveSpace(note, "walk: 88 steps", "step 88 of 88");
  }
  return { node, draw, stop };
}

// Buttons that choose the architecture (encoder and decoder, or only one of them), and a description of the choice.
export function familyPanel(model) {
  const texts = model.get("words").families;
  const offered = ["both", "encoder", "decoder"].filter((family) => family in model.get("says").about);
  const pick = (family) => commit(model, { family, step: 0, part: "" });
  const families = choice(
    "Kind of Transformer",
    offered.map((family) => [family, texts[family][0]]),
    pick,
  );
  const note = element("p", { class: "tl-note" });
  /** @type {(state: State) => void} */
  const draw = ({ family }) => {
    families.show(family);
    setText(note, texts[family][1]);
    reserveSpace(note, ...offered.map((name) => texts[name][1]));
  };
  return { node: element("div", { class: "tl-family" }, families.node, reservedBox(note)), draw };
}
