// Elements and controls that all labs share. A lab's elements are created once, and then updated in place.

import { grouped, parseNumber } from "./words.js";

/**
 * The model of a lab's widget, as ipywidgets and mount.js pass it: traits by name, and listeners for their changes.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(event: string, listener: () => void) => void} [on]
 * @property {(event: string, listener: () => void) => void} [off]
 * @property {() => void} save_changes
 * @property {(source: { file: string }) => Promise<any>} [load] only in a page: loads a value that the page stores in a
 * file
 */
/** @typedef {{ model: Model, el: HTMLElement }} View */
/** @typedef {Record<string, any>} Props An element's attributes, and its listeners, whose names begin with “on”. */

// Creates an element: element("button", { class: "x", onclick: f, disabled: true }, "text", child).
/** @type {(tag: string, props?: Props, ...children: any[]) => any} */
export function element(tag, props = {}, ...children) {
  const svg = ["svg", "g", "line", "circle", "rect", "path", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  set(node, props);
  node.append(...children.flat(Infinity));
  return node;
}

// Sets attributes, and adds listeners for names that begin with "on". false and null remove an attribute.
/** @type {<T extends Element>(node: T, props: Props) => T} */
export function set(node, props) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === false || value == null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

// Sets the text only if it has changed, so that a screen reader announces the text once. The text node is reused, since
// a new node would be styled again.
/** @type {(node: Node, text: string) => void} */
export function setText(node, text) {
  const [first] = node.childNodes;
  if (text && first?.nodeType === 3 && !first.nextSibling) {
    if (first.nodeValue !== text) first.nodeValue = text;
  } else if (node.textContent !== text) node.textContent = text;
}

// Splits a text into parts, so that the words query, key and value have their colours, as in the book's prose.
/** @type {(text: string) => any[]} */
export const withRoles = (text) =>
  text
    .split(/\b(quer(?:y|ies)|keys?|values?)\b/i)
    .map((part, i) => (i % 2 ? element("span", { "data-role": part[0].toLowerCase() }, part) : part));

// A box of constant height for a text that changes, so that nothing below the box moves. `reserveSpace` puts hidden
// copies of the longest texts of `node` into the box. In any font and at any width, a copy needs at least as many lines
// as a text with the same number of words, if each word of the copy is at least as wide as the word of the text; all
// digits have the same width.
/** @type {(node: Element, name?: string) => HTMLElement} */
export const reservedBox = (node, name = "") => element("div", { class: `tl-reserved ${name}` }, node);
/** @type {(node: Element, ...longest: (string | any[])[]) => void} */
export function reserveSpace(node, ...longest) {
  const [, ...copies] = node.parentNode.children;
  const copy = (text) => element("span", { class: node.className || null, "aria-hidden": "true" }, [text].flat());
  const newCopies = longest.map(copy);
  const isSame = (copy, i) => copy.textContent === copies[i].textContent;
  if (copies.length === newCopies.length && newCopies.every(isSame)) return;
  for (const old of copies) old.remove();
  node.after(...newCopies);
}

// The width of a text in the font of `node`, in ems. This works even while the node is hidden.
let canvas;
/** @type {(node: Element, text: string, weight?: number) => number} */
export function widthInEms(node, text, weight = 400) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = `${weight} 100px ${getComputedStyle(node).fontFamily || "sans-serif"}`;
  return canvas.measureText(text).width / 100;
}
/** @type {(node: Element, texts: string[]) => string[]} */
export function sortedByWidth(node, texts) {
  const widths = new Map(texts.map((text) => [text, widthInEms(node, text)]));
  return [...texts].sort((a, b) => widths.get(b) - widths.get(a));
}
/** @type {(node: Element, texts: string[]) => string} */
export const widest = (node, texts) => sortedByWidth(node, texts)[0];

/** @type {(text: string, onclick: () => void, props?: Props) => HTMLButtonElement} */
export const button = (text, onclick, props = {}) => element("button", { type: "button", onclick, ...props }, text);

// A slider that calls `pick` with its value.
/** @type {(label: string, min: number, max: number, pick: (value: number) => void, props?: Props) => any} */
export function slider(label, min, max, pick, props = {}) {
  const oninput = () => pick(+node.value);
  const node = element("input", {
    type: "range",
    min,
    max,
    step: 1,
    "aria-label": label,
    oninput,
    ...props,
  });
  return node;
}

