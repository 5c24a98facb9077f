// The frame around every lab: title, status line, footer.

import { shareControls } from "./address.js";
import { button, commit, element, getTraits, reservedBox } from "./ui.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./ui.js").View} View */

// The values of each lab's traits at the time its first view was drawn. Reset restores these values.
const initialTraits = new WeakMap();

// Draws a lab: its title, its body, a status line that describes what is shown, and a footer with Copy and Reset.
// `traits` lists the traits that the reader sets, either by name or as a description of how the URL stores them.
/** @typedef {import("./address.js").UrlState} UrlState */
/**
 * @type {(view: View, name: string, title: string, traits: string[] | UrlState, ...body: any[]) =>
 *   Record<"lab" | "status", HTMLElement>}
 */
export function frame({ model, el }, name, title, traits, ...body) {
  const urlState = Array.isArray(traits) ? { names: traits } : traits;
  const wasDrawn = initialTraits.has(model);
  if (!wasDrawn) initialTraits.set(model, getTraits(model, urlState.names));
  const initial = initialTraits.get(model);
  const status = element("p", { role: "status", "aria-live": "polite" });
  const reset = () => {
    commit(model, initial);
    for (const input of lab.querySelectorAll(".tl-input")) input.dispatchEvent(new Event("tl-reset"));
  };
  const { error, nodes } = shareControls(model, el, urlState, { initial, wasDrawn });
  const lab = element(
    "div",
    { class: `tl-lab tl-${name}`, role: "group", "aria-label": `Lab: ${title}` },
    element("p", { class: "tl-title" }, title),
    error,
    ...body,
    reservedBox(status, "tl-status"),
    element("div", { class: "tl-foot" }, nodes, button("Reset", reset, { class: "tl-reset" })),
  );
  const controls = model.get("controls");
  for (const node of controls ? lab.querySelectorAll("[data-group]") : []) {
    if (!controls.includes(node.dataset.group)) node.remove();
  }
  el.append(lab);
  return { lab, status };
}
