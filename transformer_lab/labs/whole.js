// WholeLab: a trained Transformer that runs in the page, with a drawing whose parts can be opened.

import { integerCodec, optionCodec, textCodec, traitsInUrl } from "./address.js";
import { observeTheme } from "./colours.js";
import { frame } from "./frame.js";
import { commit, element, observe, set, setText } from "./ui.js";
import { answerPanel, askPanel, familyPanel, parseInput, walkPanel } from "./whole_controls.js";
import { writeOnArrival } from "./whole_arrival.js";
import { checkpointWeights } from "./whole_learning.js";
import { picture } from "./whole_picture.js";
import { sidePanel } from "./whole_side.js";
import { startCell, stateOf } from "./whole_state.js";
import { placeOf, placeText } from "./whole_words.js";
import { parseNumber, plural, quoted } from "./words.js";

/** @typedef {import("./whole_state.js").State} State */

// The first tokens that fit into the drawing, and the last token.
function shorten(tokens, most = 20) {
  const cut = (count) => [...tokens.slice(0, count), "…", tokens.at(-1)].join(" ");
  if (tokens.join(" ").length <= most) return tokens.join(" ");
  return cut(tokens.findIndex((_, i) => cut(i + 1).length > most)).slice(-most);
}

// A codec for integers of up to three digits.
const digitsCodec = (form, toValue) => ({
  write: String,
  read: (text) => (form.test(text) ? { value: toValue(text) } : { error: "whole numbers up to 999" }),
});

/** @type {(text: string, known: string[]) => import("./words.js").Parsed<string[]>} */
function parseSwitches(text, known) {
  const names = text.split(",").filter(Boolean);
  return names.every((name) => known.includes(name)) ? { value: names } : { error: "unknown" };
}