// Assigns controls to a named group. A lab shows the groups that its trait `controls` lists.
/** @type {(name: string, ...nodes: any[]) => HTMLElement[]} */
export const group = (name, ...nodes) => nodes.flat().map((node) => set(node, { "data-group": name }));

// Returns the values of these traits, by name.
/** @type {(model: Model, traits: string[]) => any} */
export const getTraits = (model, traits) => Object.fromEntries(traits.map((name) => [name, model.get(name)]));

// Sets traits and synchronizes them with the kernel, if there is one.
/** @type {(model: Model, traits: Record<string, any>) => void} */
export function commit(model, traits) {
  for (const [name, value] of Object.entries(traits)) model.set(name, value);
  model.save_changes();
}

// Calls `draw` now, and once after each batch of changes to the traits. Returns a function that removes the listeners.
/** @type {(model: Model, traits: string[], draw: () => void) => () => void} */
export function observe(model, traits, draw) {
  let scheduled = false;
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    queueMicrotask(() => {
      scheduled = false;
      draw();
    });
  };
  for (const name of traits) model.on(`change:${name}`, schedule);
  draw();
  return () => {
    for (const name of traits) model.off(`change:${name}`, schedule);
  };
}

let fieldCount = 0;

// A text field with its error message. Invalid input does not change the lab's state.
/** @typedef {{ input: HTMLInputElement, error: HTMLElement, show: (text: string) => void }} ParsedInput */
/**
 * @type {(
 *   parse: (text: string) => import("./words.js").Parsed<any>, accept: (value: any) => void, props?: Props,
 *   tag?: string) => ParsedInput}
 */
export function parsedInput(parse, accept, props = {}, tag = "input") {
  const id = `tl-field-${Date.now().toString(36)}-${fieldCount++}`;
  const error = element("span", { class: "tl-error", id: `${id}-error`, role: "alert" });
  const input = element(tag, {
    id,
    class: "tl-input",
    type: tag === "input" ? "text" : null,
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-describedby": `${id}-error`,
    ...props,
  });
  const setError = (message = "") => {
    setText(error, message);
    set(input, { "aria-invalid": message ? "true" : false });
  };
  let lastShown = "";
  input.addEventListener("tl-reset", () => {
    input.value = lastShown;
    setError();
  });
  input.addEventListener("input", () => {
    const result = parse(input.value);
    setError(result.error);
    if (!result.error) accept(result.value);
  });
  // Shows a value that was set elsewhere, unless the reader is typing the same value in a different notation.
  const show = (text) => {
    lastShown = text;
    const result = parse(input.value);
    if (result.error || result.text !== text) {
      input.value = text;
      setError(parse(text).error);
    }
  };
  return { input, error, show };
}

// A labelled text field with a hint below it; an error replaces the hint.
/**
 * @type {(
 *   label: string, hint: string, parse: (text: string) => import("./words.js").Parsed<any>,
 *   accept: (value: any) => void, props?: Props,
 * ) => { node: HTMLElement, label: HTMLElement, show: (text: string) => void }}
 */
export function field(label, hint, parse, accept, props = {}) {
  const { input, error, show } = parsedInput(parse, accept, props);
  const note = element("span", { class: "tl-note", id: `${input.id}-hint` }, hint);
  set(input, { "aria-describedby": `${error.id} ${note.id}` });
  const name = element("label", { for: input.id }, label);
  return { node: element("div", { class: "tl-field" }, name, input, error, note), label: name, show };
}

// A slider with a text field for the same number. `head` is shown above slider and field, `marks` along the slider.
/**
 * `ends` are the smallest and the largest value. `positionOf` and `valueAt` map values to slider positions and back,
 * for a logarithmic scale or a list of values. `parse` determines which texts the field accepts; by default, any number
 * in the range.
 * @typedef {object} SliderOptions
 * @property {[number, number]} ends
 * @property {any} [head]
 * @property {any} [marks]
 * @property {number} [step]
 * @property {boolean} [whole] whether the number must be an integer
 * @property {(value: number) => string} [write]
 * @property {(text: string) => import("./words.js").Parsed<number>} [parse]
 * @property {(value: number) => number} [positionOf]
 * @property {(position: number) => number} [valueAt]
 * @property {Props} [props] the slider's attributes
 */
