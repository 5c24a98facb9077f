// What every lab draws with. A lab is a tree of plain elements, made once and then changed in place.

import { handOn } from "./address.js";
import { clamp, product, ravel, unravel } from "./maths.js";
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
    if (first.data !== text) first.data = text;
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
export const byWidth = (node, texts) =>
  texts
    .map((text) => [ems(node, text), text])
    .sort(([a], [b]) => b - a)
    .map(([, text]) => text);
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

// What each lab was when its first view was drawn: there Reset leads.
const beginnings = new WeakMap();

// The frame of a lab: its title, a body, one sentence that says in words what is shown, and last a way to hand the
// state on and one back to the beginning. `traits` are what the reader sets: their names, or how the address holds
// them.
/**
 * @type {(view: View, name: string, title: string, traits: string[] | import("./address.js").Kept, ...body: any[]) =>
 *   Record<"lab" | "status", HTMLElement>}
 */
export function frame({ model, el }, name, title, traits, ...body) {
  const kept = Array.isArray(traits) ? { names: traits } : traits;
  const again = beginnings.has(model);
  if (!again) beginnings.set(model, traitsOf(model, kept.names));
  const first = beginnings.get(model);
  const status = element("p", { role: "status", "aria-live": "polite" });
  const putBack = () => {
    commit(model, first);
    for (const input of lab.querySelectorAll(".tl-input")) input.dispatchEvent(new Event("tl-reset"));
  };
  const { complaint, nodes } = handOn(model, el, kept, { first, again });
  const lab = element(
    "div",
    { class: `tl-lab tl-${name}`, role: "group", "aria-label": `Lab: ${title}` },
    element("p", { class: "tl-title" }, title),
    complaint,
    ...body,
    room(status, "tl-status"),
    element("div", { class: "tl-foot" }, nodes, button("Reset", putBack, { class: "tl-reset" })),
  );
  const controls = model.get("controls");
  for (const node of controls ? lab.querySelectorAll("[data-group]") : []) {
    if (!controls.includes(node.dataset.group)) node.remove();
  }
  el.append(lab);
  return { lab, status };
}

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

// A tensor as a picture: the last two axes are a block of cells, the axes before them tell the blocks apart.
// `cell(index, flat)` gives {text, hue, ghost}. One element can be chosen: by pointing, touch, or the arrow keys.
// `names.block(index)` and `names.row(index)` name blocks and rows; blocks bear their index where nothing is given.
// `mark(index, marks)` marks the chosen cell, and gives each class in `marks` to the cells of these flat numbers.
/** @typedef {{ text: string | number, hue?: number | null, ghost?: boolean }} Cell */
/**
 * @typedef {object} Grid
 * @property {HTMLElement} node
 * @property {(
 *   shape: number[], cell: (index: number[], flat: number) => Cell,
 *   names?: { block?: (index: number[]) => string, row?: (index: number[]) => string },
 * ) => void} draw
 * @property {(index: number[] | null, marks?: Record<string, number[]>) => void} mark
 */
/** @type {(label: string, choose: (index: number[]) => void) => Grid} */
export function tensorGrid(label, choose) {
  const node = element("div", {
    class: "tl-grid",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "tensor",
    "aria-label": label,
  });
  let shape = [];
  let cells = [];
  let chosen = null;
  const pointed = (event) => {
    const cell = document.elementFromPoint(event.clientX, event.clientY)?.closest(".tl-cell");
    if (cell && node.contains(cell)) choose(unravel(+cell.dataset.flat, shape));
  };
  node.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" || event.buttons) pointed(event);
  });
  node.addEventListener("pointerdown", pointed);
  node.addEventListener("keydown", (event) => {
    const moves = {
      ArrowRight: [1, 1],
      ArrowLeft: [1, -1],
      ArrowDown: [2, 1],
      ArrowUp: [2, -1],
      PageDown: [3, 1],
      PageUp: [3, -1],
    };
    const move = moves[event.key];
    if (!move || !cells.length) return;
    const index = [...(chosen ?? shape.map(() => 0))];
    const axis = shape.length - Math.min(move[0], Math.max(shape.length, 1));
    // Past the end of the last axis the next row begins: the keys can reach every element.
    if (move[0] === 1) {
      choose(unravel(clamp(ravel(index, shape) + move[1], 0, cells.length - 1), shape));
    } else if (shape.length >= move[0]) {
      index[axis] = clamp(index[axis] + move[1], 0, shape[axis] - 1);
      choose(index);
    }
    event.preventDefault();
  });
  const draw = (newShape, cell, names = {}) => {
    shape = newShape;
    cells = [];
    const columns = shape.at(-1) ?? 1;
    const rows = shape.at(-2) ?? 1;
    const blocks = product(shape.slice(0, -2));
    const nameOf = names.block ?? ((index) => `[${index.join(", ")}]`);
    const drawn = [];
    let longest = 1;
    for (let block = 0; block < blocks; block++) {
      const body = element("div", {
        class: `${shape.length > 1 ? "tl-block" : "tl-strip"}${names.row ? " tl-named" : ""}`,
        style: `--columns: ${Math.max(columns, 1)}`,
      });
      for (let i = 0; i < rows * columns; i++) {
        const flat = block * rows * columns + i;
        const index = unravel(flat, shape);
        const { text, hue, ghost } = cell(index, flat);
        if (names.row && i % columns === 0) body.append(element("span", { class: "tl-row-name" }, names.row(index)));
        const style = hue == null ? null : `--hue: ${hue}`;
        const node = element("span", { class: `tl-cell${ghost ? " tl-ghost" : ""}`, "data-flat": flat, style }, text);
        longest = Math.max(longest, String(text).length);
        cells.push(node);
        body.append(node);
      }
      const index = unravel(block, shape.slice(0, -2));
      const name = shape.length > 2 ? element("span", { class: "tl-block-name" }, nameOf(index)) : [];
      drawn.push(element("div", {}, name, body));
    }
    node.style.setProperty("--longest", longest);
    node.replaceChildren(
      ...(cells.length ? drawn : [element("span", { class: "tl-note" }, "no elements: an axis has size 0")]),
    );
  };
  // A wide tensor scrolls sideways in its own place, and the page stays where it is.
  const reveal = (cell) => {
    const [box, at] = [node.getBoundingClientRect(), cell.getBoundingClientRect()];
    node.scrollLeft += Math.min(at.left - box.left - 4, 0) + Math.max(at.right - box.right + 4, 0);
  };
  const mark = (index, marks = {}) => {
    chosen = index;
    const all = { "tl-chosen": index && cells.length ? [ravel(index, shape)] : [], ...marks };
    for (const [name, numbers] of Object.entries(all)) {
      const wanted = new Set(numbers);
      for (const [i, cell] of cells.entries()) cell.classList.toggle(name, wanted.has(i));
    }
    if (shape.at(-1) > 6 && index && cells.length) reveal(cells[ravel(index, shape)]);
  };
  return { node, draw, mark };
}

