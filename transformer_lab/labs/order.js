// The order lab: (φ(Q)φ(K)ᵀ)V or φ(Q)(φ(K)ᵀV), as rectangles and as counts; and the second one as a state that is carried from
// token to token.

const MOST = { n: 65536, d: 256, m: 256 },
  LEAST = { n: 16, d: 1, m: 1 };
const FINE = 8; // steps of N's slider from one power of two to the next

// The feature map, elu(x) + 1.
const phi = (x) => (x > 0 ? x + 1 : Math.exp(x));

// What the two orders cost in multiply–adds, product by product, and how many numbers stand between their products.
// They cost the same where N = equal.
function counts({ n, d, m }) {
  return {
    first: [n * n * d, n * n * m],
    second: [n * d * m, n * d * m],
    held: [n * n, d * m],
    equal: (2 * d * m) / (d + m),
  };
}

// The recurrent form, token by token: φ(k)vᵀ and φ(k) are added to the state (S, z), and then φ(q) reads it.
function recurrent(query, key, value) {
  let S = key[0].map(() => value[0].map(() => 0)),
    z = key[0].map(() => 0);
  return key.map((k, t) => {
    const before = { S, z },
      keys = k.map(phi),
      queries = query[t].map(phi);
    const added = keys.map((x) => value[t].map((v) => x * v));
    S = S.map((row, i) => row.map((x, j) => x + added[i][j]));
    z = z.map((x, i) => x + keys[i]);
    const numerator = value[t].map((_, j) =>
        dot(
          queries,
          S.map((row) => row[j]),
        ),
      ),
      denominator = dot(queries, z);
    return {
      before,
      keys,
      queries,
      added,
      S,
      z,
      numerator,
      denominator,
      output: numerator.map((x) => x / denominator),
    };
  });
}

// Row t of the parallel form: φ(q)·φ(k) for the keys up to t, divided by their sum, times the values.
function parallel(query, key, value, t) {
  const queries = query[t].map(phi);
  const scores = key.slice(0, t + 1).map((k) => dot(queries, k.map(phi)));
  const sum = scores.reduce((a, b) => a + b, 0);
  const weights = scores.map((score) => score / sum);
  return { scores, sum, weights, output: blend(weights, value.slice(0, t + 1)) };
}

// Numbers as text.
const grouped = (x) => String(x).replace(/\B(?=(\d{3})+$)/g, ",");
const minus = (text) => text.replace("-", "−");
const short = (x) => {
  if (x !== 0 && Math.abs(x) < 0.005) return "≈0";
  return minus(Math.abs(x) >= 1000 ? x.toFixed(0) : String(Number(x.toFixed(2))));
};
const positive = (x) => (x > 0 && x < 0.005 ? minus(String(Number(x.toPrecision(1)))) : short(x)); // so that ≈0 / ≈0 is never on show
const narrow = (x) => (Math.abs(x) < 10 ? short(x) : minus(String(Number(x.toFixed(Math.abs(x) < 100 ? 1 : 0))))); // what fits a cell
const factor = (x, write = short) => (x < 0 ? `(${write(x)})` : write(x));
const tuple = (numbers, write = short) =>
  numbers.length > 1 ? `(${numbers.map(write).join(", ")})` : write(numbers[0]);
const sumText = (a, b, write = short) => a.map((x, i) => `${positive(x)}·${factor(b[i], write)}`).join(" + ");
const times = (ratio) =>
  ratio >= 10 ? grouped(Math.round(ratio)) : String(Number(ratio.toFixed(ratio < 1.1 ? 3 : 2)));
const sizeText = (x) => (Number.isInteger(x) ? grouped(x) : x.toFixed(1));

// N's slider: even steps between the powers of two, so that every stop is a round number.
const sliderOf = (n) => {
  const octave = Math.floor(Math.log2(n) + 1e-12);
  return FINE * (octave - 4 + n / 2 ** octave - 1);
};
const tokensOf = (slider) => (FINE + (slider % FINE)) * 2 ** (Math.floor(slider / FINE) + 1);

function parseSize(name, text) {
  const digits = text.trim().replace(/(\d)[,_ ](?=\d{3}(\D|$))/g, "$1");
  const [least, most] = [LEAST[name], MOST[name]];
  if (!/^\d+$/.test(digits))
    return { error: `${name.toUpperCase()} is a whole number from ${grouped(least)} to ${grouped(most)}.` };
  if (+digits < least || +digits > most)
    return {
      error: `${name.toUpperCase()} goes from ${grouped(least)} to ${grouped(most)}; ${grouped(+digits)} does not fit.`,
    };
  return { value: +digits, text: grouped(+digits) };
}

