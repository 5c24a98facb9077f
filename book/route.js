// For a reader who follows a route, “next” leads along the route: at the end of each stop that is not directly followed
// by the next stop, in the links at the foot of the page, and with the keys ← and →. The list of sections marks the
// stops.
(() => {
  const { pagename } = DOCUMENTATION_OPTIONS;
  const follow = (route) =>
    RECORD.change((kept) => {
      kept.route = route;
    });

  // On the page of a route, a button begins the route, and so does a link to a stop.
  if (Object.hasOwn(ROUTES, pagename)) {
    const button = makeElement("button", { type: "button" });
    const words = makeElement("span");
    const line = makeElement("p", { className: "tl-route" }, button, " ", words);
    const show = () => {
      const on = RECORD.read().route === pagename;
      button.textContent = on ? "Stop following this route" : "Follow this route";
      words.textContent = on
        ? "“Next” leads along the route."
        : "“Next” then leads along the route, and skips the rest.";
    };
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
    part.append(makeElement("p", { className: "tl-next" }, `Next on ${title}: `, link));
  }
  const foot = { "left-prev": before, "right-next": stops.at(-1)[1] };
  for (const [side, [href, name]] of Object.entries(foot)) {
    /** @type {HTMLAnchorElement} */
    const link = document.querySelector(`.prev-next-area a.${side}`);
    if (!link) continue;
    link.href = href;
    link.title = name;
    link.querySelector(".prev-next-subtitle").textContent = `${side === "left-prev" ? "before" : "next"} on ${title}`;
    link.querySelector(".prev-next-title").textContent = name;
  }
})();
