// The normalization lab: a cube of values (batch, seq, d_model). Which entries share a mean and a variance, and which move when
// another one is changed. All norms are one function; they differ in the axes that share.

const NORMS = [
  {
    name: "batch norm",
    dims: [0, 1],
    center: true,
    note: "in training; afterwards running statistics take their place",
  },
  { name: "layer norm", dims: [2], center: true, note: "each token is on its own" },
  { name: "instance norm", dims: [1], center: true, note: "PyTorch's channels are the features" },
  { name: "group norm", dims: [1, 2], center: true, grouped: true, note: "PyTorch's channels are the features" },
  { name: "RMSNorm", dims: [2], center: false, note: "layer norm that leaves the mean where it is" },
];
const AXES = ["batch", "seq", "d_model"];
const MOVED = 0.001; // a change that shows
const REACH = 100; // the largest value

// Who shares with whom: one number per entry, equal where entries share. An axis that shares is left out of account.
function sharing(shape, dims, groups) {
  const wide = shape[2] / groups,
    ids = [];
  const own = (i, axis) => (!dims.includes(axis) ? i : axis === 2 ? i - (i % wide) : 0);
  for (let b = 0; b < shape[0]; b++) {
    for (let s = 0; s < shape[1]; s++) {
      for (let f = 0; f < shape[2]; f++) ids.push(ravel([own(b, 0), own(s, 1), own(f, 2)], shape));
    }
  }
  return ids;
}

// The one function. `square` is the mean square of what is left after centring: the variance, where the mean was taken off.
function standardize(x, shape, { dims, groups, center, eps }) {
  const ids = sharing(shape, dims, groups);
  const average = (numbers) => {
    const sum = ids.map(() => 0),
      count = ids.map(() => 0);
    ids.forEach((id, i) => {
      sum[id] += numbers[i];
      count[id]++;
    });
    return ids.map((id) => sum[id] / count[id]);
  };
  const mean = average(x);
  const left = center ? x.map((value, i) => value - mean[i]) : x;
  const square = average(left.map((value) => value * value));
  return { ids, mean, square, values: left.map((value, i) => value / Math.sqrt(square[i] + eps)) };
}

// What the reader has made of x, one item per entry: the values with zeros where a sentence has ended, whether they are
// such padding, and whether their token is touched, in any of its features.
function disturbed(x, original, shape, lengths) {
  const [, seq, features] = shape,
    token = (flat) => Math.floor(flat / features);
  const padding = x.map((_, flat) => token(flat) % seq >= lengths[Math.floor(token(flat) / seq)]);
  const changed = new Set();
  x.forEach((value, flat) => {
    if (padding[flat] || value !== original[flat]) changed.add(token(flat));
  });
  return {
    x: x.map((value, flat) => (padding[flat] ? 0 : value)),
    padding,
    touched: x.map((_, flat) => changed.has(token(flat))),
  };
}

// Which entries of untouched tokens one norm moves, and how many of how many: in sentences with a touched token, and in others.
function leaks(original, { x, touched }, shape, norm) {
  const now = standardize(x, shape, norm).values,
    before = standardize(original, shape, norm).values;
  const delta = now.map((value, flat) => value - before[flat]);
  const moved = delta.map((by, flat) => !touched[flat] && Math.abs(by) >= MOVED);
  const near = { moved: 0, all: 0 },
    far = { moved: 0, all: 0 },
    size = shape[1] * shape[2];
  for (let start = 0; start < x.length; start += size) {
    const count = touched.slice(start, start + size).includes(true) ? near : far;
    for (let flat = start; flat < start + size; flat++) {
      if (touched[flat]) continue;
      count.all++;
      if (moved[flat]) count.moved++;
    }
  }
  return { delta, moved, near, far };
}

// The smallest number of groups that is more than one, where there is any.
const fewest = (features) =>
  Array.from({ length: features }, (_, i) => i + 1).find((n) => features % n === 0 && n > 1) ?? 1;

