// Practice: a lab that asks questions, and recognizes the mistake behind a wrong answer.

import { integerCodec, optionCodec, textCodec, traitsInUrl } from "./address.js";
import { frame } from "./frame.js";
import { capitalize, ERROR, formatAnswer, matches, numberWord, parseAnswer, remarkOn } from "./practice_answers.js";
import { INPUTS } from "./practice_inputs.js";
import { forgetAll, isDue, nextCase, recordMissed, recordOf, recordSolved } from "./practice_record.js";
import { choicesOf, practiceRing, START, startPanel } from "./practice_start.js";
import { button, commit, element, getTraits, group, observe, reservedBox, reserveSpace, set, setText } from "./ui.js";

/** @typedef {import("./ui.js").Model} Model */

const TRAITS = ["choice", "topic", "case", "answer", "state"];
const INSTRUCTIONS = {
  number: "Type the number and press Enter.",
  numbers: "Type the numbers and press Enter.",
  table: "Fill in the table and press Enter.",
  mask: "Paint the cells that may be seen, then check.",
  choice: "Choose an answer, then check.",
  order: "Move the steps into order, then check.",
};
const END_OF_SET = "You have answered three questions. Continue with more, or return to your chapter.";
const REPEAT_NOTE = "You missed a question like this one. Here it is with different numbers.";

// Renders text between backticks as code.
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
function writeWithCode(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...withCode(text));
}

// Returns the known mistakes that lead to an answer: one, two, or none.
function mistakesIn(given, problem, table) {
  const match = problem.wrong.find(([answer]) => matches(given, answer, table));
  return match ? match[1].map((i) => table.mistakes[i]) : [];
}
function mistakesText(mistakes) {
  if (mistakes.length === 1) return `Not right. ${mistakes[0][1]} ${mistakes[0][2]}`.trim();
  const [first, second] = mistakes;
  return `Not right. Two mistakes lead to this answer. One: ${first[1]} The other: ${second[1]}`;
}
const revealedText = (problem, table) => {
  const rightAnswer = ["number", "numbers"].includes(table.kind)
    ? `The answer is \`${formatAnswer(problem.right, table)}\``
    : "";
  const answerText =
    problem.right === ERROR ? `The answer: ${table.refusal.toLowerCase()}` : rightAnswer || "This is the answer";
  return `${answerText}. A similar question comes back later.`;
};
// An estimate of an input's height, to find the tallest input.
const heightOf = ({ right, options, start }) =>
  options ? options.join("  ").length + (start ? 100 * options.length : 0) : (right.length ?? 0);
// A copy of an input that reserves the input's space; it cannot be used, and screen readers ignore it.
function inertCopy(node) {
  const copy = node.cloneNode(true);
  for (const child of copy.querySelectorAll("*")) {
    for (const name of ["id", "role", "aria-label", "tabindex", "data-stage", "for"]) child.removeAttribute(name);
  }
  return set(copy, { "aria-hidden": "true" });
}
const invalidInput = (answers) => answers.querySelector("[aria-invalid=true]");

// The texts that may need the most lines. Of texts that differ only in digits, which all have the same width, one is
// enough. Texts shorter than half the longest text are left out; a line break counts as forty characters.
/** @type {(texts: string[]) => string[]} */
function longestTextsOf(texts) {
  const distinct = [...new Map(texts.map((text) => [text.replace(/\d/g, "0"), text])).values()];
  const lengths = distinct.map((text) => text.length + 40 * (text.split("\n").length - 1));
  return distinct.filter((_, i) => lengths[i] >= Math.max(...lengths) / 2);
}

/** @type {(table: any) => string[]} */
function allStatusTexts(table) {
  const feedbackTexts = table.cases.flatMap((problem) =>
    problem.wrong.map(([, numbers]) => mistakesText(numbers.map((i) => table.mistakes[i]))),
  );
  return [
    ...feedbackTexts,
    `${revealedText(table.cases[0], table)} ${END_OF_SET}`,
    INSTRUCTIONS[table.kind],
    REPEAT_NOTE,
  ];
}

