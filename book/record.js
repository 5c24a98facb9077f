// The reader's record: questions answered, sections read, the place, and what the course's checks have recorded. The
// record is stored only in this browser. Without storage, the record exists until the reader leaves the page.
//
// Each function reads the stored record again, since another window may have changed it. The browser decides whether
// pages opened from disk share one record or each have their own record.

// biome-ignore lint/correctness/noUnusedVariables: the scripts of the book use it
const RECORD = (() => {
  const KEY = "transformer-lab.reader";
  const PRACTICE = "transformer-lab.practice"; // written by the practice lab
  const DATE = /^\d{4}-\d\d-\d\d/;

  // Reading keeps the valid entries of any stored or imported value, and leaves out all other entries.
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isCount = (value) => Number.isInteger(value) && value >= 0;
  const isText = (value) => typeof value === "string" && value.length < 300;
  function pick(value, clean) {
    const entries = isObject(value) ? Object.entries(value) : [];
    return Object.fromEntries(entries.map(([name, each]) => [name, clean(each)]).filter(([, each]) => each));
  }
  const unique = (values) => [...new Set(values)];

  const cleanPlace = (place) =>
    isText(place?.page) && isText(place.section) && DATE.test(place.when)
      ? { page: place.page, section: place.section, when: place.when }
      : null;
  const cleanRead = (ids) => Array.isArray(ids) && unique(ids.filter(isText));
  const cleanAnswer = (answer) =>
    isText(answer?.section) && ["right", "wrong"].includes(answer.first) && Array.isArray(answer.opened)
      ? { section: answer.section, first: answer.first, opened: unique(answer.opened.filter(isCount)) }
      : null;
  const cleanCheck = (entry) =>
    isObject(entry) && isCount(entry.checks ?? 0)
      ? {
          checks: entry.checks ?? 0,
          ...(isCount(entry.stars) && { stars: entry.stars }),
          ...(DATE.test(entry.correct) && { correct: entry.correct }),
        }
      : null;
  const cleanPractice = (topic) =>
    isObject(topic?.missed) && Array.isArray(topic.solved) && Array.isArray(topic.due)
      ? {
          solved: unique(topic.solved.filter(isCount)),
          missed: pick(topic.missed, (times) => isCount(times) && times),
          due: topic.due.filter((each) => isText(each?.mistake) && Number.isInteger(each.wait)),
        }
      : null;

  /** @type {(topics: any) => Record<string, PracticeEntry>} */
  const cleanTopics = (topics) => pick(topics, cleanPractice);
  /** @type {(checks: any) => Record<string, CheckEntry>} */
  const cleanChecks = (checks) => pick(checks, cleanCheck);
  /** @type {(record: any) => ReaderRecord} */
  const clean = (record) => ({
    place: cleanPlace(record?.place),
    read: pick(record?.read, cleanRead),
    answers: pick(record?.answers, (page) => pick(page, cleanAnswer)),
    checks: cleanChecks(record?.checks),
    route: isText(record?.route) ? record.route : null,
    keys: record?.keys !== false,
  });

  // Storage
  const unsaved = {};
  function load(key) {
    try {
      return JSON.parse(localStorage.getItem(key) ?? "{}");
    } catch {
      return unsaved[key] ?? {};
    }
  }
  function save(key, value) {
    unsaved[key] = value;
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch {
      // The value stays in `unsaved`, and is lost when the reader leaves the page.
    }
  }
  const announce = () => document.dispatchEvent(new Event("tl-record"));

  /** @type {() => ReaderRecord} */
  const read = () => clean(load(KEY));
  /** @type {() => Record<string, PracticeEntry>} */
  const practised = () => cleanTopics(load(PRACTICE));
  /** @type {(edit: (record: ReaderRecord) => void) => void} */
  function change(edit) {
    const record = read();
    edit(record);
    save(KEY, record);
    announce();
  }
  /** @type {(record: ReaderRecord, topics: Record<string, PracticeEntry>) => void} */
  function write(record, topics) {
    save(KEY, record);
    save(PRACTICE, topics);
    announce();
  }
  function erase() {
    for (const key of [KEY, PRACTICE]) {
      delete unsaved[key];
      try {
        localStorage.removeItem(key);
      } catch {
        // There is no stored record to remove.
      }
    }
    announce();
  }
  /** @type {() => boolean} */
  function isStored() {
    try {
      localStorage.setItem(`${KEY}.test`, "");
      localStorage.removeItem(`${KEY}.test`);
      return true;
    } catch {
      return false;
    }
  }

  addEventListener("storage", ({ key }) => [KEY, PRACTICE, null].includes(key) && announce());

  return { read, practised, change, write, erase, isStored, clean, cleanCheck, cleanTopics };
})();