// What the axes mean, in words: what has statistics of its own, and, unless it is all there is, over what they are taken.
function inWords(dims, groups) {
  const grouped = groups > 1 && dims.includes(2);
  const words = {
    "": ["entry", "itself alone"],
    0: ["token place and feature", "all sentences"],
    1: ["sentence and feature", "all its tokens"],
    2: ["token", "all its features"],
    "01": ["feature", "all tokens of all sentences"],
    "02": ["token place", "all sentences and features"],
    12: ["sentence", "all its tokens and features"],
    "012": ["the whole cube"],
  };
  const inGroups = {
    2: ["token and group of features", "the group"],
    "02": ["token place and group of features", "the group in all sentences"],
    12: ["sentence and group of features", "the group in all its tokens"],
    "012": ["group of features", "the group in all tokens of all sentences"],
  };
  return (grouped ? inGroups : words)[dims.join("")];
}

// The others with whom an entry shares, in words.
function others(dims, groups) {
  const features = groups > 1 ? "the features of its group" : "all features";
  return (
    {
      0: "its feature and token place in every sentence",
      1: "its feature in every token of its sentence",
      2: groups > 1 ? "the features of its group in its token" : "the features of its token",
      "01": "its feature in every token of every sentence",
      "02": `${features} at its token place in every sentence`,
      12: `${features} in every token of its sentence`,
      "012": `${features} in every token of every sentence`,
    }[dims.join("")] ?? ""
  );
}

// The norm as a line of code.
function asCode(shape, dims, groups, center) {
  if (!dims.length) return center ? "x − x" : "x / |x|";
  const grouped = groups > 1 && dims.includes(2);
  const of = grouped ? `x.view(${[shape[0], shape[1], groups, shape[2] / groups].join(", ")})` : "x";
  const axes = shapeText(dims.map((dim) => (grouped && dim === 2 ? 3 : dim)));
  return center ? `standardize(${of}, dims=${axes})` : `x / sqrt(mean(${of}², dims=${axes}) + eps)`;
}

// Numbers as text.
const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));
const short = (x) => minus(x.toFixed(Math.abs(x) < 9.95 ? 1 : 0)); // what fits a cell
const plain = (x) => minus(Number.isInteger(x) ? String(x) : x.toFixed(2));
const places = (x, digits) => minus(x.toFixed(digits));
const signed = (x) => (Number(x.toFixed(2)) === 0 ? "≈0" : (x > 0 ? "+" : "") + places(x, Math.abs(x) >= 10 ? 1 : 2));

// What is shared, by how many, and what becomes of one entry.
function ruleInWords({ dims, groups, center }) {
  const [each, over] = inWords(dims, groups);
  return `One ${center ? "mean and variance" : "mean square"} for ${over ? `each ${each}, over ${over}` : each}.`;
}
function entryInWords(index, value, { dims, groups, center }, [mean, deviation], sharers, normalized, by, counted) {
  const shares = center
    ? `its mean ${places(mean, 2)} and standard deviation ${places(deviation, 2)}`
    : `its root mean square ${places(deviation, 2)}`;
  const rest = sharers ? `${sharers} other${sharers > 1 ? "s" : ""}: ${others(dims, groups)}` : "no other entry";
  const [count, all] = counted || [];
  return (
    `x[${index.join(", ")}] = ${value} shares ${shares} with ${rest}. Normalized it is ${places(normalized, 2)}${by ? `, moved by ${by}` : ""}.` +
    (counted
      ? ` Of ${all} entries of other tokens, ${count || "none"} ha${count === 1 || !count ? "s" : "ve"} moved.`
      : "")
  );
}
const movedInWords = (count, all) => `normalized: ${count} of ${all} moved in other tokens`;
const QUESTIONS = ["drag a slider: which norms move other tokens?", "entries of other tokens that moved"];

// How far the slider goes, and its step: to five times the largest value, rounded up to one digit.
function sliderRange(original) {
  const far = 5 * Math.max(...original.map(Math.abs)) || 10;
  const unit = 10 ** Math.floor(Math.log10(far));
  const reach = Math.min(Number((Math.ceil(far / unit - 1e-9) * unit).toPrecision(1)), REACH);
  return { reach, step: Number((unit / 10).toPrecision(1)) };
}

