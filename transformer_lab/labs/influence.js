// The influence lab: one token is replaced, and the outputs that change are highlighted.

import { booleanCodec, integerCodec, optionCodec, traitsInUrl } from "./address.js";
import { BLUES, cellColours } from "./colours.js";
import { frame } from "./frame.js";
import { colourLevel, influenceText, moveText, tokenLabel, verdictText } from "./influence_words.js";
import { range } from "./maths.js";
import { choice, commit, element, getTraits, group, observe, radios, reservedBox, reserveSpace } from "./ui.js";
import { CHIPS, onOff, set, setText } from "./ui.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./influence_words.js").Table} Table */
/** @typedef {import("./influence_words.js").Stored} Stored */
/** @typedef {{ chosen: string, token: number, row: string, loud: boolean, verdict: string }} State */

const SEQ = 8;
const HINT = "Try the switches before you answer. After the right answer, the model’s story appears here.";

const label = (text) => element("p", { class: "tl-label" }, text);
const cellProps = (x) => {
  const { background, color } = cellColours(BLUES, colourLevel(x));
  return { style: `background: ${background}; color: ${color}`, "data-moved": x !== 0 };
};

// The row of tokens, one of which is replaced, and below it the row of outputs.
/** @type {(model: Model) => { node: HTMLElement, draw: (state: State, table: Table) => void }} */
function rowsPanel(model) {
  const names = range(SEQ).map((j) => element("button", {}, String(j)));
  const pick = radios("The token that is replaced", { class: "tl-eight-columns" }, names, (token) =>
    commit(model, { token }),
  );
  const cells = range(SEQ).map(() => element("span", { class: "tl-move" }));
  const outputs = element("div", { class: "tl-eight-columns", role: "img" }, cells);
  const node = element(
    "div",
    {},
    label("Token: choose the one to replace"),
    pick.node,
    label("Output: how far each moves, as a fraction of the outputs’ standard deviation"),
    outputs,
  );
  function draw({ token, row }, table) {
    for (const [j, name] of names.entries()) {
      setText(name, tokenLabel(row, j));
      set(name, {
        "data-document": row === "two" ? Math.floor(j / 4) : null,
        "aria-label": tokenLabel(row, j) === "–" ? `padding ${j}` : null,
      });
    }
    pick.show(token);
    for (const [i, cell] of cells.entries()) {
      setText(cell, moveText(table[token][i]));
      set(cell, cellProps(table[token][i]));
    }
    set(outputs, { "aria-label": `Moves of outputs 0 to 7: ${table[token].map(moveText).join(", ")}` });
  }
  return { node, draw };
}

// All eight experiments: a row for each token, a column for each output.
/** @type {(model: Model) => { node: HTMLElement, draw: (state: State, table: Table) => void }} */
function tablePanel(model) {
  const cells = range(SEQ).map(() => range(SEQ).map(() => element("span")));
  const rows = cells.map((row, j) =>
    element("div", { class: "tl-eight-columns", onclick: () => commit(model, { token: j }) }, row),
  );
  const picture = element("div", { class: "tl-table", role: "img" }, rows);
  const node = element("div", {}, label("A row for each token, a column for each output"), picture);
  function draw({ token }, table) {
    for (const [j, row] of cells.entries()) {
      for (const [i, cell] of row.entries()) set(cell, cellProps(table[j][i]));
      set(rows[j], { "data-chosen": j === token });
    }
    const rowTexts = table.map((row, j) => `${j}: ${row.flatMap((x, i) => (x === 0 ? [] : [i])).join(" ") || "none"}`);
    set(picture, { "aria-label": `Which outputs each token moves. ${rowTexts.join("; ")}.` });
  }
  return { node, draw };
}

// The reader's verdict on the model, and then the model's story.
/** @type {(model: Model, stored: Stored[], verdicts: string[][]) =>
 *   { node: HTMLElement, draw: (state: State, shown: Stored) => void, reserveAll: () => void }} */
