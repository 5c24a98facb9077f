// The strides lab: a tensor is a storage and a rule for walking through it. Here are the rule, the walk, and why view refuses.

// A tensor is {shape, strides, offset, storage}; storage lists, for each of its places, which number of the first
// tensor lies there. What follows are PyTorch's rules for each operation. An operation returns a tensor or throws a reason.

class Refused extends Error {}
const refuse = (reason) => {
  throw new Refused(reason);
};

const arange = (shape) => ({
  shape,
  strides: contiguousStrides(shape),
  offset: 0,
  storage: Array.from({ length: product(shape) }, (_, i) => i),
});
const placeOf = (tensor, index) => tensor.offset + dot(index, tensor.strides);
const places = (tensor) =>
  Array.from({ length: product(tensor.shape) }, (_, flat) => placeOf(tensor, unravel(flat, tensor.shape)));

function isContiguous({ shape, strides }) {
  if (product(shape) === 0) return true;
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && strides[axis] !== step) return false;
    step *= shape[axis];
  }
  return true;
}

// The strides with which `view(shape)` would read the same storage, or why there are none.
// Axes that a view merges must form one even walk: a step along the left one has to be a full turn of the right one.
function viewStrides(tensor, shape) {
  if (product(shape) === 0)
    return { strides: `${shape}` === `${tensor.shape}` ? tensor.strides : contiguousStrides(shape) };
  const strides = [];
  let to = shape.length - 1;
  let even = 1,
    made = 1,
    base = tensor.strides.at(-1) ?? 1;
  for (let axis = tensor.shape.length - 1; axis >= 0; axis--) {
    even *= tensor.shape[axis];
    const left = axis - 1;
    const breaks = axis === 0 || (tensor.shape[left] !== 1 && tensor.strides[left] !== even * base);
    if (!breaks) continue;
    while (to >= 0 && (made < even || shape[to] === 1)) {
      strides[to] = made * base;
      made *= shape[to--];
    }
    if (made !== even) return { left, step: tensor.strides[left], turn: even * base };
    if (axis > 0) {
      base = tensor.strides[left];
      even = made = 1;
    }
  }
  while (to >= 0) {
    strides[to] = 1;
    to--;
  }
  return { strides };
}

const axisOf = (dim, count, name) => {
  const range = Math.max(count, 1);
  if (dim < -range || dim >= range)
    refuse(
      `${name}: dimension ${dim} is out of range; this tensor has ${count} ${count === 1 ? "axis" : "axes"}, so it goes from ${-range} to ${range - 1}.`,
    );
  return dim < 0 ? dim + range : dim;
};

// −1 in a shape stands for whatever is left over.
function filled(tensor, sizes, name) {
  const open = sizes.filter((size) => size === -1).length;
  if (open > 1) refuse(`${name}: only one size can be left open with −1.`);
  if (sizes.some((size) => size < -1)) refuse(`${name}: a size cannot be negative (−1 means “whatever is left”).`);
  const total = product(tensor.shape),
    known = product(sizes.filter((size) => size !== -1));
  if (open ? known === 0 || total % known : known !== total) {
    refuse(`${name}: the shape ${shapeText(sizes)} does not hold the ${total} elements of ${shapeText(tensor.shape)}.`);
  }
  return sizes.map((size) => (size === -1 ? total / known : size));
}

const copied = (tensor, shape = tensor.shape) => ({
  shape,
  strides: contiguousStrides(shape),
  offset: 0,
  storage: places(tensor).map((place) => tensor.storage[place]),
  copied: true,
});

