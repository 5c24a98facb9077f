// Runs the labs of a published page, without a kernel and without requests to other hosts.
//
// The page contains the state of its widgets as JSON, and a script element at the position of each view. For each lab
// this script imports the lab's code from that state, and passes the code a model with the methods that labs use: get,
// set, on, off, save_changes, load.
(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';

  // A model: named values and listeners. Two views of one lab share one model, so they stay synchronized. `load`
  // fetches a value that is stored in a file.
  function createModel(values) {
    const listeners = {};
    return {
      get: (name) => values[name],
      set(name, value) {
        if (values[name] === value) return;
        values[name] = value;
        for (const listener of listeners[`change:${name}`] ?? []) listener();
      },
      on(event, listener) {
        listeners[event] ??= new Set();
        listeners[event].add(listener);
      },
      off: (event, listener) => listeners[event]?.delete(listener),
      save_changes() {},
      load: (reference) => fetchText(reference).then(JSON.parse),
    };
  }

  // A lab's code is inline text, or is stored in a file in the folder of this script: see book/widget_state.py.
  /** @type {any} */
  const { currentScript } = document;
  const SCRIPT_URL = currentScript.src || document.baseURI;
  const isInFile = (code) => typeof code !== "string";
  function fetchText({ file }) {
    return new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: new URL(file, SCRIPT_URL).href });
      script.onload = () => resolve(window.labScripts[file]);
      script.onerror = () => reject(new Error(`${script.src} could not be read`));
      document.head.append(script);
    });
  }

  async function importText(code) {
    const text = isInFile(code) ? await fetchText(code) : code;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    return import(url).then((module) => module.default).finally(() => URL.revokeObjectURL(url));
  }

  // Labs of one kind share their code, which is imported once.
  const imports = new Map();
  function importOnce(code) {
    if (!imports.has(code)) imports.set(code, importText(code));
    return imports.get(code);
  }

  const styles = new Set();
  function addStyle(text) {
    if (!text || styles.has(text)) return;
    styles.add(text);
    document.head.append(Object.assign(document.createElement("style"), { textContent: text }));
  }

  // The large values of a lab are in files, unless the lab is the first on its page.
  const isLarge = (value) => Boolean(value?.file);
  async function fetchLargeValues(model, state) {
    const names = Object.keys(state).filter((name) => name !== "_esm" && isLarge(state[name]));
    await Promise.all(names.map(async (name) => model.set(name, await model.load(state[name]))));
  }

  async function mount(view, model, state) {
    const container = document.createElement("div");
    view.after(container);
    try {
      addStyle(state._css);
      const [lab] = await Promise.all([importOnce(state._esm), fetchLargeValues(model, state)]);
      await lab.render({ model, el: container });
      container.dataset.lab = "ready";
      view.parentElement.classList.replace("lab-placeholder", "drawn-lab"); // from now on, the lab sets its height
      container.dispatchEvent(new CustomEvent("lab-ready", { bubbles: true, detail: model })); // for steps.js
    } catch (error) {
      container.dataset.lab = "failed";
      container.textContent =
        "This live figure could not start in this browser. Everything else on the page works without it.";
      console.error(error);
    }
  }

  // The data of a script element; null while the parser has read only the element's beginning.
  function parse(script) {
    try {
      return JSON.parse(script.textContent);
    } catch {
      return null;
    }
  }

  const states = new Map();
  const models = new Map();
  const seenScripts = new WeakSet();
  function* unseenScripts(selector) {
    for (const script of document.querySelectorAll(selector)) {
      const data = !seenScripts.has(script) && parse(script);
      if (data) yield [script, data];
    }
  }

  // Labs near the viewport are drawn at once; other labs are drawn when they come near, or after the page has been
  // parsed, nearest first. A file is fetched only for a lab near the viewport. An IntersectionObserver causes no
  // additional layouts.
  const waitingViews = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      const visible = new Set(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target));
      for (const view of [...waitingViews]) if (visible.has(view.parentElement)) mountView(view);
    },
    { rootMargin: "150% 0px" },
  );

  function mountView(view) {
    waitingViews.delete(view);
    observer.unobserve(view.parentElement);
    const { model_id: id } = parse(view);
    mount(view, models.get(id), states.get(id));
  }

  function mountWaiting() {
    const distance = (view) => Math.abs(view.parentElement.getBoundingClientRect().top);
    const ready = [...waitingViews].filter((view) => !Object.values(states.get(parse(view).model_id)).some(isLarge));
    const [nearest] = ready.sort((a, b) => distance(a) - distance(b));
    if (!nearest) return;
    mountView(nearest);
    setTimeout(mountWaiting); // one at a time, so that the page can handle events between two labs
  }

  function mountParsed() {
    for (const [script, data] of unseenScripts(STATE)) {
      seenScripts.add(script);
      for (const [id, { state }] of Object.entries(data.state)) {
        if (!state._esm) continue;
        // A text that several labs share is on the page only once: see book/widget_state.py.
        for (const name of ["_esm", "_css"]) state[name] = data.state[state[name]?.as]?.state[name] ?? state[name];
        states.set(id, state);
        models.set(id, createModel(state));
        // mount() reports the error at the lab's position.
        if (!isInFile(state._esm)) importOnce(state._esm).catch(() => {});
      }
    }
    for (const [view, { model_id: id }] of unseenScripts(VIEW)) {
      if (!models.has(id)) continue;
      seenScripts.add(view);
      waitingViews.add(view);
      observer.observe(view.parentElement);
    }
  }

  // A lab is drawn as soon as the parser has reached it, before the whole page is parsed.
  mountParsed();
  const parseObserver = new MutationObserver(mountParsed);
  parseObserver.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => {
    mountParsed();
    parseObserver.disconnect();
    mountWaiting();
  });
})();
