// Guides a reader along the route that the reader has chosen. If other sections come between a stop and the next stop,
// the stop ends with a link to the next stop. The links at the foot of the page also lead along the route, and so do
// the keys ← and →, which open these links. The list of sections marks the stops.
(() => {
  const { pagename } = DOCUMENTATION_OPTIONS;
  const follow = (route) =>
    RECORD.change((kept) => {
      kept.route = route;
    });

  // Returns a function that sets the target of a link at the foot of the page: a stop or, without one, the original
  // page.
  function atFoot(side) {
    /** @type {HTMLAnchorElement} */
    const link = document.querySelector(`.prev-next-area a.${side}`);
    if (!link) return () => {};
    const subtitle = link.querySelector(".prev-next-subtitle");
    const title = link.querySelector(".prev-next-title");
    const original = [link.getAttribute("href"), link.title, subtitle.textContent, title.textContent];
    return (stop, words) => {
      const [href, name] = stop ?? [];
      [link.href, link.title, subtitle.textContent, title.textContent] = stop ? [href, name, words, name] : original;
    };
  }

  // On the page of a route, a reader begins the route with a button or with a link to a stop. The “next” link at the
  // foot of this page then leads to the first stop.
  if (Object.hasOwn(ROUTES, pagename)) {
    const [title, , [[, first]]] = ROUTES[pagename];
    const button = makeElement("button", { type: "button" });
    const words = makeElement("span");
    const start = makeElement("a", { href: first[0], textContent: `Start: ${first[1]}` });
    const line = makeElement("p", { className: "tl-route" }, button, " ", words, " ", start);
    const setNext = atFoot("right-next");
    const show = () => {
      const on = RECORD.read().route === pagename;
      button.textContent = on ? "Stop following this route" : "Follow this route";
      words.textContent = on
        ? "“Next” leads along the route."
        : "“Next” then leads along the route, and skips the rest.";
      setNext(on ? first : null, `next on ${title}`);
    };
    start.addEventListener("click", () => follow(pagename));
    button.addEventListener("click", () => follow(RECORD.read().route === pagename ? null : pagename));
    document.querySelector(".bd-article h1").after(line);
    for (const table of document.querySelectorAll(".bd-article table"))
      table.addEventListener("click", ({ target }) => {
        if (/** @type {Element} */ (target).closest("a")) follow(pagename);
      });
    show();
    document.addEventListener("tl-record", show);
    return;
  }

  const chosen = ROUTES[RECORD.read().route];
  if (!chosen) return;
  const [title, before, stops] = chosen;
  for (const [id, [href, name]] of stops) {
    const part = document.getElementById(id);
    document.querySelector(`.bd-toc-nav a[href="#${CSS.escape(id)}"]`)?.classList.add("tl-on-route");
    if (part.nextElementSibling?.id && href === `#${part.nextElementSibling.id}`) continue;
    const link = makeElement("a", { href }, name);
    part.append(makeElement("p", { className: "tl-next" }, "Your route goes on with ", link));
  }
  atFoot("left-prev")(before, `before on ${title}`);
  atFoot("right-next")(stops.at(-1)[1], `next on ${title}`);
})();