const operations = {
  view(tensor, ...sizes) {
    const shape = filled(tensor, sizes, "view");
    const found = viewStrides(tensor, shape);
    if (found.strides) return { ...tensor, shape, strides: found.strides };
    const right = found.left + 1;
    return refuse(
      `view cannot walk axes ${found.left} and ${right} in one even step: a step along axis ${found.left} moves ${found.step} in storage, ` +
        `but a full turn of axis ${right} ends ${found.turn} on. They would have to be equal. .contiguous() first, or .reshape, copies the elements into order.`,
    );
  },
  reshape(tensor, ...sizes) {
    const shape = filled(tensor, sizes, "reshape");
    const found = viewStrides(tensor, shape);
    return found.strides ? { ...tensor, shape, strides: found.strides } : copied(tensor, shape);
  },
  flatten(tensor, first = 0, last = -1) {
    const count = tensor.shape.length;
    const from = axisOf(first, count, "flatten"),
      to = axisOf(last, count, "flatten");
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
    if (dim0 === undefined || dim1 === undefined) refuse("transpose wants two dimensions: .transpose(0, 1).");
    const [a, b] = [dim0, dim1].map((dim) => axisOf(dim, tensor.shape.length, "transpose"));
    const swap = (list) => list.map((x, axis) => (axis === a ? list[b] : axis === b ? list[a] : x));
    return { ...tensor, shape: swap(tensor.shape), strides: swap(tensor.strides) };
  },
  t(tensor) {
    if (tensor.shape.length > 2)
      refuse(`t turns a matrix; this tensor has ${tensor.shape.length} axes. Say which two with .transpose.`);
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
    if (dim === undefined) refuse("unsqueeze wants to know where: .unsqueeze(0).");
    const axis = axisOf(dim, tensor.shape.length + 1, "unsqueeze");
    const step = axis < tensor.shape.length ? tensor.shape[axis] * tensor.strides[axis] : 1;
    return { ...tensor, shape: tensor.shape.toSpliced(axis, 0, 1), strides: tensor.strides.toSpliced(axis, 0, step) };
  },
  expand(tensor, ...sizes) {
    const added = sizes.length - tensor.shape.length;
    if (added < 0) refuse(`expand: ${sizes.length} sizes for ${tensor.shape.length} axes.`);
    const strides = [],
      shape = [];
    for (let i = sizes.length - 1; i >= 0; i--) {
      const axis = i - added,
        size = sizes[i];
      const old = axis < 0 ? 1 : tensor.shape[axis];
      if (size < 0 && (size < -1 || axis < 0)) refuse(`expand: ${size} is not a size for a new axis.`);
      const wanted = size === -1 ? old : size;
      if (wanted !== old && old !== 1)
        refuse(
          `expand: axis ${axis} has size ${old}; only an axis of size 1 can stretch, so it cannot become ${wanted}.`,
        );
      shape[i] = wanted;
      // Along an axis of size 1 nobody walks; PyTorch gives a new one the length of what lies to its right.
      const own = axis < 0 ? shape[i + 1] * strides[i + 1] : tensor.strides[axis];
      strides[i] = wanted === old && tensor.shape.length ? own : 0;
    }
    return { ...tensor, shape, strides };
  },
  // x[1, :, ::2]: an integer picks one and drops the axis, a slice keeps the axis.
  index(tensor, ...parts) {
    const dots = parts.indexOf("...");
    if (parts.lastIndexOf("...") !== dots) refuse("An index can hold one … only.");
    const named = parts.length - (dots < 0 ? 0 : 1);
    if (named > tensor.shape.length) refuse(`Too many indices: ${named} for ${tensor.shape.length} axes.`);
    const whole = Array(tensor.shape.length - named).fill({ from: null, to: null, step: null });
    const full = dots < 0 ? [...parts, ...whole] : parts.toSpliced(dots, 1, ...whole);
    let offset = tensor.offset;
    const shape = [],
      strides = [];
    full.forEach((part, axis) => {
      const size = tensor.shape[axis],
        stride = tensor.strides[axis];
      if (typeof part === "number") {
        if (part < -size || part >= size) refuse(`Index ${part} is out of range for axis ${axis} of size ${size}.`);
        offset += (part < 0 ? part + size : part) * stride;
        return;
      }
      const step = part.step ?? 1;
      if (step < 1) refuse("A slice's step must be greater than zero in PyTorch; .flip makes a reversed copy.");
      const clip = (x, open) => (x === null ? open : Math.min(Math.max(x < 0 ? x + size : x, 0), size));
      const from = clip(part.from, 0),
        to = Math.max(clip(part.to, size), from);
      offset += from * stride;
      shape.push(Math.ceil((to - from) / step));
      strides.push(stride * step);
    });
    return { ...tensor, shape, strides, offset };
  },
};

// How many numbers at most, for the operations that take no list.
const MOST_NUMBERS = { t: 0, contiguous: 0, unsqueeze: 1, transpose: 2, flatten: 2 };

