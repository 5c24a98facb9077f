// The frame of a lab.

import { handOn } from "./address.js";
import { button, commit, element, room, traitsOf } from "./ui.js";

/** @typedef {import("./ui.js").Model} Model */
/** @typedef {import("./ui.js").View} View */

// What each lab was when its first view was drawn: there Reset leads.
const beginnings = new WeakMap();

// The frame of a lab: its title, a body, one sentence that says in words what is shown, and last a way to hand the
// state on and one back to the beginning. `traits` are what the reader sets: their names, or how the address holds
// them.
/**
 * @type {(view: View, name: string, title: string, traits: string[] | import("./address.js").Kept, ...body: any[]) =>
 *   Record<"lab" | "status", HTMLElement>}
 */
export function frame({ model, el }, name, title, traits, ...body) {
  const kept = Array.isArray(traits) ? { names: traits } : traits;
  const again = beginnings.has(model);
  if (!again) beginnings.set(model, traitsOf(model, kept.names));
  const first = beginnings.get(model);
  const status = element("p", { role: "status", "aria-live": "polite" });
  const putBack = () => {
    commit(model, first);
    for (const input of lab.querySelectorAll(".tl-input")) input.dispatchEvent(new Event("tl-reset"));
  };
  const { complaint, nodes } = handOn(model, el, kept, { first, again });
  const lab = element(
    "div",
    { class: `tl-lab tl-${name}`, role: "group", "aria-label": `Lab: ${title}` },
    element("p", { class: "tl-title" }, title),
    complaint,
    ...body,
    room(status, "tl-status"),
    element("div", { class: "tl-foot" }, nodes, button("Reset", putBack, { class: "tl-reset" })),
  );
  const controls = model.get("controls");
  for (const node of controls ? lab.querySelectorAll("[data-group]") : []) {
    if (!controls.includes(node.dataset.group)) node.remove();
  }
  el.append(lab);
  return { lab, status };
}
