// The mask lab: which query sees which key. Scores → masked scores → weights → output, and what the classic mistakes do to them.

const PAD = "<pad>";
const MOST_TOKENS = 12,
  LONGEST_TOKEN = 16,
  D_HEAD = 4,
  D_VALUE = 2;
const MOST_OUTPUT = 4; // columns of the output that are drawn
const LEAST = 0.005; // a weight below is 0.00 in print

// A sentence as tokens: words, and marks by themselves.
function parseTokens(text) {
  const value = text.match(/[^\s\x00-\x1f\x7f-\x9f.,;:!?"“”()…]+|[.,;:!?"“”()…]/gu) ?? [];
  if (!value.length) return { error: "Type a word or more." };
  if (value.length > MOST_TOKENS) return { error: `At most ${MOST_TOKENS} tokens here; this has ${value.length}.` };
  const long = value.find((token) => [...token].length > LONGEST_TOKEN);
  if (long)
    return {
      error: `A token has at most ${LONGEST_TOKEN} characters here; “${[...long].slice(0, LONGEST_TOKEN).join("")}…” has ${[...long].length}.`,
    };
  return { value, text: value.join(" ") };
}

// Numbers from −2 to 2, to one decimal, that depend on the word and the role alone. Python makes the same.
function madeUp(word, role, features) {
  let code = 5728;
  for (const letter of role[0] + word) code = Math.imul(code ^ letter.codePointAt(0), 16777619);
  return Array.from({ length: features }, () => {
    code = (code + 2654435769) | 0;
    let mixed = Math.imul(code ^ (code >>> 16), 2246822507);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 3266489909);
    return ((((mixed ^ (mixed >>> 16)) >>> 0) % 41) - 20) / 10;
  });
}

// Who looks, and what is looked at.
function sides({ preset, given, tokens, source }) {
  const across = given || preset === "encoder" || preset === "decoder cross";
  return { queries: !given && preset === "encoder" ? source : tokens, keys: across ? source : tokens };
}

function presetMask({ preset, window, prefix, queries, keys }) {
  const shift = keys.length - queries.length; // the last query stands at the last key
  const causal = ["causal", "both", "prefix", "decoder self", "window"].includes(preset);
  const real = ["padding", "both", "encoder", "decoder self", "decoder cross"].includes(preset);
  return queries.map((_, i) =>
    keys.map(
      (key, j) =>
        (!causal || j <= i + shift || (preset === "prefix" && j < prefix)) &&
        (preset !== "window" || j > i + shift - window) &&
        (!real || key !== PAD),
    ),
  );
}

function maskOf(state) {
  const mask = presetMask(state);
  for (const [i, j] of state.flipped) if (mask[i]?.[j] !== undefined) mask[i][j] = !mask[i][j];
  return mask;
}

// The weights of one row over what it sees: none at all where it sees nothing.
function weigh(scores, sees) {
  if (!sees.some(Boolean)) return scores.map(() => 0);
  return softmax(scores.map((score, j) => (sees[j] ? score : -Infinity)));
}

// All stages of attention with `mask`, computed with `mistake` in it. `sees` is what a row sees where scores become −∞.
function attend({ query, key, value, mask, mistake, realQueries }) {
  const scores = query.map((q) => key.map((k) => dot(q, k) / Math.sqrt(q.length)));
  const shift = key.length - query.length;
  const sees = mask.map((row, i) =>
    row.map(
      (seen, j) =>
        ({
          "after softmax": true,
          "times zero": true,
          "large negative": true,
          inverted: !seen,
          diagonal: seen && j !== i + shift,
          "padded rows": seen && realQueries[i],
        })[mistake] ?? seen,
    ),
  );
  const masked = scores.map((row, i) =>
    row.map((score, j) => {
      if (!sees[i][j]) return -Infinity;
      if (mask[i][j] || mistake === "after softmax" || mistake === "inverted") return score;
      return mistake === "large negative" ? -1e9 : 0;
    }),
  );
  const weights = masked.map((row, i) =>
    weigh(row, sees[i]).map((w, j) => (mistake === "after softmax" && !mask[i][j] ? 0 : w)),
  );
  const sums = weights.map((row) => row.reduce((a, b) => a + b, 0));
  return { scores, masked, sees, weights, sums, output: value && weights.map((row) => blend(row, value)) };
}

// All that is shown of a state (the traits' values): the mask, the preset's own, every stage, and what the weights should be.
function compute(state) {
  const { queries, keys } = sides(state),
    made = (words, role, features) => words.map((word) => madeUp(word, role, features));
  const vectors = state.given ?? {
    query: made(queries, "query", D_HEAD),
    key: made(keys, "key", D_HEAD),
    value: made(keys, "value", D_VALUE),
  };
  const named = { ...state, queries, keys },
    mask = maskOf(named);
  const all = { ...vectors, mask, realQueries: queries.map((token) => token !== PAD) };
  const right = attend({ ...all, mistake: "none" }),
    shown = state.mistake === "none" ? right : attend({ ...all, mistake: state.mistake });
  return { ...shown, mask, base: presetMask(named), right, value: vectors.value };
}

