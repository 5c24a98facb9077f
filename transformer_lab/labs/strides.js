// The strides lab: how a tensor reads its storage by shape, strides and offset.

import { numbersCodec, textCodec, traitsInUrl } from "./address.js";
import { hueOf } from "./colours.js";
import { frame } from "./frame.js";
import { tensorGrid } from "./grid.js";
import { product, ravel, unravel } from "./maths.js";
import { animateFrom, positionsOf } from "./motion.js";
import { chainText, parseChain, runChain } from "./strides_chain.js";
import { isContiguous, placeOf, storagePlaces } from "./strides_rules.js";
import { button, choice, commit, element, field, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { CHIPS, setText, sliderWithInput } from "./ui.js";
import { parseNumber, parseShape, plural, shapeText } from "./words.js";

/** @typedef {import("./strides_rules.js").Strided} Strided */
/** @typedef {import("./ui.js").Model} Model */

// Describes the chosen element. The next element is `gap` places further in storage; `shared` elements have the place
// of the chosen element.
function elementText(index, number, place, gap, shared) {
  const distance =
    gap === 0 ? "at the same place" : `${plural(Math.abs(gap), "place")} ${gap > 0 ? "further on" : "back"}`;
  const next =
    gap === null ? "It is the last element in reading order." : `The next element in reading order is ${distance}.`;
  const others = shared > 1 ? ` ${shared} elements share this place.` : "";
  return `Element [${index.join(", ")}] is ${number}, at storage place ${place}. ${next}${others}`;
}

const placeText = ({ offset, strides }, index, place) =>
  `offset ${offset}${index.map((i, axis) => ` + ${i}×${strides[axis]}`).join("")} = place ${place}`;

// The operations that the lab suggests for a tensor, as code.
function suggestionsFor({ shape }) {
  const count = shape.length;
  const suggested = [
    ...(count > 1 ? [`.transpose(${count - 2}, ${count - 1})`] : []),
    ...(count > 2 ? [".transpose(0, 1)"] : []),
    ".view(-1)",
    ".reshape(-1)",
    ".contiguous()",
    ...(count > 0 && shape.at(-1) > 1 ? ["[..., ::2]"] : []),
    ".unsqueeze(0)",
  ];
  return [...new Set(suggested)];
}

function parseLimitedShape(text, limits) {
  const parsed = parseShape(text, { axes: limits.axes, size: limits.elements, least: 1 });
  const total = parsed.error ? 0 : product(parsed.value);
  if (total <= limits.elements) return parsed;
  return { error: `${total} elements are more than this lab draws (${limits.elements}).` };
}

// The shape and the chain of operations, and the tensor after each step.
function chainPanel(model, el) {
  const limits = model.get("limits");
  const pickShape = (shape) => commit(model, { shape, index: [] });
  const pickChain = (chain) => commit(model, { chain, index: [] });
  const hint = `Sizes, at most ${limits.elements} elements`;
  const sizes = field("Shape of x", hint, (text) => parseLimitedShape(text, limits), pickShape);
  const chain = field(
    "Operations on x",
    "Such as .permute(2, 0, 1)[0].flatten()",
    (text) => parseChain(text, limits),
    (steps) => pickChain(chainText(steps)),
  );
  set(chain.node, { class: "tl-field tl-wide" });
  const suggestions = choice("Add an operation", [], pickChain, CHIPS).node;
  const list = element("ol", { class: "tl-steps" });
  const errorText = element("p", { class: "tl-chain-error", role: "alert" });

  function drawSuggestions(tensor, steps) {
    const text = model.get("chain");
    const addButton = (code) => button(`+ ${code}`, () => pickChain(text + code), { class: "tl-code" });
    const undoButton = button("Undo last", () => pickChain(chainText(steps.slice(0, -1))), { disabled: !steps.length });
    // The buttons are replaced, so the keyboard focus is restored at the same position.
    const buttons = [...suggestionsFor(tensor).map(addButton), undoButton];
    const focusedIndex = [...suggestions.children].indexOf(el.getRootNode().activeElement);
    suggestions.replaceChildren(...buttons);
    if (focusedIndex >= 0) (buttons[focusedIndex] ?? undoButton).focus();
  }

  function stepItem(code, tensor, origin) {
    const { shape, strides, offset } = tensor;
    const facts = [
      `shape ${shapeText(shape)}`,
      `strides ${shapeText(strides)}`,
      ...(offset ? [`offset ${offset}`] : []),
    ];
    facts.push(isContiguous(tensor) ? "contiguous" : "not contiguous");
    return element(
      "li",
      {},
      element("code", { class: "tl-op" }, code),
      facts.map((fact) => element("span", {}, fact)),
      element("span", { class: "tl-note" }, origin),
    );
  }

  // Draws the steps, and returns the last tensor of the chain.
  function draw() {
    const shape = model.get("shape");
    sizes.show(shape.join(", "));
    chain.show(model.get("chain"));
    const steps = parseChain(model.get("chain"), limits).value ?? [];
    const { tensors, failedStep, reason } = runChain(shape, steps);
    drawSuggestions(tensors.at(-1), steps);
    const [first, ...others] = tensors;
    const total = product(shape);
    list.replaceChildren(
      stepItem(`arange(${total}).view(${shape.length ? shape.join(", ") : "()"})`, first, `a storage of ${total}`),
      ...others.map((tensor, i) =>
        stepItem(steps[i].text, tensor, tensor.copied ? "a new storage: copied" : "the same storage"),
      ),
    );
    if (reason) {
      list.append(
        element(
          "li",
          { class: "tl-failed" },
          element("code", { class: "tl-op" }, steps[failedStep].text),
          "raises an error",
        ),
      );
    }
    setText(errorText, reason ?? "");
    return tensors.at(-1);
  }
  const [shapeNode, chainNode] = [group("shape", sizes.node), group("chain", chain.node)];
  const nodes = [
    element("div", { class: "tl-row" }, shapeNode, chainNode),
    group("chain", suggestions),
    list,
    errorText,
  ];
  return { nodes, draw };
}

// The last tensor, and its storage.
function tensorPanel(model) {
  /** @type {Strided} */
  let tensor;
  let slots = [];
  const grid = tensorGrid("The tensor. Arrow keys move through it; Page Up and Page Down change the block.", (index) =>
    commit(model, { index }),
  );
  const pick = (flat) => commit(model, { index: unravel(flat, tensor.shape) });
  const parse = (text) => {
    const { value, ...parsed } = parseNumber(text, "The number", [1, Math.max(product(tensor.shape), 1)]);
    return parsed.error ? parsed : { value: value - 1, ...parsed };
  };
  const elementSlider = sliderWithInput(
    "Walk through the tensor in reading order",
    { ends: [0, 63], write: (x) => `${x + 1}`, parse },
    pick,
  );
  const strip = element("div", { class: "tl-strip tl-storage", role: "img" });
  const formula = element("p", { class: "tl-formula" });
  const label = (text) => element("p", { class: "tl-label" }, text);
  const nodes = [
    label("The tensor by its indices: point at an element, or click an element"),
    grid.node,
    group("walk", label("Walk through the elements in reading order, by their numbers"), elementSlider.node),
    label("Its storage, with place numbers (outlined: the chosen element’s row)"),
    strip,
    reservedBox(formula),
  ];

  function draw(newTensor) {
    tensor = newTensor;
    const { shape, storage } = tensor;
    const total = product(model.get("shape"));
    const cells = () => grid.node.querySelectorAll(".tl-cell");
    const before = [positionsOf(grid.node, cells()), positionsOf(strip, slots)];
    grid.draw(shape, (index) => {
      const number = storage[placeOf(tensor, index)];
      return { text: number, hue: hueOf(number, total) };
    });
    const disabled = product(shape) < 2;
    set(elementSlider.input, { max: Math.max(product(shape) - 1, 0), disabled });
    set(elementSlider.typed, { disabled });
    slots = storage.map((number, place) =>
      element("span", { class: "tl-cell", style: `--hue: ${hueOf(number, total)}`, "data-place": place }, number),
    );
    strip.replaceChildren(...slots);
    set(strip, { "aria-label": `Storage of ${storage.length} elements: ${storage.join(", ")}` });
    animateFrom(before[0], grid.node, cells());
    animateFrom(before[1], strip, slots);
  }

  // Marks and describes the chosen element.
  function showChosen(status) {
    const { shape, storage } = tensor;
    const count = product(shape);
    if (!count) {
      setText(formula, "");
      setText(status, `Shape ${shapeText(shape)}: no elements. A tensor with an axis of size 0 is empty.`);
      for (const slot of slots) slot.classList.remove("tl-chosen", "tl-outlined");
      return;
    }
    const requested = model.get("index");
    const fits =
      requested.length === shape.length &&
      requested.every((i, axis) => Number.isInteger(i) && i >= 0 && i < shape[axis]);
    const index = fits ? requested : shape.map(() => 0);
    const place = placeOf(tensor, index);
    const flat = ravel(index, shape);
    const places = storagePlaces(tensor);
    elementSlider.show(flat);
    set(elementSlider.input, { "aria-valuetext": `element ${flat + 1} of ${count}, storage place ${place}` });
    grid.mark(index, { "tl-outlined": places.flatMap((other, i) => (other === place && i !== flat ? [i] : [])) });
    const row = shape.length ? places.slice(flat - index.at(-1), flat - index.at(-1) + shape.at(-1)) : places;
    for (const [i, slot] of slots.entries()) {
      slot.classList.toggle("tl-chosen", i === place);
      slot.classList.toggle("tl-outlined", row.includes(i));
      slot.classList.toggle("tl-unread", !places.includes(i));
    }
    const gap = flat + 1 < count ? places[flat + 1] - place : null;
    const shared = places.filter((other) => other === place).length;
    setText(formula, placeText(tensor, index, place));
    setText(status, elementText(index, storage[place], place, gap, shared));
    const last = shape.map((size) => size - 1);
    const largest = storage.length;
    reserveSpace(formula, placeText(tensor, last, largest));
    reserveSpace(status, elementText(last, largest, largest, largest, count - new Set(places).size));
  }
  return { nodes, draw, showChosen };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const limits = model.get("limits");
  const isIndex = (sizes) => sizes.length <= limits.axes && sizes.every((x) => x >= 0 && Number.isInteger(x));
  const urlState = traitsInUrl("strides", {
    shape: textCodec(
      (text) => parseLimitedShape(text, limits),
      (shape) => shape.join(","),
    ),
    chain: textCodec((text) => (parseChain(text, limits).error ? parseChain(text, limits) : { value: text })),
    index: numbersCodec(isIndex, "an element of the tensor"),
  });
  const chain = chainPanel(model, el);
  const tensor = tensorPanel(model);
  const { status } = frame({ model, el }, "strides", "One storage, many tensors", urlState, chain.nodes, tensor.nodes);
  let drawnKey = null;
  return observe(model, urlState.names, () => {
    const key = `${model.get("shape")}|${model.get("chain")}`;
    if (key !== drawnKey) tensor.draw(chain.draw());
    drawnKey = key;
    tensor.showChosen(status);
  });
}

export default { render };
