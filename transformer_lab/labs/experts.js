// The experts lab: tokens, the experts that a router chooses for them, and the load of each expert.

import { booleanCodec, integerCodec, nestedNumbersCodec, optionCodec, traitsInUrl } from "./address.js";
import { hueOf } from "./colours.js";
import { balance, bestUnchosen, combineOutputs, loadsOf, movedTokens, roundTo, route } from "./experts_maths.js";
import { loadsText, longestText, movedText, parametersText, routeText } from "./experts_words.js";
import { vectorText } from "./experts_words.js";
import { frame } from "./frame.js";
import { range, sum } from "./maths.js";
import { button, choice, commit, element, getTraits, group, observe, radios, reservedBox, reserveSpace } from "./ui.js";
import { action, onOff, set, setText, sliderWithInput, widest } from "./ui.js";
import { fixed, legible, plural, quoted } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./experts_maths.js").Settings & { shared: boolean, token: number }} State */
/** @typedef {import("./experts_maths.js").Routes & { loads: number[], unbiased: number[][] }} Routing */

// `reserveAll` keeps space for the longest texts, once the panel is on the page.
/** @typedef {{ node: HTMLElement, draw: (state: State, result: Routing) => void, reserveAll: () => void }} Panel */

const MAX_LINK_WIDTH = 11; // the width of a link with weight 1, in pixels

const ORDERS = {
  "softmax-topk": "softmax, then top-k",
  "topk-softmax": "top-k, then softmax",
  "sigmoid-topk": "sigmoid, then top-k",
};

const label = (...inside) => element("p", { class: "tl-label" }, ...inside);
const hueStyle = (expert, experts) => `--hue: ${hueOf(expert, experts)}`;

// One expert: its load beside the mean load, and its bias.
function expertCard(model, expert, experts, seq) {
  const { bias: most, step } = model.get("limits");
  const count = element("span", { class: "tl-count" });
  const bar = element("div", { class: "tl-load" }, element("span"));
  const rounded = (x) => roundTo(step, x);
  const pick = (x) => commit(model, { bias: model.get("bias").map((old, i) => (i === expert ? rounded(x) : old)) });
  const biasSlider = sliderWithInput(
    `Bias of expert ${expert}`,
    { ends: [-most, most], step, whole: false, write: fixed, props: { class: "tl-bias" } },
    pick,
  );
  const head = element("div", { class: "tl-card-head" }, element("span", {}, `expert ${expert}`), reservedBox(count));
  const node = element(
    "div",
    { class: "tl-expert", style: hueStyle(expert, experts) },
    head,
    bar,
    group("bias", biasSlider.node),
  );
  const draw = (load, mean, bias) => {
    setText(count, plural(load, "token"));
    set(bar, { style: `--size: ${load / seq}; --mean: ${mean / seq}` });
    biasSlider.show(bias);
  };
  const reserveAll = () => reserveSpace(count, plural(Math.max(seq, 2), "token"));
  return { node, draw, reserveAll };
}

