// The lookup lab: a query, its keys, and the weighted sum of their values. A slider turns the lookup gradually into
// an average.

import { nestedNumbersCodec, numbersCodec, optionCodec, traitsInUrl } from "./address.js";
import { hueOf } from "./colours.js";
import { frame } from "./frame.js";
import { blend, clamp, dot, softmax } from "./maths.js";
import { animateFrom, positionsOf } from "./motion.js";
import { button, choice, commit, element, field, getTraits, group, observe, reservedBox, reserveSpace } from "./ui.js";
import { set, setText, sliderWithInput, widest, withRoles } from "./ui.js";
import { fixed, minus, tuple } from "./words.js";

/** @typedef {[number, number]} Point */
/** @typedef {{ reach: number, coldest: number, hottest: number }} Limits The plane goes from −reach to reach. */
/**
 * @typedef {object} State
 * @property {Point} query
 * @property {Point[]} key
 * @property {Point[]} value
 * @property {number} temperature
 * @property {"dot" | "distance"} similarity
 */

const MARGIN = 0.5; // the margin of the plane, for labels of points near its border
const ROOT_D = Math.SQRT2; // the plane has d_head = 2 features
const STEPS = 1000; // the number of steps of the temperature's slider

// The similarity of a query and a key: their dot product, or minus half their squared distance.
function similarityScore(similarity, query, key) {
  return similarity === "dot" ? dot(query, key) : -0.5 * query.reduce((sum, x, i) => sum + (x - key[i]) ** 2, 0);
}

/** @type {(state: State) => { scores: number[], weights: number[], output: number[] }} */
function lookup({ query, key, value, temperature, similarity }) {
  const scores = key.map((each) => similarityScore(similarity, query, each));
  const weights = softmax(scores.map((score) => score / temperature));
  return { scores, weights, output: blend(weights, value) };
}

// The slider is logarithmic, from the lowest to the highest temperature.
const sliderPosition = (temperature, { coldest, hottest }) =>
  Math.round((STEPS * Math.log(temperature / coldest)) / Math.log(hottest / coldest));
const temperatureOf = (position, { coldest, hottest }) => coldest * (hottest / coldest) ** (position / STEPS);

const temperatureText = (temperature) => temperature.toFixed(temperature < 0.1 ? 3 : temperature < 10 ? 2 : 0);
const ROOT_D_NOTE = "√d, the usual temperature";

const rounded = (x) => Math.round(x * 100) / 100;
const typedPoint = (point) => point.map((x) => String(rounded(x))).join(", ");
const pointText = (point) => tuple(point, fixed);

function parsePoint(text, { reach }) {
  const parts = text
    .replace(/[()[\]]/g, " ")
    .replaceAll("−", "-")
    .trim()
    .split(/\s*,\s*|\s+/);
  const value = parts.map(Number);
  if (parts.length !== 2 || parts.includes("") || value.some((x) => !Number.isFinite(x))) {
    return { error: "Write a point as two numbers, such as 1, 0.5." };
  }
  if (value.some((x) => Math.abs(x) > reach)) return { error: `Both coordinates must be from −${reach} to ${reach}.` };
  return { value, text: typedPoint(value) };
}

const outputText = (output) => `The output is ${pointText(output)}.`;
const uniformText = (count, output) =>
  `All weights are about 1/${count}: the output ${pointText(output)} is close to the mean of the values.`;
const strongestText = (label, weight, output) =>
  weight > 0.99
    ? `${label} has weight ${weight.toFixed(2)}: the lookup finds one key. ${outputText(output)}`
    : `${label} has the largest weight, ${weight.toFixed(2)}. ${outputText(output)}`;

