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
  const COLUMNS = {
    read: "sections read",
    rightAtFirst: "right at the first try",
    solved: "practice",
    assignments: "assignment",
  };
  function progressCell([done, total]) {
    if (!total) return makeElement("td", { textContent: "–" });
    const bar = makeElement("span", { className: "tl-bar" });
    bar.setAttribute("aria-hidden", "true");
    bar.style.setProperty("--progress", String(Math.min(1, done / total)));
    return makeElement("td", {}, `${done} of ${total}`, bar);
  }
  function progressTable(record, practised) {
    const head = ["chapter", ...Object.values(COLUMNS)].map((text) =>
      makeElement("th", { scope: "col", textContent: text }),
    );
    const rows = OUTLINE.chapters.map((chapter) => {
      const progress = PROGRESS.chapterProgress(record, practised, chapter);
      const name = makeElement("th", { scope: "row" }, link(`${chapter.page}.html`, TITLES.chapters[chapter.page]));
      return makeElement("tr", {}, name, ...Object.keys(COLUMNS).map((column) => progressCell(progress[column])));
    });
    const scrollBox = makeElement("div", { className: "pst-scrollable-table-container", tabIndex: 0 });
    scrollBox.setAttribute("role", "region");
    scrollBox.setAttribute("aria-label", "Your progress");
    scrollBox.append(
      makeElement(
        "table",
        { className: "table" },
        makeElement("thead", {}, makeElement("tr", {}, ...head)),
        makeElement("tbody", {}, ...rows),
      ),
    );
    return scrollBox;
  }

  // What is weak.
  const MAX_WEAK = 12;
  function weakList(record, practised) {
    const weakPlaces = WEAK.find(record, practised);
    if (!weakPlaces.length)
      return makeElement("p", { textContent: "Nothing yet. Answer a few questions, and come back." });
    const items = weakPlaces.slice(0, MAX_WEAK).map(({ title, detail, page, id, query, code }) => {
      const itemLink = link(`${page}.html${query ? `?${query}` : ""}${id ? `#${id}` : ""}`, code ? "" : title);
      if (code) itemLink.append(makeElement("code", { textContent: title }));
      return makeElement(
        "li",
        {},
        itemLink,
        makeElement("span", { className: "tl-weak-detail", textContent: ` ${detail}` }),
      );
    });
    const nMore = weakPlaces.length - items.length;
    const list = makeElement("ol", {}, ...items);
    return nMore > 0 ? makeElement("div", {}, list, makeElement("p", { textContent: `And ${nMore} more.` })) : list;
  }

  // Sections that were read elsewhere, on paper or in a notebook, can be ticked here.
  function sectionChecklist(record, chapter) {
    const items = PROGRESS.countedSections(chapter).map((section) => {
      const checkbox = makeElement("input", { type: "checkbox", checked: PROGRESS.isRead(record, chapter, section) });
      checkbox.dataset.section = `${chapter.page}#${section.id}`;
      checkbox.addEventListener("change", () =>
        RECORD.change(({ read }) => {
          const others = (read[chapter.page] ?? []).filter((id) => id !== section.id);
          read[chapter.page] = checkbox.checked ? [...others, section.id] : others;
        }),
      );
      return makeElement("li", {}, makeElement("label", {}, checkbox, ` ${PROGRESS.titleOf(chapter, section)}`));
    });
    const details = makeElement(
      "details",
      {},
      makeElement("summary", { textContent: TITLES.chapters[chapter.page] }),
      makeElement("ul", {}, ...items),
    );
    details.dataset.page = chapter.page;
    return details;
  }

  // The record as a file.
  const status = makeElement("p", { className: "tl-record-status" });
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
  const importField = makeElement(
    "label",
    { className: "tl-import" },
    "Import a file, or drop one on this page: ",
    input,
  );
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    importFile(event.dataTransfer?.files[0]);
  });

  // Deleting takes two steps, because it cannot be undone.
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

  const progressBox = makeElement("div", { className: "tl-progress-table" });
  const weakBox = makeElement("div", { className: "tl-weak-list" });
  const checklists = makeElement("div", { className: "tl-checklists" });
  const continueLine = makeElement("p", { className: "tl-start" });
  const storageWarning = RECORD.isStored()
    ? []
    : [
        makeElement("p", {
          textContent: "This browser stores nothing for this page: the record is lost when you leave the page.",
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
    progressBox.replaceChildren(progressTable(record, practised));
    weakBox.replaceChildren(weakList(record, practised));
    // A checkbox that was just ticked keeps the focus, and a fold-out stays open.
    if (checklists.childElementCount)
      for (const checkbox of checklists.querySelectorAll("input")) {
        const [page, id] = checkbox.dataset.section.split("#");
        checkbox.checked = record.read[page]?.includes(id) ?? false;
      }
    else checklists.append(...OUTLINE.chapters.map((chapter) => sectionChecklist(record, chapter)));
  }

  const h2 = (text) => makeElement("h2", { textContent: text });
  const pageSection = (title, ...children) => makeElement("section", {}, h2(title), ...children);
  container.replaceChildren(
    ...storageWarning,
    continueLine,
    pageSection("Your progress", progressBox),
    pageSection("What to look at again", weakBox),
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
      importField,
      status,
    ),
    pageSection(
      "Sections",
      makeElement("p", { textContent: "Tick what you have read elsewhere, and untick what you want to read again." }),
      checklists,
    ),
  );
  draw();
  document.addEventListener("tl-record", draw);
})();
