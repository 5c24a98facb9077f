// The reader's progress, stored in this browser only, and the choice of the next case.

import { range } from "./maths.js";

/**
 * The progress in one topic: solved cases, the number of times that each mistake was made, and the mistakes that are
 * due for repetition.
 * @typedef {{ solved: number[], missed: Record<string, number>, due: { mistake: string, wait: number }[] }} TopicRecord
 */

const KEY = "transformer-lab.practice";
const WAIT = 2; // the number of cases before a mistake is repeated
const MAX_DUE = 20;

// Some browsers have no localStorage for pages from disk; the progress then lasts until the reader leaves the page.
let all = null;
function loadRecords() {
  if (all) return all;
  try {
    all = JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    all = {};
  }
  if (typeof all !== "object" || !all) all = {};
  return all;
}

function save() {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // Without localStorage, the progress is lost when the reader leaves the page.
  }
}

/** @type {(topic: string) => TopicRecord} */
export function recordOf(topic) {
  const found = loadRecords()[topic];
  const whole = Array.isArray(found?.solved) && Array.isArray(found.due) && found.missed;
  if (!whole) all[topic] = { solved: [], missed: {}, due: [] };
  return all[topic];
}

/** @type {(topic: string, at: number) => void} */
export function recordSolved(topic, at) {
  const { solved } = recordOf(topic);
  if (!solved.includes(at)) solved.push(at);
  save();
}

// Records a wrong answer, with the known mistakes that lead to it.
/** @type {(topic: string, mistakes: string[]) => void} */
export function recordMissed(topic, mistakes) {
  const { missed, due } = recordOf(topic);
  if (mistakes.length === 1) missed[mistakes[0]] = (missed[mistakes[0]] ?? 0) + 1; // two mistakes are ambiguous
  const mistake = mistakes[0] ?? "";
  if (!due.some((each) => each.mistake === mistake) && due.length < MAX_DUE) due.push({ mistake, wait: WAIT });
  save();
}

/** @type {() => void} */
export function forgetAll() {
  all = {};
  save();
}

// The case after case `at`, and whether this case repeats a mistake with different numbers. Solved cases return only
// after all others are solved.
/**
 * @type {(topic: { name: string, mistakes: string[][], cases: any[] }, at: number) =>
 *   { at: number, back: boolean }}
 */
export function nextCase({ name, mistakes, cases }, at) {
  const { solved, due } = recordOf(name);
  const following = range(cases.length - 1, 1).map((step) => (at + step) % cases.length);
  const open = following.filter((each) => !solved.includes(each));
  const ready = due.findIndex((each) => each.wait <= 0);
  for (const each of due) each.wait -= 1;
  if (ready >= 0) {
    const [{ mistake }] = due.splice(ready, 1);
    const number = mistakes.findIndex(([id]) => id === mistake);
    const like = (each) => number < 0 || cases[each].wrong.some(([, numbers]) => numbers.includes(number));
    const found = open.find(like) ?? following.find(like);
    save();
    if (found !== undefined) return { at: found, back: true };
  }
  save();
  return { at: open[0] ?? following[0] ?? at, back: false };
}

/** @type {(topic: string) => boolean} */
export const isDue = (topic) => recordOf(topic).due.some((each) => each.wait <= 0);
