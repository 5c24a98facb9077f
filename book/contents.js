// The list of a page's sections follows the reader: the current section is marked and scrolled into view within the
// list. In chapters, each entry shows the section's minutes and whether the section has been read, and a line marks the
// end of a sitting. The event "tl-section" notifies other scripts of the current section.
(() => {
  const list = document.querySelector(".bd-toc-nav");
  if (!list) return;
  const box = list.closest(".bd-sidebar-secondary");
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = list.querySelectorAll("a.nav-link");
  const entries = [...links]
    .map((link) => ({ link, id: decodeURIComponent(link.hash.slice(1)) }))
    .map((entry) => ({ ...entry, part: document.getElementById(entry.id) }))
    .filter(({ part }) => part);
  if (!entries.length) return;

  const HEADING = 64; // pixels from the window's top to the heading after a link was followed
  const LINE = 0.15; // share of the window's height below that: where the reader reads
  let current = null;
  let landed = null; // the target of a link: its section is current until the reader scrolls

  // On the last screen, the line at which the reader is assumed to read moves to the bottom of the window, so that each
  // of the short sections at the end becomes current once.
  function lineOf({ scrollTop, scrollHeight, clientHeight }) {
    const line = HEADING + LINE * clientHeight;
    const left = Math.max(0, scrollHeight - clientHeight - scrollTop);
    return left >= clientHeight ? line : line + (clientHeight - line) * (1 - left / clientHeight);
  }
  function find() {
    const page = document.documentElement;
    if (landed && Math.abs(landed.at - page.scrollTop) < 2) return landed.entry;
    landed = null;
    const line = lineOf(page);
    return entries.findLast(({ part }) => part.getBoundingClientRect().top <= line) ?? null;
  }

  function show(entry) {
    if (entry === current) return;
    for (const each of [current, entry]) {
      each?.link.classList.toggle("active", each === entry);
      each?.link.parentElement.classList.toggle("active", each === entry);
    }
    current?.link.removeAttribute("aria-current");
    entry?.link.setAttribute("aria-current", "location");
    current = entry;
    if (entry) keepInSight(entry.link);
    announce();
  }
  const announce = () => document.dispatchEvent(new CustomEvent("tl-section", { detail: current?.id ?? null }));
  const MARGIN = 60;
  function keepInSight(link) {
    const inner = link.getBoundingClientRect();
    const outer = box.getBoundingClientRect();
    const above = inner.top < outer.top + MARGIN;
    const below = inner.bottom > outer.bottom - MARGIN;
    if (above || below) box.scrollTop += inner.top - outer.top - outer.height / 3;
  }

  let isScheduled = false;
  function follow() {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      show(find());
    });
  }
  function land() {
    // The click event comes before the address changes, and the browser scrolls after both.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const entry = entries.find(({ id }) => id === decodeURIComponent(location.hash.slice(1)));
        if (entry) landed = { entry, at: document.documentElement.scrollTop };
        follow();
      }),
    );
  }
  addEventListener("scroll", follow, { passive: true });
  addEventListener("resize", follow);
  addEventListener("hashchange", land);
  list.addEventListener("click", land);

  // In a chapter: minutes, sections that have been read, and the ends of sittings.
  const chapter = OUTLINE.chapters.find(({ page }) => page === DOCUMENTATION_OPTIONS.pagename);
  const title = document.querySelector(".bd-sidebar-secondary .onthispage");
  function element(tag, className, text = "") {
    return Object.assign(document.createElement(tag), { className, textContent: text });
  }
  const left = element("p", "tl-left");
  const lengthOf = ({ minutes, further }) => `${minutes} min${further ? " · further" : ""}`;
  if (chapter) title.after(left);
  for (const section of chapter?.sections ?? []) {
    const entry = entries.find(({ id }) => id === section.id);
    if (!entry) continue;
    if (section.counts) entry.link.append(" ", element("span", "tl-minutes", lengthOf(section)));
    entry.link.classList.toggle("tl-further", !!section.further);
    if (section.stop) entry.link.parentElement.after(element("li", "tl-stop", "A good place to stop"));
  }
  function showRead() {
    const record = RECORD.read();
    for (const section of chapter.sections) {
      const entry = entries.find(({ id }) => id === section.id);
      if (!entry) continue;
      const read = PROGRESS.isRead(record, chapter, section);
      entry.link.classList.toggle("tl-read", read);
      const minutes = entry.link.querySelector(".tl-minutes");
      if (minutes) minutes.textContent = read ? "✓ read" : lengthOf(section);
    }
    const { core, further } = PROGRESS.minutesLeft(record, chapter);
    left.textContent = [core ? `${core} min left` : "✓ read", further && `${further} min further`]
      .filter(Boolean)
      .join(" · ");
  }
  if (chapter) {
    showRead();
    document.addEventListener("tl-record", showRead);
  }
  land();
  // Scripts that load after this one must also be notified of the first section.
  addEventListener("load", () => {
    show(find());
    announce();
  });
})();
