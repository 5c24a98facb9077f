// Computes the reader's progress in a chapter and in the book, and the section to continue with. These functions are
// pure: their results depend only on the record, the practices, and the book's OUTLINE.

// biome-ignore lint/correctness/noUnusedVariables: the scripts of the book use it
const PROGRESS = (() => {
  const countedSections = ({ sections }) => sections.filter(({ counts }) => counts);
  const isRead = (record, { page }, { id }) => record.read[page]?.includes(id) ?? false;
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const topicsOf = (chapter) => OUTLINE.topics.filter((topic) => topic.chapter === parseInt(chapter.page, 10));

  // An answer counts only if its section still exists: the chapter may have been rewritten.
  function answersOf(record, { page, sections }) {
    const ids = sections.map(({ id }) => id);
    return Object.values(record.answers[page] ?? {}).filter(({ section }) => ids.includes(section));
  }

  /** The reader's progress in a chapter: pairs of numbers, done and total. */
  function chapterProgress(record, practised, chapter) {
    const answers = answersOf(record, chapter);
    const { exercises, sections } = chapter;
    const topics = topicsOf(chapter);
    return {
      read: [
        countedSections(chapter).filter((section) => isRead(record, chapter, section)).length,
        countedSections(chapter).length,
      ],
      rightAtFirst: [
        answers.filter(({ first }) => first === "right").length,
        sum(sections.map((each) => each.questions)),
      ],
      solved: [sum(topics.map(({ name }) => practised[name]?.solved.length ?? 0)), sum(topics.map((t) => t.cases))],
      assignments: [exercises.filter((name) => record.checks[name]?.correct).length, exercises.length],
    };
  }

  /** The minutes that a chapter's unread sections take: one number for core sections, one for further sections. */
  function minutesLeft(record, chapter) {
    const unread = countedSections(chapter).filter((section) => !isRead(record, chapter, section));
    const total = (further) => sum(unread.filter((each) => !!each.further === further).map((each) => each.minutes));
    return { core: total(false), further: total(true) };
  }

  // A chapter is done when its core has been read; further sections are counted separately.
  function coreProgress(record, chapter) {
    const isSectionRead = (section) => isRead(record, chapter, section);
    const core = countedSections(chapter).filter((section) => !section.further);
    const done = core.filter(isSectionRead).length;
    const nFurther = countedSections(chapter).filter((section) => section.further && isSectionRead(section)).length;
    if (!done && !nFurther) return null;
    const label = `${done} of ${core.length} core sections read${nFurther ? `, and ${nFurther} further` : ""}`;
    return { done, total: core.length, label };
  }

  const titleOf = (chapter, section) => TITLES.sections[chapter.page][chapter.sections.indexOf(section)];
  // The label of a section in two parts: its number and its words, such as “3.7” and “Why project?”. A section without
  // a number gets the number of its chapter: “3” and “Predict first”.
  function nameOf(chapter, section) {
    const title = titleOf(chapter, section);
    const [number] = title.match(/^\d+\.\d+/) ?? [];
    return number
      ? { name: number, rest: title.slice(number.length + 1) }
      : { name: parseInt(chapter.page, 10), rest: title };
  }

  /** The section to continue with: the reader's place or, if that section has been read, the next unread section. */
  function nextSection(record) {
    const chapter = OUTLINE.chapters.find(({ page }) => page === record.place?.page);
    const section = chapter?.sections.find(({ id }) => id === record.place.section);
    if (!section) return null;
    const entries = OUTLINE.chapters.flatMap((each) => countedSections(each).map((part) => [each, part]));
    const from = entries.findIndex(([, part]) => part === section);
    const isUnread = ([each, part]) => !isRead(record, each, part);
    const [nextChapter, next] = entries.slice(Math.max(from, 0)).find(isUnread) ??
      entries.find(isUnread) ?? [chapter, section];
    return { page: nextChapter.page, id: next.id, ...nameOf(nextChapter, next) };
  }

  /** @type {() => [page: string, exercises: string[]][]} */
  const assignments = () => [
    ...OUTLINE.chapters.map(({ page, exercises }) => /** @type {any} */ ([`assignments/${page}`, exercises])),
    ["assignments/project", OUTLINE.project],
  ];

  /** The reader's progress on any page, as done, total and label; null if nothing is counted or done. */
  function pageProgress(record, practised, page) {
    const chapter = OUTLINE.chapters.find((each) => each.page === page);
    const [, exercises] = assignments().find(([each]) => each === page) ?? [];
    const count = (done, total, suffix) => (done ? { done, total, label: `${done} of ${total} ${suffix}` } : null);
    if (chapter) return coreProgress(record, chapter);
    if (exercises)
      return count(exercises.filter((name) => record.checks[name]?.correct).length, exercises.length, "correct");
    if (page !== "practice") return null;
    const solved = sum(OUTLINE.topics.map(({ name }) => practised[name]?.solved.length ?? 0));
    return count(solved, sum(OUTLINE.topics.map(({ cases }) => cases)), "solved");
  }

  return {
    chapterProgress,
    pageProgress,
    minutesLeft,
    nextSection,
    countedSections,
    isRead,
    titleOf,
    answersOf,
    topicsOf,
    assignments,
  };
})();
