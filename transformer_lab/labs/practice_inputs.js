// The inputs for answers: typed, painted, chosen or ordered. Each input passes its answer on as a text.

import { clamp, range } from "./maths.js";
import { makePaintable } from "./paint.js";
import { cellsIn, ERROR, parseOneNumber, parseNumbers } from "./practice_answers.js";
import { button, CHIPS, choice, element, parsedInput, set, setText } from "./ui.js";

/**
 * @typedef {object} Input
 * @property {HTMLElement} node
 * @property {(text: string) => void} show
 * @property {() => void} focus
 */
/**
 * The arguments of an input: the case, and callbacks for a changed answer and for its submission.
 * @typedef {{ form: import("./practice_answers.js").Form, problem: import("./practice_answers.js").Case,
 *   setAnswer: (text: string) => void, submit: () => void }} InputArgs
 */

const onEnter = (submit) => (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  submit();
};

/** @type {(args: InputArgs) => Input} */
function typedInput({ form, problem, setAnswer, submit }) {
  const acceptsList = form.kind === "numbers";
  const length = problem.right.length;
  const parse = (text) => {
    if (text.length > 100) return { error: "No answer is that long." };
    return acceptsList ? parseNumbers(text, form, length) : parseOneNumber(text);
  };
  const field = parsedInput(parse, () => setAnswer(field.input.value), {
    "aria-label": "Your answer",
    onkeydown: onEnter(submit),
    placeholder: acceptsList ? (form.places ? "0.2, 0.3, 0.5" : "3, 4, 5") : null,
  });
  const errorButton = form.refusal ? button(form.refusal, () => setAnswer(ERROR), { "aria-pressed": "false" }) : null;
  const unit = form.unit ? element("span", { class: "tl-note" }, form.unit) : [];
  const line = element(
    "div",
    { class: `tl-typed${acceptsList ? " tl-several" : ""}` },
    field.input,
    unit,
    errorButton ?? [],
  );
  return {
    node: element("div", {}, line, field.error),
    show(text) {
      if (errorButton) set(errorButton, { "aria-pressed": String(text === ERROR) });
      field.show(text === ERROR ? "" : text);
    },
    focus: () => field.input.focus(),
  };
}

// The names of rows and columns, by default their numbers.
const namesOf = (names, count) => names ?? range(count).map(String);

/** @type {(args: InputArgs) => Input} */
function tableInput({ problem, setAnswer, submit }) {
  const [rows, columns] = [problem.right.length, problem.right[0].length];
  const errorText = element("span", { class: "tl-error", role: "alert" });
  const [rowNames, columnNames] = [namesOf(problem.rows, rows), namesOf(problem.columns, columns)];
  const texts = () => fields.map((row) => row.map((field) => field.value.trim().replace(/[;|]/g, "")));
  const onInput = () => {
    const errors = fields.flat().map((field) => parseOneNumber(field.value).error);
    for (const [i, field] of fields.flat().entries()) set(field, { "aria-invalid": errors[i] ? "true" : false });
    setText(errorText, errors.find(Boolean) ?? "");
    const cells = texts();
    // An empty table is stored as an empty text: otherwise, the page's address would be full of separators.
    setAnswer(cells.flat().some(Boolean) ? cells.map((row) => row.join(";")).join("|") : "");
  };
  const fields = range(rows).map((i) =>
    range(columns).map((j) =>
      element("input", {
        class: "tl-input",
        type: "text",
        autocomplete: "off",
        maxlength: 12,
        "aria-label": `Row ${rowNames[i]}, column ${columnNames[j]}`,
        oninput: onInput,
        onkeydown: onEnter(submit),
      }),
    ),
  );
  const name = (text) => element("span", { class: "tl-note" }, text);
  const head = [name(""), columnNames.map(name)];
  const lines = fields.map((row, i) => [name(rowNames[i]), row]);
  const style = `--columns: ${columns}`;
  const grid = element("div", { class: "tl-table", role: "group", style }, head, lines);
  return {
    node: element("div", {}, set(grid, { "aria-label": "Your answer" }), errorText),
    show(text) {
      const cells = cellsIn(text);
      for (const [i, row] of fields.entries()) {
        for (const [j, field] of row.entries()) {
          const value = cells[i]?.[j] ?? "";
          if (field.value.trim() !== value) field.value = value;
        }
      }
      if (!text) onInput();
    },
    focus: () => fields[0][0].focus(),
  };
}

let maskCount = 0;