function verdictPanel(model, stored, verdicts) {
  const pick = choice("What is your verdict on this model?", verdicts, (verdict) => commit(model, { verdict }), CHIPS);
  const story = element("p", { class: "tl-story" });
  const link = element("a", { target: "_blank", rel: "noreferrer" });
  const thread = element("p", { class: "tl-note" }, link);
  const node = element("div", {}, label("What is your verdict on this model?"), pick.node, reservedBox(story), thread);
  const storyText = ({ title, story }) => (title ? `${title}. ${story}` : story);
  function draw({ verdict }, shown) {
    pick.show(verdict);
    for (const node of pick.buttons) set(node, { "data-right": false });
    const isRight = verdict && verdict === shown.verdict;
    set(pick.buttons[verdicts.findIndex(([key]) => key === verdict)] ?? link, { "data-right": isRight ? "yes" : "no" });
    setText(story, isRight ? storyText(shown) : HINT);
    const threadUrl = isRight && shown.link;
    setText(link, threadUrl ? `The thread: ${shown.thread}` : "");
    set(link, { href: threadUrl || null });
  }
  const reserveAll = () => reserveSpace(story, ...stored.map(storyText));
  return { node, draw, reserveAll };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const letters = model.get("letters");
  /** @type {Stored[]} */
  const stored = model.get("stored");
  /** @type {Table} */
  const ownTable = model.get("own");
  const { rows, verdicts } = model.get("texts");
  const verdictNames = Object.fromEntries(verdicts);
  const isOwn = ownTable.length > 0;
  const models = choice(
    "Model",
    letters.map((letter) => [letter, letter]),
    (chosen) => commit(model, { chosen, verdict: "" }),
  );
  const claim = element("span", { class: "tl-claim" });
  const row = choice("What the model reads", rows, (row) => commit(model, { row }));
  const loud = onOff("weights × 3,000", () => commit(model, { loud: !model.get("loud") }));
  const tokenRows = rowsPanel(model);
  const table = tablePanel(model);
  const shownModels = stored.filter(({ letter }) => letters.includes(letter));
  const verdict = verdictPanel(model, shownModels, verdicts);
  const urlState = traitsInUrl("influence", {
    chosen: optionCodec(letters),
    token: integerCodec(0, SEQ - 1),
    row: optionCodec(rows.map(([key]) => key)),
    loud: booleanCodec,
    verdict: optionCodec(verdicts.map(([key]) => key)),
  });
  const { status } = frame(
    { model, el },
    "influence",
    "Who moved? Replace one token",
    urlState,
    isOwn
      ? []
      : group(
          "model",
          element("div", {}, label("Model"), models.node),
          element("p", {}, "It is said to be ", reservedBox(claim)),
        ),
    isOwn ? [] : group("switches", element("div", { class: "tl-row" }, row.node, loud.node)),
    tokenRows.node,
    element("div", { class: "tl-columns" }, group("table", table.node), isOwn ? [] : group("verdict", verdict.node)),
  );
  const chosenModel = (state) => stored.find(({ letter }) => letter === state.chosen);
  const tableOf = (state) =>
    isOwn ? ownTable : chosenModel(state).tables[`${state.loud ? "loud" : "quiet"} ${state.row}`];
  if (!isOwn) {
    verdict.reserveAll();
    reserveSpace(claim, ...shownModels.map(({ claim }) => `${claim}.`));
  }
  const allMoved = range(SEQ).map(() => range(SEQ).map(() => 0.001));
  reserveSpace(status, influenceText(allMoved, SEQ - 1, "one") + verdictText("documents", "right", verdictNames));

  return observe(model, urlState.names, () => {
    /** @type {State} */
    const state = getTraits(model, urlState.names);
    const moves = tableOf(state);
    tokenRows.draw(state, moves);
    table.draw(state, moves);
    let answer = "";
    if (!isOwn) {
      const shown = chosenModel(state);
      models.show(state.chosen);
      setText(claim, `${shown.claim}.`);
      row.show(state.row);
      loud.show(state.loud);
      verdict.draw(state, shown);
      answer = verdictText(state.verdict, shown.verdict, verdictNames);
    }
    setText(status, influenceText(moves, state.token, state.row) + answer);
  });
}

export default { render };
