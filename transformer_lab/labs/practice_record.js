// The reader's progress, stored in this browser only, and the choice of the next case.

import { range } from "./maths.js";

/**
 * The progress in one topic: solved cases, the number of times that each mistake was made, and the mistakes that are
 * due for repetition.
 * @typedef {{ solved: number[], missed: Record<string, number>, due: { mistake: string, wait: number }[] }} TopicRecord
 */

const STORAGE_KEY = "transformer-lab.practice";
const REPEAT_AFTER = 2; // the number of cases before a mistake is tested again
const MAX_DUE = 20;

// Some browsers have no localStorage for pages from disk; the progress then lasts until the reader leaves the page.
let records = null;
function loadRecords() {
  if (records) return records;
  try {
    records = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
  } catch {
    records = {};
  }
  if (typeof records !== "object" || !records) records = {};
  return records;
}

function save() {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(records));
  } catch {
    // Without localStorage, the progress is lost when the reader leaves the page.
  }
}

/** @type {(topic: string) => TopicRecord} */
export function recordOf(topic) {
  const found = loadRecords()[topic];
  const isValid = Array.isArray(found?.solved) && Array.isArray(found.due) && found.missed;
  if (!isValid) records[topic] = { solved: [], missed: {}, due: [] };
  return records[topic];
}

/** @type {(topic: string, index: number) => void} */
export function recordSolved(topic, index) {
  const { solved } = recordOf(topic);
  if (!solved.includes(index)) solved.push(index);
  save();
}

// Records a wrong answer, with the known mistakes that lead to it.
/** @type {(topic: string, mistakes: string[]) => void} */
export function recordMissed(topic, mistakes) {
  const { missed, due } = recordOf(topic);
  if (mistakes.length === 1) missed[mistakes[0]] = (missed[mistakes[0]] ?? 0) + 1; // two mistakes are ambiguous
  const mistake = mistakes[0] ?? "";
  if (!due.some((entry) => entry.mistake === mistake) && due.length < MAX_DUE)
    due.push({ mistake, wait: REPEAT_AFTER });
  save();
}

/** @type {() => void} */
export function forgetAll() {
  records = {};
  save();
}

// The case that follows case `index`, and whether this case tests an earlier mistake again. Without such a mistake,
// solved cases return only after all other cases are solved.
/**
 * @type {(topic: { name: string, mistakes: string[][], cases: any[] }, index: number) =>
 *   { index: number, isRepeat: boolean }}
 */
export function nextCase({ name, mistakes, cases }, index) {
  const { solved, due } = recordOf(name);
  const following = range(cases.length - 1, 1).map((step) => (index + step) % cases.length);
  const unsolved = following.filter((i) => !solved.includes(i));
  const ready = due.findIndex((entry) => entry.wait <= 0);
  for (const entry of due) entry.wait -= 1;
  if (ready >= 0) {
    const [{ mistake }] = due.splice(ready, 1);
    const mistakeIndex = mistakes.findIndex(([id]) => id === mistake);
    const hasMistake = (i) => mistakeIndex < 0 || cases[i].wrong.some(([, numbers]) => numbers.includes(mistakeIndex));
    const found = unsolved.find(hasMistake) ?? following.find(hasMistake);
    save();
    if (found !== undefined) return { index: found, isRepeat: true };
  }
  save();
  return { index: unsolved[0] ?? following[0] ?? index, isRepeat: false };
}

/** @type {(topic: string) => boolean} */
export const isDue = (topic) => recordOf(topic).due.some((entry) => entry.wait <= 0);
