// The order lab: (φ(Q)φ(K)ᵀ)V or φ(Q)(φ(K)ᵀV), as rectangles and as counts, and the second order as a recurrence.

import { integerCodec, optionCodec, traitsInUrl } from "./address.js";
import { signedCellColours } from "./colours.js";
import { frame } from "./frame.js";
import { clamp, range } from "./maths.js";
import { counts, parallelRow, recurrentSteps, sliderPosition, tokensOf } from "./order_maths.js";
import { fitScale, layout, MIN_SIDE, rectangles, slotsFor } from "./order_pictures.js";
import { cellText, cheaperOrderText, formulas, heldNumbersText, oneOrderText, ordersText } from "./order_words.js";
import {
  numberText,
  ORDER_NAMES,
  parseSize,
  positiveText,
  REASONS,
  sizeText,
  sumText,
  thinSidesText,
  vectorText,
} from "./order_words.js";
import { button, choice, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set } from "./ui.js";
import { action, setText, sliderWithInput, sortedByWidth, widthInEms } from "./ui.js";
import { grouped } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./order_maths.js").Sizes} Sizes */
/** @typedef {{ node: HTMLElement, draw: (status: HTMLElement) => void }} Panel */
/** @typedef {{ query: number[][], key: number[][], value: number[][] }} Sequence */

// The costs of the two products, their sum, and the size of the intermediate result, with a bar for the two costs.
// Space is reserved for `longestFormulas` and `maxTotal`.
function costTable(longestFormulas, maxTotal) {
  const row = (className) => {
    const [name, formula, number] = [element("span"), element("span"), element("span")];
    const head = element("th", { scope: "row" }, name, reservedBox(formula, "tl-formula"));
    return {
      name,
      formula,
      number,
      node: element("tr", { class: className }, head, element("td", {}, reservedBox(number))),
    };
  };
  const rows = ["tl-step", "tl-step", "tl-sum", "tl-held"].map(row);
  const bars = [element("span", { class: "tl-part" }), element("span", { class: "tl-part tl-later" })];
  const body = element(
    "tbody",
    {},
    rows.map((row) => row.node),
  );
  const table = element("table", { class: "tl-cost-table" }, body);
  const bar = element("div", { class: "tl-bar", "aria-hidden": "true" }, bars);
  for (const [i, { formula, number }] of rows.entries()) {
    reserveSpace(formula, longestFormulas[i]);
    reserveSpace(number, grouped(maxTotal));
  }
  const draw = (rowTexts, parts, most) => {
    for (const [i, texts] of rowTexts.entries()) {
      setText(rows[i].name, texts[0]);
      setText(rows[i].formula, texts[1]);
      setText(rows[i].number, grouped(texts[2]));
    }
    for (const [i, part] of bars.entries()) part.style.setProperty("--size", parts[i] / most);
  };
  return { node: element("div", {}, element("div", { class: "tl-scroll" }, table), bar), draw };
}

// The control of one size, with `marks` on its slider.
function sizeControl(model, name, unit, marks) {
  const ends = model.get("limits")[name];
  const letter = name.toUpperCase();
  const label = `${letter}, ${unit}`;
  const head = element("p", { class: "tl-note" }, `${label}: ${ends.map(grouped).join(" to ")}`);
  const parse = (text) => parseSize(name, text, ends);
  const scale = name === "n" ? { positionOf: (n) => Math.round(sliderPosition(n)), valueAt: tokensOf } : {};
  const size = sliderWithInput(label, { ends, head, marks, parse, ...scale }, (value) =>
    commit(model, { [name]: value }),
  );
  const show = (value) => {
    size.show(value);
    set(size.input, { "aria-valuetext": `${grouped(value)} ${unit}` });
  };
  set(size.node, { class: `tl-slider tl-size-${name}` });
  return { node: size.node, show };
}