const quoted = (token) => `“${token}”`;
const listed = (things) =>
  things.length < 2 ? things.join("") : `${things.slice(0, -1).join(", ")} and ${things.at(-1)}`;
const minus = (text) => text.replace("-", "−");
const twoPlaces = (x) => minus(Math.abs(x) < 0.005 ? "0.00" : x.toFixed(2));
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

// An output in words: its first few numbers.
const written = (output) =>
  `= (${output.slice(0, MOST_OUTPUT).map(twoPlaces).join(", ")}${output.length > MOST_OUTPUT ? ", …" : ""})`;

// A score in four characters or so.
function short(x) {
  if (x === -Infinity) return "−∞";
  const size = Math.abs(x);
  return minus(
    size >= 1000
      ? x.toExponential(0).replace("+", "")
      : size >= 9.95
        ? x.toFixed(0)
        : size < 0.05
          ? "0.0"
          : x.toFixed(1),
  );
}

const PRESETS = [
  ["everything", "everything"],
  ["causal", "causal"],
  ["padding", "padding"],
  ["both", "causal + padding"],
  ["window", "window"],
  ["prefix", "prefix"],
  ["encoder", "encoder"],
  ["decoder self", "decoder: self"],
  ["decoder cross", "decoder: cross"],
];
const NEEDS_PADDING = ["padding", "both", "encoder", "decoder self", "decoder cross"];

const MISTAKES = [
  ["none", "none"],
  ["after softmax", "after the softmax"],
  ["inverted", "inverted"],
  ["times zero", "scores × 0"],
  ["diagonal", "diagonal too"],
  ["padded rows", "padded rows too"],
  ["large negative", "−10⁹, not −∞"],
];

// For each mistake: what happens in the second and third stage, and what that breaks.
const TOLD = {
  none: [
    "hidden → −∞",
    "softmax of each row",
    "Hidden scores become −∞ before the softmax, and e to the −∞ is 0. So every row shares one whole among the keys it sees.",
  ],
  "after softmax": [
    "nothing hidden yet",
    "softmax, then × mask",
    "Hidden keys had taken their share before they were removed, so rows no longer sum to one. And they still matter: their scores are in every denominator. No error appears, since every shape is right.",
  ],
  inverted: [
    "seen → −∞",
    "softmax of each row",
    "True was read as “hide”, as nn.MultiheadAttention reads it. Every query sees exactly what it must not. No error appears: shapes are right, and rows sum to one.",
  ],
  "times zero": [
    "hidden → 0",
    "softmax of each row",
    "A hidden score becomes 0, and e⁰ is 1, not 0: a hidden key weighs as much as any key that scores 0. No error appears: shapes are right, and rows sum to one.",
  ],
  diagonal: [
    "hidden, itself → −∞",
    "softmax of each row",
    "One off, tril(-1) for tril(0): no token sees itself. Shapes are right and nothing raises, until a row sees nothing and a plain softmax makes it NaN.",
  ],
  "padded rows": [
    "hidden, padded rows → −∞",
    "softmax of each row",
    "Padding is a key that nobody may see. Hidden as a query too, its row holds −∞ alone, and a plain softmax makes it NaN. NaN spreads: NaN × 0 is NaN, in the next layer and in the loss. Hide columns, not rows.",
  ],
  "large negative": [
    "hidden → −10⁹",
    "softmax of each row",
    "Where a row sees anything, the weights are the same as with −∞. A row that sees nothing has equal scores, all −10⁹, and attends to all keys alike, hidden ones included. No NaN, no error, and no warning.",
  ],
};

// In words: what a preset lets a query see.
function described({ preset, window, prefix, keys, queries, flipped }) {
  const padding = keys.filter((key) => key === PAD).length;
  const square = keys.length === queries.length ? "" : " The last query stands at the last key.";
  const none = padding || !NEEDS_PADDING.includes(preset) ? "" : " There is no padding yet: add some, or type <pad>.";
  const text = {
    everything: "Every query sees every key: no mask.",
    causal: `A token sees itself and what stands before it.${square}`,
    padding: "Padding is hidden as a key, from every query: columns, not rows.",
    both: "A token sees itself and what stands before it, and no padding.",
    window: `A token sees ${window === 1 ? "itself alone" : `itself and ${window === 2 ? "the token" : `the ${window - 1} tokens`} before it`}.${square}`,
    prefix: `All see the first ${plural(prefix, "token", "tokens")}; the rest is causal.${square}`,
    encoder: "The encoder’s self-attention: the source sees itself, without its padding.",
    "decoder self": "The decoder’s self-attention: causal, and without the target’s own padding.",
    "decoder cross":
      "The decoder’s cross-attention: each target token sees the whole source, without the source’s padding. Nothing is causal here.",
  }[preset];
  const name = PRESETS.find(([id]) => id === preset)[1];
  return flipped ? `Your own mask: ${plural(flipped, "cell is", "cells are")} not as in “${name}”.` : text + none;
}

