// Weak places, weakest first: sections in which a first answer was wrong, practice topics with mistakes, and exercises
// that have been checked but do not pass yet.

// biome-ignore lint/correctness/noUnusedVariables: the page of the record uses it
const WEAK = (() => {
  const { answersOf, assignments, titleOf, topicsOf } = PROGRESS;
  const plural = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  function sectionEntries(record, chapter) {
    const answers = answersOf(record, chapter);
    return chapter.sections.map((section) => {
      const sectionAnswers = answers.filter((answer) => answer.section === section.id);
      const weight = sectionAnswers.filter(({ first }) => first === "wrong").length;
      const ownTitle = titleOf(chapter, section);
      const title = /^\d/.test(ownTitle) ? ownTitle : `${TITLES.chapters[chapter.page]}: ${ownTitle}`;
      const detail = `${weight} of ${plural(sectionAnswers.length, "question")} wrong at the first try`;
      return { weight, title, detail, page: chapter.page, id: section.id };
    });
  }
  const topicEntries = (practised, chapter) =>
    topicsOf(chapter).map(({ name }) => {
      const weight = sum(Object.values(practised[name]?.missed ?? {}));
      const query = `practice.choice=${name}&practice.topic=${name}`;
      return {
        weight,
        title: TITLES.topics[name],
        detail: `practice: ${plural(weight, "mistake")}`,
        page: "practice",
        query,
      };
    });
  const exerciseEntries = (record, [page, exercises]) =>
    exercises.map((name) => {
      const { checks = 0, correct } = record.checks[name] ?? {};
      const detail = `exercise: checked ${checks === 1 ? "once" : `${checks} times`}, not correct yet`;
      return { weight: correct ? 0 : checks, title: name, detail, page, code: true };
    });

  function find(record, practised) {
    const entries = [
      ...OUTLINE.chapters.flatMap((chapter) => [
        ...sectionEntries(record, chapter),
        ...topicEntries(practised, chapter),
      ]),
      ...assignments().flatMap((assignment) => exerciseEntries(record, assignment)),
    ];
    return entries.filter(({ weight }) => weight).sort((a, b) => b.weight - a.weight);
  }

  return { find };
})();
