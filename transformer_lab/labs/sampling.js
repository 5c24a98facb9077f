// The sampling lab: the probabilities of the next token, the effects of temperature and cut-offs, and draws.

import { integerCodec, optionCodec, textCodec, traitsInUrl } from "./address.js";
import { frame } from "./frame.js";
import { randomNumber, range, sum } from "./maths.js";
import { applyCuts, drawnIndex } from "./sampling_maths.js";
import { cutText, drawText, othersText, parseStep, parseTopK, shareText, tokenText } from "./sampling_words.js";
import { button, choice, commit, element, field, getTraits, group, observe, reservedBox, reserveSpace } from "./ui.js";
import { action, CHIPS, set, setText, sliderWithInput, widest } from "./ui.js";
import { grouped, parseNumber } from "./words.js";

/** @typedef {import("./sampling_maths.js").CutResult} CutResult */
/** @typedef {import("./sampling_maths.js").StoredPrompt} StoredPrompt */
/** @typedef {import("./sampling_maths.js").Settings & { prompt: string, seed: number, draws: number }} State */

const TOKEN_ROWS = 10; // the number of tokens with a row of their own; one more row stands for all other tokens
const MANY_DRAWS = 100; // the number of draws that one button adds

// The prompt: a button for each stored prompt, and the text of the chosen prompt.
/**
 * @type {(model: import("./ui.js").Model, prompts: StoredPrompt[]) =>
 *   { node: HTMLElement, draw: (stored: StoredPrompt) => void, reserveAll: () => void }}
 */
function promptPanel(model, prompts) {
  const options = prompts.map(({ key }) => [key, key]);
  const buttons = choice("Prompt", options, (prompt) => commit(model, { prompt }), CHIPS);
  const text = element("p", { class: "tl-prompt" });
  const promptText = ({ text, chat }) => `${chat ? "Asked" : "Text"}: ${text} …`;
  const node = element("div", {}, buttons.node, reservedBox(text));
  const draw = (stored) => {
    buttons.show(stored.key);
    setText(text, promptText(stored));
  };
  const reserveAll = () => reserveSpace(text, widest(text, prompts.map(promptText)));
  return { node, draw, reserveAll };
}

// A slider with `steps` steps from one whole number to the next.
/** @type {(model: any, label: string, trait: string, ends: [number, number], steps: number, note: string) => any} */
function stepSlider(model, label, trait, ends, steps, note) {
  const options = {
    head: element("p", { class: "tl-label" }, note),
    ends,
    whole: false,
    write: String,
    parse: (text) => parseStep(text, label, ends, steps),
    positionOf: (value) => Math.round(value * steps),
    valueAt: (position) => position / steps,
  };
  return sliderWithInput(label, options, (value) => commit(model, { [trait]: value }));
}

// The slider of top-k: one position for each number, and the last position for all tokens.
function topKSlider(model, stored, vocabSize) {
  const write = (k) => (k === null || k === vocabSize ? "all" : grouped(k));
  return sliderWithInput(
    "Top-k",
    {
      head: element("p", { class: "tl-label" }, "Top-k: the k most likely tokens"),
      ends: [1, vocabSize],
      write,
      parse: (text) => parseTopK(text, stored, vocabSize),
      positionOf: (k) => (k === null || k > stored ? stored + 1 : k),
      valueAt: (position) => (position > stored ? null : position),
    },
    (top_k) => commit(model, { top_k }),
  );
}

