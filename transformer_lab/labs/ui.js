// What every lab draws with. A lab is a tree of plain elements, made once and then changed in place.

// An element: h("button", { class: "x", onclick: f, disabled: true }, "text", child).
function h(tag, props = {}, ...children) {
  const svg = ["svg", "g", "line", "circle", "rect", "path", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  set(node, props);
  node.append(...children.flat());
  return node;
}

// Sets attributes, and listeners where the name begins with "on". false and null take an attribute away.
function set(node, props) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === false || value == null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

// Writes only what changed, so that a screen reader hears a sentence once. A text that is there is written over: a browser
// styles a new one.
function say(node, text) {
  const [first] = node.childNodes;
  if (text && first?.nodeType === 3 && !first.nextSibling) {
    if (first.data !== text) first.data = text;
  } else if (node.textContent !== text) node.textContent = text;
}

// A place for a text that changes: below it nothing moves while a reader plays. The longest that `node` can say are handed to
// `reserve`, and stand in its place, unseen. In any letters and at any width a text takes no more lines than one that has as many
// words, each at least as wide; digits are all of one width.
const room = (node, kind = "") => h("div", { class: `tl-room ${kind}` }, node);
function reserve(node, ...longest) {
  const [, ...unseen] = node.parentNode.children,
    wanted = longest.map((text) => h("span", { class: node.className || null, "aria-hidden": "true" }, [text].flat()));
  if (unseen.length === wanted.length && wanted.every((other, i) => other.textContent === unseen[i].textContent))
    return;
  unseen.forEach((other) => other.remove());
  node.after(...wanted);
}

// How wide a text is in the letters of `node`, as a multiple of their size; also where the node is not on show.
let canvas;
function ems(node, text, weight = 400) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = `${weight} 100px ${getComputedStyle(node).fontFamily || "sans-serif"}`;
  return canvas.measureText(text).width / 100;
}
const byWidth = (node, texts) =>
  texts
    .map((text) => [ems(node, text), text])
    .sort(([a], [b]) => b - a)
    .map(([, text]) => text);
const widest = (node, texts) => byWidth(node, texts)[0];

// The frame of a lab: its name, a reset button, a body, and one sentence that says in words what is shown.
// `reset` puts back the traits as they were when the lab was first drawn.
function frame({ model, el }, title, traits, ...body) {
  const first = Object.fromEntries(traits.map((name) => [name, model.get(name)]));
  const status = h("p", { role: "status", "aria-live": "polite" });
  const reset = h(
    "button",
    {
      type: "button",
      class: "tl-reset",
      onclick: () => {
        commit(model, first);
        for (const input of lab.querySelectorAll(".tl-input")) input.dispatchEvent(new Event("tl-reset"));
      },
    },
    "Reset",
  );
  const lab = h(
    "div",
    { class: "tl-lab", role: "group", "aria-label": `Lab: ${title}` },
    h("div", { class: "tl-head" }, h("span", { class: "tl-title" }, title), reset),
    ...body,
    room(status, "tl-status"),
  );
  el.append(lab);
  return { lab, status };
}

// Sets traits and hands them on, to Python where there is one.
function commit(model, traits) {
  for (const [name, value] of Object.entries(traits)) model.set(name, value);
  model.save_changes();
}

// Calls `draw` once now, and again once for each batch of changes. Returns what takes the listeners away again.
function follow(model, traits, draw) {
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
  return () => traits.forEach((name) => model.off(`change:${name}`, later));
}

let fields = 0;

