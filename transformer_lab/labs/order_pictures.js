// The pictures of the order lab. Sides are drawn to `scale`, but never thinner than THIN pixels; the lab names the
// sides that would be thinner.

import { element, set, setText } from "./ui.js";
import { grouped } from "./words.js";

/** @typedef {import("./order_maths.js").Sizes} Sizes */
/** @typedef {Record<"q" | "k" | "v" | "a" | "s" | "out", number>} Slots The width reserved for each name. */
/**
 * A rectangle's position and size, and whether its name is above it.
 * @typedef {{ x: number, y: number, w: number, h: number, at: string, above?: boolean, slot?: number }} Rectangle
 */
/**
 * @typedef {object} Picture
 * @property {number} width
 * @property {number} high
 * @property {[string, number, number][]} signs
 * @property {Record<string, Rectangle>} rects
 */

const KINDS = ["q", "k", "v", "mid", "out"];
const WIDE = 340;
const HIGH = 125;
export const THIN = 2;
const TOP = 30;
const JOINT = 5;
// All names that each rectangle can have. Their widths determine the reserved space.
const NAMES = {
  q: ["φ(Q)", "N × D"],
  k: ["φ(K)ᵀ", "D × N"],
  v: ["V", "N × M"],
  a: ["softmax(QKᵀ)", "φ(Q)φ(K)ᵀ"],
  s: ["S so far", "D × M"],
  out: ["output", "N × M"],
};
const LETTERS = 13; // the font size of names
/** @type {(width: (text: string) => number) => Slots} */
export function slotsFor(width) {
  const slot = (kind) => Math.max(...NAMES[kind].map((name) => width(name) * LETTERS)) + 6;
  return { q: slot("q"), k: slot("k"), v: slot("v"), a: slot("a"), s: slot("s"), out: slot("out") };
}

// The layout of both orders. A product is in the corner between its two factors.
/** @type {(sizes: Sizes, scale: number, slot: Slots) => { first: Picture, second: Picture }} */
export function place({ n, d, m }, scale, slot) {
  const px = (size) => Math.max(size * scale, THIN);
  const [N, D, M] = [px(n), px(d), px(m)];
  const slots = {
    q: Math.max(D, slot.q),
    k: Math.max(N, slot.k),
    v: Math.max(M, slot.v),
    a: Math.max(N, slot.a),
    s: Math.max(M, slot.s),
    out: Math.max(M, slot.out),
  };
  const high = D + JOINT + N;
  const a = slots.q + JOINT;
  const v = a + slots.a + 16;
  const out = v + slots.v + 16;
  const below = D + JOINT;
  const s = slots.k + JOINT;
  const q = s + slots.s + 4;
  const out2 = q + slots.q + 38;
  return {
    first: {
      width: out + slots.out,
      high,
      signs: [
        ["×", v - 8, below + N / 2],
        ["=", out - 8, below + N / 2],
      ],
      rects: {
        q: { x: slots.q - D, y: below, w: D, h: N, at: "end" },
        k: { x: a, y: 0, w: N, h: D, at: "start", above: true },
        mid: { x: a, y: below, w: N, h: N, at: "start", slot: slot.a },
        v: { x: v + (slots.v - M) / 2, y: below, w: M, h: N, at: "middle" },
        out: { x: out + (slots.out - M) / 2, y: below, w: M, h: N, at: "middle" },
      },
    },
    second: {
      width: out2 + slots.out,
      high,
      signs: [["× S =", out2 - 19, N / 2]],
      rects: {
        k: { x: slots.k - N, y: N + JOINT, w: N, h: D, at: "end" },
        v: { x: s, y: 0, w: M, h: N, at: "start", above: true },
        mid: { x: s, y: N + JOINT, w: M, h: D, at: "start", slot: slot.s },
        q: { x: q + (slots.q - D) / 2, y: 0, w: D, h: N, at: "middle" },
        out: { x: out2 + (slots.out - M) / 2, y: 0, w: M, h: N, at: "middle" },
      },
    },
  };
}

// The largest scale at which both pictures fit.
/** @type {(sizes: Sizes, slot: Slots) => number} */
export function fit(sizes, slot) {
  let [small, large] = [0, 32];
  for (let i = 0; i < 40; i++) {
    const scale = (small + large) / 2;
    const { first, second } = place(sizes, scale, slot);
    if (Math.max(first.width, second.width) <= WIDE && first.high <= HIGH) small = scale;
    else large = scale;
  }
  return small;
}

