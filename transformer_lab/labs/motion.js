// Animates cells from their old to their new positions, if the motion explains a change. Layout and controls update at
// once; only the drawing is animated, and only for readers who have not asked for reduced motion.

const DURATION = 350; // milliseconds

/**
 * @typedef {(node: Element) => string} KeyOf Returns a cell's content, which identifies the cell before and after the
 * change.
 */

/** @type {KeyOf} */
const ownText = (node) => node.textContent;

// The positions of cells in a box, by key; if several cells have the same key, the position of the first.
/** @typedef {Map<string, { x: number, y: number, width: number }>} Positions */
/** @type {(box: Element, cells: Iterable<Element>, nameOf?: KeyOf) => Positions} */
export function positionsOf(box, cells, nameOf = ownText) {
  const { left, top } = box.getBoundingClientRect();
  const places = new Map();
  for (const cell of cells) {
    const { x, y, width } = cell.getBoundingClientRect();
    const [name, shown] = [nameOf(cell), cell.getClientRects().length > 0];
    if (shown && !places.has(name)) places.set(name, { x: x - left, y: y - top, width });
  }
  return places;
}

// Animates each cell from the old position and width of the cell with the same key.
/** @type {(places: Positions, box: Element, cells: Iterable<Element>, nameOf?: KeyOf) => void} */
export function animateFrom(places, box, cells, nameOf = ownText) {
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
    cell.animate(frames, { duration: DURATION, easing: "ease-in-out" });
  }
  whole.forEach(allowOverflow);
}

// Grids clip their overflow, so that they can scroll. During the animation, a grid that needs no scrolling shows its
// overflow.
function allowOverflow(grid) {
  const moving = () => grid.getAnimations({ subtree: true });
  grid.classList.add("tl-moving");
  Promise.allSettled(moving().map((each) => each.finished)).then(() => {
    if (!moving().length) grid.classList.remove("tl-moving");
  });
}
