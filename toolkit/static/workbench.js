// The workbench: an editor of the mapping file, and panels that the server fills.
import * as cm from "./vendor/editor.js";

const body = document.body;
const state = document.getElementById("state");
const unmask = document.getElementById("unmask");
const $ = (selector) => document.querySelector(selector);
const send = (path, text, headers = {}) =>
  fetch(path, { method: "POST", body: text, headers: { "X-Workbench": "1", "Content-Type": "text/plain", ...headers } });

// --- completion and hover, from the JSON Schema of mapping files

// Not awaited: the page works before it is there.
let schema = { definitions: {} };
fetch("/schema.json").then((answer) => answer.json()).then((content) => { schema = content; });

/** The object schemas that a schema may mean. */
function meanings(node, seen = new Set()) {
  if (!node || typeof node !== "object" || seen.has(node)) return [];
  seen.add(node);
  const own = node.properties || node.additionalProperties || node.items || node.enum ? [node] : [];
  const target = node.$ref ? [schema.definitions[node.$ref.split("/").pop()]] : [];
  const parts = [...target, ...(node.allOf ?? []), ...(node.anyOf ?? []), ...(node.oneOf ?? []), node.then, node.else];
  return [...own, ...parts.flatMap((part) => meanings(part, seen))];
}

/** The keys above a line of YAML, by its indentation. */
function pathAt(doc, number) {
  const path = [];
  let depth = Infinity;
  for (let n = number; n > 0 && depth > 0; n--) {
    const match = /^(\s*(?:- )?)([\w.-]+)\s*:/.exec(doc.line(n).text);
    if (match && match[1].length < depth) {
      depth = match[1].length;
      path.unshift(match[2]);
    }
  }
  return path;
}

/** The schemas of the keys at a path: key -> description. */
function keysAt(path) {
  let nodes = meanings(schema);
  for (const key of path) {
    nodes = nodes.flatMap((node) => {
      const below = node.properties?.[key];
      const other = typeof node.additionalProperties === "object" ? node.additionalProperties : null;
      return [...meanings(below), ...(below ? [] : meanings(other)), ...(below ? [] : meanings(node.items))];
    });
    nodes = nodes.flatMap((node) => (node.items ? [node, ...meanings(node.items)] : [node]));
  }
  return nodes;
}

function complete(context) {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const key = /^(\s*(?:- )?)([\w.-]*)$/.exec(before);
  const value = /^(\s*(?:- )?)([\w.-]+):\s+([\w.-]*)$/.exec(before);
  if (value) {
    const options = keysAt(pathAt(context.state.doc, line.number)).flatMap((node) => node.enum ?? []);
    return options.length ? { from: context.pos - value[3].length, options: [...new Set(options)].map((label) => ({ label: String(label) })) } : null;
  }
  if (!key || (!key[2] && !context.explicit)) return null;
  const depth = key[1].length;
  let path = [];
  for (let n = line.number - 1; n > 0; n--) {
    const above = context.state.doc.line(n).text;
    if (above.trim() && above.search(/\S/) < depth) { path = pathAt(context.state.doc, n); break; }
  }
  const options = new Map();
  for (const node of keysAt(path)) {
    for (const [label, below] of Object.entries(node.properties ?? {})) options.set(label, below?.description);
  }
  return { from: context.pos - key[2].length, options: [...options].map(([label, info]) => ({ label, info, apply: `${label}: ` })) };
}

const hover = cm.hoverTooltip((view, position) => {
  const line = view.state.doc.lineAt(position);
  const match = /^(\s*(?:- )?)([\w.-]+)\s*:/.exec(line.text);
  if (!match || position - line.from > match[0].length) return null;
  const path = pathAt(view.state.doc, line.number);
  const key = path.pop();
  const text = keysAt(path).map((node) => node.properties?.[key]?.description).find(Boolean);
  if (!text) return null;
  return { pos: line.from + match[1].length, create: () => { const dom = document.createElement("p"); dom.className = "hover"; dom.textContent = text; return { dom }; } };
});

// --- the draft: checked 400 ms after the last keystroke

async function check(view) {
  const answer = await (await send("/draft", view.state.doc.toString())).json();
  $("#stale").hidden = !answer.stale;
  showProblems(answer.problems);
  showQuestions(answer.questions);
  if (state.textContent.startsWith("Changed") && !answer.stale) refresh();
  return answer.problems.map(({ line, column, message, severity }) => {
    const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
    return { from, to: Math.max(at.to, from), message, severity };
  });
}

const showCount = (name, number) => { $(`[data-count="${name}"]`).textContent = number ? `(${number})` : ""; };

