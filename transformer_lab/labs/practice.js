// Practice: a lab that asks questions, and recognizes the mistake behind a wrong answer.

import { integerCodec, optionCodec, textCodec, traitsInUrl } from "./address.js";
import { frame } from "./frame.js";
import { answerIn, ERROR, inWords, knownOf, matches, textOf, upper } from "./practice_answers.js";
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
  choice: "Choose one, then check.",
  order: "Move the steps into order, then check.",
};
const END_OF_SET = "You have done three questions. Continue with more, or return to your chapter.";
const BACK = "You missed a question like this. Here it is with different numbers.";

// Renders text between backticks as code.
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
function writeWithCode(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...withCode(text));
}

// Returns the known mistakes that lead to an answer: one, two, or none.
function mistakesIn(given, it, table) {
  const found = it.wrong.find(([answer]) => matches(given, answer, table));
  return found ? found[1].map((i) => table.mistakes[i]) : [];
}
function mistakesText(mistakes) {
  if (mistakes.length === 1) return `Not right. ${mistakes[0][1]} ${mistakes[0][2]}`.trim();
  const [one, other] = mistakes;
  return `Not right. Two mistakes lead to this answer. One: ${one[1]} The other: ${other[1]}`;
}
const shownText = (it, table) => {
  const rightAnswer = ["number", "numbers"].includes(table.kind) ? `The answer is \`${textOf(it.right, table)}\`` : "";
  const answerText =
    it.right === ERROR ? `The answer: ${table.refusal.toLowerCase()}` : rightAnswer || "This is the answer";
  return `${answerText}. A similar question comes back later.`;
};
// An estimate of an input's height, to find the tallest input; and an inert copy of the input, which reserves its
// space.
const heightOf = ({ right, options, start }) =>
  options ? options.join("  ").length + (start ? 100 * options.length : 0) : (right.length ?? 0);
function inertCopy(node) {
  const copy = node.cloneNode(true);
  for (const each of copy.querySelectorAll("*")) {
    for (const name of ["id", "role", "aria-label", "tabindex", "data-stage", "for"]) each.removeAttribute(name);
  }
  return set(copy, { "aria-hidden": "true" });
}
const invalidInput = (answers) => answers.querySelector("[aria-invalid=true]");

// The texts that may need the most lines. Of texts that differ only in digits, which all have the same width, one is
// enough. Texts shorter than half the longest text are left out; a line break counts as forty characters.
/** @type {(texts: string[]) => string[]} */
function longestOf(texts) {
  const kinds = [...new Map(texts.map((text) => [text.replace(/\d/g, "0"), text])).values()];
  const lengths = kinds.map((text) => text.length + 40 * (text.split("\n").length - 1));
  return kinds.filter((_, i) => lengths[i] >= Math.max(...lengths) / 2);
}

/** @type {(table: any) => string[]} */
function allStatusTexts(table) {
  const named = table.cases.flatMap((it) =>
    it.wrong.map(([, numbers]) => mistakesText(numbers.map((i) => table.mistakes[i]))),
  );
  return [...named, `${shownText(table.cases[0], table)} ${END_OF_SET}`, INSTRUCTIONS[table.kind], BACK];
}

// Lists mistakes by descending frequency, as in “Three times: The products run over the sizes to the left.”.
function weaknesses(topics, tableOf) {
  const all = topics.flatMap(({ name, title }) =>
    Object.entries(recordOf(name).missed).map(([id, times]) => ({ name, title, id, times })),
  );
  const most = all.sort((a, b) => b.times - a.times).slice(0, 5);
  return most.flatMap(({ name, title, id, times }) => {
    const mistake = tableOf(name).mistakes.find(([other]) => other === id);
    if (!mistake) return [];
    const what = mistake[1].split(/[:;.](?:\s|$)/)[0];
    return [{ name, title, text: `${["Once", "Twice"][times - 1] ?? `${upper(inWords(times))} times`}: ${what}.` }];
  });
}

