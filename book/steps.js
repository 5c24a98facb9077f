// The first lab of a chapter steps through three states as the reader scrolls past the lab, and highlights the words
// for each state: see steps.py. A touch, a click or a key press in the lab stops the steps; there are no steps under
// reduced motion, or if the address contains a state.
(() => {
  const LINES = [35, 60, 85]; // a step begins when the lab's top is this many per cent above the window's lower edge

  // The range of these words in a section; there may be markup between the words.
  function rangeOf(words, section) {
    const texts = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
    const nodes = [];
    let all = "";
    while (texts.nextNode()) {
      if (texts.currentNode.parentElement.closest("script, .tl-lab, .lab-place")) continue;
      nodes.push([all.length, texts.currentNode]);
      all += texts.currentNode.nodeValue.replace(/\s/g, " ");
    }
    const begin = all.indexOf(words);
    if (begin < 0) return null;
    const at = (place) => nodes.findLast(([from]) => from <= place);
    const range = new Range();
    const [first, last] = [at(begin), at(begin + words.length - 1)];
    range.setStart(first[1], begin - first[0]);
    range.setEnd(last[1], begin + words.length - last[0]);
    return range;
  }

  function follow(lab, model, labBox) {
    /** @type {[string, Record<string, any>][]} */
    const steps = JSON.parse(labBox.dataset.steps);
    const names = steps.flatMap(([, traits]) => Object.keys(traits));
    const began = Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    const status = lab.querySelector("[role=status]");
    let shown = -1;

    function show(step) {
      if (step === shown) return;
      shown = step;
      const [words, traits] = steps[step] ?? ["", {}];
      for (const [name, first] of Object.entries(began)) {
        const value = traits[name];
        model.set(name, isTable(first) ? { ...first, ...value } : (value ?? first));
      }
      const range = words && rangeOf(words, labBox.closest("section"));
      CSS.highlights.set("tl-lit", new Highlight(...(range ? [range] : [])));
    }

    // During the steps, the lab makes no announcements, which would interrupt a reader, and does not change the page's
    // address.
    status.setAttribute("aria-live", "off");
    lab.dataset.stepping = "";
    const passed = LINES.map(() => false);
    const watchers = LINES.map((line, i) => {
      const watcher = new IntersectionObserver(
        ([entry]) => {
          if (!entry.isIntersecting && entry.boundingClientRect.bottom < 0) return; // the lab is above the window
          passed[i] = entry.isIntersecting;
          show(passed.lastIndexOf(true));
        },
        { rootMargin: `0px 0px -${line}% 0px` },
      );
      watcher.observe(labBox);
      return watcher;
    });
    const end = () => {
      for (const watcher of watchers) watcher.disconnect();
      for (const kind of ["pointerdown", "keydown"]) lab.removeEventListener(kind, end, true);
      CSS.highlights.delete("tl-lit");
      status.setAttribute("aria-live", "polite");
      delete lab.dataset.stepping;
    };
    for (const kind of ["pointerdown", "keydown"]) lab.addEventListener(kind, end, true);
  }

  document.addEventListener("lab-ready", (event) => {
    const { target: lab, detail: model } = /** @type {CustomEvent} */ (event);
    const labBox = lab instanceof HTMLElement && lab.closest("[data-steps]");
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (labBox && !still && !location.search && CSS.highlights) follow(lab, model, labBox);
  });
})();
