// The reader's experiments with the model: switching parts off, choosing an earlier checkpoint, and sampling words.

import { button, choice, commit, element, set, setText, slider, sliderWithInput } from "./ui.js";
import { accuracy, questionsOf } from "./whole_learning.js";
import { linkLesson, percent, share } from "./whole_words.js";
import { grouped, parseNumber } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./whole_state.js").State} State */
/** @typedef {{ node: HTMLElement, draw: (now: State) => void }} Panel */

const isHead = (name) => /\d$/.test(name);
const headText = (id) => {
  const [side, layer, kind, head] = id.split(".");
  return `${side} layer ${+layer + 1}, ${kind === "cross" ? "cross-attention, " : ""}head ${+head + 1}`;
};

// The share of right answers for numbers that are new to the model. The counts for the whole model and for a single
// part switched off are stored; other counts are computed here, a few numbers at a time.
/** @type {(model: Model) => Panel & { stop: () => void }} */
function scorePanel(model) {
  const { held_out: numbers, right, switches } = model.get("learning");
  const node = element("p", { class: "tl-measured" });
  let shown = "";
  let signal = { aborted: false };
  const stop = () => {
    signal.aborted = true;
    shown = "";
  };
  const storedFor = ({ family, checkpoint }, off) => {
    if (!off.length) return right[family][checkpoint];
    return off.length === 1 && checkpoint === right[family].length - 1 ? switches[family][off[0]] : undefined;
  };
  /** @type {(now: State) => void} */
  function draw(now) {
    const key = [now.family, now.checkpoint, ...now.model.off].join();
    if (key === shown) return;
    stop();
    shown = key;
    signal = { aborted: false };
    const whole = right[now.family][now.checkpoint];
    const before = now.model.off.length ? `${percent(whole / numbers.length)} → ` : "";
    const show = (count, asked, end) =>
      setText(node, `Right on ${asked} numbers new to the model: ${before}${percent(count / asked)}${end}`);
    const stored = storedFor(now, now.model.off);
    if (stored !== undefined) return show(stored, numbers.length, ".");
    accuracy(now.model, questionsOf(now.model, numbers), {
      signal,
      onProgress: ({ right: count, asked }) =>
        show(count, asked, asked < numbers.length ? " so far …" : ", counted here."),
    });
  }
  return { node, draw, stop };
}

// A switch for each part, with a description of its effect and a link to the section that explains the part; and a menu
// that switches a single head off.
/** @type {(model: Model) => Panel} */
function breakPanel(model) {
  const { switches } = model.get("words");
  const offered = model.get("limits").switches;
  const general = [...new Set(Object.values(offered).flat())].filter((name) => !isHead(name));
  const off = () => model.get("off");
  const setOff = (names) => commit(model, { off: names, step: 0 });
  const rows = general.map((name) => {
    const [label, says, page, section] = switches[name];
    const toggle = () => setOff(off().includes(name) ? off().filter((part) => part !== name) : [...off(), name]);
    const link = element("a");
    const node = element("div", { class: "tl-switch" }, button(label, toggle), element("span", {}, `${says} `, link));
    return { name, node, link, page, section };
  });
  const picker = element("select", { "aria-label": switches.head[0], "class": "tl-input tl-heads" });
  set(picker, { onchange: () => setOff([...off().filter((part) => !isHead(part)), picker.value].filter(Boolean)) });
  const why = element("a");
  const heads = element("div", { class: "tl-switch" }, picker, element("span", {}, `${switches.head[1]} `, why));
  const node = element(
    "div",
    { class: "tl-switches" },
    rows.map((row) => row.node),
    heads,
  );
  let listed = "";
  /** @type {(now: State) => void} */
  function draw({ family }) {
    for (const row of rows) {
      set(row.node, { hidden: !offered[family].includes(row.name) });
      set(row.node.firstChild, { "aria-pressed": String(off().includes(row.name)) });
      linkLesson(row.link, row, "Why?");
    }
    linkLesson(why, { page: switches.head[2], section: switches.head[3] }, "Why?");
    const ids = offered[family].filter(isHead);
    if (family !== listed) {
      listed = family;
      const option = (value, text) => element("option", { value }, text);
      picker.replaceChildren(option("", switches.head[0]), ...ids.map((id) => option(id, headText(id))));
    }
    picker.value = off().find((name) => ids.includes(name)) ?? "";
  }
  return { node, draw };
}

