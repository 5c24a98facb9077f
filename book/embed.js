// Shows the lab that the address names: see book/embed.py.
(() => {
  const main = document.querySelector("main");
  const name = new URLSearchParams(location.search).get("lab") ?? "";

  function load(file, whenLoaded) {
    const script = Object.assign(document.createElement("script"), { src: `_static/${file}`, onload: whenLoaded });
    script.onerror = () => {
      main.textContent = "There is no lab with this name.";
    };
    document.body.append(script);
  }
  function dataScript(kind, value) {
    const type = `application/vnd.jupyter.widget-${kind}+json`;
    return Object.assign(document.createElement("script"), { type, textContent: JSON.stringify(value) });
  }

  function show() {
    const { state, view, page } = window.EMBEDDED;
    const box = document.createElement("div");
    box.append(dataScript("view", view));
    const link = document.createElement("a");
    Object.assign(link, { href: page, target: "_top", textContent: "Transformer Lab" });
    const source = document.createElement("p");
    source.append("From ", link);
    main.append(dataScript("state", state), box, source);
    load("mount.js");
  }

  if (/^[\w-]+$/.test(name)) load(`embed/${name}.js`, show);
  else main.textContent = "The address names no lab.";
})();
