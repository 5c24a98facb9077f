// Keys for the whole page: ← and → for the pages before and after, / for the search, ? for a card with all keys. A key
// belongs to the page only where nothing else wants it: a field, a lab, a table or code that scrolls, an open fold-out
// keep theirs. The card turns the keys off for readers who speak or switch instead of typing.
(() => {
  const KEYS = [
    [["←", "→"], "the page before, the page after"],
    [["/"], "search; with Ctrl + K, too"],
    [["↑", "↓"], "in a search: choose a hit, and Enter opens it"],
    [["?"], "this card"],
    [["Tab", "Enter"], "go from link to link, and follow one"],
    [["Esc"], "close a search, a list or this card"],
  ];
  const IN_LABS = "In a live figure: arrow keys move a handle, or go from cell to cell; the space bar paints.";
  const MARKS = "A ring beside a chapter shows how many of its sections you have read.";

  const element = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  /** @type {HTMLDialogElement} */
  let card = null;
  function makeCard() {
    const rows = KEYS.map(([keys, what]) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, ...[...keys].flatMap((key) => [element("kbd", { textContent: key }), " "])),
        element("td", { textContent: String(what) }),
      ),
    );
    const on = element("input", { type: "checkbox", checked: RECORD.read().keys });
    on.addEventListener("change", () =>
      RECORD.change((kept) => {
        kept.keys = on.checked;
      }),
    );
    const close = element("button", { type: "button", textContent: "Close" });
    close.addEventListener("click", () => card.close());
    const heading = element("h2", { id: "tl-keys", textContent: "Keys" });
    card = element(
      "dialog",
      { className: "tl-keys" },
      heading,
      element("table", {}, element("tbody", {}, ...rows)),
      element("p", { textContent: IN_LABS }),
      element("p", { textContent: MARKS }),
      element("label", {}, on, " Use the keys ← → / and ?"),
      close,
    );
    card.setAttribute("aria-labelledby", heading.id);
    document.body.append(card);
  }
  function showCard() {
    if (!card) makeCard();
    if (!card.open) card.showModal();
  }

  // The elements that use keys themselves, and those around them.
  const OWN = "input, textarea, select, dialog, [contenteditable], .tl-lab, [data-lab], .jupyter-widgets";
  const SCROLLS = "pre, .formula, .pst-scrollable-table-container, [tabindex='0']";
  const isFree = (target) => !target.closest(OWN) && !target.closest(SCROLLS);

  /** @type {(selector: string) => HTMLElement} */
  const find = (selector) => document.querySelector(selector);
  const follow = (side) => find(`.prev-next-area a.${side}`)?.click();
  function search() {
    const field = find("#search-page-input");
    if (field) field.focus();
    else find(".search-button__button")?.click();
  }
  const DOES = {
    ArrowLeft: () => follow("left-prev"),
    ArrowRight: () => follow("right-next"),
    "/": search,
    "?": showCard,
  };
  // Before the theme's own search key, which puts the cursor into a field that is not shown.
  addEventListener(
    "keydown",
    (event) => {
      const { key, target, altKey, ctrlKey, metaKey } = event;
      if (altKey || ctrlKey || metaKey || event.defaultPrevented || !Object.hasOwn(DOES, key)) return;
      if (event.shiftKey && key.startsWith("Arrow")) return;
      if (!(target instanceof Element) || !isFree(target)) return;
      if (key === "/") event.stopImmediatePropagation();
      if (!RECORD.read().keys) return;
      event.preventDefault();
      DOES[key]();
    },
    true,
  );

  // A button for those who do not guess that there are keys.
  const button = element("button", { type: "button", className: "tl-keys-button", textContent: "Keys" });
  button.append(" ", element("kbd", { textContent: "?" }));
  button.addEventListener("click", showCard);
  document.querySelector(".bd-footer-content__inner")?.append(button);
})();
