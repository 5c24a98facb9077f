// The start page of a practice of several topics: a tile for each topic, with a ring that fills as cases are solved.

import { recordOf } from "./practice_record.js";
import { button, element, set, setText } from "./ui.js";

/** @typedef {{ name: string, title: string, chapter: number }} PracticeTopic */

export const START = "start";
/** @type {(chapter: number) => string} */
export const upTo = (chapter) => `to${chapter}`;

// The choices by name: each with a title, and a function that returns whether the choice includes a topic.
/**
 * @type {(topics: PracticeTopic[]) =>
 *   Record<string, { title: string, includes: (topic: PracticeTopic) => boolean }>}
 */
export function choicesOf(topics) {
  const chapters = [...new Set(topics.map(({ chapter }) => chapter))];
  const first = chapters[0];
  const upToChoices = chapters.map((last) => [
    upTo(last),
    {
      title: last === first ? `From chapter ${first}` : `From chapters ${first} to ${last}`,
      includes: ({ chapter }) => chapter <= last,
    },
  ]);
  const chapterChoices = chapters.map((each) => [
    String(each),
    { title: `Chapter ${each}, mixed`, includes: ({ chapter }) => chapter === each },
  ]);
  const topicChoices = topics.map(({ name, title }) => [name, { title, includes: (topic) => topic.name === name }]);
  const broadChoices = [
    [START, { title: "All practices", includes: () => true }],
    ["all", { title: "Everything, mixed", includes: () => true }],
  ];
  return Object.fromEntries([...broadChoices, ...upToChoices, ...chapterChoices, ...topicChoices]);
}

// A ring, of which the fraction `solved` / `cases` is filled.
export function practiceRing() {
  const node = element("span", { class: "tl-ring", "aria-hidden": "true" });
  const show = ({ solved, cases }) => {
    set(node, { class: solved >= cases ? "tl-ring tl-full" : "tl-ring", style: `--progress: ${solved / cases}` });
  };
  return { node, show };
}

/**
 * @type {(
 *   topics: PracticeTopic[], choices: ReturnType<typeof choicesOf>, caseCountOf: (name: string) => number,
 *   choose: (choice: string) => void) =>
 *   { node: HTMLElement, draw: () => void, focus: (choice: string) => void }}
 */
export function startPanel(topics, choices, caseCountOf, choose) {
  const tiles = new Map();
  function tile(choice) {
    const ring = practiceRing();
    const count = element("span", { class: "tl-note" });
    const text = element("span", {}, element("span", { class: "tl-name" }, choices[choice].title), count);
    const node = button("", () => choose(choice), { class: "tl-tile", "data-choice": choice });
    node.append(ring.node, text);
    tiles.set(choice, { node, ring, count });
    return node;
  }
  const chapters = [...new Set(topics.map(({ chapter }) => chapter))];
  const chapterTiles = (chapter) => {
    const names = topics.filter((topic) => topic.chapter === chapter).map(({ name }) => name);
    return element(
      "div",
      { role: "group", "aria-label": `Chapter ${chapter}` },
      element("p", { class: "tl-label" }, `Chapter ${chapter}`),
      element("div", { class: "tl-tiles" }, (names.length > 1 ? [String(chapter), ...names] : names).map(tile)),
    );
  };
  const node = element("div", {}, element("div", { class: "tl-tiles" }, tile("all")), chapters.map(chapterTiles));
  function draw() {
    for (const [choice, { ring, count }] of tiles) {
      const names = topics.filter(choices[choice].includes).map(({ name }) => name);
      const sum = (countOf) => names.map(countOf).reduce((a, b) => a + b, 0);
      const progress = { solved: sum((name) => recordOf(name).solved.length), cases: sum(caseCountOf) };
      ring.show(progress);
      setText(count, `${progress.solved} of ${progress.cases} solved`);
    }
  }
  const focus = (choice) => (tiles.get(choice) ?? tiles.get("all")).node.focus();
  return { node, draw, focus };
}
