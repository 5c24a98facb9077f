// A question is a row of fold-outs, one per option, whose texts begin with "Right." or "No.". This script marks an
// option as right or wrong when it is opened, and shows below each section how many questions were right at the first
// try.
(() => {
  const VERDICTS = { "Right.": "right", "No.": "wrong" };
  const WORDS = { right: "✓ Right", wrong: "✗ No" };

  const verdictOf = (fold) => VERDICTS[fold.querySelector(":scope > p > strong:first-child")?.textContent];
  const isOption = (element) => element?.matches("details") && verdictOf(element) !== undefined;

  // Groups adjacent options into questions.
  function findQuestions() {
    const questions = [];
    for (const fold of document.querySelectorAll(".bd-article details")) {
      if (!isOption(fold)) continue;
      if (isOption(fold.previousElementSibling)) questions.at(-1).options.push(fold);
      else questions.push({ options: [fold], first: null });
    }
    return questions;
  }

  function describe(questions) {
    const answered = questions.filter(({ first }) => first);
    const right = answered.filter(({ first }) => first === "right").length;
    const left = questions.length - answered.length;
    const open = `${left} ${left === 1 ? "question" : "questions"}`;
    if (!answered.length) return `${open}. Your first choice counts.`;
    return `${right} of ${answered.length} right at the first try${left ? `, ${open} to go.` : "."}`;
  }

  function mark(fold) {
    const verdict = verdictOf(fold);
    fold.dataset.answer = verdict;
    const sign = Object.assign(document.createElement("span"), { className: "verdict", textContent: WORDS[verdict] });
    fold.querySelector("summary").append(" ", sign);
  }

  const sections = Map.groupBy(findQuestions(), ({ options }) => options[0].closest("section"));
  for (const questions of sections.values()) {
    const score = document.createElement("p");
    score.className = "score";
    score.setAttribute("role", "status");
    score.textContent = describe(questions);
    questions.at(-1).options.at(-1).after(score);
    for (const question of questions) {
      for (const fold of question.options) {
        // Only a click, by mouse or keyboard, is an answer: fold-outs also open for printing and for searches.
        fold.querySelector("summary").addEventListener("click", () => {
          if (fold.dataset.answer) return;
          mark(fold);
          question.first ??= verdictOf(fold);
          score.textContent = describe(questions);
        });
      }
    }
  }
})();
