// The search page: finds sections without a server, in the list SECTIONS.
(() => {
  // Synonyms: the first of a row replaces the others.
  const SAME = [
    ["layer norm", "layer normalization", "layer normalisation"],
    ["batch norm", "batch normalization", "batch normalisation"],
    ["normalization", "normalisation"],
    ["feed forward", "ffn", "mlp"],
    ["multi head attention", "mha"],
    ["key value cache", "kv cache"],
    ["scaled dot product attention", "sdpa"],
    ["position", "positional encoding", "positional embedding", "position embedding"],
    ["einsum", "einstein summation"],
  ];
  const SHOWN = 40;
  const EXCERPT = 180;

  // Normalises a text: lower case, no punctuation, synonyms replaced.
  function plain(text) {
    let found = ` ${text.toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, " ")} `;
    for (const [word, ...others] of SAME)
      for (const other of others) found = found.replaceAll(` ${other} `, ` ${word} `);
    return found;
  }

  // "masks" finds "mask"; a compound such as "layernorm" also finds its two words.
  const stem = (word) => (word.length > 3 ? word.replace(/s$/, "") : word);
  const LONG = 6;
  function count(word, text) {
    const begins = text.split(` ${stem(word)}`).length - 1;
    if (begins || word.length < LONG) return begins;
    return text.replaceAll(" ", "").includes(stem(word)) ? 1 : 0;
  }

  const sections = SECTIONS.map(([page, address, title, text]) => {
    const heading = plain(title.replace(/^[\d.·\s]+/, ""));
    return { page, address, title, text, heading, body: plain(text) };
  });

  // The score of a section; 0 if a word is missing.
  function score({ heading, body }, words, phrase) {
    let sum = 0;
    for (const word of words) {
      const inHeading = count(word, heading);
      const inBody = count(word, body);
      if (!inHeading && !inBody) return 0;
      sum += 8 * Math.min(inHeading, 1) + Math.log2(1 + inBody);
    }
    const squeezed = phrase.replaceAll(" ", "");
    if (heading.replaceAll(" ", "") === squeezed) sum += 30;
    else if (heading.includes(phrase)) sum += 15;
    if (body.includes(phrase)) sum += 6;
    return sum;
  }

  // Assignments and solutions come last.
  const LAST = ["solutions/", "assignments/"];
  const rank = ({ address }) => LAST.findIndex((folder) => address.startsWith(folder));
  const later = (section) => (rank(section) < 0 ? 0 : LAST.length - rank(section));

  // An entry of the package comes first for its own name. For other words the chapters do, which explain them.
  const weight = ({ address, heading }, phrase) =>
    address.startsWith("api.html") && !heading.includes(phrase) ? 0.25 : 1;

  function find(query) {
    const phrase = plain(query);
    const words = phrase.split(" ").filter(Boolean);
    if (!words.length) return [];
    return sections
      .map((section) => ({ ...section, score: weight(section, phrase) * score(section, words, phrase) }))
      .filter((section) => section.score)
      .sort((a, b) => later(a) - later(b) || b.score - a.score);
  }

  // The text around the first occurrence of a word of the query.
  function excerpt(text, query) {
    const words = query.match(/[\p{L}\p{N}_]+/gu) ?? [];
    const places = words.map((word) => text.toLowerCase().indexOf(stem(word.toLowerCase()))).filter((at) => at >= 0);
    const from = Math.max(0, Math.min(...places, text.length) - EXCERPT / 3);
    const start = from && places.length ? text.indexOf(" ", from) + 1 : 0;
    return `${start ? "… " : ""}${text.slice(start, start + EXCERPT).replace(/\s\S*$/, "")} …`;
  }

  function make(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  const query = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = document.querySelectorAll(".bd-search input");
  for (const field of fields) field.value = query;
  if (!query) return;
  const found = find(query);
  const number = `${found.length} ${found.length === 1 ? "section" : "sections"}`;
  const shown = found.length > SHOWN ? ` The first ${SHOWN} are shown.` : "";
  const said = found.length
    ? `Search finished: ${number} for “${query}”.${shown}`
    : `Search finished: nothing for “${query}”. Check the spelling, try one word, or look into the glossary.`;
  const list = make("ol", {});
  for (const { page, address, title, text } of found.slice(0, SHOWN)) {
    const item = make("li", {}, make("a", { href: address, textContent: title }));
    if (title !== page) item.append(" ", make("span", { className: "search-page", textContent: page }));
    item.append(make("p", { textContent: excerpt(text, query) }));
    list.append(item);
  }
  const status = make("p", { textContent: said });
  status.setAttribute("role", "status");
  document.getElementById("search-results").append(status, list);
})();
