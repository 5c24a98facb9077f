// The interactive drawing of the whole Transformer: its blocks and arrows can be opened.

import { element, set, setText } from "./ui.js";
import { LEFT, links, strips, WIDTH } from "./whole_strips.js";

/**
 * What the drawing shows.
 * @typedef {object} Shown
 * @property {"both" | "encoder" | "decoder"} family
 * @property {number} layers
 * @property {boolean} normFirst
 * @property {boolean} finalNorm
 * @property {Record<string, number>} layer The visible layer of each side.
 * @property {Record<string, string>} texts The texts in the drawing, by place.
 * @property {Set<string>} lit The highlighted places.
 * @property {string} open
 * @property {string[]} off What is switched off.
 * @property {import("./whole_strips.js").Data} data The numbers on the arrows.
 * @property {import("./whole_strips.js").Links | null} [links] The attention block whose links are shown.
 */

// The id of a block, or of an arrow's tensor, in the visible layer.
/** @type {(data: DOMStringMap, shown: Shown) => string} */
export function idOf({ part, flow, side, of }, { family, layer: layerOf, layers, normFirst, finalNorm }) {
  const layer = layerOf[side];
  const end = normFirst ? "sum" : "norm";
  const after = (block) => `${side}.${layer}.${block}.${end}`;
  const out = (l) => `${side}.${l}.feed_forward.${end}`;
  if (flow) {
    const entering = layer ? out(layer - 1) : `${side}.input`;
    const between = side === "decoder" && family !== "decoder" ? after("cross") : after("self");
    const ids = {
      "memory": "encoder.memory",
      "vectors": "encoder.memory",
      "input": entering,
      "self.residual": entering,
      "self.norm": after("self"),
      "past": after("self"),
      "cross.residual": after("self"),
      "cross.norm": after("cross"),
      "feed_forward.residual": between,
      "last": finalNorm ? "decoder.last" : out(layers - 1),
    };
    return ids[flow] ?? (flow.includes(".") ? `${side}.${layer}.${flow}` : `${side}.${flow}`);
  }
  if (of === "next") return "decoder.next";
  if (part === "add_norm") return `${side}.${layer}.${of}.add`;
  if (of) return `${side}.${layer}.${of}`;
  return `${side}.${{ embedding: "embed", positions: "place" }[part] ?? part}`;
}

// Whether this family lacks a part: an encoder alone, for example, has no part of the decoder.
/** @type {(data: DOMStringMap, family: string) => boolean} */
export function isAbsent({ part, flow = "", side, of = "" }, family) {
  if (flow === "vectors") return family !== "encoder";
  if (family === "encoder") return side === "decoder" || part === "memory";
  if (family === "decoder")
    return side === "encoder" || of === "cross" || flow.startsWith("cross") || part === "memory";
  return flow === "past";
}

// Whether a part, or an arrow, is switched off in the visible layer.
/** @type {(data: DOMStringMap, shown: Shown) => boolean} */
function isOff({ part = "", flow = "", side, of }, { off, layer }) {
  const is = (name) => off.includes(name);
  if (flow) return flow.endsWith("residual") ? is("residual") : flow === "positions" && is("positions");
  if (part === "positions") return is("positions");
  if (!part.endsWith("attention")) return false;
  const head = `${side}.${layer[side]}.${of}.`;
  const masked = part === "masked_attention" && is("mask");
  return (
    is("scale") || masked || (part === "cross_attention" && is("cross")) || off.some((name) => name.startsWith(head))
  );
}

const MIN_HIT = 27; // in units of the drawing: 24 pixels on a phone
const FLIGHT = 240; // milliseconds that a word flies from the output to the input
const isRight = ({ dataset }) => dataset.side === "decoder";
// Returns the y coordinate of a block, or of the start of an arrow.
function depth(node) {
  const rect = node.querySelector("rect");
  if (rect) return +rect.getAttribute("y") + rect.getAttribute("height") / 2;
  return +/^M\S+ ([\d.]+)/.exec(node.querySelector(".line").getAttribute("d"))[1];
}
// Sorts parts in the order of computation: column by column, from bottom to top.
const byFlow = (a, b) => Number(isRight(a)) - Number(isRight(b)) || depth(b) - depth(a);

/**
 * @type {(
 *   drawing: string, titleOf: (id: string) => string, normFirst: boolean,
 *   peek: (id: string | null) => void, open: (id: string) => void) =>
 *   { node: HTMLElement, draw: (shown: Shown) => void, fly: (word: string) => void }}
 */