// A plane with axes. Its y axis points up, but the y axis of the screen points down.
function plane(label, reach) {
  const edge = reach + MARGIN;
  const node = element("svg", {
    viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}`,
    class: "tl-plane",
    role: "group",
    "aria-label": label,
  });
  const tick = (x, y, value) => element("text", { x, y, class: "tl-tick" }, minus(String(value)));
  node.append(
    element("rect", { x: -edge, y: -edge, width: 2 * edge, height: 2 * edge, class: "tl-ground" }),
    element("line", { x1: -edge, x2: edge, y1: 0, y2: 0, class: "tl-axis" }),
    element("line", { x1: 0, x2: 0, y1: -edge, y2: edge, class: "tl-axis" }),
    ...[-reach, reach].flatMap((value) => [tick(value, 0.2, value), tick(-0.15, 0.06 - value, value)]),
  );
  const pointAt = (event) => {
    const box = node.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width - 0.5) * 2 * edge,
      (0.5 - (event.clientY - box.top) / box.height) * 2 * edge,
    ];
  };
  const clampPoint = (point) => point.map((x) => clamp(rounded(x), -reach, reach));
  return { node, pointAt, clampPoint };
}

// A point that can be moved by dragging or with the arrow keys (with Shift, in larger steps).
function handle({ pointAt, clampPoint }, name, getPoint, setPoint, shape) {
  const node = element(
    "g",
    {
      class: "tl-handle",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "point, moved with the arrow keys",
    },
    element("circle", { r: 0.28, class: "tl-touch" }),
    ...shape,
  );
  let offset = null; // the offset from the pointer to the point during a drag
  const endDrag = () => {
    offset = null;
  };
  set(node, {
    onpointerdown: (event) => {
      const pointer = pointAt(event);
      offset = getPoint().map((x, i) => x - pointer[i]);
      node.setPointerCapture(event.pointerId);
      node.focus();
      event.preventDefault();
    },
    ontouchstart: (event) => event.preventDefault(), // in SVG, touch-action alone does not prevent scrolling
    onpointermove: (event) => {
      if (offset) setPoint(clampPoint(pointAt(event).map((x, i) => x + offset[i])));
    },
    onpointerup: endDrag,
    onpointercancel: endDrag,
    onkeydown: (event) => {
      const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!direction) return;
      const step = event.shiftKey ? 0.5 : 0.1;
      setPoint(clampPoint(getPoint().map((x, i) => x + direction[i] * step)));
      event.preventDefault();
    },
  });
  const show = (point) =>
    set(node, { transform: `translate(${point[0]} ${-point[1]})`, "aria-label": `${name} at ${pointText(point)}` });
  return { node, show };
}

// The two planes: query and keys, and values with their weighted sum.
/** @type {(model: import("./ui.js").Model) => { node: HTMLElement, draw: (state: State, result: any) => void }} */
function planesPanel(model) {
  const labels = model.get("labels");
  const { reach } = model.get("limits");
  const left = plane("Query and keys. Drag the query or a key, or focus one and use the arrow keys.", reach);
  const right = plane("Values and the blended value. Drag a value, or focus one and use the arrow keys.", reach);
  const hue = (i) => `--hue: ${hueOf(i, labels.length)}`;
  const forEachKey = (make) => labels.map((_, i) => make(i));
  const line = (i) => element("line", { class: "tl-ray", style: hue(i) });
  const nameLabel = (text, y, className = "tl-name") => element("text", { class: className, y }, text);
  const pointHandle = (plane, trait, i, shape) => {
    const label = `${trait === "key" ? "Key" : "Value"} ${labels[i]}`;
    const setPoint = (point) => commit(model, { [trait]: model.get(trait).map((row, j) => (j === i ? point : row)) });
    return handle(plane, label, () => model.get(trait)[i], setPoint, [shape, nameLabel(labels[i], -0.2)]);
  };
  const keyLines = forEachKey(line);
  const valueLines = forEachKey(line);
  const circle = (i) => element("circle", { r: 0.11, class: "tl-point", style: hue(i) });
  const square = (i) =>
    element("rect", { x: -0.11, y: -0.11, width: 0.22, height: 0.22, class: "tl-point", style: hue(i) });
  const keyHandles = forEachKey((i) => pointHandle(left, "key", i, circle(i)));
  const valueHandles = forEachKey((i) => pointHandle(right, "value", i, square(i)));
  const arrow = element("line", { class: "tl-query-line" });
  const setQuery = (point) => commit(model, { query: point });
  const queryHandle = handle(left, "Query", () => model.get("query"), setQuery, [
    element("circle", { r: 0.13, class: "tl-query" }),
    nameLabel("query", 0.38, "tl-name tl-strong"),
  ]);
  const diamond = element("path", { d: "M0 -0.22 L0.22 0 L0 0.22 L-0.22 0 Z", class: "tl-output" });
  const blended = element("g", {}, diamond, nameLabel("output", 0.42, "tl-name tl-strong"));
  left.node.append(...keyLines, arrow, ...keyHandles.map((each) => each.node), queryHandle.node);
  right.node.append(...valueLines, ...valueHandles.map((each) => each.node), blended);

  const withTitle = (text, svg) => element("div", {}, element("p", { class: "tl-label" }, withRoles(text)), svg);
  const node = element(
    "div",
    { class: "tl-planes" },
    withTitle("Query and keys: drag the query, or a key", left.node),
    withTitle("Values and their blend: drag a value", right.node),
  );

  const lineBetween = ([x1, y1], [x2, y2]) => ({ x1, y1: -y1, x2, y2: -y2 });
  function draw(state, { weights, output }) {
    const visibility = state.similarity === "dot" ? "visible" : "hidden";
    set(arrow, { ...lineBetween([0, -0], state.query), visibility });
    queryHandle.show(state.query);
    for (const [i, weight] of weights.entries()) {
      const emphasis = { "stroke-width": 0.015 + 0.13 * weight, opacity: 0.15 + 0.85 * weight };
      keyHandles[i].show(state.key[i]);
      valueHandles[i].show(state.value[i]);
      set(keyLines[i], { ...lineBetween(state.query, state.key[i]), ...emphasis });
      set(valueLines[i], { ...lineBetween(output, state.value[i]), ...emphasis });
    }
    set(blended, { transform: `translate(${output[0]} ${-output[1]})` });
  }
  return { node, draw };
}

// The temperature: its slider, with a mark at √d.
function temperaturePanel(model) {
  const limits = model.get("limits");
  const pick = (temperature) => commit(model, { temperature });
  const { coldest, hottest } = limits;
  const at = `--at: ${(100 * sliderPosition(ROOT_D, limits)) / STEPS}`;
  const mark = button("√d", () => pick(ROOT_D), { class: "tl-root", style: at });
  const endLabel = (text) => element("span", {}, text);
  const endLabels = element("div", { class: "tl-ends tl-note" }, endLabel("hard lookup"), endLabel("uniform average"));
  const note = element("span");
  const input = sliderWithInput(
    "Temperature",
    {
      head: element("p", { class: "tl-label" }, "Temperature τ: ", reservedBox(note)),
      marks: [mark, endLabels],
      ends: [coldest, hottest],
      whole: false,
      write: temperatureText,
      positionOf: (temperature) => sliderPosition(temperature, limits),
      valueAt: (position) => temperatureOf(position, limits),
    },
    pick,
  );
  set(input.node, { class: "tl-slider tl-temperature" });
  const reserveAll = () => reserveSpace(note, ROOT_D_NOTE, "scores are divided by τ");

  function draw({ temperature }) {
    const isRootD = Math.abs(temperature / ROOT_D - 1) < 0.006;
    input.show(temperature);
    setText(note, isRootD ? ROOT_D_NOTE : "scores are divided by τ");
    const text = temperatureText(temperature);
    set(input.input, { "aria-valuetext": `${text}${isRootD ? ", the square root of d" : ""}` });
    set(mark, { "aria-pressed": String(isRootD) });
  }
  return { node: input.node, reserveAll, draw };
}

// A row for each key: its score, the score divided by τ, and its weight.
function scoresTable(labels) {
  const rows = labels.map((label, i) => {
    const [score, divided] = [element("td"), element("td")];
    const bar = element("span", {
      class: "tl-bar",
      style: `--hue: ${hueOf(i, labels.length)}`,
      "data-part": `bar ${i}`,
    });
    const weight = element("span", { class: "tl-weight", "data-part": `weight ${i}` });
    const name = element("th", { scope: "row" }, label);
    const node = element("tr", {}, name, score, divided, element("td", { class: "tl-bars" }, bar, weight));
    return { score, divided, bar, weight, node };
  });
  const head = (text) => element("th", { scope: "col" }, text);
  const scoreHead = head("");
  const node = element(
    "table",
    { class: "tl-scores" },
    element("thead", {}, element("tr", {}, head("key"), scoreHead, head("÷ τ"), head("weight"))),
    element(
      "tbody",
      {},
      rows.map((row) => row.node),
    ),
  );

  const animated = rows.flatMap(({ bar, weight }) => [bar, weight]);
  const partOf = (part) => part.dataset.part;
  let lastState = null;
  function draw({ temperature, similarity }, { scores, weights }) {
    // Bars are animated when a button changes the temperature, but change without animation during a drag.
    const animates =
      lastState &&
      (lastState.similarity !== similarity || (lastState.temperature !== temperature && temperature === ROOT_D));
    lastState = { temperature, similarity };
    const before = animates && positionsOf(node, animated, partOf);
    setText(scoreHead, similarity === "dot" ? "q · k" : "−½ distance²");
    for (const [i, row] of rows.entries()) {
      setText(row.score, fixed(scores[i]));
      setText(row.divided, fixed(scores[i] / temperature));
      setText(row.weight, fixed(weights[i]));
      row.bar.style.setProperty("--size", weights[i]);
    }
    if (before) animateFrom(before, node, animated, partOf);
  }
  return { node, draw };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const labels = model.get("labels");
  const limits = model.get("limits");
  const count = labels.length;
  const { reach } = limits;
  const planes = planesPanel(model);
  const temperature = temperaturePanel(model);
  const table = scoresTable(labels);
  const queryField = field(
    "Query",
    `Two numbers from −${reach} to ${reach}`,
    (text) => parsePoint(text, limits),
    (point) => commit(model, { query: point.map(rounded) }),
    { inputmode: "text" },
  );
  const similarities = [
    ["dot", "dot product"],
    ["distance", "distance"],
  ];
  const similarity = choice("Similarity", similarities, (similarity) => commit(model, { similarity }));
  const pointsCodec = (name) => nestedNumbersCodec(model.get(name), -reach, reach);
  const urlState = traitsInUrl("lookup", {
    query: pointsCodec("query"),
    key: pointsCodec("key"),
    value: pointsCodec("value"),
    temperature: numbersCodec(
      ([x, ...others]) => !others.length && x >= limits.coldest && x <= limits.hottest,
      `a number from ${limits.coldest} to ${limits.hottest}`,
      ([x]) => x,
    ),
    similarity: optionCodec(similarities.map(([name]) => name)),
  });
  const similarityBox = element("div", {}, element("p", { class: "tl-note" }, "Match by"), similarity.node);
  const { status } = frame(
    { model, el },
    "lookup",
    "A lookup that matches every key a little",
    urlState,
    planes.node,
    group("temperature", temperature.node),
    element("div", { class: "tl-row" }, group("query", queryField.node), group("similarity", similarityBox)),
    group("scores", element("div", { class: "tl-scroll" }, table.node)),
  );

  const widestLabel = widest(status, labels);
  const corner = [-reach, -reach];
  temperature.reserveAll();
  reserveSpace(
    status,
    strongestText(widestLabel, 0, corner),
    strongestText(widestLabel, 1, corner),
    uniformText(count, corner),
  );

  return observe(model, urlState.names, () => {
    /** @type {State} */
    const state = getTraits(model, urlState.names);
    const result = lookup(state);
    const { weights, output } = result;
    queryField.show(typedPoint(state.query));
    similarity.show(state.similarity);
    temperature.draw(state);
    planes.draw(state, result);
    table.draw(state, result);
    const most = Math.max(...weights);
    const isUniform = most - Math.min(...weights) < 0.02;
    setText(
      status,
      isUniform ? uniformText(count, output) : strongestText(labels[weights.indexOf(most)], most, output),
    );
  });
}

export default { render };
