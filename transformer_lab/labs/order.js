// The order lab: (φ(Q)φ(K)ᵀ)V or φ(Q)(φ(K)ᵀV), as rectangles and as counts, and the second order as a recurrence.

import { integerCodec, optionCodec, traitsInUrl } from "./address.js";
import { signedCellColours } from "./colours.js";
import { frame } from "./frame.js";
import { clamp, range } from "./maths.js";
import { counts, parallel, recurrent, sliderOf, tokensOf } from "./order_maths.js";
import { fit, place, rectangles, slotsFor, THIN } from "./order_pictures.js";
import { cheaperOrderText, formulas, heldNumbersText, cellText, oneOrderText, ordersText } from "./order_words.js";
import {
  parseSize,
  positiveText,
  REASONS,
  sizeText,
  sumText,
  thinSidesText,
  numberText,
  vectorText,
  ORDER_NAMES,
} from "./order_words.js";
import { button, choice, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { action, setText, sliderWithInput, sortedByWidth, widthInEms } from "./ui.js";
import { grouped } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./order_maths.js").Sizes} Sizes */
/** @typedef {{ node: HTMLElement, draw: (status: HTMLElement) => void }} Panel */
/** @typedef {{ query: number[][], key: number[][], value: number[][] }} Sequence */

// The costs of the two products, the total cost, and the size of the intermediate result, with a bar for the two
// products. Space is reserved for the `longest` formulas and the `largest` number.
function costTable(longest, largest) {
  const row = (kind) => {
    const [name, formula, number] = [element("span"), element("span"), element("span")];
    const head = element("th", { scope: "row" }, name, reservedBox(formula, "tl-formula"));
    return {
      name,
      formula,
      number,
      node: element("tr", { class: kind }, head, element("td", {}, reservedBox(number))),
    };
  };
  const rows = ["tl-step", "tl-step", "tl-sum", "tl-held"].map(row);
  const bars = [element("span", { class: "tl-part" }), element("span", { class: "tl-part tl-later" })];
  const body = element(
    "tbody",
    {},
    rows.map((each) => each.node),
  );
  const table = element("table", { class: "tl-bill" }, body);
  const bar = element("div", { class: "tl-track", "aria-hidden": "true" }, bars);
  for (const [i, { formula, number }] of rows.entries()) {
    reserveSpace(formula, longest[i]);
    reserveSpace(number, grouped(largest));
  }
  const draw = (lines, parts, most) => {
    for (const [i, texts] of lines.entries()) {
      setText(rows[i].name, texts[0]);
      setText(rows[i].formula, texts[1]);
      setText(rows[i].number, grouped(texts[2]));
    }
    for (const [i, part] of bars.entries()) part.style.setProperty("--size", parts[i] / most);
  };
  return { node: element("div", {}, element("div", { class: "tl-scroll" }, table), bar), draw };
}

// The control of one size, with `marks` on its slider.
function sizeControl(model, name, words, marks) {
  const ends = model.get("limits")[name];
  const letter = name.toUpperCase();
  const label = `${letter}, ${words}`;
  const head = element("p", { class: "tl-note" }, `${label}: ${ends.map(grouped).join(" to ")}`);
  const parse = (text) => parseSize(name, text, ends);
  const how = name === "n" ? { positionOf: (n) => Math.round(sliderOf(n)), valueAt: tokensOf } : {};
  const size = sliderWithInput(label, { ends, head, marks, parse, ...how }, (value) =>
    commit(model, { [name]: value }),
  );
  const show = (value) => {
    size.show(value);
    set(size.input, { "aria-valuetext": `${grouped(value)} ${words}` });
  };
  set(size.node, { class: `tl-slider tl-size-${name}` });
  return { node: size.node, show };
}

// The controls of the three sizes. A mark on the slider of n shows where both orders cost the same.
/** @type {(model: Model) => { node: HTMLElement, draw: (sizes: Sizes, equal: number, softmax: boolean) => void }} */
function sizesPanel(model) {
  const [least, most] = model.get("limits").n;
  const equalOf = () => counts(getTraits(model, ["n", "d", "m"])).equal;
  const toEqual = () => commit(model, { n: Math.max(Math.round(equalOf()), least) });
  const mark = button("", toEqual, { class: "tl-mark" });
  const controls = {
    n: sizeControl(model, "n", "tokens", mark),
    d: sizeControl(model, "d", "key features"),
    m: sizeControl(model, "m", "value features"),
  };
  const nodes = Object.values(controls).map((control) => control.node);

  function draw(sizes, equal, softmax) {
    for (const [name, control] of Object.entries(controls)) control.show(sizes[name]);
    const inside = equal >= least;
    set(mark, {
      style: `--at: ${Math.max(sliderOf(Math.max(equal, least)) / sliderOf(most), 0)}`,
      hidden: !inside || softmax,
      "aria-pressed": String(inside && sizes.n === Math.round(equal)),
      "aria-label": `equal: ${sizeText(equal)}, set N to this value, at which both orders cost the same`,
    });
    setText(mark, `equal: ${sizeText(equal)}`);
  }
  return { node: element("div", { class: "tl-sliders tl-sticky" }, nodes), draw };
}

// One order: its formula, picture and costs, or the reason why it is impossible.
function orderColumn(label, longest, largest) {
  const heading = element("p", { class: "tl-order-name" });
  const picture = rectangles(label);
  const sums = costTable(longest, largest);
  const refusal = element("p", { class: "tl-refusal" });
  const price = element("div", { class: "tl-reserved tl-price" }, sums.node, refusal);
  const name = element("p", { class: "tl-label" }, label);
  const title = element("div", { class: "tl-order-title" }, heading, name);
  const node = element("div", {}, title, picture.node, group("costs", price));
  return { heading, picture, sums, refusal, node };
}

const SHAPES = { q: "N × D", k: "D × N", v: "N × M", out: "N × M" };
const ONE_SCALE =
  "Both pictures and bars have the same scale. Only the two products count, without φ, softmax and division; a " +
  "multiply-add is 2 FLOPs.";
const NOT_POSSIBLE =
  "Not possible: exp(q·k) is not a product of a factor of q and a factor of k, nor a sum of finitely many such " +
  "products, so nothing can be taken out of the sum over the keys.";

// The panel that compares the two orders.
/** @type {(model: Model) => Panel} */
function ordersPanel(model) {
  const { n, d, m } = model.get("limits");
  const largest = { n: n[1], d: d[1], m: m[1] };
  const end = counts(largest);
  const sizes = sizesPanel(model);
  const kinds = [
    ["nothing", "nothing"],
    ["softmax", "softmax"],
    ["causal", "causal mask"],
  ];
  const between = choice("Between the two products", kinds, (kind) => commit(model, { between: kind }));
  const why = element("p");
  const longest = formulas(largest);
  const far = end.first[0] + end.first[1];
  const first = orderColumn("Queries with keys first", longest.first, far);
  const second = orderColumn("Keys with values first", longest.second, far);
  const widened = element("p");
  const chosen = element("div", {}, element("p", { class: "tl-note" }, "Between the two products"), between.node);
  const node = element(
    "div",
    {},
    group("sizes", sizes.node),
    group("between", element("div", { class: "tl-row" }, chosen, reservedBox(why, "tl-why"))),
    element("div", { class: "tl-orders" }, first.node, second.node),
    group(
      "costs",
      element("div", { class: "tl-scales tl-note" }, element("p", {}, ONE_SCALE), reservedBox(widened, "tl-widened")),
    ),
  );
  /** @type {[string, number][]} */
  const thinnest = [
    ["D", largest.d],
    ["M", largest.m],
  ];
  reserveSpace(why, ...Object.values(REASONS));
  reserveSpace(widened, thinSidesText(thinnest, 0, THIN));

  // Draws both pictures at the same scale, and returns the scale.
  function drawPictures(now, kind) {
    const [softmax, causal] = [kind === "softmax", kind === "causal"];
    const [Q, K] = softmax ? ["Q", "Kᵀ"] : ["φ(Q)", "φ(K)ᵀ"];
    const names = { q: Q, k: K, v: "V", out: "output" };
    const mids = softmax ? ["softmax(QKᵀ)", "KᵀV"] : [`${Q}${K}`, causal ? "S so far" : "S"];
    const slots = slotsFor((name) => widthInEms(node, name));
    const scale = fit(now, slots);
    const places = place(now, scale, slots);
    const [held, state] = counts(now).held.map(grouped);
    const one = { ...SHAPES, mid: "N × N", held };
    const other = { ...SHAPES, mid: "D × M", held: state };
    first.picture.draw(places.first, one, { ...names, mid: mids[0] }, scale, { causal, crossed: false });
    second.picture.draw(places.second, other, { ...names, mid: mids[1] }, scale, { causal: false, crossed: softmax });
    return scale;
  }

  function drawCosts(now, kind, total) {
    const [softmax, causal] = [kind === "softmax", kind === "causal"];
    const [Q, K] = softmax ? ["Q", "Kᵀ"] : ["φ(Q)", "φ(K)ᵀ"];
    const most = softmax ? total[0] : Math.max(...total);
    const cost = counts(now);
    const how = formulas(now);
    const lines = (texts, order, i) => [
      [texts[0], how[order][0], cost[order][0]],
      [texts[1], how[order][1], cost[order][1]],
      ["multiply-adds", how[order][2], total[i]],
      ["stored in between", how[order][3], cost.held[i]],
    ];
    setText(first.heading, softmax ? "softmax(Q Kᵀ) V" : causal ? "(mask ∘ φ(Q) φ(K)ᵀ) V" : "(φ(Q) φ(K)ᵀ) V");
    setText(second.heading, softmax ? "Q (Kᵀ V)" : "φ(Q) (φ(K)ᵀ V)");
    first.sums.draw(lines([`${Q} ${K}`, "(…) V"], "first", 0), cost.first, most);
    second.sums.draw(lines([softmax ? "" : `S = ${K} V`, `${Q} S`], "second", 1), cost.second, most);
    set(second.sums.node, { "aria-hidden": softmax ? "true" : null });
    setText(second.refusal, softmax ? NOT_POSSIBLE : "");
  }

  function widenedText({ n, d, m }, scale) {
    /** @type {[string, number][]} */
    const sides = [
      ["D", d],
      ["M", m],
    ];
    const thin = sides.filter(([, size]) => size * scale < THIN);
    if (thin.length) return thinSidesText(thin, scale, THIN);
    if (n * scale < THIN) return `At this scale, N would be thinner than ${THIN} pixels: it is widened.`;
    return "All sides are to scale.";
  }

  function draw(status) {
    const now = getTraits(model, ["n", "d", "m"]);
    const kind = model.get("between");
    const softmax = kind === "softmax";
    const cost = counts(now);
    const total = [cost.first[0] + cost.first[1], cost.second[0] + cost.second[1]];
    sizes.draw(now, cost.equal, softmax);
    between.show(kind);
    setText(why, REASONS[kind]);
    const scale = drawPictures(now, kind);
    drawCosts(now, kind, total);
    setText(widened, widenedText(now, scale));
    setText(status, softmax ? oneOrderText(total[0], cost.held[0]) : ordersText(total, cost));
    const fewer = ORDER_NAMES.map(
      (who) => cheaperOrderText(who, 11_111, [far, far], 111.1) + heldNumbersText(end.held),
    );
    reserveSpace(status, oneOrderText(far, end.held[0]), ...fewer);
  }
  return { node, draw };
}

// A block of cells for the state: S, with z beside it, a row above, and an optional column on the left.
/** @type {(rows: number, columns: number, sign?: string | null, left?: boolean) => any} */
function block(rows, columns, sign = null, left = false) {
  const name = element("p");
  const captions = reservedBox(name, "tl-caption");
  set(captions, { "data-sign": sign });
  const line = (kind) =>
    range(columns + 1).map((j) => element("span", { class: `${kind}${j === columns ? " tl-z" : ""}` }));
  const cells = range(rows).map(() => line("tl-number"));
  const top = left
    ? line("tl-edge")
    : [
        element("span", { class: "tl-edge", style: `grid-column: span ${columns}` }, "S"),
        element("span", { class: "tl-edge tl-z" }, "z"),
      ];
  const side = left ? cells.map(() => element("span", { class: "tl-edge" })) : [];
  const body = element(
    "div",
    {
      class: "tl-matrix",
      role: "img",
      style: `grid-template-columns: repeat(${columns + 1 + side.length / rows}, auto)`,
    },
    left ? element("span") : [],
    top,
    cells.flatMap((row, i) => [...(left ? [side[i]] : []), ...row]),
  );
  const drawCell = (cell, value, inS, limit, grown) => {
    setText(cell, (value < 0.005 && !inS ? positiveText : cellText)(value));
    const { background, color } = signedCellColours(value, limit);
    set(cell, { style: `background: ${background}; color: ${color}` });
    cell.classList.toggle("tl-grown", grown);
  };
  const draw = ({ S, z, most, v, keys, changed }) => {
    for (const [i, row] of cells.entries()) {
      for (const [j, cell] of row.entries()) {
        const inS = j < columns;
        drawCell(cell, inS ? S[i][j] : z[i], inS, inS ? most.S : most.z, Boolean(changed?.(i, j)));
      }
    }
    if (left) {
      for (const [j, x] of [...v, 1].entries()) setText(top[j], cellText(x));
      for (const [i, x] of keys.entries()) setText(side[i], positiveText(x));
    }
    const rowsText = S.map((row) => row.map(numberText).join(" ")).join("; ");
    set(body, { "aria-label": `${name.textContent}. S: rows ${rowsText}. z: ${z.map(positiveText).join(" ")}.` });
  };
  return { node: element("div", {}, captions, body), name, draw };
}

// How one token updates the state, and what its query reads from the state, as sums that a reader can check by hand.
// Each part has `lines`: pairs of a node and its text for a token.
function recurrentForm(D, M) {
  const line = () => element("p");
  const given = [line(), line(), line()];
  const queryLines = [line(), line()];
  const before = block(D, M);
  const added = block(D, M, "+", true);
  const after = block(D, M, "=");
  const columns = [...range(M).map((j) => (M > 1 ? `S, column ${j + 1}` : "S")), "z"];
  const products = columns.map(() => element("span"));
  const output = element("p");
  const term = (sign, of) => element("div", { class: "tl-term" }, element("span", { class: "tl-plus" }, sign), of.node);
  const heading = (text) => element("p", { class: "tl-heading" }, text);
  const node = element(
    "div",
    { class: "tl-recurrent" },
    heading("1. Write: add this token to the state"),
    given.map((each) => reservedBox(each, "tl-given")),
    element("div", { class: "tl-sum-of" }, before.node, term("+", added), term("=", after)),
    heading("2. Read: apply the query to the state"),
    queryLines.map((each) => reservedBox(each, "tl-given")),
    element(
      "div",
      { class: "tl-products" },
      products.flatMap((each, j) => [element("span", { class: "tl-note" }, columns[j]), reservedBox(each)]),
    ),
    element("p", { class: "tl-output-rule" }, "output = φ(q)ᵀS / φ(q)ᵀz"),
    reservedBox(output, "tl-output-line"),
  );

  function lines({ query, key, value }, now, t) {
    const { keys, queries, S, z, numerator, denominator } = now;
    const column = (j) => S.map((each) => each[j]);
    return [
      [given[0], `k = ${vectorText(key[t])}`],
      [given[1], `φ(k) = elu(k) + 1 = ${vectorText(keys, positiveText)}`],
      [given[2], `v = ${vectorText(value[t])}`],
      [before.name, t ? `after token ${t}` : "at the beginning"],
      [added.name, "φ(k) times v, and times 1"],
      [after.name, `after token ${t + 1}`],
      [queryLines[0], `q = ${vectorText(query[t])}`],
      [queryLines[1], `φ(q) = ${vectorText(queries, positiveText)}, times each column of S and times z:`],
      ...range(M).map((j) => [products[j], `${sumText(queries, column(j))} = ${numberText(numerator[j])}`]),
      [products[M], `${sumText(queries, z, positiveText)} = ${positiveText(denominator)}`],
      [output, `= ${vectorText(numerator)} / ${positiveText(denominator)} = ${vectorText(now.output)}`],
    ];
  }

  // `most`: the largest numbers of S and z over all steps.
  function draw(now, value, most) {
    before.draw({ ...now.before, most });
    added.draw({ S: now.added, z: now.keys, most, v: value, keys: now.keys });
    after.draw({ S: now.S, z: now.z, most, changed: (i, j) => j === M || now.added[i][j] !== 0 });
  }
  return { node, lines, draw };
}

// The same output, computed in the parallel form: a row for each key.
function parallelForm(seq) {
  const cellsOf = (nodes) => nodes.map((node) => element("td", {}, reservedBox(node)));
  const three = () => [element("span"), element("span"), element("span")];
  const rowOf = (name, nodes) => element("tr", {}, element("th", { scope: "row" }, name), cellsOf(nodes));
  const rows = range(seq, 1).map((token) => {
    const nodes = three();
    return { nodes, node: rowOf(`${token}`, nodes) };
  });
  const sums = three();
  const heads = ["key", "φ(q)·φ(k)", "÷ sum", "value"].map((text) => element("th", { scope: "col" }, text));
  const body = element(
    "tbody",
    {},
    rows.map((row) => row.node),
  );
  const table = element(
    "table",
    { class: "tl-keys" },
    element("thead", {}, element("tr", {}, heads)),
    body,
    element("tfoot", {}, rowOf("sum", sums)),
  );
  const name = element("p");
  const same = element("p", { class: "tl-same" });
  const nodes = [reservedBox(name, "tl-heading"), element("div", { class: "tl-scroll" }, table), same];

  function lines({ value }, row, t) {
    return [
      [name, `The same in parallel: row ${t + 1} of the masked φ(Q)φ(K)ᵀ`],
      ...rows.flatMap(({ nodes }, j) => [
        [nodes[0], j <= t ? positiveText(row.scores[j]) : "masked"],
        [nodes[1], j <= t ? positiveText(row.weights[j]) : "0"],
        [nodes[2], vectorText(value[j])],
      ]),
      [sums[0], positiveText(row.sum)],
      [sums[1], "1"],
      [sums[2], vectorText(row.output)],
    ];
  }

  function draw(t, equal) {
    for (const [j, { node }] of rows.entries()) set(node, { class: j <= t ? null : "tl-unseen" });
    const equalText = "The weights times the values give the same output.";
    setText(same, equal ? equalText : "The two outputs differ. This is an error in the lab.");
  }
  return { nodes, lines, draw };
}

// The memory that is kept for the next token: the state, compared with a key–value cache.
function memoryPanel(seq, D, M) {
  const state = D * M + D;
  const largest = Math.max(state, seq * (D + M));
  const cacheAfter = (token) => token * (D + M);
  const [one, other] = ["state", "cache"].map((kind) => {
    const text = element("p");
    const bar = element("span", { class: `tl-part tl-${kind}` });
    const track = element("div", { class: "tl-track", "aria-hidden": "true" }, bar);
    return { text, bar, node: element("div", {}, reservedBox(text, "tl-note"), track) };
  });
  const lines = (token) => [
    [one.text, `state: D×M + D = ${D}×${M} + ${D} = ${state}, after each token`],
    [other.text, `key–value cache: t × (D + M) = ${token} × ${D + M} = ${cacheAfter(token)}, and it grows`],
  ];
  function draw(token) {
    one.bar.style.setProperty("--size", state / largest);
    other.bar.style.setProperty("--size", cacheAfter(token) / largest);
  }
  const heading = element("p", { class: "tl-heading" }, "Numbers to keep for the next token");
  return { nodes: [heading, one.node, other.node], lines, draw, state, cacheAfter };
}

// Buttons Back and Next, and a slider through all tokens.
function walkControls(model, seq) {
  const by = (step) => () => commit(model, { token: clamp(model.get("token") + step, 1, seq) });
  const [back, on] = [button("Back", by(-1)), action("Next token", by(1))];
  const reading = element("p");
  const pick = (token) => commit(model, { token });
  const { node, input, typed, show } = sliderWithInput("Token", { ends: [1, seq], props: { disabled: seq < 2 } }, pick);
  set(typed, { disabled: seq < 2 });
  const lines = (token) => [[reading, `Token ${token} of ${seq}`]];
  function draw(token) {
    show(token);
    set(input, { "aria-valuetext": `token ${token} of ${seq}` });
    // Before a button is disabled, the focus moves to the other button.
    /** @type {[HTMLButtonElement, boolean, HTMLButtonElement][]} */
    const ends = [
      [back, token === 1, on],
      [on, token === seq, back],
    ];
    for (const [button, off, other] of ends) {
      if (off && seq > 1 && document.activeElement === button) {
        set(other, { disabled: null });
        other.focus();
      }
      set(button, { disabled: off });
    }
  }
  const row = element("div", { class: "tl-walk" }, back, on, reservedBox(reading, "tl-reading"));
  return { nodes: [row, node], lines, draw };
}

// The panel of the recurrent form.
/** @type {(model: Model) => Panel} */
function stepsPanel(model) {
  const [seq, D] = [model.get("key").length, model.get("key")[0].length];
  const M = model.get("value")[0].length;
  const walk = walkControls(model, seq);
  const form = recurrentForm(D, M);
  const table = parallelForm(seq);
  const memory = memoryPanel(seq, D, M);
  const forms = element(
    "div",
    { class: `tl-forms${M > 3 || D > 4 ? " tl-broad" : ""}` },
    form.node,
    element("div", {}, table.nodes, memory.nodes),
  );
  const node = element("div", {}, element("div", { class: "tl-sticky" }, walk.nodes), forms);

  // All texts for one token: pairs of a node and its text.
  function linesOf(sequence, now, row, t) {
    const token = t + 1;
    const stepLines = [form.lines(sequence, now, t), table.lines(sequence, row, t)];
    return [...walk.lines(token), ...stepLines.flat(), ...memory.lines(token)];
  }

  const tokenText = (token, read, equal) =>
    `Token ${token} of ${seq}: φ(k)vᵀ and φ(k) are added to the state, which stays ${memory.state} numbers. ` +
    `φ(q) reads the output ${vectorText(read)}${equal ? ", the same as in parallel" : ""}. ` +
    `A key–value cache would hold ${memory.cacheAfter(token)} numbers by now.`;

  // Reserves space for the texts of all tokens, initially and when the tensors change.
  let drawnKey = null;
  let longest = [];
  /** @type {(sequence: Sequence, all: import("./order_maths.js").Step[]) => void} */
  function reserveAll(sequence, all) {
    const key = JSON.stringify(sequence);
    if (key === drawnKey) return;
    drawnKey = key;
    const { query, key: keys, value } = sequence;
    const each = all.map((now, t) => linesOf(sequence, now, parallel(query, keys, value, t), t));
    for (const [i, [line]] of each[0].entries()) {
      const texts = new Set(each.map((lines) => lines[i][1]));
      reserveSpace(line, ...sortedByWidth(node, [...texts]).slice(0, 4));
    }
    const sentences = all.map(({ output }, t) => tokenText(t + 1, output, true));
    longest = sortedByWidth(node, sentences).slice(0, 3);
    const numbers = all.flatMap(({ S, z, added, keys }) => [S, [z], added, [keys]].flat(2));
    const written = [...numbers.map(cellText), ...numbers.map(positiveText)];
    forms.style.setProperty("--number", Math.max(...written.map((text) => widthInEms(node, text, 700))));
  }

  function draw(status) {
    const sequence = getTraits(model, ["query", "key", "value"]);
    const { query, key, value } = sequence;
    const token = model.get("token");
    const t = token - 1;
    const all = recurrent(query, key, value);
    const now = all[t];
    const row = parallel(query, key, value, t);
    const most = { S: Math.max(...all.flatMap(({ S }) => S.flat().map(Math.abs))), z: Math.max(...all.at(-1).z) };
    reserveAll(sequence, all);
    for (const [line, text] of linesOf(sequence, now, row, t)) setText(line, text);
    walk.draw(token);
    form.draw(now, value[t], most);
    const difference = Math.max(...row.output.map((x, j) => Math.abs(x - now.output[j]) / Math.max(1, Math.abs(x))));
    const equal = difference < 1e-9;
    table.draw(t, equal);
    memory.draw(token);
    setText(status, tokenText(token, now.output, equal));
    reserveSpace(status, ...longest);
  }
  return { node, draw };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const limits = model.get("limits");
  const size = (name) => integerCodec(limits[name][0], limits[name][1]);
  const urlState = traitsInUrl("order", {
    mode: optionCodec(["order", "steps"]),
    n: size("n"),
    d: size("d"),
    m: size("m"),
    between: optionCodec(["nothing", "softmax", "causal"]),
    token: integerCodec(1, model.get("key").length),
  });
  const kinds = [
    ["order", "order of multiplication"],
    ["steps", "step by step"],
  ];
  const modes = choice("Mode", kinds, (mode) => commit(model, { mode }));
  const panels = { order: ordersPanel(model), steps: stepsPanel(model) };
  const { status } = frame(
    { model, el },
    "order",
    "Which product first?",
    urlState,
    group("mode", element("div", { class: "tl-row" }, modes.node)),
    panels.order.node,
    panels.steps.node,
  );
  // The hidden panel needs its reserved space from the start as well.
  for (const panel of Object.values(panels)) panel.draw(status);
  return observe(model, [...urlState.names, "query", "key", "value"], () => {
    const mode = model.get("mode");
    modes.show(mode);
    for (const [name, panel] of Object.entries(panels)) set(panel.node, { hidden: name !== mode });
    panels[mode].draw(status);
  });
}

export default { render };
