// Computes the reader's progress in a chapter and in the book, and the section to continue with. Pure functions of the
// record, the practices, and the book's OUTLINE.

// biome-ignore lint/correctness/noUnusedVariables: the scripts of the book use it
const PROGRESS = (() => {
  const counted = ({ sections }) => sections.filter(({ counts }) => counts);
  const isRead = (kept, { page }, { id }) => kept.read[page]?.includes(id) ?? false;
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const topicsOf = (chapter) => OUTLINE.topics.filter((topic) => topic.chapter === parseInt(chapter.page, 10));

  // An answer counts only if its section still exists: the chapter may have been rewritten.
  function answersOf(kept, { page, sections }) {
    const ids = sections.map(({ id }) => id);
    return Object.values(kept.answers[page] ?? {}).filter(({ section }) => ids.includes(section));
  }

  /** The reader's progress in a chapter: pairs of numbers, done and total. */
  function ofChapter(kept, practised, chapter) {
    const answers = answersOf(kept, chapter);
    const { exercises, sections } = chapter;
    const topics = topicsOf(chapter);
    return {
      read: [counted(chapter).filter((section) => isRead(kept, chapter, section)).length, counted(chapter).length],
      right: [answers.filter(({ first }) => first === "right").length, sum(sections.map((each) => each.questions))],
      solved: [sum(topics.map(({ name }) => practised[name]?.solved.length ?? 0)), sum(topics.map((t) => t.cases))],
      correct: [exercises.filter((name) => kept.checks[name]?.correct).length, exercises.length],
    };
  }

  /** The minutes of a chapter's unread sections: core sections, and further sections. */
  function minutesLeft(kept, chapter) {
    const open = counted(chapter).filter((section) => !isRead(kept, chapter, section));
    const of = (further) => sum(open.filter((each) => !!each.further === further).map((each) => each.minutes));
    return { core: of(false), further: of(true) };
  }

  // A chapter is done when its core has been read; further sections are counted separately.
  function ofCore(kept, chapter) {
    const read = (section) => isRead(kept, chapter, section);
    const core = counted(chapter).filter((section) => !section.further);
    const done = core.filter(read).length;
    const more = counted(chapter).filter((section) => section.further && read(section)).length;
    if (!done && !more) return null;
    const words = `${done} of ${core.length} core sections read${more ? `, and ${more} further` : ""}`;
    return { done, all: core.length, words };
  }

  const titleOf = (chapter, section) => TITLES.sections[chapter.page][chapter.sections.indexOf(section)];
  // The label of a section: “3.7” for “3.7 Why project?”; for a section without a number, the chapter's number and the
  // title, as in “3 · Predict first”.
  function nameOf(chapter, section) {
    const title = titleOf(chapter, section);
    const [number] = title.match(/^\d+\.\d+/) ?? [];
    return number
      ? { name: number, rest: title.slice(number.length + 1) }
      : { name: parseInt(chapter.page, 10), rest: title };
  }

  /** The section to continue with: the reader's place or, if that section has been read, the next unread section. */
  function goOn(kept) {
    const chapter = OUTLINE.chapters.find(({ page }) => page === kept.place?.page);
    const section = chapter?.sections.find(({ id }) => id === kept.place.section);
    if (!section) return null;
    const all = OUTLINE.chapters.flatMap((each) => counted(each).map((part) => [each, part]));
    const from = all.findIndex(([, part]) => part === section);
    const open = ([each, part]) => !isRead(kept, each, part);
    const [where, what] = all.slice(Math.max(from, 0)).find(open) ?? all.find(open) ?? [chapter, section];
    return { page: where.page, id: what.id, ...nameOf(where, what) };
  }

  /** @type {() => [page: string, exercises: string[]][]} */
  const assignments = () => [
    ...OUTLINE.chapters.map(({ page, exercises }) => /** @type {any} */ ([`assignments/${page}`, exercises])),
    ["assignments/project", OUTLINE.project],
  ];

  /** The reader's progress on any page, as done, total and words; null if nothing is counted or done. */
  function ofPage(kept, practised, page) {
    const chapter = OUTLINE.chapters.find((each) => each.page === page);
    const [, exercises] = assignments().find(([each]) => each === page) ?? [];
    const count = (done, all, words) => (done ? { done, all, words: `${done} of ${all} ${words}` } : null);
    if (chapter) return ofCore(kept, chapter);
    if (exercises)
      return count(exercises.filter((name) => kept.checks[name]?.correct).length, exercises.length, "correct");
    if (page !== "practice") return null;
    const solved = sum(OUTLINE.topics.map(({ name }) => practised[name]?.solved.length ?? 0));
    return count(solved, sum(OUTLINE.topics.map(({ cases }) => cases)), "solved");
  }

  return { ofChapter, ofPage, minutesLeft, goOn, counted, isRead, titleOf, answersOf, topicsOf, assignments };
})();
