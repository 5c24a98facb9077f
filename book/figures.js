// A figure is a link to its picture. This script opens the picture over the page, as large as the window allows.
(() => {
  /** @type {HTMLDialogElement} */
  let dialog;
  function makeDialog() {
    dialog = document.createElement("dialog");
    dialog.className = "tl-enlarged";
    const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
    const picture = Object.assign(document.createElement("div"), { className: "tl-picture", tabIndex: 0 });
    dialog.append(close, picture);
    close.addEventListener("click", () => dialog.close());
    // A click beside the picture also closes the dialog; Escape needs no code.
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    document.body.append(dialog);
  }

  document.addEventListener("click", (event) => {
    const { target } = event;
    const link = target instanceof Element ? target.closest("a.tl-enlarge") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!dialog) makeDialog();
    const image = /** @type {HTMLImageElement} */ (link.querySelector("img").cloneNode());
    image.loading = "eager";
    const { naturalWidth, naturalHeight } = link.querySelector("img");
    // The picture is enlarged to at most twice its natural width: more would blur it. On a phone, the picture scrolls.
    const fitWidth = Math.min(0.92 * innerWidth, (0.92 * innerHeight - 80) * (naturalWidth / naturalHeight));
    image.style.width = `${Math.round(Math.max(naturalWidth, Math.min(fitWidth, 2 * naturalWidth)))}px`;
    dialog.querySelector(".tl-picture").replaceChildren(image);
    dialog.setAttribute(
      "aria-label",
      link.parentElement.querySelector(".tl-figure-caption strong")?.textContent ?? "Figure",
    );
    dialog.showModal();
  });
})();
