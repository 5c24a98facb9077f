// The lookup lab: a query among keys, and the blend of their values. From a dictionary to an average by one slider.

const REACH = 2; // the plane goes from −2 to 2,
const EDGE = 2.5; // and is drawn with room for the names of points at its border
const COLDEST = 0.01,
  HOTTEST = 100; // the slider's ends: a hard lookup, and a uniform average
const ROOT_D = Math.SQRT2; // the plane has d_head = 2 features

// How well a query matches a key: their dot product, or minus half their squared distance.
function similarity(kind, query, key) {
  return kind === "dot" ? dot(query, key) : -0.5 * query.reduce((sum, x, i) => sum + (x - key[i]) ** 2, 0);
}

function lookup({ query, keys, values, temperature, kind }) {
  const scores = keys.map((key) => similarity(kind, query, key));
  const weights = softmax(scores.map((score) => score / temperature));
  return { scores, weights, output: blend(weights, values) };
}

const sliderOf = (temperature) => Math.round((1000 * Math.log(temperature / COLDEST)) / Math.log(HOTTEST / COLDEST));
const temperatureOf = (slider) => COLDEST * (HOTTEST / COLDEST) ** (slider / 1000);
const within = (x) => Math.min(Math.max(Math.round(x * 100) / 100, -REACH), REACH);
const tidy = (x) => (Math.abs(x) < 0.005 ? "0.00" : x.toFixed(2)).replace("-", "−");
const pair = (point) => `(${point.map(tidy).join(", ")})`;

function parsePoint(text) {
  const parts = text
    .replace(/[()[\]]/g, " ")
    .replaceAll("−", "-")
    .trim()
    .split(/\s*,\s*|\s+/);
  const value = parts.map(Number);
  if (parts.length !== 2 || parts.includes("") || value.some((x) => !Number.isFinite(x)))
    return { error: "Write a point as two numbers: 1, 0.5." };
  if (value.some((x) => Math.abs(x) > REACH)) return { error: `The plane goes from −${REACH} to ${REACH} both ways.` };
  return { value, text: value.map((x) => String(within(x))).join(", ") };
}

// A plane with axes. Screen y grows downwards, the plane's upwards.
function plane(label) {
  const node = h("svg", {
    viewBox: `${-EDGE} ${-EDGE} ${2 * EDGE} ${2 * EDGE}`,
    class: "tl-plane",
    role: "group",
    "aria-label": label,
  });
  node.append(
    h("rect", { x: -EDGE, y: -EDGE, width: 2 * EDGE, height: 2 * EDGE, class: "tl-ground" }),
    h("line", { x1: -EDGE, x2: EDGE, y1: 0, y2: 0, class: "tl-axis" }),
    h("line", { x1: 0, x2: 0, y1: -EDGE, y2: EDGE, class: "tl-axis" }),
    ...[-REACH, REACH].flatMap((at) => [
      h("text", { x: at, y: 0.2, class: "tl-tick" }, `${at}`.replace("-", "−")),
      h("text", { x: -0.15, y: 0.06 - at, class: "tl-tick" }, `${at}`.replace("-", "−")),
    ]),
  );
  const locate = (event) => {
    const box = node.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width - 0.5) * 2 * EDGE,
      (0.5 - (event.clientY - box.top) / box.height) * 2 * EDGE,
    ];
  };
  return { node, locate };
}

// A point that can be dragged, and moved by the arrow keys (with Shift in larger steps).
function handle(locate, name, read, write, shape) {
  const node = h(
    "g",
    {
      class: "tl-handle",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "point, moved with the arrow keys",
    },
    h("circle", { r: 0.28, class: "tl-touch" }),
    ...shape,
  );
  let grip = null; // from the pointer to the point, while it is held
  set(node, {
    onpointerdown: (event) => {
      const at = locate(event);
      grip = read().map((x, i) => x - at[i]);
      node.setPointerCapture(event.pointerId);
      node.focus();
      event.preventDefault();
    },
    ontouchstart: (event) => event.preventDefault(), // in a drawing, touch-action alone does not keep the page still
    onpointermove: (event) => {
      if (grip) write(locate(event).map((x, i) => within(x + grip[i])));
    },
    onpointerup: () => {
      grip = null;
    },
    onpointercancel: () => {
      grip = null;
    },
    onkeydown: (event) => {
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!by) return;
      const step = event.shiftKey ? 0.5 : 0.1;
      write(read().map((x, i) => within(x + by[i] * step)));
      event.preventDefault();
    },
  });
  const show = (point) =>
    set(node, { transform: `translate(${point[0]} ${-point[1]})`, "aria-label": `${name} at ${pair(point)}` });
  return { node, show };
}