// In words: the row that is picked. `names` are those of queries and keys.
function rowInWords({ queries, keys }, { mask, weights, sums, sees, output }, i, mistake) {
  const seen = keys.flatMap((_, j) => (mask[i][j] ? [j] : []));
  const who = quoted(queries[i]);
  if (!sees[i].some(Boolean)) {
    const why = seen.length
      ? `${who} should see ${plural(seen.length, "key", "keys")}, but all its scores are −∞`
      : `${who} sees nothing`;
    return `${why}: weights 0 and output 0 here, by the course’s rule. A plain softmax gives NaN.`;
  }
  const numbers = seen.map((j) => twoPlaces(weights[i][j]));
  const sum = `sum ${twoPlaces(sums[i])}`;
  const all = seen.length === keys.length;
  const most = seen.reduce((best, j) => (weights[i][j] > weights[i][best] ? j : best), seen[0]);
  if (!seen.length) return `${who} sees nothing by the mask, and still has weights, ${sum}.`;
  if (seen.length > 6)
    return `${who} sees ${all ? "all" : `${seen.length} of`} ${keys.length} keys, ${quoted(keys[most])} most: weight ${twoPlaces(weights[i][most])}, ${sum}.`;
  return `${who} ${mistake === "none" ? "sees" : "may see"} ${listed(seen.map((j) => quoted(keys[j])))}; ${seen.length > 1 ? "weights" : "weight"} ${numbers.join(", ")}, ${sum}.`;
}

// In words: how a hidden key still matters to the row, if it does.
function leakInWords({ queries, keys }, { mask, weights, scores, sums }, i, mistake) {
  const hidden = keys.flatMap((_, j) => (mask[i][j] ? [] : [j]));
  const best = (numbers, among) => among.reduce((top, j) => (top < 0 || numbers[j] > numbers[top] ? j : top), -1);
  const thief = best(mistake === "after softmax" ? scores[i] : weights[i], hidden);
  if (thief < 0) return "";
  // A word that stands in the sentence twice is told apart by its position.
  const name =
    quoted(keys[thief]) + (keys.indexOf(keys[thief]) === keys.lastIndexOf(keys[thief]) ? "" : ` at position ${thief}`);
  if (mistake !== "after softmax") {
    return weights[i][thief] >= LEAST
      ? `${quoted(queries[i])} gives ${twoPlaces(weights[i][thief])} to ${name}, which it must not see. `
      : "";
  }
  const seen = best(
    weights[i],
    keys.flatMap((_, j) => (mask[i][j] ? [j] : [])),
  );
  if (seen < 0) return "";
  const without = weigh(
    scores[i],
    keys.map((_, j) => j !== thief),
  )[seen];
  return `${quoted(queries[i])} lost ${twoPlaces(1 - sums[i])} to hidden keys. Without ${name}, which it must not see, it would give ${twoPlaces(without)} to ${quoted(keys[seen])}, not ${twoPlaces(weights[i][seen])}. `;
}

// In words: what the mistake does to this mask as a whole, and which rows see nothing.
function damageInWords({ queries, given }, { mask, weights, sums, sees }, mistake) {
  const rows = queries.map((_, i) => i);
  const empty = rows.filter((i) => !sees[i].some(Boolean));
  const lost = rows.filter((i) => !empty.includes(i) && Math.abs(sums[i] - 1) >= LEAST);
  const leaks = rows.flatMap((i) => weights[i].filter((weight, j) => !mask[i][j] && weight >= LEAST));
  if (mistake !== "none")
    return damages(lost.length, leaks.length, Math.max(...leaks), empty.length) || unchanged(mistake, given);
  return empty.length ? emptiness(empty.length, [...new Set(empty.map((i) => quoted(queries[i])))]) : "";
}

function damages(lost, leaks, most, empty) {
  const said = [];
  if (lost) said.push(`${plural(lost, "row does", "rows do")} not sum to one`);
  if (leaks) said.push(`${plural(leaks, "hidden cell gets", "hidden cells get")} weight, up to ${twoPlaces(most)}`);
  if (empty) said.push(`${plural(empty, "row is", "rows are")} all −∞`);
  return said.length ? `Here ${listed(said)}.` : "";
}

const unchanged = (mistake, given) =>
  ({
    "padded rows": `Here it changes nothing: no query is padding.${given ? "" : " Add some."}`,
    "large negative": "Here it changes nothing: no row is empty. Hide a whole row.",
    diagonal: "Here it changes nothing: the diagonal is hidden already.",
  })[mistake] ?? "Here it changes nothing, for nothing is hidden. Choose a mask.";

function emptiness(rows, names) {
  const some = names.length > 3 ? "" : `, of ${listed(names)},`;
  return `${rows === 1 ? `The row of ${names[0]} sees` : `${rows} rows${some} see`} nothing. No weights sum to one there: the course gives zeros, a plain softmax NaN.`;
}

