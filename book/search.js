// The search page: all hits for the words of its address, or of its field while a reader types.
(() => {
  const SHOWN = 40;
  const { make, marks } = SEARCH;

  const status = make("p", { role: "status" });
  const list = make("ol");
  document.getElementById("search-results").append(status, list);

  // A lab is in a section that may be a hit, too.
  const once = (hits) => hits.filter((hit, i) => hits.findIndex(({ address }) => address === hit.address) === i);
  function result({ page, address, title, text }, terms) {
    const item = make("li", {}, make("a", { href: address }, ...marks(title, terms)));
    if (title !== page) item.append(" ", make("span", { className: "search-page", textContent: page }));
    item.append(make("p", {}, ...marks(FIND.excerpt(text, terms), terms)));
    return item;
  }

  function said(query, number, instead) {
    const sections = `${number} ${number === 1 ? "section" : "sections"}`;
    const shown = number > SHOWN ? ` The first ${SHOWN} are shown.` : "";
    if (!number)
      return [
        `Search finished: nothing for “${query}”. Check the spelling, try one word, or look into the `,
        make("a", { href: "glossary.html", textContent: "glossary" }),
        ".",
      ];
    if (!instead) return [`Search finished: ${sections} for “${query}”.${shown}`];
    const other = make("a", { href: `?q=${encodeURIComponent(instead)}`, textContent: instead });
    return [`Search finished: nothing for “${query}”. Did you mean `, other, `? It has ${sections}.${shown}`];
  }

  async function draw(query, isTyped) {
    if (query.trim()) await SEARCH.load();
    const { hits, terms, instead } = query.trim() ? FIND.find(query, isTyped) : { hits: [], terms: null, instead: "" };
    const found = once(hits);
    status.replaceChildren(...(query.trim() ? said(query.trim(), found.length, instead) : []));
    list.replaceChildren(...found.slice(0, SHOWN).map((hit) => result(hit, terms)));
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
  draw(query, false);
})();
