// What the theme leaves to be done in the browser.
(() => {
  // A formula or table that is wider than its column can be scrolled by keyboard.
  const WIDE = ".formula, .pst-scrollable-table-container";
  function reach() {
    /** @type {NodeListOf<HTMLElement>} */
    const boxes = document.querySelectorAll(WIDE);
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  // A closed fold-out would be missing on paper.
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