// A row for each of the best tokens and a row for all others: the probability before and after the cut, and the draws.
function tokensTable() {
  const rows = range(TOKEN_ROWS + 1).map(() => {
    const [name, before, after, count] = [
      element("th", { scope: "row" }),
      element("td"),
      element("td", { class: "tl-after" }),
      element("td"),
    ];
    const bars = element("td", { class: "tl-bars" }, element("span", { class: "tl-bar" }, element("span")));
    return { name, before, after, count, bars, node: element("tr", {}, name, before, after, count, bars) };
  });
  const heads = ["token", "softmax", "kept", "drawn", ""];
  const node = element(
    "table",
    { class: "tl-tokens" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        heads.map((head) => element(head ? "th" : "td", { scope: head ? "col" : null }, head)),
      ),
    ),
    element(
      "tbody",
      {},
      rows.map((row) => row.node),
    ),
  );

  /** @type {(stored: StoredPrompt, cut: CutResult, counts: number[]) => void} */
  function draw(stored, { before, after, kept }, counts) {
    for (const [i, row] of rows.entries()) {
      const isRest = i === TOKEN_ROWS;
      const rowValue = (numbers) => (isRest ? sum(numbers.slice(TOKEN_ROWS)) : numbers[i]);
      setText(row.name, isRest ? othersText(stored.vocab_size - TOKEN_ROWS) : tokenText(stored.tokens[i]));
      setText(row.before, shareText(rowValue(before)));
      setText(row.after, i < kept ? shareText(rowValue(after)) : "cut off");
      setText(row.count, counts.length ? grouped(rowValue(counts)) : "–");
      set(row.node, { "data-cut": i >= kept });
      row.bars.style.setProperty("--before", String(rowValue(before)));
      row.bars.style.setProperty("--after", String(rowValue(after)));
    }
  }
  return { node, draw };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  /** @type {StoredPrompt[]} */
  const prompts = model.get("prompts");
  const limits = model.get("limits");
  const vocabSize = prompts[0].vocab_size;
  const prompt = promptPanel(model, prompts);
  const table = tokensTable();
  const slider = (label, trait, note) => stepSlider(model, label, trait, limits[trait], limits.steps[trait], note);
  const temperature = slider("Temperature", "temperature", "Temperature τ: scores are divided by τ");
  const topK = topKSlider(model, limits.stored, vocabSize);
  const topP = slider("Top-p", "top_p", "Top-p: the most likely tokens, up to a total of p");
  const minP = slider("Min-p", "min_p", "Min-p: at least this fraction of the highest probability");
  const cuts = element("div", { class: "tl-cuts" }, topK.node, topP.node, minP.node);
  const addDraws = (count) => () => commit(model, { draws: Math.min(model.get("draws") + count, limits.draws) });
  const drawOne = action("Draw", addDraws(1));
  const drawMany = button(`Draw ${MANY_DRAWS}`, addDraws(MANY_DRAWS));
  const clearButton = button("Clear", () => commit(model, { draws: 0 }));
  const seed = field(
    "Seed",
    `A whole number from 0 to ${grouped(limits.seed)}`,
    (text) => parseNumber(text, "Seed", [0, limits.seed]),
    (value) => commit(model, { seed: value }),
    { inputmode: "numeric" },
  );
  const buttons = element("div", { class: "tl-choice" }, drawOne, drawMany, clearButton);
  const stepCodec = (label, trait) => textCodec((text) => parseStep(text, label, limits[trait], limits.steps[trait]));
  const urlState = traitsInUrl("sampling", {
    prompt: optionCodec(prompts.map(({ key }) => key)),
    temperature: stepCodec("Temperature", "temperature"),
    top_k: textCodec(
      (text) => parseTopK(text, limits.stored, vocabSize),
      (k) => (k === null ? "all" : String(k)),
    ),
    top_p: stepCodec("Top-p", "top_p"),
    min_p: stepCodec("Min-p", "min_p"),
    seed: integerCodec(0, limits.seed),
    draws: integerCodec(0, limits.draws),
  });
  const { status } = frame(
    { model, el },
    "sampling",
    "The next token: cut off and draw",
    urlState,
    group("prompt", prompt.node),
    group("temperature", temperature.node),
    group("cut", cuts),
    element("div", { class: "tl-scroll" }, table.node),
    group("draw", element("div", { class: "tl-row" }, buttons, seed.node)),
  );

  prompt.reserveAll();
  const widestToken = widest(
    status,
    prompts.flatMap(({ tokens }) => tokens.map(tokenText)),
  );
  const largestCut = { before: [], after: [0], kept: vocabSize - 1, mass: 0.5 };
  const longestPrompt = { ...prompts[0], tokens: [widestToken] };
  const lastDraw = drawText(limits.draws, 0.5, widestToken);
  reserveSpace(
    status,
    cutText(
      {
        ...longestPrompt,
        tokens: [
          widest(
            status,
            prompts.map(({ tokens }) => tokens[0]),
          ),
        ],
      },
      1,
      largestCut,
    ) + lastDraw,
  );

  return observe(model, urlState.names, () => {
    /** @type {State} */
    const state = getTraits(model, urlState.names);
    const stored = prompts.find(({ key }) => key === state.prompt);
    const cut = applyCuts(stored, state, limits.steps);
    const drawn = range(state.draws).map((draw) => drawnIndex(randomNumber(state.seed, draw), cut));
    const counts = drawn.length ? range(cut.after.length).fill(0) : [];
    for (const i of drawn) counts[i] += 1;
    prompt.draw(stored);
    temperature.show(state.temperature);
    topK.show(state.top_k);
    topP.show(state.top_p);
    minP.show(state.min_p);
    seed.show(grouped(state.seed));
    table.draw(stored, cut, counts);
    for (const node of [drawOne, drawMany]) node.disabled = state.draws === limits.draws;
    clearButton.disabled = state.draws === 0;
    const last = drawn.length - 1;
    const token = stored.tokens[drawn[last]];
    const drawnText =
      last < 0
        ? ""
        : drawText(
            last + 1,
            randomNumber(state.seed, last),
            token === undefined ? "one of the other tokens" : tokenText(token),
          );
    setText(status, cutText(stored, state.temperature, cut) + drawnText);
  });
}

export default { render };
