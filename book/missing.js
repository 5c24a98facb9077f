// The page that is shown if an address does not exist: its search field contains the words of the address.
(() => {
  /** @type {HTMLInputElement} */
  const field = document.querySelector(".tl-missing input");
  const last = location.pathname.split("/").findLast(Boolean) ?? "";
  field.value = last
    .replace(/\.\w+$/, "")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => /\p{L}/u.test(word))
    .join(" ");
})();
