// All texts of WholeLab: names of places, numbers in English, and reasons for wrong answers.

import { set, setText } from "./ui.js";
import { fixed } from "./words.js";

/** @typedef {{ side: string, layer: number | null, kind: string, of: string }} Place */

// 342 → three hundred and forty two, up to 999,999. `words` is the model’s vocabulary: zero to twenty, then the tens.
/** @type {(n: number, words: string[]) => string[]} */
export function numberWords(n, words) {
  if (n < 20) return [words[n]];
  if (n < 100) return [words[18 + Math.floor(n / 10)], ...(n % 10 ? numberWords(n % 10, words) : [])];
  const [size, name] = n >= 1000 ? [1000, "thousand"] : [100, "hundred"];
  const rest = n % size;
  return [
    ...numberWords(Math.floor(n / size), words),
    name,
    ...(rest && rest < 100 ? ["and"] : []),
    ...(rest ? numberWords(rest, words) : []),
  ];
}

// Returns the reason why the model's answer is wrong.
/** @type {(digits: string, why: Record<string, string>) => string} */
export function reasonWrong(digits, { long, zero, both, other }) {
  if (/^0./.test(digits)) return digits.length > 4 ? both : zero;
  return digits.length > 4 ? long : other;
}

// Parses a place such as "encoder.0.self.add": side, layer (or null), and kind.
/** @type {(id: string) => Place} */
export function placeOf(id) {
  const [side, ...rest] = id.split(".");
  const layer = /^\d+$/.test(rest[0]) ? Number(rest.shift()) : null;
  return { side, layer, kind: rest.at(-1) ?? "", of: rest[0] };
}

// A place's name and description, and the page and section that explain it.
/**
 * @typedef {object} PlaceText
 * @property {string} title
 * @property {string} about
 * @property {string} page
 * @property {string} section
 */
/** @type {(words: { places: Record<string, string[]> }, id: string) => PlaceText} */
export function placeText({ places }, id) {
  const { side, layer, kind, of } = placeOf(id);
  const entry = (kind) => places[kind === "self" && side === "decoder" ? "masked" : kind];
  const [name, about, page, section] = entry(kind);
  const where = `, ${side}${layer === null ? "" : ` layer ${layer + 1}`}`;
  const title = layer === null ? name : name.replace("%", entry(of)[0].toLowerCase());
  return { title: title + (id && where), about, page, section };
}

// Links to the section that explains a place, if this page is part of the course. Elsewhere, only the name is shown.
/** @type {(node: HTMLElement, lesson: { page: string, section: string }, text?: string) => void} */
export function linkLesson(node, { page, section }, text = `chapter ${Number(page.slice(0, 2))}, ${section}`) {
  /** @type {HTMLAnchorElement} */
  const known = document.querySelector(`a[href*="${page}.html"]`);
  const here = location.pathname.endsWith(`${page}.html`);
  const id = section
    .toLowerCase()
    .match(/[a-z0-9]+/g)
    .join("-");
  const href = here || known ? `${here ? "" : known.href.split("#")[0]}#${id}` : null;
  setText(node, text);
  set(node, { href });
}

// Writes a shape with the names of its axes: (seq 3, d_model 32).
/** @type {(tensor: { shape: number[], axes: string[] }) => string} */
export const axesText = ({ shape, axes }) => `(${axes.map((axis, i) => `${axis} ${shape[i]}`).join(", ")})`;

// Formats a share as a percentage, which is 0 or 100 only if the share is exactly 0 or 1.
/** @type {(share: number) => string} */
export function percent(share) {
  const found = 100 * share;
  return `${found > 0 && found < 1 ? "< 1" : found > 99 && found < 100 ? "> 99" : Math.round(found)} %`;
}

/** @type {(p: number) => string} */
export const share = (p) => (p > 0.9995 ? "> 0.999" : p < 0.001 ? "< 0.001" : fixed(p, 3));
