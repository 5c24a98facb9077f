// The state of a lab in the page's URL, ?masks.preset=window&masks.window=4, so that a reload or a shared link restores
// that state. Only values that differ from the lab's initial state are written.

import { button, commit, element, getTraits, observe, set, setText } from "./ui.js";
import { listed, quoted } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/**
 * How the URL stores a lab's traits: as query parameters with the prefix `word`. `decode` returns the valid values, and
 * an error message for the invalid ones. Without `word`, the URL does not store the state.
 * @typedef {object} UrlState
 * @property {string[]} names of the traits
 * @property {string} [word]
 * @property {(state: any, first: any) => Record<string, string>} [encode]
 * @property {(texts: Record<string, string>) => { state?: any, error?: string }} [decode]
 * @property {() => string} [code] Python that makes the same lab, for notebooks
 */
/** @typedef {{ write: (value: any) => string, read: (text: string) => import("./words.js").Parsed<any> }} Codec */

const deepEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);
/** @type {(text: string) => string} */
export const quotedStart = (text) => quoted(text.slice(0, 20));

// Codecs for one trait: an integer, one of several options, a boolean, the text of a field, and nested numbers with the
// shape of the initial value.
/** @type {(least: number, most: number) => Codec} */
export const integerCodec = (least, most) => ({
  write: String,
  read: (text) =>
    /^-?\d{1,9}$/.test(text) && +text >= least && +text <= most
      ? { value: +text }
      : { error: `a whole number from ${least} to ${most}` },
});
/** @type {(options: string[], valueIn?: (text: string) => any) => Codec} */
export const optionCodec = (options, valueIn = String) => ({
  write: String,
  read: (text) => (options.includes(text) ? { value: valueIn(text) } : { error: listed(options.map(quoted)) }),
});
/** @type {Codec} */
export const booleanCodec = {
  write: (value) => (value ? "yes" : "no"),
  read: (text) => (["yes", "no"].includes(text) ? { value: text === "yes" } : { error: "yes or no" }),
};
/**
 * @type {(
 *   parse: (text: string) => import("./words.js").Parsed<any>,
 *   write?: (value: any) => string,
 *   expected?: string,
 * ) => Codec}
 */
export const textCodec = (parse, write = String, expected = "a text that its field accepts") => ({
  write,
  read: (text) => (parse(text).error ? { error: expected } : parse(text)),
});
const NUMBER = /^-?\d{1,9}(\.\d{1,9})?$/;
/** @type {(fits: (numbers: number[]) => boolean, expected: string, shape?: (numbers: number[]) => any) => Codec} */
export const numbersCodec = (fits, expected, shape = (all) => all) => ({
  write: (value) =>
    [value]
      .flat(Infinity)
      .map((x) => Number(x.toFixed(4)))
      .join(","),
  read(text) {
    const found = text ? text.split(",") : [];
    const all = found.map(Number);
    return found.every((each) => NUMBER.test(each)) && fits(all) ? { value: shape(all) } : { error: expected };
  },
});
/** @type {(first: any[], least: number, most: number) => Codec} */
export function nestedNumbersCodec(first, least, most) {
  const count = first.flat(Infinity).length;
  const nest = (like, left) => like.map((each) => (Array.isArray(each) ? nest(each, left) : left.shift()));
  const fits = (all) => all.length === count && all.every((x) => x >= least && x <= most);
  return numbersCodec(fits, `${count} numbers from ${least} to ${most}`, (all) => nest(first, [...all]));
}

// One query parameter for each trait, in the order of `parts`.
/** @type {(word: string, parts: Record<string, Codec>) => UrlState} */
export const traitsInUrl = (word, parts) => ({
  word,
  names: Object.keys(parts),
  encode(state, first) {
    const changed = Object.keys(parts).filter((name) => !deepEqual(state[name], first[name]));
    return Object.fromEntries(changed.map((name) => [name, parts[name].write(state[name])]));
  },
  decode(texts) {
    const state = {};
    const wrong = [];
    for (const [name, text] of Object.entries(texts)) {
      const found = Object.hasOwn(parts, name) ? parts[name].read(text) : null;
      if (!found) wrong.push(`${quotedStart(name)} is not a setting of this lab`);
      else if (found.error) wrong.push(`${name} is ${quotedStart(text)}, but must be ${found.error}`);
      else state[name] = found.value;
    }
    return { state, error: wrong.join("; ") };
  },
});