// Tokens on the left, experts on the right, and links between them whose widths show the weights.
/** @type {(model: Model) => Panel} */
function flowPanel(model) {
  const tokens = model.get("tokens");
  const experts = model.get("bias").length;
  const hasShared = model.get("sizes").shared > 0;
  const rows = experts + (hasShared ? 1 : 0);
  const tokenButtons = tokens.map((token) =>
    element("button", {}, element("span", { class: "tl-long" }, legible(token))),
  );
  const tokenRadios = radios("Token", { class: "tl-tokens" }, tokenButtons, (token) => commit(model, { token }));
  const cards = range(experts).map((expert) => expertCard(model, expert, experts, tokens.length));
  const sharedCount = element("span", { class: "tl-count" });
  const sharedHead = element("div", { class: "tl-card-head" }, element("span", {}, "shared"), reservedBox(sharedCount));
  const sharedCard = hasShared ? element("div", { class: "tl-expert tl-shared" }, sharedHead) : [];

  const path = (i, row, props) => {
    const [from, to] = [(100 * (i + 0.5)) / tokens.length, (100 * (row + 0.5)) / rows];
    return element("path", { d: `M0 ${from}C50 ${from} 50 ${to} 100 ${to}`, ...props });
  };
  const links = tokens.map((_, i) => range(experts).map((e) => path(i, e, { style: hueStyle(e, experts) })));
  const sharedLinks = tokens.map((_, i) => path(i, experts, { class: "tl-shared", "stroke-width": MAX_LINK_WIDTH }));
  const picture = element(
    "svg",
    { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    hasShared ? sharedLinks : [],
    links,
  );
  const flow = element(
    "div",
    { class: "tl-flow" },
    label("Token"),
    label("Load, with a mark at the mean, and bias"),
    tokenRadios.node,
    element("div", { class: "tl-links" }, picture),
    element(
      "div",
      { class: "tl-experts-column" },
      cards.map((card) => card.node),
      sharedCard,
    ),
  );
  const legend =
    "The width of a link shows its weight. A bias is added to the scores of its expert, but only for the choice; " +
    "a dashed link leads to an expert that is chosen because of a bias.";
  const node = element("div", {}, flow, element("p", { class: "tl-note" }, legend));

  const reserveAll = () => {
    for (const card of cards) card.reserveAll();
    reserveSpace(sharedCount, plural(Math.max(tokens.length, 2), "token"));
  };

  function draw({ token, bias, shared }, { chosen, weights, loads, unbiased }) {
    tokenRadios.show(token);
    const mean = sum(loads) / experts;
    for (const [e, card] of cards.entries()) card.draw(loads[e], mean, bias[e]);
    for (const [i, row] of links.entries()) {
      for (const [e, link] of row.entries()) {
        const rank = chosen[i].indexOf(e);
        const isMoved = rank >= 0 && !unbiased[i].includes(e);
        const classes = [i === token && "tl-chosen-token", isMoved && "tl-moved"].filter(Boolean).join(" ");
        set(link, {
          visibility: rank < 0 ? "hidden" : "visible",
          "stroke-width": rank < 0 ? 0 : (MAX_LINK_WIDTH * weights[i][rank]).toFixed(2),
          class: classes,
        });
      }
      set(sharedLinks[i], { visibility: shared && i === token ? "visible" : "hidden" });
    }
    if (hasShared) {
      setText(sharedCount, shared ? plural(tokens.length, "token") : "off");
      set(sharedHead.parentElement, { "data-off": !shared });
    }
  }
  return { node, draw, reserveAll };
}

// Settings of the router: k, the scores, whether the weights are divided by their sum, and the shared experts.
/** @type {(model: Model) => { nodes: HTMLElement[], draw: (state: State) => void }} */
function settingsPanel(model) {
  const counts = range(model.get("bias").length, 1).map((k) => [k, String(k)]);
  const countChoice = choice("Experts per token, k", counts, (n_active) => commit(model, { n_active }));
  const orderChoice = choice("Order", Object.entries(ORDERS), (order) => commit(model, { order }));
  const toggle = (trait, text) => onOff(text, () => commit(model, { [trait]: !model.get(trait) }));
  const renormalizeToggle = toggle("renormalize", "renormalize");
  const sharedToggle = toggle("shared", "shared expert");
  const hasShared = model.get("sizes").shared > 0;
  const labelled = (text, ...inside) => element("div", {}, label(text), ...inside);
  const nodes = [
    element(
      "div",
      { class: "tl-row tl-settings" },
      group(
        "router",
        labelled("Experts per token, k", countChoice.node),
        labelled("How the weights are computed", orderChoice.node),
        labelled("Divide weights by their sum", renormalizeToggle.node),
      ),
      hasShared ? group("shared", labelled("For every token", sharedToggle.node)) : [],
    ),
  ];
  function draw(state) {
    countChoice.show(state.n_active);
    orderChoice.show(state.order);
    // The weights of a softmax over the chosen logits already sum to one.
    const sumsToOne = state.order === "topk-softmax";
    renormalizeToggle.show(sumsToOne || state.renormalize);
    set(renormalizeToggle.node, { disabled: sumsToOne });
    sharedToggle.show(state.shared);
  }
  return { nodes, draw };
}

// Buttons for steps that balance the load.
/** @type {(model: Model, names: string[]) => HTMLElement} */
function balancePanel(model, names) {
  const limits = model.get("limits");
  const settings = () => ({ ...getTraits(model, names), logits: model.get("logits") });
  const runSteps = (count) => () => commit(model, { bias: balance(settings(), count, limits) });
  const rule = `A step: bias +${limits.step} where the load is below the mean, −${limits.step} where it is above.`;
  return element(
    "div",
    { class: "tl-row tl-balance" },
    action("Balance: 1 step", runSteps(1)),
    button("10 steps", runSteps(10)),
    button("All biases 0", () => commit(model, { bias: model.get("bias").map(() => 0) })),
    element("span", { class: "tl-note" }, rule),
  );
}

// The numbers of the chosen token, expert by expert, and the weighted sum of the experts' outputs.
/** @type {(model: Model) => Panel} */
function numbersPanel(model) {
  const [tokens, x, router, outputs, sharedOutputs] = ["tokens", "x", "router", "outputs", "shared_output"].map(
    (name) => model.get(name),
  );
  const { d_model: features } = model.get("sizes");
  const experts = outputs.length;
  const textOf = (vector) => vectorText(vector, features);
  const scoreHead = element("th", { scope: "col" });
  const head = (text) => element("th", { scope: "col" }, text);
  const ifRouter = (make) => (router.length ? [make()] : []);
  const rows = range(experts).map((expert) => {
    const [logit, score, biased, weight, output] = range(5).map(() => element("td"));
    const routerRow = ifRouter(() => element("td", { class: "tl-router" }, textOf(router[expert])));
    const name = element("th", { scope: "row" }, String(expert));
    const node = element("tr", {}, name, routerRow, logit, score, biased, weight, output);
    return { logit, score, biased, weight, output, node };
  });
  const footRow = (text, columns) => {
    const [weight, output] = range(2).map(() => element("td"));
    const node = element(
      "tr",
      {},
      element("th", { scope: "row" }, text),
      ifRouter(() => element("td", { class: "tl-router" })),
      range(columns).map(() => element("td")),
      weight,
      output,
    );
    return { weight, output, node };
  };
  const sharedRow = footRow("shared", 3);
  const sumRow = footRow("sum", 3);
  const caption = element("span");
  const table = element(
    "table",
    { class: "tl-numbers" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        head("expert"),
        ifRouter(() => set(head("row of the router; logit = x · row"), { class: "tl-router" })),
        head("logit"),
        scoreHead,
        head("+ bias"),
        head("weight"),
        head("output"),
      ),
    ),
    element(
      "tbody",
      {},
      rows.map((row) => row.node),
      sharedOutputs.length ? sharedRow.node : [],
      sumRow.node,
    ),
  );
  const rule = "The bias affects the choice, not the weight.";
  const node = element(
    "div",
    {},
    label(reservedBox(caption)),
    element("div", { class: "tl-scroll" }, table),
    element("p", { class: "tl-note" }, `${rule} The last row is the sum of weight × output.`),
  );
  const captions = tokens.map((token, i) => `${quoted(legible(token))}: x = ${textOf(x[i])}`);
  const reserveAll = () => reserveSpace(caption, ...captions);

  function draw(state, { scores, chosen, weights }) {
    const { token, bias } = state;
    setText(caption, captions[token]);
    setText(scoreHead, state.order === "sigmoid-topk" ? "sigmoid" : "softmax");
    for (const [expert, row] of rows.entries()) {
      const rank = chosen[token].indexOf(expert);
      setText(row.logit, fixed(state.logits[token][expert]));
      setText(row.score, fixed(scores[token][expert], 3));
      setText(row.biased, fixed(scores[token][expert] + bias[expert], 3));
      setText(row.weight, rank < 0 ? "–" : fixed(weights[token][rank], 3));
      setText(row.output, rank < 0 ? "not\ncomputed" : textOf(outputs[expert][token]));
      set(row.node, { "data-off": rank < 0 });
    }
    const sharedOutput = state.shared ? sharedOutputs[token] : null;
    setText(sharedRow.weight, sharedOutput ? "1" : "–");
    setText(sharedRow.output, sharedOutput ? textOf(sharedOutput) : "off");
    set(sharedRow.node, { "data-off": !sharedOutput });
    const tokenOutputs = outputs.map((output) => output[token]);
    setText(sumRow.weight, sharedOutput ? "" : fixed(sum(weights[token]), 3));
    setText(sumRow.output, textOf(combineOutputs(chosen[token], weights[token], tokenOutputs, sharedOutput)));
  }
  return { node, draw, reserveAll };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const tokens = model.get("tokens");
  const logits = model.get("logits");
  const sizes = model.get("sizes");
  const experts = model.get("bias").length;
  const most = model.get("limits").bias;
  const flow = flowPanel(model);
  const settings = settingsPanel(model);
  const numbers = numbersPanel(model);
  const parameters = element("p", { class: "tl-note" });
  const urlState = traitsInUrl("experts", {
    n_active: integerCodec(1, experts),
    order: optionCodec(Object.keys(ORDERS)),
    renormalize: booleanCodec,
    shared: booleanCodec,
    bias: nestedNumbersCodec(model.get("bias"), -most, most),
    token: integerCodec(0, tokens.length - 1),
  });
  const question =
    "Which token will be the first to get a different expert? Choose a token, " +
    "then raise the bias of an expert that few tokens use.";
  const { status } = frame(
    { model, el },
    "experts",
    "Which experts does each token go to?",
    urlState,
    element("p", { class: "tl-ask" }, question),
    flow.node,
    group("balance", balancePanel(model, urlState.names)),
    settings.nodes,
    group("numbers", numbers.node),
    reservedBox(parameters),
  );
  flow.reserveAll();
  numbers.reserveAll();
  const widestToken = tokens.indexOf(widest(status, tokens));

  return observe(model, urlState.names, () => {
    /** @type {State} */
    const state = { ...getTraits(model, urlState.names), logits };
    const routes = route(state);
    const unbiased = route({ ...state, bias: state.bias.map(() => 0) }).chosen;
    const result = { ...routes, unbiased, loads: loadsOf(routes.chosen, experts) };
    flow.draw(state, result);
    settings.draw(state);
    numbers.draw(state, result);
    setText(parameters, parametersText(sizes, experts, state.n_active, state.shared));
    reserveSpace(parameters, parametersText(sizes, experts, experts, sizes.shared > 0));
    const { token, bias } = state;
    const chosen = result.chosen[token];
    const next = bestUnchosen(result.scores[token], bias, chosen);
    const sentences = [
      routeText(tokens, token, chosen, result.weights[token], next),
      loadsText(result.loads, tokens.length),
      movedText(tokens, movedTokens(state), bias),
    ];
    setText(status, sentences.join(" "));
    reserveSpace(status, longestText(tokens, widestToken, state.n_active, experts));
  });
}

export default { render };
