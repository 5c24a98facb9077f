// The list of a page's sections follows the reader: the current section is marked and scrolled into view within the
// list. In chapters, each entry shows the section's minutes and whether the section has been read, and a line marks the
// end of a sitting. The event "tl-section" notifies other scripts of the current section.
(() => {
  const list = document.querySelector(".bd-toc-nav");
  if (!list) return;
  const sidebar = list.closest(".bd-sidebar-secondary");
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = list.querySelectorAll("a.nav-link");
  const entries = [...links]
    .map((link) => ({ link, id: decodeURIComponent(link.hash.slice(1)) }))
    .map((entry) => ({ ...entry, node: document.getElementById(entry.id) }))
    .filter(({ node }) => node);
  if (!entries.length) return;

  const HEADING_OFFSET = 64; // pixels between the window's top and a heading to which a link has led
  const READING_LINE = 0.15; // distance from such a heading to the reading line, as a share of the window's height
  let current = null;
  let linkTarget = null; // the section to which a link has led: it is current until the reader scrolls

  // On the last screen, the line at which the reader is assumed to read moves to the bottom of the window, so that each
  // of the short sections at the end becomes current at some point.
  function readingLine({ scrollTop, scrollHeight, clientHeight }) {
    const line = HEADING_OFFSET + READING_LINE * clientHeight;
    const remaining = Math.max(0, scrollHeight - clientHeight - scrollTop);
    return remaining >= clientHeight ? line : line + (clientHeight - line) * (1 - remaining / clientHeight);
  }
  function currentEntry() {
    const page = document.documentElement;
    if (linkTarget && Math.abs(linkTarget.scrollTop - page.scrollTop) < 2) return linkTarget.entry;
    linkTarget = null;
    const line = readingLine(page);
    return entries.findLast(({ node }) => node.getBoundingClientRect().top <= line) ?? null;
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
    const outer = sidebar.getBoundingClientRect();
    const isAbove = inner.top < outer.top + MARGIN;
    const isBelow = inner.bottom > outer.bottom - MARGIN;
    if (isAbove || isBelow) sidebar.scrollTop += inner.top - outer.top - outer.height / 3;
  }

  let isScheduled = false;
  function scheduleUpdate() {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      show(currentEntry());
    });
  }
  function followLink() {
    // First the click event comes, then the address changes, and then the browser scrolls.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const entry = entries.find(({ id }) => id === decodeURIComponent(location.hash.slice(1)));
        if (entry) linkTarget = { entry, scrollTop: document.documentElement.scrollTop };
        scheduleUpdate();
      }),
    );
  }
  addEventListener("scroll", scheduleUpdate, { passive: true });
  addEventListener("resize", scheduleUpdate);
  addEventListener("hashchange", followLink);
  list.addEventListener("click", followLink);

  // In a chapter: minutes, sections that have been read, and the ends of sittings.
  const chapter = OUTLINE.chapters.find(({ page }) => page === DOCUMENTATION_OPTIONS.pagename);
  const title = document.querySelector(".bd-sidebar-secondary .onthispage");
  function element(tag, className, text = "") {
    return Object.assign(document.createElement(tag), { className, textContent: text });
  }
  const minutesLeftLabel = element("p", "tl-minutes-left");
  const lengthLabel = ({ minutes, further }) => `${minutes} min${further ? " · further" : ""}`;
  if (chapter) title.after(minutesLeftLabel);
  for (const section of chapter?.sections ?? []) {
    const entry = entries.find(({ id }) => id === section.id);
    if (!entry) continue;
    if (section.counts) entry.link.append(" ", element("span", "tl-minutes", lengthLabel(section)));
    entry.link.classList.toggle("tl-further", !!section.further);
    if (section.stop) entry.link.parentElement.after(element("li", "tl-stop", "A good place to stop"));
  }
  function showReadSections() {
    const record = RECORD.read();
    for (const section of chapter.sections) {
      const entry = entries.find(({ id }) => id === section.id);
      if (!entry) continue;
      const isRead = PROGRESS.isRead(record, chapter, section);
      entry.link.classList.toggle("tl-read", isRead);
      const minutes = entry.link.querySelector(".tl-minutes");
      if (minutes) minutes.textContent = isRead ? "✓ read" : lengthLabel(section);
    }
    const { core, further } = PROGRESS.minutesLeft(record, chapter);
    minutesLeftLabel.textContent = [core ? `${core} min left` : "✓ read", further && `${further} min further`]
      .filter(Boolean)
      .join(" · ");
  }
  if (chapter) {
    showReadSections();
    document.addEventListener("tl-record", showReadSections);
  }
  followLink();
  // Scripts that load after this one must also be notified of the first section.
  addEventListener("load", () => {
    show(currentEntry());
    announce();
  });
})();