// The training loss on a logarithmic scale, and below the curve a slider that chooses a checkpoint.
/** @type {(model: Model) => Panel} */
function learnPanel(model) {
  const { steps, curves } = model.get("learning");
  const last = steps.length - 1;
  const input = slider("Checkpoint", 0, last, (checkpoint) => commit(model, { checkpoint, step: 0 }), {
    class: "tl-steps",
  });
  const text = element("p");
  const line = element("path", { class: "line" });
  const dot = element("circle", { r: 4.5, class: "dot" });
  const rules = element("path", { class: "rules" });
  const props = { "viewBox": "0 0 300 84", "aria-hidden": "true" };
  const curve = element("svg", { class: "tl-loss", ...props }, rules, line, dot);
  const depths = element("div", { class: "tl-depths", ...props });
  const note = element("p", { class: "tl-note" }, model.get("words").loss);
  const ticks = steps.map((each) => element("span", {}, grouped(each)));
  const plot = element("div", { class: "tl-plot" }, curves ? [depths, curve] : [], input);
  if (curves) plot.append(element("div", { "class": "tl-ticks", "aria-hidden": "true" }, ticks));
  const node = element("div", { class: "tl-learn" }, curves ? note : [], plot, text);
  /** @type {(now: State) => void} */
  function draw({ family, checkpoint, missing }) {
    input.value = model.get("checkpoint");
    const step = steps[checkpoint];
    const name = curves
      ? `after ${grouped(step)} of ${grouped(steps[last])} steps`
      : `model ${checkpoint + 1} of ${last + 1}`;
    set(input, { "aria-valuetext": name });
    if (!curves) return setText(text, `This is ${name}.`);
    const { line: d, marks, dots } = curves[family === "decoder" ? family : "both"];
    const [x, y, mean] = dots[checkpoint];
    set(line, { d });
    set(dot, { cx: x, cy: y });
    set(rules, { d: marks.map(([, height]) => `M0 ${height}H300`).join("") });
    depths.replaceChildren(
      ...marks.map(([mark, height]) => element("span", { style: `top: ${height / 0.84}%` }, mark)),
    );
    setText(text, missing || `This is the model ${name}, where the loss is ${mean}.`);
  }
  return { node, draw };
}

// Controls for temperature, top-k, and a new draw.
/** @type {(model: Model) => Panel} */
function samplePanel(model) {
  const { target } = model.get("stored")[0];
  const { temperatures, seeds } = model.get("limits");
  const { sampling: notes } = model.get("words");
  const field = (label, trait, ends, options) =>
    sliderWithInput(label, { head: element("p", { class: "tl-label" }, options.note), ends, ...options }, (value) =>
      commit(model, { [trait]: value, step: 0 }),
    );
  const temperature = field("Temperature", "temperature", temperatures, {
    note: notes[0],
    whole: false,
    write: String,
    parse: (text) => parseNumber(text, "Temperature", temperatures, { whole: false, write: String }),
    positionOf: (value) => Math.round(value * 10),
    valueAt: (x) => x / 10,
  });
  const topK = field("Top-k", "top_k", [0, target.length], { note: notes[1] });
  const again = button("Sample again", () => {
    const seed = (model.get("seed") + 1) % (seeds[1] + 1);
    commit(model, { seed, temperature: model.get("temperature") || 1, step: 0 });
  });
  const note = element("span", { class: "tl-note" });
  const node = element(
    "div",
    { class: "tl-sample" },
    temperature.node,
    topK.node,
    element("div", { class: "tl-row" }, again, note),
  );
  /** @type {(now: State) => void} */
  function draw({ sampling, sure }) {
    temperature.show(sampling.temperature);
    topK.show(sampling.topK);
    const drawn = `The probability ${sampling.temperature ? "that this answer is drawn" : "of this answer"}`;
    setText(note, `${drawn} is ${share(sure)}.`);
  }
  return { node, draw };
}

// Tabs above the panel beside the drawing: a description of the lab, and the experiments.
/**
 * `draw` returns the name of the open tab, or an empty text.
 * @type {(model: Model) => { tabs: HTMLElement, node: HTMLElement, draw: (now: State, isOpen: boolean) => string }}
 */
export function experiments(model) {
  const { tools } = model.get("words");
  const { held_out: numbers, steps } = model.get("learning");
  /** @type {Record<string, Panel>} */
  const panels = { break: breakPanel(model), ...(steps && { learn: learnPanel(model) }), sample: samplePanel(model) };
  const score = numbers ? scorePanel(model) : null;
  const options = Object.keys(tools).filter((name) => !name || name in panels);
  const open = (tool) => commit(model, { tool, part: "", step: 0 });
  const tabs = choice(
    "What to try",
    options.map((name) => [name, tools[name][0]]),
    open,
  );
  const about = element("p", { class: "tl-tried" });
  const shown = Object.values(panels).map((panel) => panel.node);
  const node = element("div", {}, about, score ? score.node : [], shown);
  /** @type {(now: State, isOpen: boolean) => string} */
  function draw(now, isOpen) {
    const alone = now.family === "encoder";
    const chosen = model.get("tool");
    const tool = chosen in panels && !(alone && chosen === "sample") ? chosen : "";
    tabs.show(isOpen ? null : tool);
    set(tabs.buttons.at(-1), { hidden: alone }); // an encoder alone writes no words, so there is nothing to sample
    set(node, { hidden: isOpen || !tool });
    const scores = score && !node.hidden && tool !== "sample" && !alone;
    if (score) set(score.node, { hidden: !scores });
    if (scores) score.draw(now);
    else score?.stop();
    if (node.hidden) return "";
    setText(about, tools[tool][alone ? 2 : 1]);
    for (const [name, panel] of Object.entries(panels)) set(panel.node, { hidden: name !== tool });
    panels[tool].draw(now);
    return tool;
  }
  return { tabs: tabs.node, node, draw };
}
