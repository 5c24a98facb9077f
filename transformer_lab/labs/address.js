// The state of a lab in the page's address, ?masks.preset=window&masks.window=4, so that a reload or a shared link
// brings it back. Only what differs from how the lab began is written.

import { button, commit, element, follow, set, setText, traitsOf } from "./ui.js";
import { listed, quoted } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/**
 * How the address holds what a reader sets: texts by name, behind a word of the lab's own. `decode` gives what of them
 * can be read, and what is wrong with the rest. Without a word there is nothing to hand on.
 * @typedef {object} Kept
 * @property {string[]} names of the traits
 * @property {string} [word]
 * @property {(state: any, first: any) => Record<string, string>} [encode]
 * @property {(texts: Record<string, string>) => { state?: any, error?: string }} [decode]
 * @property {() => string} [code] Python that makes the same lab, for notebooks
 */
/** @typedef {{ write: (value: any) => string, read: (text: string) => import("./words.js").Parsed<any> }} Part */

const alike = (a, b) => JSON.stringify(a) === JSON.stringify(b);
/** @type {(text: string) => string} */
export const cited = (text) => quoted(text.slice(0, 20));

// A trait by itself: a whole number, one of some words, a yes or no, a text that a field reads, and numbers as many and
// as deep as those that the lab began with.
/** @type {(least: number, most: number) => Part} */
export const wholeNumber = (least, most) => ({
  write: String,
  read: (text) =>
    /^-?\d{1,9}$/.test(text) && +text >= least && +text <= most
      ? { value: +text }
      : { error: `a whole number from ${least} to ${most}` },
});
/** @type {(options: string[], valueIn?: (text: string) => any) => Part} */
export const oneOf = (options, valueIn = String) => ({
  write: String,
  read: (text) => (options.includes(text) ? { value: valueIn(text) } : { error: listed(options.map(quoted)) }),
});
/** @type {Part} */
export const flag = {
  write: (value) => (value ? "yes" : "no"),
  read: (text) => (["yes", "no"].includes(text) ? { value: text === "yes" } : { error: "yes or no" }),
};
/**
 * @type {(parse: (text: string) => import("./words.js").Parsed<any>, write?: (value: any) => string, what?: string) =>
 *   Part}
 */
export const typedText = (parse, write = String, what = "something that can be typed there") => ({
  write,
  read: (text) => (parse(text).error ? { error: what } : parse(text)),
});
const NUMBER = /^-?\d{1,9}(\.\d{1,9})?$/;
/** @type {(fits: (numbers: number[]) => boolean, what: string, shape?: (numbers: number[]) => any) => Part} */
export const numbers = (fits, what, shape = (all) => all) => ({
  write: (value) =>
    [value]
      .flat(Infinity)
      .map((x) => Number(x.toFixed(4)))
      .join(","),
  read(text) {
    const found = text ? text.split(",") : [];
    const all = found.map(Number);
    return found.every((each) => NUMBER.test(each)) && fits(all) ? { value: shape(all) } : { error: what };
  },
});
/** @type {(first: any[], least: number, most: number) => Part} */
export function numbersLike(first, least, most) {
  const count = first.flat(Infinity).length;
  const nest = (like, left) => like.map((each) => (Array.isArray(each) ? nest(each, left) : left.shift()));
  const fits = (all) => all.length === count && all.every((x) => x >= least && x <= most);
  return numbers(fits, `${count} numbers from ${least} to ${most}`, (all) => nest(first, [...all]));
}

// A lab's traits, each by itself, in this order.
/** @type {(word: string, parts: Record<string, Part>) => Kept} */
export const inParts = (word, parts) => ({
  word,
  names: Object.keys(parts),
  encode(state, first) {
    const changed = Object.keys(parts).filter((name) => !alike(state[name], first[name]));
    return Object.fromEntries(changed.map((name) => [name, parts[name].write(state[name])]));
  },
  decode(texts) {
    const state = {};
    const wrong = [];
    for (const [name, text] of Object.entries(texts)) {
      const found = Object.hasOwn(parts, name) ? parts[name].read(text) : null;
      if (!found) wrong.push(`${cited(name)} in it says nothing to this lab`);
      else if (found.error) wrong.push(`its ${name} is ${cited(text)}, where ${found.error} can stand`);
      else state[name] = found.value;
    }
    return { state, error: wrong.join("; ") };
  },
});

