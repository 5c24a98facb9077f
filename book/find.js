// Finds sections for a reader's words, in the texts of search_index.py, with the stemmer of Sphinx.
// biome-ignore lint/correctness/noUnusedVariables: other scripts use it
const FIND = (() => {
  // Names of concepts in deep learning: all names in one row mean the same term, regardless of endings and capitals. If
  // two names match, the longer name is used.
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
  const MORE_STOP_WORDS =
    "all can did do does from get has have how i its many me my so use vs versus we what when where which who why you";
  const WORD = /\d+(?:\.\d+)+|[\p{L}\p{N}_]+|[√∞]/gu;
  const MIN_LETTERS = 4; // minimum number of letters of a word that may be misspelt
  const MIN_SECTIONS = 3; // how many sections must contain a word that replaces a misspelt word

  const stemmer = new Stemmer();
  // The words tokenizer and token must not share a stem.
  /** @type {Map<string, string>} */
  const stems = new Map(["tokenizer", "tokenizers"].map((word) => [word, "tokenizer"]));
  function stem(word) {
    const lower = word.toLowerCase();
    if (!stems.has(lower)) stems.set(lower, lower.length > 3 ? stemmer.stemWord(lower) : lower);
    return stems.get(lower);
  }
  const stopWords = new Set([...STOP_WORDS, ...MORE_STOP_WORDS.split(" ")].map(stem));
  const wordsOf = (text) => text.match(WORD) ?? [];

  // Maps a stem to the names that begin with this stem, longest first. Each name is stored as its stems and its term.
  /** @type {Map<string, { parts: string[]; term: string }[]>} */
  const namesByStem = new Map();
  for (const row of NAMES)
    for (const variant of row) {
      const parts = wordsOf(variant).map(stem);
      const name = { parts, term: `=${row[0].replaceAll(" ", "")}` };
      namesByStem.set(parts[0], [...(namesByStem.get(parts[0]) ?? []), name]);
    }
  for (const variants of namesByStem.values()) variants.sort((a, b) => b.parts.length - a.parts.length);

  // Returns the terms of a text with their places, as two lists. In `outer`, each name replaces the words that form it;
  // `inner` has the words inside names.
  function tokenize(text) {
    const words = [...text.matchAll(WORD)].map(({ 0: word, index: from }) => ({
      from,
      to: from + word.length,
      term: stem(word),
    }));
    const result = { outer: [], inner: [] };
    let end = 0; // of the previous name
    words.forEach((word, start) => {
      const variants = (namesByStem.get(word.term) ?? []).filter(({ parts }) =>
        parts.every((part, i) => words[start + i]?.term === part),
      );
      const spans = variants.map(({ parts, term }) => ({
        from: word.from,
        to: words[start + parts.length - 1].to,
        term,
      }));
      if (start < end) result.inner.push(word, ...spans);
      else if (variants.length) {
        result.outer.push(spans[0]);
        result.inner.push(word, ...spans.slice(1));
        end = start + variants[0].parts.length;
      } else result.outer.push(word);
      if (word.term.includes("_")) {
        const parts = tokenize(word.term.replaceAll("_", " "));
        for (const { term } of [...parts.outer, ...parts.inner]) result.inner.push({ ...word, term });
      }
    });
    return result;
  }

  const joinTerms = (spans) => ` ${spans.map(({ term }) => term).join(" ")} `;
  function withoutStopWords({ outer }) {
    const contentTerms = outer.filter(({ term }) => !stopWords.has(term));
    return contentTerms.length ? contentTerms : outer;
  }

  // The index: how often each term occurs in a section's heading, and how often in the section's text.
  function countTerms({ outer, inner }) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const { term } of [...outer, ...inner]) counts.set(term, (counts.get(term) ?? 0) + 1);
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
  const kindOf = (address) => KINDS.find(([pattern]) => pattern.test(address))?.[1] ?? "Page";
  const NUMBER = /^[\d.]+ (· )?/;
  function makeSection(kind, page, address, title, text) {
    const [heading, body] = [tokenize(title), tokenize(text)];
    const length = { heading: withoutStopWords(heading).length, body: body.outer.length };
    const titles = title.replace(NUMBER, "").split(", "); // the glossary has several terms in one heading
    return {
      ...{ kind, page, address, title, text, length, taughtWeight: new Map() },
      ...{ heading: countTerms(heading), body: countTerms(body) },
      ...{ headingTerms: joinTerms(withoutStopWords(heading)) },
      termTexts: [joinTerms(heading.outer) + joinTerms(body.outer), joinTerms(withoutStopWords(body))],
      names: titles.map((name) => joinTerms(withoutStopWords(tokenize(name)))),
    };
  }
  const sections = SECTIONS.flatMap(([page, address, parts]) =>
    parts.map(([anchor, title, text]) => {
      const fullAddress = anchor ? `${address}#${anchor}` : address;
      return makeSection(kindOf(address), page, fullAddress, title, text);
    }),
  );
  sections.push(...LABS.map(([page, address, title, text]) => makeSection("Lab", page, address, title, text)));
  const mean = (part) => sections.reduce((sum, { length }) => sum + length[part], 0) / sections.length;
  const average = { heading: mean("heading"), body: mean("body") };

  // A glossary entry names the sections that teach its term, as in (5.9, 7.1), so these sections are also about the
  // entry's words.
  const chapters = sections.filter(({ kind }) => kind === "Chapter");
  const sectionByNumber = new Map(chapters.map((section) => [section.title.match(/^\d+\.\d+/)?.[0], section]));
  const NO_TERM = /^(Glossary|Axis words|Letters|Terms)$/;
  const glossary = sections.filter(({ kind, title }) => kind === "Glossary" && !NO_TERM.test(title));
  for (const entry of glossary)
    for (const [, numbers] of entry.text.matchAll(/\(([\d., ]+)\)/g))
      for (const taughtWeight of numbers.split(", ").map((number) => sectionByNumber.get(number)?.taughtWeight))
        for (const name of entry.names.map((name) => name.trim().split(" ")))
          for (const term of name) taughtWeight?.set(term, Math.max(taughtWeight.get(term) ?? 0, 1 / name.length));

  // The fewer sections contain a term, the higher the term's weight.
  function computeRarities(part) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const section of sections)
      for (const term of section[part].keys()) counts.set(term, (counts.get(term) ?? 0) + 1);
    for (const [term, number] of counts) counts.set(term, Math.log2(1 + sections.length / number));
    return counts;
  }
  const rarity = { heading: computeRarities("heading"), body: computeRarities("body") };
  const maxRarity = Math.log2(1 + sections.length);
  const isKnown = (term) => rarity.body.has(term) || rarity.heading.has(term);

  // Whether two words differ by one slip: a letter added or missing, a letter replaced, or two neighbouring
  // letters exchanged.
  function isOneEdit(a, b) {
    if (Math.abs(a.length - b.length) > 1) return false;
    let start = 0;
    while (start < a.length && a[start] === b[start]) start += 1;
    const isSameRest = (skipA, skipB) => a.slice(start + skipA) === b.slice(start + skipB);
    return (
      isSameRest(1, 1) ||
      isSameRest(1, 0) ||
      isSameRest(0, 1) ||
      (a[start] === b[start + 1] && a[start + 1] === b[start] && isSameRest(2, 2))
    );
  }
  const lowerCaseWords = (texts) => texts.flatMap(wordsOf).map((word) => word.toLowerCase());
  const conceptWords = new Set(lowerCaseWords([...glossary.map(({ title }) => title), ...NAMES.flat()]));
  // All words that occur in the texts and may replace a misspelt word, the most frequent first. The list is made only
  // when a query contains a word that is in no text.
  /** @type {string[]} */
  let frequentWords;
  function wordsByFrequency() {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const { title, text } of sections)
      for (const word of new Set(lowerCaseWords([title, text]))) counts.set(word, (counts.get(word) ?? 0) + 1);
    return [...counts]
      .filter(([, count]) => count >= MIN_SECTIONS)
      .sort(([, a], [, b]) => b - a)
      .map(([word]) => word);
  }
  function nearest(word) {
    const isNear = (candidate) => candidate.length >= MIN_LETTERS && isOneEdit(word, candidate);
    const conceptWord = [...conceptWords].find(isNear);
    if (conceptWord) return conceptWord;
    frequentWords ??= wordsByFrequency();
    return frequentWords.find(isNear);
  }

  // Splits a compound such as "selfattention" into two words.
  function splitCompound(word) {
    for (let start = MIN_LETTERS; start <= word.length - MIN_LETTERS; start += 1) {
      const halves = [word.slice(0, start), word.slice(start)];
      if (halves.every((half) => rarity.heading.has(stem(half)))) return halves.join(" ");
    }
    return "";
  }

  // Replaces each word of a query that occurs in no section by a similar word that does occur. Returns the new query,
  // whether a replacement corrected a misspelling, and the words without a replacement.
  function correctQuery(query, incomplete) {
    const missing = [];
    let isMisspelt = false;
    const text = query.toLowerCase().replace(WORD, (word) => {
      const term = stem(word);
      if (isKnown(term) || namesByStem.has(term) || stopWords.has(term) || word === incomplete) return word;
      const similar = word.length < MIN_LETTERS ? undefined : nearest(word);
      isMisspelt ||= Boolean(similar);
      const replacement = similar ?? splitCompound(word);
      if (!replacement) missing.push(word);
      return replacement || word;
    });
    return { text, isMisspelt, missing };
  }

  // The terms of all words that begin with the given letters.
  function completionsOf(letters) {
    const words = [...stems].filter(([word, term]) => word.startsWith(letters) && isKnown(term));
    return new Set(words.map(([, term]) => term));
  }

  // The points that one of the query's terms adds to a section's score.
  const HEADING_WEIGHT = 1.5;
  function points(section, term) {
    const count = section.body.get(term) ?? 0;
    const inText = count / (count + 1 + (0.3 * section.length.body) / average.body);
    const inHeading = section.heading.has(term) ? 1 / (0.7 + (0.3 * section.length.heading) / average.heading) : 0;
    return (
      HEADING_WEIGHT * (inHeading + (section.taughtWeight.get(term) ?? 0)) * (rarity.heading.get(term) ?? 0) +
      inText * (rarity.body.get(term) ?? 0)
    );
  }
  const rarityOf = (term) => rarity.body.get(term) ?? rarity.heading.get(term) ?? maxRarity;

  // The points of the query's terms are summed, the sum is reduced if some terms are missing, and points for the query
  // as a whole are added.
  function score(section, weight, { queryTerms, phrase, quotes }) {
    const bestPoints = queryTerms.map((terms) => Math.max(...terms.map((term) => points(section, term))));
    const bestRarities = queryTerms.map((terms) => Math.max(...terms.map(rarityOf)));
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    const share = sum(bestRarities.filter((_, i) => bestPoints[i])) / sum(bestRarities);
    const isName = section.names.includes(phrase);
    const inHeading = isName ? 6 : section.headingTerms.includes(phrase) ? 5 : 0;
    const matchedQuotes = quotes.filter(({ text }, i) => section.termTexts[i].includes(text));
    const inText = Math.max(0, ...matchedQuotes.map(({ nWords }) => nWords ** 2));
    return { score: weight * (sum(bestPoints) * share + inHeading + inText), hasAll: share === 1 };
  }

  // The factor for a section's points. An entry of the package counts in full only if the query is its name, written as
  // in code; questions, claims and lists of works count half.
  const CODE_NAME = /[_.]|[a-z][A-Z]|[A-Z][A-Z]/;
  const MINOR_TITLE = /Check yourself|Claims you will meet|Predict first|References/;
  function weight({ kind, title, address }, query) {
    if (kind === "Package") return CODE_NAME.test(query) && title.endsWith(query) ? 1 : 0.25;
    if (kind === "Page" || (kind === "Chapter" && !address.includes("#"))) return 0.7;
    if (kind === "Bug") return 0.6;
    return MINOR_TITLE.test(title) ? 0.5 : 1;
  }
  const LAST_KINDS = ["Assignment", "Solution"];
  const MIN_SHARE = 0.1; // a section that lacks a term must reach this share of the best score

  // Returns the sections for a query, the best first, with assignments and solutions at the end; the query's terms; the
  // query that replaced a misspelt query; and the words that occur in no section. While a reader types, the last word
  // may be incomplete.
  function find(query, isTyped = false) {
    const lastWord = isTyped ? (/[\p{L}\p{N}_]{2,}$/u.exec(query.toLowerCase())?.[0] ?? "") : "";
    const completions = lastWord ? completionsOf(lastWord) : new Set();
    const { text, isMisspelt, missing } = correctQuery(query, completions.size ? lastWord : "");
    const tokens = tokenize(text);
    const queryTerms = withoutStopWords(tokens).map(({ term }) => [term]);
    if (!queryTerms.length) return { hits: [], terms: new Set(), correction: "", missing: [] };
    const phrase = ` ${queryTerms.map(([term]) => term).join(" ")} `;
    if (queryTerms.at(-1)[0] === stem(lastWord)) queryTerms.at(-1).push(...completions);
    const quotes = [
      { text: joinTerms(tokens.outer), nWords: tokens.outer.length },
      { text: phrase, nWords: queryTerms.length },
    ];
    const criteria = { queryTerms, phrase, quotes };
    const scored = sections.map((section) => ({
      ...section,
      ...score(section, weight(section, query.trim()), criteria),
    }));
    const minScore = MIN_SHARE * Math.max(...scored.map(({ score }) => score));
    const hits = scored
      .filter(({ score, hasAll }) => score && (hasAll || score >= minScore))
      .sort((a, b) => LAST_KINDS.indexOf(a.kind) - LAST_KINDS.indexOf(b.kind) || b.score - a.score);
    return { hits, terms: new Set(queryTerms.flat()), correction: isMisspelt ? text : "", missing };
  }

  // The places of terms in a text, in order.
  function matches(text, terms) {
    const { outer, inner } = tokenize(text);
    return [...outer, ...inner].filter(({ term }) => terms.has(term)).sort((a, b) => a.from - b.from || b.to - a.to);
  }

  // The part of a text in which the largest number of different terms occur close together.
  const EXCERPT_LENGTH = 180;
  function excerpt(text, terms) {
    const places = matches(text, terms);
    const counts = places.map(({ from }) => {
      const nearby = places.filter((other) => from <= other.from && other.to < from + (2 * EXCERPT_LENGTH) / 3);
      return new Set(nearby.map(({ term }) => term)).size;
    });
    const first = places[counts.indexOf(Math.max(...counts))]?.from ?? 0;
    const from = Math.max(0, first - EXCERPT_LENGTH / 3);
    const start = from ? text.indexOf(" ", from) + 1 : 0;
    const remaining = text.slice(start);
    const isCut = remaining.length > EXCERPT_LENGTH;
    const shown = isCut ? `${remaining.slice(0, EXCERPT_LENGTH).replace(/\s\S*$/, "")} …` : remaining;
    return `${start ? "… " : ""}${shown}`;
  }

  // A text split into pieces, each with a flag: whether the piece is a found term.
  /** @type {(text: string, terms: Set<string>) => [string, boolean][]} */
  function splitAtTerms(text, terms) {
    /** @type {[string, boolean][]} */
    const pieces = [];
    let end = 0;
    for (const { from, to } of matches(text, terms)) {
      if (from < end) continue;
      pieces.push([text.slice(end, from), false], [text.slice(from, to), true]);
      end = to;
    }
    return [...pieces, [text.slice(end), false]];
  }

  return { find, excerpt, splitAtTerms };
})();