// A labelled text field, and below it what it takes. `parse` returns {value} or {error}; an error stands in the hint's place,
// and what is on show stays.
function field(label, hint, parse, accept, props = {}) {
  const id = `tl-field-${Date.now().toString(36)}-${fields++}`;
  const error = h("span", { class: "tl-error", id: `${id}-error`, role: "alert" });
  const input = h("input", {
    id,
    class: "tl-input",
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-describedby": `${id}-error ${id}-hint`,
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
    say(error, reason ?? "");
    set(input, { "aria-invalid": reason ? "true" : false });
  };
  // Shows a value that came from elsewhere, and leaves a reader alone who is typing the same thing in another way.
  const show = (text) => {
    shown = text;
    const typed = parse(input.value);
    if (typed.error || typed.text !== text) {
      input.value = text;
      complain(parse(text).error);
    }
  };
  return {
    node: h(
      "div",
      { class: "tl-field" },
      h("label", { for: id }, label),
      input,
      error,
      h("span", { class: "tl-note", id: `${id}-hint` }, hint),
    ),
    input,
    show,
    complain,
  };
}

// "2, 3, 4" → [2, 3, 4]. Brackets may stand around it; nothing at all is the shape of a single number.
function parseShape(text, { most = 1e9, axes = 8, least = 0 } = {}) {
  const inner = text
    .trim()
    .replace(/^[([]/, "")
    .replace(/[)\]]$/, "")
    .replace(/,\s*$/, "")
    .trim();
  if (!inner) return { value: [], text: "" };
  const value = [];
  for (const part of inner.split(/\s*,\s*|\s+/)) {
    if (!/^\d+$/.test(part)) return { error: `A size is a whole number; “${part}” is not. Write a shape as 2, 3, 4.` };
    if (+part < least || +part > most)
      return { error: `A size here goes from ${least} to ${most.toLocaleString("en")}; ${part} does not fit.` };
    value.push(+part);
  }
  if (value.length > axes) return { error: `At most ${axes} axes here; this has ${value.length}.` };
  return { value, text: value.join(", ") };
}

const shapeText = (shape) => (shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`);

// A group of buttons of which one is pressed: options are [value, label] pairs.
function choice(label, options, pick) {
  const buttons = options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": "false", onclick: () => pick(value) }, text),
  );
  return {
    node: h("div", { class: "tl-choice", role: "group", "aria-label": label }, buttons),
    show: (value) => buttons.forEach((button, i) => set(button, { "aria-pressed": String(options[i][0] === value) })),
  };
}

// A tensor as a picture: the last two axes are a block of cells, the axes before them tell the blocks apart.
// `cell(index, flat)` gives {text, hue, ghost}. One element can be chosen: by pointing, touch, or the arrow keys.
// `names.block(index)` and `names.row(index)` name blocks and rows; blocks bear their index where nothing is given.
function tensorGrid(label, choose) {
  const node = h("div", {
    class: "tl-grid",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "tensor",
    "aria-label": label,
  });
  let shape = [],
    cells = [],
    chosen = null;
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
      const flat = Math.min(Math.max(ravel(index, shape) + move[1], 0), cells.length - 1);
      choose(unravel(flat, shape));
    } else if (shape.length >= move[0]) {
      index[axis] = Math.min(Math.max(index[axis] + move[1], 0), shape[axis] - 1);
      choose(index);
    }
    event.preventDefault();
  });
  const draw = (newShape, cell, names = {}) => {
    shape = newShape;
    cells = [];
    const columns = shape.at(-1) ?? 1,
      rows = shape.at(-2) ?? 1,
      blocks = product(shape.slice(0, -2));
    const drawn = [];
    let longest = 1;
    for (let block = 0; block < blocks; block++) {
      const body = h("div", {
        class: `${shape.length > 1 ? "tl-block" : "tl-strip"}${names.row ? " tl-named" : ""}`,
        style: `--columns: ${Math.max(columns, 1)}`,
      });
      for (let i = 0; i < rows * columns; i++) {
        const flat = block * rows * columns + i;
        const index = unravel(flat, shape);
        const { text, hue, ghost } = cell(index, flat);
        if (names.row && i % columns === 0) body.append(h("span", { class: "tl-row-name" }, names.row(index)));
        const node = h(
          "span",
          {
            class: `tl-cell${ghost ? " tl-ghost" : ""}`,
            "data-flat": flat,
            style: hue == null ? null : `--hue: ${hue}`,
          },
          text,
        );
        longest = Math.max(longest, String(text).length);
        cells.push(node);
        body.append(node);
      }
      const name =
        shape.length > 2
          ? h(
              "span",
              { class: "tl-block-name" },
              names.block?.(unravel(block, shape.slice(0, -2))) ?? `[${unravel(block, shape.slice(0, -2)).join(", ")}]`,
            )
          : [];
      drawn.push(h("div", {}, name, body));
    }
    node.style.setProperty("--longest", longest);
    node.replaceChildren(
      ...(cells.length ? drawn : [h("span", { class: "tl-note" }, "no elements: an axis has size 0")]),
    );
  };
  // A wide tensor scrolls sideways in its own place, and the page stays where it is.
  const reveal = (cell) => {
    const [box, at] = [node.getBoundingClientRect(), cell.getBoundingClientRect()];
    node.scrollLeft += Math.min(at.left - box.left - 4, 0) + Math.max(at.right - box.right + 4, 0);
  };
  // Marks cells: `marks` maps a class to the flat numbers that wear it.
  const mark = (index, marks = {}) => {
    chosen = index;
    const worn = { "tl-chosen": index && cells.length ? [ravel(index, shape)] : [], ...marks };
    for (const [name, numbers] of Object.entries(worn)) {
      const wanted = new Set(numbers);
      cells.forEach((cell, i) => cell.classList.toggle(name, wanted.has(i)));
    }
    if (shape.at(-1) > 6 && index && cells.length) reveal(cells[ravel(index, shape)]);
  };
  return { node, draw, mark };
}

// The place of element i of n on a sweep of colours from blue to orange.
const hueOf = (i, n) => Math.round(255 - 215 * (n > 1 ? i / (n - 1) : 0));

// The course's two colour maps, as in its figures. Weights go from white (0) to dark blue (1); other numbers are white at
// zero, blue below and red above.
const colours = (text) => text.split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const BLUES = colours("f7fbff deebf7 c6dbef 9dcae1 6aaed6 4191c6 2070b4 08509b 08306b");
const SIGNED = colours("053061 2065ab 4393c3 90c4dd d1e5f0 f7f6f6 fddbc7 f3a481 d6604d b1182b 67001f");

// The colours of a cell at place t, 0 to 1, of a map: the cell's own, and that of the text on it.
function shade(map, t) {
  const place = Math.min(Math.max(t, 0), 1) * (map.length - 1),
    below = Math.min(Math.floor(place), map.length - 2);
  const rgb = map[below].map((c, i) => Math.round(c * (1 - place + below) + map[below + 1][i] * (place - below)));
  const linear = rgb.map((c) => ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.18;
  return { background: `rgb(${rgb.join(" ")})`, color: light ? "#000" : "#fff" };
}