function showProblems(problems) {
  $("#problems").replaceChildren(...problems.map(({ line, column, message }) => {
    const item = document.createElement("li");
    const go = document.createElement("button");
    go.type = "button"; go.className = "quiet"; go.dataset.go = line; go.textContent = `line ${line}:${column}`;
    item.append(go, ` ${message}`);
    return item;
  }));
  $("#no-problems").hidden = problems.length > 0;
  showCount("problems", problems.length);
}

let shownQuestions = null;
/** Show the questions anew where they have changed; the focus stays at the same one. */
async function showQuestions(questions) {
  const shown = JSON.stringify(questions) + $("#stale").hidden;
  if (shown === shownQuestions) return;
  shownQuestions = shown;
  showCount("questions", questions.length);
  const items = [...document.querySelectorAll("#panel-questions li")];
  const at = items.findIndex((item) => item.contains(document.activeElement));
  await fill("questions");
  if (at >= 0) $(`#panel-questions li:nth-child(${Math.min(at + 1, questions.length)}) button`)?.focus();
}

// --- the line of an element, and the elements of a line

const mark = cm.StateEffect.define();
const marked = cm.StateField.define({
  create: () => cm.Decoration.none,
  update(decorations, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(mark)) {
        const line = effect.value && effect.value <= transaction.state.doc.lines ? transaction.state.doc.line(effect.value) : null;
        return line ? cm.Decoration.set([cm.Decoration.line({ class: "cm-of-element" }).range(line.from)]) : cm.Decoration.none;
      }
    }
    return decorations.map(transaction.changes);
  },
  provide: (field) => cm.EditorView.decorations.from(field),
});

let digest = body.dataset.digest;
const view = new cm.EditorView({
  parent: document.getElementById("editor"),
  doc: document.getElementById("text").value,
  extensions: [
    cm.setup(body.dataset.nonce),
    cm.mapping({}),
    cm.autocompletion({ override: [complete], icons: false }),
    cm.linter(check, { delay: 400 }),
    cm.lintGutter(),
    hover,
    marked,
    cm.EditorView.contentAttributes.of({ "aria-label": "Mapping file", tabindex: "0" }),
    cm.EditorView.domEventHandlers({
      mousemove: (event) => { highlight(view.state.doc.lineAt(view.posAtCoords(event, false)).number); },
    }),
    cm.keymap.of([{ key: "Mod-s", run: () => { save(); return true; } }]),
    cm.EditorView.updateListener.of((update) => {
      if (update.docChanged) state.textContent = "Changed, not saved";
      if (update.selectionSet) highlight(update.state.doc.lineAt(update.state.selection.main.head).number);
    }),
  ],
});

const markElements = (isOne) => {
  for (const row of document.querySelectorAll("tr[data-line]")) row.classList.toggle("of-line", isOne(row.dataset));
};
const highlight = (line) => markElements((row) => Number(row.line) === line);

function pointAt(row) {
  const columns = row ? row.dataset.columns.split(" ") : [];
  for (const cell of document.querySelectorAll("[data-column]")) {
    cell.classList.toggle("of-element", columns.includes(cell.dataset.column));
  }
  const line = row ? Number(row.dataset.line) : 0;
  const effects = [mark.of(line)];
  if (line) effects.push(cm.EditorView.scrollIntoView(view.state.doc.line(line).from, { y: "nearest", yMargin: 40 }));
  view.dispatch({ effects });
}

/** Put a text in place of the whole, as the smallest change: the cursor and undo stay right. */
function replaceText(text) {
  const old = view.state.doc.toString();
  const least = Math.min(old.length, text.length);
  let start = 0, end = 0;
  while (start < least && old[start] === text[start]) start++;
  while (end < least - start && old.at(-1 - end) === text.at(-1 - end)) end++;
  view.dispatch({ changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) } });
  return start;
}

/** Write into the editor what a person chose in a form. */
async function edit(form) {
  const content = new FormData(form);
  content.set("edit", form.dataset.edit);
  content.set("line", form.dataset.line);
  content.set("text", view.state.doc.toString());
  const response = await fetch("/edit", { method: "POST", body: content, headers: { "X-Workbench": "1" } });
  const { text, problem } = await response.json();
  $("#refused").hidden = response.ok;
  $("#refused").textContent = problem ?? "";
  if (!response.ok) return;
  const at = view.state.doc.lineAt(Math.min(replaceText(text), view.state.doc.length));
  view.dispatch({ effects: cm.EditorView.scrollIntoView(at.from, { y: "center" }) });
}

function go(line) {
  const at = view.state.doc.line(Math.min(line, view.state.doc.lines));
  view.dispatch({ selection: { anchor: at.from }, effects: cm.EditorView.scrollIntoView(at.from, { y: "center" }) });
  view.focus();
}

// --- saving