/**
 * @type {(label: string, options: SliderOptions, pick: (value: number) => void) =>
 *   { node: HTMLElement, input: HTMLInputElement, typed: HTMLInputElement, show: (value: number) => void }}
 */
export function sliderWithInput(label, { ends, head = [], marks = [], props, step = 1, ...rest }, pick) {
  const { whole = true, write = grouped, positionOf = (x) => x, valueAt = (x) => x } = rest;
  const { parse = (text) => parseNumber(text, label, ends, { whole, write }) } = rest;
  const [min, max] = ends.map(positionOf);
  const input = slider(label, min, max, (x) => pick(valueAt(x)), { step, ...props });
  const chars = Math.max(...ends.map((end) => write(end).length), 4);
  const inputmode = whole && ends[0] >= 0 ? "numeric" : null;
  const number = parsedInput(parse, pick, {
    "aria-label": `${label}, typed`,
    style: `--chars: ${chars}`,
    inputmode,
  });
  const track = element("div", { class: "tl-track" }, input, marks);
  const node = element("div", { class: "tl-slider" }, head, track, number.input, number.error);
  const show = (value) => {
    input.value = positionOf(value);
    number.show(write(value));
  };
  return { node, input, typed: number.input, show };
}

// Buttons for several options, of which one is pressed; the options are [value, label] pairs. `look` is MODES for
// joined buttons, or CHIPS for separate buttons, such as examples to start from.
export const MODES = "tl-choice tl-modes";
export const CHIPS = "tl-choice tl-chips";
/**
 * @type {(label: string, options: any[][], pick: (value: any) => void, look?: string) =>
 *   { node: HTMLElement, buttons: HTMLButtonElement[], show: (value: any) => void }}
 */
export function choice(label, options, pick, look = MODES) {
  const buttons = options.map(([value, text]) => button(text, () => pick(value), { "aria-pressed": "false" }));
  const node = element("div", { class: look, role: "group", "aria-label": label }, buttons);
  const show = (value) => {
    for (const [i, node] of buttons.entries()) set(node, { "aria-pressed": String(options[i][0] === value) });
  };
  return { node, buttons, show };
}

// A switch for a setting that is on or off.
/** @type {(text: string, flip: () => void) => { node: HTMLButtonElement, show: (on: boolean) => void }} */
export function onOff(text, flip) {
  const node = button(text, flip, { class: "tl-on-off", "aria-pressed": "false" });
  return { node, show: (on) => set(node, { "aria-pressed": String(on) }) };
}

// The button for a lab's main action.
/** @type {(text: string, onclick: () => void) => HTMLButtonElement} */
export const action = (text, onclick) => button(text, onclick, { class: "tl-main" });

// A radio group: it has one Tab stop, and the arrow keys move inside the group.
/**
 * @type {(label: string, props: Props, nodes: HTMLElement[], pick: (i: number) => void) =>
 *   { node: HTMLElement, show: (i: number) => void }}
 */
export function radios(label, props, nodes, pick) {
  let chosen = null;
  const show = (i) => {
    if (i === chosen) return;
    if (chosen !== null) set(nodes[chosen], { "aria-checked": "false", tabindex: -1 });
    set(nodes[i], { "aria-checked": "true", tabindex: 0 });
    chosen = i;
  };
  for (const [i, node] of nodes.entries()) {
    set(node, { type: "button", role: "radio", "aria-checked": "false", tabindex: -1, onclick: () => pick(i) });
  }
  const node = element(
    "div",
    {
      role: "radiogroup",
      "aria-label": label,
      ...props,
      onkeydown: (event) => {
        const to = {
          ArrowRight: chosen + 1,
          ArrowDown: chosen + 1,
          ArrowLeft: chosen - 1,
          ArrowUp: chosen - 1,
          Home: 0,
          End: nodes.length - 1,
        }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = Math.min(Math.max(to, 0), nodes.length - 1);
        pick(next);
        nodes[next].focus();
      },
    },
    nodes,
  );
  return { node, show };
}
