// PyTorch's rules for views of one storage: shapes, strides, and the errors of view.

import { clamp, contiguousStrides, dot, product, range, unravel } from "./maths.js";
import { plural, shapeText } from "./words.js";

/**
 * A strided view of a storage. `storage` holds numbers of the first tensor; `copied` says whether the last operation
 * created this storage.
 * @typedef {{ shape: number[], strides: number[], offset: number, storage: number[], copied?: boolean }} Strided
 */

// An operation returns a tensor, or throws the reason why it cannot.
export class Refused extends Error {}
export const refuse = (reason) => {
  throw new Refused(reason);
};

/** @type {(shape: number[]) => Strided} */
export const arange = (shape) => ({
  shape,
  strides: contiguousStrides(shape),
  offset: 0,
  storage: range(product(shape)),
});

// The storage place of an element, and the places of all elements in row-major order.
/** @type {(tensor: Strided, index: number[]) => number} */
export const placeOf = (tensor, index) => tensor.offset + dot(index, tensor.strides);
/** @type {(tensor: Strided) => number[]} */
export const storagePlaces = (tensor) =>
  range(product(tensor.shape)).map((flat) => placeOf(tensor, unravel(flat, tensor.shape)));

/** @type {(tensor: Strided) => boolean} */
export function isContiguous({ shape, strides }) {
  if (product(shape) === 0) return true;
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && strides[axis] !== step) return false;
    step *= shape[axis];
  }
  return true;
}

// The strides of `view(shape)` on the same storage, or the reason why there are none. Two axes can be merged only if
// the stride of the left axis is the size times the stride of the right axis.
function viewStrides(tensor, shape) {
  if (product(shape) === 0)
    return { strides: `${shape}` === `${tensor.shape}` ? tensor.strides : contiguousStrides(shape) };
  const strides = [];
  let to = shape.length - 1;
  let oldSize = 1;
  let newSize = 1;
  let base = tensor.strides.at(-1) ?? 1;
  for (let axis = tensor.shape.length - 1; axis >= 0; axis--) {
    oldSize *= tensor.shape[axis];
    const left = axis - 1;
    const breaks = axis === 0 || (tensor.shape[left] !== 1 && tensor.strides[left] !== oldSize * base);
    if (!breaks) continue;
    while (to >= 0 && (newSize < oldSize || shape[to] === 1)) {
      strides[to] = newSize * base;
      newSize *= shape[to--];
    }
    if (newSize !== oldSize) return { left, step: tensor.strides[left], turn: oldSize * base };
    if (axis > 0) {
      base = tensor.strides[left];
      oldSize = newSize = 1;
    }
  }
  while (to >= 0) {
    strides[to] = 1;
    to--;
  }
  return { strides };
}

const axisOf = (dim, count, name) => {
  const reach = Math.max(count, 1);
  if (dim >= -reach && dim < reach) return dim < 0 ? dim + reach : dim;
  const ends = `dimensions range from ${-reach} to ${reach - 1}`;
  return refuse(
    `${name}: dimension ${dim} is out of range; this tensor has ${plural(count, "axis", "axes")}, so ${ends}.`,
  );
};

// Replaces −1 in a shape.
function filled(tensor, sizes, name) {
  const open = sizes.filter((size) => size === -1).length;
  if (open > 1) refuse(`${name}: only one size can be left open with −1.`);
  if (sizes.some((size) => size < -1)) refuse(`${name}: a size cannot be negative (−1 means “whatever is left”).`);
  const total = product(tensor.shape);
  const known = product(sizes.filter((size) => size !== -1));
  if (open ? known === 0 || total % known : known !== total) {
    refuse(`${name}: the shape ${shapeText(sizes)} does not hold the ${total} elements of ${shapeText(tensor.shape)}.`);
  }
  return sizes.map((size) => (size === -1 ? total / known : size));
}

const copied = (tensor, shape = tensor.shape) => ({
  shape,
  strides: contiguousStrides(shape),
  offset: 0,
  storage: storagePlaces(tensor).map((place) => tensor.storage[place]),
  copied: true,
});