/** @type {(args: InputArgs) => Input} */
function maskInput({ form, problem, setAnswer, submit }) {
  const shape = problem.right.split("/");
  const [rows, columns] = [namesOf(problem.rows, shape.length), namesOf(problem.columns, shape[0].length)];
  const id = `tl-cells-${Date.now().toString(36)}-${maskCount++}`;
  const [rowNoun, columnNoun] = form.what;
  let mask = [];
  let at = [0, 0];
  const squares = rows.map((_, i) =>
    columns.map((_, j) =>
      element("span", { class: "tl-square", role: "gridcell", id: `${id}-${i}-${j}`, "data-at": `${i} ${j}` }),
    ),
  );
  const name = (text, props) => element("span", { class: "tl-note", ...props }, text);
  const head = element(
    "div",
    { class: "tl-line", "aria-hidden": "true" },
    name(""),
    columns.map((text) => name(text)),
  );
  const lines = rows.map((text, i) =>
    element("div", { class: "tl-line", role: "row" }, name(text, { role: "rowheader" }), squares[i]),
  );
  const label = `Your answer, a mask of ${rowNoun} by ${columnNoun}. Arrow keys move the selection, and Space paints.`;
  const grid = element(
    "div",
    { class: "tl-painted", "data-stage": "answer", role: "grid", tabindex: "0", "aria-label": label },
    head,
    lines,
  );
  const legend = element(
    "p",
    { class: "tl-note" },
    `A row for each of the ${rowNoun}, a column for each of the ${columnNoun}.`,
  );
  const mark = () => {
    for (const square of squares.flat()) square.classList.remove("tl-at");
    squares[at[0]][at[1]].classList.add("tl-at");
    set(grid, { "aria-activedescendant": `${id}-${at[0]}-${at[1]}` });
  };
  const draw = () => {
    for (const [i, row] of squares.entries()) {
      for (const [j, square] of row.entries()) {
        square.classList.toggle("tl-seen", mask[i][j]);
        const label = `${rowNoun} ${rows[i]}, ${columnNoun} ${columns[j]}: ${mask[i][j] ? "visible" : "hidden"}`;
        set(square, { "aria-label": label });
      }
    }
    mark();
  };
  /** @type {import("./paint.js").Editor} */
  const editor = {
    isSeen: ([i, j]) => mask[i][j],
    paint(cells, visible, to) {
      at = to;
      for (const [i, j] of cells) mask[i][j] = visible;
      draw();
      setAnswer(mask.map((row) => row.map((cell) => (cell ? "1" : "0")).join("")).join("/"));
    },
    pick(to) {
      at = to;
      mark();
    },
    move([down, right]) {
      this.pick([clamp(at[0] + down, 0, rows.length - 1), clamp(at[1] + right, 0, columns.length - 1)]);
    },
    toggle() {
      this.paint([at], !this.isSeen(at), at);
    },
  };
  grid.addEventListener("keydown", onEnterInMask(submit), true);
  makePaintable(grid, grid, editor);
  return {
    node: element("div", {}, legend, element("div", { class: "tl-scroll" }, grid)),
    show(text) {
      const lines = text.split("/");
      mask = rows.map((_, i) => columns.map((_, j) => lines[i]?.[j] === "1"));
      draw();
    },
    focus: () => grid.focus({ preventScroll: true }),
  };
}
// In this lab, Enter submits the answer; in other paintable tables, Enter toggles a cell.
const onEnterInMask = (submit) => (event) => {
  if (event.key === "Enter") event.stopImmediatePropagation();
  onEnter(submit)(event);
};

/** @type {(args: InputArgs) => Input} */
function choiceInput({ problem, setAnswer }) {
  const options = choice(
    "Your answer",
    problem.options.map((text, i) => [String(i), text]),
    setAnswer,
    CHIPS,
  );
  return { node: options.node, show: options.show, focus: () => options.buttons[0].focus() };
}

/** @type {(args: InputArgs) => Input} */
function orderInput({ problem, setAnswer }) {
  let order = problem.start;
  const list = element("ol", { class: "tl-sequence", "aria-label": "Your answer" });
  const items = problem.options.map((text) => {
    const move = (sign, step) => {
      const node = button(sign, () => swap(text, step, node));
      return node;
    };
    const buttons = [move("↑", -1), move("↓", 1)];
    return { node: element("li", {}, element("span", {}, text), element("span", {}, buttons)), buttons };
  });
  const swap = (text, offset, pressed) => {
    const from = order.findIndex((step) => problem.options[step] === text);
    const to = clamp(from + offset, 0, order.length - 1);
    const next = [...order];
    [next[from], next[to]] = [next[to], next[from]];
    setAnswer(next.join(","));
    show(next.join(","));
    (pressed.disabled ? items[next[to]].buttons.find((node) => !node.disabled) : pressed).focus();
  };
  function show(text) {
    order = text ? text.split(",").map(Number) : problem.start;
    const nodes = order.map((step) => items[step].node);
    if (nodes.some((node, i) => list.children[i] !== node)) list.replaceChildren(...nodes);
    for (const [i, step] of order.entries()) {
      for (const [j, end] of [0, order.length - 1].entries()) {
        // A screen reader announces this label.
        const label = `${j ? "Down" : "Up"}: ${problem.options[step]}, ${i + 1} of ${order.length}`;
        set(items[step].buttons[j], { disabled: i === end, "aria-label": label });
      }
    }
  }
  show("");
  return { node: list, show, focus: () => items[order[0]].buttons[1].focus() };
}

/** @type {Record<string, (args: InputArgs) => Input>} */
export const INPUTS = {
  number: typedInput,
  numbers: typedInput,
  table: tableInput,
  mask: maskInput,
  choice: choiceInput,
  order: orderInput,
};
