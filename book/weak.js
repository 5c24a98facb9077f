// Weak places, weakest first: sections with wrong first answers, practices, and exercises that do not pass yet.

// biome-ignore lint/correctness/noUnusedVariables: the page of the record uses it
const WEAK = (() => {
  const { answersOf, assignments, titleOf, topicsOf } = PROGRESS;
  const plural = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  function ofSections(kept, chapter) {
    const answers = answersOf(kept, chapter);
    return chapter.sections.map((section) => {
      const here = answers.filter((answer) => answer.section === section.id);
      const weight = here.filter(({ first }) => first === "wrong").length;
      const own = titleOf(chapter, section);
      const title = /^\d/.test(own) ? own : `${TITLES.chapters[chapter.page]}: ${own}`;
      const what = `${weight} of ${plural(here.length, "question")} wrong at the first try`;
      return { weight, title, what, page: chapter.page, id: section.id };
    });
  }
  const ofTopics = (practised, chapter) =>
    topicsOf(chapter).map(({ name }) => {
      const weight = sum(Object.values(practised[name]?.missed ?? {}));
      const query = `practice.choice=${name}&practice.topic=${name}`;
      return {
        weight,
        title: TITLES.topics[name],
        what: `practice: ${plural(weight, "mistake")}`,
        page: "practice",
        query,
      };
    });
  const ofExercises = (kept, [page, exercises]) =>
    exercises.map((name) => {
      const { checks = 0, correct } = kept.checks[name] ?? {};
      const what = `exercise: checked ${checks === 1 ? "once" : `${checks} times`}, not correct yet`;
      return { weight: correct ? 0 : checks, title: name, what, page, code: true };
    });

  function find(kept, practised) {
    const found = [
      ...OUTLINE.chapters.flatMap((chapter) => [...ofSections(kept, chapter), ...ofTopics(practised, chapter)]),
      ...assignments().flatMap((assignment) => ofExercises(kept, assignment)),
    ];
    return found.filter(({ weight }) => weight).sort((a, b) => b.weight - a.weight);
  }

  return { find };
})();