// The pictures. A row or a column is `scale` wide; what would be thinner than THIN is drawn THIN, and the lab says so.
const WIDE = 340,
  HIGH = 176,
  THIN = 2,
  TOP = 30,
  JOINT = 5;
// Room for the names, from their widths, in which a name may stand at every place that it has in a mode.
const NAMES = {
  q: ["φ(Q)", "N × D"],
  k: ["φ(K)ᵀ", "D × N"],
  v: ["V", "N × M"],
  a: ["softmax(QKᵀ)", "φ(Q)φ(K)ᵀ"],
  s: ["S so far", "D × M"],
  out: ["output", "N × M"],
};
const SIZE = { name: 13, size: 12, sign: 15, inside: 14 }; // of letters
const slotsFor = (width) =>
  Object.fromEntries(
    Object.entries(NAMES).map(([kind, names]) => [kind, Math.max(...names.map((name) => width(name) * SIZE.name)) + 6]),
  );

// Where the rectangles of both orders stand. A product stands in the corner between its two factors.
function place({ n, d, m }, scale, slot) {
  const px = (size) => Math.max(size * scale, THIN);
  const [N, D, M] = [px(n), px(d), px(m)];
  const slots = {
    q: Math.max(D, slot.q),
    k: Math.max(N, slot.k),
    v: Math.max(M, slot.v),
    a: Math.max(N, slot.a),
    s: Math.max(M, slot.s),
    out: Math.max(M, slot.out),
  };
  const high = D + JOINT + N;
  const a = slots.q + JOINT,
    v = a + slots.a + 16,
    out = v + slots.v + 16,
    below = D + JOINT;
  const s = slots.k + JOINT,
    q = s + slots.s + 4,
    out2 = q + slots.q + 38;
  return {
    first: {
      width: out + slots.out,
      high,
      signs: [
        ["×", v - 8, below + N / 2],
        ["=", out - 8, below + N / 2],
      ],
      rects: {
        q: { x: slots.q - D, y: below, w: D, h: N, at: "end" },
        k: { x: a, y: 0, w: N, h: D, at: "start", above: true },
        mid: { x: a, y: below, w: N, h: N, at: "start", slot: slot.a },
        v: { x: v + (slots.v - M) / 2, y: below, w: M, h: N, at: "middle" },
        out: { x: out + (slots.out - M) / 2, y: below, w: M, h: N, at: "middle" },
      },
    },
    second: {
      width: out2 + slots.out,
      high,
      signs: [["× S =", out2 - 19, N / 2]],
      rects: {
        k: { x: slots.k - N, y: N + JOINT, w: N, h: D, at: "end" },
        v: { x: s, y: 0, w: M, h: N, at: "start", above: true },
        mid: { x: s, y: N + JOINT, w: M, h: D, at: "start", slot: slot.s },
        q: { x: q + (slots.q - D) / 2, y: 0, w: D, h: N, at: "middle" },
        out: { x: out2 + (slots.out - M) / 2, y: 0, w: M, h: N, at: "middle" },
      },
    },
  };
}

// The largest scale at which both pictures fit.
function fit(sizes, slot) {
  let [small, large] = [0, 32];
  for (let i = 0; i < 40; i++) {
    const scale = (small + large) / 2,
      { first, second } = place(sizes, scale, slot);
    if (Math.max(first.width, second.width) <= WIDE && first.high <= HIGH) small = scale;
    else large = scale;
  }
  return small;
}

const rulerOf = (scale) => 2 ** Math.floor(Math.log2(90 / scale)); // rows or columns: a power of two, at most 90 pixels

