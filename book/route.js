// Guides a reader along the route that the reader has chosen. If sections that are not on the route come between a stop
// and the next stop, the stop ends with a link to the next stop. The links at the foot of the page also lead along the
// route, and so do the keys ← and →, which open these links. The list of sections marks the stops.
(() => {
  const { pagename } = DOCUMENTATION_OPTIONS;
  const followRoute = (route) =>
    RECORD.change((record) => {
      record.route = route;
    });

  // Returns a function that sets the target of a link at the foot of the page: a stop or, without a stop, the original
  // page.
  function footLink(side) {
    /** @type {HTMLAnchorElement} */
    const link = document.querySelector(`.prev-next-area a.${side}`);
    if (!link) return () => {};
    const subtitle = link.querySelector(".prev-next-subtitle");
    const title = link.querySelector(".prev-next-title");
    const original = [link.getAttribute("href"), link.title, subtitle.textContent, title.textContent];
    return (stop, label) => {
      const [href, name] = stop ?? [];
      [link.href, link.title, subtitle.textContent, title.textContent] = stop ? [href, name, label, name] : original;
    };
  }

  // On the page of a route, a reader begins the route with a button or with a link to a stop. The “next” link at the
  // foot of this page then leads to the first stop.
  if (Object.hasOwn(ROUTES, pagename)) {
    const [title, , [[, firstStop]]] = ROUTES[pagename];
    const button = makeElement("button", { type: "button" });
    const explanation = makeElement("span");
    const startLink = makeElement("a", { href: firstStop[0], textContent: `Start: ${firstStop[1]}` });
    const paragraph = makeElement("p", { className: "tl-route" }, button, " ", explanation, " ", startLink);
    const setNext = footLink("right-next");
    const show = () => {
      const isFollowed = RECORD.read().route === pagename;
      button.textContent = isFollowed ? "Stop following this route" : "Follow this route";
      explanation.textContent = isFollowed
        ? "“Next” leads along the route."
        : "“Next” then leads along the route, and skips other sections.";
      setNext(isFollowed ? firstStop : null, `next on ${title}`);
    };
    startLink.addEventListener("click", () => followRoute(pagename));
    button.addEventListener("click", () => followRoute(RECORD.read().route === pagename ? null : pagename));
    document.querySelector(".bd-article h1").after(paragraph);
    for (const table of document.querySelectorAll(".bd-article table"))
      table.addEventListener("click", ({ target }) => {
        if (/** @type {Element} */ (target).closest("a")) followRoute(pagename);
      });
    show();
    document.addEventListener("tl-record", show);
    return;
  }

  const chosenRoute = ROUTES[RECORD.read().route];
  if (!chosenRoute) return;
  const [title, previousStop, stops] = chosenRoute;
  for (const [id, [href, name]] of stops) {
    const section = document.getElementById(id);
    document.querySelector(`.bd-toc-nav a[href="#${CSS.escape(id)}"]`)?.classList.add("tl-on-route");
    if (section.nextElementSibling?.id && href === `#${section.nextElementSibling.id}`) continue;
    const link = makeElement("a", { href }, name);
    section.append(makeElement("p", { className: "tl-next" }, "Your route continues with ", link));
  }
  footLink("left-prev")(previousStop, `previous on ${title}`);
  footLink("right-next")(stops.at(-1)[1], `next on ${title}`);
})();
