// The split lab: splitting a tensor into heads and merging the heads, step by step, correctly or with view alone.

import { booleanCodec, integerCodec, traitsInUrl } from "./address.js";
import { hueOf } from "./colours.js";
import { frame } from "./frame.js";
import { tensorGrid } from "./grid.js";
import { product, range, ravel, unravel } from "./maths.js";
import { animateFrom, positionsOf } from "./motion.js";
import { exampleReaders, journeySteps, stepTexts, tokensOfHead } from "./split_journey.js";
import { commit, element, getTraits, group, observe, radios, reservedBox, reserveSpace } from "./ui.js";
import { onOff, setText } from "./ui.js";
import { quotedAt, shapeText } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */

const TRAITS = ["stage", "cell", "split_by_view", "merge_by_view"];
const label = (...inside) => element("p", { class: "tl-label" }, ...inside);
// The list of steps: for each step its code, and its shape as names of axes and as numbers.
function stageBar(model, count) {
  const stages = range(count).map(() => {
    const code = element("code");
    const [shape, sizes] = ["tl-shape", "tl-sizes"].map((name) => element("span", { class: name }));
    return { code, shape, sizes, node: element("button", { class: "tl-stage" }, code, shape, sizes) };
  });
  const nodes = stages.map((stage) => stage.node);
  const pick = (stage) => commit(model, { stage });
  const radioGroup = radios("Steps of multi-head attention", { class: "tl-stages" }, nodes, pick);
  const draw = (texts, chosen, sizes) => {
    for (const [i, { text, shape, wrong }] of texts.entries()) {
      setText(stages[i].code, text);
      setText(stages[i].shape, shapeText(shape));
      setText(stages[i].sizes, shapeText(shape.map((axis) => sizes[axis])));
      stages[i].node.classList.toggle("tl-wrong", wrong);
    }
    radioGroup.show(chosen);
  };
  return { node: radioGroup.node, draw };
}

const TENSOR_NAMES = ["x", "q", "q", "q", "scores", "weights", "out", "out", "out", "y"]; // the tensor at each stage

// The tensor of the example before and after a step, with one marked number.
function beforeAndAfter(model, example) {
  const { letterOf, tokenOf, nameOf, isByHead, rowOf, isMisplaced } = exampleReaders(example);
  let column = 0; // the key of the marked cell, in a table of scores
  const pictures = ["Before this step", "After this step"].map((text) => {
    const picture = { step: null, drawn: "" };
    const grid = tensorGrid(`${text}. Arrow keys choose the number to follow.`, (index) => {
      const { ids, shape } = picture.step;
      const id = ids[ravel(index, shape)];
      if (Array.isArray(id)) column = index[2];
      commit(model, { cell: [id].flat()[0] });
    });
    const name = element("span", {});
    const shape = element("span", { class: "tl-code" });
    return Object.assign(picture, { grid, name, shape, node: element("div", {}, label(name, " ", shape), grid.node) });
  });

  // Draws the tensor after step `stage`; `mistakes` is a key of the reader's choice of mistakes.
  function drawPicture(picture, step, stage, mistakes, cell) {
    const { grid, name } = picture;
    picture.node.hidden = !step;
    if (!step) return;
    const { shape, ids } = step;
    const isMarked = (id) =>
      Array.isArray(id) ? Math.floor(id[0] / example.d_head) === Math.floor(cell / example.d_head) : id === cell;
    setText(name, TENSOR_NAMES[Math.max(stage, 0)]);
    setText(picture.shape, shapeText(shape));
    if (picture.drawn !== `${stage} ${mistakes}`) {
      const hue = (id) => hueOf(tokenOf([id].flat()[0]), example.seq);
      grid.draw(shape, (_, flat) => ({ text: nameOf(ids[flat]), hue: hue(ids[flat]) }), {
        block: (index) => (isByHead(shape) ? `head ${index[0]}` : letterOf(index[0])),
        row: (index) => (isByHead(shape) || shape.length === 2 ? letterOf(rowOf(shape, index)) : `head ${index[1]}`),
      });
      picture.drawn = `${stage} ${mistakes}`;
      picture.step = step;
    }
    const index = unravel(ids.findIndex(isMarked), shape);
    if (Array.isArray(ids[0])) index[2] = Math.min(column, shape[2] - 1);
    grid.mark(index, { "tl-misplaced": range(ids.length).filter((flat) => isMisplaced(step, flat)) });
  }

  const node = element("div", { class: "tl-row tl-before-after tl-sticky" });
  node.append(...pictures.map((picture) => picture.node));
  const cellsOf = ({ grid }) => grid.node.querySelectorAll(".tl-cell");
  const draw = (steps, stages, mistakes, cell) => {
    const [before, after] = pictures;
    const previous = after.drawn;
    for (const [i, stage] of stages.entries()) drawPicture(pictures[i], steps[stage], stage, mistakes, cell);
    // After a change of step, the numbers are animated from their old positions.
    if (previous && previous !== after.drawn) animateFrom(positionsOf(node, cellsOf(before)), node, cellsOf(after));
  };
  return { node, draw };
}

const CHOICE_LABEL = "What would happen if you used";
const SCORE_TABLE_TEXT = "Each row contains one token’s scores for all tokens, and each head has its own table.";
const mixedCellsText = (misplaced, total) =>
  `${misplaced} of ${total} cells compare tokens that do not match the row and column.`;