function draughtsman(label) {
  const parts = Object.fromEntries(
    ["q", "k", "v", "mid", "out"].map((kind) => {
      const rect = h("rect", { class: `tl-${kind}` }),
        name = h("text", { class: "tl-name" }),
        size = h("text", { class: "tl-size", y: 13 });
      return [kind, { rect, name, size, label: h("g", {}, name, size) }];
    }),
  );
  const signs = [h("text", { class: "tl-sign" }), h("text", { class: "tl-sign" })];
  const masked = h("path", { class: "tl-masked" }),
    inside = h("text", { class: "tl-inside" });
  const cross = h("path", { class: "tl-cross" });
  const ruler = h("path", { class: "tl-ruler" }),
    length = h("text", { class: "tl-size" });
  const rects = h(
    "g",
    {},
    Object.values(parts).map((part) => part.rect),
    masked,
  );
  const node = h(
    "svg",
    { class: "tl-picture", role: "img", viewBox: `0 0 ${WIDE} ${TOP + HIGH + 62}` },
    rects,
    Object.values(parts).map((part) => part.label),
    inside,
    signs,
    cross,
    ruler,
    length,
  );
  // Text is moved by a transform: at another x and y a browser would set it anew.
  const put = (text, x, y, props = {}) => set(text, { transform: `translate(${x} ${y})`, ...props });
  const draw = ({ rects: places, signs: texts, width, high: tall }, sizes, names, scale, { causal, crossed }) => {
    const left = (WIDE - width) / 2;
    for (const [name, part] of Object.entries(parts)) {
      const { x, y, w, h: high, at, above, slot } = places[name];
      set(part.rect, { x: left + x, y: TOP + y, width: w, height: high });
      const anchor = slot && w > slot ? "middle" : !slot && w > 60 ? "middle" : at;
      const tx = left + x + (anchor === "middle" ? w / 2 : anchor === "end" ? w - 2 : 2),
        ty = TOP + (above ? y - 18 : y + high + 14);
      put(part.label, tx, ty, { "text-anchor": anchor });
      say(part.name, names[name]);
      say(part.size, sizes[name]);
    }
    signs.forEach((sign, i) => {
      const [text, x, y] = texts[i] ?? ["", 0, 0];
      put(sign, left + x, TOP + y + 5);
      say(sign, text);
    });
    const { x, y, w, h: high } = places.mid;
    set(masked, { d: `M${left + x} ${TOP + y} h${w} v${high} Z`, visibility: causal ? "visible" : "hidden" });
    // The number stands in the lower half, where a mask leaves only that.
    const [across, down] = causal ? [0.36, 0.75] : [0.5, 0.5];
    put(inside, left + x + w * across, TOP + y + high * down + 5, {
      visibility: w > (causal ? 150 : 95) && high > 24 ? "visible" : "hidden",
    });
    say(inside, sizes.held);
    const [dx, dy] = [0.8 * width, 0.8 * tall];
    set(cross, {
      d: `M${left + 0.1 * width} ${TOP + 0.1 * tall} l${dx} ${dy} m${-dx} 0 l${dx} ${-dy}`,
      visibility: crossed ? "visible" : "hidden",
    });
    const rows = rulerOf(scale),
      foot = TOP + HIGH + 52;
    set(ruler, { d: `M1 ${foot - 4} v8 m0 -4 h${rows * scale} m0 -4 v8` });
    put(length, rows * scale + 8, foot + 4);
    say(length, `${grouped(rows)} rows or columns`);
    set(node, {
      "aria-label": `${label}, to scale: ${["q", "k", "v", "mid", "out"].map((name) => `${names[name]} ${sizes[name].replace("×", "by")}`).join(", ")}`,
    });
  };
  return { node, draw };
}

// Two bars' worth of numbers: what each product costs, what they cost together, and what is held between them.
function bill(longest) {
  const row = (kind) => {
    const cells = { name: h("span"), formula: h("span"), number: h("span") };
    return {
      ...cells,
      node: h(
        "tr",
        { class: kind },
        h("th", { scope: "row" }, cells.name, room(cells.formula, "tl-formula")),
        h("td", {}, room(cells.number)),
      ),
    };
  };
  const rows = [row("tl-step"), row("tl-step"), row("tl-sum"), row("tl-held")];
  const bars = [h("span", { class: "tl-part" }), h("span", { class: "tl-part tl-later" })];
  const table = h(
    "table",
    { class: "tl-bill" },
    h(
      "tbody",
      {},
      rows.map((each) => each.node),
    ),
  );
  const bar = h("div", { class: "tl-track", "aria-hidden": "true" }, bars);
  longest.forEach((formula, i) => {
    reserve(rows[i].formula, formula);
    reserve(rows[i].number, grouped(2 * MOST.n ** 2 * MOST.d));
  });
  const draw = (lines, parts, most) => {
    lines.forEach(([name, formula, number], i) => {
      say(rows[i].name, name);
      say(rows[i].formula, formula);
      say(rows[i].number, grouped(number));
    });
    bars.forEach((each, i) => each.style.setProperty("--size", parts[i] / most));
  };
  return { node: h("div", {}, h("div", { class: "tl-scroll" }, table), bar), draw };
}