// The controls of the three sizes. A mark on the slider of n shows where both orders cost the same.
/** @type {(model: Model) => { node: HTMLElement, draw: (sizes: Sizes, equalN: number, softmax: boolean) => void }} */
function sizesPanel(model) {
  const [least, most] = model.get("limits").n;
  const equalCostN = () => counts(getTraits(model, ["n", "d", "m"])).equalN;
  const pickEqual = () => commit(model, { n: Math.max(Math.round(equalCostN()), least) });
  const mark = button("", pickEqual, { class: "tl-mark" });
  const controls = {
    n: sizeControl(model, "n", "tokens", mark),
    d: sizeControl(model, "d", "key features"),
    m: sizeControl(model, "m", "value features"),
  };
  const nodes = Object.values(controls).map((control) => control.node);

  function draw(sizes, equalN, softmax) {
    for (const [name, control] of Object.entries(controls)) control.show(sizes[name]);
    const inRange = equalN >= least;
    set(mark, {
      style: `--at: ${Math.max(sliderPosition(Math.max(equalN, least)) / sliderPosition(most), 0)}`,
      hidden: !inRange || softmax,
      "aria-pressed": String(inRange && sizes.n === Math.round(equalN)),
      "aria-label": `equal: ${sizeText(equalN)}. Set N to this value, at which both orders cost the same`,
    });
    setText(mark, `equal: ${sizeText(equalN)}`);
  }
  return { node: element("div", { class: "tl-sliders tl-sticky" }, nodes), draw };
}

// One order: its formula, picture and costs, or the reason why it is impossible.
function orderColumn(label, longestFormulas, maxTotal) {
  const heading = element("p", { class: "tl-order-name" });
  const picture = rectangles(label);
  const costs = costTable(longestFormulas, maxTotal);
  const impossible = element("p", { class: "tl-impossible" });
  const costsBox = element("div", { class: "tl-reserved tl-costs" }, costs.node, impossible);
  const name = element("p", { class: "tl-label" }, label);
  const title = element("div", { class: "tl-order-title" }, heading, name);
  const node = element("div", {}, title, picture.node, group("costs", costsBox));
  return { heading, picture, costs, impossible, node };
}

const SHAPES = { q: "N × D", k: "D × N", v: "N × M", out: "N × M" };
const ONE_SCALE =
  "The two pictures have the same scale, and so have the two bars. Only the two products are counted, not φ, softmax " +
  "or division; a multiply-add is 2 FLOPs.";
const NOT_POSSIBLE =
  "Not possible: exp(q·k) is neither a function of q times a function of k, nor a sum of finitely many such " +
  "products, so nothing can be taken out of the sum over the keys.";

