// htmx that never compiles a text: what its attributes may hold of JavaScript (`hx-on`, `js:`, filters
// of triggers) throws here, and is no violation of the Content-Security-Policy either.
import htmx from "htmx.org/dist/htmx.esm.js";

function refuse() {
  throw new Error("htmx: attributes hold no JavaScript on these pages. Write it into a script file.");
}

htmx.registerExtension("no-eval", {
  init: (api) => api.initSecurity(undefined, refuse, refuse),
});
window.htmx = htmx;
