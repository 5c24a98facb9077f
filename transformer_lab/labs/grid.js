// A tensor drawn as a grid of cells.

import { clamp, product, ravel, unravel } from "./maths.js";
import { element } from "./ui.js";

// Draws a tensor: the last two axes form a block of cells, and there is one block for each index of the other axes.
// `cell(index, flat)` returns {text, hue, ghost}. The reader chooses an element by mouse, finger or arrow keys.
// `names.block(index)` and `names.row(index)` label blocks and rows; a block's default label is its index.
// `mark(index, marks)` marks the chosen cell, and adds each class in `marks` to the cells at the flat indices that are
// listed for the class.
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
  const chooseAt = (event) => {
    /** @type {HTMLElement} */
    const cell = document.elementFromPoint(event.clientX, event.clientY)?.closest(".tl-cell");
    if (cell && node.contains(cell)) choose(unravel(+cell.dataset.flat, shape));
  };
  node.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" || event.buttons) chooseAt(event);
  });
  node.addEventListener("pointerdown", chooseAt);
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
    // At the end of a row, the Right arrow key moves to the next row, so the keys can reach every element.
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
    const blockNodes = [];
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
        const cellNode = element(
          "span",
          { class: `tl-cell${ghost ? " tl-ghost" : ""}`, "data-flat": flat, style },
          text,
        );
        longest = Math.max(longest, String(text).length);
        cells.push(cellNode);
        body.append(cellNode);
      }
      const index = unravel(block, shape.slice(0, -2));
      const name = shape.length > 2 ? element("span", { class: "tl-block-name" }, nameOf(index)) : [];
      blockNodes.push(element("div", {}, name, body));
    }
    node.style.setProperty("--longest", longest);
    node.replaceChildren(
      ...(cells.length ? blockNodes : [element("span", { class: "tl-note" }, "no elements: an axis has size 0")]),
    );
  };
  // Scrolls a wide tensor sideways within its box, without scrolling the page.
  const reveal = (cell) => {
    const [box, rect] = [node.getBoundingClientRect(), cell.getBoundingClientRect()];
    node.scrollLeft += Math.min(rect.left - box.left - 4, 0) + Math.max(rect.right - box.right + 4, 0);
  };
  const mark = (index, marks = {}) => {
    chosen = index;
    const classes = { "tl-chosen": index && cells.length ? [ravel(index, shape)] : [], ...marks };
    for (const [name, indices] of Object.entries(classes)) {
      const marked = new Set(indices);
      for (const [i, cell] of cells.entries()) cell.classList.toggle(name, marked.has(i));
    }
    if (shape.at(-1) > 6 && index && cells.length) reveal(cells[ravel(index, shape)]);
  };
  return { node, draw, mark };
}