/** @type {Record<string, (tensor: Strided, ...args: any[]) => Strided>} */
export const operations = {
  view(tensor, ...sizes) {
    const shape = filled(tensor, sizes, "view");
    const found = viewStrides(tensor, shape);
    if (found.strides) return { ...tensor, shape, strides: found.strides };
    const { left, step, turn } = found;
    return refuse(
      `view cannot merge axes ${left} and ${left + 1}: a step along axis ${left} moves ${step} in storage, but ` +
        `all steps along axis ${left + 1} together move ${turn}. The two numbers must be equal. ` +
        "A preceding .contiguous(), or .reshape instead, copies the elements into order.",
    );
  },
  reshape(tensor, ...sizes) {
    const shape = filled(tensor, sizes, "reshape");
    const found = viewStrides(tensor, shape);
    return found.strides ? { ...tensor, shape, strides: found.strides } : copied(tensor, shape);
  },
  flatten(tensor, first = 0, last = -1) {
    const count = tensor.shape.length;
    const from = axisOf(first, count, "flatten");
    const to = axisOf(last, count, "flatten");
    if (from > to) refuse("flatten: the first dimension must not come after the last.");
    if (!count) return operations.reshape(tensor, 1);
    if (from === to) return tensor;
    return operations.reshape(
      tensor,
      ...tensor.shape.slice(0, from),
      product(tensor.shape.slice(from, to + 1)),
      ...tensor.shape.slice(to + 1),
    );
  },
  transpose(tensor, dim0, dim1) {
    if (dim0 === undefined || dim1 === undefined) refuse("transpose needs two dimensions: .transpose(0, 1).");
    const [a, b] = [dim0, dim1].map((dim) => axisOf(dim, tensor.shape.length, "transpose"));
    const swap = (list) => list.map((x, axis) => (axis === a ? list[b] : axis === b ? list[a] : x));
    return { ...tensor, shape: swap(tensor.shape), strides: swap(tensor.strides) };
  },
  t(tensor) {
    if (tensor.shape.length > 2)
      refuse(`t transposes a matrix; this tensor has ${tensor.shape.length} axes. Name two axes with .transpose.`);
    return tensor.shape.length === 2 ? operations.transpose(tensor, 0, 1) : tensor;
  },
  permute(tensor, ...dims) {
    const order = dims.map((dim) => axisOf(dim, tensor.shape.length, "permute"));
    if (order.length !== tensor.shape.length || new Set(order).size !== order.length) {
      refuse(`permute: name each of the ${tensor.shape.length} axes once; got (${dims.join(", ")}).`);
    }
    return {
      ...tensor,
      shape: order.map((axis) => tensor.shape[axis]),
      strides: order.map((axis) => tensor.strides[axis]),
    };
  },
  contiguous: (tensor) => (isContiguous(tensor) ? tensor : copied(tensor)),
  squeeze(tensor, ...dims) {
    const chosen = dims.map((dim) => axisOf(dim, tensor.shape.length, "squeeze"));
    if (new Set(chosen).size !== chosen.length) refuse(`squeeze: name each axis once; got (${dims.join(", ")}).`);
    const kept = tensor.shape.map((size, axis) => size !== 1 || (chosen.length > 0 && !chosen.includes(axis)));
    const keep = (list) => list.filter((_, axis) => kept[axis]);
    return { ...tensor, shape: keep(tensor.shape), strides: keep(tensor.strides) };
  },
  unsqueeze(tensor, dim) {
    if (dim === undefined) refuse("unsqueeze needs a position: .unsqueeze(0).");
    const axis = axisOf(dim, tensor.shape.length + 1, "unsqueeze");
    const step = axis < tensor.shape.length ? tensor.shape[axis] * tensor.strides[axis] : 1;
    return { ...tensor, shape: tensor.shape.toSpliced(axis, 0, 1), strides: tensor.strides.toSpliced(axis, 0, step) };
  },
  expand(tensor, ...sizes) {
    const added = sizes.length - tensor.shape.length;
    if (added < 0) refuse(`expand: ${sizes.length} sizes for ${tensor.shape.length} axes.`);
    const strides = [];
    const shape = [];
    for (let i = sizes.length - 1; i >= 0; i--) {
      const axis = i - added;
      const size = sizes[i];
      const old = axis < 0 ? 1 : tensor.shape[axis];
      if (size < 0 && (size < -1 || axis < 0)) refuse(`expand: ${size} is not a size for a new axis.`);
      const newSize = size === -1 ? old : size;
      if (newSize !== old && old !== 1)
        refuse(
          `expand: axis ${axis} has size ${old}; only an axis of size 1 can stretch, so it cannot become ${newSize}.`,
        );
      shape[i] = newSize;
      // The stride of an axis of size 1 has no effect; PyTorch uses the size times the stride of the axis to its right.
      const own = axis < 0 ? shape[i + 1] * strides[i + 1] : tensor.strides[axis];
      strides[i] = newSize === old && tensor.shape.length ? own : 0;
    }
    return { ...tensor, shape, strides };
  },
  // x[1, :, ::2]: an integer selects one element and removes the axis, a slice keeps it.
  index(tensor, ...parts) {
    const dots = parts.indexOf("...");
    if (parts.lastIndexOf("...") !== dots) refuse("An index can contain only one ….");
    const named = parts.length - (dots < 0 ? 0 : 1);
    if (named > tensor.shape.length) refuse(`Too many indices: ${named} for ${tensor.shape.length} axes.`);
    const whole = Array(tensor.shape.length - named).fill({ from: null, to: null, step: null });
    const full = dots < 0 ? [...parts, ...whole] : parts.toSpliced(dots, 1, ...whole);
    let offset = tensor.offset;
    const shape = [];
    const strides = [];
    full.forEach((part, axis) => {
      const size = tensor.shape[axis];
      const stride = tensor.strides[axis];
      if (typeof part === "number") {
        if (part < -size || part >= size) refuse(`Index ${part} is out of range for axis ${axis} of size ${size}.`);
        offset += (part < 0 ? part + size : part) * stride;
        return;
      }
      const step = part.step ?? 1;
      if (step < 1) refuse("A slice's step must be greater than zero in PyTorch; .flip makes a reversed copy.");
      const clip = (x, open) => (x === null ? open : clamp(x < 0 ? x + size : x, 0, size));
      const from = clip(part.from, 0);
      const to = Math.max(clip(part.to, size), from);
      offset += from * stride;
      shape.push(Math.ceil((to - from) / step));
      strides.push(stride * step);
    });
    return { ...tensor, shape, strides, offset };
  },
};
