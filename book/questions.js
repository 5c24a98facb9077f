// A question is a row of fold-outs, one per option, whose texts begin with "Right." or "No.". This script displays the
// fold-outs as choices, each with its letter in a disc. The first choice that is opened is the answer; then the other
// choices can also be opened. Below each section, a line counts the questions that were answered right at the first
// try. The end of the page shows the total, and has links to the sections to look at again. The reader's record stores
// the answers. The event "tl-answered" notifies other scripts of a section whose questions have all been answered.
(() => {
  const VERDICTS = { "Right.": "right", "No.": "wrong" };
  const VERDICT_TEXTS = { right: "✓ Right", wrong: "✗ No" };

  const verdictOf = (fold) => VERDICTS[fold.querySelector(":scope > p > strong:first-child")?.textContent];
  const isOption = (element) => element?.matches("details") && verdictOf(element) !== undefined;

  // Groups adjacent options into questions.
  function findQuestions() {
    const questions = [];
    for (const fold of document.querySelectorAll(".bd-article details")) {
      if (!isOption(fold)) continue;
      if (isOption(fold.previousElementSibling)) questions.at(-1).options.push(fold);
      else questions.push({ options: [fold], first: null, opened: [] });
    }
    for (const question of questions) question.key = keyOf(question);
    return questions;
  }

  // Puts the letter of “A. Eight” into a disc, without changing the text.
  function drawLetter(fold) {
    const text = fold.querySelector("summary").firstChild;
    const [prefix, letter] = text.textContent.match(/^\s*([A-Z])\.\s/) ?? [];
    if (!letter) return;
    text.textContent = text.textContent.slice(prefix.length);
    const dot = makeElement("span", { className: "tl-dot", textContent: ". " });
    text.before(makeElement("span", { className: "tl-letter", textContent: letter }, dot));
    fold.dataset.option = letter;
  }

  // A question is identified by the words of its options, so that a question with edited options counts as a new one.
  function keyOf({ options }) {
    let hash = 0;
    for (const letter of options.map((fold) => fold.querySelector("summary").textContent).join("\n"))
      hash = (31 * hash + letter.codePointAt(0)) >>> 0;
    return hash.toString(36);
  }

  function describe(questions) {
    const answered = questions.filter(({ first }) => first);
    const right = answered.filter(({ first }) => first === "right").length;
    const nLeft = questions.length - answered.length;
    const openText = `${nLeft} ${nLeft === 1 ? "question" : "questions"}`;
    if (!answered.length) return `${openText}. Your first choice counts.`;
    return `${right} of ${answered.length} right at the first try${nLeft ? `, ${openText} to go.` : "."}`;
  }

  // Shows which option was chosen, which options were opened later, and that the other options can be opened.
  function draw({ options, opened }) {
    for (const [index, fold] of options.entries()) {
      const verdict = opened.includes(index) ? verdictOf(fold) : null;
      const sign = verdict
        ? makeElement("span", { className: "verdict", textContent: VERDICT_TEXTS[verdict] })
        : makeElement("span", { className: "tl-why-label", textContent: "Why?" });
      const summary = fold.querySelector("summary");
      for (const old of summary.querySelectorAll(".verdict, .tl-why-label")) {
        old.previousSibling.remove(); // the space before it
        old.remove();
      }
      if (opened.length) summary.append(" ", sign);
      fold.toggleAttribute("data-chosen", opened[0] === index);
      if (verdict) fold.dataset.answer = verdict;
      else delete fold.dataset.answer;
    }
  }

  const { pagename } = DOCUMENTATION_OPTIONS;
  const storedAnswers = RECORD.read().answers[pagename] ?? {};
  function recall(question) {
    const answer = storedAnswers[question.key];
    if (!answer) return;
    question.first = answer.first;
    question.opened = answer.opened.filter((index) => question.options[index]);
  }
  function save({ key, first, opened }, section) {
    RECORD.change(({ answers }) => {
      answers[pagename] ??= {};
      answers[pagename][key] = { section, first, opened: [...opened] };
    });
  }
  const announceAnswered = (detail) => document.dispatchEvent(new CustomEvent("tl-answered", { detail }));
  function forget(questions) {
    RECORD.change(({ answers }) => {
      for (const { key } of questions) delete answers[pagename]?.[key];
    });
  }

  // The total, and the questions answered wrongly, each with links to the sections that its explanations name.
  const allQuestions = findQuestions();
  const questionsBySection = Map.groupBy(allQuestions, ({ options }) => options[0].closest("section"));
  const total = makeElement("div", { className: "tl-chapter-total" });
  const link = (textContent, href) => makeElement("a", { textContent, href });
  function missedItem(question) {
    const section = question.options[0].closest("section");
    const title = section.querySelector("h2, h3").firstChild.textContent.trim();
    const name = `${title}, question ${questionsBySection.get(section).indexOf(question) + 1}`;
    const sectionLinks = question.options.flatMap((fold) => [...fold.querySelectorAll("a.internal")]);
    const numbered = sectionLinks.map((a) => [a.textContent.match(/\d+\.\d+/)?.[0], a.getAttribute("href")]);
    const addresses = new Map(numbered.filter(([number]) => number));
    const links = [...addresses].flatMap(([number, href]) => [" · ", link(`section ${number}`, href)]);
    return makeElement("li", {}, link(name, `#${question.id}`), ...links);
  }
  function showTotal() {
    total.hidden = !allQuestions.some(({ first }) => first);
    const missed = allQuestions.filter(({ first }) => first === "wrong");
    const list = [
      makeElement("p", { textContent: "Look again at:" }),
      makeElement("ul", {}, ...missed.map((question) => missedItem(question))),
    ];
    const totalText = makeElement(
      "p",
      {},
      makeElement("b", { textContent: "The whole page: " }),
      describe(allQuestions),
    );
    total.replaceChildren(totalText, ...(missed.length ? list : []));
  }

  // The keys 1 to 3, or A to C, choose an option while the focus is in its question.
  const optionIndex = ({ key }) => (/^[1-9]$/.test(key) ? key - 1 : "abcdefghi".indexOf(key.toLowerCase()));
  function chooseByKey(event, { options }) {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const summary = key.length === 1 && options[optionIndex(event)]?.querySelector("summary");
    if (!summary || altKey || ctrlKey || metaKey || target.closest("input, textarea, select, .tl-lab")) return;
    if (!RECORD.read().keys) return;
    event.preventDefault();
    summary.focus();
    if (!summary.parentElement.open) summary.click();
  }

  for (const [section, questions] of questionsBySection) {
    const score = makeElement("p", { className: "score" });
    score.setAttribute("role", "status");
    const againButton = makeElement("button", { type: "button", className: "again", textContent: "Answer again" });
    againButton.addEventListener("click", () => {
      for (const question of questions) {
        Object.assign(question, { first: null, opened: [] });
        for (const fold of question.options) fold.open = false;
      }
      forget(questions);
      show();
      questions[0].options[0].querySelector("summary").focus();
    });
    const show = () => {
      questions.forEach(draw);
      score.textContent = describe(questions);
      againButton.hidden = !questions.some(({ first }) => first);
      showTotal();
    };
    for (const [i, question] of questions.entries()) {
      question.options.forEach(drawLetter);
      recall(question);
      question.id = `${section.id}-question-${i + 1}`;
      const [{ previousElementSibling: text }] = question.options;
      if (text && !text.id) text.id = question.id;
      text?.addEventListener("keydown", (event) => chooseByKey(event, question)); // from a link in the question
      question.options.forEach((fold, index) => {
        // Only a click, by mouse or keyboard, is an answer: fold-outs also open for printing and for searches.
        fold.querySelector("summary").addEventListener("click", () => {
          if (question.opened.includes(index)) return;
          question.opened.push(index);
          question.first ??= verdictOf(fold);
          save(question, section.id);
          show();
          if (questions.every(({ first }) => first)) announceAnswered(section.id);
        });
        fold.addEventListener("keydown", (event) => chooseByKey(event, question));
      });
    }
    questions.at(-1).options.at(-1).after(score, againButton);
    if (questions.at(-1) === allQuestions.at(-1)) againButton.after(total);
    show();
  }
})();
