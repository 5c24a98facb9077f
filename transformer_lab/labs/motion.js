// Motion, where motion is the lesson: cells travel from where they stood to where they stand now. Everything is in its
// new place at once, for hands, for keys and for the page around; only the drawing follows, and nothing does where a
// reader has asked for less motion.

const TRAVEL = 350; // milliseconds

/** @typedef {(node: Element) => string} NameOf What a cell holds: by it a cell is known again. */

/** @type {NameOf} */
const ownText = (node) => node.textContent;

// Where cells stand in a box, by what they hold; of several that hold the same, the first.
/** @typedef {Map<string, { x: number, y: number, width: number }>} Places */
/** @type {(box: Element, cells: Iterable<Element>, nameOf?: NameOf) => Places} */
export function placesOf(box, cells, nameOf = ownText) {
  const { left, top } = box.getBoundingClientRect();
  const places = new Map();
  for (const cell of cells) {
    const { x, y, width } = cell.getBoundingClientRect();
    const [name, shown] = [nameOf(cell), cell.getClientRects().length > 0];
    if (shown && !places.has(name)) places.set(name, { x: x - left, y: y - top, width });
  }
  return places;
}

// Lets each cell come from where one stood that held the same, and grow from its width.
/** @type {(places: Places, box: Element, cells: Iterable<Element>, nameOf?: NameOf) => void} */
export function moveFrom(places, box, cells, nameOf = ownText) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const cell of cells) for (const old of cell.getAnimations()) old.cancel();
  const { left, top } = box.getBoundingClientRect();
  const moves = [...cells].flatMap((cell) => {
    const [from, to] = [places.get(nameOf(cell)), cell.getBoundingClientRect()];
    if (!from || !to.width) return [];
    const [x, y, wider] = [left + from.x - to.x, top + from.y - to.y, from.width / to.width];
    const there = Math.abs(x) + Math.abs(y) < 0.5 && Math.abs(wider - 1) < 0.01;
    return there ? [] : [{ cell, start: `translate(${x}px, ${y}px) scaleX(${wider})` }];
  });
  const grids = new Set(moves.map(({ cell }) => cell.closest(".tl-grid")));
  const whole = [...grids].filter((grid) => grid && grid.scrollWidth <= grid.clientWidth);
  for (const { cell, start } of moves) {
    const frames = { transform: [start, "none"], transformOrigin: ["0 0", "0 0"] };
    cell.animate(frames, { duration: TRAVEL, easing: "ease-in-out" });
  }
  whole.forEach(letThrough);
}

// A grid scrolls what does not fit. Of one that fits, nothing is cut off that comes from outside it.
function letThrough(grid) {
  const moving = () => grid.getAnimations({ subtree: true });
  grid.classList.add("tl-moving");
  Promise.allSettled(moving().map((each) => each.finished)).then(() => {
    if (!moving().length) grid.classList.remove("tl-moving");
  });
}
