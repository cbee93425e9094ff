// The editor of mapping files: CodeMirror with YAML, and SQL inside `rows`.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { MSSQL, MySQL, PLSQL, PostgreSQL, SQLite, StandardSQL, sql } from "@codemirror/lang-sql";
import { yaml, yamlLanguage } from "@codemirror/lang-yaml";
import {
  LanguageSupport,
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  syntaxHighlighting,
  syntaxTree,
} from "@codemirror/language";
import { forceLinting, lintGutter, lintKeymap, linter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  ViewPlugin,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { parseMixed } from "@lezer/common";
import { classHighlighter } from "@lezer/highlight";

export {
  Compartment,
  Decoration,
  EditorState,
  EditorView,
  RangeSetBuilder,
  StateEffect,
  StateField,
  autocompletion,
  forceLinting,
  hoverTooltip,
  keymap,
  lintGutter,
  linter,
  setDiagnostics,
  sql,
  syntaxTree,
  yaml,
};

/** Dialects of SQL by the names that SQLAlchemy has for the databases. */
export const dialects = {
  mssql: MSSQL,
  mysql: MySQL,
  oracle: PLSQL,
  postgresql: PostgreSQL,
  sqlite: SQLite,
};

const STATEMENT = /^(\s|--.*\n)*(select|with)\b/i;

/** The value of a key `rows` that is a statement: its range without quotes, else null. */
function statement(node, input) {
  const block = node.name === "BlockLiteralContent";
  if (!block && node.name !== "Literal" && node.name !== "QuotedLiteral") return null;
  const pair = block ? node.node.parent.parent : node.node.parent;
  const key = pair?.name === "Pair" ? pair.getChild("Key") : null;
  if (!key || input.read(key.from, key.to) !== "rows") return null;
  const quote = node.name === "QuotedLiteral" ? 1 : 0;
  const range = { from: node.from + quote, to: node.to - quote };
  return range.from < range.to && STATEMENT.test(input.read(range.from, range.to)) ? range : null;
}

/**
 * The language of a mapping file: YAML, and SQL in each `rows` that is a statement.
 *
 * `dialect` is a name of `dialects`; `schema` maps tables to lists of columns, to complete them.
 */
export function mapping({ dialect, schema } = {}) {
  const inner = sql({ dialect: dialects[dialect] ?? StandardSQL, schema });
  const wrap = parseMixed((node, input) => {
    const range = statement(node, input);
    return range && { parser: inner.language.parser, overlay: [range] };
  });
  return new LanguageSupport(yamlLanguage.configure({ wrap }), inner.support);
}

// Without images: those of the package are data: addresses, which the pages' policy forbids.
const underlined = (color) => ({
  backgroundImage: "none",
  textDecoration: `underline wavy ${color}`,
  textUnderlineOffset: "3px",
});
const marker = (text, color) => ({ content: `"${text}"`, color, fontWeight: "bold", textAlign: "center" });
const ERROR = "light-dark(#b3261e, #ff8a80)";
const WARNING = "light-dark(#8a5300, #ffb74d)";
const INFO = "light-dark(#0550ae, #79c0ff)";
const theme = EditorView.theme({
  "&": { fontSize: "0.875rem" },
  ".cm-lintRange-error": underlined(ERROR),
  ".cm-lintRange-warning": underlined(WARNING),
  ".cm-lintRange-info": underlined(INFO),
  ".cm-lintRange-hint": underlined(INFO),
  ".cm-lint-marker-error": marker("✕", ERROR),
  ".cm-lint-marker-warning": marker("!", WARNING),
  ".cm-lint-marker-info": marker("i", INFO),
  ".tok-propertyName": { color: "light-dark(#0550ae, #79c0ff)" },
  ".tok-keyword": { color: "light-dark(#6639ba, #d2a8ff)" },
  ".tok-string, .tok-string2": { color: "light-dark(#116329, #7ee787)" },
  ".tok-number, .tok-bool, .tok-typeName": { color: "light-dark(#953800, #ffa657)" },
  ".tok-comment, .tok-meta": { color: "light-dark(#57606a, #9aa4af)" },
  ".tok-invalid": { color: ERROR },
});

/** Dark while the page is: CodeMirror's own colours follow the preference of the browser. */
function colourScheme() {
  const preference = matchMedia("(prefers-color-scheme: dark)");
  const dark = new Compartment();
  const current = () => EditorView.darkTheme.of(preference.matches);
  const follow = ViewPlugin.define((view) => {
    const change = () => view.dispatch({ effects: dark.reconfigure(current()) });
    preference.addEventListener("change", change);
    return { destroy: () => preference.removeEventListener("change", change) };
  });
  return [dark.of(current()), follow];
}

/** What every editor here has; `nonce` is that of the page's policy for styles. Tab leaves the editor. */
export function setup(nonce) {
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    foldGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightSelectionMatches(),
    syntaxHighlighting(classHighlighter),
    theme,
    colourScheme(),
    keymap.of([
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...completionKeymap,
      ...lintKeymap,
    ]),
  ];
}
