// The budget lab: what a model of a given shape costs, in parameters, FLOPs and memory, and what a change of its shape changes.
// A setting is {shape, seq, batch, bytes_per_value}; a state is a setting with what it is compared with and what the table lists.

// From the least to the most that the lab takes.
const LIMITS = {
  n_layers: [1, 96],
  d_model: [1, 12288],
  n_heads: [1, 12288],
  d_ff: [1, 98304],
  vocab_size: [1, 262144],
  n_positions: [1, 131072],
  seq: [1, 131072],
  batch: [1, 1024],
  bytes_per_value: [2, 4],
};
const OF_SHAPE = ["n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "n_positions"];
const OF_TEXT = ["seq", "batch", "bytes_per_value"];
const LABELS = {
  n_layers: "layers",
  d_model: "d_model",
  n_heads: "heads",
  d_ff: "d_ff",
  vocab_size: "vocabulary",
  n_positions: "positions",
  seq: "context, seq",
  batch: "batch",
};
const QUANTITIES = {
  parameters: { name: "parameters", unit: "", of: "parameters" },
  flops: { name: "FLOPs of a forward pass", unit: "FLOP", of: "FLOPs" },
  training: { name: "memory of a training step", unit: "B", of: "bytes" },
  generation: { name: "memory of generation", unit: "B", of: "bytes" },
};

// Every component that there is: how it is counted, and its colour. In one bar, a component without a hue is grey.
const COMPONENTS = {
  parameters: {
    "token embedding": ["V·D", 150],
    "position embedding": ["P·D", 185],
    "segment embedding": ["segments·D", 110],
    "attention weights": ["L·4·D²", 255],
    "attention biases": ["L·4·D", 275],
    "feed-forward weights": ["L·2·D·F", 55],
    "feed-forward biases": ["L·(F + D)", 75],
    norms: ["weights and biases", null],
    pooler: ["D² + D", 345],
    "output head": ["V·D, not tied", 345],
  },
  flops: {
    "attention projections": ["L·8·N·D²", 255],
    "scores and blend": ["L·4·N²·D", 300],
    "feed-forward": ["L·4·N·D·F", 55],
    pooler: ["2·D²", 345],
    "output head": ["2·N·D·V", 345],
  },
  training: {
    weights: ["one value per parameter", 220],
    gradients: ["one per parameter", 185],
    "optimizer state": ["Adam: two per parameter", 110],
    activations: ["what the backward pass needs", 40],
    "log-probabilities": ["N·V, for the loss", 345],
  },
  generation: { weights: ["one value per parameter", 220], "key–value cache": ["2·L·N·D values", 300] },
};

// The counts. All are BigInt: at the ends of the sliders FLOPs have 23 digits, and a plain number is exact to 15.

const bigs = (object, names) => names.map((name) => BigInt(object[name]));
const total = (counts) => Object.values(counts).reduce((a, b) => a + b, 0n);
const present = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0n));
const finalNorm = (shape) => (shape.family === "gpt2" && shape.final_norm !== false ? 1n : 0n);
const pooler = (shape) => (shape.family === "bert" && shape.pooler ? 1n : 0n);

function parameters(shape) {
  const [L, D, F, V, P] = bigs(shape, ["n_layers", "d_model", "d_ff", "vocab_size", "n_positions"]);
  const bias = shape.bias ? 1n : 0n,
    bert = shape.family === "bert";
  return present({
    "token embedding": V * D,
    "position embedding": P * D,
    "segment embedding": bert ? BigInt(shape.n_segments) * D : 0n,
    "attention weights": L * 4n * D * D,
    "attention biases": L * 4n * D * bias,
    "feed-forward weights": L * 2n * D * F,
    "feed-forward biases": L * (F + D) * bias,
    norms: (2n * L + (bert ? 1n : finalNorm(shape))) * (1n + bias) * D,
    pooler: pooler(shape) * (D * D + bias * D),
    "output head": bert || shape.tied ? 0n : V * D,
  });
}

function flops({ shape, seq, batch }) {
  const [L, D, F, V] = bigs(shape, ["n_layers", "d_model", "d_ff", "vocab_size"]),
    N = BigInt(seq),
    B = BigInt(batch);
  return present({
    "attention projections": B * L * 8n * N * D * D,
    "scores and blend": B * L * 4n * N * N * D,
    "feed-forward": B * L * 4n * N * D * F,
    pooler: B * pooler(shape) * 2n * D * D,
    "output head": shape.family === "bert" ? 0n : B * 2n * N * D * V,
  });
}

