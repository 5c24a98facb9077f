// What every lab draws with. A lab is a tree of plain elements, made once and then changed in place.

import { grouped, parseNumber } from "./words.js";

/**
 * The state of a lab, as ipywidgets and mount.js hand it over: named values, and those who listen to them.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(event: string, listener: () => void) => void} [on]
 * @property {(event: string, listener: () => void) => void} [off]
 * @property {() => void} save_changes
 */
/** @typedef {{ model: Model, el: HTMLElement }} View */
/** @typedef {Record<string, any>} Props Attributes of an element, and listeners: their names begin with “on”. */

// element("button", { class: "x", onclick: f, disabled: true }, "text", child).
/** @type {(tag: string, props?: Props, ...children: any[]) => any} */
export function element(tag, props = {}, ...children) {
  const svg = ["svg", "g", "line", "circle", "rect", "path", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  set(node, props);
  node.append(...children.flat(Infinity));
  return node;
}

// Sets attributes, and listeners where the name begins with "on". false and null take an attribute away.
/** @type {<T extends Element>(node: T, props: Props) => T} */
export function set(node, props) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === false || value == null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

// Writes only what changed, so that a screen reader hears a sentence once. A text that is there is written over: a
// browser styles a new one.
/** @type {(node: Node, text: string) => void} */
export function setText(node, text) {
  const [first] = node.childNodes;
  if (text && first?.nodeType === 3 && !first.nextSibling) {
    if (first.nodeValue !== text) first.nodeValue = text;
  } else if (node.textContent !== text) node.textContent = text;
}

// A place for a text that changes: below it nothing moves while a reader plays. The longest that `node` can say are
// handed to `reserve`, and stand in its place, unseen. In any letters and at any width a text takes no more lines than
// one that has as many words, each at least as wide; digits are all of one width.
/** @type {(node: Element, kind?: string) => HTMLElement} */
export const room = (node, kind = "") => element("div", { class: `tl-room ${kind}` }, node);
/** @type {(node: Element, ...longest: (string | any[])[]) => void} */
export function reserve(node, ...longest) {
  const [, ...unseen] = node.parentNode.children;
  const copy = (text) => element("span", { class: node.className || null, "aria-hidden": "true" }, [text].flat());
  const wanted = longest.map(copy);
  const same = (other, i) => other.textContent === unseen[i].textContent;
  if (unseen.length === wanted.length && wanted.every(same)) return;
  for (const other of unseen) other.remove();
  node.after(...wanted);
}

// How wide a text is in the letters of `node`, as a multiple of their size; also where the node is not on show.
let canvas;
/** @type {(node: Element, text: string, weight?: number) => number} */
export function ems(node, text, weight = 400) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = `${weight} 100px ${getComputedStyle(node).fontFamily || "sans-serif"}`;
  return canvas.measureText(text).width / 100;
}
/** @type {(node: Element, texts: string[]) => string[]} */
export function byWidth(node, texts) {
  const widths = new Map(texts.map((text) => [text, ems(node, text)]));
  return [...texts].sort((a, b) => widths.get(b) - widths.get(a));
}
/** @type {(node: Element, texts: string[]) => string} */
export const widest = (node, texts) => byWidth(node, texts)[0];

// A button, and a slider that hands on its number.
/** @type {(text: string, onclick: () => void, props?: Props) => HTMLButtonElement} */
export const button = (text, onclick, props = {}) => element("button", { type: "button", onclick, ...props }, text);
/** @type {(label: string, least: number, most: number, pick: (value: number) => void, props?: Props) => any} */
export function slider(label, least, most, pick, props = {}) {
  const oninput = () => pick(+node.value);
  const node = element("input", {
    type: "range",
    min: least,
    max: most,
    step: 1,
    "aria-label": label,
    oninput,
    ...props,
  });
  return node;
}

// Controls that a lab may leave out: all, or those groups that its trait `controls` names.
/** @type {(name: string, ...nodes: any[]) => HTMLElement[]} */
export const group = (name, ...nodes) => nodes.flat().map((node) => set(node, { "data-group": name }));

// The values of these traits, by name.
/** @type {(model: Model, traits: string[]) => any} */
export const traitsOf = (model, traits) => Object.fromEntries(traits.map((name) => [name, model.get(name)]));

// Sets traits and hands them on, to Python where there is one.
/** @type {(model: Model, traits: Record<string, any>) => void} */
export function commit(model, traits) {
  for (const [name, value] of Object.entries(traits)) model.set(name, value);
  model.save_changes();
}

// Calls `draw` once now, and again once for each batch of changes. Returns what takes the listeners away again.
/** @type {(model: Model, traits: string[], draw: () => void) => () => void} */
export function follow(model, traits, draw) {
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      draw();
    });
  };
  for (const name of traits) model.on(`change:${name}`, later);
  draw();
  return () => {
    for (const name of traits) model.off(`change:${name}`, later);
  };
}