// The panel of the two orders.
function orders(model) {
  const mark = h("button", {
    type: "button",
    class: "tl-mark",
    onclick: () => commit(model, { n: Math.max(Math.round(counts(sizes()).equal), LEAST.n) }),
  });
  const sizes = () => ({ n: model.get("n"), d: model.get("d"), m: model.get("m") });
  const size = (name, words) => {
    const slider = h("input", {
      type: "range",
      min: name === "n" ? 0 : 1,
      max: name === "n" ? sliderOf(MOST.n) : MOST[name],
      step: 1,
      "aria-label": `Slider of ${name.toUpperCase()}, ${words}`,
      oninput: () => commit(model, { [name]: name === "n" ? tokensOf(+slider.value) : +slider.value }),
    });
    const typed = field(
      `${name.toUpperCase()}, ${words}`,
      `${LEAST[name]} to ${grouped(MOST[name])}`,
      (text) => parseSize(name, text),
      (value) => commit(model, { [name]: value }),
      { inputmode: "numeric" },
    );
    const show = (value) => {
      typed.show(grouped(value));
      slider.value = name === "n" ? Math.round(sliderOf(value)) : value;
      set(slider, { "aria-valuetext": `${grouped(value)} ${words}` });
    };
    return {
      node: h(
        "div",
        { class: `tl-dial tl-dial-${name}` },
        typed.node,
        h("div", { class: "tl-slide" }, slider, name === "n" ? mark : []),
      ),
      show,
    };
  };
  const dials = { n: size("n", "tokens"), d: size("d", "key features"), m: size("m", "value features") };
  const between = choice(
    "Between the two products",
    [
      ["nothing", "nothing"],
      ["softmax", "softmax"],
      ["causal", "causal mask"],
    ],
    (value) => commit(model, { between: value }),
  );
  const why = h("p");
  const column = (label, longest) => {
    const heading = h("p", { class: "tl-order-name" }),
      picture = draughtsman(label),
      sums = bill(longest),
      refusal = h("p", { class: "tl-refusal" });
    return {
      heading,
      picture,
      sums,
      refusal,
      node: h(
        "div",
        {},
        heading,
        h("p", { class: "tl-label" }, label),
        picture.node,
        h("div", { class: "tl-room tl-price" }, sums.node, refusal),
      ),
    };
  };
  const first = column("queries with keys first", Object.values(formulas(MOST).first)),
    second = column("keys with values first", Object.values(formulas(MOST).second));
  const widened = h("p");
  const node = h(
    "div",
    {},
    h("div", { class: "tl-dials" }, dials.n.node, dials.d.node, dials.m.node),
    h(
      "div",
      { class: "tl-row" },
      h("div", {}, h("p", { class: "tl-note" }, "between the two products"), between.node),
      room(why, "tl-why"),
    ),
    h("div", { class: "tl-orders" }, first.node, second.node),
    h(
      "p",
      { class: "tl-note" },
      "Both pictures and both bars have one scale. Counted are the two products alone, without φ, softmax and the division; a multiply–add is 2 FLOPs.",
    ),
    room(widened, "tl-note tl-widened"),
  );
  reserve(why, ...Object.values(REASONS));
  reserve(
    widened,
    thinInWords(
      [
        ["D", MOST.d],
        ["M", MOST.m],
      ],
      0,
    ),
  );

  function draw(status) {
    const now = sizes(),
      { n, d, m } = now,
      kind = model.get("between"),
      softmax = kind === "softmax";
    const cost = counts(now),
      total = [cost.first[0] + cost.first[1], cost.second[0] + cost.second[1]];
    const most = softmax ? total[0] : Math.max(...total);
    for (const name of ["n", "d", "m"]) dials[name].show(now[name]);
    between.show(kind);
    const inside = cost.equal >= LEAST.n;
    set(mark, {
      style: `--at: ${Math.max(sliderOf(Math.max(cost.equal, LEAST.n)) / sliderOf(MOST.n), 0)}`,
      hidden: !inside || softmax,
      "aria-pressed": String(inside && n === Math.round(cost.equal)),
      "aria-label": `Set N to ${sizeText(cost.equal)}, where both orders cost the same`,
    });
    say(mark, `equal: ${sizeText(cost.equal)}`);

    const [Q, K] = softmax ? ["Q", "Kᵀ"] : ["φ(Q)", "φ(K)ᵀ"];
    const names = { q: Q, k: K, v: "V", out: "output" };
    const by = (a, b) => `${grouped(a)} × ${grouped(b)}`;
    const slots = slotsFor((name) => ems(node, name)),
      scale = fit(now, slots),
      places = place(now, scale, slots);
    first.picture.draw(
      places.first,
      { q: "N × D", k: "D × N", v: "N × M", out: "N × M", mid: "N × N", held: grouped(n * n) },
      { ...names, mid: softmax ? "softmax(QKᵀ)" : `${Q}${K}` },
      scale,
      { causal: kind === "causal", crossed: false },
    );
    second.picture.draw(
      places.second,
      { q: "N × D", k: "D × N", v: "N × M", out: "N × M", mid: "D × M", held: grouped(d * m) },
      { ...names, mid: softmax ? "KᵀV" : kind === "causal" ? "S so far" : "S" },
      scale,
      { causal: false, crossed: softmax },
    );
    say(first.heading, softmax ? "softmax(Q Kᵀ) V" : kind === "causal" ? "(mask ∘ φ(Q) φ(K)ᵀ) V" : "(φ(Q) φ(K)ᵀ) V");
    say(second.heading, softmax ? "Q (Kᵀ V)" : "φ(Q) (φ(K)ᵀ V)");
    const how = formulas(now);
    first.sums.draw(
      [
        [`${Q} ${K}`, how.first[0], cost.first[0]],
        ["(…) V", how.first[1], cost.first[1]],
        ["multiply–adds", how.first[2], total[0]],
        ["held in between", how.first[3], cost.held[0]],
      ],
      cost.first,
      most,
    );
    second.sums.draw(
      [
        [softmax ? "" : `S = ${K} V`, how.second[0], cost.second[0]],
        [`${Q} S`, how.second[1], cost.second[1]],
        ["multiply–adds", how.second[2], total[1]],
        ["held in between", how.second[3], cost.held[1]],
      ],
      cost.second,
      most,
    );
    set(second.sums.node, { "aria-hidden": softmax ? "true" : null });
    say(
      second.refusal,
      softmax
        ? "Not possible: exp(q·k) is no product of one factor from q and one from k, nor a sum of finitely many such products, so there is nothing to pull out of the sum over the keys."
        : "",
    );
    say(why, REASONS[kind]);
    const thin = [
      ["D", d],
      ["M", m],
    ].filter(([, x]) => x * scale < THIN);
    say(
      widened,
      thin.length
        ? thinInWords(thin, scale)
        : n * scale < THIN
          ? `At this scale N would be thinner than ${THIN} pixels: it is widened.`
          : "Nothing is widened: all sides are to scale.",
    );

    say(status, softmax ? oneOrderInWords(total[0], cost.held[0]) : ordersInWords(total, cost));
    const end = counts(MOST),
      far = end.first[0] + end.first[1];
    reserve(
      status,
      oneOrderInWords(far, end.held[0]),
      ...WHO.map((who) => fewerInWords(who, 11_111, [far, far], 111.1) + heldInWords(end.held)),
    );
  }
  return { node, draw };
}