// The panel that compares the two orders.
/** @type {(model: Model) => Panel} */
function ordersPanel(model) {
  const { n, d, m } = model.get("limits");
  const maxSizes = { n: n[1], d: d[1], m: m[1] };
  const maxCosts = counts(maxSizes);
  const sizeControls = sizesPanel(model);
  const operations = [
    ["nothing", "nothing"],
    ["softmax", "softmax"],
    ["causal", "causal mask"],
  ];
  const between = choice("Between the two products", operations, (between) => commit(model, { between }));
  const reason = element("p");
  const longestFormulas = formulas(maxSizes);
  const maxTotal = maxCosts.first[0] + maxCosts.first[1];
  const first = orderColumn("Queries with keys first", longestFormulas.first, maxTotal);
  const second = orderColumn("Keys with values first", longestFormulas.second, maxTotal);
  const scaleNote = element("p");
  const betweenControl = element(
    "div",
    {},
    element("p", { class: "tl-note" }, "Between the two products"),
    between.node,
  );
  const node = element(
    "div",
    {},
    group("sizes", sizeControls.node),
    group("between", element("div", { class: "tl-row" }, betweenControl, reservedBox(reason, "tl-reason"))),
    element("div", { class: "tl-orders" }, first.node, second.node),
    group(
      "costs",
      element(
        "div",
        { class: "tl-scales tl-note" },
        element("p", {}, ONE_SCALE),
        reservedBox(scaleNote, "tl-scale-note"),
      ),
    ),
  );
  /** @type {[string, number][]} */
  const thinnest = [
    ["D", maxSizes.d],
    ["M", maxSizes.m],
  ];
  reserveSpace(reason, ...Object.values(REASONS));
  reserveSpace(scaleNote, thinSidesText(thinnest, 0, MIN_SIDE));

  // Draws both pictures at the same scale, and returns the scale.
  function drawPictures(sizes, operation) {
    const [softmax, causal] = [operation === "softmax", operation === "causal"];
    const [Q, K] = softmax ? ["Q", "Kᵀ"] : ["φ(Q)", "φ(K)ᵀ"];
    const names = { q: Q, k: K, v: "V", out: "output" };
    const middleNames = softmax ? ["softmax(QKᵀ)", "KᵀV"] : [`${Q}${K}`, causal ? "S so far" : "S"];
    const slots = slotsFor((name) => widthInEms(node, name));
    const scale = fitScale(sizes, slots);
    const pictures = layout(sizes, scale, slots);
    const [scoreCount, stateCount] = counts(sizes).held.map(grouped);
    const firstSizes = { ...SHAPES, mid: "N × N", held: scoreCount };
    const secondSizes = { ...SHAPES, mid: "D × M", held: stateCount };
    first.picture.draw(pictures.first, firstSizes, { ...names, mid: middleNames[0] }, scale, {
      causal,
      crossed: false,
    });
    second.picture.draw(pictures.second, secondSizes, { ...names, mid: middleNames[1] }, scale, {
      causal: false,
      crossed: softmax,
    });
    return scale;
  }

  function drawCosts(sizes, operation, totals) {
    const [softmax, causal] = [operation === "softmax", operation === "causal"];
    const [Q, K] = softmax ? ["Q", "Kᵀ"] : ["φ(Q)", "φ(K)ᵀ"];
    const most = softmax ? totals[0] : Math.max(...totals);
    const cost = counts(sizes);
    const formulaTexts = formulas(sizes);
    const rowTexts = (names, order, i) => [
      [names[0], formulaTexts[order][0], cost[order][0]],
      [names[1], formulaTexts[order][1], cost[order][1]],
      ["multiply-adds", formulaTexts[order][2], totals[i]],
      ["stored in between", formulaTexts[order][3], cost.held[i]],
    ];
    setText(first.heading, softmax ? "softmax(Q Kᵀ) V" : causal ? "(mask ∘ φ(Q) φ(K)ᵀ) V" : "(φ(Q) φ(K)ᵀ) V");
    setText(second.heading, softmax ? "Q (Kᵀ V)" : "φ(Q) (φ(K)ᵀ V)");
    first.costs.draw(rowTexts([`${Q} ${K}`, "(…) V"], "first", 0), cost.first, most);
    second.costs.draw(rowTexts([softmax ? "" : `S = ${K} V`, `${Q} S`], "second", 1), cost.second, most);
    set(second.costs.node, { "aria-hidden": softmax ? "true" : null });
    setText(second.impossible, softmax ? NOT_POSSIBLE : "");
  }

  function scaleText({ n, d, m }, scale) {
    /** @type {[string, number][]} */
    const sides = [
      ["D", d],
      ["M", m],
    ];
    const thin = sides.filter(([, size]) => size * scale < MIN_SIDE);
    if (thin.length) return thinSidesText(thin, scale, MIN_SIDE);
    if (n * scale < MIN_SIDE) return `At this scale, N would be thinner than ${MIN_SIDE} pixels, so it is widened.`;
    return "All sides are to scale.";
  }

  function draw(status) {
    const sizes = getTraits(model, ["n", "d", "m"]);
    const operation = model.get("between");
    const softmax = operation === "softmax";
    const cost = counts(sizes);
    const totals = [cost.first[0] + cost.first[1], cost.second[0] + cost.second[1]];
    sizeControls.draw(sizes, cost.equalN, softmax);
    between.show(operation);
    setText(reason, REASONS[operation]);
    const scale = drawPictures(sizes, operation);
    drawCosts(sizes, operation, totals);
    setText(scaleNote, scaleText(sizes, scale));
    setText(status, softmax ? oneOrderText(totals[0], cost.held[0]) : ordersText(totals, cost));
    const cheaperTexts = ORDER_NAMES.map(
      (order) => cheaperOrderText(order, 11_111, [maxTotal, maxTotal], 111.1) + heldNumbersText(maxCosts.held),
    );
    reserveSpace(status, oneOrderText(maxTotal, maxCosts.held[0]), ...cheaperTexts);
  }
  return { node, draw };
}

