// The arithmetic of the labs: no drawing, no document. It stands in front of every lab's own script, and is tested
// against transformer_lab on random inputs.

const product = (sizes) => sizes.reduce((a, b) => a * b, 1);
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

// Weights from scores: positive, summing to one.
function softmax(scores) {
  const max = Math.max(...scores);
  const exp = scores.map((score) => Math.exp(score - max));
  const sum = exp.reduce((a, b) => a + b, 0);
  return exp.map((x) => x / sum);
}

// The mean of rows, weighted.
const blend = (weights, rows) =>
  rows[0].map((_, column) =>
    dot(
      weights,
      rows.map((row) => row[column]),
    ),
  );

// The index of element number `flat`, counted in reading order: the last axis fastest.
function unravel(flat, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

const ravel = (index, shape) => index.reduce((flat, i, axis) => flat * shape[axis] + i, 0);

function contiguousStrides(shape) {
  const strides = [];
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= Math.max(shape[axis], 1);
  }
  return strides;
}

// Broadcasting aligns shapes from the right. Returns {shape} or {reason}; sizes are those of elementwise arithmetic.
function broadcastShapes(a, b) {
  const length = Math.max(a.length, b.length);
  const shape = [];
  for (let axis = 1; axis <= length; axis++) {
    const [x, y] = [a[a.length - axis] ?? 1, b[b.length - axis] ?? 1];
    if (x !== y && x !== 1 && y !== 1) {
      return { reason: `axis −${axis}: ${x} and ${y} differ, and neither is 1`, axis };
    }
    shape.unshift(x === 1 ? y : x);
  }
  return { shape };
}

// The shape of a @ b by torch.matmul's rules, with the shapes that it really multiplies. Returns {reason} where it fails.
function matmulShapes(a, b) {
  if (!a.length || !b.length)
    return { reason: "matmul wants at least one axis on each side; use * for a single number" };
  const left = a.length === 1 ? [1, a[0]] : a;
  const right = b.length === 1 ? [b[0], 1] : b;
  const [k, k2] = [left[left.length - 1], right[right.length - 2]];
  if (k !== k2) {
    const where = b.length === 1 ? "only" : "second-to-last";
    return {
      reason: `the last axis of a (${k}) and the ${where} axis of b (${k2}) must be equal`,
      left,
      right,
      contracted: true,
    };
  }
  const batch = broadcastShapes(left.slice(0, -2), right.slice(0, -2));
  if (batch.reason) {
    return {
      reason: `batch axes: ${batch.reason.replace(/−(\d+)/, (_, n) => `−${+n + 2}`)}`,
      left,
      right,
      axis: batch.axis + 2,
    };
  }
  const rows = a.length === 1 ? [] : left.slice(-2, -1);
  const columns = b.length === 1 ? [] : right.slice(-1);
  return { shape: [...batch.shape, ...rows, ...columns], batch: batch.shape, left, right, k };
}
