// Lets the reader paint the cells of a table by mouse, finger or keyboard.

import { range } from "./maths.js";
import { set } from "./ui.js";

// Makes a table paintable: the first cell that is pressed decides whether the drag hides or shows cells. A vertical
// swipe scrolls the page, a horizontal swipe paints from the next cell on, and a tap toggles one cell.
/**
 * The paintable table. Its cells are `.tl-square`, each with its row and column in `data-at`.
 * @typedef {object} Editor
 * @property {(at: number[]) => boolean} isSeen
 * @property {(cells: number[][], seen: boolean, at: number[]) => void} paint
 * @property {(at: number[]) => void} pick
 * @property {(by: number[]) => void} move moves the selection by rows and columns
 * @property {() => void} toggle toggles the selected cell
 */
/** @type {(matrix: HTMLElement, el: HTMLElement, editor: Editor) => void} */
export function makePaintable(matrix, el, editor) {
  let brush = null;
  let last = null;
  let pressedCell = null; // the cell under the finger, until the finger leaves this cell
  const cellAt = (event) => {
    const root = el.getRootNode();
    /** @type {HTMLElement} */
    const hit = (root instanceof ShadowRoot ? root : document)
      .elementFromPoint(event.clientX, event.clientY)
      ?.closest(".tl-square");
    return hit && matrix.contains(hit) ? hit.dataset.at.split(" ").map(Number) : null;
  };
  const begin = (at) => {
    [brush, last, pressedCell] = [!editor.isSeen(at), at, null];
    editor.paint([at], brush, at);
  };
  const letGo = () => {
    [brush, pressedCell] = [null, null];
  };
  set(matrix, {
    onpointerdown: (event) => {
      const at = cellAt(event);
      if (!at || event.button > 0) return;
      matrix.focus({ preventScroll: true });
      if (event.pointerType === "touch") {
        pressedCell = at;
        return;
      }
      matrix.setPointerCapture(event.pointerId);
      begin(at);
      event.preventDefault();
    },
    onpointermove: (event) => {
      const at = cellAt(event);
      if (!at) return;
      const isSecond = pressedCell && `${at}` !== `${pressedCell}`; // the first cell under the finger is painted too
      if (isSecond) [brush, last, pressedCell] = [!editor.isSeen(pressedCell), pressedCell, null];
      if (brush === null) {
        if (event.pointerType === "mouse") editor.pick(at);
        return;
      }
      const steps = Math.max(Math.abs(at[0] - last[0]), Math.abs(at[1] - last[1])); // a fast pointer skips cells
      if (!steps) return;
      const between = (step) => at.map((x, axis) => Math.round(last[axis] + ((x - last[axis]) * step) / steps));
      editor.paint((isSecond ? range(steps + 1) : range(steps, 1)).map(between), brush, at);
      last = at;
    },
    onpointerup: () => {
      if (pressedCell) begin(pressedCell);
      letGo();
    },
    onpointercancel: letGo,
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
