// Progress, cancelling and copying. Every page works without this file.
let asking = null;
const unanswered = document.createElement("p");
Object.assign(unanswered, { className: "notice", role: "alert", textContent: "The explorer does not answer. Wait a few seconds and try again." });
document.addEventListener("htmx:before:request", (event) => { asking = event.detail.ctx.sourceElement; unanswered.remove(); });
document.addEventListener("htmx:error", () => document.getElementById("content").prepend(unanswered));
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