// A block of cells for the state: S, with z beside S, and a row above both. With `hasFactors`, the row contains v, and
// a column on the left contains φ(k).
/** @type {(rows: number, columns: number, sign?: string | null, hasFactors?: boolean) => any} */
function stateTable(rows, columns, sign = null, hasFactors = false) {
  const name = element("p");
  const captions = reservedBox(name, "tl-caption");
  set(captions, { "data-sign": sign });
  const rowOfCells = (className) =>
    range(columns + 1).map((j) => element("span", { class: `${className}${j === columns ? " tl-z" : ""}` }));
  const cells = range(rows).map(() => rowOfCells("tl-number"));
  const top = hasFactors
    ? rowOfCells("tl-factor")
    : [
        element("span", { class: "tl-factor", style: `grid-column: span ${columns}` }, "S"),
        element("span", { class: "tl-factor tl-z" }, "z"),
      ];
  const side = hasFactors ? cells.map(() => element("span", { class: "tl-factor" })) : [];
  const body = element(
    "div",
    {
      class: "tl-matrix",
      role: "img",
      style: `grid-template-columns: repeat(${columns + 1 + side.length / rows}, auto)`,
    },
    hasFactors ? element("span") : [],
    top,
    cells.flatMap((row, i) => [...(hasFactors ? [side[i]] : []), ...row]),
  );
  const drawCell = (cell, value, inS, limit, changed) => {
    setText(cell, (value < 0.005 && !inS ? positiveText : cellText)(value));
    const { background, color } = signedCellColours(value, limit);
    set(cell, { style: `background: ${background}; color: ${color}` });
    cell.classList.toggle("tl-changed", changed);
  };
  const draw = ({ S, z, maxima, v, keys, changed }) => {
    for (const [i, row] of cells.entries()) {
      for (const [j, cell] of row.entries()) {
        const inS = j < columns;
        drawCell(cell, inS ? S[i][j] : z[i], inS, inS ? maxima.S : maxima.z, Boolean(changed?.(i, j)));
      }
    }
    if (hasFactors) {
      for (const [j, x] of [...v, 1].entries()) setText(top[j], cellText(x));
      for (const [i, x] of keys.entries()) setText(side[i], positiveText(x));
    }
    const rowsText = S.map((row) => row.map(numberText).join(" ")).join("; ");
    set(body, { "aria-label": `${name.textContent}. S: rows ${rowsText}. z: ${z.map(positiveText).join(" ")}.` });
  };
  return { node: element("div", {}, captions, body), name, draw };
}

// How one token updates the state, and what its query reads from the state, as sums that a reader can check by hand.
// Here and in the parts below, `lines` returns pairs of a node and its text for a token.
function recurrentForm(D, M) {
  const line = () => element("p");
  const inputLines = [line(), line(), line()];
  const queryLines = [line(), line()];
  const before = stateTable(D, M);
  const added = stateTable(D, M, "+", true);
  const after = stateTable(D, M, "=");
  const columns = [...range(M).map((j) => (M > 1 ? `S, column ${j + 1}` : "S")), "z"];
  const products = columns.map(() => element("span"));
  const output = element("p");
  const term = (sign, table) =>
    element("div", { class: "tl-term" }, element("span", { class: "tl-plus" }, sign), table.node);
  const heading = (text) => element("p", { class: "tl-heading" }, text);
  const node = element(
    "div",
    { class: "tl-recurrent" },
    heading("1. Write: add this token to the state"),
    inputLines.map((line) => reservedBox(line, "tl-input-line")),
    element("div", { class: "tl-sum-of" }, before.node, term("+", added), term("=", after)),
    heading("2. Read: apply the query to the state"),
    queryLines.map((line) => reservedBox(line, "tl-input-line")),
    element(
      "div",
      { class: "tl-products" },
      products.flatMap((product, j) => [element("span", { class: "tl-note" }, columns[j]), reservedBox(product)]),
    ),
    element("p", { class: "tl-output-rule" }, "output = φ(q)ᵀS / φ(q)ᵀz"),
    reservedBox(output, "tl-output-line"),
  );

  function lines({ query, key, value }, step, t) {
    const { keys, queries, S, z, numerator, denominator } = step;
    const column = (j) => S.map((row) => row[j]);
    return [
      [inputLines[0], `k = ${vectorText(key[t])}`],
      [inputLines[1], `φ(k) = elu(k) + 1 = ${vectorText(keys, positiveText)}`],
      [inputLines[2], `v = ${vectorText(value[t])}`],
      [before.name, t ? `after token ${t}` : "at the beginning"],
      [added.name, "φ(k) times v, and times 1"],
      [after.name, `after token ${t + 1}`],
      [queryLines[0], `q = ${vectorText(query[t])}`],
      [queryLines[1], `φ(q) = ${vectorText(queries, positiveText)}, times each column of S and times z:`],
      ...range(M).map((j) => [products[j], `${sumText(queries, column(j))} = ${numberText(numerator[j])}`]),
      [products[M], `${sumText(queries, z, positiveText)} = ${positiveText(denominator)}`],
      [output, `= ${vectorText(numerator)} / ${positiveText(denominator)} = ${vectorText(step.output)}`],
    ];
  }

  // `maxima`: the largest numbers of S and z over all steps.
  function draw(step, value, maxima) {
    before.draw({ ...step.before, maxima });
    added.draw({ S: step.added, z: step.keys, maxima, v: value, keys: step.keys });
    after.draw({ S: step.S, z: step.z, maxima, changed: (i, j) => j === M || step.added[i][j] !== 0 });
  }
  return { node, lines, draw };
}