// Lists mistakes by descending frequency, as in “Three times: The products run over the sizes to the left.”.
function weaknesses(topics, tableOf) {
  const missed = topics.flatMap(({ name, title }) =>
    Object.entries(recordOf(name).missed).map(([id, times]) => ({ name, title, id, times })),
  );
  const mostMissed = missed.sort((a, b) => b.times - a.times).slice(0, 5);
  return mostMissed.flatMap(({ name, title, id, times }) => {
    const mistake = tableOf(name).mistakes.find(([other]) => other === id);
    if (!mistake) return [];
    const summary = mistake[1].split(/[:;.](?:\s|$)/)[0];
    return [
      { name, title, text: `${["Once", "Twice"][times - 1] ?? `${capitalize(numberWord(times))} times`}: ${summary}.` },
    ];
  });
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const topics = model.get("topics");
  const names = topics.map((topic) => topic.name);
  const hasChoice = topics.length > 1;
  const choices = choicesOf(topics);
  const SET_SIZE = 3; // questions from earlier chapters
  const tables = new Map();
  const tableOf = (name) => {
    if (!tables.has(name)) tables.set(name, JSON.parse(topics[names.indexOf(name)].table));
    return tables.get(name);
  };
  const currentState = () => {
    const state = getTraits(model, TRAITS);
    const table = tableOf(state.topic);
    const index = state.case % table.cases.length;
    return { ...state, index, table, problem: table.cases[index] };
  };

  let repeatedCase = ""; // the case that was announced as a repetition
  let isIncomplete = false; // whether the reader pressed Check without a complete answer
  let streak = 0; // the number of questions in a row that were answered right at the first try
  let isMissed = false; // whether the reader's answer was wrong, or the right answer was shown
  let answeredCount = 0; // the number of questions answered since the last choice
  const score = element("span");
  const ring = practiceRing();
  const question = element("p", { class: "tl-question" });
  const givenCode = element("pre", { class: "tl-given" });
  const answers = element("div", { class: "tl-reserved tl-answers" });
  let input = null;
  let drawnQuestion = "";
  let drawnTopic = "";
  let tallest = null; // an inert copy that reserves the height of the tallest input

  const isRight = ({ answer, table, problem }) => matches(parseAnswer(answer, table, problem), problem.right, table);
  const setAnswer = (text) => {
    isIncomplete = false;
    if (text !== model.get("answer")) commit(model, { answer: text, state: "open" });
  };
  function check() {
    const { topic, table, problem, index, state, answer } = currentState();
    const parsed = parseAnswer(answer, table, problem);
    isIncomplete = parsed === null || invalidInput(answers) !== null;
    if (isIncomplete || state === "checked") return draw();
    if (matches(parsed, problem.right, table)) {
      recordSolved(topic, index);
      answeredCount += 1;
      if (!isMissed) streak += 1;
    } else {
      recordMissed(
        topic,
        mistakesIn(parsed, problem, table).map(([id]) => id),
      );
      endStreak();
    }
    commit(model, { answer: answer || formatAnswer(parsed, table), state: "checked" });
  }
  function endStreak() {
    streak = 0;
    isMissed = true;
  }
  function submit() {
    const { state } = currentState();
    if (state === "shown" || (state === "checked" && isRight(currentState()))) nextQuestion(true);
    else check();
  }
  function nextQuestion(byKey = false) {
    const { topic, index } = currentState();
    const pool = hasChoice ? chosenTopics() : names;
    const due = pool.filter((name) => isDue(name));
    const candidates = due.length ? due : pool;
    const next = hasChoice ? candidates[Math.floor(Math.random() * candidates.length)] : topic;
    const found = nextCase(tableOf(next), next === topic ? index : recordOf(next).solved.length - 1);
    repeatedCase = found.isRepeat ? `${next} ${found.index}` : "";
    isIncomplete = isMissed = false;
    commit(model, { topic: next, case: found.index, answer: "", state: "open" });
    if (byKey) queueMicrotask(() => input.focus());
  }
  function reveal() {
    const { topic, table, problem, state } = currentState();
    if (state !== "checked") recordMissed(topic, []);
    if (state !== "shown" && !(state === "checked" && isRight(currentState()))) {
      endStreak();
      answeredCount += 1;
    }
    isIncomplete = false;
    commit(model, { answer: formatAnswer(problem.right, table), state: "shown" });
  }

  // Chooses what to practise: everything, a chapter, all chapters up to a given chapter, or one topic.
  const chosenTopics = () => topics.filter(choices[model.get("choice")].includes).map((topic) => topic.name);
  function choose(choice) {
    model.set("choice", choice);
    answeredCount = 0;
    nextQuestion();
    draw(); // a hidden button cannot receive the focus
    backButton.focus();
  }
  const startPage = startPanel(topics, choices, (name) => tableOf(name).cases.length, choose);
  const backButton = button("All practices", () => {
    const { choice } = currentState();
    commit(model, { choice: START, answer: "", state: "open" });
    draw();
    startPage.focus(choice);
  });
  const choiceTitle = element("span", { class: "tl-chosen-practice" });

  const mainButtons = { check: button("Check", check), nextQuestion: button("Another", () => nextQuestion()) };
  const buttons = element(
    "div",
    { class: "tl-row tl-actions" },
    Object.values(mainButtons),
    group("solution", button("Show answer", reveal)),
  );
  const weaknessList = element("ul", { class: "tl-weak" });
  const forgetButton = button("Forget all", () => {
    forgetAll();
    draw();
  });
  const reviewList = element(
    "details",
    { hidden: !hasChoice },
    element("summary", {}, "What to look at again"),
    weaknessList,
    forgetButton,
  );

  const questionPanel = element(
    "div",
    {},
    hasChoice ? element("div", { class: "tl-row tl-choice-bar" }, backButton, choiceTitle) : [],
    group("score", element("p", { class: "tl-label tl-score" }, ring.node, score)),
    reservedBox(question),
    reservedBox(givenCode),
    answers,
    buttons,
  );

  const urlState = traitsInUrl("practice", {
    choice: optionCodec(Object.keys(choices)),
    topic: optionCodec(names),
    case: integerCodec(0, 99),
    answer: textCodec((text) => (text.length <= 400 ? { value: text } : { error: "too long" }), String, "an answer"),
    state: optionCodec(["open", "checked", "shown"]),
  });
  const title = hasChoice ? "Practice" : `Practice: ${topics[0].title}`;
  const { status } = frame(
    { model, el },
    "practice",
    title,
    urlState,
    hasChoice ? startPage.node : [],
    questionPanel,
    reviewList,
  );

  const makeInput = (problem, table) => INPUTS[table.kind]({ form: table, problem, setAnswer, submit });
  function drawTopic({ topic, table }) {
    if (drawnTopic === topic) return;
    drawnTopic = topic;
    reserveSpace(question, ...longestTextsOf(table.cases.map((problem) => problem.question)).map(withCode));
    reserveSpace(givenCode, ...longestTextsOf(table.cases.flatMap((problem) => problem.given ?? [])));
    reserveSpace(status, ...longestTextsOf(allStatusTexts(table)).map(withCode));
    tallest = inertCopy(
      makeInput(
        table.cases.reduce((a, b) => (heightOf(b) > heightOf(a) ? b : a)),
        table,
      ).node,
    );
  }

  function drawWeaknesses() {
    const found = weaknesses(topics, tableOf);
    const items = found.map(({ name, title, text }) => {
      const practise = button(title, () => {
        choose(name);
      });
      return element("li", {}, element("span", {}, withCode(text)), practise);
    });
    weaknessList.replaceChildren(
      ...(items.length ? items : [element("li", {}, "Nothing yet: answer some questions first.")]),
    );
    forgetButton.hidden = !items.length;
  }

  // A chapter ends with three questions from earlier chapters.
  const isEndOfSet = () => model.get("choice").startsWith("to") && answeredCount === SET_SIZE;
  function statusText({ topic, index, table, problem, answer, state }) {
    if (invalidInput(answers)) return `Not read: ${answers.querySelector(".tl-error").textContent}`;
    if (isIncomplete) return `The answer is not complete yet. ${INSTRUCTIONS[table.kind]}`;
    if (state === "shown") return `${revealedText(problem, table)} ${isEndOfSet() ? END_OF_SET : ""}`.trim();
    if (state === "open") return repeatedCase === `${topic} ${index}` ? REPEAT_NOTE : INSTRUCTIONS[table.kind];
    const parsed = parseAnswer(answer, table, problem);
    if (parsed === null) return INSTRUCTIONS[table.kind];
    if (matches(parsed, problem.right, table)) return hasChoice && isEndOfSet() ? `Right. ${END_OF_SET}` : "Right.";
    const mistakes = mistakesIn(parsed, problem, table);
    return mistakes.length ? mistakesText(mistakes) : `Not right. ${remarkOn(parsed, problem, table)}`.trim();
  }

  function draw() {
    const current = currentState();
    const { topic, table, problem, index, answer: text, state, choice } = current;
    const isStart = hasChoice && choice === START;
    set(startPage.node, { hidden: !isStart });
    set(questionPanel, { hidden: isStart });
    if (hasChoice) drawWeaknesses();
    if (isStart) return drawStart();
    drawTopic(current);
    if (drawnQuestion !== `${topic} ${index}`) {
      drawnQuestion = `${topic} ${index}`;
      writeWithCode(question, problem.question);
      setText(givenCode, problem.given ?? "");
      givenCode.parentNode.hidden = !table.cases.some(({ given }) => given);
      input = makeInput(problem, table);
      answers.replaceChildren(input.node, tallest);
    }
    if (!(isIncomplete && invalidInput(answers))) input.show(text); // invalid input is not overwritten
    setText(choiceTitle, choices[choice].title);
    const done = state === "shown" || (state === "checked" && isRight(current));
    const wrong = state === "checked" && !done;
    status.parentElement.classList.toggle("tl-right", state === "checked" && done);
    status.parentElement.classList.toggle("tl-not-right", wrong);
    set(mainButtons.check, { class: done ? null : "tl-main" }); // after a wrong answer, the reader may try again
    set(mainButtons.nextQuestion, { class: done ? "tl-main" : null });
    writeWithCode(status, statusText(current));
    const progress = { solved: recordOf(topic).solved.length, cases: table.cases.length };
    ring.show(progress);
    const solvedText = `${progress.solved} of ${progress.cases} solved`;
    const streakText = streak > 1 ? ` · ${streak} right in a row` : "";
    const showsTitle = hasChoice && choice !== topic; // the bar above already shows the title of a single topic
    const titleText = showsTitle ? `${table.title}${table.title.endsWith("?") ? "" : ":"} ` : "";
    setText(score, `${titleText}${solvedText}${streakText}`);
  }
  function drawStart() {
    startPage.draw();
    drawnTopic = "";
    reserveSpace(status);
    status.parentElement.classList.remove("tl-right", "tl-not-right");
    setText(status, "Choose what to practise.");
  }
  // A link to several topics opens a question on one of them.
  const isUntouched = () => names.indexOf(model.get("topic")) === 0 && !model.get("case") && !model.get("answer");
  if (hasChoice && !["all", START, ...names].includes(model.get("choice")) && isUntouched()) nextQuestion();
  return observe(model, urlState.names, draw);
}

export default { render };
