// The broadcasting lab: two shapes, aligned from the right. Which axes stretch, what comes out, or why nothing does.

const MOST_DRAWN = 160;

// How each axis of the result comes about, from the right: {a, b, out, role, why}. A missing axis is null.
function alignment(mode, a, b) {
  const columns = [];
  const add = (x, y, why) => {
    const [p, q] = [x ?? 1, y ?? 1];
    const fits = p === q || p === 1 || q === 1;
    const stretch = p === q ? "" : p === 1 ? "a" : "b";
    columns.unshift({
      a: x, b: y, out: fits ? (p === 1 ? q : p) : null, stretch: fits ? stretch : "", role: fits ? "batch" : "clash",
      why: why ?? (!fits ? `${p} ≠ ${q}` : x == null ? "a gets this axis" : y == null ? "b gets this axis" : stretch ? `${stretch} stretches` : "equal"),
    });
  };
  const [left, right] = mode === "matmul" ? [a.slice(0, -2), b.slice(0, -2)] : [a, b];
  for (let axis = 1; axis <= Math.max(left.length, right.length); axis++) add(left[left.length - axis] ?? null, right[right.length - axis] ?? null);
  if (mode !== "matmul") return columns;
  const n = a.length > 1 ? a.at(-2) : null, m = b.length > 1 ? b.at(-1) : null;
  const [k, k2] = [a.at(-1) ?? null, (b.length > 1 ? b.at(-2) : b.at(-1)) ?? null];
  columns.push({ a: n, b: undefined, out: n, role: "kept", why: "rows of a" });
  columns.push({ a: k, b: k2, out: undefined, role: k === k2 && k !== null ? "summed" : "clash", why: k === k2 ? "summed over" : `${k ?? "none"} ≠ ${k2 ?? "none"}` });
  columns.push({ a: undefined, b: m, out: m, role: "kept", why: "columns of b" });
  return columns;
}

// The element of an operand that stands behind an element of the result: a stretched axis stays at 0.
const source = (index, shape) => shape.map((size, axis) => (size === 1 ? 0 : index[index.length - shape.length + axis]));

const valueA = (mode, flat) => (mode === "matmul" ? flat + 1 : 10 * (flat + 1));
const valueB = (flat) => flat + 1;

// What one element of the result is made of: places in a and in b (flat), the sum in words, and the number.
function explain(mode, a, b, result, index) {
  if (mode !== "matmul") {
    const [ia, ib] = [source(index, a), source(index, b)];
    const [x, y] = [valueA(mode, ravel(ia, a)), valueB(ravel(ib, b))];
    return { usedA: [ravel(ia, a)], usedB: [ravel(ib, b)], value: x + y,
      words: `result[${index.join(", ")}] = a[${ia.join(", ")}] + b[${ib.join(", ")}] = ${x} + ${y} = ${x + y}` };
  }
  const batch = index.slice(0, result.batch.length);
  const rest = index.slice(result.batch.length);
  const row = a.length === 1 ? 0 : rest[0], column = b.length === 1 ? 0 : rest.at(-1);
  const lead = (operand) => source(batch, operand.slice(0, -2));
  const usedA = [], usedB = [], terms = [];
  let value = 0;
  for (let k = 0; k < result.k; k++) {
    const ia = ravel([...lead(result.left), row, k], result.left), ib = ravel([...lead(result.right), k, column], result.right);
    usedA.push(ia);
    usedB.push(ib);
    terms.push(`${valueA(mode, ia)}×${valueB(ib)}`);
    value += valueA(mode, ia) * valueB(ib);
  }
  return { usedA, usedB, value, words: `result[${index.join(", ")}] = ${terms.join(" + ") || "an empty sum"} = ${value}` };
}

function combine(mode, a, b) {
  return mode === "matmul" ? matmulShapes(a, b) : broadcastShapes(a, b);
}