function render({ model, el }) {
  const traits = ["x", "lengths", "index", "dims", "n_groups", "center"];
  const original = model.get("original"),
    eps = model.get("eps");
  const shape = [original.length, original[0].length, original[0][0].length];
  const [batch, seq, features] = shape;
  const clean = original.flat(2);
  const { reach, step } = sliderRange(clean);
  const brightest = Math.max(...clean.map(Math.abs)) || 1;

  // Which axes share.
  const named = (i) => ({
    dims: NORMS[i].dims,
    center: NORMS[i].center,
    n_groups: NORMS[i].grouped ? fewest(features) : 1,
  });
  const norms = choice(
    "Norm",
    NORMS.map(({ name }, i) => [i, name]),
    (i) => commit(model, named(i)),
  );
  const axes = AXES.map((name, axis) =>
    h(
      "button",
      {
        type: "button",
        onclick: () => {
          const dims = model.get("dims");
          commit(model, { dims: dims.includes(axis) ? dims.filter((dim) => dim !== axis) : [...dims, axis].sort() });
        },
      },
      name,
    ),
  );
  const divisors = Array.from({ length: features }, (_, i) => i + 1).filter((n) => features % n === 0);
  const groupChoice = choice(
    "Groups of features",
    divisors.map((n) => [n, String(n)]),
    (n_groups) => commit(model, { n_groups }),
  );
  const centring = h(
    "button",
    { type: "button", onclick: () => commit(model, { center: !model.get("center") }) },
    "subtract the mean",
  );
  const code = h("span", { class: "tl-code" }),
    note = h("span", { class: "tl-note" }),
    rule = h("p", {}, code, note),
    words = h("p");

  // The cube, before and after. Hovering shows for a moment; pressing and the arrow keys choose.
  let pointed = null,
    hovering = false;
  const point = (index) => {
    if (hovering) {
      pointed = index;
      draw();
    } else {
      pointed = null;
      commit(model, { index });
      draw();
    }
  };
  const cube = (label) => {
    const grid = tensorGrid(label, point);
    grid.draw(shape, () => ({ text: "" }), { block: ([sentence]) => `sentence ${sentence}` });
    const cells = [...grid.node.querySelectorAll(".tl-cell")];
    for (const block of grid.node.querySelectorAll(".tl-block")) {
      block.before(
        h(
          "div",
          { class: "tl-columns", style: `--columns: ${features}` },
          Array.from({ length: features }, (_, i) => h("span", {}, `f${i}`)),
        ),
      );
    }
    return { grid, cells };
  };
  const before = cube("x, the values. Arrow keys move through them."),
    after = cube("The normalized values");
  set(after.grid.node, { tabindex: null, role: "img", "aria-roledescription": null });
  const verdict = h("span");

  // What disturbs.
  const reading = h("p"),
    padReading = h("p", { class: "tl-label" });
  const slider = h("input", {
    type: "range",
    min: -reach,
    max: reach,
    step,
    "aria-label": "Value of the chosen entry",
    oninput: () => {
      const [b, s, f] = model.get("index");
      commit(model, {
        x: model
          .get("x")
          .map((rows, i) =>
            i !== b
              ? rows
              : rows.map((row, j) => (j !== s ? row : row.map((value, k) => (k !== f ? value : +slider.value)))),
          ),
      });
    },
  });
  const padSlider = h("input", {
    type: "range",
    min: 0,
    max: seq - 1,
    step: 1,
    "aria-label": "Padding at the end of the sentence",
    disabled: seq < 2,
    oninput: () => {
      commit(model, {
        lengths: model
          .get("lengths")
          .map((length, i) => (i === model.get("index")[0] ? seq - +padSlider.value : length)),
      });
    },
  });
  const restore = h(
    "button",
    { type: "button", onclick: () => commit(model, { x: original, lengths: original.map(() => seq) }) },
    "Put x back",
  );

  // All norms at once.
  const rows = NORMS.map(({ name }) => {
    const [near, far] = [h("td"), h("td")];
    return { near, far, node: h("tr", {}, h("th", { scope: "row" }, name), near, far) };
  });
  const table = h(
    "table",
    { class: "tl-leaks" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["norm", "same sentence", "other sentences"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => row.node),
    ),
  );

  const question = h("p");
  const wide = batch * (36 + 34 * features) > 350; // pixels: too wide for two columns
  const picture = h(
    "div",
    { class: `tl-cubes${wide ? " tl-tall" : ""}` },
    h(
      "div",
      {},
      h("p", { class: "tl-label" }, "x: rows are tokens, columns features"),
      before.grid.node,
      h("div", { class: "tl-disturb" }, room(reading, "tl-label"), slider, padReading, padSlider, restore),
    ),
    h(
      "div",
      {},
      room(verdict, "tl-label"),
      after.grid.node,
      room(question, "tl-label"),
      h("div", { class: "tl-scroll" }, table),
    ),
  );
  for (const grid of [before.grid.node, after.grid.node]) {
    grid.addEventListener(
      "pointermove",
      (event) => {
        hovering = event.pointerType === "mouse" && !event.buttons;
      },
      true,
    );
    grid.addEventListener(
      "pointerdown",
      () => {
        hovering = false;
      },
      true,
    );
    grid.addEventListener(
      "keydown",
      () => {
        hovering = false;
      },
      true,
    );
    grid.addEventListener("pointerleave", () => {
      if (pointed) {
        pointed = null;
        draw();
      }
    });
  }
  const { lab, status } = frame(
    { model, el },
    "Who shares a mean and a variance?",
    traits,
    h("div", { class: "tl-row" }, norms.node),
    h(
      "div",
      { class: "tl-row tl-settings" },
      h(
        "div",
        {},
        h("span", { class: "tl-note" }, "axes that share"),
        h("div", { class: "tl-choice", role: "group", "aria-label": "Axes that share" }, axes),
      ),
      h("div", {}, h("span", { class: "tl-note" }, "groups of features"), groupChoice.node),
      h("div", {}, h("span", { class: "tl-note" }, "centring"), h("div", { class: "tl-choice" }, centring)),
    ),
    h("div", { class: "tl-rule" }, room(rule), room(words)),
    picture,
  );
  lab.classList.add("tl-normalization");
  makeRoom();

  function draw() {
    const [values, lengths, dims, groups, center] = [
      model.get("x").flat(2),
      model.get("lengths"),
      model.get("dims"),
      model.get("n_groups"),
      model.get("center"),
    ];
    const norm = { dims, groups, center, eps };
    const now = disturbed(values, clean, shape, lengths);
    const { x, padding, touched } = now;
    const { ids, mean, square, values: normalized } = standardize(x, shape, norm);
    const { delta, moved, near, far } = leaks(clean, now, shape, norm);
    const anything = touched.includes(true);
    const chosen = model.get("index"),
      shown = pointed ?? chosen,
      flat = ravel(shown, shape);

    const own = NORMS.findIndex(
      (each) =>
        `${each.dims}` === `${dims}` && each.center === center && (each.grouped || !dims.includes(2) || groups === 1),
    );
    norms.show(own);
    axes.forEach((button, axis) => set(button, { "aria-pressed": String(dims.includes(axis)) }));
    groupChoice.show(groups);
    for (const button of groupChoice.node.children) set(button, { disabled: !dims.includes(2) });
    set(centring, { "aria-pressed": String(center) });
    say(code, asCode(shape, dims, groups, center));
    say(note, NORMS[own]?.note ?? "");
    say(words, ruleInWords(norm));

    const sharers = ids.flatMap((id, i) => (id === ids[flat] && i !== flat ? [i] : []));
    const listed = (marks) => marks.flatMap((is, i) => (is ? [i] : []));
    before.cells.forEach((cell, i) => {
      paint(cell, Number.isInteger(x[i]) ? plain(x[i]) : short(x[i]), x[i] / brightest);
      paint(after.cells[i], short(normalized[i]), normalized[i] / 2);
      set(after.cells[i], { "data-delta": moved[i] ? signed(delta[i]) : null });
      if (i % features === 0)
        for (const { cells } of [before, after])
          set(cells[i], { "data-row": padding[i] ? "pad" : `t${Math.floor(i / features) % seq}` });
    });
    const marks = { "tl-used": sharers, "tl-pad": listed(padding) };
    before.grid.mark(shown, { ...marks, "tl-edited": listed(x.map((value, i) => !padding[i] && value !== clean[i])) });
    after.grid.mark(shown, { ...marks, "tl-moved": listed(moved) });

    const place = `x[${chosen.join(", ")}]`,
      at = ravel(chosen, shape),
      real = lengths[chosen[0]];
    say(reading, padding[at] ? `chosen entry ${place} = 0: padding` : `chosen entry ${place} = ${plain(x[at])}`);
    slider.value = x[at];
    set(slider, { disabled: padding[at], "aria-valuetext": `${place} is ${plain(x[at])}` });
    say(padReading, `padding at the end of sentence ${chosen[0]}: ${seq - real} of ${seq} tokens`);
    padSlider.value = seq - real;
    set(padSlider, { "aria-valuetext": `${seq - real} of ${seq} tokens of sentence ${chosen[0]}` });
    set(restore, { disabled: !anything });

    NORMS.forEach((other, i) => {
      const counts = leaks(clean, now, shape, {
        ...other,
        groups: !other.grouped ? 1 : i === own ? groups : fewest(features),
        eps,
      });
      for (const where of ["near", "far"]) {
        const { moved: some, all } = counts[where];
        say(rows[i][where], anything && all ? `${some} of ${all}` : "–");
        set(rows[i][where], { class: anything && some > 0 ? "tl-leaking" : null });
      }
      set(rows[i].node, { class: i === own ? "tl-current" : null });
    });

    const count = near.moved + far.moved,
      all = near.all + far.all;
    say(question, QUESTIONS[Number(anything)]);
    say(verdict, anything ? movedInWords(count, all) : "normalized");
    say(
      status,
      entryInWords(
        shown,
        plain(x[flat]),
        norm,
        [mean[flat], Math.sqrt(square[flat])],
        sharers.length,
        normalized[flat],
        moved[flat] && signed(delta[flat]),
        anything && [count, all],
      ),
    );
  }

  // Room for all norms and numbers.
  function makeRoom() {
    const all = clean.length,
      last = shape.map((size) => size - 1),
      far = "−00.00",
      subsets = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]];
    const any = subsets.flatMap((dims) => [1, fewest(features)].map((groups) => ({ dims, groups, center: true })));
    const code = (text, note = "") => [h("span", { class: "tl-code" }, text), h("span", { class: "tl-note" }, note)];
    const codes = any.flatMap(({ dims, groups }) => [true, false].map((center) => asCode(shape, dims, groups, center)));
    reserve(
      rule,
      code(widest(lab, codes)),
      ...NORMS.map(({ dims, center, grouped, note }) =>
        code(asCode(shape, dims, grouped ? (divisors.at(-2) ?? 1) : 1, center), note),
      ),
    );
    reserve(words, ...new Set(any.map(ruleInWords)));
    reserve(reading, `chosen entry x[${last.join(", ")}] = ${far}`, `chosen entry x[${last.join(", ")}] = 0: padding`);
    reserve(question, ...QUESTIONS);
    reserve(verdict, movedInWords(all, all));
    reserve(
      status,
      ...new Set(
        any.map((norm) => entryInWords(last, far, norm, [-REACH, REACH], all, -1.11, signed(-1.11), ["none", all])),
      ),
    );
    lab.style.setProperty("--number", Math.max(...[short(-1.11), short(-REACH)].map((text) => ems(lab, text, 700))));
    lab.style.setProperty("--name", Math.max(...["pad", `t${seq - 1}`].map((text) => ems(lab, text))));
  }

  // A colour on both sides of zero: blue below, orange above, stronger further out.
  function paint(cell, text, size) {
    say(cell, text);
    set(cell, { style: `--hue: ${size < 0 ? 255 : 45}; --much: ${Math.min(Math.abs(size), 1).toFixed(2)}` });
  }

  return follow(model, traits, draw);
}

export default { render };