// What the panel says.
const REASONS = {
  nothing: "Matrix products are associative: both orders give the same numbers.",
  softmax:
    "Softmax takes exp of every score and divides by the sum of its row. All N × N scores must be there before V.",
  causal:
    "One φ(K)ᵀV would hold the future too. So it is built up: each token adds to S, then reads it. The counts stay.",
};
const WHO = ["Queries with keys first", "Keys with values first"];
const formulas = ({ n, d, m }) => ({
  first: [
    `N²D = ${grouped(n)}² × ${d}`,
    `N²M = ${grouped(n)}² × ${m}`,
    `N²(D + M) = ${grouped(n)}² × ${d + m}`,
    `N² = ${grouped(n)}² numbers`,
  ],
  second: [
    ...Array(2).fill(`NDM = ${grouped(n)} × ${d} × ${m}`),
    `2NDM = 2 × ${grouped(n)} × ${d} × ${m}`,
    `DM = ${d} × ${m} numbers`,
  ],
});
const oneOrderInWords = (total, held) =>
  `With softmax between, only one order is left: ${grouped(total)} multiply–adds and ${grouped(held)} numbers held in between. Twice as many tokens take four times as much.`;
const fewerInWords = (who, ratio, [less, more], equal) =>
  `${who} takes ${times(ratio)} times fewer multiply–adds: ${grouped(less)} against ${grouped(more)}. They are equal at N = 2DM/(D + M) = ${sizeText(equal)}. `;