/** @param {import("./ui.js").View} view */
function render({ model, el }) {
  const topics = model.get("topics");
  const names = topics.map((topic) => topic.name);
  const many = topics.length > 1;
  const choices = choicesOf(topics);
  const SET = 3; // questions from earlier chapters
  const tables = new Map();
  const tableOf = (name) => {
    if (!tables.has(name)) tables.set(name, JSON.parse(topics[names.indexOf(name)].table));
    return tables.get(name);
  };
  const now = () => {
    const state = getTraits(model, TRAITS);
    const table = tableOf(state.topic);
    const at = state.case % table.cases.length;
    return { ...state, at, table, it: table.cases[at] };
  };

  let back = ""; // the case that was announced as a repetition
  let isIncomplete = false; // whether the reader pressed Check without a complete answer
  let streak = 0; // the number of questions in a row that were answered right at the first try
  let missedNow = false; // whether the reader's answer was wrong, or the right answer was shown
  let answered = 0; // the number of questions answered since the last choice
  const score = element("span");
  const ring = practiceRing();
  const question = element("p", { class: "tl-question" });
  const given = element("pre", { class: "tl-given" });
  const answers = element("div", { class: "tl-reserved tl-answers" });
  let input = null;
  let drawnQuestion = "";
  let drawnTopic = "";
  let tallest = null; // an inert copy that reserves the height of the tallest input

  const isRight = ({ answer, table, it }) => matches(answerIn(answer, table, it), it.right, table);
  const answer = (text) => {
    isIncomplete = false;
    if (text !== model.get("answer")) commit(model, { answer: text, state: "open" });
  };
  function check() {
    const { topic, table, it, at, state, answer } = now();
    const found = answerIn(answer, table, it);
    isIncomplete = found === null || invalidInput(answers) !== null;
    if (isIncomplete || state === "checked") return draw();
    if (matches(found, it.right, table)) {
      recordSolved(topic, at);
      answered += 1;
      if (!missedNow) streak += 1;
    } else {
      recordMissed(
        topic,
        mistakesIn(found, it, table).map(([id]) => id),
      );
      endStreak();
    }
    commit(model, { answer: answer || textOf(found, table), state: "checked" });
  }
  function endStreak() {
    streak = 0;
    missedNow = true;
  }
  function submit() {
    const { state } = now();
    if (state === "shown" || (state === "checked" && isRight(now()))) another(true);
    else check();
  }
  function another(byKey = false) {
    const { topic, at } = now();
    const pool = many ? among() : names;
    const ready = pool.filter((name) => isDue(name));
    const from = ready.length ? ready : pool;
    const next = many ? from[Math.floor(Math.random() * from.length)] : topic;
    const found = nextCase(tableOf(next), next === topic ? at : recordOf(next).solved.length - 1);
    back = found.back ? `${next} ${found.at}` : "";
    isIncomplete = missedNow = false;
    commit(model, { topic: next, case: found.at, answer: "", state: "open" });
    if (byKey) queueMicrotask(() => input.focus());
  }
  function reveal() {
    const { topic, table, it, state } = now();
    if (state !== "checked") recordMissed(topic, []);
    if (state !== "shown" && !(state === "checked" && isRight(now()))) {
      endStreak();
      answered += 1;
    }
    isIncomplete = false;
    commit(model, { answer: textOf(it.right, table), state: "shown" });
  }

  // Chooses what to practise: everything, a chapter, all chapters up to a given chapter, or one topic.
  const among = () => topics.filter(choices[model.get("choice")].includes).map((topic) => topic.name);
  function choose(choice) {
    model.set("choice", choice);
    answered = 0;
    another();
    draw(); // a hidden button cannot receive the focus
    goBack.focus();
  }
  const start = startPanel(topics, choices, (name) => tableOf(name).cases.length, choose);
  const goBack = button("All practices", () => {
    const { choice } = now();
    commit(model, { choice: START, answer: "", state: "open" });
    draw();
    start.focus(choice);
  });
  const chosen = element("span", { class: "tl-chosen-practice" });

  const main = { check: button("Check", check), another: button("Another", () => another()) };
  const buttons = element(
    "div",
    { class: "tl-row tl-actions" },
    Object.values(main),
    group("solution", button("Show answer", reveal)),
  );
  const weak = element("ul", { class: "tl-weak" });
  const forget = button("Forget all", () => {
    forgetAll();
    draw();
  });
  const reviewList = element(
    "details",
    { hidden: !many },
    element("summary", {}, "What to look at again"),
    weak,
    forget,
  );

  const asking = element(
    "div",
    {},
    many ? element("div", { class: "tl-row tl-picked" }, goBack, chosen) : [],
    group("score", element("p", { class: "tl-label tl-score" }, ring.node, score)),
    reservedBox(question),
    reservedBox(given),
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
  const title = many ? "Practice" : `Practice: ${topics[0].title}`;
  const { status } = frame({ model, el }, "practice", title, urlState, many ? start.node : [], asking, reviewList);

  const makeInput = (it, table) => INPUTS[table.kind]({ form: table, it, answer, submit });
  function drawTopic({ topic, table }) {
    if (drawnTopic === topic) return;
    drawnTopic = topic;
    reserveSpace(question, ...longestOf(table.cases.map((it) => it.question)).map(withCode));
    reserveSpace(given, ...longestOf(table.cases.flatMap((it) => it.given ?? [])));
    reserveSpace(status, ...longestOf(allStatusTexts(table)).map(withCode));
    tallest = inertCopy(
      makeInput(
        table.cases.reduce((a, b) => (heightOf(b) > heightOf(a) ? b : a)),
        table,
      ).node,
    );
  }

  function drawWeak() {
    const found = weaknesses(topics, tableOf);
    const items = found.map(({ name, title, text }) => {
      const practise = button(title, () => {
        choose(name);
      });
      return element("li", {}, element("span", {}, withCode(text)), practise);
    });
    weak.replaceChildren(...(items.length ? items : [element("li", {}, "Nothing yet: answer some questions first.")]));
    forget.hidden = !items.length;
  }

  // A chapter ends with three questions from earlier chapters.
  const isEndOfSet = () => model.get("choice").startsWith("to") && answered === SET;
  function statusText({ topic, at, table, it, answer, state }) {
    if (invalidInput(answers)) return `Not read: ${answers.querySelector(".tl-error").textContent}`;
    if (isIncomplete) return `The answer is not complete yet. ${INSTRUCTIONS[table.kind]}`;
    if (state === "shown") return `${shownText(it, table)} ${isEndOfSet() ? END_OF_SET : ""}`.trim();
    if (state === "open") return back === `${topic} ${at}` ? BACK : INSTRUCTIONS[table.kind];
    const found = answerIn(answer, table, it);
    if (found === null) return INSTRUCTIONS[table.kind];
    if (matches(found, it.right, table)) return many && isEndOfSet() ? `Right. ${END_OF_SET}` : "Right.";
    const mistakes = mistakesIn(found, it, table);
    return mistakes.length ? mistakesText(mistakes) : `Not right. ${knownOf(found, it, table)}`.trim();
  }

  function draw() {
    const all = now();
    const { topic, table, it, at, answer: text, state, choice } = all;
    const isStart = many && choice === START;
    set(start.node, { hidden: !isStart });
    set(asking, { hidden: isStart });
    if (many) drawWeak();
    if (isStart) return drawStart();
    drawTopic(all);
    if (drawnQuestion !== `${topic} ${at}`) {
      drawnQuestion = `${topic} ${at}`;
      writeWithCode(question, it.question);
      setText(given, it.given ?? "");
      given.parentNode.hidden = !table.cases.some((each) => each.given);
      input = makeInput(it, table);
      answers.replaceChildren(input.node, tallest);
    }
    if (!(isIncomplete && invalidInput(answers))) input.show(text); // invalid input is not overwritten
    setText(chosen, choices[choice].title);
    const done = state === "shown" || (state === "checked" && isRight(all));
    const wrong = state === "checked" && !done;
    status.parentElement.classList.toggle("tl-right", state === "checked" && done);
    status.parentElement.classList.toggle("tl-not-right", wrong);
    set(main.check, { class: done ? null : "tl-main" }); // after a wrong answer, the reader may try again
    set(main.another, { class: done ? "tl-main" : null });
    writeWithCode(status, statusText(all));
    const far = { solved: recordOf(topic).solved.length, cases: table.cases.length };
    ring.show(far);
    const solved = `${far.solved} of ${far.cases} solved`;
    const inRow = streak > 1 ? ` · ${streak} right in a row` : "";
    const named = many && choice !== topic; // the bar above already shows the name of a single topic
    setText(score, `${named ? `${table.title}${table.title.endsWith("?") ? "" : ":"} ` : ""}${solved}${inRow}`);
  }
  function drawStart() {
    start.draw();
    drawnTopic = "";
    reserveSpace(status);
    status.parentElement.classList.remove("tl-right", "tl-not-right");
    setText(status, "Choose what to practise.");
  }
  // A link to several topics opens a question on one of them.
  const isUntouched = () => names.indexOf(model.get("topic")) === 0 && !model.get("case") && !model.get("answer");
  if (many && !["all", START, ...names].includes(model.get("choice")) && isUntouched()) another();
  return observe(model, urlState.names, draw);
}

export default { render };
