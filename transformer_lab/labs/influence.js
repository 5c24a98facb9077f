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
/** @typedef {import("./influence_words.js").StoredModel} StoredModel */
/** @typedef {{ chosen: string, token: number, row: string, loud: boolean, verdict: string }} State */

const SEQ_LEN = 8;
const HINT = "Try the switches before you answer. After the right answer, the model’s story appears here.";

const label = (text) => element("p", { class: "tl-label" }, text);
const cellProps = (x) => {
  const { background, color } = cellColours(BLUES, colourLevel(x));
  return { style: `background: ${background}; color: ${color}`, "data-moved": x !== 0 };
};

// The row of tokens, one of which is replaced, and below it the row of outputs.
/** @type {(model: Model) => { node: HTMLElement, draw: (state: State, table: Table) => void }} */
function rowsPanel(model) {
  const tokenButtons = range(SEQ_LEN).map((j) => element("button", {}, String(j)));
  const tokenRadios = radios("The token that is replaced", { class: "tl-eight-columns" }, tokenButtons, (token) =>
    commit(model, { token }),
  );
  const cells = range(SEQ_LEN).map(() => element("span", { class: "tl-move" }));
  const outputs = element("div", { class: "tl-eight-columns", role: "img" }, cells);
  const node = element(
    "div",
    {},
    label("Token: choose one to replace"),
    tokenRadios.node,
    label("Output: how far each moves, as a fraction of the outputs’ standard deviation"),
    outputs,
  );
  function draw({ token, row }, table) {
    for (const [j, button] of tokenButtons.entries()) {
      setText(button, tokenLabel(row, j));
      set(button, {
        "data-document": row === "two" ? Math.floor(j / 4) : null,
        "aria-label": tokenLabel(row, j) === "–" ? `padding ${j}` : null,
      });
    }
    tokenRadios.show(token);
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
  const cells = range(SEQ_LEN).map(() => range(SEQ_LEN).map(() => element("span")));
  const rows = cells.map((row, j) =>
    element("div", { class: "tl-eight-columns", onclick: () => commit(model, { token: j }) }, row),
  );
  const grid = element("div", { class: "tl-table", role: "img" }, rows);
  const node = element("div", {}, label("A row for each token, a column for each output"), grid);
  function draw({ token }, table) {
    for (const [j, row] of cells.entries()) {
      for (const [i, cell] of row.entries()) set(cell, cellProps(table[j][i]));
      set(rows[j], { "data-chosen": j === token });
    }
    const rowTexts = table.map((row, j) => `${j}: ${row.flatMap((x, i) => (x === 0 ? [] : [i])).join(" ") || "none"}`);
    set(grid, { "aria-label": `Which outputs each token moves. ${rowTexts.join("; ")}.` });
  }
  return { node, draw };
}

// The reader's verdict on the model, and then the model's story.
/** @type {(model: Model, storedModels: StoredModel[], verdicts: string[][]) =>
 *   { node: HTMLElement, draw: (state: State, shownModel: StoredModel) => void, reserveAll: () => void }} */
function verdictPanel(model, storedModels, verdicts) {
  const verdictChoice = choice(
    "What is your verdict on this model?",
    verdicts,
    (verdict) => commit(model, { verdict }),
    CHIPS,
  );
  const story = element("p", { class: "tl-story" });
  const link = element("a", { target: "_blank", rel: "noreferrer" });
  const discussion = element("p", { class: "tl-note" }, link);
  const node = element(
    "div",
    {},
    label("What is your verdict on this model?"),
    verdictChoice.node,
    reservedBox(story),
    discussion,
  );
  const storyText = ({ title, story }) => (title ? `${title}. ${story}` : story);
  function draw({ verdict }, shownModel) {
    verdictChoice.show(verdict);
    for (const button of verdictChoice.buttons) set(button, { "data-right": false });
    const isRight = verdict && verdict === shownModel.verdict;
    set(verdictChoice.buttons[verdicts.findIndex(([key]) => key === verdict)] ?? link, {
      "data-right": isRight ? "yes" : "no",
    });
    setText(story, isRight ? storyText(shownModel) : HINT);
    const threadUrl = isRight && shownModel.link;
    setText(link, threadUrl ? `The thread: ${shownModel.thread}` : "");
    set(link, { href: threadUrl || null });
  }
  const reserveAll = () => reserveSpace(story, ...storedModels.map(storyText));
  return { node, draw, reserveAll };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const letters = model.get("letters");
  /** @type {StoredModel[]} */
  const storedModels = model.get("stored");
  /** @type {Table} */
  const readerTable = model.get("own");
  const { rows: inputs, verdicts } = model.get("texts");
  const verdictNames = Object.fromEntries(verdicts);
  const isReadersModel = readerTable.length > 0;
  const modelChoice = choice(
    "Model",
    letters.map((letter) => [letter, letter]),
    (chosen) => commit(model, { chosen, verdict: "" }),
  );
  const claim = element("span", { class: "tl-claim" });
  const inputChoice = choice("What the model reads", inputs, (row) => commit(model, { row }));
  const scaleToggle = onOff("weights × 3,000", () => commit(model, { loud: !model.get("loud") }));
  const tokenRows = rowsPanel(model);
  const tableBox = tablePanel(model);
  const shownModels = storedModels.filter(({ letter }) => letters.includes(letter));
  const verdictBox = verdictPanel(model, shownModels, verdicts);
  const urlState = traitsInUrl("influence", {
    chosen: optionCodec(letters),
    token: integerCodec(0, SEQ_LEN - 1),
    row: optionCodec(inputs.map(([key]) => key)),
    loud: booleanCodec,
    verdict: optionCodec(verdicts.map(([key]) => key)),
  });
  const { status } = frame(
    { model, el },
    "influence",
    "Who moved? Replace one token",
    urlState,
    isReadersModel
      ? []
      : group(
          "model",
          element("div", {}, label("Model"), modelChoice.node),
          element("p", {}, "This model is said to be ", reservedBox(claim)),
        ),
    isReadersModel ? [] : group("switches", element("div", { class: "tl-row" }, inputChoice.node, scaleToggle.node)),
    tokenRows.node,
    element(
      "div",
      { class: "tl-columns" },
      group("table", tableBox.node),
      isReadersModel ? [] : group("verdict", verdictBox.node),
    ),
  );
  const chosenModel = (state) => storedModels.find(({ letter }) => letter === state.chosen);
  const tableOf = (state) =>
    isReadersModel ? readerTable : chosenModel(state).tables[`${state.loud ? "loud" : "quiet"} ${state.row}`];
  if (!isReadersModel) {
    verdictBox.reserveAll();
    reserveSpace(claim, ...shownModels.map(({ claim }) => `${claim}.`));
  }
  const fullTable = range(SEQ_LEN).map(() => range(SEQ_LEN).map(() => 0.001));
  reserveSpace(status, influenceText(fullTable, SEQ_LEN - 1, "one") + verdictText("documents", "right", verdictNames));

  return observe(model, urlState.names, () => {
    /** @type {State} */
    const state = getTraits(model, urlState.names);
    const table = tableOf(state);
    tokenRows.draw(state, table);
    tableBox.draw(state, table);
    let answer = "";
    if (!isReadersModel) {
      const shownModel = chosenModel(state);
      modelChoice.show(state.chosen);
      setText(claim, `${shownModel.claim}.`);
      inputChoice.show(state.row);
      scaleToggle.show(state.loud);
      verdictBox.draw(state, shownModel);
      answer = verdictText(state.verdict, shownModel.verdict, verdictNames);
    }
    setText(status, influenceText(table, state.token, state.row) + answer);
  });
}

export default { render };