// The place of element i of n on a sweep of colours from blue to orange.
/** @type {(i: number, n: number) => number} */
export const hueOf = (i, n) => Math.round(255 - 215 * (n > 1 ? i / (n - 1) : 0));

// The course's two colour maps, as in its figures. On a light page weights go from white (0) to dark blue (1), and
// other numbers are white at zero, blue below and red above; on a dark one the ground is dark, and what is far is
// bright.
/** @typedef {number[][]} Colours Colours in even steps, as red, green and blue. */
/** @typedef {{ light: Colours, dark: Colours }} ColourMap */
/** @type {(text: string) => Colours} */
const colours = (text) => text.split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
export const BLUES = {
  light: colours("f7fbff deebf7 c6dbef 9dcae1 6aaed6 4191c6 2070b4 08509b 08306b"),
  dark: colours("1c2128 182c42 15395c 164a7a 22609b 3d7cb8 6a9fd3 a3c8ea e4f1fd"),
};
export const SIGNED = {
  light: colours("053061 2065ab 4393c3 90c4dd d1e5f0 f7f6f6 fddbc7 f3a481 d6604d b1182b 67001f"),
  dark: colours("d6ebff 9bcaf2 5c9fd6 2f6ea6 1d4265 1f2329 572823 96392f cf5f4b f19a80 ffdccd"),
};

// The colour at place t, 0 to 1.
/** @type {(map: Colours, t: number) => number[]} */
function tint(map, t) {
  const place = clamp(t, 0, 1) * (map.length - 1);
  const below = Math.min(Math.floor(place), map.length - 2);
  return map[below].map((c, i) => Math.round(c * (1 - place + below) + map[below + 1][i] * (place - below)));
}
// Black or white: what is read on a colour.
function inkOn(rgb) {
  const linear = rgb.map((c) => ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.18 ? "#000" : "#fff";
}
// The colours of a cell at place t, 0 to 1, of a map, in both themes: the cell's own, and that of the text on it.
/** @type {(map: ColourMap, t: number) => { background: string, color: string }} */
export function shade({ light, dark }, t) {
  const both = [tint(light, t), tint(dark, t)];
  const [day, night] = both.map((rgb) => `rgb(${rgb.join(" ")})`);
  const inks = both.map(inkOn);
  return { background: `light-dark(${day}, ${night})`, color: `light-dark(${inks.join(", ")})` };
}
// The same for a number from −most to most.
/** @type {(x: number, most: number) => { background: string, color: string }} */
export const shadeOf = (x, most) => shade(SIGNED, 0.5 + (0.46 * clamp(x, -most, most)) / (most || 1));

// 256 steps of a map in each theme, as the four bytes of a pixel.
/** @type {(map: ColourMap) => Record<string, number[]>} */
export function pixelsOf({ light, dark }) {
  const pixel = (map, level) => new Uint32Array(Uint8Array.of(...tint(map, level / 255), 255).buffer)[0];
  const steps = (map) => Array.from({ length: 256 }, (_, level) => pixel(map, level));
  return { light: steps(light), dark: steps(dark) };
}

// Calls `draw` when the page, or the system, has changed its theme: for what is painted and follows no style sheet.
/** @type {(lab: Element, draw: () => void) => () => void} */
export function followTheme(lab, draw) {
  const now = () => getComputedStyle(lab).colorScheme;
  let was = now();
  const look = () => {
    if (now() !== was) draw();
    was = now();
  };
  const page = new MutationObserver(look);
  for (const node of [document.documentElement, document.body]) page.observe(node, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  return () => {
    page.disconnect();
    system.removeEventListener("change", look);
  };
}
