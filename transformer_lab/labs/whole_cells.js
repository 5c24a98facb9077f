// The coloured cells of a tensor, on a canvas with one pixel per number.

import { BLUES, pixelsOf, SIGNED } from "./colours.js";
import { clamp } from "./maths.js";
import { set } from "./ui.js";

const PIXELS = { weights: pixelsOf(BLUES), signed: pixelsOf(SIGNED) };

// Weights are between 0 and 1; other numbers are scaled by the largest absolute value.
/**
 * @type {(canvas: HTMLCanvasElement, shape: number[], values: ArrayLike<number>, weights: boolean, theme: string) =>
 *   void}
 */
export function paintCells(canvas, [rows, columns], values, weights, theme) {
  if (canvas.width !== columns || canvas.height !== rows) set(canvas, { width: columns, height: rows });
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const map = PIXELS[weights ? "weights" : "signed"];
  const tints = map[theme] ?? map.light;
  let limit = 1e-9;
  for (let k = 0; k < values.length; k++) limit = Math.max(limit, Math.abs(values[k]));
  for (let k = 0; k < values.length; k++) {
    pixels[k] = tints[Math.round(clamp(weights ? values[k] : values[k] / limit / 2 + 0.5, 0, 1) * 255)];
  }
  canvas.getContext("2d", { alpha: false }).putImageData(image, 0, 0);
}