// The same output, computed in the parallel form: a row for each key.
function parallelForm(seq) {
  const cellsOf = (nodes) => nodes.map((node) => element("td", {}, reservedBox(node)));
  const threeSpans = () => [element("span"), element("span"), element("span")];
  const rowOf = (name, nodes) => element("tr", {}, element("th", { scope: "row" }, name), cellsOf(nodes));
  const rows = range(seq, 1).map((token) => {
    const nodes = threeSpans();
    return { nodes, node: rowOf(`${token}`, nodes) };
  });
  const sums = threeSpans();
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
  const comparison = element("p", { class: "tl-comparison" });
  const nodes = [reservedBox(name, "tl-heading"), element("div", { class: "tl-scroll" }, table), comparison];

  function lines({ value }, row, t) {
    return [
      [name, `The same output in parallel: row ${t + 1} of the masked φ(Q)φ(K)ᵀ`],
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
    setText(comparison, equal ? equalText : "The two outputs differ. This is an error in the lab.");
  }
  return { nodes, lines, draw };
}

// The memory that is kept for the next token: the state, compared with a key–value cache.
function memoryPanel(seq, D, M) {
  const state = D * M + D;
  const maxMemory = Math.max(state, seq * (D + M));
  const cacheAfter = (token) => token * (D + M);
  const [stateBar, cacheBar] = ["state", "cache"].map((name) => {
    const text = element("p");
    const bar = element("span", { class: `tl-part tl-${name}` });
    const track = element("div", { class: "tl-bar", "aria-hidden": "true" }, bar);
    return { text, bar, node: element("div", {}, reservedBox(text, "tl-note"), track) };
  });
  const lines = (token) => [
    [stateBar.text, `state: D×M + D = ${D}×${M} + ${D} = ${state}, after each token`],
    [cacheBar.text, `key–value cache: t × (D + M) = ${token} × ${D + M} = ${cacheAfter(token)}, and it grows`],
  ];
  function draw(token) {
    stateBar.bar.style.setProperty("--size", state / maxMemory);
    cacheBar.bar.style.setProperty("--size", cacheAfter(token) / maxMemory);
  }
  const heading = element("p", { class: "tl-heading" }, "Numbers to keep for the next token");
  return { nodes: [heading, stateBar.node, cacheBar.node], lines, draw, state, cacheAfter };
}

// Buttons Back and Next, and a slider through all tokens.
function tokenControls(model, seq) {
  const moveBy = (step) => () => commit(model, { token: clamp(model.get("token") + step, 1, seq) });
  const [back, next] = [button("Back", moveBy(-1)), action("Next token", moveBy(1))];
  const tokenLabel = element("p");
  const pick = (token) => commit(model, { token });
  const { node, input, typed, show } = sliderWithInput("Token", { ends: [1, seq], props: { disabled: seq < 2 } }, pick);
  set(typed, { disabled: seq < 2 });
  const lines = (token) => [[tokenLabel, `Token ${token} of ${seq}`]];
  function draw(token) {
    show(token);
    set(input, { "aria-valuetext": `token ${token} of ${seq}` });
    // Before a button is disabled, the focus moves to the other button.
    /** @type {[HTMLButtonElement, boolean, HTMLButtonElement][]} */
    const ends = [
      [back, token === 1, next],
      [next, token === seq, back],
    ];
    for (const [button, disabled, other] of ends) {
      if (disabled && seq > 1 && document.activeElement === button) {
        set(other, { disabled: null });
        other.focus();
      }
      set(button, { disabled });
    }
  }
  const row = element("div", { class: "tl-token-buttons" }, back, next, reservedBox(tokenLabel, "tl-token-label"));
  return { nodes: [row, node], lines, draw };
}

// The panel of the recurrent form.
/** @type {(model: Model) => Panel} */
function stepsPanel(model) {
  const [seq, D] = [model.get("key").length, model.get("key")[0].length];
  const M = model.get("value")[0].length;
  const controls = tokenControls(model, seq);
  const form = recurrentForm(D, M);
  const table = parallelForm(seq);
  const memory = memoryPanel(seq, D, M);
  const forms = element(
    "div",
    { class: `tl-forms${M > 3 || D > 4 ? " tl-wide-state" : ""}` },
    form.node,
    element("div", {}, table.nodes, memory.nodes),
  );
  const node = element("div", {}, element("div", { class: "tl-sticky" }, controls.nodes), forms);

  // All texts for one token: pairs of a node and its text.
  function linesOf(sequence, step, row, t) {
    const token = t + 1;
    const stepLines = [form.lines(sequence, step, t), table.lines(sequence, row, t)];
    return [...controls.lines(token), ...stepLines.flat(), ...memory.lines(token)];
  }

  const tokenText = (token, output, equal) =>
    `Token ${token} of ${seq}: φ(k)vᵀ and φ(k) are added to the state, which always has ${memory.state} numbers. ` +
    `The output is ${vectorText(output)}${equal ? ", as in the parallel form" : ""}. ` +
    `A key–value cache would contain ${memory.cacheAfter(token)} numbers by now.`;

  // Reserves space for the texts of all tokens, initially and when the tensors change.
  let drawnKey = null;
  let longestTexts = [];
  /** @type {(sequence: Sequence, steps: import("./order_maths.js").Step[]) => void} */
  function reserveAll(sequence, steps) {
    const key = JSON.stringify(sequence);
    if (key === drawnKey) return;
    drawnKey = key;
    const { query, key: keys, value } = sequence;
    const tokenLines = steps.map((step, t) => linesOf(sequence, step, parallelRow(query, keys, value, t), t));
    for (const [i, [line]] of tokenLines[0].entries()) {
      const texts = new Set(tokenLines.map((lines) => lines[i][1]));
      reserveSpace(line, ...sortedByWidth(node, [...texts]).slice(0, 4));
    }
    const sentences = steps.map(({ output }, t) => tokenText(t + 1, output, true));
    longestTexts = sortedByWidth(node, sentences).slice(0, 3);
    const numbers = steps.flatMap(({ S, z, added, keys }) => [S, [z], added, [keys]].flat(2));
    const texts = [...numbers.map(cellText), ...numbers.map(positiveText)];
    forms.style.setProperty("--number", Math.max(...texts.map((text) => widthInEms(node, text, 700))));
  }

  function draw(status) {
    const sequence = getTraits(model, ["query", "key", "value"]);
    const { query, key, value } = sequence;
    const token = model.get("token");
    const t = token - 1;
    const steps = recurrentSteps(query, key, value);
    const step = steps[t];
    const row = parallelRow(query, key, value, t);
    const maxima = {
      S: Math.max(...steps.flatMap(({ S }) => S.flat().map(Math.abs))),
      z: Math.max(...steps.at(-1).z),
    };
    reserveAll(sequence, steps);
    for (const [line, text] of linesOf(sequence, step, row, t)) setText(line, text);
    controls.draw(token);
    form.draw(step, value[t], maxima);
    const difference = Math.max(...row.output.map((x, j) => Math.abs(x - step.output[j]) / Math.max(1, Math.abs(x))));
    const equal = difference < 1e-9;
    table.draw(t, equal);
    memory.draw(token);
    setText(status, tokenText(token, step.output, equal));
    reserveSpace(status, ...longestTexts);
  }
  return { node, draw };
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const limits = model.get("limits");
  const sizeCodec = (name) => integerCodec(limits[name][0], limits[name][1]);
  const urlState = traitsInUrl("order", {
    mode: optionCodec(["order", "steps"]),
    n: sizeCodec("n"),
    d: sizeCodec("d"),
    m: sizeCodec("m"),
    between: optionCodec(["nothing", "softmax", "causal"]),
    token: integerCodec(1, model.get("key").length),
  });
  const modeOptions = [
    ["order", "order of multiplication"],
    ["steps", "step by step"],
  ];
  const modes = choice("Mode", modeOptions, (mode) => commit(model, { mode }));
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
  // Both panels are drawn once, since the hidden panel, too, needs its reserved space from the start.
  for (const panel of Object.values(panels)) panel.draw(status);
  return observe(model, [...urlState.names, "query", "key", "value"], () => {
    const mode = model.get("mode");
    modes.show(mode);
    for (const [name, panel] of Object.entries(panels)) set(panel.node, { hidden: name !== mode });
    panels[mode].draw(status);
  });
}

export default { render };
