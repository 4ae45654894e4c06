// Code blocks: their language, and their text without line numbers and buttons.

const hasFewChildren = (element) => {
  let child = firstElement(element);
  for (let step = 0; child && step < 6; step += 1) child = nextSiblingElement(child);
  return child === null;
};
const LANGUAGE = /(?:^|\s)(?:lang(?:uage)?[-:_]|highlight-(?:source|text)-|code-lang-|brush:\s*|sourceCode\s+)([\w+#-]{1,30})/i;
const LANGUAGES = new Set(
  ('abap actionscript ada agda apache applescript arduino asciidoc asm assembly awk bash basic batch bat c clojure cmake cmd cobol coffeescript console coq cpp c++ crystal cs csharp css csv cuda cython d dart diff ' +
  'dockerfile docker elixir elm emacs-lisp erlang fish fortran fsharp gherkin glsl go golang gradle graphql groovy haml handlebars haskell hcl hlsl html http idris ini java javascript js json json5 jsonc jsx julia kotlin latex lean ' +
  'less lisp lua makefile markdown mathematica matlab md mermaid mojo nasm nginx nim nix objectivec objective-c ocaml odin pascal perl php plaintext plsql powershell prolog properties protobuf proto ps1 puppet purescript python py ' +
  'r racket rb reason rego rescript rs ruby rust sas sass scala scheme scss sed sh shell shell-session smalltalk solidity sparql sql stylus svelte swift systemverilog tcl terraform tex text toml ts tsx twig typescript typst v vb verilog vhdl vim ' +
  'vue wasm wgsl xml xquery yaml yml zig zsh').split(' '),
);
const LANGUAGE_ATTRIBUTES = ['data-lang', 'data-language', 'data-code-language', 'data-code-lang', 'lang', 'language'];
const CODE_NAMES = /(?:^|[\s_-])(?:hljs|hl|highlight(?:er|ing)?|code(?:block|hilite)?|source-?code|prism\w*|shiki|chroma|syntaxhighlighter|snippet|listing|crayon|prettyprint|rouge|block)(?:$|[\s_-])/i;
const NO_LANGUAGE = new Set(['none', 'plaintext', 'plain', 'text', 'txt', 'nohighlight', 'no-highlight', 'undefined', 'null', 'auto', 'highlighter-rouge', 'unknown', 'en']);
const GUTTER = /(?:^|[\s_-])(?:line-?numbers?(?:-rows)?|line-?nos?|lineno[s]?|ln|lnt|lntd-?num|gutter|hljs-ln-numbers|linenumbers?|blob-num|rouge-gutter|cm-gutters?|ec-gutter|code-line-number)(?:$|[\s_-])/i;
const COPY = /(?:^|[\s_-])(?:copy|clipboard|copy-?code|copy-?button|copybtn|toolbar|code-?header|code-?lang(?:uage)?-?(?:name|label)?|lang-?label|expand-?button)(?:$|[\s_-])/i;

// The language that the line above code names, if it has nothing else but buttons. It is empty if there are only buttons, and
// null if the element is no such line.
const codeHeader = (element) => {
  if (/^(?:p|h[1-6]|pre|ul|ol|table)$/.test(localName(element)) || textContent(element).length > 100) return null;
  const texts = [];
  const read = (node, depth) => {
    if (typeOf(node) === TEXT && codeOf(node).trim()) texts.push(codeOf(node).trim().toLowerCase());
    else if (typeOf(node) === ELEMENT && !SKIPPED.has(localName(node)) && depth < 10) for (const child of childrenOf(node)) read(child, depth + 1);
  };
  read(element, 0);
  const [first, ...rest] = texts;
  const isButton = (text) => /^(?:copy(?: code| to clipboard)?|copied!?|run|edit|wrap|download|expand)$/.test(text);
  if (first === undefined || !rest.every(isButton)) return null;
  return LANGUAGES.has(first) ? first : isButton(first) ? '' : null;
};

// How often elements around code are searched, so that pages with many do not take long.
let searches = 5000;
const languageOf = (element) => {
  const around = [element, ...selectIn(element, 'code').slice(0, 1)];
  for (let at = parentElement(element), up = 0; at && up < 9 && localName(at) !== 'body' && hasFewChildren(at) && searches > 0 && selectIn(at, 'pre, code.block').length <= 2; at = parentElement(at), up += 1) {
    searches -= 1;
    around.push(at);
  }
  const accept = (named) => {
    const name = (named ?? '').trim().toLowerCase();
    return name && /^[\w+#-]{1,30}$/.test(name) ? name : null;
  };
  for (const of of around) {
    const classes = (attribute(of, 'class') ?? '').slice(0, 500);
    const isCode = of === around[0] || localName(of) === 'code';
    const named = [LANGUAGE.exec(classes)?.[1], ...LANGUAGE_ATTRIBUTES.filter((name) => isCode || name.startsWith('data-')).map((name) => attribute(of, name))];
    for (const name of named.map(accept)) if (name) return NO_LANGUAGE.has(name) ? '' : name;
    if (!CODE_NAMES.test(classes)) continue;
    const word = classes.toLowerCase().split(/\s+/).find((part) => LANGUAGES.has(part));
    if (word) return NO_LANGUAGE.has(word) ? '' : word;
  }
  for (const of of around.slice(0, 1).concat(around.slice(2))) {
    const before = previousSibling(of);
    const name = before ? codeHeader(before) : null;
    if (name !== null) return NO_LANGUAGE.has(name) ? '' : name;
  }
  return '';
};

const isGutter = (element, style) => {
  const classes = attribute(element, 'class') ?? '';
  const name = localName(element);
  if (name === 'button' || attribute(element, 'role') === 'button') return true;
  if (COPY.test(classes) && name !== 'code' && name !== 'pre') return true;
  const text = textContent(element);
  const isNumbers = /^[\s\d]*$/.test(text);
  if (!isNumbers) return false;
  if (GUTTER.test(classes) || attribute(element, 'data-line-number') !== null) return true;
  // Numbers that a reader cannot select are no part of the code.
  return /\d/.test(text) && (style.userSelect === 'none' || style.webkitUserSelect === 'none' || attribute(element, 'aria-hidden') === 'true');
};

// The text as it is laid out: each block is a line of its own.
const codeText = (top) => {
  let text = '';
  let steps = 0;
  const walk = (node, depth) => {
    steps += 1;
    if (steps > 100000 || depth > 100) return;
    if (typeOf(node) === TEXT) {
      text += codeOf(node);
      return;
    }
    if (typeOf(node) !== ELEMENT) return;
    const name = localName(node);
    if (name === 'br') {
      text += '\n';
      return;
    }
    const style = getComputedStyle(node);
    if (SKIPPED.has(name) || style.display === 'none' || style.visibility !== 'visible') return;
    if (node !== top && isGutter(node, style)) return;
    const isLine = node !== top && /^(?:block|flex|grid|list-item|table|table-row)$/.test(style.display);
    if (isLine && text && !text.endsWith('\n')) text += '\n';
    const before = text.length;
    for (const child of childrenOf(node)) walk(child, depth + 1);
    if (isLine && (text.length === before || !text.endsWith('\n'))) text += '\n';
  };
  walk(top, 0);
  return text.replace(/\u0000|\u200b/g, '').replace(/\r\n?/g, '\n').replace(/\u00a0/g, ' ').replace(/^(?:[ \t]*\n)+/, '').trimEnd();
};

// Code in a table beside its line numbers: the cell with the code.
const codeOfTable = (table) => {
  const cells = selectIn(table, 'pre, code');
  if (cells.length === 0 || selectIn(table, 'tr').length > 5000) return null;
  const rows = selectIn(table, ':scope > tr, :scope > tbody > tr');
  const [gutter, code, more] = rows.length === 1 ? selectIn(rows[0], ':scope > td') : [];
  const isNumbers = gutter && /^[\s\d.:]*$/.test(textContent(gutter));
  return isNumbers && code && !more ? (selectIn(code, 'pre, code')[0] ?? code) : null;
};
// Code that is written as a block, though its element is for a part of a line.
const isCodeBlock = (element, style) =>
  localName(element) === 'code' && (/(?:^|\s)block(?:\s|$)/.test(attribute(element, 'class') ?? '') || (/\S[^\S\n]*\n\s*\S/.test(textContent(element)) && (!/^inline/.test(style.display) || /^pre/.test(style.whiteSpace))));
