// Shows hits while a reader types into the search dialog that opens over every page. When the dialog first opens, it
// loads the texts of the book and the search functions (search_index.py). Enter without a chosen hit opens the page of
// all hits (search.js).
// biome-ignore lint/correctness/noUnusedVariables: other scripts use it
const SEARCH = (() => {
  const { currentScript } = /** @type {{ currentScript: HTMLScriptElement }} */ (document);
  const indexAddress = new URL(currentScript.dataset.index, currentScript.src).href;
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);

  /** @type {Promise<void>} */
  let loading = null;
  function load() {
    loading ??= new Promise((resolve) => {
      document.head.append(
        Object.assign(document.createElement("script"), { src: indexAddress, onload: () => resolve() }),
      );
    });
    return loading;
  }

  function marks(text, terms) {
    const pieces = FIND.splitAtTerms(text, terms);
    return pieces.map(([piece, isFound]) => (isFound ? makeElement("mark", { textContent: piece }) : piece));
  }
  const addressOf = (hit) => new URL(hit.address, root).href;

  const box = document.querySelector(".search-button__search-container");
  const field = box?.querySelector("input");
  if (!field) return { load, marks, addressOf };

  // How many hits of each kind are shown; the kind with the best hit comes first.
  const MAX_SHOWN = { Chapter: 5, Glossary: 3, Lab: 2, Bug: 2, Package: 2, Page: 2, Assignment: 1 };
  const KINDS_WITH_OWN_PAGE = new Set(["Glossary", "Bug", "Package"]); // all hits are on a page with this name
  const list = makeElement("div", { id: "tl-hits", hidden: true, role: "listbox", ariaLabel: "Hits" });
  const status = makeElement("p", { role: "status" });
  Object.assign(box, { role: "search", ariaLabel: "Search" }); // a landmark
  box.append(makeElement("div", { className: "tl-hits" }, status, list));
  // A combobox must have the type text, not search.
  Object.assign(field, { type: "text", inputMode: "search", enterKeyHint: "search" });
  Object.assign(field, { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false" });
  field.setAttribute("aria-controls", list.id);

  function makeOption(hit, terms) {
    const title = makeElement("b", {}, ...marks(hit.title, terms));
    const isNamed = hit.title !== hit.page && !KINDS_WITH_OWN_PAGE.has(hit.kind);
    const page = isNamed ? [" ", makeElement("small", { textContent: hit.page })] : [];
    const text = makeElement("span", {}, ...marks(FIND.excerpt(hit.text, terms), terms));
    const link = makeElement("a", { href: addressOf(hit), role: "option", tabIndex: -1, ariaSelected: "false" });
    link.append(title, ...page, text);
    return link;
  }
  function makeGroup(kind, options) {
    const name = makeElement("div", {
      id: `tl-hits-${kind}`,
      className: "tl-kind",
      role: "presentation",
      textContent: kind,
    });
    const node = makeElement("div", { role: "group" }, name, ...options);
    node.setAttribute("aria-labelledby", name.id);
    return node;
  }

  /** @type {HTMLElement[]} */
  let options = [];
  let chosenIndex = -1;
  function choose(number) {
    options[chosenIndex]?.setAttribute("aria-selected", "false");
    chosenIndex = number;
    const option = options[chosenIndex];
    if (!option) return field.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  const hitsOfKind = (hits, kind) => hits.filter((hit) => hit.kind === kind).slice(0, MAX_SHOWN[kind]);
  function statusParts(query, { hits, correction, missing }, shown) {
    if (!hits.length) return [`Nothing for “${query}”.`];
    const allHits = new URL(`?q=${encodeURIComponent(correction || query)}`, field.form.action).href;
    return [
      ...(correction
        ? [`Nothing for “${query}”. Did you mean `, makeElement("b", { textContent: correction }), "? "]
        : []),
      ...(missing.length ? [`No section contains ${missing.join(", ")}. `] : []),
      `${shown} of `,
      makeElement("a", { href: allHits, textContent: `${hits.length} ${hits.length === 1 ? "hit" : "hits"}` }),
      ". ",
      makeElement("span", { textContent: "↑ ↓ choose, Enter shows all." }),
    ];
  }
  async function draw() {
    await load();
    const query = field.value.trim();
    const result = FIND.find(field.value, true);
    const kinds = [...new Set(result.hits.map(({ kind }) => kind))].filter((kind) => kind in MAX_SHOWN);
    const groups = kinds.map((kind) =>
      makeGroup(
        kind,
        hitsOfKind(result.hits, kind).map((hit) => makeOption(hit, result.terms)),
      ),
    );
    list.replaceChildren(...groups);
    list.hidden = !groups.length;
    options = [.../** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll("[role=option]"))];
    options.forEach((option, i) => {
      option.id = `tl-hit-${i}`;
    });
    choose(-1);
    field.ariaExpanded = String(options.length > 0);
    status.replaceChildren(...(query ? statusParts(query, result, options.length) : []));
  }

  const close = () => box.parentElement.classList.remove("show");
  field.addEventListener("focus", load);
  field.addEventListener("input", draw);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && options.length) {
      event.preventDefault();
      const nPositions = options.length + 1; // the hits and the field
      choose(((chosenIndex + 1 + step + nPositions) % nPositions) - 1);
    } else if (event.key === "Enter" && chosenIndex >= 0) {
      event.preventDefault();
      options[chosenIndex].click();
    }
  });
  list.addEventListener("click", close); // a hit may be on the current page
  box.addEventListener("focusout", (event) => {
    const { relatedTarget } = /** @type {FocusEvent} */ (event);
    if (relatedTarget instanceof Node && !box.contains(relatedTarget)) close();
  });

  return { load, marks, addressOf };
})();