// The address is the lab's where the page carries the state of its widgets; in a notebook it is the notebook's. Each
// lab of a page has a word of its own in the query: a link within the page leaves that alone.
const claimed = new Map();
function addressOf(model, word) {
  if (!word || !document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]')) return null;
  if (!claimed.has(model)) {
    const others = [...claimed.values()].filter((each) => each.kind === word).length;
    claimed.set(model, { kind: word, word: others ? `${word}${others + 1}` : word });
  }
  const own = claimed.get(model).word;
  // A lab whose state is one text has its word alone, others a name behind it.
  const nameIn = (key) => (key === own ? "" : key.startsWith(`${own}.`) ? key.slice(own.length + 1) : null);
  const link = (texts) => {
    const url = new URL(location.href);
    for (const key of [...url.searchParams.keys()]) if (nameIn(key) !== null) url.searchParams.delete(key);
    for (const [name, text] of Object.entries(texts)) url.searchParams.set(name ? `${own}.${name}` : own, text);
    url.search = url.search.replace(/%(2C|28|29|3A|5B|5D)/g, decodeURIComponent); // ,():[] are read as they are
    return url;
  };
  return {
    texts() {
      const all = [...new URLSearchParams(location.search)].map(([key, text]) => [nameIn(key), text]);
      return Object.fromEntries(all.filter(([name]) => name !== null));
    },
    link,
    write(texts) {
      const url = link(texts).href;
      try {
        if (url !== location.href) history.replaceState(history.state, "", url);
      } catch {
        // A browser may not allow it: the link can still be copied.
      }
    },
  };
}

// A button that copies a text, what it says of that, and the text itself where a browser does not let it copy.
function copyButton(what, text) {
  const told = element("span", { class: "tl-note", "aria-live": "polite" });
  const label = `${what === "link" ? "Link to" : "Code for"} this state`;
  const byHand = element("input", {
    class: "tl-by-hand",
    type: "text",
    readonly: true,
    hidden: true,
    "aria-label": label,
  });
  const copy = button(`Copy ${what}`, async () => {
    const copied = text();
    try {
      await navigator.clipboard.writeText(copied);
      setText(told, `The ${what} is copied.`);
      set(byHand, { hidden: true });
    } catch {
      setText(told, `The browser does not let the lab copy: take the ${what} from here.`);
      set(byHand, { hidden: null });
      byHand.value = copied;
      byHand.focus();
      byHand.select();
    }
  });
  // What was handed on is no longer what is shown.
  const forget = () => {
    setText(told, "");
    set(byHand, { hidden: true });
  };
  return { nodes: [told, byHand, copy], forget };
}

// What stands at the lab's foot to hand its state on: the link where the address is ours, otherwise a line of code. The
// first view of a lab takes over what the address says; what that is wrong in is said and stays in the address until
// the lab changes.
/**
 * @type {(model: Model, el: HTMLElement, kept: Kept, began: { first: any, again: boolean }) =>
 *   { complaint: any, nodes: HTMLElement[] }}
 */
export function handOn(model, el, { word, names, encode, decode, code }, { first, again }) {
  const address = addressOf(model, word);
  if (!address && !code) return { complaint: [], nodes: [] };
  const complaint = element("p", { class: "tl-error", role: "alert" });
  const texts = () => encode(traitsOf(model, names), first);
  const copy = copyButton(address ? "link" : "code", () => {
    if (!address) return code();
    const url = address.link(texts());
    const section = el.closest("section[id]");
    if (section) url.hash = section.id;
    return url.href;
  });
  if (!address) {
    follow(model, names, copy.forget);
    return { complaint: [], nodes: copy.nodes };
  }
  const given = address.texts();
  if (!again && Object.keys(given).length) {
    const { state, error } = decode(given);
    if (state) commit(model, state);
    if (error) setText(complaint, `What the address says of this lab is left out: ${error}.`);
  }
  const found = texts();

  // Once a drag has come to rest, and its pointer is up: browsers count how often an address changes, and some refuse.
  let later = null;
  let held = false;
  const write = () => {
    if (!held && !complaint.textContent) address.write(texts());
  };
  const soon = () => {
    clearTimeout(later);
    later = setTimeout(write, 250);
  };
  el.addEventListener("pointerdown", () => {
    held = true;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    addEventListener(end, () => {
      if (held) soon();
      held = false;
    });
  }
  follow(model, names, () => {
    copy.forget();
    if (!alike(texts(), found)) setText(complaint, "");
    soon();
  });
  return { complaint, nodes: copy.nodes };
}