// The steps of splitting and merging.
/** @type {(model: Model) => any} */
function journeyPanel(model) {
  const [tokens, heads] = [model.get("tokens"), model.get("n_heads")];
  const queries = tokens.length;
  const example = model.get("example");
  const { features, letterOf, tokenOf, nameOf, isByHead, rowOf, isMisplaced } = exampleReaders(example);
  const bar = stageBar(model, stepTexts(false, false).length);
  const toggle = (trait, text) => onOff(text, () => commit(model, { [trait]: !model.get(trait) }));
  const mistakeSwitches = {
    split_by_view: toggle("split_by_view", "view alone to split"),
    merge_by_view: toggle("merge_by_view", "view alone to merge"),
  };
  const lesson = element("p");
  const picture = beforeAndAfter(model, example);
  const sizes =
    `tokens a to ${letterOf(example.seq - 1)}, d_model ${features}, ${example.heads} heads, ` +
    `d_head ${example.d_head}`;
  const mistakes = element(
    "div",
    { class: "tl-choice", role: "group", "aria-label": "A mistake" },
    Object.values(mistakeSwitches).map(({ node }) => node),
  );
  const nodes = [
    label("Choose a step"),
    bar.node,
    group(
      "mistakes",
      element("div", { class: "tl-row tl-toggles" }, element("span", { class: "tl-note" }, CHOICE_LABEL), mistakes),
    ),
    reservedBox(lesson, "tl-lesson"),
    element(
      "p",
      { class: "tl-note" },
      `A small example without a batch axis: ${sizes}. b3 is feature 3 of token b. Point at a number to follow it.`,
    ),
    picture.node,
  ];

  // Describes the effect of a wrong split on the reader's own sentence.
  function ownSentenceText(splitByView) {
    if (!splitByView || heads === 1) return "";
    const [from, to] = tokensOfHead(0, heads, queries);
    const first = quotedAt(tokens, from);
    const readText = to > from ? `the tokens from ${first} to ${quotedAt(tokens, to)}` : `${first} alone`;
    return ` In your sentence, head 0 of ${heads} would read ${readText}.`;
  }

  function positionText(shape, index) {
    const row = letterOf(rowOf(shape, index));
    if (shape.length === 2) return `row ${row}`;
    return isByHead(shape) ? `head ${index[0]}, row ${row}` : `token ${row}, piece ${index[1]}`;
  }

  // Describes the marked number: its position, and the token to which the layer assigns its row.
  function cellText(step, cell, misplaced) {
    const { ids, shape } = step;
    const flat = ids.indexOf(cell);
    if (flat < 0) return misplaced ? mixedCellsText(misplaced, ids.length) : SCORE_TABLE_TEXT;
    const index = unravel(flat, shape);
    const feature = `${nameOf(cell)}, feature ${cell % features} of token ${letterOf(tokenOf(cell))}`;
    const misread = isMisplaced(step, flat)
      ? ` The layer reads this row as token ${letterOf(rowOf(shape, index))}.`
      : "";
    const wrong = misplaced ? ` ${misplaced} of ${ids.length} numbers are in the wrong row.` : "";
    return `${feature}, is at [${index.join(", ")}]: ${positionText(shape, index)}.${misread}${wrong}`;
  }

  function draw(status) {
    const { stage, cell, split_by_view: split, merge_by_view: merge } = getTraits(model, TRAITS);
    const texts = stepTexts(split, merge);
    const steps = journeySteps(example, split, merge);
    const dModel = model.get("d_model");
    const lengths = { batch: 1, seq: queries, q_len: queries, k_len: queries, heads };
    const widths = { d_model: dModel ?? "d_model", d_head: dModel ? dModel / heads : "d_head" };
    bar.draw(texts, stage, { ...lengths, ...widths });
    mistakeSwitches.split_by_view.show(split);
    mistakeSwitches.merge_by_view.show(merge);
    // If the transpose is left out, the first picture shows the input of the view.
    const start = stage - (texts[stage].wrong && stage !== 2 && stage !== 8 ? 2 : 1);
    picture.draw(steps, [start, stage], `${split} ${merge}`, cell);
    setText(lesson, texts[stage].words);

    const step = steps[stage];
    const misplaced = range(step.ids.length).filter((flat) => isMisplaced(step, flat)).length;
    const ownSentence = ownSentenceText(split);
    const most = product([example.heads, example.seq, example.seq]);
    const last = letterOf(example.seq - 1);
    const wrong = ` The layer reads this row as token ${last}. ${most} of ${most} numbers are in the wrong row.`;
    const position = `${last}0, feature 0 of token ${last}, is at [0, 0, 0]: token ${last}, piece 0.`;
    const longest = [SCORE_TABLE_TEXT, mixedCellsText(most, most), `${position}${split || merge ? wrong : ""}`];
    reserveSpace(status, ...longest.map((text) => `${text}${ownSentence}`));
    setText(status, `${cellText(step, cell, misplaced)}${stage > 1 && stage < 7 ? ownSentence : ""}`);
  }

  // Reserves space for the text of every step, with and without mistakes.
  function reserveAll() {
    const flags = [false, true];
    const texts = flags.flatMap((merge) => flags.flatMap((split) => stepTexts(split, merge)));
    reserveSpace(lesson, ...new Set(texts.map((step) => step.words)));
  }
  return { nodes, draw, reserveAll };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const { seq, heads, d_head } = model.get("example");
  const panel = journeyPanel(model);
  const urlState = traitsInUrl("split", {
    stage: integerCodec(0, stepTexts(false, false).length - 1),
    cell: integerCodec(0, seq * heads * d_head - 1),
    split_by_view: booleanCodec,
    merge_by_view: booleanCodec,
  });
  const { status } = frame({ model, el }, "split", "The way into heads and back", urlState, panel.nodes);
  panel.reserveAll();
  return observe(model, urlState.names, () => panel.draw(status));
}

export default { render };
