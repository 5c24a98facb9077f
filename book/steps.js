// The first lab of a chapter steps through three states as the reader scrolls past the lab, and highlights the words
// for each state: see steps.py. A touch, a click or a key press in the lab stops the steps; there are no steps if the
// reader prefers reduced motion, or if the address contains a state.
(() => {
  // A step begins when the lab's top is this many per cent of the window's height above the window's lower edge.
  const TRIGGER_PERCENTS = [35, 60, 85];

  // The range of the given words in a section; there may be markup between the words.
  function rangeOf(words, section) {
    const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
    const nodes = [];
    let sectionText = "";
    while (walker.nextNode()) {
      if (walker.currentNode.parentElement.closest("script, .tl-lab, .drawn-lab")) continue;
      nodes.push([sectionText.length, walker.currentNode]);
      sectionText += walker.currentNode.nodeValue.replace(/\s/g, " ");
    }
    const begin = sectionText.indexOf(words);
    if (begin < 0) return null;
    const entryAt = (index) => nodes.findLast(([from]) => from <= index);
    const range = new Range();
    const [first, last] = [entryAt(begin), entryAt(begin + words.length - 1)];
    range.setStart(first[1], begin - first[0]);
    range.setEnd(last[1], begin + words.length - last[0]);
    return range;
  }

  function startSteps(lab, model, stepsBox) {
    /** @type {[string, Record<string, any>][]} */
    const steps = JSON.parse(stepsBox.dataset.steps);
    const names = steps.flatMap(([, traits]) => Object.keys(traits));
    const initialValues = Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const isPlainObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    const status = lab.querySelector("[role=status]");
    let shownStep = -1;

    function show(step) {
      if (step === shownStep) return;
      shownStep = step;
      const [words, traits] = steps[step] ?? ["", {}];
      for (const [name, initial] of Object.entries(initialValues)) {
        const value = traits[name];
        model.set(name, isPlainObject(initial) ? { ...initial, ...value } : (value ?? initial));
      }
      const range = words && rangeOf(words, stepsBox.closest("section"));
      CSS.highlights.set("tl-lit", new Highlight(...(range ? [range] : [])));
    }

    // During the steps, the page's address does not change, and the lab announces nothing, since announcements would
    // interrupt a screen reader.
    status.setAttribute("aria-live", "off");
    lab.dataset.stepping = "";
    const passed = TRIGGER_PERCENTS.map(() => false);
    const watchers = TRIGGER_PERCENTS.map((percent, i) => {
      const watcher = new IntersectionObserver(
        ([entry]) => {
          if (!entry.isIntersecting && entry.boundingClientRect.bottom < 0) return; // the lab is above the window
          passed[i] = entry.isIntersecting;
          show(passed.lastIndexOf(true));
        },
        { rootMargin: `0px 0px -${percent}% 0px` },
      );
      watcher.observe(stepsBox);
      return watcher;
    });
    const stopSteps = () => {
      for (const watcher of watchers) watcher.disconnect();
      for (const kind of ["pointerdown", "keydown"]) lab.removeEventListener(kind, stopSteps, true);
      CSS.highlights.delete("tl-lit");
      status.setAttribute("aria-live", "polite");
      delete lab.dataset.stepping;
    };
    for (const kind of ["pointerdown", "keydown"]) lab.addEventListener(kind, stopSteps, true);
  }

  document.addEventListener("lab-ready", (event) => {
    const { target: lab, detail: model } = /** @type {CustomEvent} */ (event);
    const stepsBox = lab instanceof HTMLElement && lab.closest("[data-steps]");
    const isMotionReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (stepsBox && !isMotionReduced && !location.search && CSS.highlights) startSteps(lab, model, stepsBox);
  });
})();
