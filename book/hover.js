// On a computer with a mouse, shows a card beside a link within the book: the title and first sentence of the target
// section, or the meaning of a term. Hovering over the link shows the card after a moment, focus shows it at once, and
// Esc hides it. The texts are in cards.js (book/cards.py), which is loaded for the first card: a page opened from disk
// can load scripts but cannot fetch other files.
(() => {
  const LINKS = "a.reference.internal, a.term";
  const DELAY = 250; // milliseconds before a card is shown, and before it is hidden after the mouse has left
  const GAP = 6; // pixels between a link and its card

  /** @type {HTMLElement} */
  const article = document.querySelector(".bd-article");
  const canHover = matchMedia("(hover: hover) and (pointer: fine)");
  const { currentScript } = /** @type {{ currentScript: HTMLScriptElement }} */ (document);
  const cardsAddress = new URL(currentScript.dataset.cards, currentScript.src).href;
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);

  /** @type {Promise<void>} */
  let loading = null;
  function load() {
    loading ??= new Promise((resolve) => {
      const script = Object.assign(document.createElement("script"), { src: cardsAddress, onload: () => resolve() });
      document.head.append(script);
    });
    return loading;
  }

  // The title and the text for a link, or nothing if the link leads out of the book or to no heading.
  function textsFor(link) {
    if (link.origin !== location.origin || !link.pathname.startsWith(root.pathname)) return null;
    const page = link.pathname.slice(root.pathname.length) || "index.html";
    return CARDS[page]?.[decodeURIComponent(link.hash.slice(1))];
  }

  const heading = document.createElement("b");
  const text = document.createElement("span");
  const card = Object.assign(document.createElement("div"), { id: "tl-card", className: "tl-card", hidden: true });
  card.role = "tooltip";
  card.append(heading, text);

  /** @type {HTMLAnchorElement} */
  let shownLink = null;
  /** @type {HTMLAnchorElement} */
  let wantedLink = null;
  let timer = 0;

  // Places the card below the hovered line of the link, or above the line if there is no space below.
  function placeCard(link, x) {
    const lines = [...link.getClientRects()];
    const line = lines.find(({ left, right }) => left <= x && x <= right) ?? lines[0];
    const origin = card.offsetParent.getBoundingClientRect();
    const { width, height } = card.getBoundingClientRect();
    const left = Math.max(GAP, Math.min(line.left, document.documentElement.clientWidth - width - GAP));
    const isBelow = line.bottom + GAP + height <= innerHeight || line.top - GAP < height;
    const top = isBelow ? line.bottom + GAP : line.top - GAP - height;
    card.style.left = `${left - origin.left}px`;
    card.style.top = `${top - origin.top}px`;
  }

  function hide() {
    clearTimeout(timer);
    wantedLink = null;
    if (!shownLink) return;
    shownLink.removeAttribute("aria-describedby");
    shownLink = null;
    card.hidden = true;
  }

  async function show(link, x) {
    wantedLink = link;
    await load();
    const texts = textsFor(link);
    if (link !== wantedLink || !texts) return; // the mouse has moved on
    hide();
    wantedLink = shownLink = link;
    [heading.textContent, text.textContent] = texts;
    if (!card.isConnected) article.append(card);
    card.hidden = false;
    link.setAttribute("aria-describedby", card.id);
    placeCard(link, x);
  }

  function schedule(action) {
    clearTimeout(timer);
    timer = setTimeout(action, DELAY);
  }

  const linkAt = (target) => (target instanceof Element ? target.closest(LINKS) : null);
  article?.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse" || !canHover.matches) return;
    const link = linkAt(event.target);
    if (card.contains(/** @type {Node} */ (event.target)) || (link && link === shownLink)) clearTimeout(timer);
    else if (link) schedule(() => show(link, event.clientX));
    else schedule(hide);
  });
  article?.addEventListener("pointerleave", () => schedule(hide));
  article?.addEventListener("focusin", (event) => {
    const link = linkAt(event.target);
    if (link?.matches(":focus-visible") && canHover.matches) show(link, link.getClientRects()[0].left);
    else hide();
  });
  article?.addEventListener("focusout", hide);
  article?.addEventListener("click", (event) => linkAt(event.target) && hide());
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();
