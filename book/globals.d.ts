// What a page passes to the scripts of this folder; this file serves only to check types.

/** By search_index.py: the pages of the book and their sections, its labs, and Sphinx's stop words and stemmer. */
declare const SECTIONS: [page: string, address: string, sections: [anchor: string, title: string, text: string][]][];
declare const LABS: [page: string, address: string, title: string, text: string][];
declare const STOP_WORDS: string[];
declare class Stemmer {
  stemWord(word: string): string;
}

/** By cards.py, the title and the text of the card of each heading, by page and anchor. */
declare const CARDS: Record<string, Record<string, [title: string, text: string]>>;

/** By outline.py, what the scripts know about the book's chapters, practices and exercises. */
declare const OUTLINE: {
  chapters: Chapter[];
  topics: { name: string; chapter: number; cases: number }[];
  project: string[];
};
interface Chapter {
  page: string;
  sections: { id: string; minutes: number; questions: number; counts: number; stop: number; further: number }[];
  exercises: string[];
}

/** By outline.py for the pages that name sections: titles, in the outline's order. */
declare const TITLES: {
  chapters: Record<string, string>;
  sections: Record<string, string[]>;
  topics: Record<string, string>;
};

/** By route.py: for each route its title, the stop before this page, and the page's stops, each with the next stop. */
declare const ROUTES: Record<string, [title: string, before: Stop | null, stops: [id: string, next: Stop][]]>;
type Stop = [address: string, title: string];

/** What record.js stores about the reader. */
interface ReaderRecord {
  place: { page: string; section: string; when: string } | null;
  read: Record<string, string[]>;
  /** By page and question: its section, the verdict on the first choice, and the options that were opened. */
  answers: Record<string, Record<string, { section: string; first: "right" | "wrong"; opened: number[] }>>;
  checks: Record<string, CheckEntry>;
  /** The page of the route that the reader follows. */
  route: string | null;
  keys: boolean;
}
interface CheckEntry {
  checks: number;
  stars?: number;
  correct?: string;
}
interface PracticeEntry {
  solved: number[];
  missed: Record<string, number>;
  due: { mistake: string; wait: number }[];
}

/** By Sphinx. */
declare const DOCUMENTATION_OPTIONS: { pagename: string };

/** By widget_state.py, the labs' scripts that are stored in files, by address. */
interface Window {
  labScripts: Record<string, string>;
  /** By embed.py, the lab that embed.html shows: its widget's state, its view, and the page that shows it. */
  EMBEDDED: { state: object; view: object; page: string };
}
