// The pictures of the order lab. Sides are drawn to `scale`, but never thinner than MIN_SIDE pixels; the lab names the
// sides that would be thinner.

import { element, set, setText } from "./ui.js";
import { grouped } from "./words.js";

/** @typedef {import("./order_maths.js").Sizes} Sizes */
/** @typedef {Record<"q" | "k" | "v" | "a" | "s" | "out", number>} Slots The width reserved for each name. */
/**
 * A rectangle's position and size, and whether its name is above it.
 * @typedef {{ x: number, y: number, w: number, h: number, anchor: string, above?: boolean, slot?: number }} Rectangle
 */
/**
 * @typedef {object} Picture
 * @property {number} width
 * @property {number} height
 * @property {[string, number, number][]} signs
 * @property {Record<string, Rectangle>} rects
 */

const RECTANGLES = ["q", "k", "v", "mid", "out"];
const MAX_WIDTH = 340;
const MAX_HEIGHT = 125;
export const MIN_SIDE = 2;
const TOP_MARGIN = 30;
const GAP = 5;
// For each rectangle, all names that it can have. Their widths determine the reserved space.
const NAMES = {
  q: ["φ(Q)", "N × D"],
  k: ["φ(K)ᵀ", "D × N"],
  v: ["V", "N × M"],
  a: ["softmax(QKᵀ)", "φ(Q)φ(K)ᵀ"],
  s: ["S so far", "D × M"],
  out: ["output", "N × M"],
};
const FONT_SIZE = 13; // the font size of names
/** @type {(width: (text: string) => number) => Slots} */
export function slotsFor(width) {
  const slot = (rect) => Math.max(...NAMES[rect].map((name) => width(name) * FONT_SIZE)) + 6;
  return { q: slot("q"), k: slot("k"), v: slot("v"), a: slot("a"), s: slot("s"), out: slot("out") };
}

// The layout of both orders. A product is in the corner between its two factors.
/** @type {(sizes: Sizes, scale: number, slot: Slots) => { first: Picture, second: Picture }} */
export function layout({ n, d, m }, scale, slot) {
  const px = (size) => Math.max(size * scale, MIN_SIDE);
  const [N, D, M] = [px(n), px(d), px(m)];
  const slots = {
    q: Math.max(D, slot.q),
    k: Math.max(N, slot.k),
    v: Math.max(M, slot.v),
    a: Math.max(N, slot.a),
    s: Math.max(M, slot.s),
    out: Math.max(M, slot.out),
  };
  const height = D + GAP + N;
  const a = slots.q + GAP;
  const v = a + slots.a + 16;
  const out = v + slots.v + 16;
  const below = D + GAP;
  const s = slots.k + GAP;
  const q = s + slots.s + 4;
  const secondOut = q + slots.q + 38;
  return {
    first: {
      width: out + slots.out,
      height,
      signs: [
        ["×", v - 8, below + N / 2],
        ["=", out - 8, below + N / 2],
      ],
      rects: {
        q: { x: slots.q - D, y: below, w: D, h: N, anchor: "end" },
        k: { x: a, y: 0, w: N, h: D, anchor: "start", above: true },
        mid: { x: a, y: below, w: N, h: N, anchor: "start", slot: slot.a },
        v: { x: v + (slots.v - M) / 2, y: below, w: M, h: N, anchor: "middle" },
        out: { x: out + (slots.out - M) / 2, y: below, w: M, h: N, anchor: "middle" },
      },
    },
    second: {
      width: secondOut + slots.out,
      height,
      signs: [["× S =", secondOut - 19, N / 2]],
      rects: {
        k: { x: slots.k - N, y: N + GAP, w: N, h: D, anchor: "end" },
        v: { x: s, y: 0, w: M, h: N, anchor: "start", above: true },
        mid: { x: s, y: N + GAP, w: M, h: D, anchor: "start", slot: slot.s },
        q: { x: q + (slots.q - D) / 2, y: 0, w: D, h: N, anchor: "middle" },
        out: { x: secondOut + (slots.out - M) / 2, y: 0, w: M, h: N, anchor: "middle" },
      },
    },
  };
}

// The largest scale at which both pictures fit.
/** @type {(sizes: Sizes, slot: Slots) => number} */
export function fitScale(sizes, slot) {
  let [low, high] = [0, 32];
  for (let i = 0; i < 40; i++) {
    const scale = (low + high) / 2;
    const { first, second } = layout(sizes, scale, slot);
    if (Math.max(first.width, second.width) <= MAX_WIDTH && first.height <= MAX_HEIGHT) low = scale;
    else high = scale;
  }
  return low;
}