function checkArguments({ name, args, grouped }) {
  const most = MOST_NUMBERS[name];
  if (grouped && most !== undefined) refuse(`${name} takes plain numbers, not a list of them.`);
  if (args.length > most)
    refuse(
      `${name} takes ${most || "no"} number${most === 1 ? "" : "s"}${most > 1 ? " at most" : ""}; got ${args.length}.`,
    );
  if (!args.length && grouped && name === "squeeze") refuse("squeeze: an empty list names no axis.");
  if (!args.length && !grouped && ["view", "reshape", "permute", "expand"].includes(name))
    refuse(`${name} wants to know the ${name === "permute" ? "order of the axes" : "shape"}.`);
}

const WHOLE = /^-?\d{1,9}$/;

// ".transpose(0, 1).view(6)" → [{text, name, args}], or {error}. The text is written anew, in the one way that Python reads too.
function parseChain(text) {
  if (text.length > 1000) return { error: "At most 1000 characters here." };
  const steps = [];
  let rest = text.trim().replace(/^x(?=[.[])/, "");
  while (rest) {
    const call = /^\s*\.\s*([A-Za-z_]+)\s*\(\s*([^()]*|\([^()]*\))\s*\)/.exec(rest);
    const index = /^\s*\[([^\]]*)\]/.exec(rest);
    if (call) {
      const [whole, name, inside] = call;
      if (!Object.hasOwn(operations, name) || name === "index") {
        return {
          error: `.${name} is not in this lab. It knows ${Object.keys(operations)
            .filter((op) => op !== "index")
            .join(", ")} and [ ].`,
        };
      }
      const bracket = /^\((.*)\)$|^\[(.*)\]$/s.exec(inside.trim());
      const list = (bracket ? (bracket[1] ?? bracket[2]) : inside).trim();
      const words = list.replace(/,$/, "").trim();
      const args = words ? words.split(",").map((arg) => arg.trim()) : [];
      const bad = args.find((arg) => !WHOLE.test(arg));
      if (bad !== undefined) return { error: `.${name} takes whole numbers here; “${bad}” is not one.` };
      // (2) is a number, (2,) and [2] are lists of one.
      const grouped = Boolean(bracket) && (bracket[2] !== undefined || list.includes(",") || !args.length);
      const numbers = args.map(Number).join(", ");
      steps.push({
        text: `.${name}(${grouped ? `(${numbers}${args.length === 1 ? "," : ""})` : numbers})`,
        name,
        args: args.map(Number),
        grouped,
      });
      rest = rest.slice(whole.length);
    } else if (index) {
      const parts = [];
      for (const part of index[1].split(",").map((part) => part.trim())) {
        const ends = part.split(":").map((end) => end.trim());
        const number = (digits) => (digits === undefined || digits === "" ? null : +digits);
        if (WHOLE.test(part)) parts.push(+part);
        else if (part === "...") parts.push("...");
        else if ([2, 3].includes(ends.length) && ends.every((end) => !end || WHOLE.test(end)))
          parts.push({ from: number(ends[0]), to: number(ends[1]), step: number(ends[2]) });
        else return { error: `“${part}” is not an index; write 1, or 0:2, or ::2, or “...”.` };
      }
      const written = parts.map((part) =>
        part?.from === undefined
          ? part
          : [part.from, part.to, ...(part.step === null ? [] : [part.step])].map((end) => end ?? "").join(":"),
      );
      steps.push({ text: `[${written.join(", ")}]`, name: "index", args: parts });
      rest = rest.slice(index[0].length);
    } else {
      return {
        error: `This can be read up to “${rest.trim().slice(0, 12)}”. Write operations as .transpose(0, 1) or [:, 0].`,
      };
    }
    rest = rest.trimStart();
  }
  return { value: steps, text: steps.map((step) => step.text).join("") };
}