// The length of the ruler in rows or columns: a power of two, at most 90 pixels.
/** @type {(scale: number) => number} */
const rulerOf = (scale) => 2 ** Math.floor(Math.log2(90 / scale));

// The picture of one order.
/**
 * @type {(label: string) => { node: Element, draw: (
 *   picture: Picture, sizes: Record<string, string>, names: Record<string, string>, scale: number,
 *   state: { causal: boolean, crossed: boolean },
 * ) => void }}
 */
export function rectangles(label) {
  const parts = Object.fromEntries(
    KINDS.map((kind) => {
      const rect = element("rect", { class: `tl-${kind}` });
      const name = element("text", { class: "tl-name" });
      const size = element("text", { class: "tl-size", y: 13 });
      return [kind, { rect, name, size, label: element("g", {}, name, size) }];
    }),
  );
  const signs = [element("text", { class: "tl-sign" }), element("text", { class: "tl-sign" })];
  const masked = element("path", { class: "tl-masked" });
  const inside = element("text", { class: "tl-inside" });
  const cross = element("path", { class: "tl-cross" });
  const ruler = element("path", { class: "tl-ruler" });
  const length = element("text", { class: "tl-size" });
  const rects = element(
    "g",
    {},
    Object.values(parts).map((part) => part.rect),
    masked,
  );
  const node = element(
    "svg",
    { class: "tl-picture", role: "img", viewBox: `0 0 ${WIDE} ${TOP + HIGH + 62}` },
    rects,
    Object.values(parts).map((part) => part.label),
    inside,
    signs,
    cross,
    ruler,
    length,
  );
  // A transform moves the text: after a change of x or y, the browser would lay out the text again.
  const put = (text, x, y, props = {}) => set(text, { transform: `translate(${x} ${y})`, ...props });
  const draw = ({ rects: places, signs: texts, width, high: tall }, sizes, names, scale, { causal, crossed }) => {
    const left = (WIDE - width) / 2;
    for (const [name, part] of Object.entries(parts)) {
      const { x, y, w, h: high, at, above, slot } = places[name];
      set(part.rect, { x: left + x, y: TOP + y, width: w, height: high });
      const anchor = slot && w > slot ? "middle" : !slot && w > 60 ? "middle" : at;
      const tx = left + x + (anchor === "middle" ? w / 2 : anchor === "end" ? w - 2 : 2);
      const ty = TOP + (above ? y - 18 : y + high + 14);
      put(part.label, tx, ty, { "text-anchor": anchor });
      setText(part.name, names[name]);
      setText(part.size, sizes[name]);
    }
    for (const [i, sign] of signs.entries()) {
      const [text, x, y] = texts[i] ?? ["", 0, 0];
      put(sign, left + x, TOP + y + 5);
      setText(sign, text);
    }
    const { x, y, w, h: high } = places.mid;
    set(masked, { d: `M${left + x} ${TOP + y} h${w} v${high} Z`, visibility: causal ? "visible" : "hidden" });
    // Under a causal mask only the lower half remains, so the number is placed there.
    const [across, down] = causal ? [0.36, 0.75] : [0.5, 0.5];
    put(inside, left + x + w * across, TOP + y + high * down + 5, {
      visibility: w > (causal ? 150 : 95) && high > 24 ? "visible" : "hidden",
    });
    setText(inside, sizes.held);
    const [dx, dy] = [0.8 * width, 0.8 * tall];
    set(cross, {
      d: `M${left + 0.1 * width} ${TOP + 0.1 * tall} l${dx} ${dy} m${-dx} 0 l${dx} ${-dy}`,
      visibility: crossed ? "visible" : "hidden",
    });
    const rows = rulerOf(scale);
    const foot = TOP + HIGH + 52;
    set(ruler, { d: `M1 ${foot - 4} v8 m0 -4 h${rows * scale} m0 -4 v8` });
    put(length, rows * scale + 8, foot + 4);
    setText(length, `${grouped(rows)} rows or columns`);
    const sizesText = KINDS.map((kind) => `${names[kind]} ${sizes[kind].replace("×", "by")}`);
    set(node, { "aria-label": `${label}, to scale: ${sizesText.join(", ")}` });
  };
  return { node, draw };
}
