// Motion, where motion is the lesson: cells travel from where they stood to where they stand now. Everything is in its new
// place at once, for hands, for keys and for the page around; only the drawing follows, and nothing does where a reader
// has asked for less motion.

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
    if (!places.has(nameOf(cell))) places.set(nameOf(cell), { x: x - left, y: y - top, width });
  }
  return places;
}

// Lets each cell come from where one stood that held the same, and grow from its width.
/** @type {(places: Places, box: Element, cells: Iterable<Element>, nameOf?: NameOf) => void} */
export function moveFrom(places, box, cells, nameOf = ownText) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const cell of cells) for (const old of cell.getAnimations()) old.cancel();
  const { left, top } = box.getBoundingClientRect();
  const moves = [...cells].map((cell) => {
    const to = cell.getBoundingClientRect();
    const from = places.get(nameOf(cell)) ?? { x: to.x - left, y: to.y - top, width: to.width };
    return { cell, x: from.x - to.x + left, y: from.y - to.y + top, wider: from.width / to.width };
  });
  const moving = moves.filter(({ x, y, wider }) => Math.abs(x) + Math.abs(y) > 0.5 || Math.abs(wider - 1) > 0.01);
  const grids = new Set(moving.map(({ cell }) => cell.closest(".tl-grid")));
  const whole = [...grids].filter((grid) => grid && grid.scrollWidth <= grid.clientWidth);
  for (const { cell, x, y, wider } of moving) {
    const there = { transform: "none", transformOrigin: "0 0" };
    const here = { ...there, transform: `translate(${x}px, ${y}px) scaleX(${wider})` };
    cell.animate([here, there], { duration: TRAVEL, easing: "ease-in-out" });
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