// Runs a chain from a fresh tensor: every tensor on the way, and the refusal that ended it, if one did.
function run(shape, steps) {
  const tensors = [arange(shape)];
  for (const [i, step] of steps.entries()) {
    try {
      checkArguments(step);
      const next = operations[step.name](tensors.at(-1), ...step.args);
      if (product(next.shape) > 128)
        refuse(`${step.name}: ${product(next.shape)} elements are more than this lab draws (128).`);
      tensors.push({ copied: false, ...next, copied: next.storage !== tensors.at(-1).storage });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { tensors, refused: i, reason: error.message };
    }
  }
  return { tensors };
}

// In words: the element that is chosen. To the next one storage goes on `by` places; `shared` elements read this one's place.
function elementInWords(index, number, place, by, shared) {
  const next =
    by === null
      ? "It is the last in reading order."
      : `The next in reading order is ${by === 0 ? "the same place" : `${Math.abs(by)} place${Math.abs(by) === 1 ? "" : "s"} ${by > 0 ? "further on" : "back"}`}.`;
  return `Element [${index.join(", ")}] is ${number}, at storage place ${place}. ${next}${shared > 1 ? ` ${shared} elements read this one place.` : ""}`;
}

const placeInWords = ({ offset, strides }, index, place) =>
  `offset ${offset}${index.map((i, axis) => ` + ${i}×${strides[axis]}`).join("")} = place ${place}`;

