// Shows the lab that the address names: see book/embed.py.
(() => {
  const place = document.querySelector("main");
  const name = new URLSearchParams(location.search).get("lab") ?? "";

  function load(file, then) {
    const script = Object.assign(document.createElement("script"), { src: `_static/${file}`, onload: then });
    script.onerror = () => {
      place.textContent = "There is no lab of this name.";
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
    const from = document.createElement("p");
    from.append("From ", link);
    place.append(dataScript("state", state), box, from);
    load("mount.js");
  }

  if (/^[\w-]+$/.test(name)) load(`embed/${name}.js`, show);
  else place.textContent = "The address names no lab.";
})();
