// Exports and imports the reader's record as a file, and imports the file that `tl.checks` writes. Records are merged:
// an entry that is in either record stays.

// biome-ignore lint/correctness/noUnusedVariables: the page of the record uses it
const RECORD_FILE = (() => {
  const FORMAT = "transformer-lab";
  const VERSION = 1;

  /** @type {() => string} */
  const write = () =>
    JSON.stringify({ [FORMAT]: VERSION, reader: RECORD.read(), practice: RECORD.practised() }, null, 1);

  const union = (one, other) => [...new Set([...one, ...other])];
  const max = (one, other) => (one === undefined || other > one ? other : one);
  function mergeEach(one, other, mergeValues) {
    const merged = Object.entries(other).map(([name, each]) => [
      name,
      Object.hasOwn(one, name) ? mergeValues(one[name], each) : each,
    ]);
    return { ...one, ...Object.fromEntries(merged) };
  }
  const mergeCheck = (one, other) =>
    RECORD.cleanCheck({
      checks: max(one.checks, other.checks),
      stars: max(one.stars, other.stars),
      correct: [one.correct, other.correct].filter(Boolean).sort()[0],
    });
  const mergeTopic = (one, other) => ({
    solved: union(one.solved, other.solved),
    missed: mergeEach(one.missed, other.missed, max),
    due: [...one.due, ...other.due.filter(({ mistake }) => !one.due.some((each) => each.mistake === mistake))],
  });
  /** @type {(one: ReaderRecord, other: ReaderRecord) => ReaderRecord} */
  const merge = (one, other) => ({
    place: [one.place, other.place].filter(Boolean).sort((a, b) => (a.when < b.when ? 1 : -1))[0] ?? null,
    read: mergeEach(one.read, other.read, union),
    answers: mergeEach(one.answers, other.answers, (answers, otherAnswers) => ({ ...otherAnswers, ...answers })),
    checks: mergeEach(one.checks, other.checks, mergeCheck),
    route: one.route ?? other.route,
    keys: one.keys,
  });

  /** @typedef {{ description: string, record: ReaderRecord, topics: Record<string, PracticeEntry> }} ParsedFile */
  // The content of a file: a record of this page, or the progress.json of `tl.checks`, which has an entry for each
  // exercise.
  /** @type {(text: string) => { error: string } | ParsedFile} */
  function parse(text) {
    let content = null;
    try {
      content = JSON.parse(text);
    } catch {
      return { error: "This file is not a record: it is not JSON." };
    }
    if (typeof content?.[FORMAT] === "number") {
      if (content[FORMAT] > VERSION) return { error: "This file is from a later edition of the book." };
      const topics = RECORD.cleanTopics(content.practice);
      return { description: "The record", record: RECORD.clean(content.reader), topics };
    }
    const entries = typeof content === "object" && content ? Object.entries(content) : [];
    const checks = Object.fromEntries(entries.filter(([, entry]) => Number.isInteger(entry?.checks)));
    const record = RECORD.clean({ checks });
    const number = Object.keys(record.checks).length;
    if (!number) return { error: "This file is neither a record of this page nor one of tl.checks." };
    const exercises = `${number} ${number === 1 ? "exercise" : "exercises"}`;
    return { description: `The record of tl.checks with ${exercises}`, record, topics: {} };
  }

  /** @type {(text: string) => string} */
  function add(text) {
    const parsed = parse(text);
    if ("error" in parsed) return parsed.error;
    RECORD.write(merge(RECORD.read(), parsed.record), mergeEach(RECORD.practised(), parsed.topics, mergeTopic));
    return `${parsed.description} was added to yours.`;
  }

  return { write, parse, add };
})();