function render({ model, el }) {
  const traits = ["query", "key", "value", "temperature", "similarity"];
  const labels = model.get("labels");
  const count = labels.length;
  const left = plane("Query and keys. Drag the query or a key, or focus one and use the arrow keys.");
  const right = plane("Values and the blended value. Drag a value, or focus one and use the arrow keys.");
  const moved = (name, i, point) => commit(model, { [name]: model.get(name).map((row, j) => (j === i ? point : row)) });
  const each = (make) => labels.map((_, i) => make(i));

  const rays = each((i) => h("line", { class: "tl-ray", style: `--hue: ${hueOf(i, count)}` }));
  const threads = each((i) => h("line", { class: "tl-ray", style: `--hue: ${hueOf(i, count)}` }));
  const name = (i, dy) => h("text", { class: "tl-name", y: dy }, labels[i]);
  const dots = each((i) => h("circle", { r: 0.11, class: "tl-point", style: `--hue: ${hueOf(i, count)}` }));
  const squares = each((i) =>
    h("rect", { x: -0.11, y: -0.11, width: 0.22, height: 0.22, class: "tl-point", style: `--hue: ${hueOf(i, count)}` }),
  );
  const keys = each((i) =>
    handle(
      left.locate,
      `Key ${labels[i]}`,
      () => model.get("key")[i],
      (point) => moved("key", i, point),
      [dots[i], name(i, -0.2)],
    ),
  );
  const values = each((i) =>
    handle(
      right.locate,
      `Value ${labels[i]}`,
      () => model.get("value")[i],
      (point) => moved("value", i, point),
      [squares[i], name(i, -0.2)],
    ),
  );
  const arrow = h("line", { class: "tl-query-line" });
  const query = handle(
    left.locate,
    "Query",
    () => model.get("query"),
    (point) => commit(model, { query: point }),
    [h("circle", { r: 0.13, class: "tl-query" }), h("text", { class: "tl-name tl-strong", y: 0.38 }, "query")],
  );
  const blended = h(
    "g",
    {},
    h("path", { d: "M0 -0.22 L0.22 0 L0 0.22 L-0.22 0 Z", class: "tl-output" }),
    h("text", { class: "tl-name tl-strong", y: 0.42 }, "output"),
  );
  left.node.append(...rays, arrow, ...keys.map((key) => key.node), query.node);
  right.node.append(...threads, ...values.map((value) => value.node), blended);

  const typed = field(
    "Query",
    `two numbers from −${REACH} to ${REACH}`,
    parsePoint,
    (point) => commit(model, { query: point.map(within) }),
    { inputmode: "text" },
  );
  const kinds = choice(
    "Similarity",
    [
      ["dot", "dot product"],
      ["distance", "distance"],
    ],
    (similarity) => commit(model, { similarity }),
  );
  const slider = h("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    "aria-label": "Temperature",
    oninput: () => commit(model, { temperature: temperatureOf(+slider.value) }),
  });
  const rootMark = h(
    "button",
    {
      type: "button",
      class: "tl-root",
      style: `--at: ${sliderOf(ROOT_D) / 10}`,
      onclick: () => commit(model, { temperature: ROOT_D }),
    },
    "√d",
  );
  const reading = h("span", { class: "tl-code" });
  const rows = each((i) => {
    const cells = {
      score: h("td"),
      divided: h("td"),
      bar: h("span", { class: "tl-bar", style: `--hue: ${hueOf(i, count)}` }),
      weight: h("span", { class: "tl-weight" }),
    };
    return {
      ...cells,
      node: h(
        "tr",
        {},
        h("th", { scope: "row" }, labels[i]),
        cells.score,
        cells.divided,
        h("td", { class: "tl-bars" }, cells.bar, cells.weight),
      ),
    };
  });
  const scoreHead = h("th", { scope: "col" });
  const table = h(
    "table",
    { class: "tl-scores" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "key"),
        scoreHead,
        h("th", { scope: "col" }, "÷ τ"),
        h("th", { scope: "col" }, "weight"),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => row.node),
    ),
  );
  const { status } = frame(
    { model, el },
    "A lookup that matches every key a little",
    traits,
    h(
      "div",
      { class: "tl-planes" },
      h("div", {}, h("p", { class: "tl-label" }, "query and keys: drag the query"), left.node),
      h("div", {}, h("p", { class: "tl-label" }, "values and their blend"), right.node),
    ),
    h("p", { class: "tl-label" }, "temperature τ: ", room(reading)),
    h("div", { class: "tl-slider" }, slider, rootMark),
    h("div", { class: "tl-ends tl-note" }, h("span", {}, "hard lookup"), h("span", {}, "uniform average")),
    h("div", { class: "tl-row" }, typed.node, h("div", {}, h("p", { class: "tl-note" }, "match by"), kinds.node)),
    h("div", { class: "tl-scroll" }, table),
  );

  const long = widest(status, labels),
    far = pair([-REACH, -REACH]);
  reserve(reading, "0.000 = √d, the usual scale");
  reserve(
    status,
    `${long} weighs most, 0.00. The output is ${far}.`,
    `${long} weighs 0.00: a lookup that finds one key. The output is ${far}.`,
    `All weights are about 1/${count}: the output ${far} is about the plain mean of the values.`,
  );

  function draw() {
    const state = {
      query: model.get("query"),
      keys: model.get("key"),
      values: model.get("value"),
      temperature: model.get("temperature"),
      kind: model.get("similarity"),
    };
    const { scores, weights, output } = lookup(state);
    const { query: q, temperature } = state;
    typed.show(q.map((x) => String(within(x))).join(", "));
    kinds.show(state.kind);
    slider.value = sliderOf(temperature);
    const marked = Math.abs(temperature / ROOT_D - 1) < 0.006;
    const shown = temperature.toFixed(temperature < 0.1 ? 3 : temperature < 10 ? 2 : 0);
    say(reading, `${shown}${marked ? " = √d, the usual scale" : ""}`);
    set(slider, { "aria-valuetext": `${shown}${marked ? ", the square root of d" : ""}` });
    set(rootMark, { "aria-pressed": String(marked) });
    set(arrow, { x1: 0, y1: 0, x2: q[0], y2: -q[1], visibility: state.kind === "dot" ? "visible" : "hidden" });
    query.show(q);
    say(scoreHead, state.kind === "dot" ? "q · k" : "−½ distance²");
    labels.forEach((_, i) => {
      const width = 0.015 + 0.13 * weights[i],
        strength = 0.15 + 0.85 * weights[i];
      keys[i].show(state.keys[i]);
      values[i].show(state.values[i]);
      set(rays[i], {
        x1: q[0],
        y1: -q[1],
        x2: state.keys[i][0],
        y2: -state.keys[i][1],
        "stroke-width": width,
        opacity: strength,
      });
      set(threads[i], {
        x1: output[0],
        y1: -output[1],
        x2: state.values[i][0],
        y2: -state.values[i][1],
        "stroke-width": width,
        opacity: strength,
      });
      say(rows[i].score, tidy(scores[i]));
      say(rows[i].divided, tidy(scores[i] / temperature));
      say(rows[i].weight, weights[i].toFixed(2));
      rows[i].bar.style.setProperty("--size", weights[i]);
    });
    set(blended, { transform: `translate(${output[0]} ${-output[1]})` });
    const best = weights.indexOf(Math.max(...weights));
    const even = Math.max(...weights) - Math.min(...weights) < 0.02;
    say(
      status,
      even
        ? `All weights are about 1/${count}: the output ${pair(output)} is about the plain mean of the values.`
        : `${labels[best]} weighs ${weights[best] > 0.99 ? "" : "most, "}${weights[best].toFixed(2)}${weights[best] > 0.99 ? ": a lookup that finds one key" : ""}. The output is ${pair(output)}.`,
    );
  }
  return follow(model, traits, draw);
}

export default { render };
