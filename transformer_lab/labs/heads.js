// The heads lab: the attention weights of every head of a layer, and the way of a tensor into heads and back.

// Weights arrive as whole numbers of two bytes, in base64, and are unpacked once for all views of a lab.
const unpacked = new WeakMap();
function unpack(packed) {
  if (!unpacked.has(packed)) {
    const bytes = atob(packed.data);
    const weights = new Float32Array(bytes.length / 2);
    for (let i = 0; i < weights.length; i++)
      weights[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
    const [layers, heads, queries, keys] = packed.shape;
    // The rows of one head: row i holds what query i pays to each key.
    const rows = (layer, head) =>
      Array.from({ length: queries }, (_, i) => {
        const start = ((layer * heads + head) * queries + i) * keys;
        return weights.subarray(start, start + keys);
      });
    unpacked.set(packed, { layers, heads, queries, keys, rows });
  }
  return unpacked.get(packed);
}

// 256 steps of the course's colours of weights: for a cell of a page, and as the four bytes of a pixel.
const TINTS = Array.from({ length: 256 }, (_, level) => shade(BLUES, level / 255));
const PIXELS = TINTS.map(({ background }) => Uint8Array.of(...background.match(/\d+/g), 255)).map(
  (bytes) => new Uint32Array(bytes.buffer)[0],
);
const levelOf = (weight) => Math.round(Math.min(Math.max(weight, 0), 1) * 255);

// How well a head fits each of four patterns, from 0 to 1; null where the tokens give no occasion.
//   previous    mean weight on the token before, over all queries but the first
//   same        mean weight on keys that hold the query's own token, itself among them
//   induction   mean weight on the tokens that came after the query's token earlier on, over queries whose token came earlier
//   first       mean weight on the first token, over all queries but the first
function patternScores(rows, tokens) {
  const sums = { previous: [0, 0], same: [0, 0], induction: [0, 0], first: [0, 0] };
  const add = (name, weight) => {
    sums[name][0] += weight;
    sums[name][1] += 1;
  };
  tokens.forEach((token, i) => {
    const row = rows[i];
    if (i > 0) {
      add("previous", row[i - 1]);
      add("first", row[0]);
    }
    let same = 0,
      after = 0,
      earlier = false;
    for (let j = 0; j < tokens.length; j++) {
      if (tokens[j] !== token) continue;
      same += row[j];
      if (j < i) {
        earlier = true;
        after += row[j + 1];
      }
    }
    add("same", same);
    if (earlier) add("induction", after);
  });
  return Object.fromEntries(Object.entries(sums).map(([name, [sum, count]]) => [name, count ? sum / count : null]));
}

const PATTERNS = { previous: "previous token", same: "same token", induction: "induction", first: "first token" };
const CLEAR = 0.5; // from here on a pattern gives a head its name

// The pattern that a head fits best, if it fits one clearly.
function bestPattern(scores) {
  const [name, score] = Object.entries(scores).reduce(
    (best, next) => ((next[1] ?? 0) > best[1] ? next : best),
    [null, 0],
  );
  return score >= CLEAR ? { name, score } : null;
}

// The keys of a row, heaviest first.
const heaviest = (row) => [...row.keys()].sort((a, b) => row[b] - row[a] || a - b);

// A token as it can be read: spaces and line ends made visible.
const legible = (token) => token.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥") || "∅";
// A token in a sentence, with its place where it stands more than once.
const quoted = (tokens, i) =>
  `“${legible(tokens[i])}”${tokens.indexOf(tokens[i]) === tokens.lastIndexOf(tokens[i]) ? "" : ` [${i}]`}`;

// One row of weights in words.
function describeRow(row, who, keyTokens) {
  const order = heaviest(row),
    sum = row.reduce((a, b) => a + b, 0);
  const share = (j) => `${quoted(keyTokens, j)} (${row[j].toFixed(2)})`;
  const top = row[order[0]],
    low = row[order.at(-1)];
  if (top === 0) return `${who} looks at nothing: all its weights are zero.`;
  const ending = ` Its weights sum to ${sum.toFixed(2)}.`;
  if (row.length === 1 || top > 0.995) return `${who} looks at ${share(order[0])} alone.${ending}`;
  if (top - low < 0.02)
    return `${who} looks at all ${row.length} keys about alike (${(sum / row.length).toFixed(2)} each).${ending}`;
  const next = order.slice(1, 3).filter((j) => row[j] >= 0.05);
  return `${who} looks most at ${share(order[0])}${next.length ? `, then at ${next.map(share).join(" and ")}` : ""}.${ending}`;
}

// The way into heads and back, on a small example. Numbers keep their identity: number t·d_model + f is feature f of token t.
// For each step its shape and, for each place in reading order, which number stands there; in scores, which two meet.
const EXAMPLE = { seq: 4, heads: 2, width: 3 };
function journey({ seq, heads, width }, splitByView, mergeByView) {
  const model = heads * width;
  const x = Array.from({ length: seq * model }, (_, id) => id);
  const swap = (ids, [a, b, c]) =>
    x.map((_, flat) => {
      const [j, i, k] = unravel(flat, [b, a, c]);
      return ids[ravel([i, j, k], [a, b, c])];
    });
  const cut = splitByView ? [heads, seq, width] : [seq, heads, width],
    split = [heads, seq, width];
  const inHeads = splitByView ? x : swap(x, cut);
  const scores = Array.from({ length: heads * seq * seq }, (_, flat) => {
    const [head, i, j] = unravel(flat, [heads, seq, seq]);
    return [inHeads[ravel([head, i, 0], split)], inHeads[ravel([head, j, 0], split)]];
  });
  const back = mergeByView ? inHeads : swap(inHeads, split);
  const rows = [seq, model],
    table = [heads, seq, seq],
    joined = mergeByView ? split : [seq, heads, width];
  const step = (shape, ids) => ({ shape, ids });
  return [
    step(rows, x),
    step(rows, x),
    step(cut, x),
    step(split, inHeads),
    step(table, scores),
    step(table, scores),
    step(split, inHeads),
    step(joined, back),
    step(rows, back),
    step(rows, back),
  ];
}

// The tokens, first to last, whose numbers land in a head when view alone splits.
const readByHead = (head, heads, seq) => [Math.floor((head * seq) / heads), Math.floor(((head + 1) * seq - 1) / heads)];

// Each step: its code, its shape in axis words, and what happens in it.
function steps(splitByView, mergeByView, seq) {
  const rows = ["batch", seq, "d_model"],
    cut = ["batch", seq, "heads", "d_head"],
    split = ["batch", "heads", seq, "d_head"];
  const table = ["batch", "heads", "q_len", "k_len"];
  const code = (text, shape, words, wrong = false) => ({ text, shape, words, wrong });
  return [
    code("x", rows, "One row for each token, d_model features in each."),
    code(
      "q = q_proj(x)",
      rows,
      "A linear layer makes each token’s query from all its features. k_proj and v_proj make keys and values in the same way. A row is still a token.",
    ),
    splitByView
      ? code(
          `q = q.view(batch, heads, ${seq}, d_head)`,
          split,
          "The shape is right, and view has dealt the numbers out in reading order. Head 0 gets the first half of the sentence, each token in two pieces, and takes every piece for a token.",
          true,
        )
      : code(
          `q = q.view(batch, ${seq}, heads, d_head)`,
          cut,
          "Each token’s row is cut into one piece per head. No number moves.",
        ),
    splitByView
      ? code(
          "(no transpose)",
          split,
          "The shape is right already, so nothing warns you. A dashed cell lies in a row that attention takes for another token’s.",
          true,
        )
      : code(
          "q = q.transpose(1, 2)",
          split,
          "The heads step in front: each head now has its own matrix, with one row for every token.",
        ),
    code(
      "scores = q @ k.transpose(2, 3) / √d_head",
      table,
      splitByView
        ? "Head 0 compares pieces of a and b with one another. It never meets c and d."
        : "Each head compares its own queries with its own keys: a·b is a’s query with b’s key.",
    ),
    code(
      "weights = scores.softmax(dim=-1)",
      table,
      splitByView
        ? "Rows sum to one, and belong to the wrong tokens."
        : "Every row sums to one. These are the heatmaps above.",
    ),
    code(
      "out = weights @ v",
      split,
      splitByView
        ? "Each row is the answer to a piece of a token, blended from pieces of two tokens."
        : "Each head blends its own values: one row for every token again.",
    ),
    mergeByView
      ? code("(no transpose)", split, "Left out: the heads still stand in front.", true)
      : code(
          "out = out.transpose(1, 2)",
          ["batch", seq, "heads", "d_head"],
          "The token steps in front again, and what its heads found stands together.",
        ),
    code(
      `out = out.reshape(batch, ${seq}, d_model)`,
      rows,
      mergeByView
        ? splitByView
          ? "Every letter is back in its row, as if nothing had happened. The numbers are wrong all the same: no head ever saw the whole sentence."
          : "The shape is right. Row a holds what head 0 found for a and for b; nothing that head 1 found for a is in it."
        : splitByView
          ? "Row a holds answers to pieces of a and of c."
          : "The pieces of a token become one row. The transpose has left them scattered in storage, so view would raise; reshape copies.",
      mergeByView,
    ),
    code(
      "y = out_proj(out)",
      rows,
      splitByView || mergeByView
        ? "The last layer mixes each row. No shape has shown that anything went wrong."
        : "The last layer mixes what the heads found. Up to here, no number of one head has met one of another.",
    ),
  ];
}

const EACH_ROW = "Each row is one token’s look at all tokens, and each head has a table of its own.";
const weighed = (place, weight) => `weights[${place.join(", ")}] = ${weight.toFixed(4)}`;

// A group of which one is chosen: a single stop for Tab, and the arrow keys inside.
function radios(label, props, nodes, pick) {
  let chosen = null;
  const show = (i) => {
    if (i === chosen) return;
    if (chosen !== null) set(nodes[chosen], { "aria-checked": "false", tabindex: -1 });
    set(nodes[i], { "aria-checked": "true", tabindex: 0 });
    chosen = i;
  };
  nodes.forEach((node, i) =>
    set(node, { type: "button", role: "radio", "aria-checked": "false", tabindex: -1, onclick: () => pick(i) }),
  );
  const node = h(
    "div",
    {
      role: "radiogroup",
      "aria-label": label,
      ...props,
      onkeydown: (event) => {
        const to = {
          ArrowRight: chosen + 1,
          ArrowDown: chosen + 1,
          ArrowLeft: chosen - 1,
          ArrowUp: chosen - 1,
          Home: 0,
          End: nodes.length - 1,
        }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = Math.min(Math.max(to, 0), nodes.length - 1);
        pick(next);
        nodes[next].focus();
      },
    },
    nodes,
  );
  return { node, show };
}

// A mark is as high as a row and as wide as a column or the whole; moved by its own size, nothing is laid out anew.
const rowsDown = (i) => `translateY(${100 * i}%)`;

// A matrix of weights as pixels; the style sheet stretches them.
function heatmap(queries, keys) {
  const node = h("canvas", { width: keys, height: queries, "aria-hidden": "true" });
  const context = node.getContext("2d", { alpha: false });
  const image = context.createImageData(keys, queries);
  const pixels = new Uint32Array(image.data.buffer);
  const draw = (rows) => {
    rows.forEach((row, i) => {
      for (let j = 0; j < keys; j++) pixels[i * keys + j] = PIXELS[levelOf(row[j])];
    });
    context.putImageData(image, 0, 0);
  };
  return { node, draw };
}

// The chosen head, large: pointing at a cell chooses who looks (its row) and what is looked at (its column).
function sheet(queries, keys, names, choose) {
  const map = heatmap(queries, keys);
  const band = h("div", { class: "tl-band" }),
    spot = h("div", { class: "tl-spot" });
  let at = [0, 0];
  const node = h(
    "div",
    {
      class: "tl-sheet",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "heatmap",
      "aria-label": "Weights of the chosen head. Up and Down choose who looks, Left and Right what is looked at.",
    },
    map.node,
    band,
    spot,
  );
  const clip = ([i, j]) => [Math.min(Math.max(i, 0), queries - 1), Math.min(Math.max(j, 0), keys - 1)];
  const pointed = (event) => {
    const box = map.node.getBoundingClientRect();
    choose(
      ...clip([
        Math.floor(((event.clientY - box.top) / box.height) * queries),
        Math.floor(((event.clientX - box.left) / box.width) * keys),
      ]),
    );
  };
  set(node, {
    onpointermove: (event) => {
      if (event.pointerType === "mouse" || event.buttons) pointed(event);
    },
    onpointerdown: pointed,
    onkeydown: (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by) return;
      event.preventDefault();
      choose(...clip([at[0] + by[0], at[1] + by[1]]));
    },
  });
  const label = (token) => h("span", {}, h("span", {}, legible(token)));
  const rows = names[0].map(label),
    columns = names[1].map(label);
  const show = (i, j) => {
    for (const label of [rows[at[0]], columns[at[1]]]) set(label, { class: false });
    at = [i, j];
    for (const label of [rows[i], columns[j]]) set(label, { class: "tl-on" });
    band.style.transform = rowsDown(i);
    spot.style.transform = `translate(${100 * j}%, ${100 * i}%)`;
  };
  const ratio = Math.min(Math.max(keys / queries, 0.6), 4);
  const whole = h(
    "div",
    {
      class: `tl-map${Math.max(queries, keys) > 20 ? " tl-dense" : ""}`,
      style: `--ratio: ${ratio}; --keys: ${keys}; --high: ${100 / queries}%; --wide: ${100 / keys}%`,
    },
    h("span", { class: "tl-across tl-note" }, "k_len (what is looked at)"),
    h("span", { class: "tl-down tl-note" }, "q_len (who looks)"),
    h("div", { class: "tl-columns", "aria-hidden": "true" }, columns),
    h("div", { class: "tl-rows", "aria-hidden": "true" }, rows),
    node,
  );
  return { node: whole, draw: map.draw, show };
}