function training({ shape, seq, batch, bytes_per_value }) {
  const [L, D, H, F, V] = bigs(shape, ["n_layers", "d_model", "n_heads", "d_ff", "vocab_size"]);
  const N = BigInt(seq),
    B = BigInt(batch),
    bytes = BigInt(bytes_per_value);
  const bert = shape.family === "bert",
    weights = total(parameters(shape)) * bytes,
    norm = D + 2n;
  let values = L * N * (6n * D + 2n * F + 2n * norm);
  if (bert) values += N * norm + pooler(shape) * (N + 1n) * D;
  else values += finalNorm(shape) * N * norm + N * D;
  const sums = L * N * H; // the logarithms of the rows' sums, at least four bytes each
  return present({
    weights,
    gradients: weights,
    "optimizer state": 2n * weights,
    activations: B * (values * bytes + sums * (bytes > 4n ? bytes : 4n)),
    "log-probabilities": bert ? 0n : B * N * V * bytes,
  });
}

function generation({ shape, seq, batch, bytes_per_value }) {
  const [L, D] = bigs(shape, ["n_layers", "d_model"]),
    bytes = BigInt(bytes_per_value);
  const cache = 2n * L * BigInt(seq) * D * BigInt(batch) * bytes;
  return present({
    weights: total(parameters(shape)) * bytes,
    "key–value cache": shape.family === "bert" ? 0n : cache,
  });
}

const costs = (setting) => ({
  parameters: parameters(setting.shape),
  flops: flops(setting),
  training: training(setting),
  generation: generation(setting),
});

function ruleOfThumb(shape) {
  const [L, D, V] = bigs(shape, ["n_layers", "d_model", "vocab_size"]);
  return 12n * L * D * D + V * D;
}

// Settings: what the sliders offer, and what one of them changes.

const read = (setting, name) => (OF_SHAPE.includes(name) ? setting.shape : setting)[name];
const write = (setting, name, value) =>
  OF_SHAPE.includes(name) ? { ...setting, shape: { ...setting.shape, [name]: value } } : { ...setting, [name]: value };
const sameShape = (a, b) => Object.keys(a).every((name) => a[name] === b[name]);
const same = (a, b) => sameShape(a.shape, b.shape) && OF_TEXT.every((name) => a[name] === b[name]);
const numbers = (count, first = 1, step = 1) => Array.from({ length: count }, (_, i) => first + i * step);
const divisors = (n) => {
  const small = numbers(Math.floor(Math.sqrt(n))).filter((i) => n % i === 0);
  return [...new Set([...small, ...small.map((i) => n / i).reverse()])];
};

// Round numbers, `parts` to each doubling.
function doublings(least, most, parts) {
  const found = [];
  for (let power = least; power < most; power *= 2)
    found.push(...numbers(parts, power, power / parts).filter(Number.isInteger));
  return [...found, most];
}

const GRIDS = {
  n_layers: numbers(96),
  d_model: numbers(192, 64, 64),
  vocab_size: doublings(256, 262144, 8),
  n_positions: doublings(16, 131072, 8),
  seq: doublings(16, 131072, 8),
  batch: doublings(1, 1024, 2),
};

// The values that a slider goes through: its grid, where it stands, and where the other settings stand.
function choices(name, setting, others = []) {
  const { d_model } = setting.shape;
  if (name === "n_heads") return divisors(d_model);
  const grid = name === "d_ff" ? numbers(16, 1).map((half) => (half * d_model) / 2) : GRIDS[name];
  const own = name === "d_ff" ? [setting.shape.d_ff] : [setting, ...others].map((each) => read(each, name));
  return [...new Set([...grid, ...own])]
    .filter((value) => Number.isInteger(value) && value <= LIMITS[name][1])
    .sort((a, b) => a - b);
}

// The setting after one slider has moved. When the width changes, d_ff keeps its ratio to it, and the heads keep their width, as
// they were in `anchor`; where that does not divide the new width, the nearest width of a head that does.
function alter(setting, name, value, anchor = setting.shape) {
  const next = write(setting, name, value);
  if (name !== "d_model") return next;
  const wanted = (value * anchor.n_heads) / anchor.d_model,
    off = (heads) => Math.abs(Math.log(heads / wanted));
  const n_heads = divisors(value).reduce((best, heads) => (off(heads) < off(best) ? heads : best));
  const d_ff = Math.min(Math.max(Math.round((anchor.d_ff * value) / anchor.d_model), 1), LIMITS.d_ff[1]);
  return { ...next, shape: { ...next.shape, n_heads, d_ff } };
}

// The presets, and what the lab began with where that is none of them.
function known(presets, start) {
  const named = presets.map((preset) => ({ ...preset, ...preset.setting }));
  return named.some((each) => same(each, start)) ? named : [{ ...start, key: "start", name: "the start" }, ...named];
}
const find = (all, key, start) => all.find((each) => each.key === key || (key === "start" && same(each, start)));

// Addresses: a known setting, and what is different: gpt2.n_layers-24.seq-2048.

const WORDS = { bytes_per_value: "bytes", base: "against", quantity: "show" };
const options = (shape) => Object.keys(shape).filter((name) => !OF_SHAPE.includes(name));

