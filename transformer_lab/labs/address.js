// The state of a lab in the page's URL, such as ?masks.preset=window&masks.window=4: a reload or a shared link restores
// this state. Only values that differ from the lab's initial state are written.

import { button, commit, element, getTraits, observe, set, setText } from "./ui.js";
import { listed, quoted } from "./words.js";

/** @typedef {import("./ui.js").Model} Model */
/**
 * How the URL stores a lab's traits: as query parameters that begin with `prefix`. `decode` returns the valid values,
 * and an error message for the invalid ones. Without `prefix`, the URL does not store the state.
 * @typedef {object} UrlState
 * @property {string[]} names of the traits
 * @property {string} [prefix]
 * @property {(state: any, initial: any) => Record<string, string>} [encode]
 * @property {(texts: Record<string, string>) => { state?: any, error?: string }} [decode]
 * @property {() => string} [code] Python that makes the same lab, for notebooks
 */
/** @typedef {{ write: (value: any) => string, read: (text: string) => import("./words.js").Parsed<any> }} Codec */

const deepEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);
/** @type {(text: string) => string} */
export const quotedStart = (text) => quoted(text.slice(0, 20));

// Codecs, each for one kind of trait: an integer, one of several options, a boolean, the text of a field, and nested
// numbers with the shape of the initial value.
/** @type {(least: number, most: number) => Codec} */
export const integerCodec = (least, most) => ({
  write: String,
  read: (text) =>
    /^-?\d{1,9}$/.test(text) && +text >= least && +text <= most
      ? { value: +text }
      : { error: `a whole number from ${least} to ${most}` },
});
/** @type {(options: string[], convert?: (text: string) => any) => Codec} */
export const optionCodec = (options, convert = String) => ({
  write: String,
  read: (text) =>
    options.includes(text) ? { value: convert(text) } : { error: `one of ${listed(options.map(quoted))}` },
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
export const numbersCodec = (fits, expected, shape = (nums) => nums) => ({
  write: (value) =>
    [value]
      .flat(Infinity)
      .map((x) => Number(x.toFixed(4)))
      .join(","),
  read(text) {
    const parts = text ? text.split(",") : [];
    const nums = parts.map(Number);
    return parts.every((part) => NUMBER.test(part)) && fits(nums) ? { value: shape(nums) } : { error: expected };
  },
});
/** @type {(initial: any[], least: number, most: number) => Codec} */
export function nestedNumbersCodec(initial, least, most) {
  const count = initial.flat(Infinity).length;
  const nest = (tree, queue) => tree.map((each) => (Array.isArray(each) ? nest(each, queue) : queue.shift()));
  const fits = (nums) => nums.length === count && nums.every((x) => x >= least && x <= most);
  return numbersCodec(fits, `${count} numbers from ${least} to ${most}`, (nums) => nest(initial, [...nums]));
}

// One query parameter for each trait, in the order of `codecs`.
/** @type {(prefix: string, codecs: Record<string, Codec>) => UrlState} */
export const traitsInUrl = (prefix, codecs) => ({
  prefix,
  names: Object.keys(codecs),
  encode(state, initial) {
    const names = Object.keys(codecs).filter((name) => !deepEqual(state[name], initial[name]));
    return Object.fromEntries(names.map((name) => [name, codecs[name].write(state[name])]));
  },
  decode(texts) {
    const state = {};
    const errors = [];
    for (const [name, text] of Object.entries(texts)) {
      const parsed = Object.hasOwn(codecs, name) ? codecs[name].read(text) : null;
      if (!parsed) errors.push(`${quotedStart(name)} is not a setting of this lab`);
      else if (parsed.error) errors.push(`${name} is ${quotedStart(text)}, but must be ${parsed.error}`);
      else state[name] = parsed.value;
    }
    return { state, error: errors.join("; ") };
  },
});

// Access to the part of the query string that belongs to one lab. Labs change the URL of a published page, but never
// the URL of a notebook. A page that contains a stored widget state is a published page. Each lab on a page has its own
// prefix in the query string; links within the page leave the query string unchanged.
const prefixes = new Map();
function urlAccess(model, base) {
  if (!base || !document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]')) return null;
  if (!prefixes.has(model)) {
    const count = [...prefixes.values()].filter((each) => each.base === base).length;
    prefixes.set(model, { base, prefix: count ? `${base}${count + 1}` : base });
  }
  const { prefix } = prefixes.get(model);
  // A lab whose state is a single text uses its prefix alone as the parameter's name.
  const nameOf = (key) => (key === prefix ? "" : key.startsWith(`${prefix}.`) ? key.slice(prefix.length + 1) : null);
  const link = (texts) => {
    const url = new URL(location.href);
    for (const key of [...url.searchParams.keys()]) if (nameOf(key) !== null) url.searchParams.delete(key);
    for (const [name, text] of Object.entries(texts)) url.searchParams.set(name ? `${prefix}.${name}` : prefix, text);
    url.search = url.search.replace(/%(2C|28|29|3A|5B|5D)/g, decodeURIComponent); // ,():[] stay readable
    return url;
  };
  return {
    read() {
      const params = [...new URLSearchParams(location.search)].map(([key, text]) => [nameOf(key), text]);
      return Object.fromEntries(params.filter(([name]) => name !== null));
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

// A button that copies text, a note that confirms the copy, and a field with the text for browsers without clipboard
// access.
function copyButton(kind, getText) {
  const status = element("span", { class: "tl-note", "aria-live": "polite" });
  const input = element("input", {
    class: "tl-copy-text",
    type: "text",
    readonly: true,
    hidden: true,
    "aria-label": `The ${kind} for this state`,
  });
  const copy = button(`Copy ${kind}`, async () => {
    const current = getText();
    try {
      await navigator.clipboard.writeText(current);
      setText(status, `The ${kind} has been copied.`);
      set(input, { hidden: true });
    } catch {
      setText(status, `The browser blocked copying: copy the ${kind} from this field.`);
      set(input, { hidden: null });
      input.value = current;
      input.focus();
      input.select();
    }
  });
  // After a change, both the copied text and the note about it are out of date.
  const clear = () => {
    setText(status, "");
    set(input, { hidden: true });
  };
  return { nodes: [status, input, copy], clear };
}

// The footer's buttons, which copy a link to the lab or, in a notebook, a line of code. A lab's first view restores
// the state in the URL and reports invalid parameters, which stay in the URL until the lab's state changes.
/**
 * @type {(model: Model, el: HTMLElement, urlState: UrlState, view: { initial: any, wasDrawn: boolean }) =>
 *   { error: any, nodes: HTMLElement[] }}
 */
export function shareControls(model, el, { prefix, names, encode, decode, code }, { initial, wasDrawn }) {
  const address = urlAccess(model, prefix);
  if (!address && !code) return { error: [], nodes: [] };
  const urlError = element("p", { class: "tl-error", role: "alert" });
  const texts = () => encode(getTraits(model, names), initial);
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
  const host = location.protocol.startsWith("http") ? el.closest("[data-embed]") : null;
  const embed =
    host &&
    copyButton("embed code", () => {
      const url = new URL(host.dataset.embed, location.href);
      for (const [name, text] of Object.entries(texts()))
        url.searchParams.set(name ? `${prefix}.${name}` : prefix, text);
      const source = `src="${url.href.replaceAll("&", "&amp;")}" title="A lab of Transformer Lab"`;
      return `<iframe ${source} width="100%" height="${el.offsetHeight + 40}" style="border: 0"></iframe>`;
    });
  if (!address) {
    observe(model, names, copy.clear);
    return { error: [], nodes: copy.nodes };
  }
  const params = address.read();
  if (!wasDrawn && Object.keys(params).length) {
    const { state, error } = decode(params);
    if (state) commit(model, state);
    if (error) setText(urlError, `The lab ignores part of the address: ${error}.`);
  }
  const startTexts = texts();

  // The URL is written after a delay, and never during a drag: browsers limit how often a page may change its URL.
  let timer = null;
  let pressed = false;
  const write = () => {
    const stepping = el.dataset.stepping !== undefined; // the page steps through the lab's states
    if (!pressed && !stepping && !urlError.textContent) address.write(texts());
  };
  const defer = () => {
    clearTimeout(timer);
    timer = setTimeout(write, 250);
  };
  el.addEventListener("pointerdown", () => {
    pressed = true;
  });
  for (const type of ["pointerup", "pointercancel"]) {
    addEventListener(type, () => {
      if (pressed) defer();
      pressed = false;
    });
  }
  observe(model, names, () => {
    copy.clear();
    if (embed) embed.clear();
    if (!deepEqual(texts(), startTexts)) setText(urlError, "");
    defer();
  });
  return { error: urlError, nodes: [...copy.nodes, ...(embed ? embed.nodes : [])] };
}
