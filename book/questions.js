// A question is a row of fold-outs, one per option, whose texts begin with "Right." or "No.". This script marks an
// option as right or wrong when it is opened, and shows below each section how many questions were right at the first
// try. The reader's record keeps the answers.
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
    for (const question of questions) question.key = keyOf(question);
    return questions;
  }

  // A question is identified by its words: after an edit, it counts as a new question.
  function keyOf({ options }) {
    let hash = 0;
    for (const letter of options.map((fold) => fold.querySelector("summary").textContent).join("\n"))
      hash = (31 * hash + letter.codePointAt(0)) >>> 0;
    return hash.toString(36);
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
  function unmark(fold) {
    if (!fold.dataset.answer) return;
    delete fold.dataset.answer;
    fold.open = false;
    const sign = fold.querySelector("summary > .verdict");
    sign.previousSibling.remove(); // the space before it
    sign.remove();
  }

  const { pagename } = DOCUMENTATION_OPTIONS;
  const stored = RECORD.read().answers[pagename] ?? {};
  function recall(question) {
    const answer = stored[question.key];
    if (!answer) return;
    question.first = answer.first;
    for (const at of answer.opened) if (question.options[at]) mark(question.options[at]);
  }
  function save(question, section, at) {
    RECORD.change(({ answers }) => {
      answers[pagename] ??= {};
      const { key, first } = question;
      const { opened } = answers[pagename][key] ?? { opened: [] };
      answers[pagename][key] = { section, first, opened: [...opened, at] };
    });
  }
  function forget(questions) {
    RECORD.change(({ answers }) => {
      for (const { key } of questions) delete answers[pagename]?.[key];
    });
  }

  const sections = Map.groupBy(findQuestions(), ({ options }) => options[0].closest("section"));
  for (const [section, questions] of sections) {
    const score = document.createElement("p");
    score.className = "score";
    score.setAttribute("role", "status");
    const again = Object.assign(document.createElement("button"), {
      type: "button",
      className: "again",
      textContent: "Answer again",
    });
    again.addEventListener("click", () => {
      for (const question of questions) {
        question.first = null;
        question.options.forEach(unmark);
      }
      forget(questions);
      show();
      questions[0].options[0].querySelector("summary").focus();
    });
    const show = () => {
      score.textContent = describe(questions);
      again.hidden = !questions.some(({ first }) => first);
    };
    questions.forEach(recall);
    show();
    questions.at(-1).options.at(-1).after(score, again);
    for (const question of questions) {
      question.options.forEach((fold, at) => {
        // Only a click, by mouse or keyboard, is an answer: fold-outs also open for printing and for searches.
        fold.querySelector("summary").addEventListener("click", () => {
          if (fold.dataset.answer) return;
          mark(fold);
          question.first ??= verdictOf(fold);
          save(question, section.id, at);
          show();
        });
      });
    }
  }
})();