// A state as text, or null where it is as the lab began.
function encode(state, all, start) {
  if (same(state, start) && state.base === start.base && state.quantity === start.quantity) return null;
  const near = all.filter(({ shape }) => options(shape).every((name) => shape[name] === state.shape[name]));
  const changed = (from) => [...OF_SHAPE, ...OF_TEXT].filter((name) => read(from, name) !== read(state, name));
  const from = near.reduce(
    (best, each) => (changed(each).length < changed(best).length ? each : best),
    near[0] ?? all[0],
  );
  const parts = changed(from).map((name) => `${WORDS[name] ?? name}-${read(state, name)}`);
  if (state.base !== from.key) parts.push(`against-${state.base}`);
  if (state.quantity !== "parameters") parts.push(`show-${state.quantity}`);
  return [from.key, ...parts].join(".");
}

// The state that a text stands for, as {state}, or {error}.
function decode(text, all, start) {
  const [key, ...parts] = text.split(".");
  const from = find(all, key, start);
  if (!from) return { error: `it names the model “${key.slice(0, 20)}”, which this lab does not know` };
  let state = {
    shape: from.shape,
    seq: from.seq,
    batch: from.batch,
    bytes_per_value: from.bytes_per_value,
    base: from.key,
    quantity: "parameters",
  };
  for (const part of parts) {
    const [, word, value] = /^([a-z_]+)-(.+)$/.exec(part) ?? [];
    const name = Object.keys(WORDS).find((each) => WORDS[each] === word) ?? word;
    if (name === "base") {
      if (!find(all, value, start))
        return { error: `it compares with “${value.slice(0, 20)}”, which this lab does not know` };
      state = { ...state, base: value };
    } else if (name === "quantity") {
      if (!Object.hasOwn(QUANTITIES, value))
        return { error: `it asks to show “${value.slice(0, 20)}”, which this lab does not list` };
      state = { ...state, quantity: value };
    } else if (word === "bytes" || (name !== "bytes_per_value" && Object.hasOwn(LIMITS, name ?? ""))) {
      const [least, most] = LIMITS[name],
        number = /^\d{1,9}$/.test(value) ? Number(value) : NaN;
      if (!(number >= least && number <= most) || (word === "bytes" && number === 3)) {
        return {
          error: `its ${word} is “${value.slice(0, 20)}”, where ${word === "bytes" ? "2 or 4" : `a whole number from ${least} to ${grouped(most)}`} can stand`,
        };
      }
      state = write(state, name, number);
    } else return { error: `“${part.slice(0, 20)}” in it says nothing to this lab` };
  }
  const { d_model, n_heads } = state.shape;
  return d_model % n_heads ? { error: `${n_heads} heads cannot share its d_model ${d_model}` } : { state };
}

// The state as Python.
function pythonCode(state, all) {
  const { shape } = state,
    preset = all.find((each) => each.code && sameShape(each.shape, shape));
  const optional = { n_segments: 2, pooler: true, tied: true, final_norm: null, bias: true };
  const literal = (value) => (value === true ? "True" : value === false ? "False" : value === null ? "None" : value);
  const named = [...OF_SHAPE, ...Object.keys(optional).filter((name) => shape[name] !== optional[name])].map(
    (name) => `${name}=${literal(shape[name])}`,
  );
  const parts = [preset ? `tl.${preset.code}` : `tl.ModelShape("${shape.family}", ${named.join(", ")})`];
  if (state.seq !== shape.n_positions) parts.push(`seq=${state.seq}`);
  if (state.batch !== 1) parts.push(`batch=${state.batch}`);
  if (state.bytes_per_value !== 4) parts.push(`bytes_per_value=${state.bytes_per_value}`);
  const itself = all.find((each) => each.code && same(each, state));
  if (state.base !== "start" && state.base !== itself?.key) parts.push(`base="${state.base}"`);
  if (state.quantity !== "parameters") parts.push(`quantity="${state.quantity}"`);
  return `tl.labs.BudgetLab(${parts.join(", ")})`;
}

// Numbers as text.

const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const several = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;
const signed = (n) => (n < 0n ? `−${grouped(-n)}` : `+${grouped(n)}`);

// Four digits and a prefix: 124.4 M. Parameters are counted in B, everything else in G.
function compact(n, unit = "") {
  const prefixes = unit ? ["", "k", "M", "G", "T", "P", "E", "Z", "Y"] : ["", "k", "M", "B", "T"];
  let size = Number(n),
    at = 0;
  while (size >= 999.95 && at < prefixes.length - 1) {
    size /= 1000;
    at++;
  }
  const text = at ? size.toPrecision(4) : String(size);
  return `${text}${prefixes[at] || unit ? " " : ""}${prefixes[at]}${unit}`;
}
const compactSigned = (n, unit) => (n < 0n ? `−${compact(-n, unit)}` : `+${compact(n, unit)}`);

