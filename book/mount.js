// Brings the labs of a published page to life, with no kernel behind them and no request to anywhere.
//
// The page holds the state of its widgets as JSON, and where each one stands. For each lab this script imports the lab's own
// code out of that state and gives it a model with the four methods that a lab uses: get, set, on/off, save_changes.
(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';

  // A model: named values and those who listen to them. Two views of one lab share it, and so stay in step.
  function createModel(values) {
    const listeners = {};
    return {
      get: (name) => values[name],
      set(name, value) {
        if (values[name] === value) return;
        values[name] = value;
        for (const listener of listeners[`change:${name}`] ?? []) listener();
      },
      on: (event, listener) => (listeners[event] ??= new Set()).add(listener),
      off: (event, listener) => listeners[event]?.delete(listener),
      save_changes() {},
    };
  }

  // The same code serves all labs of a kind: one import for each text.
  const imports = new Map();
  function importText(text) {
    if (!imports.has(text)) {
      const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      imports.set(text, import(url).then((module) => module.default).finally(() => URL.revokeObjectURL(url)));
    }
    return imports.get(text);
  }

  const styles = new Set();
  function addStyle(text) {
    if (!text || styles.has(text)) return;
    styles.add(text);
    document.head.append(Object.assign(document.createElement("style"), { textContent: text }));
  }

  async function mount(view, model, code, style) {
    const place = document.createElement("div");
    view.after(place);
    try {
      addStyle(style);
      const lab = await importText(code);
      await lab.render({ model, el: place });
      place.dataset.lab = "ready";
    } catch (error) {
      place.dataset.lab = "failed";
      place.textContent = "This live figure could not start in this browser. Everything else on the page works without it.";
      console.error(error);
    }
  }

  const readStates = () => [...document.querySelectorAll(STATE)].map((script) => JSON.parse(script.textContent).state);

  function mountAll() {
    const models = new Map();
    const states = readStates();
    for (const view of document.querySelectorAll(VIEW)) {
      const id = JSON.parse(view.textContent).model_id;
      const state = states.find((state) => id in state)?.[id].state;
      if (!state?._esm) continue;
      if (!models.has(id)) models.set(id, createModel(state));
      mount(view, models.get(id), state._esm, state._css);
    }
  }

  if (document.readyState !== "loading") return mountAll();
  // The code is loaded while the page is still being read, and the labs are drawn as soon as it has been: before the deferred
  // scripts run, and with them MathJax, which takes its time.
  for (const { state } of readStates().flatMap(Object.values)) if (state._esm) importText(state._esm).catch(() => {});
  document.addEventListener("readystatechange", mountAll, { once: true });
})();
