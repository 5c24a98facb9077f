// The side panel of WholeLab.

import { range } from "./maths.js";
import { button, choice, commit, element, set, setText } from "./ui.js";
import { experiments } from "./whole_experiments.js";
import { isOneToken, startCol, viewOf } from "./whole_panels.js";
import { content } from "./whole_tables.js";
import { linkLesson, placeOf, placeText } from "./whole_words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./whole_state.js").State} State */

// The panel beside the drawing: the numbers of one place of the model.
/** @type {(model: Model, state: () => State, close: () => void) => any} */
export function sidePanel(model, state, close) {
  const first = state().model;
  let shown;
  const choose = (...at) => commit(model, { at });
  const title = element("p", { "class": "tl-name", "role": "heading", "aria-level": 3 });
  const about = element("p");
  const closeBtn = button("×", close, { "aria-label": "Close" });
  const layers = choice(
    "Layer",
    range(first.nLayers).map((layer) => [layer, `layer ${layer + 1}`]),
    (layer) => commit(model, { part: shown.id.replace(/\d+/, layer) }),
  );
  const { tokens: read, written } = model.get("limits");
  const tokens = range(read + written + 1).map((i) =>
    button("", () => choose(shown.at[0], i, startCol(shown.id, shown.at[2]))),
  );
  const tokenChoice = element("div", { "class": "tl-choice", "role": "group", "aria-label": "Token" }, tokens);
  const { about: task, facts = "" } = model.get("says");
  const intro = element("div"); // is shown while no place is open
  const body = element("div");
  const fillBody = content(body);
  const link = element("a");
  const lead = element("span");
  const lesson = element("p", { class: "tl-note" }, lead, link);
  const scale = element("p", { class: "tl-note tl-scale" });
  scale.innerHTML = model.get("words").scales;
  const tools = experiments(model);
  const head = element("div", { class: "tl-side-head" }, title, closeBtn);
  const who = element("div", { class: "tl-who" }, layers.node, tokenChoice);
  const props = { "class": "tl-side", "tabindex": "0", "role": "group", "aria-label": "What is inside" };
  const node = element("div", props, tools.tabs, head, about, who, intro, tools.node, body, lesson, scale);

  const hint = () => node.classList.toggle("tl-more", node.scrollHeight - node.scrollTop - node.clientHeight > 32);
  set(node, { onscroll: hint });

  // Returns a description of what is shown.
  /** @type {(now: State, id: string) => string} */
  function draw(now, id) {
    const { end, others, again, todo, ends, says, ...words } = model.get("words");
    shown = { ...now, id, choose, says };
    const view = id ? viewOf(shown) : { parts: [], text: "" };
    const { side, layer } = placeOf(id);
    const names = now.names[side] ?? [];
    fillBody(view.parts);
    set(closeBtn, { hidden: !id });
    node.classList.toggle("tl-opened", Boolean(now.part || model.get("tool")));
    const tool = tools.draw(now, Boolean(id));
    const alone = now.family === "encoder";
    const [fails, leads] = ends[alone ? now.family : ""];
    const todoText = todo.replace("~", fails).replace("~", leads);
    intro.innerHTML = id || tool ? "" : task[now.family] + todoText + (alone ? "" : facts);
    const { title: name, about: text, ...where } = placeText(words, id);
    for (const node of [head, lesson, scale]) set(node, { hidden: Boolean(tool) });
    setText(title, name);
    const isEnd = id === "decoder.softmax" && now.stop?.lit[0] === id; // of a run of the decoder
    const more = !isEnd ? "" : now.count ? again : now.answer.tokens[1] === undefined ? "" : others;
    setText(about, tool ? "" : text.replaceAll("~", String(now.model.width)) + more);
    const atEnd = now.step === now.stops.length;
    setText(lead, atEnd ? "Now build the model: start with " : "Taught in ");
    linkLesson(link, atEnd ? { page: end[0], section: end[1] } : where);
    set(layers.node, { hidden: layer === null || first.nLayers === 1 });
    layers.show(layer);
    set(tokenChoice, { hidden: !isOneToken(id) });
    const token = Math.min(now.at[1], names.length - 1);
    for (const [i, node] of tokens.entries()) {
      set(node, { "hidden": i >= names.length, "aria-pressed": String(i === token) });
      setText(node, names[i] ?? "");
    }
    hint();
    return view.text;
  }
  return { node, draw, title };
}