export function picture(drawing, titleOf, normFirst, peek, open) {
  const node = element("div", { class: "tl-drawing" });
  node.innerHTML = drawing;
  const svg = node.querySelector("svg");
  svg.querySelector("title").remove(); // the title would be a tooltip on every part
  const items = [...svg.querySelectorAll("[data-part], [data-flow]")].sort(byFlow);
  set(svg, {
    role: "group",
    "aria-label": svg.dataset.label,
  });
  /** @type {Shown} */
  let shown;
  const data = strips(svg);
  const lens = links();
  node.append(data.node, lens.node);
  let at = items[0];
  let prev = null;

  const itemOf = (event) => event.target.closest("[data-part], [data-flow]");
  const parts = () => items.filter((item) => !isAbsent(item.dataset, shown.family));
  const select = (item) => {
    set(at, { tabindex: -1 });
    at = set(item, { tabindex: 0 });
  };
  // Up and Down follow the computation; Left and Right select the nearest part on the other side.
  const move = (key) => {
    const list = parts();
    const i = list.indexOf(at);
    const beside = list
      .filter((item) => isRight(item) === (key === "ArrowRight") && isRight(at) !== isRight(item))
      .sort((a, b) => Math.abs(depth(a) - depth(at)) - Math.abs(depth(b) - depth(at)));
    const to = { ArrowUp: list[i + 1], ArrowDown: list[i - 1], Home: list[0], End: list.at(-1) };
    select((key in to ? to[key] : beside[0]) ?? at);
    at.focus();
  };
  set(node, {
    onpointerover: (event) => {
      if (event.pointerType === "mouse") peek(itemOf(event) ? idOf(itemOf(event).dataset, shown) : null);
    },
    onpointerleave: () => peek(null),
    onfocusin: (event) => {
      const item = itemOf(event);
      if (item) select(item);
      if (item?.matches(":focus-visible")) peek(idOf(item.dataset, shown));
    },
    onfocusout: () => peek(null),
    onclick: (event) => {
      const item = itemOf(event);
      if (!item) return;
      select(item);
      open(idOf(item.dataset, shown));
    },
    onkeydown: (event) => {
      if (/^(Arrow|Home|End)/.test(event.key)) move(event.key);
      else if (event.key === "Enter" || event.key === " ") open(idOf(at.dataset, shown));
      else return;
      event.preventDefault();
    },
  });
  for (const item of items) {
    const { flow, side, room, first } = item.dataset;
    set(item, { role: "button", tabindex: -1 });
    // The areas that respond to a press: the line and strip of an arrow, and at least MIN_HIT units of height for a
    // block.
    const hit = (kind, d) => item.prepend(element("path", { class: `hit ${kind}`, d }));
    const area = (left, top, width, height) => hit("area", `M${left} ${top}h${width}v${height}h-${width}z`);
    const box = item.querySelector("rect");
    const [top, high] = room?.split(" ").map(Number) ?? [];
    if (flow) hit("", item.querySelector(".line").getAttribute("d"));
    if (high) area(LEFT[side], top - 8, WIDTH, high + 16);
    if (box) {
      area(box.getAttribute("x"), depth(item) - MIN_HIT / 2, box.getAttribute("width"), MIN_HIT);
    }
    if (normFirst && first) setText(item.querySelector("text"), first); // in a pre-norm model the order differs
  }

  function draw(now) {
    shown = now;
    set(svg, { "data-family": now.family });
    for (const item of items) {
      const id = idOf(item.dataset, now);
      const absent = isAbsent(item.dataset, now.family);
      const { flow = "", side } = item.dataset;
      const named = flow.endsWith("residual") ? `${side}.${now.layer[side]}.${flow}` : id;
      set(item, {
        "aria-label": (flow && "Arrow: ") + titleOf(named),
        "aria-hidden": String(absent),
        "aria-pressed": String(id === now.open),
      });
      const states = [
        absent && "gone",
        now.lit.has(id) && "lit",
        id === now.open && "open",
        isOff(item.dataset, now) && "off",
      ];
      set(item, { class: states.filter(Boolean).join(" ") });
      if (absent) set(item, { tabindex: -1 });
    }
    // Tab moves to the open part; if no part is open, to the part that has the focus, or else to the first part.
    if (prev !== now.open || isAbsent(at.dataset, now.family)) {
      const inside = svg.contains(svg.getRootNode().activeElement) && parts().includes(at);
      select(items.find((item) => item.matches(".open")) ?? (inside ? at : parts()[0]));
    }
    prev = now.open;
    data.draw(
      now.data,
      (flow, side) => idOf({ flow, side }, now),
      (flow, side) => isAbsent({ flow, side }, now.family),
    );
    lens.draw(now.links);
    for (const node of svg.querySelectorAll("[data-text]")) setText(node, now.texts[node.dataset.text]);
  }
  // The written word moves around the decoder to the decoder's input.
  function fly(word) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const flying = element("text", { class: "flying" }, word);
    svg.append(flying);
    const transform = [
      [318, 26], // beside the output, which shows the next word
      [318, 580],
      [257, 599],
    ].map(([x, y]) => `translate(${x}px, ${y}px)`);
    flying.animate({ transform }, { duration: FLIGHT, easing: "ease-in-out" }).finished.finally(() => flying.remove());
  }
  return { node, draw, fly };
}