const heldInWords = (held) => `Held in between: ${grouped(held[0])} numbers or ${grouped(held[1])}.`;
function ordersInWords([a, b], { held, equal }) {
  const told =
    a === b
      ? `Both orders take ${grouped(a)} multiply–adds: N is 2DM/(D + M). `
      : a > b
        ? fewerInWords(WHO[1], a / b, [b, a], equal)
        : fewerInWords(WHO[0], b / a, [a, b], equal);
  return told + heldInWords(held);
}
function thinInWords(thin, scale) {
  const several = thin.length > 1,
    pixels = Math.max(...thin.map(([, x]) => x * scale)).toFixed(2);
  return `At this scale ${thin.map(([name, x]) => `${name} = ${x}`).join(" and ")} would be ${pixels} pixels${several ? " or less" : ""}: drawn ${THIN} pixels wide, so that you see ${several ? "them" : "it"}.`;
}

// A block of the state: S and, apart, z; above it a row of names or numbers, to its left a column where there is one.
function block(rows, columns, sign = null, left = false) {
  const name = h("p"),
    captions = room(name, "tl-caption");
  set(captions, { "data-sign": sign });
  const cells = Array.from({ length: rows }, () =>
    Array.from({ length: columns + 1 }, (_, j) => h("span", { class: `tl-number${j === columns ? " tl-z" : ""}` })),
  );
  const top = left
    ? Array.from({ length: columns + 1 }, (_, j) => h("span", { class: `tl-edge${j === columns ? " tl-z" : ""}` }))
    : [
        h("span", { class: "tl-edge", style: `grid-column: span ${columns}` }, "S"),
        h("span", { class: "tl-edge tl-z" }, "z"),
      ];
  const side = left ? cells.map(() => h("span", { class: "tl-edge" })) : [];
  const body = h(
    "div",
    {
      class: "tl-matrix",
      role: "img",
      style: `grid-template-columns: repeat(${columns + 1 + side.length / rows}, auto)`,
    },
    left ? h("span") : [],
    top,
    cells.flatMap((row, i) => [...(left ? [side[i]] : []), ...row]),
  );
  const draw = ({ S, z, most, v, keys, changed }) => {
    cells.forEach((row, i) =>
      row.forEach((cell, j) => {
        const value = j < columns ? S[i][j] : z[i],
          limit = j < columns ? most.S : most.z;
        say(cell, (value < 0.005 && j === columns ? positive : narrow)(value));
        set(cell, {
          style: `--hue: ${value < 0 ? 255 : 45}; --much: ${Math.min(Math.abs(value) / (limit || 1), 1).toFixed(2)}`,
        });
        cell.classList.toggle("tl-grown", Boolean(changed?.(i, j)));
      }),
    );
    if (left) {
      [...v, 1].forEach((x, j) => say(top[j], narrow(x)));
      keys.forEach((x, i) => say(side[i], positive(x)));
    }
    set(body, {
      "aria-label": `${name.textContent}. S: rows ${S.map((row) => row.map(short).join(" ")).join("; ")}. z: ${z.map(positive).join(" ")}.`,
    });
  };
  return { node: h("div", {}, captions, body), name, draw };
}