function render({ model, el }) {
  const traits = ["shape", "chain", "index"];
  const sizes = field(
    "Shape of x",
    "sizes, at most 64 elements",
    (text) => {
      const parsed = parseShape(text, { most: 64, axes: 5, least: 1 });
      const total = parsed.error ? 0 : product(parsed.value);
      return total > 64 ? { error: `${total} elements are more than this lab draws (64).` } : parsed;
    },
    (shape) => commit(model, { shape, index: [] }),
  );
  const chain = field("Operations on x", "such as .permute(2, 0, 1)[0].flatten()", parseChain, (steps) =>
    commit(model, { chain: steps.map((step) => step.text).join(""), index: [] }),
  );
  const buttons = h("div", { class: "tl-choice", role: "group", "aria-label": "Add an operation" });
  const steps = h("ol", { class: "tl-steps" });
  const reason = h("p", { class: "tl-refusal", role: "alert" });
  const grid = tensorGrid("The tensor. Arrow keys move through it, Page Up and Page Down change the block.", (index) =>
    commit(model, { index }),
  );
  const walk = h("input", {
    type: "range",
    min: 0,
    max: 0,
    step: 1,
    "aria-label": "Walk through the tensor in reading order",
    oninput: () => commit(model, { index: unravel(+walk.value, now.shape) }),
  });
  const strip = h("div", { class: "tl-strip tl-storage", role: "img" });
  const formula = h("p", { class: "tl-formula" });
  const { lab, status } = frame(
    { model, el },
    "One storage, many tensors",
    traits,
    h("div", { class: "tl-row" }, sizes.node, set(chain.node, { class: "tl-field tl-wide" })),
    buttons,
    steps,
    reason,
    h("p", { class: "tl-label" }, "The tensor, as you index it"),
    grid.node,
    h("p", { class: "tl-label" }, "Walk through it in reading order"),
    walk,
    h("p", { class: "tl-label" }, "Its storage, with the number of each place (outlined: the chosen element’s row)"),
    strip,
    room(formula),
  );

  let now,
    drawn = null,
    slots = [];

  function offer(tensor, text) {
    const add = (piece) =>
      h(
        "button",
        { type: "button", class: "tl-code", onclick: () => commit(model, { chain: text + piece, index: [] }) },
        `+ ${piece}`,
      );
    const count = tensor.shape.length;
    const pieces = [
      ...(count > 1 ? [`.transpose(${count - 2}, ${count - 1})`] : []),
      ...(count > 2 ? [".transpose(0, 1)"] : []),
      ".view(-1)",
      ".reshape(-1)",
      ".contiguous()",
      ...(count > 0 && tensor.shape.at(-1) > 1 ? ["[..., ::2]"] : []),
      ".unsqueeze(0)",
    ];
    const parsed = parseChain(text).value ?? [];
    const undo = h(
      "button",
      {
        type: "button",
        disabled: !parsed.length,
        onclick: () =>
          commit(model, {
            chain: parsed
              .slice(0, -1)
              .map((step) => step.text)
              .join(""),
            index: [],
          }),
      },
      "undo last",
    );
    // The button that was pressed is drawn anew: keep the keyboard where it was.
    const held = [...buttons.children].indexOf(el.getRootNode().activeElement);
    buttons.replaceChildren(...[...new Set(pieces)].map(add), undo);
    if (held >= 0) (buttons.children[held] ?? undo).focus();
  }

  function drawTensor() {
    const shape = model.get("shape"),
      text = model.get("chain");
    const key = `${shape}|${text}`;
    if (key === drawn) return;
    drawn = key;
    sizes.show(shape.join(", "));
    chain.show(text);
    const parsed = parseChain(text);
    const result = run(shape, parsed.value ?? []);
    now = result.tensors.at(-1);
    offer(now, text);
    steps.replaceChildren(
      ...result.tensors.map((tensor, i) =>
        h(
          "li",
          {},
          h(
            "code",
            { class: "tl-op" },
            i ? parsed.value[i - 1].text : `arange(${product(shape)}).view${shapeText(shape)}`,
          ),
          h("span", {}, `shape ${shapeText(tensor.shape)}`),
          h("span", {}, `strides ${shapeText(tensor.strides)}`),
          ...(tensor.offset ? [h("span", {}, `offset ${tensor.offset}`)] : []),
          h("span", {}, isContiguous(tensor) ? "contiguous" : "not contiguous"),
          h(
            "span",
            { class: "tl-note" },
            i === 0 ? `a storage of ${product(shape)}` : tensor.copied ? "a new storage: copied" : "the same storage",
          ),
        ),
      ),
    );
    if (result.reason)
      steps.append(
        h("li", { class: "tl-failed" }, h("code", { class: "tl-op" }, parsed.value[result.refused].text), "raises"),
      );
    say(reason, result.reason ?? "");
    const total = product(shape);
    grid.draw(now.shape, (index) => {
      const number = now.storage[placeOf(now, index)];
      return { text: number, hue: hueOf(number, total) };
    });
    set(walk, { max: Math.max(product(now.shape) - 1, 0), disabled: product(now.shape) < 2 });
    slots = now.storage.map((number, place) =>
      h("span", { class: "tl-cell", style: `--hue: ${hueOf(number, total)}`, "data-place": place }, number),
    );
    strip.replaceChildren(...slots);
    set(strip, { "aria-label": `Storage of ${now.storage.length} elements: ${now.storage.join(", ")}` });
  }

  function drawChoice() {
    const count = product(now.shape);
    if (!count) {
      say(formula, "");
      say(status, `Shape ${shapeText(now.shape)}: no elements. An axis of size 0 leaves nothing to read.`);
      slots.forEach((slot) => slot.classList.remove("tl-chosen", "tl-used"));
      return;
    }
    const wanted = model.get("index");
    const fits =
      wanted.length === now.shape.length &&
      wanted.every((i, axis) => Number.isInteger(i) && i >= 0 && i < now.shape[axis]);
    const index = fits ? wanted : now.shape.map(() => 0);
    const place = placeOf(now, index),
      flat = ravel(index, now.shape);
    const all = places(now);
    walk.value = flat;
    set(walk, { "aria-valuetext": `element ${flat + 1} of ${count}, storage place ${place}` });
    grid.mark(index, { "tl-used": all.flatMap((other, i) => (other === place && i !== flat ? [i] : [])) });
    const row = now.shape.length ? all.slice(flat - index.at(-1), flat - index.at(-1) + now.shape.at(-1)) : all;
    slots.forEach((slot, i) => {
      slot.classList.toggle("tl-chosen", i === place);
      slot.classList.toggle("tl-used", row.includes(i));
      slot.classList.toggle("tl-unread", !all.includes(i));
    });
    say(formula, placeInWords(now, index, place));
    say(
      status,
      elementInWords(
        index,
        now.storage[place],
        place,
        flat + 1 < count ? all[flat + 1] - place : null,
        all.filter((other) => other === place).length,
      ),
    );
    const last = now.shape.map((size) => size - 1),
      most = now.storage.length;
    reserve(formula, placeInWords(now, last, most));
    reserve(status, elementInWords(last, most, most, most, count - new Set(all).size));
  }

  return follow(model, traits, () => {
    drawTensor();
    drawChoice();
  });
}

export default { render };
