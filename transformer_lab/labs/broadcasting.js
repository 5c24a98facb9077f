// The broadcasting lab: two shapes, aligned from the right. Which axes stretch, what comes out, or why nothing does.

const MOST_DRAWN = 160,
  WIDEST_DRAWN = 8;

// How each axis of the result comes about, from the right: {a, b, out, role, why}. A missing axis is null.
function alignment(mode, a, b) {
  const columns = [];
  const add = (x, y, why) => {
    const [p, q] = [x ?? 1, y ?? 1];
    const fits = p === q || p === 1 || q === 1;
    const stretch = p === q ? "" : p === 1 ? "a" : "b";
    columns.unshift({
      a: x,
      b: y,
      out: fits ? (p === 1 ? q : p) : null,
      stretch: fits ? stretch : "",
      role: fits ? "batch" : "clash",
      why:
        why ??
        (!fits
          ? `${p} ≠ ${q}`
          : x == null
            ? "added to a"
            : y == null
              ? "added to b"
              : stretch
                ? `${stretch} stretches`
                : "equal"),
    });
  };
  const [left, right] = mode === "matmul" ? [a.slice(0, -2), b.slice(0, -2)] : [a, b];
  for (let axis = 1; axis <= Math.max(left.length, right.length); axis++)
    add(left[left.length - axis] ?? null, right[right.length - axis] ?? null);
  if (mode !== "matmul") return columns;
  const n = a.length > 1 ? a.at(-2) : null,
    m = b.length > 1 ? b.at(-1) : null;
  const [k, k2] = [a.at(-1) ?? null, (b.length > 1 ? b.at(-2) : b.at(-1)) ?? null];
  columns.push({ a: n, b: undefined, out: n, role: "kept", why: "rows of a" });
  columns.push({
    a: k,
    b: k2,
    out: undefined,
    role: k === k2 && k !== null ? "summed" : "clash",
    why: k === k2 ? "summed over" : `${k ?? "none"} ≠ ${k2 ?? "none"}`,
  });
  columns.push({ a: undefined, b: m, out: m, role: "kept", why: "columns of b" });
  return columns;
}

// The element of an operand that stands behind an element of the result: a stretched axis stays at 0.
const source = (index, shape) =>
  shape.map((size, axis) => (size === 1 ? 0 : index[index.length - shape.length + axis]));

const valueA = (mode, flat) => (mode === "matmul" ? flat + 1 : 10 * (flat + 1));
const valueB = (flat) => flat + 1;

// What one element of the result is made of: places in a and in b (flat), the sum in words, and the number.
function explain(mode, a, b, result, index) {
  if (mode !== "matmul") {
    const [ia, ib] = [source(index, a), source(index, b)];
    const [x, y] = [valueA(mode, ravel(ia, a)), valueB(ravel(ib, b))];
    return {
      usedA: [ravel(ia, a)],
      usedB: [ravel(ib, b)],
      value: x + y,
      words: `result[${index.join(", ")}] = a[${ia.join(", ")}] + b[${ib.join(", ")}] = ${x} + ${y} = ${x + y}`,
    };
  }
  const batch = index.slice(0, result.batch.length);
  const rest = index.slice(result.batch.length);
  const row = a.length === 1 ? 0 : rest[0],
    column = b.length === 1 ? 0 : rest.at(-1);
  const lead = (operand) => source(batch, operand.slice(0, -2));
  const usedA = [],
    usedB = [],
    terms = [];
  let value = 0;
  for (let k = 0; k < result.k; k++) {
    const ia = ravel([...lead(result.left), row, k], result.left),
      ib = ravel([...lead(result.right), k, column], result.right);
    usedA.push(ia);
    usedB.push(ib);
    terms.push(`${valueA(mode, ia)}×${valueB(ib)}`);
    value += valueA(mode, ia) * valueB(ib);
  }
  return {
    usedA,
    usedB,
    value,
    words: `result[${index.join(", ")}] = ${terms.join(" + ") || "an empty sum"} = ${value}`,
  };
}