// How many times b is in a: a whole number exactly, any other with three digits at most.
function times(a, b) {
  if (a % b === 0n && a / b < 1_000_000n) return `${grouped(a / b)} ×`;
  const ratio = Number(a) / Number(b),
    [digits, power] = ratio.toExponential(2).split("e"),
    text = Number(ratio.toPrecision(ratio < 0.1 ? 2 : 3));
  if (text === 1) return "≈ 1 ×";
  if (ratio < 0.001) return "≈ 0 ×";
  return ratio < 1e6
    ? `${text >= 1000 ? grouped(text) : text} ×`
    : `${digits}·10${[...power.slice(1)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")} ×`;
}

// A share in per cent.
function share(part, whole) {
  const percent = (100 * Number(part)) / Number(whole);
  if (part === whole) return "100 %";
  return percent < 0.01 ? (part ? "≈ 0 %" : "0 %") : `${percent.toFixed(percent < 9.995 ? 2 : 1)} %`;
}

// What the status line says.

function introduction(setting, of) {
  const cost = costs(setting),
    count = total(cost.parameters),
    who = of.published ? of.name : "This model";
  const published =
    of.published && BigInt(of.published) === count
      ? `, as many as its published weights; its paper says ${of.paper}`
      : "";
  const text = `${grouped(setting.seq)} tokens${setting.batch > 1 ? ` in each of ${grouped(setting.batch)} sequences` : ""}`;
  const cache =
    setting.shape.family === "bert"
      ? ""
      : `, and the key–value cache ${compact(cost.generation["key–value cache"], "B")}`;
  return `${who} has ${grouped(count)} parameters${published}. A forward pass over ${text} takes ${compact(total(cost.flops), "FLOP")}, a step of training ${compact(total(cost.training), "B")}${cache}.`;
}

// What stands below the bars.
const ruleInWords = (rule, missed, count) => {
  const by = missed < 0n ? -missed : missed;
  return `Rule of thumb, 12·L·D² + V·D: ${grouped(rule)}, ${missed ? `${grouped(by)} too ${missed < 0n ? "many" : "few"}, ${share(by, count)}` : "exact"}.`;
};
const overtakenInWords = (ratio) => `Scores and blend take ${ratio} feed-forward, seq / d_ff. Equal at`;
const cacheInWords = (values, tokens) =>
  `A token keeps 2·L·D = ${grouped(values)} values. ${grouped(tokens)} tokens take as much as the weights.`;
const NO_CACHE = "A BERT reads a sentence at once: it does not generate, and keeps no cache.";

// What became of one setting on the way to another.
function describe(from, to) {
  const [before, after] = [costs(from), costs(to)],
    a = from.shape,
    b = to.shape;
  const changed = [...OF_SHAPE, ...OF_TEXT].filter((name) => read(from, name) !== read(to, name));
  const by = total(after.parameters) - total(before.parameters),
    ratio = (what) => times(total(after[what]), total(before[what]));
  const of = (name) => times(BigInt(read(to, name)), BigInt(read(from, name)));
  const instead = (name, unit) => `${grouped(read(to, name))}${unit} instead of ${grouped(read(from, name))}`;
  const count = by ? `${signed(by)} parameters, ${ratio("parameters")} as many` : "not one parameter more or less";
  const work = `A forward pass takes ${ratio("flops")} the FLOPs`;
  if (options(a).some((name) => a[name] !== b[name]))
    return `Another model: ${count}. ${work}, a step of training ${ratio("training")} the memory.`;

  const cache = "key–value cache",
    grows =
      b.family === "bert" ? "" : `, the cache ${times(after.generation[cache], before.generation[cache])} the memory`;
  const overtaken = (seq, shape) => seq > shape.d_ff;
  const crossing =
    overtaken(to.seq, b) === overtaken(from.seq, a)
      ? ""
      : ` Scores and blend now take ${overtaken(to.seq, b) ? "more" : "no more"} than the feed-forward layers.`;

  if (changed[0] === "d_model" && changed.every((name) => ["d_model", "n_heads", "d_ff"].includes(name))) {
    const width = b.d_model / b.n_heads,
      kept = width === a.d_model / a.n_heads;
    const heads = kept
      ? `Heads keep their width, ${several(width, "feature")}: now ${several(b.n_heads, "head")}.`
      : `Now ${several(b.n_heads, "head")} of ${several(width, "feature")}.`;
    return `d_model ${instead("d_model", "")}: ${count}. The attention matrices grow with its square, ${times(after.parameters["attention weights"], before.parameters["attention weights"])}; the embeddings only with itself, ${of("d_model")}. ${heads} ${work}${grows}.`;
  }
  if (changed.length === 1) {
    switch (changed[0]) {
      case "n_layers": {
        const each = by / BigInt(b.n_layers - a.n_layers);
        return `${instead("n_layers", b.n_layers > 1 ? " layers" : " layer")}: ${count}. Each layer has ${grouped(each)}; the embeddings stay as they are. ${work}${grows}.`;
      }
      case "n_heads":
        return `${instead("n_heads", b.n_heads > 1 ? " heads" : " head")}, ${several(b.d_model / b.n_heads, "feature")} in each instead of ${grouped(a.d_model / a.n_heads)}: ${count}, and not one FLOP. Heads share d_model among themselves.`;
      case "d_ff":
        return `d_ff ${instead("d_ff", "")}: ${count}, all in the feed-forward layers. ${work}.${crossing}`;
      case "vocab_size": {
        const where =
          b.family === "bert" || b.tied ? "all in the token embedding" : "in the token embedding and the output head";
        const head =
          b.family === "bert"
            ? "FLOPs stay: rows are looked up, not multiplied"
            : `The output head${b.tied ? ", which is the same matrix," : ""} takes ${of("vocab_size")} the FLOPs, a forward pass ${ratio("flops")}`;
        return `A vocabulary of ${instead("vocab_size", "")}: ${count}, ${where}. ${head}.`;
      }
      case "n_positions":
        return `${instead("n_positions", " positions")}: ${count}, all in the position embedding. FLOPs and cache depend on the tokens that are there, not on the places for them.`;
      case "seq": {
        const rest = b.family === "bert" ? "its other products" : "everything else";
        return `A context of ${instead("seq", to.seq > 1 ? " tokens" : " token")}: ${count}. ${work}: scores and blend ${times(after.flops["scores and blend"], before.flops["scores and blend"])}, ${rest} ${of("seq")}.${crossing}`;
      }
      case "batch":
        return `${instead("batch", to.batch > 1 ? " sequences" : " sequence")} at a time: ${count}. FLOPs${b.family === "bert" ? " and activations" : ", activations and cache"} go with the batch, ${of("batch")}; weights, gradients and optimizer state stay: a step of training takes ${ratio("training")} the memory.`;
      default:
        return `${instead("bytes_per_value", " bytes")} for each value: ${count}, and as many FLOPs. Weights take ${times(after.training.weights, before.training.weights)} the memory, a step of training ${ratio("training")}.`;
    }
  }
  return `${count[0].toUpperCase()}${count.slice(1)}. ${work}, a step of training ${ratio("training")} the memory.`;
}

