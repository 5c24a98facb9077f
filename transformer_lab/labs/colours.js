// Colours: the course's two colour maps, a range of hues, and changes of the page's theme.

import { clamp } from "./maths.js";

// The hue of element i of n, in a range from blue to orange.
/** @type {(i: number, n: number) => number} */
export const hueOf = (i, n) => Math.round(255 - 215 * (n > 1 ? i / (n - 1) : 0));

// The course's two colour maps, the same as in its figures. On a light page, weights range from white (0) to dark blue
// (1), and other numbers are white at zero, blue below and red above. On a dark page, values near zero are dark, and
// values far from zero are bright.
/** @typedef {number[][]} Colours Evenly spaced stops, each [red, green, blue]. */
/** @typedef {{ light: Colours, dark: Colours }} ColourMap */
/** @type {(text: string) => Colours} */
const fromHex = (text) => text.split(" ").map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
export const BLUES = {
  light: fromHex("f7fbff deebf7 c6dbef 9dcae1 6aaed6 4191c6 2070b4 08509b 08306b"),
  dark: fromHex("1c2128 182c42 15395c 164a7a 22609b 3d7cb8 6a9fd3 a3c8ea e4f1fd"),
};
export const SIGNED = {
  light: fromHex("053061 2065ab 4393c3 90c4dd d1e5f0 f7f6f6 fddbc7 f3a481 d6604d b1182b 67001f"),
  dark: fromHex("d6ebff 9bcaf2 5c9fd6 2f6ea6 1d4265 1f2329 572823 96392f cf5f4b f19a80 ffdccd"),
};

// Interpolates the colour at t, from 0 to 1.
/** @type {(map: Colours, t: number) => number[]} */
function colourAt(map, t) {
  const x = clamp(t, 0, 1) * (map.length - 1);
  const below = Math.min(Math.floor(x), map.length - 2);
  return map[below].map((c, i) => Math.round(c * (1 - x + below) + map[below + 1][i] * (x - below)));
}
// Black or white, whichever has more contrast with a colour.
function textColourOn(rgb) {
  const linear = rgb.map((c) => ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.18 ? "#000" : "#fff";
}
// The background and text colour of a cell at t, from 0 to 1, in both themes.
/** @type {(map: ColourMap, t: number) => { background: string, color: string }} */
export function cellColours({ light, dark }, t) {
  const colours = [colourAt(light, t), colourAt(dark, t)];
  const fills = colours.map((rgb) => `rgb(${rgb.join(" ")})`);
  const texts = colours.map(textColourOn);
  return { background: `light-dark(${fills.join(", ")})`, color: `light-dark(${texts.join(", ")})` };
}
// The background and text colour on the signed map, for a number from −most to most.
/** @type {(x: number, most: number) => { background: string, color: string }} */
export const signedCellColours = (x, most) => cellColours(SIGNED, 0.5 + (0.46 * clamp(x, -most, most)) / (most || 1));

// A lookup table of 256 RGBA pixels for each theme.
/** @type {(map: ColourMap) => Record<string, number[]>} */
export function pixelsOf({ light, dark }) {
  const pixel = (map, level) => new Uint32Array(Uint8Array.of(...colourAt(map, level / 255), 255).buffer)[0];
  const pixels = (map) => Array.from({ length: 256 }, (_, level) => pixel(map, level));
  return { light: pixels(light), dark: pixels(dark) };
}

// Calls `draw` when the page or the system changes its theme: style sheets do not affect what is drawn on a canvas.
/** @type {(lab: Element, draw: () => void) => () => void} */
export function observeTheme(lab, draw) {
  const scheme = () => getComputedStyle(lab).colorScheme;
  let last = scheme();
  const redraw = () => {
    if (scheme() !== last) draw();
    last = scheme();
  };
  const observer = new MutationObserver(redraw);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", redraw);
  };
}