// Labs write to the URL of a published page, which is a page that stores the state of its widgets; they never write to
// the URL of a notebook.
// Each lab of a page has its own prefix in the query string; links within the page leave the query string unchanged.
const claimedPrefixes = new Map();
function urlOf(model, word) {
  if (!word || !document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]')) return null;
  if (!claimedPrefixes.has(model)) {
    const others = [...claimedPrefixes.values()].filter((each) => each.kind === word).length;
    claimedPrefixes.set(model, { kind: word, word: others ? `${word}${others + 1}` : word });
  }
  const own = claimedPrefixes.get(model).word;
  // A lab whose state is a single text uses its prefix alone as the parameter's name.
  const nameIn = (key) => (key === own ? "" : key.startsWith(`${own}.`) ? key.slice(own.length + 1) : null);
  const link = (texts) => {
    const url = new URL(location.href);
    for (const key of [...url.searchParams.keys()]) if (nameIn(key) !== null) url.searchParams.delete(key);
    for (const [name, text] of Object.entries(texts)) url.searchParams.set(name ? `${own}.${name}` : own, text);
    url.search = url.search.replace(/%(2C|28|29|3A|5B|5D)/g, decodeURIComponent); // ,():[] stay readable
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
        // If the browser refuses to change the URL, the reader can still copy the link.
      }
    },
  };
}

// A button that copies a text, a note that confirms the copy, and a field with the text for browsers without clipboard
// access.
function copyButton(what, text) {
  const status = element("span", { class: "tl-note", "aria-live": "polite" });
  const label = `${{ link: "Link to", embed: "Frame with", code: "Code for" }[what]} this state`;
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
      setText(status, `The ${what} is copied.`);
      set(byHand, { hidden: true });
    } catch {
      setText(status, `The browser blocks copying: take the ${what} from this field.`);
      set(byHand, { hidden: null });
      byHand.value = copied;
      byHand.focus();
      byHand.select();
    }
  });
  // After a change, the copied text is out of date, and so is the note about it.
  const forget = () => {
    setText(status, "");
    set(byHand, { hidden: true });
  };
  return { nodes: [status, byHand, copy], forget };
}

// The footer: a share link, or a line of code in a notebook. The first view of a lab restores the state in the URL; the
// footer reports invalid parameters, which stay in the URL until the lab's state changes.
/**
 * @type {(model: Model, el: HTMLElement, kept: UrlState, began: { first: any, again: boolean }) =>
 *   { complaint: any, nodes: HTMLElement[] }}
 */
export function shareControls(model, el, { word, names, encode, decode, code }, { first, again }) {
  const address = urlOf(model, word);
  if (!address && !code) return { complaint: [], nodes: [] };
  const complaint = element("p", { class: "tl-error", role: "alert" });
  const texts = () => encode(getTraits(model, names), first);
  const copy = copyButton(address ? "link" : "code", () => {
    if (!address) return code();
    const url = address.link(texts());
    const anchor = el.closest("section[id], .cell[id]");
    if (anchor) url.hash = anchor.id;
    return url.href;
  });
  // On the published page, a button copies the HTML of an iframe that shows only this lab. In the iframe the lab is the
  // first of its kind, so its prefix has no number.
  /** @type {HTMLElement} */
  const place = location.protocol.startsWith("http") ? el.closest("[data-embed]") : null;
  const embed =
    place &&
    copyButton("embed", () => {
      const url = new URL(place.dataset.embed, location.href);
      for (const [name, text] of Object.entries(texts())) url.searchParams.set(name ? `${word}.${name}` : word, text);
      const source = `src="${url.href.replaceAll("&", "&amp;")}" title="A lab of Transformer Lab"`;
      return `<iframe ${source} width="100%" height="${el.offsetHeight + 40}" style="border: 0"></iframe>`;
    });
  if (!address) {
    observe(model, names, copy.forget);
    return { complaint: [], nodes: copy.nodes };
  }
  const given = address.texts();
  if (!again && Object.keys(given).length) {
    const { state, error } = decode(given);
    if (state) commit(model, state);
    if (error) setText(complaint, `The lab ignores part of the address: ${error}.`);
  }
  const found = texts();

  // The URL is written after a delay, and never during a drag: browsers limit how often a page may change its URL.
  let later = null;
  let held = false;
  const write = () => {
    const ownState = el.dataset.stepping === undefined; // the page does not step through the lab's states
    if (!held && ownState && !complaint.textContent) address.write(texts());
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
  observe(model, names, () => {
    copy.forget();
    if (embed) embed.forget();
    if (!deepEqual(texts(), found)) setText(complaint, "");
    soon();
  });
  return { complaint, nodes: [...copy.nodes, ...(embed ? embed.nodes : [])] };
}