// The address is the lab's where the page carries the state of its widgets; in a notebook it is the notebook's. Each lab of a page
// has a word of its own in the query: a link within the page leaves that alone.
const words = new Map();
function address(model) {
  if (!document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]')) return null;
  if (!words.has(model)) words.set(model, words.size ? `budget${words.size + 1}` : "budget");
  const word = words.get(model);
  const link = (text) => {
    const url = new URL(location.href);
    if (text === null) url.searchParams.delete(word);
    else url.searchParams.set(word, text);
    return url;
  };
  return {
    text: () => new URLSearchParams(location.search).get(word),
    link,
    write(text) {
      const url = link(text).href;
      try {
        if (url !== location.href) history.replaceState(history.state, "", url);
      } catch {
        /* A browser may not allow it: the link can still be copied. */
      }
    },
  };
}

// What a reader has done to a lab, for all its views: the setting before the last change, and the one after.
const stories = new WeakMap();

function render({ model, el }) {
  const traits = ["shape", "seq", "batch", "bytes_per_value", "base", "quantity"];
  const start = model.get("start"),
    all = known(model.get("presets"), start);
  const state = () => Object.fromEntries(traits.map((name) => [name, model.get(name)]));
  const own = address(model);

  const complaint = h("p", { class: "tl-error", role: "alert" });
  if (own && !stories.has(model) && own.text() !== null) {
    const { state: found, error } = decode(own.text(), all, start);
    if (found) commit(model, found);
    else say(complaint, `What the address says of this lab is left out: ${error}.`);
  }
  if (!stories.has(model)) stories.set(model, { from: state(), to: state(), moving: null, last: null, anchor: null });
  const story = stories.get(model);

  // A slider has moved: to be told from where it stood when it was taken up.
  function change(name, value) {
    const now = state();
    if (value === read(now, name)) return;
    if (story.last !== name || !same(now, story.to)) story.anchor = now.shape;
    if (story.moving !== name) story.from = now;
    const next = alter(now, name, value, story.anchor);
    Object.assign(story, { to: next, moving: name, last: name });
    commit(model, OF_SHAPE.includes(name) ? { shape: next.shape } : { [name]: value });
  }

  // Where to begin.
  const presets = choice(
    "Start from",
    all.map((each, i) => [i, each.name]),
    (i) => {
      const { shape, seq, batch, bytes_per_value, key } = all[i];
      commit(model, { shape, seq, batch, bytes_per_value, base: key });
    },
  );
  const against = h(
    "select",
    {
      class: "tl-against",
      "aria-label": "Changes are shown against",
      onchange: () => commit(model, { base: against.value }),
    },
    all.map((each) => h("option", { value: each.key }, each.name)),
  );
  const published = h("p");
  const publishedWords = (base) =>
    base.published
      ? `${base.name}: ${grouped(base.published)} parameters in the published weights, ${base.paper} in the paper; context ${grouped(base.seq)}.`
      : "What the lab began with.";

  // The sliders.
  const dial = (name) => {
    const value = h("strong", {}),
      was = h("span", { class: "tl-was", "aria-hidden": "true" });
    const input = h("input", {
      type: "range",
      min: 0,
      step: 1,
      "aria-label": LABELS[name],
      oninput: () => change(name, offered[+input.value]),
      onchange: () => {
        story.moving = null;
      },
    });
    let offered = [],
      offeredFor = "";
    const draw = (now, base) => {
      const at = read(now, name),
        before = read(base, name),
        { d_model, n_heads } = now.shape;
      if (offeredFor !== `${at} ${d_model}`) offered = choices(name, now, [start, ...all]);
      offeredFor = `${at} ${d_model}`;
      const text =
        name === "n_heads"
          ? `${grouped(at)} × ${grouped(d_model / n_heads)}`
          : name === "d_ff"
            ? `${grouped(at)} (${Number((at / d_model).toFixed(2))} ×)`
            : grouped(at);
      const last = Math.max(offered.length - 1, 1);
      set(input, { max: last, disabled: offered.length < 2 });
      if (+input.value !== offered.indexOf(at)) input.value = offered.indexOf(at);
      say(value, text);
      set(input, {
        "aria-valuetext": `${grouped(at)}${name === "n_heads" ? ` heads of ${several(d_model / n_heads, "feature")}` : ""}${at === before ? "" : `; ${base.name}: ${grouped(before)}`}`,
      });
      // Where the preset stands, between the values on its two sides.
      const above = offered.findIndex((each) => each >= before),
        low = offered[above - 1];
      const place = above < 0 ? last : above === 0 ? 0 : above - (offered[above] - before) / (offered[above] - low);
      set(was, { style: `--at: ${(place / last).toFixed(4)}`, hidden: at === before });
    };
    const reading = h("p", {}, `${LABELS[name]} `, value),
      most = LIMITS[name][1];
    const head = room(reading);
    reserve(reading, [
      `${LABELS[name]} `,
      h(
        "strong",
        {},
        `${grouped(most)}${name === "n_heads" ? ` × ${grouped(most)}` : name === "d_ff" ? " (11.11 ×)" : ""}`,
      ),
    ]);
    return { draw, node: h("div", { class: "tl-turn" }, head, h("div", { class: "tl-rail" }, was, input)) };
  };
  const dials = [...OF_SHAPE, "seq", "batch"].map((name) => [name, dial(name)]);
  const formats = choice(
    "Bytes per value",
    [
      [4, "4: float32"],
      [2, "2: half"],
    ],
    (bytes_per_value) => commit(model, { bytes_per_value }),
  );
  const warning = h("p"),
    warn = (seq, positions) =>
      `Context ${grouped(seq)} is beyond the ${grouped(positions)} positions: what comes after them has no embedding.`;

  // The bars.
  const bars = Object.keys(QUANTITIES).map((quantity) => {
    const sum = h("strong", {}),
      by = h("span", { class: "tl-by" }),
      note = h("span"),
      aside = h("p", {}, note);
    const sums = h("span", {}, sum, " ", by),
      { unit } = QUANTITIES[quantity],
      far = `111.1 M${unit}`;
    const segments = (kind) =>
      Object.entries(COMPONENTS[quantity]).map(([name, [, hue]]) => [
        name,
        h(
          "span",
          { class: `tl-piece${hue === null ? " tl-grey" : ""}`, style: `--hue: ${hue ?? 0}` },
          kind === "now" ? h("span", {}, name) : [],
        ),
      ]);
    const now = segments("now"),
      then = segments("then");
    const stack = h(
      "div",
      { class: "tl-stack", role: "img" },
      now.map(([, node]) => node),
    );
    const shadow = h(
      "div",
      { class: "tl-stack tl-shadow", "aria-hidden": "true" },
      then.map(([, node]) => node),
    );
    const extra = room(aside, "tl-note tl-aside"),
      head = h("p", { class: "tl-cost-head" }, h("span", {}, QUANTITIES[quantity].name), room(sums, "tl-sums"));
    reserve(
      sums,
      ...[
        `−${far} · 1.11·10¹¹ ×`,
        `as ${widest(
          el,
          all.map((each) => each.name),
        )}`,
      ].map((change) => [h("strong", {}, far), " ", h("span", { class: "tl-by" }, change)]),
    );
    return {
      quantity,
      sum,
      by,
      note,
      aside,
      now,
      then,
      stack,
      shadow,
      node: h("div", { class: "tl-cost" }, head, h("div", { class: "tl-bars" }, stack, shadow), extra),
    };
  });
  const overtake = h("button", { type: "button", onclick: () => change("seq", model.get("shape").d_ff) });
  bars[1].aside.append(" ", overtake);

  // The table.
  const quantities = choice(
    "Numbers of",
    Object.entries({ parameters: "parameters", flops: "FLOPs", training: "training", generation: "generation" }),
    (quantity) => commit(model, { quantity }),
  );
  const row = (name, formula, hue) => {
    const [number, by, part, ratio] = [h("span"), h("span"), h("span"), h("span", { class: "tl-note" })];
    const swatch =
      hue === undefined
        ? []
        : h("span", { class: `tl-swatch${hue === null ? " tl-grey" : ""}`, style: `--hue: ${hue ?? 0}` });
    return {
      name,
      number,
      by,
      part,
      ratio,
      node: h(
        "tr",
        { class: hue === undefined ? "tl-total" : null },
        h("th", { scope: "row" }, swatch, name, h("span", { class: "tl-note" }, formula)),
        h("td", {}, room(number), room(by, "tl-note")),
        h("td", {}, part, ratio),
      ),
    };
  };
  const tables = Object.keys(QUANTITIES).map((quantity) => {
    const rows = [
      ...Object.entries(COMPONENTS[quantity]).map(([name, [formula, hue]]) => row(name, formula, hue)),
      row("total", ""),
    ];
    const change = h("span");
    return {
      quantity,
      rows,
      change,
      node: h(
        "div",
        { class: "tl-scroll" },
        h(
          "table",
          { class: "tl-account" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("th", { scope: "col" }, "component"),
              h("th", { scope: "col" }, QUANTITIES[quantity].of, h("span", {}, "change")),
              h("th", { scope: "col" }, "share", h("span", {}, "ratio")),
            ),
          ),
          h(
            "tbody",
            {},
            rows.map((each) => each.node),
          ),
        ),
      ),
    };
  });

  // To hand on: the address where it is ours, and otherwise a line of code.
  const told = h("span", { class: "tl-note", "aria-live": "polite" });
  const byHand = h("input", {
    class: "tl-input",
    type: "text",
    readonly: true,
    hidden: true,
    "aria-label": own ? "Link to this state" : "Code for this state",
  });
  const handOn = () => {
    if (!own) return pythonCode(state(), all);
    const url = own.link(encode(state(), all, start)),
      section = el.closest("section[id]");
    if (section) url.hash = section.id;
    return url.href;
  };
  const copy = h(
    "button",
    {
      type: "button",
      onclick: async () => {
        const text = handOn();
        try {
          await navigator.clipboard.writeText(text);
          say(told, own ? "The link is copied." : "The code is copied.");
          set(byHand, { hidden: true });
        } catch {
          say(told, `The browser does not let the lab copy: take the ${own ? "link" : "code"} from here.`);
          set(byHand, { hidden: null });
          byHand.value = text;
          byHand.focus();
          byHand.select();
        }
      },
    },
    own ? "Copy link" : "Copy code",
  );

  // Reset goes back to what the lab began with in Python, not to what the address made of it.
  const beginning = {
    get: (name) => start[name],
    set: (name, value) => model.set(name, value),
    save_changes: () => model.save_changes(),
  };
  const { lab, status } = frame(
    { model: beginning, el },
    "What does a model cost?",
    traits,
    complaint,
    h("p", { class: "tl-label" }, "start from"),
    presets.node,
    room(published, "tl-note tl-published"),
    h(
      "div",
      { class: "tl-turns" },
      dials.map(([, each]) => each.node),
      h("div", { class: "tl-turn" }, h("p", {}, "bytes per value"), formats.node),
    ),
    room(warning, "tl-note tl-warning"),
    h("label", { class: "tl-compare" }, "thin bars and marks, and all changes: against ", against),
    h(
      "div",
      { class: "tl-costs" },
      bars.map((each) => each.node),
    ),
    h("div", { class: "tl-which" }, h("span", { class: "tl-note" }, "to the last digit"), quantities.node),
    tables.map((each) => each.node),
    h("div", { class: "tl-hand-on" }, copy, told, byHand),
  );
  lab.classList.add("tl-budget");
  warning.parentNode.after(status.parentNode); // beside the sliders, which it tells of

  // Room for what the ends of all sliders make of the numbers and sentences.
  const end = (which) => ({
    ...start,
    shape: { ...start.shape, ...Object.fromEntries(OF_SHAPE.map((name) => [name, LIMITS[name][which]])) },
    seq: LIMITS.seq[which],
    batch: LIMITS.batch[which],
  });
  const least = end(0),
    most = end(1),
    dearest = costs(most);
  const changes = [...OF_SHAPE, "seq", "batch"]
    .map((name) => [alter(most, name, read(least, name)), most])
    .flatMap(([few, many]) => [
      [few, many],
      [many, few],
    ]);
  const longest = byWidth(
      el,
      changes.map(([from, to]) => describe(from, to)),
    ).slice(0, 6),
    far = widest(
      el,
      all.map((each) => each.name),
    );
  reserve(published, ...all.map(publishedWords));
  reserve(warning, warn(LIMITS.seq[1], LIMITS.n_positions[1]));
  reserve(status, ...all.map((each) => introduction(each, each)), ...longest.map((text) => `Against ${far}: ${text}`));
  const count = total(dearest.parameters),
    rule = ruleOfThumb(most.shape),
    [L, D] = bigs(most.shape, ["n_layers", "d_model"]);
  reserve(bars[0].aside, ruleInWords(rule, rule - count, count));
  reserve(bars[1].aside, [
    overtakenInWords("111,111 ×"),
    " ",
    h("button", { type: "button", disabled: true }, `seq = ${grouped(LIMITS.d_ff[1])}`),
  ]);
  reserve(bars[3].aside, NO_CACHE, cacheInWords(2n * L * D, 111_111n));
  for (const { quantity, rows } of tables) {
    for (const { name, number, by } of rows) {
      const size = name === "total" ? total(dearest[quantity]) : (dearest[quantity][name] ?? 0n);
      reserve(number, grouped(size));
      reserve(by, signed(-size));
    }
  }

  // A bar takes its part of the longest, and its pieces divide it as their counts do.
  const percent = (part, whole) => `${Number(((100 * Number(part)) / Number(whole)).toFixed(2))}%`;
  function divide(bar, pieces, counts, sum, longest) {
    set(bar, {
      style: `width: ${percent(sum, longest)}; grid-template-columns: ${pieces.map(([name]) => percent(counts[name] ?? 0n, sum)).join(" ")}`,
    });
  }

  let later = null;
  function draw() {
    const now = state(),
      base = find(all, now.base, start),
      { shape, seq } = now;
    if (!same(now, story.to)) Object.assign(story, { from: story.to, to: now, moving: null, last: null });
    const cost = costs(now),
      before = costs(base);

    const here = all.find((each) => sameShape(each.shape, shape));
    presets.show(all.indexOf(here));
    against.value = base.key;
    say(published, publishedWords(base));
    for (const [, each] of dials) each.draw(now, base);
    formats.show(now.bytes_per_value);
    say(warning, seq > shape.n_positions ? warn(seq, shape.n_positions) : "");

    for (const { quantity, sum, by, now: pieces, then, stack, shadow } of bars) {
      const { unit, name } = QUANTITIES[quantity],
        [mine, theirs] = [cost[quantity], before[quantity]],
        [whole, ghost] = [total(mine), total(theirs)];
      const longest = whole > ghost ? whole : ghost;
      say(sum, compact(whole, unit));
      say(by, whole === ghost ? `as ${base.name}` : `${compactSigned(whole - ghost, unit)} · ${times(whole, ghost)}`);
      divide(stack, pieces, mine, whole, longest);
      divide(shadow, then, theirs, ghost, longest);
      set(stack, {
        "aria-label": `${name}: ${Object.keys(mine)
          .map((component) => `${component} ${share(mine[component], whole)}`)
          .join(", ")}`,
      });
      set(shadow, { class: `tl-stack tl-shadow${whole === ghost ? " tl-level" : ""}` });
    }
    const count = total(cost.parameters),
      rule = ruleOfThumb(shape),
      missed = count - rule;
    say(bars[0].note, ruleInWords(rule, missed, count));
    say(bars[1].note, overtakenInWords(times(BigInt(seq), BigInt(shape.d_ff))));
    say(overtake, `seq = ${grouped(shape.d_ff)}`);
    set(overtake, { "aria-pressed": String(seq === shape.d_ff) });
    say(bars[2].note, `Each parameter takes ${4 * now.bytes_per_value} bytes: weight, gradient, Adam's two moments.`);
    const [L, D] = bigs(shape, ["n_layers", "d_model"]),
      equal = count / (2n * L * D);
    say(bars[3].note, shape.family === "bert" ? NO_CACHE : cacheInWords(2n * L * D, equal));

    quantities.show(now.quantity);
    for (const { quantity, rows, node } of tables) {
      set(node, { hidden: quantity !== now.quantity });
      if (quantity !== now.quantity) continue;
      const [mine, theirs] = [cost[quantity], before[quantity]],
        whole = total(mine);
      for (const { name, node: line, number, by, part, ratio: relation } of rows) {
        const [count, ghost] = name === "total" ? [whole, total(theirs)] : [mine[name] ?? 0n, theirs[name] ?? 0n];
        set(line, { hidden: !count && !ghost });
        say(number, grouped(count));
        say(part, share(count, whole));
        say(by, count === ghost ? "same" : signed(count - ghost));
        say(relation, ghost ? times(count, ghost) : "new");
      }
    }

    const landmark = all.find((each) => same(each, now));
    const moved = () =>
      same(story.from, now) ? `Against ${base.name}: ${describe(base, now)}` : describe(story.from, now);
    say(status, landmark ? introduction(now, landmark) : moved());
    say(told, "");
    set(byHand, { hidden: true });
    if (encode(now, all, start)) say(complaint, "");
    // Once a drag has come to rest: browsers count how often an address changes, and some refuse.
    clearTimeout(later);
    if (own && !complaint.textContent) later = setTimeout(() => own.write(encode(state(), all, start)), 250);
  }
  return follow(model, traits, draw);
}

export default { render };