// A token with the weight it gets. The shade lies inside: a browser restyles a span in a third of the time of a button.
function chip(tag, token) {
  const weight = new Text(),
    text = legible(token);
  const shade = h(
    "span",
    { class: "tl-shade" },
    h("span", { class: text.length > 6 ? "tl-token tl-long" : "tl-token" }, text),
    h("small", {}, weight),
  );
  let shown = {};
  const show = (value) => {
    const next = { ...TINTS[levelOf(value)], data: value >= 0.005 ? value.toFixed(2) : " " };
    if (next.background !== shown.background) shade.style.backgroundColor = next.background;
    if (next.color !== shown.color) shade.style.color = next.color;
    if (next.data !== shown.data) weight.data = next.data;
    shown = next;
  };
  return { node: h(tag, { class: "tl-chip" }, shade), show };
}

function render({ model, el }) {
  const traits = ["weights", "layer", "head", "query", "key"],
    pictured = ["stage", "cell", "split_by_view", "merge_by_view"];
  const tokens = model.get("tokens"),
    keyTokens = model.get("key_tokens");
  const { layers, heads, queries, keys } = unpack(model.get("weights"));
  const own = JSON.stringify(tokens) === JSON.stringify(keyTokens); // self-attention: those who look are those who are looked at
  const pick = (changes) => commit(model, changes);

  // The heads of a layer, small.
  const list = Array.from({ length: layers }, (_, i) => i);
  const layerSlider = h("input", {
    type: "range",
    min: 0,
    max: layers - 1,
    step: 1,
    "aria-label": "Layer",
    oninput: () => pick({ layer: +layerSlider.value }),
  });
  const layerButtons =
    layers > 12
      ? null
      : choice(
          "Layer",
          list.map((i) => [i, String(i)]),
          (layer) => pick({ layer }),
        );
  const layerName = h("span", { class: "tl-code" });
  const minis = Array.from({ length: heads }, (_, i) => {
    const map = heatmap(queries, keys),
      looks = h("span", { class: "tl-looks" }),
      badge = h("span", { class: "tl-badge" }),
      band = h("span", { class: "tl-band" });
    const node = h(
      "button",
      { class: "tl-mini" },
      h("span", { class: "tl-frame" }, map.node, band),
      h("span", { class: "tl-caption" }, `head ${i}`),
      badge,
      looks,
    );
    return { node, map, band, looks, badge };
  });
  const miniGroup = radios(
    "Head",
    { class: "tl-minis", style: `--ratio: ${Math.min(Math.max(keys / queries, 0.5), 4)}; --high: ${100 / queries}%` },
    minis.map((mini) => mini.node),
    (head) => pick({ head }),
  );

  // The chosen head, large.
  const large = sheet(queries, keys, [tokens, keyTokens], (query, key) => pick({ query, key }));
  const chosenName = h("span", {}),
    reading = h("p"),
    share = h("p");
  const scoreRows = Object.entries(PATTERNS).map(([name, text]) => {
    const value = h("td"),
      bar = h("span", { class: "tl-meter" });
    return { name, value, bar, node: h("tr", {}, h("th", { scope: "row" }, text), h("td", {}, bar), value) };
  });
  const scoreTable = h(
    "div",
    {},
    h("p", { class: "tl-label" }, "How much it fits a pattern"),
    h(
      "table",
      { class: "tl-fits" },
      h(
        "tbody",
        {},
        scoreRows.map((row) => row.node),
      ),
    ),
  );

  // The sentence: who looks, and what is looked at.
  const askers = tokens.map((token) => chip("button", token));
  const looked = own ? askers : keyTokens.map((token) => chip("span", token));
  const askerGroup = radios(
    "Who looks",
    { class: "tl-strip tl-chips" },
    askers.map((asker) => asker.node),
    (query) => pick({ query, key: heaviest(now.rows[query])[0] }),
  );
  const words = h("p", { role: "status", "aria-live": "polite" });

  // The stage bar.
  const stageNodes = Array.from({ length: 10 }, () => {
    const code = h("code"),
      shape = h("span", { class: "tl-shape" }),
      sizes = h("span", { class: "tl-sizes" });
    return { code, shape, sizes, node: h("button", { class: "tl-stage" }, code, shape, sizes) };
  });
  const stageGroup = radios(
    "Steps of multi-head attention",
    { class: "tl-stages" },
    stageNodes.map((stage) => stage.node),
    (stage) => pick({ stage }),
  );
  const toggle = (trait, text) =>
    h("button", { type: "button", "aria-pressed": "false", onclick: () => pick({ [trait]: !model.get(trait) }) }, text);
  const toggles = {
    split_by_view: toggle("split_by_view", "view alone to split"),
    merge_by_view: toggle("merge_by_view", "view alone to merge"),
  };
  let column = 0; // in a table of scores: which key
  const grids = ["Before this step", "After this step"].map((text) => {
    const grid = tensorGrid(`${text}. Arrow keys follow a number.`, (index) => {
      const id = grid.step.ids[ravel(index, grid.step.shape)];
      if (Array.isArray(id)) column = index[2];
      pick({ cell: [id].flat()[0] });
    });
    grid.name = h("span", {});
    grid.shape = h("span", { class: "tl-code" });
    grid.whole = h("div", {}, h("p", { class: "tl-label" }, grid.name, " ", grid.shape), grid.node);
    return grid;
  });
  const lesson = h("p");

  const { status } = frame(
    { model, el },
    "Every head of a layer",
    [...traits.slice(1), ...pictured],
    layers > 1
      ? [h("p", { class: "tl-label" }, "Layer ", layerName), layerButtons ? layerButtons.node : layerSlider]
      : [],
    h("p", { class: "tl-label" }, "Its heads: choose one"),
    miniGroup.node,
    h(
      "div",
      { class: "tl-halves" },
      h("div", {}, h("p", { class: "tl-label" }, chosenName), large.node),
      h(
        "div",
        {},
        own ? scoreTable : [],
        h("p", { class: "tl-label" }, "The weight that is pointed at"),
        room(reading, "tl-reading"),
        room(share, "tl-note"),
      ),
    ),
    h(
      "p",
      { class: "tl-label" },
      own ? "Choose who looks (outlined); the shade says how much each token is looked at" : "Choose who looks",
    ),
    askerGroup.node,
    own
      ? []
      : [
          h("p", { class: "tl-label" }, "What it looks at"),
          h(
            "div",
            { class: "tl-strip tl-chips" },
            looked.map((token) => token.node),
          ),
        ],
    room(words, "tl-status"),
    h("p", { class: "tl-label tl-second" }, "The way into heads and back: choose a step"),
    stageGroup.node,
    h(
      "div",
      { class: "tl-row tl-toggles" },
      h("span", { class: "tl-note" }, "What would happen with"),
      h("div", { class: "tl-choice", role: "group", "aria-label": "A mistake" }, Object.values(toggles)),
    ),
    room(lesson, "tl-lesson"),
    h(
      "p",
      { class: "tl-note" },
      "In small, and without batch: tokens a to d, d_model 6, 2 heads, d_head 3. b3 is feature 3 of token b.",
    ),
    h(
      "div",
      { class: "tl-row tl-before-after" },
      grids.map((grid) => grid.whole),
    ),
  );

  // Room for the longest row in words, of the longest tokens; for what each step is about; and for a number that is followed.
  const quotes = (names) => names.map((_, i) => quoted(names, i));
  const asker = widest(words, quotes(tokens)),
    target = widest(words, quotes(keyTokens));
  reserve(
    words,
    `Layer ${layers - 1}, head ${heads - 1}: ${asker} looks most at ${target} (0.00), then at ${target} (0.00) and ${target} (0.00). Its weights sum to 0.00.`,
  );
  reserve(reading, weighed([layers - 1, heads - 1, queries - 1, keys - 1], 0));
  reserve(share, `What ${asker} takes from ${target}.`);
  const seq = own ? "seq" : "q_len",
    bars = [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ].map((mistakes) => steps(...mistakes, seq));
  reserve(lesson, ...new Set(bars.flatMap((bar) => bar.map((step) => step.words))));

  let now = {},
    drawn = {};
  const fits = new Map(); // scores of heads that have been on show

  function drawHeads() {
    const packed = model.get("weights"),
      { rows } = unpack(packed);
    const [layer, head, query, key] = ["layer", "head", "query", "key"].map((name) => model.get(name));
    const newLayer = drawn.packed !== packed || drawn.layer !== layer;
    if (drawn.packed !== packed) fits.clear();
    if (newLayer) {
      now.layer = minis.map((_, i) => rows(layer, i));
      if (!fits.has(layer)) fits.set(layer, own ? now.layer.map((each) => patternScores(each, tokens)) : null);
      say(layerName, layers > 12 ? `${layer} of 0 to ${layers - 1}` : "");
      layerButtons?.show(layer);
      layerSlider.value = layer;
      set(layerSlider, { "aria-valuetext": `layer ${layer}` });
      minis.forEach(({ map, badge }, i) => {
        map.draw(now.layer[i]);
        const best = own && bestPattern(fits.get(layer)[i]);
        say(badge, best ? `${best.name} ${best.score.toFixed(2)}` : " ");
      });
    }
    if (newLayer || drawn.head !== head) {
      now.rows = now.layer[head];
      large.draw(now.rows);
      miniGroup.show(head);
      say(chosenName, `Layer ${layer}, head ${head}`);
      if (own)
        for (const { name, value, bar } of scoreRows) {
          const score = fits.get(layer)[head][name];
          say(value, score === null ? "–" : score.toFixed(2));
          bar.style.setProperty("--size", score ?? 0);
        }
    }
    if (newLayer || drawn.query !== query) {
      minis.forEach(({ band, looks }, i) => {
        band.style.transform = rowsDown(query);
        const row = now.layer[i][query],
          best = row.indexOf(row.reduce((a, b) => Math.max(a, b)));
        say(looks, `${row[best].toFixed(2)} ${legible(keyTokens[best])}`);
      });
    }
    if (newLayer || drawn.head !== head || drawn.query !== query) {
      askerGroup.show(query);
      looked.forEach((token, j) => token.show(now.rows[query][j]));
      say(words, `Layer ${layer}, head ${head}: ${describeRow(now.rows[query], quoted(tokens, query), keyTokens)}`);
    }
    large.show(query, key);
    say(reading, weighed([layer, head, query, key], now.rows[query][key]));
    say(share, `What ${quoted(tokens, query)} takes from ${quoted(keyTokens, key)}.`);
    drawn = { packed, layer, head, query };
  }

  function drawStages() {
    const [stage, cell, splitByView, mergeByView] = pictured.map((name) => model.get(name));
    const { seq: length, heads: pieces, width } = EXAMPLE;
    const bar = steps(splitByView, mergeByView, seq),
      way = journey(EXAMPLE, splitByView, mergeByView);
    const whole = model.get("d_model");
    const sizes = {
      batch: 1,
      seq: queries,
      q_len: queries,
      k_len: keys,
      heads,
      d_model: whole ?? "d_model",
      d_head: whole ? whole / heads : "d_head",
    };
    bar.forEach(({ text, shape, wrong }, i) => {
      const { node, ...parts } = stageNodes[i];
      say(parts.code, text);
      say(parts.shape, shapeText(shape));
      say(parts.sizes, shapeText(shape.map((axis) => sizes[axis])));
      node.classList.toggle("tl-wrong", wrong);
    });
    stageGroup.show(stage);
    for (const [trait, button] of Object.entries(toggles)) set(button, { "aria-pressed": String(model.get(trait)) });
    const letter = (token) => String.fromCharCode(97 + token);
    const tokenOf = (id) => Math.floor(id / (pieces * width));
    const nameOf = (id) =>
      Array.isArray(id)
        ? id.map((one) => letter(tokenOf(one))).join("·")
        : `${letter(tokenOf(id))}${id % (pieces * width)}`;
    // Whether the first of the axes before the last is the tokens' (rows, or one block for each), or the heads'.
    const byHead = (shape) => shape.length === 3 && shape[0] === pieces;
    const rowOf = (shape, index) => index[byHead(shape) ? 1 : 0];
    const astray = ({ shape, ids }, flat) => {
      const id = ids[flat],
        index = unravel(flat, shape);
      return Array.isArray(id)
        ? tokenOf(id[0]) !== index[1] || tokenOf(id[1]) !== index[2]
        : tokenOf(id) !== rowOf(shape, index);
    };
    // A transpose that is left out changes nothing: what stands before it is then what the view began with.
    const start = stage - (bar[stage].wrong && stage !== 2 && stage !== 8 ? 2 : 1);
    [way[start], way[stage]].forEach((step, i) => {
      const grid = grids[i];
      grid.whole.hidden = !step;
      if (!step) return;
      const { shape, ids } = step,
        at = i ? stage : start;
      const chosen = ids.findIndex((id) =>
        Array.isArray(id) ? Math.floor(id[0] / width) === Math.floor(cell / width) : id === cell,
      );
      const key = `${at} ${splitByView} ${mergeByView}`;
      say(grid.name, at < 1 ? "x" : at < 4 ? "q" : at < 5 ? "scores" : at < 6 ? "weights" : at < 9 ? "out" : "y");
      say(grid.shape, shapeText(shape));
      if (grid.key !== key) {
        grid.draw(
          shape,
          (index, flat) => ({ text: nameOf(ids[flat]), hue: hueOf(tokenOf([ids[flat]].flat()[0]), length) }),
          {
            block: (index) => (byHead(shape) ? `head ${index[0]}` : letter(index[0])),
            row: (index) => (byHead(shape) || shape.length === 2 ? letter(rowOf(shape, index)) : `head ${index[1]}`),
          },
        );
        grid.key = key;
        grid.step = step;
      }
      const index = unravel(chosen, shape);
      if (Array.isArray(ids[0])) index[2] = Math.min(column, shape[2] - 1);
      grid.mark(index, { "tl-astray": ids.flatMap((_, flat) => (astray(step, flat) ? [flat] : [])) });
    });
    const step = way[stage],
      place = step.ids.findIndex((id) => id === cell);
    const lost = step.ids.filter((_, flat) => astray(step, flat)).length;
    say(lesson, bar[stage].words);
    const [from, to] = readByHead(0, heads, queries);
    const onYours =
      splitByView && heads > 1
        ? ` On your sentence, head 0 of ${heads} would read ${quoted(tokens, from)}${to > from ? ` to ${quoted(tokens, to)}` : " alone"}.`
        : "";
    const real = stage > 1 && stage < 7 ? onYours : "";
    const astrays = splitByView || mergeByView,
      most = product([pieces, length, length]);
    reserve(
      status,
      `${EACH_ROW}${onYours}`,
      `${most} of ${most} cells compare other tokens than their row and column say.${onYours}`,
      `d0, feature 0 of token d, stands at [0, 0, 0]: token d, piece 0.${astrays ? ` That row is taken for token d. ${most} of ${most} numbers are in the wrong row.` : ""}${onYours}`,
    );
    if (place < 0) {
      say(
        status,
        `${lost ? `${lost} of ${step.ids.length} cells compare other tokens than their row and column say.` : EACH_ROW}${real}`,
      );
      return;
    }
    const index = unravel(place, step.shape),
      row = rowOf(step.shape, index);
    const where =
      step.shape.length === 2
        ? `row ${letter(row)}`
        : byHead(step.shape)
          ? `head ${index[0]}, row ${letter(row)}`
          : `token ${letter(row)}, piece ${index[1]}`;
    say(
      status,
      `${nameOf(cell)}, feature ${cell % (pieces * width)} of token ${letter(tokenOf(cell))}, stands at [${index.join(", ")}]: ${where}.` +
        `${astray(step, place) ? ` That row is taken for token ${letter(row)}.` : ""}${lost ? ` ${lost} of ${step.ids.length} numbers are in the wrong row.` : ""}${real}`,
    );
  }

  const ends = [follow(model, traits, drawHeads), follow(model, pictured, drawStages)];
  return () => ends.forEach((end) => end());
}

export default { render };
