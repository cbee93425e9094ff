// Slow searches, menus, keys. Every page works without this file.
const byId = (id) => document.getElementById(id);
let asking = null, since = 0, clock = null;

function wait(on) {
  clearInterval(clock);
  const progress = byId("progress"), page = byId("page");
  if (!progress) return;
  if (!on) { progress.hidden = true; page.inert = false; page.classList.remove("busy"); return; }
  since = Date.now();
  clock = setInterval(() => {
    progress.hidden = false; page.inert = true; page.classList.add("busy");
    byId("seconds").textContent = `${Math.round((Date.now() - since) / 1000)} s.`;
  }, 1000);
}
const isQuiet = (event) => event.detail?.ctx?.sourceElement?.dataset?.quiet !== undefined;

document.addEventListener("htmx:before:request", (event) => {
  if (isQuiet(event)) return;
  asking = event.detail.ctx.sourceElement;
  byId("unanswered").hidden = true;
  wait(true);
});
for (const name of ["htmx:after:request", "htmx:finally:request", "htmx:abort"]) {
  document.addEventListener(name, (event) => { if (!isQuiet(event)) wait(false); });
}
document.addEventListener("htmx:error", (event) => {
  if (isQuiet(event)) return;
  wait(false);
  byId("unanswered").hidden = false;
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  if (event.target.id === "cancel" && asking) { htmx.trigger(asking, "htmx:abort"); wait(false); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); } else if (clock && asking) { htmx.trigger(asking, "htmx:abort"); wait(false); }
  }
  if (event.target.closest("input, select, textarea, pre") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "/" && byId("q")) { event.preventDefault(); byId("q").focus(); }
  const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const bar = document.activeElement.closest?.(".frise svg a");
  if (!rel) return;
  if (bar) {
    const bars = [...bar.closest("svg").querySelectorAll("a[aria-label]")];
    bars[bars.indexOf(bar) + (rel === "next" ? 1 : -1)]?.focus();
  } else if (!document.activeElement.closest?.(".wide")) document.querySelector(`.crumbs [rel=${rel}]`)?.click();
});
// A new page begins at its heading, for the keyboard and for screen readers.
document.addEventListener("htmx:after:settle", (event) => {
  if (isQuiet(event)) return;
  const heading = document.querySelector("main [role=alert]:not([hidden])") ?? document.querySelector("main h1");
  if (heading) { heading.tabIndex = -1; heading.focus({ preventScroll: true }); }
});