// The length of the ruler in rows or columns: a power of two, at most 90 pixels.
/** @type {(scale: number) => number} */
const rulerLength = (scale) => 2 ** Math.floor(Math.log2(90 / scale));

// The picture of one order.
/**
 * @type {(label: string) => { node: Element, draw: (
 *   picture: Picture, sizes: Record<string, string>, names: Record<string, string>, scale: number,
 *   state: { causal: boolean, crossed: boolean },
 * ) => void }}
 */
export function rectangles(label) {
  const parts = Object.fromEntries(
    RECTANGLES.map((key) => {
      const rect = element("rect", { class: `tl-${key}` });
      const name = element("text", { class: "tl-name" });
      const size = element("text", { class: "tl-size", y: 13 });
      return [key, { rect, name, size, label: element("g", {}, name, size) }];
    }),
  );
  const signs = [element("text", { class: "tl-sign" }), element("text", { class: "tl-sign" })];
  const masked = element("path", { class: "tl-masked" });
  const countText = element("text", { class: "tl-inside" });
  const cross = element("path", { class: "tl-cross" });
  const ruler = element("path", { class: "tl-ruler" });
  const rulerLabel = element("text", { class: "tl-size" });
  const rects = element(
    "g",
    {},
    Object.values(parts).map((part) => part.rect),
    masked,
  );
  const node = element(
    "svg",
    { class: "tl-picture", role: "img", viewBox: `0 0 ${MAX_WIDTH} ${TOP_MARGIN + MAX_HEIGHT + 62}` },
    rects,
    Object.values(parts).map((part) => part.label),
    countText,
    signs,
    cross,
    ruler,
    rulerLabel,
  );
  // A transform moves the text: after a change of x or y, the browser would lay out the text again.
  const moveText = (text, x, y, props = {}) => set(text, { transform: `translate(${x} ${y})`, ...props });
  const draw = ({ rects: rectOf, signs: signTexts, width, height }, sizes, names, scale, { causal, crossed }) => {
    const left = (MAX_WIDTH - width) / 2;
    for (const [name, part] of Object.entries(parts)) {
      const { x, y, w, h, anchor: side, above, slot } = rectOf[name];
      set(part.rect, { x: left + x, y: TOP_MARGIN + y, width: w, height: h });
      const anchor = slot && w > slot ? "middle" : !slot && w > 60 ? "middle" : side;
      const tx = left + x + (anchor === "middle" ? w / 2 : anchor === "end" ? w - 2 : 2);
      const ty = TOP_MARGIN + (above ? y - 18 : y + h + 14);
      moveText(part.label, tx, ty, { "text-anchor": anchor });
      setText(part.name, names[name]);
      setText(part.size, sizes[name]);
    }
    for (const [i, sign] of signs.entries()) {
      const [text, x, y] = signTexts[i] ?? ["", 0, 0];
      moveText(sign, left + x, TOP_MARGIN + y + 5);
      setText(sign, text);
    }
    const { x, y, w, h } = rectOf.mid;
    set(masked, { d: `M${left + x} ${TOP_MARGIN + y} h${w} v${h} Z`, visibility: causal ? "visible" : "hidden" });
    // With a causal mask, only the triangle at the lower left remains, so the number is placed there.
    const [across, down] = causal ? [0.36, 0.75] : [0.5, 0.5];
    moveText(countText, left + x + w * across, TOP_MARGIN + y + h * down + 5, {
      visibility: w > (causal ? 150 : 95) && h > 24 ? "visible" : "hidden",
    });
    setText(countText, sizes.held);
    const [dx, dy] = [0.8 * width, 0.8 * height];
    set(cross, {
      d: `M${left + 0.1 * width} ${TOP_MARGIN + 0.1 * height} l${dx} ${dy} m${-dx} 0 l${dx} ${-dy}`,
      visibility: crossed ? "visible" : "hidden",
    });
    const rows = rulerLength(scale);
    const rulerY = TOP_MARGIN + MAX_HEIGHT + 52;
    set(ruler, { d: `M1 ${rulerY - 4} v8 m0 -4 h${rows * scale} m0 -4 v8` });
    moveText(rulerLabel, rows * scale + 8, rulerY + 4);
    setText(rulerLabel, `${grouped(rows)} rows or columns`);
    const sizesText = RECTANGLES.map((key) => `${names[key]} ${sizes[key].replace("×", "by")}`);
    set(node, { "aria-label": `${label}, to scale: ${sizesText.join(", ")}` });
  };
  return { node, draw };
}