let fields = 0;

// A text field, and the place where it says what is wrong; what is on show stays then.
/** @typedef {{ input: HTMLInputElement, error: HTMLElement, show: (text: string) => void }} Typed */
/**
 * @type {(
 *   parse: (text: string) => import("./words.js").Parsed<any>, accept: (value: any) => void, props?: Props,
 * ) => Typed}
 */
export function typed(parse, accept, props = {}) {
  const id = `tl-field-${Date.now().toString(36)}-${fields++}`;
  const error = element("span", { class: "tl-error", id: `${id}-error`, role: "alert" });
  const input = element("input", {
    id,
    class: "tl-input",
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-describedby": `${id}-error`,
    ...props,
  });
  let shown = "";
  input.addEventListener("tl-reset", () => {
    input.value = shown;
    complain();
  });
  input.addEventListener("input", () => {
    const result = parse(input.value);
    complain(result.error);
    if (!result.error) accept(result.value);
  });
  const complain = (reason) => {
    setText(error, reason ?? "");
    set(input, { "aria-invalid": reason ? "true" : false });
  };
  // Shows a value that came from elsewhere, and leaves a reader alone who is typing the same thing in another way.
  const show = (text) => {
    shown = text;
    const result = parse(input.value);
    if (result.error || result.text !== text) {
      input.value = text;
      complain(parse(text).error);
    }
  };
  return { input, error, show };
}

// A labelled text field, and below it what it takes; an error stands in the hint's place.
/**
 * @type {(
 *   label: string, hint: string, parse: (text: string) => import("./words.js").Parsed<any>,
 *   accept: (value: any) => void, props?: Props,
 * ) => { node: HTMLElement, label: HTMLElement, show: (text: string) => void }}
 */
export function field(label, hint, parse, accept, props = {}) {
  const { input, error, show } = typed(parse, accept, props);
  const note = element("span", { class: "tl-note", id: `${input.id}-hint` }, hint);
  set(input, { "aria-describedby": `${error.id} ${note.id}` });
  const name = element("label", { for: input.id }, label);
  return { node: element("div", { class: "tl-field" }, name, input, error, note), label: name, show };
}

// A slider, and beside it a field for the same number; `head` stands above them, `marks` on the slider's rail.
/**
 * What a dial goes through. The slider has places of its own where `placeOf` and `valueAt` are given: by even factors,
 * or among numbers that fit. The field takes what `parse` takes, any number in between otherwise.
 * @typedef {object} Dial
 * @property {[number, number]} ends
 * @property {any} [head]
 * @property {any} [marks]
 * @property {number} [step]
 * @property {boolean} [whole] whether the number is a whole one
 * @property {(value: number) => string} [write]
 * @property {(text: string) => import("./words.js").Parsed<number>} [parse]
 * @property {(value: number) => number} [placeOf]
 * @property {(place: number) => number} [valueAt]
 * @property {Props} [props] of the slider
 */
/**
 * @type {(label: string, dial: Dial, pick: (value: number) => void) =>
 *   { node: HTMLElement, input: HTMLInputElement, typed: HTMLInputElement, show: (value: number) => void }}
 */
export function dial(label, { ends, head = [], marks = [], props, step = 1, ...rest }, pick) {
  const { whole = true, write = grouped, placeOf = (x) => x, valueAt = (x) => x } = rest;
  const { parse = (text) => parseNumber(text, label, ends, { whole, write }) } = rest;
  const [least, most] = ends.map(placeOf);
  const input = slider(label, least, most, (place) => pick(valueAt(place)), { step, ...props });
  const widest = Math.max(...ends.map((end) => write(end).length), 4);
  const inputmode = whole && ends[0] >= 0 ? "numeric" : null;
  const number = typed(parse, pick, { "aria-label": `${label}, typed`, style: `--letters: ${widest}`, inputmode });
  const rail = element("div", { class: "tl-rail" }, input, marks);
  const node = element("div", { class: "tl-dial" }, head, rail, number.input, number.error);
  const show = (value) => {
    input.value = placeOf(value);
    number.show(write(value));
  };
  return { node, input, typed: number.input, show };
}

// A group of buttons of which one is pressed: options are [value, label] pairs.
/**
 * @type {(label: string, options: any[][], pick: (value: any) => void) =>
 *   { node: HTMLElement, buttons: HTMLButtonElement[], show: (value: any) => void }}
 */
export function choice(label, options, pick) {
  const buttons = options.map(([value, text]) => button(text, () => pick(value), { "aria-pressed": "false" }));
  const node = element("div", { class: "tl-choice", role: "group", "aria-label": label }, buttons);
  const show = (value) => {
    for (const [i, each] of buttons.entries()) set(each, { "aria-pressed": String(options[i][0] === value) });
  };
  return { node, buttons, show };
}

// A group of which one is chosen: a single stop for Tab, and the arrow keys inside.
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