/** @type {(view: import("./ui.js").View) => () => void} */
function render(view) {
  const { model } = view;
  const stateAt = stateOf(
    model,
    checkpointWeights(model, () => draw()),
  );
  let writing = null; // the word being written on arrival
  const state = () => stateAt(writing);
  let peeked = null;
  let drawn = null; // the previous state
  const steps = walkPanel(model, state);
  const close = () => {
    /** @type {HTMLElement} */
    const opened = drawing.node.querySelector("[tabindex='0']");
    opened.focus();
    peeked = null;
    commit(model, { part: "", step: 0 });
    draw();
  };
  const side = sidePanel(model, state, close);
  const peek = (id) => {
    if (id === peeked) return;
    peeked = id;
    draw();
  };
  const open = (part) => {
    steps.stop();
    peeked = null;
    const now = state();
    const at = startCell(now, part);
    if (placeOf(part).side === placeOf(now.part).side) at[1] = now.at[1];
    commit(model, { part, at });
    draw();
    reveal();
  };
  // On a phone, the panel and the walk cover the lower half of the window: the open place is scrolled above them.
  function reveal() {
    const lowest = [...drawing.node.querySelectorAll(".open")].at(-1); // tokens come after their arrow
    const { bottom } = lowest.getBoundingClientRect();
    const hidden = bottom + side.node.offsetHeight + walking.offsetHeight + 8 - innerHeight;
    if (getComputedStyle(side.node).position === "sticky" && hidden > 0) scrollBy({ top: hidden, behavior: "instant" });
  }
  const titleOf = (id) => placeText(model.get("words"), id).title;
  const drawing = picture(model.get("drawing"), titleOf, state().model.normFirst, peek, open);
  const limits = model.get("limits");
  const read = (text) => parseInput(model.get("stored")[0].source, text, limits.tokens, model.get("says"));
  const asking = askPanel(model, read, () => draw());
  const unread = () => asking.error.textContent;
  const panels = [asking, answerPanel(model, state, unread), familyPanel(model), steps];
  const [ask, answer, family, walking] = panels.map((panel) => panel.node);
  const stage = element("div", { class: "tl-stage" }, family, drawing.node, side.node, walking);
  // If the panel is beside the drawing, a part that was chosen with the keyboard is scrolled into view with its name.
  set(drawing.node, {
    onkeydown: () => side.node.offsetTop <= drawing.node.offsetTop && side.title.scrollIntoView({ block: "nearest" }),
  });
  set(stage, { onkeydown: ({ key }) => key === "Escape" && close() });
  const urlState = traitsInUrl("whole", {
    text: textCodec(read),
    family: optionCodec(["both", "encoder", "decoder"]),
    step: digitsCodec(/^\d{1,3}$/, Number),
    part: textCodec((text) => ({ value: text })),
    at: digitsCodec(/^(\d{1,3},){2}(\d{1,3}|-1)$/, (text) => text.split(",").map(Number)),
    tool: optionCodec(Object.keys(model.get("words").tools)),
    off: textCodec(
      (text) => parseSwitches(text, Object.values(limits.switches).flat()),
      String,
      "parts that can be switched off",
    ),
    checkpoint: integerCodec(0, model.get("checkpoints").length),
    temperature: textCodec((text) => parseNumber(text, "temperature", limits.temperatures, { whole: false })),
    top_k: integerCodec(0, model.get("stored")[0].target.length),
    seed: integerCodec(limits.seeds[0], limits.seeds[1]),
  });
  const { lab, status } = frame(view, "whole", "A whole Transformer", urlState, ask, answer, stage);
  set(lab.querySelector(".tl-title"), { "role": "heading", "aria-level": 2 });

  // The links of the attention block that is open or under the pointer.
  function linksOf({ trace, names, at }, id) {
    const { side, kind } = placeOf(id);
    const tensor = trace[`${id}.weights`];
    if (!tensor) return null;
    const [queries, keys] = [names[side], names[kind === "cross" ? "encoder" : side]];
    return { id, tensor, keys, queries, head: Math.min(at[0], tensor.shape[0] - 1), row: at[1] };
  }

  /** @type {(now: State, id: string) => void} */
  function drawPicture(now, id) {
    const { nLayers: layers, normFirst, target } = now.model;
    const layer = { encoder: 0, decoder: 0 };
    for (const id of [now.stop?.lit[0] ?? "", now.part]) {
      const place = placeOf(id);
      if (place.layer !== null) layer[place.side] = place.layer;
    }
    const open = placeOf(now.part);
    const layerText = (side) =>
      open.side === side && open.layer !== null ? `${open.layer + 1}/${layers}` : `× ${layers}`;
    drawing.draw({
      family: now.family,
      layers,
      normFirst,
      finalNorm: Boolean(now.trace["decoder.last"]),
      layer,
      texts: {
        encoder: layerText("encoder"),
        decoder: layerText("decoder"),
        source: shorten(now.names.encoder),
        target: shorten(now.names.decoder),
        next: now.ready ? target[now.answer.tokens[now.count]] : "",
        vectors: plural(now.ids.encoder.length, "vector"),
      },
      lit: new Set(now.stop?.lit),
      open: now.part,
      off: now.model.off,
      data: now,
      links: linksOf(now, id),
    });
  }

  function draw() {
    const now = state();
    const written = drawn && now.text === drawn.text && now.family === drawn.family && now.count === drawn.count + 1;
    if (written && drawn.ready) drawing.fly(now.model.target[now.answer.tokens[drawn.count]]);
    const started = drawn && !drawn.step && now.step;
    drawn = now;
    const id = peeked && now.exists(peeked) ? peeked : now.part;
    for (const panel of panels) panel.draw(now);
    drawPicture(now, id);
    const text = side.draw(now, id);
    if (started) reveal();
    const about = text.startsWith(",") ? text : `. ${text}`;
    const verdict = now.wanted && (now.right ? ": right" : ": wrong");
    const answered = now.words.length ? `writes ${quoted(now.words.join(" "))}` : "writes nothing";
    const writes = `The model reads ${quoted(now.text)} and ${answered}${verdict}.`;
    const whole =
      now.family === "encoder" ? `An encoder alone turns ${quoted(now.text)} into vectors and writes nothing.` : writes;
    const rejected = unread() && `Not read: ${unread()} Still showing ${now.text}.`;
    setText(status, rejected || (id ? `${now.step ? `Step ${now.step}. ` : ""}${titleOf(id)}${about}` : whole));
  }
  const stops = [observe(model, urlState.names, draw), observeTheme(lab, draw)];
  if (!state().step && !state().part && state().family !== "encoder") {
    const length = () => state().answer.tokens.length;
    const arriving = writeOnArrival(lab, length, (word) => {
      writing = word;
      draw();
    });
    stops.push(arriving);
  }
  return () => {
    steps.stop();
    for (const stop of stops) stop();
  };
}

export default { render };
