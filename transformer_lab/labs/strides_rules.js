// PyTorch's rules for views of one storage: shapes, strides, and the errors of view.

import { clamp, contiguousStrides, dot, product, range, unravel } from "./maths.js";
import { plural, shapeText } from "./words.js";

/**
 * A strided view of a storage. `storage` holds numbers of the first tensor; `copied` says whether the last operation
 * created this storage.
 * @typedef {{ shape: number[], strides: number[], offset: number, storage: number[], copied?: boolean }} Strided
 */

// An operation returns a tensor, or throws the reason why it cannot return one.
export class OperationError extends Error {}
export const fail = (reason) => {
  throw new OperationError(reason);
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
// the stride of the left axis equals the size times the stride of the right axis.
function viewStrides(tensor, shape) {
  if (product(shape) === 0)
    return { strides: `${shape}` === `${tensor.shape}` ? tensor.strides : contiguousStrides(shape) };
  const strides = [];
  let newAxis = shape.length - 1;
  let oldSize = 1;
  let newSize = 1;
  let base = tensor.strides.at(-1) ?? 1;
  for (let axis = tensor.shape.length - 1; axis >= 0; axis--) {
    oldSize *= tensor.shape[axis];
    const left = axis - 1;
    const atBoundary = axis === 0 || (tensor.shape[left] !== 1 && tensor.strides[left] !== oldSize * base);
    if (!atBoundary) continue;
    while (newAxis >= 0 && (newSize < oldSize || shape[newAxis] === 1)) {
      strides[newAxis] = newSize * base;
      newSize *= shape[newAxis--];
    }
    if (newSize !== oldSize) return { left, step: tensor.strides[left], span: oldSize * base };
    if (axis > 0) {
      base = tensor.strides[left];
      oldSize = newSize = 1;
    }
  }
  while (newAxis >= 0) {
    strides[newAxis] = 1;
    newAxis--;
  }
  return { strides };
}

const axisOf = (dim, count, name) => {
  const limit = Math.max(count, 1);
  if (dim >= -limit && dim < limit) return dim < 0 ? dim + limit : dim;
  const ends = `dimensions range from ${-limit} to ${limit - 1}`;
  return fail(
    `${name}: dimension ${dim} is out of range; this tensor has ${plural(count, "axis", "axes")}, so ${ends}.`,
  );
};

// Replaces −1 in a shape.
function resolveShape(tensor, sizes, name) {
  const inferred = sizes.filter((size) => size === -1).length;
  if (inferred > 1) fail(`${name}: only one size can be left open with −1.`);
  if (sizes.some((size) => size < -1)) fail(`${name}: a size cannot be negative (−1 means “whatever is left”).`);
  const total = product(tensor.shape);
  const given = product(sizes.filter((size) => size !== -1));
  if (inferred ? given === 0 || total % given : given !== total) {
    fail(`${name}: the ${total} elements of ${shapeText(tensor.shape)} do not fit the shape ${shapeText(sizes)}.`);
  }
  return sizes.map((size) => (size === -1 ? total / given : size));
}

const contiguousCopy = (tensor, shape = tensor.shape) => ({
  shape,
  strides: contiguousStrides(shape),
  offset: 0,
  storage: storagePlaces(tensor).map((place) => tensor.storage[place]),
  copied: true,
});

/** @type {Record<string, (tensor: Strided, ...args: any[]) => Strided>} */
export const operations = {
  view(tensor, ...sizes) {
    const shape = resolveShape(tensor, sizes, "view");
    const merged = viewStrides(tensor, shape);
    if (merged.strides) return { ...tensor, shape, strides: merged.strides };
    const { left, step, span } = merged;
    return fail(
      `view cannot merge axes ${left} and ${left + 1}: a step along axis ${left} moves ` +
        `${plural(step, "place")} in storage, but all steps along axis ${left + 1} together move ` +
        `${plural(span, "place")}. The two numbers must be equal. ` +
        "Call .contiguous() first, or .reshape instead of .view: both copy the elements into order.",
    );
  },
  reshape(tensor, ...sizes) {
    const shape = resolveShape(tensor, sizes, "reshape");
    const merged = viewStrides(tensor, shape);
    return merged.strides ? { ...tensor, shape, strides: merged.strides } : contiguousCopy(tensor, shape);
  },
  flatten(tensor, first = 0, last = -1) {
    const count = tensor.shape.length;
    const from = axisOf(first, count, "flatten");
    const to = axisOf(last, count, "flatten");
    if (from > to) fail("flatten: the first dimension must not come after the last.");
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
    if (dim0 === undefined || dim1 === undefined) fail("transpose needs two dimensions: .transpose(0, 1).");
    const [a, b] = [dim0, dim1].map((dim) => axisOf(dim, tensor.shape.length, "transpose"));
    const swap = (list) => list.map((x, axis) => (axis === a ? list[b] : axis === b ? list[a] : x));
    return { ...tensor, shape: swap(tensor.shape), strides: swap(tensor.strides) };
  },
  t(tensor) {
    if (tensor.shape.length > 2)
      fail(`t transposes a matrix; this tensor has ${tensor.shape.length} axes. Name two axes with .transpose.`);
    return tensor.shape.length === 2 ? operations.transpose(tensor, 0, 1) : tensor;
  },
  permute(tensor, ...dims) {
    const order = dims.map((dim) => axisOf(dim, tensor.shape.length, "permute"));
    if (order.length !== tensor.shape.length || new Set(order).size !== order.length) {
      fail(`permute: name each of the ${tensor.shape.length} axes once; got (${dims.join(", ")}).`);
    }
    return {
      ...tensor,
      shape: order.map((axis) => tensor.shape[axis]),
      strides: order.map((axis) => tensor.strides[axis]),
    };
  },
  contiguous: (tensor) => (isContiguous(tensor) ? tensor : contiguousCopy(tensor)),
  squeeze(tensor, ...dims) {
    const chosen = dims.map((dim) => axisOf(dim, tensor.shape.length, "squeeze"));
    if (new Set(chosen).size !== chosen.length) fail(`squeeze: name each axis once; got (${dims.join(", ")}).`);
    const kept = tensor.shape.map((size, axis) => size !== 1 || (chosen.length > 0 && !chosen.includes(axis)));
    const keep = (list) => list.filter((_, axis) => kept[axis]);
    return { ...tensor, shape: keep(tensor.shape), strides: keep(tensor.strides) };
  },
  unsqueeze(tensor, dim) {
    if (dim === undefined) fail("unsqueeze needs a position: .unsqueeze(0).");
    const axis = axisOf(dim, tensor.shape.length + 1, "unsqueeze");
    const step = axis < tensor.shape.length ? tensor.shape[axis] * tensor.strides[axis] : 1;
    return { ...tensor, shape: tensor.shape.toSpliced(axis, 0, 1), strides: tensor.strides.toSpliced(axis, 0, step) };
  },
  expand(tensor, ...sizes) {
    const added = sizes.length - tensor.shape.length;
    if (added < 0) fail(`expand needs at least ${plural(tensor.shape.length, "size")}; got ${sizes.length}.`);
    const strides = [];
    const shape = [];
    for (let i = sizes.length - 1; i >= 0; i--) {
      const axis = i - added;
      const size = sizes[i];
      const old = axis < 0 ? 1 : tensor.shape[axis];
      if (size < 0 && (size < -1 || axis < 0)) fail(`expand: ${size} is not a size for a new axis.`);
      const newSize = size === -1 ? old : size;
      if (newSize !== old && old !== 1)
        fail(`expand: axis ${axis} has size ${old} and cannot become ${newSize}; only an axis of size 1 can stretch.`);
      shape[i] = newSize;
      // The stride of an axis of size 1 has no effect; PyTorch uses the size of the axis to its right times the stride
      // of that axis.
      const stride = axis < 0 ? shape[i + 1] * strides[i + 1] : tensor.strides[axis];
      strides[i] = newSize === old && tensor.shape.length ? stride : 0;
    }
    return { ...tensor, shape, strides };
  },
  // x[1, :, ::2]: an integer selects one element and removes the axis; a slice keeps the axis.
  index(tensor, ...parts) {
    const ellipsis = parts.indexOf("...");
    if (parts.lastIndexOf("...") !== ellipsis) fail("An index can contain only one ….");
    const nIndexed = parts.length - (ellipsis < 0 ? 0 : 1);
    if (nIndexed > tensor.shape.length)
      fail(`Too many indices: ${nIndexed} for ${plural(tensor.shape.length, "axis", "axes")}.`);
    const fullSlices = Array(tensor.shape.length - nIndexed).fill({ from: null, to: null, step: null });
    const allParts = ellipsis < 0 ? [...parts, ...fullSlices] : parts.toSpliced(ellipsis, 1, ...fullSlices);
    let offset = tensor.offset;
    const shape = [];
    const strides = [];
    allParts.forEach((part, axis) => {
      const size = tensor.shape[axis];
      const stride = tensor.strides[axis];
      if (typeof part === "number") {
        if (part < -size || part >= size) fail(`Index ${part} is out of range for axis ${axis} of size ${size}.`);
        offset += (part < 0 ? part + size : part) * stride;
        return;
      }
      const step = part.step ?? 1;
      if (step < 1) fail("A slice's step must be greater than zero in PyTorch; .flip makes a reversed copy.");
      const clip = (x, missing) => (x === null ? missing : clamp(x < 0 ? x + size : x, 0, size));
      const from = clip(part.from, 0);
      const to = Math.max(clip(part.to, size), from);
      offset += from * stride;
      shape.push(Math.ceil((to - from) / step));
      strides.push(stride * step);
    });
    return { ...tensor, shape, strides, offset };
  },
};
