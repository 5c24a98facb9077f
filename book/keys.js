// Keys for the whole page: ← and → open the previous and the next page, / opens the search, ? opens a card with all
// keys. The page handles a key only if the focused element does not use the key: fields, dialogs, labs, and boxes that
// scroll handle their own keys. The card can turn the keys off, for readers who use speech or a switch instead of
// typing.
(() => {
  const KEYS = [
    [["←", "→"], "the previous page, the next page"],
    [["/"], "search; Ctrl + K does the same"],
    [["↑", "↓"], "in a search: choose a hit, and Enter opens it"],
    [["1", "2", "3"], "in a question: choose an answer; A, B and C do the same"],
    [["?"], "this card"],
    [["Tab", "Enter"], "go from link to link, and follow one"],
    [["Esc"], "close a search, a list or this card"],
  ];
  const LAB_KEYS_TEXT = "In a live figure: arrow keys move a handle, or go from cell to cell; the space bar paints.";
  const RING_TEXT = "A ring beside a chapter shows how many of its sections you have read.";

  /** @type {HTMLDialogElement} */
  let card = null;
  function makeCard() {
    const rows = KEYS.map(([keys, action]) =>
      makeElement(
        "tr",
        {},
        makeElement(
          "th",
          { scope: "row" },
          ...[...keys].flatMap((key) => [makeElement("kbd", { textContent: key }), " "]),
        ),
        makeElement("td", { textContent: String(action) }),
      ),
    );
    const checkbox = makeElement("input", { type: "checkbox", checked: RECORD.read().keys });
    checkbox.addEventListener("change", () =>
      RECORD.change((record) => {
        record.keys = checkbox.checked;
      }),
    );
    const close = makeElement("button", { type: "button", textContent: "Close" });
    close.addEventListener("click", () => card.close());
    const heading = makeElement("h2", { id: "tl-keys", textContent: "Keys" });
    card = makeElement(
      "dialog",
      { className: "tl-keys-card" },
      heading,
      makeElement("table", {}, makeElement("tbody", {}, ...rows)),
      makeElement("p", { textContent: LAB_KEYS_TEXT }),
      makeElement("p", { textContent: RING_TEXT }),
      makeElement("label", {}, checkbox, " Use the keys ← → /, 1 to 3 and ?"),
      close,
    );
    card.setAttribute("aria-labelledby", heading.id);
    document.body.append(card);
  }
  function showCard() {
    if (!card) makeCard();
    if (!card.open) card.showModal();
  }

  // Elements that handle keys themselves, and elements that contain such elements.
  const KEY_HANDLERS = "input, textarea, select, dialog, [contenteditable], .tl-lab, [data-lab], .jupyter-widgets";
  const TEXT_FIELDS =
    "input:not([type=range], [type=checkbox], [type=radio]), textarea, select, dialog, [contenteditable]";
  const SCROLL_BOXES = "pre, .formula, .pst-scrollable-table-container, [tabindex='0']";
  const isFree = (target) => !target.closest(KEY_HANDLERS) && !target.closest(SCROLL_BOXES);

  /** @type {(selector: string) => HTMLElement} */
  const find = (selector) => document.querySelector(selector);
  const follow = (side) => find(`.prev-next-area a.${side}`)?.click();
  function search() {
    const field = find("#search-page-input");
    if (field) field.focus();
    else find(".search-button__button")?.click();
  }
  const ACTIONS = {
    ArrowLeft: () => follow("left-prev"),
    ArrowRight: () => follow("right-next"),
    "/": search,
    "?": showCard,
  };
  // Runs before the theme's own handler of the search key, which would focus a hidden field.
  addEventListener(
    "keydown",
    (event) => {
      const { key, target, altKey, ctrlKey, metaKey } = event;
      if (altKey || ctrlKey || metaKey || event.defaultPrevented || !Object.hasOwn(ACTIONS, key)) return;
      if (event.shiftKey && key.startsWith("Arrow")) return;
      if (!(target instanceof Element)) return;
      if (key === "?" ? target.closest(TEXT_FIELDS) : !isFree(target)) return;
      if (key === "/") event.stopImmediatePropagation();
      if (!RECORD.read().keys) return;
      event.preventDefault();
      ACTIONS[key]();
    },
    true,
  );

  // A button for readers who do not know that the page has keyboard shortcuts.
  const button = makeElement("button", { type: "button", className: "tl-keys-button", textContent: "Keys" });
  button.append(" ", makeElement("kbd", { textContent: "?" }));
  button.addEventListener("click", showCard);
  document.querySelector(".bd-footer-content__inner")?.append(button);
})();
