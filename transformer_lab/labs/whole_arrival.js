// On arrival, the model writes its answer once, word by word. With reduced motion, the finished answer is shown at
// once.

const WORD_MS = 250; // milliseconds per word

/**
 * Once `node` is visible, calls `show` with the number of each word in turn, and at the end with null. The first
 * press of a key or of the pointer ends the writing, and so does the returned function, which is called when the lab is
 * removed.
 * @type {(node: Element, words: () => number, show: (word: number | null) => void) => () => void}
 */
export function writeOnArrival(node, words, show) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return () => {};
  let timer = 0;
  let writes = false;
  const write = (word) => {
    if (word === words()) return end();
    show(word);
    timer = setTimeout(() => write(word + 1), WORD_MS);
  };
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    writes = true;
    write(0);
  });
  observer.observe(node);
  const end = () => {
    observer.disconnect();
    clearTimeout(timer);
    for (const type of ["pointerdown", "keydown", "input"]) node.removeEventListener(type, end, true);
    if (writes) show(null);
    writes = false;
  };
  for (const type of ["pointerdown", "keydown", "input"]) node.addEventListener(type, end, true);
  return end;
}