async function save(force = false) {
  if (force) digest = (await (await fetch("/version")).json()).digest;
  const answer = await send("/save", view.state.doc.toString(), { "If-Match": digest });
  const content = await answer.json();
  $("#elsewhere").hidden = answer.ok;
  if (!answer.ok) return false;
  digest = content.digest;
  state.textContent = "Saved";
  showRows(kind, 0);
  return true;
}

async function lookForOthers() {
  const now = (await (await fetch("/version")).json()).digest;
  $("#elsewhere").hidden = now === digest;
}
addEventListener("focus", lookForOthers);
addEventListener("beforeunload", (event) => { if (state.textContent.startsWith("Changed")) event.preventDefault(); });

// --- panels

let kind = "encounter";
const fill = (name, query = {}) => {
  const parameters = new URLSearchParams({ ...query, unmask: unmask.checked ? "1" : "" });
  // Each panel is a source of its own: htmx drops requests of one source that is busy.
  const panel = `#panel-${name}`;
  return htmx.ajax("GET", `/panel/${name}?${parameters}`, { source: panel, target: panel });
};
const fillCodes = () => fill("codes", { field: $("#coded")?.value ?? 0, labels: $("#labels")?.value ?? "" });
let shown = { kind, page: 0, source: 0 };
const showRows = (of, page, source = 0) => { kind = of; shown = { kind, page, source }; return fill("rows", shown); };
showRows(kind, 0);
unmask.addEventListener("change", () => { showRows(kind, 0); if (chosen) fill("resource", chosen); });
let chosen = null;
/** Show what the draft makes of the rows and of the chosen one. */
function refresh() {
  fill("rows", shown);
  if (chosen) fill("resource", chosen);
}

function press(button) {
  for (const other of button.closest("ul").querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const data = button.dataset;
  if (data.rows) { if (button.matches(".tab")) press(button); showRows(data.rows, data.page ?? 0, data.source ?? 0); }
  if (data.row) { chosen = { kind: data.kind, id: data.row }; fill("resource", chosen); }
  if (data.go) go(Number(data.go));
  if (data.tab) {
    press(button);
    for (const pane of document.querySelectorAll(".pane")) pane.hidden = pane.dataset.pane !== data.tab;
    if (data.tab === "codes") fillCodes();
  }
  if (data.codes) {
    $("[data-tab=codes]").click();
    await fill("codes", { field: data.codes });
    $("#panel-codes [name=word]")?.focus();
  }
  if (data.run && (await save())) fill(data.run);
  if (data.giveUp) $(`#panel-${data.giveUp}`).textContent = "Given up.";
  if ("copy" in data) { await navigator.clipboard.writeText(button.previousElementSibling.textContent); button.textContent = "Copied"; }
  if (button.id === "save") save();
  if (button.id === "overwrite") save(true);
  if (button.id === "reload") location.reload();
});

document.addEventListener("change", async ({ target }) => {
  if (target.id === "coded" && $("#labels")) $("#labels").value = "";
  if (!["coded", "labels"].includes(target.id)) return;
  await fillCodes();
  $(`#${target.id}`)?.focus();
});

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.id === "try") fill("try", { search: form.search.value });
  if (form.id === "one") { chosen = { kind, id: form.row.value }; fill("resource", chosen); }
  if (form.dataset.edit) edit(form);
});

document.addEventListener("mouseover", ({ target }) => {
  const cell = target.closest?.("[data-column]");
  if (cell) markElements((row) => row.columns.split(" ").includes(cell.dataset.column));
});
for (const [on, off] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
  document.addEventListener(on, (event) => { const row = event.target.closest?.("tr[data-line]"); if (row) pointAt(row); });
  document.addEventListener(off, (event) => { if (event.target.closest?.("tr[data-line]")) pointAt(null); });
}

// --- the sizes of the panes: dragged, or by the arrow keys

for (const split of document.querySelectorAll(".split")) {
  const main = $("main");
  const isWidth = split.ariaOrientation === "vertical";
  const resize = (percent) => {
    const size = Math.min(Math.max(percent, split.ariaValueMin), split.ariaValueMax);
    split.ariaValueNow = Math.round(size);
    main.style.setProperty(isWidth ? "--width" : "--height", `${size}fr`);
    main.style.setProperty(isWidth ? "--rest-of-width" : "--rest-of-height", `${100 - size}fr`);
  };
  split.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2 }[event.key];
    if (!step) return;
    event.preventDefault();
    resize(Number(split.ariaValueNow) + step);
  });
  split.addEventListener("pointerdown", (event) => { event.preventDefault(); split.setPointerCapture(event.pointerId); });
  split.addEventListener("pointermove", (event) => {
    if (!split.hasPointerCapture(event.pointerId)) return;
    const box = main.getBoundingClientRect();
    resize(isWidth ? (100 * (event.clientX - box.left)) / box.width : (100 * (event.clientY - box.top)) / box.height);
  });
}
