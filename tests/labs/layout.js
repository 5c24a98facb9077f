// Checks the layout of a page's labs: no text is cut off or overlaps another, and nothing moves that should not.
(() => {
  const rectOf = (node) => node.getBoundingClientRect();
  const isVisible = (node) => node.checkVisibility({ visibilityProperty: true });
  const nameOf = (node) => (node.getAttribute("aria-label") || node.textContent).slice(0, 60);

  // Every text must be inside its box, and every box inside its lab, except for scrolling boxes. Names of tokens, rows,
  // columns and segments of bars may be cut off, and so may texts that are only for screen readers.
  const SCROLLING = ".tl-grid, .tl-scroll, .tl-sum-of, .tl-matrix";
  const MAY_BE_CUT = [
    ".tl-heat, .tl-map, .tl-blend, .tl-piece, .tl-top-key, .tl-long, .tl-matrix, .tl-grid, option, svg",
    ".tl-whole > .tl-status",
  ].join();
  const NUMBERS = ".tl-cell, .tl-square";

  function findOutside() {
    const found = [];
    const range = document.createRange();
    const check = (node, rect, box, label) => {
      const lab = rectOf(node.closest(".tl-lab"));
      const isInLab = node.closest(SCROLLING) || (rect.left >= lab.left && rect.right <= lab.right);
      if (!isInLab || rect.left < box.left - 1 || rect.right > box.right + 1) found.push(label);
    };
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      /** @type {any} */
      const text = texts.currentNode;
      const node = text.parentNode;
      if (
        !text.data.trim() ||
        !node.closest(".tl-lab") ||
        !isVisible(node) ||
        (node.closest(MAY_BE_CUT) && !node.matches(NUMBERS))
      )
        continue;
      let box = node;
      while (getComputedStyle(box).display.startsWith("inline")) box = box.parentNode;
      range.selectNodeContents(text);
      for (const rect of range.getClientRects()) check(node, rect, rectOf(box), text.data);
    }
    for (const node of document.querySelectorAll(".tl-lab :is(button, input, select, svg, canvas, table, .tl-grid)")) {
      if (isVisible(node)) check(node, rectOf(node), rectOf(node), nameOf(node));
    }
    return found;
  }

  // The end of the lab, its controls and its pictures must not move. Exceptions are pictures of tensors, panels that
  // grow with these pictures, and the footer below.
  const GROWING = "div.tl-picture, .tl-side, .tl-before-after, .tl-foot";
  const PARTS = "button, input, select, svg, table, .tl-grid, .tl-matrix, .tl-sheet, .tl-label";

  const MAX_CELLS = 120; // the pointer visits at most so many cells, in even steps

  async function findMoved(pressed) {
    const lab = document.querySelector(".tl-lab");
    const found = [];
    const all = (selector) => [...lab.querySelectorAll(selector)].filter(isVisible);
    const topOf = (node) => rectOf(node).top - rectOf(lab).top;
    const positions = () => {
      const tops = new Map(lab.querySelector("div.tl-picture, .tl-side") ? [] : [[lab, rectOf(lab).height]]);
      for (const node of all(PARTS)) if (!node.closest(GROWING)) tops.set(node, topOf(node));
      return tops;
    };
    const waitForDrawing = async () => {
      for (let i = 0; i < 3; i++) await null;
    }; // a lab draws itself once for each batch of changes
    const checkPositions = async (before, label) => {
      await waitForDrawing();
      const after = positions();
      const moved = [...before].find(([node, top]) => after.has(node) && Math.abs(after.get(node) - top) > 0.5);
      if (moved) found.push(`${label}: ${nameOf(moved[0])} by ${after.get(moved[0]) - moved[1]}`);
    };
    const dispatchPointer = (kind, node, across, down) => {
      const { x, y, width, height } = rectOf(node);
      const at = { clientX: x + width * across, clientY: y + height * down };
      node.dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerType: "mouse", pointerId: 1, ...at }));
    };

    for (const slider of all("input[type=range]:not(:disabled)")) {
      const before = positions();
      const initialValue = slider.value;
      const [min, max] = [+slider.min, +slider.max];
      for (const fraction of [...Array(13).keys()].map((i) => i / 12)) {
        slider.value = min + (max - min) * fraction;
        slider.dispatchEvent(new Event("input"));
        await checkPositions(before, `${nameOf(slider)} at ${slider.value}`);
      }
      slider.value = initialValue;
      slider.dispatchEvent(new Event("input"));
      slider.dispatchEvent(new Event("change"));
      await waitForDrawing();
    }
    for (const handle of all(".tl-draggable")) {
      const before = positions();
      handle.setPointerCapture = () => {};
      dispatchPointer("pointerdown", handle, 0.5, 0.5);
      for (const fraction of [-1, -0.5, 1, 1.5, 2, 3, 0.5]) {
        dispatchPointer("pointermove", handle, fraction, 0.5);
        await checkPositions(before, `${nameOf(handle)}, dragged`);
      }
      dispatchPointer("pointerup", handle, 0.5, 0.5);
    }
    const before = positions();
    const cells = all(".tl-grid .tl-cell, .tl-matrix .tl-square, .tl-sheet");
    const stride = Math.ceil(cells.length / MAX_CELLS);
    for (const cell of cells.filter((_, i) => i % stride === 0)) {
      cell.scrollIntoView({ block: "nearest" });
      const fractions = cell.matches(".tl-sheet") ? [0.05, 0.35, 0.65, 0.95] : [0.5];
      for (const across of fractions) {
        for (const down of fractions) {
          dispatchPointer("pointermove", cell, across, down);
          await checkPositions(before, `pointer over ${nameOf(cell)}`);
        }
      }
    }
    for (const choice of all("[role=radio]")) {
      choice.click();
      await checkPositions(before, `${nameOf(choice)}, chosen`);
    }
    // A button must not move when it is pressed.
    for (const text of pressed) {
      const button = all("button").find((button) => button.textContent === text);
      const top = topOf(button);
      button.click();
      await waitForDrawing();
      if (Math.abs(topOf(button) - top) > 0.5) found.push(`${text}, pressed`);
    }
    return found;
  }

  // Finds labels that overlap, or that exceed the edge of their picture. Letters are lower than the box of their line,
  // so the boxes of adjacent lines may overlap a little.
  function findOverlaps() {
    /** @type {NodeListOf<SVGSVGElement>} */
    const pictures = document.querySelectorAll("svg.tl-picture");
    return [...pictures].flatMap((picture) => {
      const frame = rectOf(picture);
      const unit = frame.width / picture.viewBox.baseVal.width;
      const labels = [...picture.querySelectorAll("text")].filter((node) => node.textContent && isVisible(node));
      const areSeparate = (a, b) =>
        a.right + unit <= b.left ||
        b.right + unit <= a.left ||
        a.bottom - 4 * unit <= b.top ||
        b.bottom - 4 * unit <= a.top;
      const isInside = ({ left, right, top, bottom }) =>
        left >= frame.left - 1 && right <= frame.right + 1 && top >= frame.top - 1 && bottom <= frame.bottom + 1;
      return labels.flatMap((node, i) => [
        ...(isInside(rectOf(node)) ? [] : [`${nameOf(node)} beyond the edge`]),
        ...labels
          .slice(i + 1)
          .filter((other) => !areSeparate(rectOf(node), rectOf(other)))
          .map((other) => `${nameOf(node)} on ${nameOf(other)}`),
      ]);
    });
  }

  // Labs get a new width in the next frame, and draw in the one after it.
  const nextDrawing = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  Object.assign(globalThis, { nextDrawing, findOutside, findMoved, findOverlaps });
})();