// The longest that can be said of a state: of its rows, of its hidden keys and of all of it.
function longestWords(node, state) {
  const { queries, keys, mistake, given } = state,
    askers = byWidth(node, [...new Set(queries)]),
    names = byWidth(node, keys),
    [who, name] = [askers[0], names[0]];
  const row = (keys, sees) =>
    rowInWords(
      { queries: [who], keys },
      { mask: [keys.map(() => true)], weights: [keys.map(() => 0)], sums: [0], sees: [[sees]] },
      0,
      mistake,
    );
  const place = new Set(keys).size < keys.length ? " at position 00" : "",
    cells = queries.length * keys.length;
  const leak =
    mistake === "none"
      ? ""
      : mistake === "after softmax"
        ? `${quoted(who)} lost 0.00 to hidden keys. Without ${quoted(name)}${place}, which it must not see, it would give 0.00 to ${quoted(name)}, not 0.00. `
        : `${quoted(who)} gives 0.00 to ${quoted(name)}${place}, which it must not see. `;
  const most =
    mistake === "none"
      ? emptiness(queries.length, askers.slice(0, 3).map(quoted))
      : mistake === "after softmax"
        ? damages(queries.length, 0, 0, 0)
        : damages(0, cells, 0, queries.length);
  return {
    rows: [row(names.slice(0, 6), true), row(keys, true), row(keys, false)],
    leak,
    damages: [most, ...(mistake === "none" ? [] : [unchanged(mistake, given)])],
  };
}

let grids = 0;

// One stage as a table: a row for each query, a column for each key or feature. Elements are made when the names change, and
// changed in place otherwise, each only where it looks different. What is picked is told by marks that move over the cells,
// for a row that changes its class is laid out anew.
function stage(name, title) {
  const formula = h("span", { class: "tl-how" });
  const matrix = h("div", { class: "tl-matrix", role: "grid" });
  const node = h(
    "div",
    { class: "tl-step", "data-stage": name },
    h("div", { class: "tl-step-head" }, h("strong", {}, title), room(formula)),
    matrix,
  );
  const id = `tl-cells-${Date.now().toString(36)}-${grids++}`;
  const marks = ["tl-at-row", "tl-at-column", "tl-at-cell"].map((kind) =>
    h("div", { class: kind, "aria-hidden": "true" }),
  );
  let rows = [],
    columns = [],
    cells = [],
    looks = [],
    sums = [],
    lines = [],
    made = null,
    based = null;

  function make(newRows, newColumns, summed) {
    const key = JSON.stringify([newRows, newColumns, summed]);
    if (key === made) return;
    made = key;
    [rows, columns, based] = [newRows, newColumns, null];
    const columnNames = [...columns, ...(summed ? ["sum"] : [])].map((text) =>
      h("span", { class: "tl-key-name" }, h("span", {}, text)),
    );
    cells = rows.map((_, i) =>
      columns.map((_, j) =>
        h("span", { class: "tl-square", role: "gridcell", id: `${id}-${i}-${j}`, "data-at": `${i} ${j}` }),
      ),
    );
    sums = summed ? rows.map(() => h("span", { class: "tl-sum", role: "gridcell" })) : [];
    const nothing = () =>
      h("span", { class: "tl-empty", "aria-hidden": "true" }, columns.length > 2 ? "sees nothing" : "none");
    lines = rows.map((text, i) =>
      h(
        "div",
        { class: "tl-matrix-row", role: "row" },
        h("span", { class: "tl-query-name", role: "rowheader", title: text }, text),
        ...cells[i],
        ...(summed ? [sums[i], nothing()] : []),
      ),
    );
    matrix.style.setProperty("--columns", columnNames.length);
    matrix.replaceChildren(
      h(
        "div",
        { class: "tl-matrix-row tl-matrix-head", "aria-hidden": "true" },
        h("span", { class: "tl-query-name" }),
        columnNames,
      ),
      ...lines,
      ...marks,
    );
  }

  // How a cell looks follows from its value, from whether it is hidden, and from what `kind(i, j)` tells besides: `look` gives
  // {text, shade, alarm}. All cells are looked at anew only where `basis` changes.
  function draw({ values, hidden = () => false, kind = () => "", look, basis, picked: [row, column], sumOf }) {
    if (based !== basis) looks = rows.map(() => columns.map(() => ({})));
    based = basis;
    cells.forEach((line, i) =>
      line.forEach((square, j) => {
        const now = { value: values[i][j], hidden: hidden(i, j), kind: kind(i, j) },
          was = looks[i][j];
        if (now.value === was.value && now.hidden === was.hidden && now.kind === was.kind) return;
        const { text, shade, alarm } = look(now.value, now.hidden, now.kind);
        const wear = `tl-square${now.hidden ? " tl-hidden" : ""}${alarm ? " tl-leak" : ""}`;
        looks[i][j] = Object.assign(now, { wear, background: shade?.background ?? "", color: shade?.color ?? "" });
        say(square, text);
        if (now.wear !== was.wear) square.className = wear;
        if (now.background !== was.background) square.style.backgroundColor = now.background;
        if (now.color !== was.color) square.style.color = now.color;
        set(square, { "aria-label": `${rows[i]}, ${columns[j]}: ${now.hidden ? "hidden, " : ""}${text || "0"}` });
      }),
    );
    sums.forEach((sum, i) => {
      say(sum, twoPlaces(sumOf(i)));
      sum.classList.toggle("tl-alarm", Math.abs(sumOf(i) - 1) >= LEAST);
    });
    const down = `calc(${row} * (100% + 2px))`,
      right = `calc(${column} * (100% + 2px))`;
    [`translateY(${down})`, `translateX(${right})`, `translate(${right}, ${down})`].forEach((move, m) => {
      marks[m].style.transform = move;
    });
  }

  const blind = (at) => lines.forEach((line, i) => line.classList.toggle("tl-blind", at(i)));
  return { node, matrix, make, draw, blind, formula, idOf: (i, j) => `${id}-${i}-${j}` };
}

