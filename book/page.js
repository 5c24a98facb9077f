// Small additions to the theme: scrolling by keyboard, and fold-outs in print.

// Creates an element; later scripts use this function.
// biome-ignore lint/correctness/noUnusedVariables: other scripts use it
function makeElement(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

(() => {
  // Makes wide formulas, tables and figures focusable, so that they can be scrolled by keyboard.
  const WIDE = ".formula, .pst-scrollable-table-container, .tl-wide-figure";
  function updateFocusable() {
    /** @type {NodeListOf<HTMLElement>} */
    const boxes = document.querySelectorAll(WIDE);
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
      markOverflow(box);
    }
  }
  // Marks elements that overflow to the right: style.css fades out their right edge.
  function markOverflow(box) {
    box.toggleAttribute("data-goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  }
  const onScroll = ({ target }) => target instanceof Element && target.matches(WIDE) && markOverflow(target);
  document.addEventListener("scroll", onScroll, { capture: true, passive: true });
  window.addEventListener("load", updateFocusable);
  window.addEventListener("resize", updateFocusable);
  document.addEventListener("toggle", updateFocusable, true);

  // Opens all fold-outs before printing.
  window.addEventListener("beforeprint", () => {
    /** @type {NodeListOf<HTMLDetailsElement>} */
    const closed = document.querySelectorAll("details:not([open])");
    for (const fold of closed) fold.open = true;
    const closeAgain = () => {
      for (const fold of closed) fold.open = false;
    };
    window.addEventListener("afterprint", closeAgain, { once: true });
  });
})();
