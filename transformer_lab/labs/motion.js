// Animates cells from their old to their new positions, if the motion explains a change. Layout and controls update at
// once; only the drawing is animated, and only for readers who have not asked for reduced motion.

const DURATION = 350; // milliseconds

/**
 * @typedef {(node: Element) => string} KeyOf Returns a text that identifies a cell before and after the change.
 */

/** @type {KeyOf} */
const contentOf = (node) => node.textContent;

// The positions of cells in a box, by key; if several cells have the same key, the position of the first.
/** @typedef {Map<string, { x: number, y: number, width: number }>} Positions */
/** @type {(box: Element, cells: Iterable<Element>, keyOf?: KeyOf) => Positions} */
export function positionsOf(box, cells, keyOf = contentOf) {
  const { left, top } = box.getBoundingClientRect();
  const positions = new Map();
  for (const cell of cells) {
    const { x, y, width } = cell.getBoundingClientRect();
    const [key, shown] = [keyOf(cell), cell.getClientRects().length > 0];
    if (shown && !positions.has(key)) positions.set(key, { x: x - left, y: y - top, width });
  }
  return positions;
}

// Animates each cell from the old position and width of the cell with the same key.
/** @type {(positions: Positions, box: Element, cells: Iterable<Element>, keyOf?: KeyOf) => void} */
export function animateFrom(positions, box, cells, keyOf = contentOf) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const cell of cells) for (const old of cell.getAnimations()) old.cancel();
  const { left, top } = box.getBoundingClientRect();
  const moves = [...cells].flatMap((cell) => {
    const [from, to] = [positions.get(keyOf(cell)), cell.getBoundingClientRect()];
    if (!from || !to.width) return [];
    const [x, y, scale] = [left + from.x - to.x, top + from.y - to.y, from.width / to.width];
    const unchanged = Math.abs(x) + Math.abs(y) < 0.5 && Math.abs(scale - 1) < 0.01;
    return unchanged ? [] : [{ cell, start: `translate(${x}px, ${y}px) scaleX(${scale})` }];
  });
  const grids = new Set(moves.map(({ cell }) => cell.closest(".tl-grid")));
  const unscrolled = [...grids].filter((grid) => grid && grid.scrollWidth <= grid.clientWidth);
  for (const { cell, start } of moves) {
    const frames = { transform: [start, "none"], transformOrigin: ["0 0", "0 0"] };
    cell.animate(frames, { duration: DURATION, easing: "ease-in-out" });
  }
  unscrolled.forEach(allowOverflow);
}

// Grids clip their overflow, so that they can scroll. During the animation, a grid that needs no scrolling shows its
// overflow.
function allowOverflow(grid) {
  const animations = () => grid.getAnimations({ subtree: true });
  grid.classList.add("tl-moving");
  Promise.allSettled(animations().map(({ finished }) => finished)).then(() => {
    if (!animations().length) grid.classList.remove("tl-moving");
  });
}