function render({ model, el }) {
  const traits = ["a", "b", "mode", "index"];
  const modes = choice("Operation", [["elementwise", "a + b"], ["matmul", "a @ b"]], (mode) => commit(model, { mode, index: [] }));
  const operand = (name) => field(`Shape of ${name}`, parseShape, (shape) => commit(model, { [name]: shape, index: [] }));
  const fields = { a: operand("a"), b: operand("b") };
  const table = h("table", { class: "tl-align" });
  const verdict = h("p", { class: "tl-verdict" });
  const grids = { a: tensorGrid("Tensor a", () => {}), b: tensorGrid("Tensor b", () => {}),
    out: tensorGrid("The result. Arrow keys move through it.", (index) => commit(model, { index })) };
  for (const name of ["a", "b"]) set(grids[name].node, { tabindex: null, role: "img" });
  const note = h("p", { class: "tl-note" });
  const part = (text, grid) => h("div", {}, h("p", { class: "tl-label" }, text), grid.node);
  const sign = h("span", { class: "tl-sign", "aria-hidden": "true" });
  const picture = h("div", { class: "tl-picture" }, part("a", grids.a), sign, part("b", grids.b), h("span", { class: "tl-sign", "aria-hidden": "true" }, "="), part("result", grids.out));
  const { status } = frame({ model, el }, "Two shapes, aligned from the right", traits,
    h("div", { class: "tl-row" }, modes.node), h("div", { class: "tl-row" }, fields.a.node, fields.b.node),
    h("div", { class: "tl-scroll", tabindex: "0", role: "region", "aria-label": "The shapes, aligned" }, table),
    h("p", { class: "tl-note" }, "Drag a size sideways, or focus it and use the arrow keys."), verdict, picture, note);

  let drawn = null, result = null, drawable = false;

  function resize(name, axis, size) {
    const shape = [...model.get(name)];
    const clipped = Math.min(Math.max(size, 0), 1e9);
    if (shape[axis] === clipped) return;
    shape[axis] = clipped;
    commit(model, { [name]: shape, index: [] });
  }

  // One size that can be dragged. It is made once for each axis and lives through redrawing, so that a drag is not lost.
  const knobs = {};
  function knob(name, axis) {
    const key = `${name}${axis}`;
    if (knobs[key]) return knobs[key];
    const size = () => model.get(name)[axis];
    let start = null;
    return (knobs[key] = h("span", {
      class: "tl-knob", role: "spinbutton", tabindex: "0", "aria-label": `${name}, axis ${axis}`, "aria-valuemin": 0,
      onkeydown: (event) => {
        const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
        if (step) { resize(name, axis, size() + step); event.preventDefault(); }
      },
      onpointerdown: (event) => { start = { x: event.clientX, size: size() }; knobs[key].setPointerCapture(event.pointerId); knobs[key].focus(); event.preventDefault(); },
      onpointermove: (event) => {
        // By hand a size goes from 1 to 8, what can be drawn; larger ones are typed.
        if (start) resize(name, axis, Math.min(Math.max(start.size + Math.round((event.clientX - start.x) / 18), 1), Math.max(8, start.size)));
      },
      onpointerup: () => { start = null; },
      onpointercancel: () => { start = null; },
    }));
  }

  function drawTable(columns, a, b) {
    const offset = { a: 0, b: 0 };
    const cells = (name, shape) => columns.map((column) => {
      if (column[name] === undefined) return h("td", { class: "tl-none" });
      if (column[name] === null) return h("td", { class: "tl-added" }, column.role === "batch" ? "1" : "—");
      const node = knob(name, offset[name]++);
      say(node, String(column[name]));
      set(node, { "aria-valuenow": column[name] });
      return h("td", { class: column.stretch === name ? "tl-stretch" : "" }, node, column.stretch === name ? h("span", { class: "tl-arrow" }, ` → ${column.out}`) : "");
    });
    const row = (name, list, kind = "") => h("tr", { class: kind }, h("th", { scope: "row" }, name), ...list);
    const focused = document.activeElement?.classList?.contains("tl-knob") ? document.activeElement : null;
    table.replaceChildren(
      row("a", cells("a", a)), row("b", cells("b", b)),
      row("result", columns.map((column) => h("td", {}, column.role === "clash" ? "✗" : column.role === "summed" ? "Σ" : column.out ?? (column.role === "kept" ? "—" : ""))), "tl-result"),
      row("", columns.map((column) => h("td", { class: `tl-why tl-${column.role}` }, column.why)), "tl-whys"));
    if (focused?.isConnected) focused.focus();
  }

  function drawShapes() {
    const [mode, a, b] = [model.get("mode"), model.get("a"), model.get("b")];
    const key = `${mode}|${a}|${b}`;
    if (key === drawn) return;
    drawn = key;
    modes.show(mode);
    fields.a.show(a.join(", "));
    fields.b.show(b.join(", "));
    say(sign, mode === "matmul" ? "@" : "+");
    result = combine(mode, a, b);
    drawTable(alignment(mode, a, b), a, b);
    const operator = mode === "matmul" ? "@" : "+";
    say(verdict, result.reason ? `${shapeText(a)} ${operator} ${shapeText(b)} raises: ${result.reason}.` : `${shapeText(a)} ${operator} ${shapeText(b)} → ${shapeText(result.shape)}`);
    verdict.classList.toggle("tl-clash", Boolean(result.reason));
    const sizes = [a, b, result.shape ?? []].map(product);
    drawable = !result.reason && Math.max(...sizes) <= MOST_DRAWN && [a, b, result.shape].every((shape) => (shape.at(-1) ?? 1) <= 12);
    picture.hidden = !drawable;
    say(note, drawable || result.reason ? "" : `Too large to draw: the picture shows up to ${MOST_DRAWN} elements, and rows of up to 12. The rule above holds at any size.`);
    if (!drawable) return;
    // Elementwise, the operands are drawn as they are used: stretched, with the repeated elements dashed.
    const stretched = (shape, value) => (index) => {
      const from = source(index, shape);
      const ghost = shape.some((size, axis) => size === 1 && index[index.length - shape.length + axis] > 0) || index.slice(0, index.length - shape.length).some((i) => i > 0);
      return { text: value(ravel(from, shape)), hue: ghost ? null : hueOf(ravel(from, shape), product(shape)), ghost };
    };
    const plain = (shape, value) => (index, flat) => ({ text: value(flat), hue: hueOf(flat, product(shape)) });
    const draw = (name, shape, value) => {
      if (mode === "matmul") grids[name].draw(shape, plain(shape, value));
      else grids[name].draw(result.shape, stretched(shape, value));
      set(grids[name].node, { "aria-label": `Tensor ${name}, shape ${shapeText(shape)}` });
    };
    draw("a", a, (flat) => valueA(mode, flat));
    draw("b", b, valueB);
    grids.out.draw(result.shape, (index, flat) => ({ text: explain(mode, a, b, result, index).value, hue: hueOf(flat, product(result.shape)) }));
  }

  function drawChoice() {
    const [mode, a, b] = [model.get("mode"), model.get("a"), model.get("b")];
    if (result.reason) { say(status, `These shapes do not fit: ${result.reason}.`); return; }
    const kind = mode === "matmul" ? "The product" : "The sum";
    if (!drawable || !product(result.shape)) { say(status, `${kind} has shape ${shapeText(result.shape)}: ${product(result.shape).toLocaleString("en")} elements.`); return; }
    const wanted = model.get("index");
    const fits = wanted.length === result.shape.length && wanted.every((i, axis) => i >= 0 && i < result.shape[axis]);
    const index = fits ? wanted : result.shape.map(() => 0);
    const { usedA, usedB, words } = explain(mode, a, b, result, index);
    grids.out.mark(index);
    // Elementwise, a and b stand in the result's shape, and the chosen place is the same in all three.
    grids.a.mark(mode === "matmul" ? null : index, mode === "matmul" ? { "tl-used": usedA } : {});
    grids.b.mark(mode === "matmul" ? null : index, mode === "matmul" ? { "tl-used": usedB } : {});
    say(status, `${words}. ${kind} has shape ${shapeText(result.shape)}.`);
  }

  return follow(model, traits, () => { drawShapes(); drawChoice(); });
}

export default { render };
