// What the theme leaves to be done in the browser.
(() => {
  // A page on disk may not read other pages: there the search lists titles, without excerpts.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  // A formula or table that is wider than its column can be scrolled by keyboard.
  const WIDE = ".formula, .pst-scrollable-table-container";
  function reach() {
    for (const box of document.querySelectorAll(WIDE)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  // A closed fold-out would be missing on paper.
  window.addEventListener("beforeprint", () =>
    document.querySelectorAll("details:not([open])").forEach((fold) => {
      fold.open = true;
      window.addEventListener(
        "afterprint",
        () => {
          fold.open = false;
        },
        { once: true },
      );
    }),
  );
})();
