// Progress, cancelling and copying. Every page works without this file.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "cancel") {
    for (const element of document.querySelectorAll(".htmx-request")) {
      htmx.trigger(element, "htmx:abort");
    }
    htmx.trigger(document.body, "htmx:abort");
  } else if (button.dataset.copy) {
    const text = document.getElementById(button.dataset.copy).textContent;
    navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; });
  }
});
// A new page begins at its heading, for the keyboard and for screen readers.
document.addEventListener("htmx:after:settle", () => {
  const heading = document.querySelector("main h1");
  if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
});