// The panel of the recurrent form.
function tokens(model) {
  const seq = model.get("key").length,
    D = model.get("key")[0].length,
    M = model.get("value")[0].length;
  const slider = h("input", {
    type: "range",
    min: 1,
    max: seq,
    step: 1,
    "aria-label": "Token",
    disabled: seq < 2,
    oninput: () => commit(model, { token: +slider.value }),
  });
  const walk = (by) => () => commit(model, { token: Math.min(Math.max(model.get("token") + by, 1), seq) });
  const back = h("button", { type: "button", onclick: walk(-1) }, "Back"),
    on = h("button", { type: "button", onclick: walk(1) }, "Next token");
  const reading = h("p");
  const line = () => h("p");
  const given = [line(), line(), line()],
    asked = [line(), line()];
  const before = block(D, M),
    added = block(D, M, "+", true),
    after = block(D, M, "=");
  const products = Array.from({ length: M + 1 }, (_, j) => {
    const expression = h("span");
    return {
      expression,
      nodes: [h("span", { class: "tl-note" }, j < M ? (M > 1 ? `S, column ${j + 1}` : "S") : "z"), room(expression)],
    };
  });
  const output = h("p");
  const inCells = (cells) => cells.map((cell) => h("td", {}, room(cell)));
  const rows = Array.from({ length: seq }, (_, j) => {
    const cells = [h("span"), h("span"), h("span")];
    return { cells, node: h("tr", {}, h("th", { scope: "row" }, `${j + 1}`), inCells(cells)) };
  });
  const sums = [h("span"), h("span"), h("span")];
  const table = h(
    "table",
    { class: "tl-keys" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["key", "φ(q)·φ(k)", "÷ sum", "value"].map((text) => h("th", { scope: "col" }, text)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => row.node),
    ),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "sum"), inCells(sums))),
  );
  const tableName = h("p"),
    same = h("p", { class: "tl-same" });
  const memory = ["state", "cache"].map((kind) => {
    const text = h("p"),
      bar = h("span", { class: `tl-part tl-${kind}` });
    return {
      text,
      bar,
      node: h("div", {}, room(text, "tl-note"), h("div", { class: "tl-track", "aria-hidden": "true" }, bar)),
    };
  });
  const node = h(
    "div",
    {},
    h("div", { class: "tl-walk" }, back, on, room(reading, "tl-reading")),
    slider,
    h(
      "div",
      { class: `tl-forms${M > 3 || D > 4 ? " tl-broad" : ""}` },
      h(
        "div",
        { class: "tl-recurrent" },
        h("p", { class: "tl-heading" }, "1. Write: add this token to the state"),
        given.map((each) => room(each, "tl-given")),
        h(
          "div",
          { class: "tl-sum-of" },
          before.node,
          h("div", { class: "tl-term" }, h("span", { class: "tl-plus" }, "+"), added.node),
          h("div", { class: "tl-term" }, h("span", { class: "tl-plus" }, "="), after.node),
        ),
        h("p", { class: "tl-heading" }, "2. Read: ask the state"),
        asked.map((each) => room(each, "tl-given")),
        h(
          "div",
          { class: "tl-products" },
          products.flatMap((each) => each.nodes),
        ),
        h("p", { class: "tl-output-rule" }, "output = φ(q)ᵀS / φ(q)ᵀz"),
        room(output, "tl-output-line"),
      ),
      h(
        "div",
        {},
        room(tableName, "tl-heading"),
        h("div", { class: "tl-scroll" }, table),
        same,
        h("p", { class: "tl-heading" }, "Numbers to keep for the next token"),
        memory.map((each) => each.node),
      ),
    ),
  );

  // All that is said of a token: pairs of a node and its text.
  function words({ query, key, value }, all, t) {
    const now = all[t],
      row = parallel(query, key, value, t),
      token = t + 1,
      state = D * M + D,
      cache = token * (D + M);
    const seen = (j, text, otherwise) => (j <= t ? text() : otherwise);
    return {
      now,
      row,
      state,
      cache,
      lines: [
        [reading, `token ${token} of ${seq}`],
        [given[0], `k = ${tuple(key[t])}`],
        [given[1], `φ(k) = elu(k) + 1 = ${tuple(now.keys, positive)}`],
        [given[2], `v = ${tuple(value[t])}`],
        [before.name, t ? `after token ${t}` : "at the beginning"],
        [added.name, "φ(k) times v, and times 1"],
        [after.name, `after token ${token}`],
        [asked[0], `q = ${tuple(query[t])}`],
        [asked[1], `φ(q) = ${tuple(now.queries, positive)}, times each column of S and times z:`],
        ...products.map(({ expression }, j) => [
          expression,
          j < M
            ? `${sumText(
                now.queries,
                now.S.map((each) => each[j]),
              )} = ${short(now.numerator[j])}`
            : `${sumText(now.queries, now.z, positive)} = ${positive(now.denominator)}`,
        ]),
        [output, `= ${tuple(now.numerator)} / ${positive(now.denominator)} = ${tuple(now.output)}`],
        [tableName, `The same in parallel: row ${token} of the masked φ(Q)φ(K)ᵀ`],
        ...rows.flatMap(({ cells }, j) => [
          [cells[0], seen(j, () => positive(row.scores[j]), "masked")],
          [cells[1], seen(j, () => positive(row.weights[j]), "0")],
          [cells[2], tuple(value[j])],
        ]),
        [sums[0], positive(row.sum)],
        [sums[1], "1"],
        [sums[2], tuple(row.output)],
        [memory[0].text, `state: D×M + D = ${D}×${M} + ${D} = ${state}, after every token`],
        [memory[1].text, `key–value cache: t × (D + M) = ${token} × ${D + M} = ${cache}, and growing`],
      ],
    };
  }

  const tokenInWords = (token, state, cache, read, equal) =>
    `Token ${token} of ${seq}: φ(k)vᵀ and φ(k) are added to the state, which stays ${state} numbers. φ(q) reads the output ${tuple(read)}` +
    `${equal ? ", the same as in parallel" : ""}. A key–value cache would hold ${cache} numbers by now.`;

  // Room for what is said of any token. New tensors need another.
  let made = null,
    longest = [];
  function makeRoom(tensors, all) {
    const key = JSON.stringify(tensors);
    if (key === made) return;
    made = key;
    const each = all.map((_, t) => words(tensors, all, t));
    each[0].lines.forEach(([line], i) =>
      reserve(line, ...byWidth(node, [...new Set(each.map(({ lines }) => lines[i][1]))]).slice(0, 4)),
    );
    longest = byWidth(
      node,
      each.map(({ now, state, cache }, t) => tokenInWords(t + 1, state, cache, now.output, true)),
    ).slice(0, 3);
    const numbers = all.flatMap(({ S, z, added, keys }) => [S, [z], added, [keys]].flat(2)),
      written = [...numbers.map(narrow), ...numbers.map(positive)];
    node
      .querySelector(".tl-forms")
      .style.setProperty("--number", Math.max(...written.map((text) => ems(node, text, 700))));
  }

  function draw(status) {
    const [query, key, value] = ["query", "key", "value"].map((name) => model.get(name));
    const token = model.get("token"),
      t = token - 1,
      all = recurrent(query, key, value),
      { now, row, state, cache, lines } = words({ query, key, value }, all, t);
    const most = { S: Math.max(...all.flatMap(({ S }) => S.flat().map(Math.abs))), z: Math.max(...all.at(-1).z) };
    makeRoom({ query, key, value }, all);
    for (const [line, text] of lines) say(line, text);
    slider.value = token;
    set(slider, { "aria-valuetext": `token ${token} of ${seq}` });
    // A button at the end of its way hands the focus on, before it is switched off.
    for (const [button, off, other] of [
      [back, token === 1, on],
      [on, token === seq, back],
    ]) {
      if (off && seq > 1 && document.activeElement === button) {
        set(other, { disabled: null });
        other.focus();
      }
      set(button, { disabled: off });
    }
    before.draw({ ...now.before, most });
    added.draw({ S: now.added, z: now.keys, most, v: value[t], keys: now.keys });
    after.draw({ S: now.S, z: now.z, most, changed: (i, j) => j === M || now.added[i][j] !== 0 });
    rows.forEach(({ node: tr }, j) => set(tr, { class: j <= t ? null : "tl-unseen" }));
    const apart = Math.max(...row.output.map((x, j) => Math.abs(x - now.output[j]) / Math.max(1, Math.abs(x))));
    const equal = apart < 1e-9;
    say(
      same,
      equal ? "The weights times the values give the same output." : "The two outputs differ: this should not happen.",
    );
    const largest = Math.max(state, seq * (D + M));
    memory[0].bar.style.setProperty("--size", state / largest);
    memory[1].bar.style.setProperty("--size", cache / largest);
    say(status, tokenInWords(token, state, cache, now.output, equal));
    reserve(status, ...longest);
  }
  return { node, draw };
}

function render({ model, el }) {
  const traits = ["mode", "n", "d", "m", "between", "token"];
  const modes = choice(
    "Mode",
    [
      ["order", "order of multiplication"],
      ["steps", "step by step"],
    ],
    (mode) => commit(model, { mode }),
  );
  const panels = { order: orders(model), steps: tokens(model) };
  const { lab, status } = frame(
    { model, el },
    "Which product first?",
    traits,
    h("div", { class: "tl-row" }, modes.node),
    panels.order.node,
    panels.steps.node,
  );
  lab.classList.add("tl-order");
  for (const panel of Object.values(panels)) panel.draw(status); // also the one that is not on show has its room from the beginning
  return follow(model, [...traits, "query", "key", "value"], () => {
    const mode = model.get("mode");
    modes.show(mode);
    for (const [name, panel] of Object.entries(panels)) set(panel.node, { hidden: name !== mode });
    panels[mode].draw(status);
  });
}

export default { render };
