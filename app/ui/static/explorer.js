// Progress, cancelling and copying. Every page works without this file.
let asking = null;
document.addEventListener("htmx:before:request", (event) => { asking = event.detail.ctx.sourceElement; });
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "cancel" && asking) htmx.trigger(asking, "htmx:abort");
  if (button.dataset.copy) {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  }
});
// A new page begins at its heading, for the keyboard and for screen readers.
document.addEventListener("htmx:after:settle", () => {
  const heading = document.querySelector("main h1");
  if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
});
