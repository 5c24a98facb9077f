// Lets the reader paint the cells of a table with a mouse, a finger or the keyboard.

import { range } from "./maths.js";
import { set } from "./ui.js";

// Makes a table paintable. The first cell that is pressed decides whether a drag hides or shows cells. A vertical
// swipe scrolls the page, a horizontal swipe paints once the finger reaches the next cell, and a tap toggles one cell.
/**
 * The functions that a paintable table calls. Its cells are `.tl-square`, each with its row and column in `data-at`.
 * @typedef {object} Editor
 * @property {(at: number[]) => boolean} isSeen
 * @property {(cells: number[][], seen: boolean, at: number[]) => void} paint
 * @property {(at: number[]) => void} pick
 * @property {(by: number[]) => void} move moves the selection by rows and columns
 * @property {() => void} toggle toggles the selected cell
 */
/** @type {(table: HTMLElement, el: HTMLElement, editor: Editor) => void} */
export function makePaintable(table, el, editor) {
  let paintsSeen = null;
  let lastCell = null;
  let pressedCell = null; // the cell under the finger, until the finger leaves this cell
  const cellAt = (event) => {
    const root = el.getRootNode();
    /** @type {HTMLElement} */
    const hit = (root instanceof ShadowRoot ? root : document)
      .elementFromPoint(event.clientX, event.clientY)
      ?.closest(".tl-square");
    return hit && table.contains(hit) ? hit.dataset.at.split(" ").map(Number) : null;
  };
  const begin = (at) => {
    [paintsSeen, lastCell, pressedCell] = [!editor.isSeen(at), at, null];
    editor.paint([at], paintsSeen, at);
  };
  const end = () => {
    [paintsSeen, pressedCell] = [null, null];
  };
  set(table, {
    onpointerdown: (event) => {
      const at = cellAt(event);
      if (!at || event.button > 0) return;
      table.focus({ preventScroll: true });
      if (event.pointerType === "touch") {
        pressedCell = at;
        return;
      }
      table.setPointerCapture(event.pointerId);
      begin(at);
      event.preventDefault();
    },
    onpointermove: (event) => {
      const at = cellAt(event);
      if (!at) return;
      // A swipe also paints the cell where it began.
      const hasLeftPressedCell = pressedCell && `${at}` !== `${pressedCell}`;
      if (hasLeftPressedCell) [paintsSeen, lastCell, pressedCell] = [!editor.isSeen(pressedCell), pressedCell, null];
      if (paintsSeen === null) {
        if (event.pointerType === "mouse") editor.pick(at);
        return;
      }
      // A fast pointer skips cells: the cells between the last cell and this one are painted too.
      const steps = Math.max(Math.abs(at[0] - lastCell[0]), Math.abs(at[1] - lastCell[1]));
      if (!steps) return;
      const between = (step) => at.map((x, axis) => Math.round(lastCell[axis] + ((x - lastCell[axis]) * step) / steps));
      editor.paint((hasLeftPressedCell ? range(steps + 1) : range(steps, 1)).map(between), paintsSeen, at);
      lastCell = at;
    },
    onpointerup: () => {
      if (pressedCell) begin(pressedCell);
      end();
    },
    onpointercancel: end,
    onkeydown: (event) => {
      const move = {
        ArrowRight: [0, 1],
        ArrowLeft: [0, -1],
        ArrowDown: [1, 0],
        ArrowUp: [-1, 0],
        Home: [0, -Infinity],
        End: [0, Infinity],
      }[event.key];
      if (move) editor.move(move);
      else if (event.key === " " || event.key === "Enter") editor.toggle();
      else return;
      event.preventDefault();
    },
  });
}