function combine(mode, a, b) {
  return mode === "matmul" ? matmulShapes(a, b) : broadcastShapes(a, b);
}

function render({ model, el }) {
  const traits = ["a", "b", "mode", "index"];
  const modes = choice(
    "Operation",
    [
      ["elementwise", "a + b"],
      ["matmul", "a @ b"],
    ],
    (mode) => commit(model, { mode, index: [] }),
  );
  const operand = (name) =>
    field(`Shape of ${name}`, "such as 3, 1", parseShape, (shape) => commit(model, { [name]: shape, index: [] }));
  const fields = { a: operand("a"), b: operand("b") };
  const table = h("table", { class: "tl-align" });
  const verdict = h("span");
  // Elementwise, a and b are drawn stretched to the result's shape: pointing at them is pointing at the result.
  const point = (index) => {
    if (!result.reason && model.get("mode") !== "matmul") commit(model, { index });
  };
  const grids = {
    a: tensorGrid("Tensor a", point),
    b: tensorGrid("Tensor b", point),
    out: tensorGrid("The result. Arrow keys move through it.", (index) => commit(model, { index })),
  };
  for (const name of ["a", "b"]) set(grids[name].node, { tabindex: null, role: "img" });
  const verdictBox = room(verdict, "tl-verdict"),
    note = h("p", { class: "tl-note" });
  const signs = ["", "", "="].map((text) => h("span", { class: "tl-sign", "aria-hidden": "true" }, text));
  const parts = ["a", "b", "out"].map((name, i) =>
    h(
      "div",
      { class: "tl-part" },
      i ? signs[i] : "",
      h("div", {}, h("p", { class: "tl-label" }, name === "out" ? "result" : name), grids[name].node),
    ),
  );
  const picture = h("div", { class: "tl-picture" }, parts);
  const { lab, status } = frame(
    { model, el },
    "Two shapes, aligned from the right",
    traits,
    h("div", { class: "tl-row" }, modes.node),
    h("div", { class: "tl-row" }, fields.a.node, fields.b.node),
    h("div", { class: "tl-scroll" }, table),
    h("p", { class: "tl-note" }, "Drag a size sideways, or focus it and use the arrow keys."),
    verdictBox,
  );
  lab.append(picture, note); // last, for a picture grows with its tensors, and nothing else may move

  let drawn = null,
    result = null,
    drawable = false;

  function resize(name, axis, size) {
    const shape = [...model.get(name)];
    const clipped = Math.min(Math.max(size, 0), 1e9);
    if (shape[axis] === clipped) return;
    shape[axis] = clipped;
    commit(model, { [name]: shape, index: [] });
  }

  // A size to drag, or the 1 that broadcasting puts there.
  function operandCell(name, axis) {
    const arrow = h("span", { class: "tl-arrow" });
    if (axis === null) {
      const node = h("span", { class: "tl-size" });
      return { td: h("td", {}, node, arrow), node, arrow };
    }
    const size = () => model.get(name)[axis];
    let start = null;
    const node = h("span", {
      class: "tl-size tl-knob",
      role: "spinbutton",
      tabindex: "0",
      "aria-label": `${name}, axis ${axis}`,
      "aria-valuemin": 0,
      onkeydown: (event) => {
        const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
        if (step) {
          resize(name, axis, size() + step);
          event.preventDefault();
        }
      },
      onpointerdown: (event) => {
        start = { x: event.clientX, size: size() };
        node.setPointerCapture(event.pointerId);
        node.focus();
        event.preventDefault();
      },
      onpointermove: (event) => {
        // By hand a size goes from 1 to 8, what can be drawn; larger ones are typed.
        if (start)
          resize(
            name,
            axis,
            Math.min(Math.max(start.size + Math.round((event.clientX - start.x) / 18), 1), Math.max(8, start.size)),
          );
      },
      onpointerup: () => {
        start = null;
      },
      onpointercancel: () => {
        start = null;
      },
    });
    return { td: h("td", {}, node, arrow), node, arrow };
  }

  // The table is made anew only when axes come or go: an element that leaves the document, if only for a moment, loses the
  // finger that drags it.
  let cells,
    made = null;
  function makeTable(columns) {
    const next = { a: 0, b: 0 };
    const operand = (name, column) =>
      column[name] === undefined ? { td: h("td") } : operandCell(name, column[name] === null ? null : next[name]++);
    cells = columns.map((column) => ({
      a: operand("a", column),
      b: operand("b", column),
      result: h("td"),
      why: h("span"),
    }));
    const row = (name, nodes, kind = "") =>
      h("tr", { class: kind }, name ? h("th", { scope: "row" }, name) : h("td"), ...nodes);
    table.replaceChildren(
      row(
        "a",
        cells.map((cell) => cell.a.td),
      ),
      row(
        "b",
        cells.map((cell) => cell.b.td),
      ),
      row(
        "result",
        cells.map((cell) => cell.result),
        "tl-result",
      ),
      row(
        "",
        cells.map((cell) => h("td", {}, room(cell.why))),
      ),
    );
    for (const { why } of cells) reserve(why, "a stretches", "b stretches");
  }

  function drawTable(mode, a, b) {
    const columns = alignment(mode, a, b),
      kind = `${mode}|${a.length}|${b.length}`;
    if (kind !== made) makeTable(columns);
    made = kind;
    columns.forEach((column, i) => {
      for (const name of ["a", "b"]) {
        const { td, node, arrow } = cells[i][name];
        if (!node) continue;
        say(node, String(column[name] ?? (column.role === "batch" ? 1 : "—")));
        if (column[name] !== null) set(node, { "aria-valuenow": column[name] });
        say(arrow, column.stretch === name ? ` → ${column.out}` : "");
        td.className = column.stretch === name ? "tl-stretch" : column[name] === null ? "tl-added" : "";
      }
      say(cells[i].result, column.role === "clash" ? "✗" : column.role === "summed" ? "Σ" : String(column.out ?? "—"));
      say(cells[i].why, column.why);
      cells[i].why.closest("td").className = `tl-why tl-${column.role}`;
    });
  }

  // Room for all to which a drag of the sizes can lead.
  function makeRoom(mode, a, b) {
    const grown = (shape, size) => shape.map((now) => Math.max(now, size));
    const [large, other] = [grown(a, 8), grown(b, 8)],
      operator = mode === "matmul" ? "@" : "+";
    const clashes = [grown(b, 7), [...grown(b.slice(0, -2), 7), ...other.slice(-2)]].flatMap(
      (shape) => combine(mode, large, shape).reason ?? [],
    );
    const places = (shape) => shape.map(() => 7).join(", "),
      axes = Math.max(a.length, b.length),
      result = shapeText(Array(axes).fill(8));
    const sum =
      mode === "matmul"
        ? Array(8).fill(`${MOST_DRAWN}×${MOST_DRAWN}`).join(" + ")
        : `a[${places(a)}] + b[${places(b)}] = ${10 * MOST_DRAWN} + ${MOST_DRAWN}`;
    reserve(
      verdict,
      ...[...clashes.map((reason) => `raises: ${reason}.`), `→ ${result}`].map(
        (end) => `${shapeText(large)} ${operator} ${shapeText(other)} ${end}`,
      ),
    );
    reserve(
      status,
      `result[${Array(axes).fill(7).join(", ")}] = ${sum} = ${10 * MOST_DRAWN}. The product has shape ${result}.`,
      ...clashes.map((reason) => `These shapes do not fit: ${reason}.`),
    );
  }

  function drawShapes() {
    const [mode, a, b] = [model.get("mode"), model.get("a"), model.get("b")];
    const key = `${mode}|${a}|${b}`;
    if (key === drawn) return;
    drawn = key;
    modes.show(mode);
    fields.a.show(a.join(", "));
    fields.b.show(b.join(", "));
    say(signs[1], mode === "matmul" ? "@" : "+");
    result = combine(mode, a, b);
    drawTable(mode, a, b);
    const operator = mode === "matmul" ? "@" : "+";
    say(
      verdict,
      result.reason
        ? `${shapeText(a)} ${operator} ${shapeText(b)} raises: ${result.reason}.`
        : `${shapeText(a)} ${operator} ${shapeText(b)} → ${shapeText(result.shape)}`,
    );
    verdictBox.classList.toggle("tl-clash", Boolean(result.reason));
    makeRoom(mode, a, b);
    drawable = [a, b, result.shape ?? []].every(
      (shape) => product(shape) <= MOST_DRAWN && (shape.at(-1) ?? 1) <= WIDEST_DRAWN,
    );
    picture.hidden = !drawable;
    parts[2].hidden = Boolean(result.reason);
    say(
      note,
      drawable
        ? ""
        : `Too large to draw: the picture shows up to ${MOST_DRAWN} elements, and rows of up to ${WIDEST_DRAWN}. The rule above holds at any size.`,
    );
    if (!drawable) return;
    // Elementwise, the operands are drawn as they are used: stretched, with the repeated elements dashed.
    const stretched = (shape, value) => (index) => {
      const from = source(index, shape);
      const ghost =
        shape.some((size, axis) => size === 1 && index[index.length - shape.length + axis] > 0) ||
        index.slice(0, index.length - shape.length).some((i) => i > 0);
      return { text: value(ravel(from, shape)), hue: ghost ? null : hueOf(ravel(from, shape), product(shape)), ghost };
    };
    const plain = (shape, value) => (index, flat) => ({ text: value(flat), hue: hueOf(flat, product(shape)) });
    const draw = (name, shape, value) => {
      if (mode === "matmul" || result.reason) grids[name].draw(shape, plain(shape, value));
      else grids[name].draw(result.shape, stretched(shape, value));
      set(grids[name].node, { "aria-label": `Tensor ${name}, shape ${shapeText(shape)}` });
    };
    draw("a", a, (flat) => valueA(mode, flat));
    draw("b", b, valueB);
    if (result.reason) return;
    grids.out.draw(result.shape, (index, flat) => ({
      text: explain(mode, a, b, result, index).value,
      hue: hueOf(flat, product(result.shape)),
    }));
  }

  function drawChoice() {
    const [mode, a, b] = [model.get("mode"), model.get("a"), model.get("b")];
    if (result.reason) {
      grids.a.mark(null);
      grids.b.mark(null);
      say(status, `These shapes do not fit: ${result.reason}.`);
      return;
    }
    const kind = mode === "matmul" ? "The product" : "The sum";
    if (!drawable || !product(result.shape)) {
      say(
        status,
        `${kind} has shape ${shapeText(result.shape)}: ${product(result.shape).toLocaleString("en")} elements.`,
      );
      return;
    }
    const wanted = model.get("index");
    const fits = wanted.length === result.shape.length && wanted.every((i, axis) => i >= 0 && i < result.shape[axis]);
    const index = fits ? wanted : result.shape.map(() => 0);
    const { usedA, usedB, words } = explain(mode, a, b, result, index);
    grids.out.mark(index);
    if (mode === "matmul") {
      grids.a.mark(null, { "tl-used": usedA });
      grids.b.mark(null, { "tl-used": usedB });
    } else {
      // a and b stand in the result's shape: the chosen place is the same in all three, and a repeated element's own is outlined.
      const own = (shape) => index.map((i, axis) => ((shape[axis - index.length + shape.length] ?? 1) === 1 ? 0 : i));
      grids.a.mark(index, { "tl-used": [ravel(own(a), result.shape)] });
      grids.b.mark(index, { "tl-used": [ravel(own(b), result.shape)] });
    }
    say(status, `${words}. ${kind} has shape ${shapeText(result.shape)}.`);
  }

  return follow(model, traits, () => {
    drawShapes();
    drawChoice();
  });
}

export default { render };
