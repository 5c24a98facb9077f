// Finds sections for a reader's words, in the texts of search_index.py, with the stemmer of Sphinx.
// biome-ignore lint/correctness/noUnusedVariables: other scripts use it
const FIND = (() => {
  // Names of concepts in deep learning: all names in one row are the same term, regardless of endings and capitals. If
  // two names match, the longer is used.
  const NAMES = [
    ["axis", "axes", "dim", "dimension"],
    ["backward pass", "backpropagation", "backprop", "back propagation"],
    ["batch norm", "batchnorm", "batch normalization", "batch normalisation"],
    ["bfloat16", "bf16"],
    ["causal", "causal mask", "look ahead mask", "lookahead mask", "subsequent mask"],
    ["d_head", "head dimension", "head dim", "head size"],
    ["einsum", "einstein summation"],
    ["feed forward", "feedforward", "ffn", "mlp"],
    ["flash attention", "flashattention", "flash", "fused attention", "softmax in pieces"],
    ["float16", "fp16"],
    ["float32", "fp32"],
    ["gpt2", "gpt 2"],
    ["gqa", "grouped query attention", "group query attention"],
    ["infinity", "inf", "∞"],
    ["key value cache", "kv cache", "kvcache"],
    ["layer norm", "layernorm", "layer normalization", "layer normalisation"],
    ["mla", "latent attention", "multi head latent attention"],
    ["moe", "mixture of experts"],
    ["mqa", "multi query attention"],
    ["multi head", "multihead", "multiple heads", "several heads", "two heads", "more heads"],
    ["multi head attention", "multihead attention", "mha"],
    ["normalization", "normalisation"],
    ["position", "positional encoding", "positional embedding", "position encoding", "position embedding"],
    ["post norm", "postnorm"],
    ["pre norm", "prenorm"],
    ["residual", "residual connection", "skip connection"],
    ["rms norm", "rmsnorm"],
    [
      "rope",
      "rotary",
      "rotary position",
      "rotary embedding",
      "rotary positional embedding",
      "rotary position embedding",
    ],
    ["scaled dot product attention", "sdpa"],
    ["sqrt", "√", "square root"],
    ["tying", "tied", "tie", "weight tying", "weight sharing"],
  ];
  // Stop words in addition to Sphinx's.
  const MORE =
    "all can did do does from get has have how i its many me my so use vs versus we what when where which who why you";
  const WORD = /\d+(?:\.\d+)+|[\p{L}\p{N}_]+|[√∞]/gu;
  const LONG = 4; // minimum number of letters of a word that may be misspelt
  const FREQUENT = 3; // minimum number of sections with a word that may replace a misspelt word

  const stemmer = new Stemmer();
  // The words tokenizer and token must not share a stem.
  /** @type {Map<string, string>} */
  const stems = new Map(["tokenizer", "tokenizers"].map((word) => [word, "tokenizer"]));
  function stem(word) {
    const small = word.toLowerCase();
    if (!stems.has(small)) stems.set(small, small.length > 3 ? stemmer.stemWord(small) : small);
    return stems.get(small);
  }
  const stopWords = new Set([...STOP_WORDS, ...MORE.split(" ")].map(stem));
  const wordsOf = (text) => text.match(WORD) ?? [];

  // Maps a stem to the names that begin with this stem, longest first. Each name is stored as its stems and its term.
  /** @type {Map<string, { parts: string[]; term: string }[]>} */
  const names = new Map();
  for (const row of NAMES)
    for (const way of row) {
      const parts = wordsOf(way).map(stem);
      names.set(parts[0], [...(names.get(parts[0]) ?? []), { parts, term: `=${row[0].replaceAll(" ", "")}` }]);
    }
  for (const ways of names.values()) ways.sort((a, b) => b.parts.length - a.parts.length);

  // Returns the terms of a text with their places, as two lists. In `line`, each name replaces the words that form it;
  // `inside` has the words inside names.
  function read(text) {
    const words = [...text.matchAll(WORD)].map(({ 0: word, index: from }) => ({
      from,
      to: from + word.length,
      term: stem(word),
    }));
    const found = { line: [], inside: [] };
    let end = 0; // of the previous name
    words.forEach((word, at) => {
      const ways = (names.get(word.term) ?? []).filter(({ parts }) =>
        parts.every((part, i) => words[at + i]?.term === part),
      );
      const spans = ways.map(({ parts, term }) => ({ from: word.from, to: words[at + parts.length - 1].to, term }));
      if (at < end) found.inside.push(word, ...spans);
      else if (ways.length) {
        found.line.push(spans[0]);
        found.inside.push(word, ...spans.slice(1));
        end = at + ways[0].parts.length;
      } else found.line.push(word);
      if (word.term.includes("_")) {
        const parts = read(word.term.replaceAll("_", " "));
        for (const { term } of [...parts.line, ...parts.inside]) found.inside.push({ ...word, term });
      }
    });
    return found;
  }

  const joined = (spans) => ` ${spans.map(({ term }) => term).join(" ")} `;
  function withoutStopWords({ line }) {
    const rest = line.filter(({ term }) => !stopWords.has(term));
    return rest.length ? rest : line;
  }

  // The index: how often a section contains a term, in its heading and in its text.
  function counted({ line, inside }) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const { term } of [...line, ...inside]) counts.set(term, (counts.get(term) ?? 0) + 1);
    return counts;
  }
  /** @type {[RegExp, string][]} */
  const KINDS = [
    [/^glossary\.html/, "Glossary"],
    [/^museum\.html/, "Bug"],
    [/^api\.html/, "Package"],
    [/^assignments\//, "Assignment"],
    [/^solutions\//, "Solution"],
    [/^\d\d_/, "Chapter"],
  ];
  const kindOf = (address) => KINDS.find(([form]) => form.test(address))?.[1] ?? "Page";
  const NUMBER = /^[\d.]+ (· )?/;
  function section(kind, page, address, title, text) {
    const [heading, body] = [read(title), read(text)];
    const length = { heading: withoutStopWords(heading).length, body: body.line.length };
    const names = title.replace(NUMBER, "").split(", "); // the glossary has several terms in one heading
    return {
      ...{ kind, page, address, title, text, length, taught: new Map() },
      ...{ heading: counted(heading), body: counted(body) },
      ...{ headingLine: joined(withoutStopWords(heading)) },
      lines: [joined(heading.line) + joined(body.line), joined(withoutStopWords(body))],
      names: names.map((name) => joined(withoutStopWords(read(name)))),
    };
  }
  const sections = SECTIONS.flatMap(([page, address, parts]) =>
    parts.map(([anchor, title, text]) => {
      const whole = anchor ? `${address}#${anchor}` : address;
      return section(kindOf(address), page, whole, title, text);
    }),
  );
  sections.push(...LABS.map(([page, address, title, text]) => section("Lab", page, address, title, text)));
  const mean = (part) => sections.reduce((sum, { length }) => sum + length[part], 0) / sections.length;
  const average = { heading: mean("heading"), body: mean("body") };

  // A glossary entry names the sections that teach its term, as in (5.9, 7.1), so these sections are also about the
  // entry's words.
  const chapters = sections.filter(({ kind }) => kind === "Chapter");
  const numbered = new Map(chapters.map((one) => [one.title.match(/^\d+\.\d+/)?.[0], one]));
  const NO_TERM = /^(Glossary|Axis words|Letters|Terms)$/;
  const glossary = sections.filter(({ kind, title }) => kind === "Glossary" && !NO_TERM.test(title));
  for (const entry of glossary)
    for (const [, numbers] of entry.text.matchAll(/\(([\d., ]+)\)/g))
      for (const taught of numbers.split(", ").map((number) => numbered.get(number)?.taught))
        for (const name of entry.names.map((name) => name.trim().split(" ")))
          for (const term of name) taught?.set(term, Math.max(taught.get(term) ?? 0, 1 / name.length));

  // The fewer sections contain a term, the higher its weight.
  function rarities(part) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const one of sections) for (const term of one[part].keys()) counts.set(term, (counts.get(term) ?? 0) + 1);
    for (const [term, number] of counts) counts.set(term, Math.log2(1 + sections.length / number));
    return counts;
  }
  const rarity = { heading: rarities("heading"), body: rarities("body") };
  const rarest = Math.log2(1 + sections.length);
  const isKnown = (term) => rarity.body.has(term) || rarity.heading.has(term);

  // Whether two words differ by one slip: a letter added or missing, a letter replaced, or two neighbours exchanged.
  function isOneEdit(a, b) {
    if (Math.abs(a.length - b.length) > 1) return false;
    let start = 0;
    while (start < a.length && a[start] === b[start]) start += 1;
    const same = (one, other) => a.slice(start + one) === b.slice(start + other);
    return (
      same(1, 1) || same(1, 0) || same(0, 1) || (a[start] === b[start + 1] && a[start + 1] === b[start] && same(2, 2))
    );
  }
  const inLowerCase = (texts) => texts.flatMap(wordsOf).map((word) => word.toLowerCase());
  const knownWords = new Set(inLowerCase([...glossary.map(({ title }) => title), ...NAMES.flat()]));
  // All words of the texts that may replace a misspelt word, the most frequent first. The list is made only when a
  // query contains a word that is in no text.
  /** @type {string[]} */
  let frequentWords;
  function wordsByFrequency() {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const { title, text } of sections)
      for (const word of new Set(inLowerCase([title, text]))) counts.set(word, (counts.get(word) ?? 0) + 1);
    return [...counts]
      .filter(([, count]) => count >= FREQUENT)
      .sort(([, a], [, b]) => b - a)
      .map(([word]) => word);
  }
  function nearest(word) {
    const isNear = (known) => known.length >= LONG && isOneEdit(word, known);
    const term = [...knownWords].find(isNear);
    if (term) return term;
    frequentWords ??= wordsByFrequency();
    return frequentWords.find(isNear);
  }

  // Splits a compound such as "selfattention" into two words.
  function split(word) {
    for (let at = LONG; at <= word.length - LONG; at += 1) {
      const halves = [word.slice(0, at), word.slice(at)];
      if (halves.every((half) => rarity.heading.has(stem(half)))) return halves.join(" ");
    }
    return "";
  }

  // Replaces each word of a query that occurs in no section by a similar word that does occur. Returns the new query,
  // whether a replacement corrected a misspelling, and the words without a replacement.
  function corrected(query, completions) {
    const missing = [];
    let isMisspelt = false;
    const text = query.toLowerCase().replace(WORD, (word) => {
      const term = stem(word);
      if (isKnown(term) || names.has(term) || stopWords.has(term) || word === completions) return word;
      const near = word.length < LONG ? undefined : nearest(word);
      isMisspelt ||= Boolean(near);
      const other = near ?? split(word);
      if (!other) missing.push(word);
      return other || word;
    });
    return { text, isMisspelt, missing };
  }

  // The terms of all words that begin with these letters.
  function completionsOf(letters) {
    const words = [...stems].filter(([word, term]) => word.startsWith(letters) && isKnown(term));
    return new Set(words.map(([, term]) => term));
  }

  // The score that one of the query's terms adds to a section.
  const HEADING = 1.5;
  function points(one, term) {
    const often = one.body.get(term) ?? 0;
    const inText = often / (often + 1 + (0.3 * one.length.body) / average.body);
    const inHeading = one.heading.has(term) ? 1 / (0.7 + (0.3 * one.length.heading) / average.heading) : 0;
    return (
      HEADING * (inHeading + (one.taught.get(term) ?? 0)) * (rarity.heading.get(term) ?? 0) +
      inText * (rarity.body.get(term) ?? 0)
    );
  }
  const rarityOf = (term) => rarity.body.get(term) ?? rarity.heading.get(term) ?? rarest;

  // The points of the query's terms are summed, the sum is reduced if some terms are missing, and points for the query
  // as a whole are added.
  function score(one, weight, { queryTerms, phrase, quotes }) {
    const best = queryTerms.map((terms) => Math.max(...terms.map((term) => points(one, term))));
    const values = queryTerms.map((terms) => Math.max(...terms.map(rarityOf)));
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    const share = sum(values.filter((_, i) => best[i])) / sum(values);
    const isName = one.names.includes(phrase);
    const inHeading = isName ? 6 : one.headingLine.includes(phrase) ? 5 : 0;
    const quoted = quotes.filter(({ line }, i) => one.lines[i].includes(line)).map(({ words }) => words ** 2);
    const inText = Math.max(0, ...quoted);
    return { score: weight * (sum(best) * share + inHeading + inText), hasAll: share === 1 };
  }

  // If the query is a name written as in code, the package's entry ranks first; questions, claims and lists of works
  // rank last.
  const CODE = /[_.]|[a-z][A-Z]|[A-Z][A-Z]/;
  const MINOR = /Check yourself|Claims you will meet|Predict first|References/;
  function weight({ kind, title, address }, query) {
    if (kind === "Package") return CODE.test(query) && title.endsWith(query) ? 1 : 0.25;
    if (kind === "Page" || (kind === "Chapter" && !address.includes("#"))) return 0.7;
    if (kind === "Bug") return 0.6;
    return MINOR.test(title) ? 0.5 : 1;
  }
  const LAST = ["Assignment", "Solution"];
  const LEAST = 0.1; // share of the best score, for a section that lacks a term

  // The sections for a query, best first, with the terms found in them; the query that replaced a misspelt query; and
  // the words that occur in no section. While a reader types, the last word may be incomplete.
  function find(query, isTyped = false) {
    const last = isTyped ? (/[\p{L}\p{N}_]{2,}$/u.exec(query.toLowerCase())?.[0] ?? "") : "";
    const completions = last ? completionsOf(last) : new Set();
    const { text, isMisspelt, missing } = corrected(query, completions.size ? last : "");
    const whole = read(text);
    const queryTerms = withoutStopWords(whole).map(({ term }) => [term]);
    if (!queryTerms.length) return { hits: [], terms: new Set(), instead: "", missing: [] };
    const phrase = ` ${queryTerms.map(([term]) => term).join(" ")} `;
    if (queryTerms.at(-1)[0] === stem(last)) queryTerms.at(-1).push(...completions);
    const quotes = [
      { line: joined(whole.line), words: whole.line.length },
      { line: phrase, words: queryTerms.length },
    ];
    const criteria = { queryTerms, phrase, quotes };
    const scored = sections.map((one) => ({ ...one, ...score(one, weight(one, query.trim()), criteria) }));
    const least = LEAST * Math.max(...scored.map(({ score }) => score));
    const hits = scored
      .filter(({ score, hasAll }) => score && (hasAll || score >= least))
      .sort((a, b) => LAST.indexOf(a.kind) - LAST.indexOf(b.kind) || b.score - a.score);
    return { hits, terms: new Set(queryTerms.flat()), instead: isMisspelt ? text : "", missing };
  }

  // The places of terms in a text, in order.
  function places(text, terms) {
    const { line, inside } = read(text);
    return [...line, ...inside].filter(({ term }) => terms.has(term)).sort((a, b) => a.from - b.from || b.to - a.to);
  }

  // The part of a text in which the largest number of different terms occur close together.
  const EXCERPT = 180;
  function excerpt(text, terms) {
    const found = places(text, terms);
    const near = found.map(({ from }) => {
      const here = found.filter((other) => from <= other.from && other.to < from + (2 * EXCERPT) / 3);
      return new Set(here.map(({ term }) => term)).size;
    });
    const first = found[near.indexOf(Math.max(...near))]?.from ?? 0;
    const from = Math.max(0, first - EXCERPT / 3);
    const start = from ? text.indexOf(" ", from) + 1 : 0;
    const rest = text.slice(start);
    const shown = rest.length > EXCERPT ? `${rest.slice(0, EXCERPT).replace(/\s\S*$/, "")} …` : rest;
    return `${start ? "… " : ""}${shown}`;
  }

  // A text split into pieces, each with a flag: whether the piece is a found term.
  /** @type {(text: string, terms: Set<string>) => [string, boolean][]} */
  function marked(text, terms) {
    /** @type {[string, boolean][]} */
    const pieces = [];
    let done = 0;
    for (const { from, to } of places(text, terms)) {
      if (from < done) continue;
      pieces.push([text.slice(done, from), false], [text.slice(from, to), true]);
      done = to;
    }
    return [...pieces, [text.slice(done), false]];
  }

  return { find, excerpt, marked };
})();