// A number to step up and down.
function stepper(label, step) {
  const count = h("span", { class: "tl-count", "aria-live": "polite" });
  const button = (text, by) =>
    h(
      "button",
      { type: "button", "aria-label": `${by < 0 ? "Less" : "More"} ${label}`, onclick: () => step(by) },
      text,
    );
  const [less, more] = [button("−", -1), button("+", 1)];
  return {
    node: h(
      "div",
      { class: "tl-stepper", role: "group", "aria-label": label },
      h("span", { class: "tl-note" }, label),
      less,
      count,
      more,
    ),
    show: (value, least, most) => {
      say(count, String(value));
      set(less, { disabled: value <= least });
      set(more, { disabled: value >= most });
    },
  };
}

function render({ model, el }) {
  const traits = ["tokens", "source", "preset", "window", "prefix", "flipped", "mistake", "at", "given"];
  const given = model.get("given");
  const get = () => {
    const state = Object.fromEntries(traits.map((name) => [name, model.get(name)]));
    return { ...state, ...sides(state) };
  };

  const sentence = (name, label) =>
    field(label, `up to ${MOST_TOKENS} tokens; ${PAD} is padding`, parseTokens, (value) =>
      commit(model, { [name]: value }),
    );
  const typed = { tokens: sentence("tokens", "Sentence"), source: sentence("source", "Source sentence (the keys)") };
  const keysName = (state) => (state.keys === state.source ? "source" : "tokens");
  const padding = stepper("padding", (by) => {
    const state = get(),
      name = keysName(state),
      words = state[name];
    commit(model, { [name]: by > 0 ? [...words, PAD] : words.slice(0, -1) });
  });
  const lengths = {
    window: stepper("window", (by) => commit(model, { window: model.get("window") + by })),
    prefix: stepper("prefix", (by) => commit(model, { prefix: model.get("prefix") + by })),
  };

  const pick = (preset) => {
    const state = { ...get(), preset };
    const name = keysName({ ...state, ...sides(state) }),
      words = state[name];
    const room = Math.min(2, MOST_TOKENS - words.length);
    const bare = !given && NEEDS_PADDING.includes(preset) && !words.includes(PAD); // without padding it would show nothing
    commit(model, { preset, flipped: [], ...(bare ? { [name]: [...words, ...Array(room).fill(PAD)] } : {}) });
  };
  const offered = (id) =>
    !given ||
    ["everything", "causal", "window", "prefix"].includes(id) ||
    (["padding", "both"].includes(id) && model.get("source").includes(PAD));
  const kinds = PRESETS.filter(([id]) => offered(id));
  const patterns = choice("Mask", kinds.slice(0, 6), pick),
    places = choice("Place in a Transformer", kinds.slice(6), pick);
  const mistakes = choice("Mistake", MISTAKES, (mistake) => commit(model, { mistake }));
  const about = h("p");

  const stages = {
    scores: stage("scores", "scores"),
    masked: stage("masked", "masked scores"),
    weights: stage("weights", "weights"),
    output: stage("output", "output"),
  };
  const names = Object.keys(stages).filter((name) => name !== "output" || !given || given.value);
  let front = "weights"; // on a narrow page one stage is shown at a time
  const tabs = choice(
    "Stage",
    names.map((name) => [name, { masked: "masked" }[name] ?? name]),
    (name) => {
      front = name;
      draw();
    },
  );
  tabs.node.classList.add("tl-tabs");
  const stageBox = h(
    "div",
    { class: "tl-flow" },
    tabs.node,
    names.map((name) => stages[name].node),
  );

  for (const [name, i] of [
    ["masked", 0],
    ["weights", 1],
  ])
    reserve(stages[name].formula, ...new Set(Object.values(TOLD).map((told) => told[i])));
  const bars = ["right", "wrong"].map((kind) => {
    const strip = h("div", { class: "tl-blend" }),
      result = h("span", { class: "tl-code" }),
      label = h("span", { class: "tl-note" });
    return {
      kind,
      strip,
      result,
      label,
      node: h("div", { class: "tl-blend-row" }, room(label), strip, room(result)),
      segments: [],
    };
  });
  const told = h("span", { "aria-live": "polite" }),
    leak = h("span", {}),
    damage = h("strong", {});
  const broken = h("p", {}, told, " ", leak, damage),
    verdict = room(broken, "tl-verdict-box");
  const { lab, status } = frame(
    { model, el },
    "Who sees whom: masks",
    traits,
    h("div", { class: "tl-row", hidden: Boolean(given) }, typed.tokens.node, typed.source.node, padding.node),
    h("div", { class: "tl-row tl-presets" }, h("span", { class: "tl-note" }, "mask"), patterns.node),
    h(
      "div",
      { class: "tl-row tl-presets", hidden: kinds.length < 7 },
      h("span", { class: "tl-note" }, "in a Transformer"),
      places.node,
    ),
    h("div", { class: "tl-row tl-about" }, room(about), lengths.window.node, lengths.prefix.node),
    h("div", { class: "tl-flow-box" }, stageBox),
    h(
      "p",
      { class: "tl-note tl-hint" },
      "Click a cell, or drag over several, to hide a key from a query or show it. Arrow keys move, Space switches.",
    ),
    bars[0].node,
  );
  lab.classList.add("tl-masks");
  // What grows with a mistake comes last: no button moves while it is pressed.
  lab.append(
    h("div", { class: "tl-row tl-presets" }, h("span", { class: "tl-note" }, "classic mistake"), mistakes.node),
    bars[1].node,
    verdict,
    h(
      "p",
      { class: "tl-note" },
      given
        ? `Your own tensors: query (${given.query.length}, ${given.query[0].length}), key (${given.key.length}, ${given.key[0].length})${given.value ? `, value (${given.value.length}, ${given.value[0].length})` : ", no value"}.`
        : `The vectors are made up: every word has its own query and key of ${D_HEAD} numbers and a value of ${D_VALUE}; the same word, the same numbers.`,
    ),
  );

  const clampedAt = (state) => [
    Math.min(state.at[0], state.queries.length - 1),
    Math.min(state.at[1], state.keys.length - 1),
  ];
  let now = null; // the state on show, and what was computed from it

  // Lets `cells` be seen or hidden, and picks one.
  function paint(cells, seen, at) {
    const state = get(),
      mask = maskOf(state),
      base = presetMask(state);
    for (const [i, j] of cells) mask[i][j] = seen;
    const flipped = mask.flatMap((row, i) => row.flatMap((value, j) => (value === base[i][j] ? [] : [[i, j]])));
    commit(model, { at, ...(JSON.stringify(flipped) === JSON.stringify(state.flipped) ? {} : { flipped }) });
  }

  function pointAt(at) {
    const [i, j] = clampedAt(get());
    if (at[0] !== i || at[1] !== j) commit(model, { at });
  }

  // Painting: the first cell that is pressed decides whether the drag hides or shows.
  function paintable({ matrix }) {
    let brush = null,
      last = null;
    const cellAt = (event) => {
      const hit = (el.getRootNode().elementFromPoint ? el.getRootNode() : document)
        .elementFromPoint(event.clientX, event.clientY)
        ?.closest(".tl-square");
      return hit && matrix.contains(hit) ? hit.dataset.at.split(" ").map(Number) : null;
    };
    set(matrix, {
      onpointerdown: (event) => {
        const at = cellAt(event);
        if (!at || event.button > 0) return;
        [brush, last] = [!now.mask[at[0]][at[1]], at];
        matrix.setPointerCapture(event.pointerId);
        matrix.focus({ preventScroll: true });
        paint([at], brush, at);
        event.preventDefault();
      },
      onpointermove: (event) => {
        const at = cellAt(event);
        if (!at) return;
        if (brush === null) {
          if (event.pointerType === "mouse") pointAt(at);
          return;
        }
        if (at[0] === last[0] && at[1] === last[1]) return;
        const steps = Math.max(Math.abs(at[0] - last[0]), Math.abs(at[1] - last[1])); // a fast pointer skips cells
        paint(
          Array.from({ length: steps }, (_, s) =>
            at.map((x, axis) => Math.round(last[axis] + ((x - last[axis]) * (s + 1)) / steps)),
          ),
          brush,
          at,
        );
        last = at;
      },
      onpointerup: () => {
        brush = null;
      },
      onpointercancel: () => {
        brush = null;
      },
      onkeydown: (event) => {
        const move = {
          ArrowRight: [0, 1],
          ArrowLeft: [0, -1],
          ArrowDown: [1, 0],
          ArrowUp: [-1, 0],
          Home: [0, -MOST_TOKENS],
          End: [0, MOST_TOKENS],
        }[event.key];
        const state = get(),
          [i, j] = clampedAt(state);
        const within = (x, size) => Math.min(Math.max(x, 0), size - 1);
        if (move) pointAt([within(i + move[0], state.queries.length), within(j + move[1], state.keys.length)]);
        else if (event.key === " " || event.key === "Enter") paint([[i, j]], !now.mask[i][j], [i, j]);
        else return;
        event.preventDefault();
      },
    });
  }
  for (const name of ["scores", "masked", "weights"]) paintable(stages[name]);
  stages.output.matrix.addEventListener("pointermove", (event) => {
    const row = event.target.closest?.(".tl-square")?.dataset.at.split(" ")[0];
    if (row !== undefined) pointAt([+row, clampedAt(get())[1]]);
  });

  function drawControls(state) {
    for (const name of ["tokens", "source"]) {
      typed[name].show(state[name].join(" "));
      typed[name].node.hidden = state.queries !== state[name] && state.keys !== state[name];
    }
    const across = state.queries !== state.keys;
    say(
      typed.tokens.node.firstChild,
      across ? "Target sentence (the queries)" : state.preset === "decoder self" ? "Target sentence" : "Sentence",
    );
    say(typed.source.node.firstChild, across ? "Source sentence (the keys)" : "Source sentence");
    const words = state.keys,
      pads = words.length - 1 - words.findLastIndex((token) => token !== PAD);
    padding.show(pads, 0, pads + MOST_TOKENS - words.length);
    if (pads === words.length) padding.show(pads, 1, pads); // a sentence keeps one token
    for (const name of ["window", "prefix"]) {
      lengths[name].node.hidden = state.preset !== name;
      lengths[name].show(state[name], name === "window" ? 1 : 0, MOST_TOKENS);
    }
    const flipped = now.mask.reduce(
      (count, row, i) => count + row.filter((seen, j) => seen !== now.base[i][j]).length,
      0,
    );
    patterns.show(flipped ? null : state.preset);
    places.show(flipped ? null : state.preset);
    mistakes.show(state.mistake);
    tabs.show(front);
    say(about, described({ ...state, flipped }));
    reserve(
      about,
      ...[0, MOST_TOKENS ** 2].map((flipped) =>
        described({ ...state, window: MOST_TOKENS, prefix: MOST_TOKENS, flipped }),
      ),
    );
  }

  function drawStages(state) {
    const { mask, sees, scores, masked, weights, sums, output } = now;
    const { queries, keys, mistake } = state,
      at = clampedAt(state);
    const reach = Math.max(...scores.flat().map(Math.abs), 1e-9);
    const signed = (x, most = reach) => shade(SIGNED, 0.5 + (0.46 * x) / most);
    const empty = sees.map((row) => !row.some(Boolean)),
      hidden = (i, j) => !mask[i][j];
    const [how, then] = TOLD[mistake];
    say(stages.scores.formula, "q · k / √d");
    say(stages.masked.formula, how);
    say(stages.weights.formula, then);
    say(stages.output.formula, "weights ·\u00a0v");
    for (const name of ["masked", "weights"])
      stages[name].formula.classList.toggle(
        "tl-alarm",
        mistake !== "none" && (name === "masked" || mistake === "after softmax"),
      );
    for (const name of ["scores", "masked", "weights"]) stages[name].make(queries, keys, name === "weights");
    stages.scores.draw({
      values: scores,
      look: (score) => ({ text: short(score), shade: signed(score) }),
      basis: reach,
      picked: at,
    });
    stages.masked.draw({
      values: masked,
      hidden,
      basis: `${mistake} ${reach}`,
      picked: at,
      look: (score, hidden) => {
        const huge = mistake === "large negative" && hidden,
          hides = score === -Infinity || huge;
        return {
          text: huge ? "−10⁹" : short(score),
          alarm: hides ? !hidden && mistake !== "inverted" : hidden,
          shade: hides ? null : signed(score),
        };
      },
    });
    stages.weights.draw({
      values: weights,
      hidden,
      basis: mistake,
      picked: at,
      sumOf: (i) => sums[i],
      kind: (i, j) => (empty[i] ? "empty" : sees[i][j] ? "seen" : "lost"),
      look: (weight, hidden, kind) => {
        const none = hidden && weight < 0.0005,
          lost = kind === "lost" && !hidden && mistake !== "inverted";
        const text = none ? "0" : keys.length > 9 ? twoPlaces(weight).replace(/^0/, "") : twoPlaces(weight);
        return {
          text: kind === "empty" ? "" : text,
          alarm: kind !== "empty" && (lost || (hidden && weight >= LEAST)),
          shade: none ? null : shade(BLUES, weight),
        };
      },
    });
    if (output) {
      stages.output.make(
        queries,
        output[0].slice(0, MOST_OUTPUT).map((_, j) => String(j)),
        false,
      );
      const widest = Math.max(...output.flat().map(Math.abs), 1e-9);
      stages.output.draw({
        values: output,
        look: (x) => ({ text: short(x), shade: signed(x, widest) }),
        basis: widest,
        picked: [at[0], -1],
      });
    }
    for (const name of names) stages[name].blind((i) => empty[i]);
    const properties = {
      "--n": keys.length,
      "--total": 3 * keys.length + 1 + (output ? Math.min(output[0].length, MOST_OUTPUT) : 0),
    };
    for (const [name, value] of Object.entries(properties)) stageBox.style.setProperty(name, value);
    stageBox.className = `tl-flow ${keys.length <= 6 ? "tl-six" : keys.length <= 9 ? "tl-nine" : "tl-many"}`;
    for (const name of names) stages[name].node.classList.toggle("tl-front", name === front);
    // One of the tables takes the keyboard: the one in front.
    for (const [name, { matrix, idOf }] of Object.entries(stages)) {
      const chosen = name === (front === "output" ? "weights" : front);
      set(
        matrix,
        chosen
          ? {
              tabindex: "0",
              "aria-label": `${name}. Arrow keys move, Space hides a key from a query or shows it.`,
              "aria-activedescendant": idOf(...at),
            }
          : { tabindex: null, "aria-label": name, "aria-activedescendant": null },
      );
    }
  }

  // Room for the longest words and the widest names and numbers, where a sentence or a mistake is new.
  let made = "";
  function makeRoom(state) {
    const { queries, keys, mistake } = state,
      key = JSON.stringify([queries, keys, mistake]);
    if (key === made) return;
    made = key;
    const longest = longestWords(status, state),
      who = widest(status, queries.map(quoted));
    reserve(status, ...longest.rows);
    reserve(broken, ...longest.damages.map((text) => [`${TOLD[mistake][2]} ${longest.leak}`, h("strong", {}, text)]));
    reserve(bars[0].label, `${who} takes home`, `${who}, right`);
    reserve(bars[1].label, "with the mistake");
    const wide = (texts, weight) => Math.max(...texts.map((text) => ems(status, text, weight)));
    const names = Math.min(wide([...queries, ...keys, "sum"]), ems(status, "n".repeat(keys.length > 9 ? 6 : 8)));
    const reach = now.value ? Math.max(...now.value.flat().map(Math.abs)) : 0;
    const numbers = [
      ...now.scores.flat().map(short),
      short(-reach),
      keys.length > 9 ? ".00" : "0.00",
      mistake === "large negative" ? "−10⁹" : "−∞",
    ];
    stageBox.style.setProperty("--name", names);
    stageBox.style.setProperty("--number", Math.max(wide(numbers), wide(["0.00"], 700)));
    if (now.output) for (const bar of bars) reserve(bar.result, written(now.output[0].map(() => -reach)));
  }

  function drawRow(state) {
    const { queries, keys, mistake } = state,
      [i] = clampedAt(state);
    for (const bar of bars) {
      const { weights, sums, output } = bar.kind === "right" ? now.right : now;
      bar.node.hidden = bar.kind === "wrong" && mistake === "none";
      say(
        bar.label,
        bar.kind === "wrong"
          ? "with the mistake"
          : mistake === "none"
            ? `${quoted(queries[i])} takes home`
            : `${quoted(queries[i])}, right`,
      );
      if (bar.node.hidden || bar.segments.length !== keys.length + 1) {
        bar.segments = bar.node.hidden ? [] : [...keys, ""].map(() => h("span", {}));
        bar.strip.replaceChildren(...bar.segments);
      }
      const lost = 1 - sums[i];
      let left = 0;
      bar.segments.forEach((segment, j) => {
        const last = j === keys.length,
          size = last ? lost : weights[i][j],
          tint = last ? { background: "", color: "" } : shade(BLUES, size);
        set(segment, {
          class: `tl-portion${last ? " tl-lost" : now.mask[i][j] ? "" : " tl-leak"}`,
          hidden: size < (last ? LEAST : 0.001),
        });
        say(
          segment,
          last
            ? lost > 0.999
              ? "nothing"
              : lost > 0.12
                ? `${twoPlaces(lost)} lost`
                : ""
            : size > 0.085
              ? keys[j]
              : "",
        );
        Object.assign(segment.style, {
          left: `${100 * left}%`,
          width: `${100 * size}%`,
          backgroundColor: tint.background,
          color: tint.color,
        });
        left += size;
      });
      say(bar.result, output ? written(output[i]) : "");
    }
    say(status, rowInWords(state, now, i, mistake));
    say(told, TOLD[mistake][2]);
    say(leak, mistake === "none" ? "" : leakInWords(state, now, i, mistake));
    say(damage, damageInWords(state, now, mistake));
    verdict.classList.toggle("tl-broken", mistake !== "none");
  }

  function draw() {
    const state = get();
    now = compute(state);
    makeRoom(state);
    drawControls(state);
    drawStages(state);
    drawRow(state);
  }
  return follow(model, traits, draw);
}

export default { render };
