// The page "Your record": progress, weak places, and the record as a file.
(() => {
  const container = document.getElementById("tl-record");

  const link = (href, text) => makeElement("a", { href, textContent: text });
  const button = (text, onClick) => {
    const node = makeElement("button", { type: "button", textContent: text });
    node.addEventListener("click", onClick);
    return node;
  };

  // Progress, with a row for each chapter.
  const COLUMNS = { read: "sections read", right: "right at first", solved: "practice", correct: "assignment" };
  function meter([done, total]) {
    if (!total) return makeElement("td", { textContent: "–" });
    const bar = makeElement("span", { className: "tl-bar" });
    bar.setAttribute("aria-hidden", "true");
    bar.style.setProperty("--far", String(Math.min(1, done / total)));
    return makeElement("td", {}, `${done} of ${total}`, bar);
  }
  function table(record, practised) {
    const head = ["chapter", ...Object.values(COLUMNS)].map((text) =>
      makeElement("th", { scope: "col", textContent: text }),
    );
    const rows = OUTLINE.chapters.map((chapter) => {
      const progress = PROGRESS.chapterProgress(record, practised, chapter);
      const name = makeElement("th", { scope: "row" }, link(`${chapter.page}.html`, TITLES.chapters[chapter.page]));
      return makeElement("tr", {}, name, ...Object.keys(COLUMNS).map((column) => meter(progress[column])));
    });
    const box = makeElement("div", { className: "pst-scrollable-table-container", tabIndex: 0 });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "How far you are");
    box.append(
      makeElement(
        "table",
        { className: "table" },
        makeElement("thead", {}, makeElement("tr", {}, ...head)),
        makeElement("tbody", {}, ...rows),
      ),
    );
    return box;
  }

  // What is weak.
  const MAX_WEAK = 12;
  function weakList(record, practised) {
    const found = WEAK.find(record, practised);
    if (!found.length) return makeElement("p", { textContent: "Nothing yet. Answer a few questions, and come back." });
    const items = found.slice(0, MAX_WEAK).map(({ title, detail, page, id, query, code }) => {
      const itemLink = link(`${page}.html${query ? `?${query}` : ""}${id ? `#${id}` : ""}`, code ? "" : title);
      if (code) itemLink.append(makeElement("code", { textContent: title }));
      return makeElement("li", {}, itemLink, makeElement("span", { className: "tl-what", textContent: ` ${detail}` }));
    });
    const more = found.length - items.length;
    const list = makeElement("ol", {}, ...items);
    return more > 0 ? makeElement("div", {}, list, makeElement("p", { textContent: `And ${more} more.` })) : list;
  }

  // Sections that were read elsewhere, on paper or in a notebook, can be ticked here.
  function sections(record, chapter) {
    const boxes = PROGRESS.countedSections(chapter).map((section) => {
      const box = makeElement("input", { type: "checkbox", checked: PROGRESS.isRead(record, chapter, section) });
      box.dataset.section = `${chapter.page}#${section.id}`;
      box.addEventListener("change", () =>
        RECORD.change(({ read }) => {
          const others = (read[chapter.page] ?? []).filter((id) => id !== section.id);
          read[chapter.page] = box.checked ? [...others, section.id] : others;
        }),
      );
      return makeElement("li", {}, makeElement("label", {}, box, ` ${PROGRESS.titleOf(chapter, section)}`));
    });
    const fold = makeElement(
      "details",
      {},
      makeElement("summary", { textContent: TITLES.chapters[chapter.page] }),
      makeElement("ul", {}, ...boxes),
    );
    fold.dataset.page = chapter.page;
    return fold;
  }

  // The record as a file.
  const status = makeElement("p", { className: "tl-said" });
  status.setAttribute("role", "status");
  function exportFile() {
    const url = URL.createObjectURL(new Blob([RECORD_FILE.write()], { type: "application/json" }));
    makeElement("a", { href: url, download: "transformer-lab-record.json" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    status.textContent = "The record was saved as transformer-lab-record.json.";
  }
  async function importFile(file) {
    if (!file) return;
    status.textContent = RECORD_FILE.add(await file.text());
  }
  const input = makeElement("input", { type: "file", accept: ".json,application/json" });
  input.addEventListener("change", async () => {
    await importFile(input.files[0]);
    input.value = ""; // the same file can be chosen again
  });
  const field = makeElement("label", { className: "tl-import" }, "Import a file, or drop one on this page: ", input);
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    importFile(event.dataTransfer?.files[0]);
  });

  // Two steps, because deleting cannot be undone.
  const deleteButton = button("Delete the record", () => showConfirmation(true));
  const confirmButton = button("Yes, delete everything", () => {
    RECORD.erase();
    showConfirmation(false);
    status.textContent = "The record is deleted.";
  });
  const keepButton = button("No, keep it", () => showConfirmation(false));
  function showConfirmation(isAsking) {
    deleteButton.hidden = isAsking;
    confirmButton.hidden = keepButton.hidden = !isAsking;
    (isAsking ? keepButton : deleteButton).focus();
  }
  confirmButton.hidden = keepButton.hidden = true;

  const progressBox = makeElement("div", { className: "tl-far-table" });
  const weak = makeElement("div", { className: "tl-weak-list" });
  const ticks = makeElement("div", { className: "tl-ticks" });
  const continueLine = makeElement("p", { className: "tl-start" });
  const storageWarning = RECORD.isStored()
    ? []
    : [
        makeElement("p", {
          textContent: "This browser stores nothing for this page: the record is lost when you leave it.",
        }),
      ];

  function draw() {
    const record = RECORD.read();
    const practised = RECORD.practised();
    const next = PROGRESS.nextSection(record);
    continueLine.hidden = !next;
    continueLine.replaceChildren(
      ...(next ? [link(`${next.page}.html#${next.id}`, `Continue: ${next.name} ${next.rest}`)] : []),
    );
    progressBox.replaceChildren(table(record, practised));
    weak.replaceChildren(weakList(record, practised));
    // A checkbox that was just ticked keeps the focus, and a fold-out stays open.
    if (ticks.childElementCount)
      for (const box of ticks.querySelectorAll("input")) {
        const [page, id] = box.dataset.section.split("#");
        box.checked = record.read[page]?.includes(id) ?? false;
      }
    else ticks.append(...OUTLINE.chapters.map((chapter) => sections(record, chapter)));
  }

  const h2 = (text) => makeElement("h2", { textContent: text });
  const pageSection = (title, ...children) => makeElement("section", {}, h2(title), ...children);
  container.replaceChildren(
    ...storageWarning,
    continueLine,
    pageSection("How far", progressBox),
    pageSection("What to look at again", weak),
    pageSection(
      "Keep it, move it, delete it",
      makeElement(
        "div",
        { className: "tl-row" },
        button("Export as a file", exportFile),
        deleteButton,
        confirmButton,
        keepButton,
      ),
      field,
      status,
    ),
    pageSection(
      "Sections",
      makeElement("p", { textContent: "Tick what you have read elsewhere, and untick what you want to read again." }),
      ticks,
    ),
  );
  draw();
  document.addEventListener("tl-record", draw);
})();
