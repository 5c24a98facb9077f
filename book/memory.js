// Stores and shows the reader's progress: sections are counted as read, the place is stored, and the front page, the
// list of pages and the syllabus show the progress.
(() => {
  const { pagename } = DOCUMENTATION_OPTIONS;
  const chapter = OUTLINE.chapters.find(({ page }) => page === pagename);

  // A section counts as read when the reader has spent a tenth of the section's minutes on it and the section's end has
  // been in the window, or when all questions of the section have been answered. Scrolling past a section does not
  // count as reading.
  //
  // The reader's place is in the chapter that was read last: the furthest section on which the reader has spent a tenth
  // of the section's minutes. Looking briefly at another section does not change the place.
  const MIN_SHARE = 0.1;
  const IDLE_LIMIT = 120; // a page counts as being read for so many seconds after an input event
  if (chapter) {
    let section = null;
    let isPlaced = false; // whether savePlace has run since the reader came to this section
    let idleSeconds = 0; // seconds since the last input event
    const seconds = new Map();
    const endedIds = new Set();

    document.addEventListener("tl-section", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      const node = detail && document.getElementById(detail);
      const newSection = chapter.sections.findLast(
        ({ id }) => id === detail || document.getElementById(id)?.contains(node),
      );
      if (newSection === section) return;
      if (section && isAfter(newSection, section)) endedIds.add(section.id);
      section = newSection ?? null;
      isPlaced = false;
    });
    document.addEventListener("tl-answered", (event) => {
      const { detail } = /** @type {CustomEvent} */ (event);
      saveRead(chapter.sections.filter(({ id, counts }) => counts && id === detail).map(({ id }) => id));
    });
    const isAfter = (one, other) => chapter.sections.indexOf(one) > chapter.sections.indexOf(other);
    const isLongEnough = ({ id, minutes, counts }) => counts && seconds.get(id) >= MIN_SHARE * 60 * minutes;
    const isEndVisible = ({ id }) => document.getElementById(id).getBoundingClientRect().bottom <= innerHeight + 2;

    const resetIdle = () => {
      idleSeconds = 0;
    };
    for (const eventName of ["scroll", "pointerdown", "pointermove", "keydown"])
      addEventListener(eventName, resetIdle, { passive: true });

    setInterval(() => {
      idleSeconds += 1;
      if (document.hidden || idleSeconds > IDLE_LIMIT || !section) return;
      seconds.set(section.id, (seconds.get(section.id) ?? 0) + 1);
      if (!isPlaced && isLongEnough(section)) {
        isPlaced = true;
        savePlace(section);
      }
      if (isEndVisible(section)) endedIds.add(section.id);
      const readSections = chapter.sections.filter((each) => endedIds.has(each.id) && isLongEnough(each));
      saveRead(readSections.map(({ id }) => id));
    }, 1000);
  }
  const savedIds = new Set(); // what this page has already stored
  function saveRead(ids) {
    const newIds = ids.filter((id) => !savedIds.has(id));
    if (!newIds.length) return;
    RECORD.change(({ read }) => {
      read[pagename] = [...new Set([...(read[pagename] ?? []), ...newIds])];
    });
    for (const id of newIds) savedIds.add(id);
  }
  function savePlace(section) {
    const { place } = RECORD.read();
    const furthest = chapter.sections.findIndex(({ id }) => place?.page === pagename && place.section === id);
    if (chapter.sections.indexOf(section) < furthest) return;
    RECORD.change((record) => {
      record.place = { page: pagename, section: section.id, when: new Date().toISOString() };
    });
  }

  // Shows progress as a small ring beside each link to a page, in the list of pages, on the front page and in its
  // syllabus.
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  function pageOf(link) {
    const address = new URL(link.href);
    const isInside = address.pathname.startsWith(root.pathname) && address.origin === root.origin;
    if (!isInside || (address.hash && address.pathname !== location.pathname)) return null;
    return address.pathname.slice(root.pathname.length).replace(/\.html$/, "");
  }
  const LINKS = ".bd-links li > a.reference, .tl-cards a.reference, .tl-front td a.reference";
  /** @type {[HTMLAnchorElement, string][]} */
  const links = [...document.querySelectorAll(LINKS)].map((link) => [
    /** @type {HTMLAnchorElement} */ (link),
    pageOf(link),
  ]);
  function showProgress() {
    const record = RECORD.read();
    const practised = RECORD.practised();
    for (const [link, page] of links) {
      const progress = page && PROGRESS.pageProgress(record, practised, page);
      const oldRing = link.querySelector(".tl-progress");
      if (!progress) {
        oldRing?.remove();
        continue;
      }
      const ring = oldRing ?? link.appendChild(document.createElement("span"));
      ring.className = progress.done >= progress.total ? "tl-progress done" : "tl-progress";
      ring.setAttribute("role", "img");
      ring.setAttribute("aria-label", progress.label);
      /** @type {HTMLElement} */ (ring).title = progress.label;
      /** @type {HTMLElement} */ (ring).style.setProperty(
        "--progress",
        String(Math.min(1, progress.done / progress.total)),
      );
    }
    showPlace(record);
  }

  // The front page's button leads a returning reader to the stored place.
  /** @type {HTMLAnchorElement} */
  const startLink = document.querySelector(".tl-front .tl-start a:last-child");
  const original = startLink && { href: startLink.getAttribute("href"), text: startLink.textContent };
  function showPlace(record) {
    const place = startLink && PROGRESS.nextSection(record);
    if (!startLink || (!place && startLink.textContent === original.text)) return;
    startLink.href = place ? `${place.page}.html#${place.id}` : original.href;
    startLink.textContent = place ? `Continue: ${place.name}` : original.text;
    if (!place) return;
    const restNode = Object.assign(document.createElement("span"), {
      className: "tl-rest",
      textContent: ` ${place.rest}`,
    });
    startLink.append(restNode);
  }

  // The theme restores the scroll position of the list of pages, but the current page must be visible.
  addEventListener("load", () => {
    const box = document.querySelector(".bd-sidebar-primary");
    const current = box?.querySelector(".bd-links li.current > a");
    if (!current) return;
    const inner = current.getBoundingClientRect();
    const outer = box.getBoundingClientRect();
    const HEADER_HEIGHT = 140; // pixels: the book's name and the search stay above the list
    if (inner.top < outer.top + HEADER_HEIGHT || inner.bottom > outer.bottom)
      box.scrollTop += inner.top - outer.top - outer.height / 3;
  });

  showProgress();
  document.addEventListener("tl-record", showProgress);
})();
