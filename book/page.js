// What the theme leaves to be done in the browser.
(() => {
  // A page on disk may not read other pages: there the search lists titles, without excerpts.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  // A formula or table that is wider than its column can be scrolled by keyboard.
  const WIDE = "mjx-container[display], .pst-scrollable-table-container";
  function reach() {
    for (const box of document.querySelectorAll(WIDE)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  // MathJax keeps a browser busy for a second. It begins once the page stands and its labs are drawn, and goes on a
  // few formulas at a time: whoever plays or scrolls meanwhile is answered in between.
  const AT_ONCE = 10;
  const leisure = () => new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(resolve));
  async function typeset() {
    const formulas = [...document.querySelectorAll(".math")];
    while (formulas.length) {
      await leisure();
      await MathJax.typesetPromise(formulas.splice(0, AT_ONCE));
    }
    reach();
  }
  window.addEventListener("load", async () => {
    const fetched = document.getElementById("mathjax");
    if (!fetched) return;
    MathJax.startup = { pageReady: typeset };
    await leisure();
    document.head.append(Object.assign(document.createElement("script"), { src: fetched.href }));
  });

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
