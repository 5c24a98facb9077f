// The search page: all hits for the words in the address, or in the field while a reader types.
(() => {
  const MAX_SHOWN = 40;
  const { marks } = SEARCH;

  const status = makeElement("p", { role: "status" });
  const list = makeElement("ol");
  document.getElementById("search-results").append(status, list);

  // A lab and the section that contains the lab may both be hits, with one address.
  const withoutDuplicates = (hits) =>
    hits.filter((hit, i) => hits.findIndex(({ address }) => address === hit.address) === i);
  function row({ page, address, title, text }, terms) {
    const item = makeElement("li", {}, makeElement("a", { href: address }, ...marks(title, terms)));
    if (title !== page) item.append(" ", makeElement("span", { className: "search-page", textContent: page }));
    item.append(makeElement("p", {}, ...marks(FIND.excerpt(text, terms), terms)));
    return item;
  }

  function summary(query, number, { correction, missing }) {
    const sections = `${number} ${number === 1 ? "section" : "sections"}`;
    const missingText = missing.length ? ` No section contains ${missing.join(", ")}.` : "";
    const note = `${number > MAX_SHOWN ? ` The first ${MAX_SHOWN} are shown.` : ""}${missingText}`;
    if (!number)
      return [
        `Search finished: no results for “${query}”. Check the spelling, try one word, or look in the `,
        makeElement("a", { href: "glossary.html", textContent: "glossary" }),
        ".",
      ];
    if (!correction) return [`Search finished: ${sections} for “${query}”.${note}`];
    const correctionLink = makeElement("a", { href: `?q=${encodeURIComponent(correction)}`, textContent: correction });
    return [
      `Search finished: no results for “${query}”. Did you mean `,
      correctionLink,
      `? It is in ${sections}.${note}`,
    ];
  }

  async function draw(query, isTyped) {
    await SEARCH.load();
    const result = FIND.find(query, isTyped);
    const hits = withoutDuplicates(result.hits);
    status.replaceChildren(...(query.trim() ? summary(query.trim(), hits.length, result) : []));
    list.replaceChildren(...hits.slice(0, MAX_SHOWN).map((hit) => row(hit, result.terms)));
  }

  const query = new URLSearchParams(location.search).get("q") ?? "";
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = document.querySelectorAll(".bd-search input");
  for (const field of fields) field.value = query.trim();
  /** @type {HTMLInputElement} */
  const field = document.querySelector(".bd-search-container input");
  if (!query) field.focus();
  field.addEventListener("focus", SEARCH.load);
  field.addEventListener("input", () => draw(field.value, true));
  if (query) draw(query, false);
})();
