// Callouts: boxes with a note, a hint or a warning. They are written as quotations that begin with their kind.

const CALLOUT_KINDS = new Set(
  ('note abstract summary tldr info information todo tip hint important success check done question help faq warning warn caution attention failure fail missing danger error bug example quote cite seealso primary secondary').split(' '),
);
// Kinds that name a box by themselves, if it has a title. The others are also names of parts of a page.
const CALLOUT_NAMES = new Set('note tip info warning caution danger important hint attention'.split(' '));
const CALLOUT_ALIASES = new Map([['information', 'info'], ['warn', 'warning'], ['primary', 'info'], ['secondary', 'note']]);
const CALLOUT_BOXES = new Set(['callout', 'admonition', 'admonitions', 'alert', 'notice', 'infobox', 'notification', 'hint', 'custom-block', 'markdown-alert', 'theme-admonition', 'admonitionblock', 'aside', 'message', 'notecard', 'note-box', 'flash', 'starlight-aside', 'book-hint']);
const CALLOUT_TITLE = /(?:^|[\s_-])(?:title|heading|header|label|caption|summary)(?:$|[\s_-])/i;
const CALLOUT_ICON = /(?:^|[\s_-])(?:icon|octicon|fold)(?:$|[\s_-])/i;

const kindOf = (word) => (CALLOUT_KINDS.has(word) ? (CALLOUT_ALIASES.get(word) ?? word) : null);
// The kind of a box, or null if the element is none.
const calloutKind = (element) => {
  const given = attribute(element, 'data-callout') ?? attribute(element, 'data-admonition');
  if (given && /^[\w-]{1,30}$/.test(given)) return given.toLowerCase();
  const name = localName(element);
  if (!['div', 'aside', 'section', 'details', 'blockquote', 'p', 'figure', 'article', 'table'].includes(name)) return null;
  const classes = (attribute(element, 'class') ?? '').toLowerCase().slice(0, 300).split(/\s+/).filter(Boolean);
  const isRoleNote = attribute(element, 'role') === 'note';
  const type = (attribute(element, 'data-type') ?? attribute(element, 'data-variant') ?? attribute(element, 'data-kind') ?? '').toLowerCase();
  let isBox = isRoleNote;
  let kind = null;
  for (const one of classes) {
    if (CALLOUT_BOXES.has(one)) {
      isBox = true;
      continue;
    }
    const parts = /^(.*?)[-_]{1,2}([a-z]+)$/.exec(one);
    if (parts && CALLOUT_BOXES.has(parts[1]) && kindOf(parts[2])) {
      isBox = true;
      kind ??= kindOf(parts[2]);
    } else kind ??= kindOf(one.replace(/^(?:is|type|kind|variant)-/, ''));
  }
  kind ??= kindOf(type);
  if (!kind && classes.includes('hint') && !isRoleNote) kind = 'hint';
  if (!isBox && CALLOUT_NAMES.has(kind) && classes.length <= 2 && name !== 'p' && calloutTitle(element)) return kind;
  if (!isBox) return null;
  if (!kind) {
    const title = calloutTitle(element);
    const word = title ? kindOf(oneLine(textContent(title), 40).toLowerCase().replace(/[:!]$/, '')) : null;
    return word ?? (isRoleNote && name !== 'p' ? 'note' : classes.some((one) => one === 'callout' || one === 'admonition') && title ? 'note' : null);
  }
  return kind;
};
// The title of a box: its first element, if that is named as such.
const calloutTitle = (element) => {
  let at = element;
  for (let step = 0; step < 6; step += 1) {
    const first = childrenOf(at).find((child) => (typeOf(child) === TEXT ? codeOf(child).trim() : typeOf(child) === ELEMENT && !SKIPPED.has(localName(child)) && !CALLOUT_ICON.test(attribute(child, 'class') ?? '') && textContent(child).trim()));
    if (!first || typeOf(first) !== ELEMENT || textContent(first).length > 300) return null;
    if (localName(first) === 'summary' || (CALLOUT_TITLE.test(attribute(first, 'class') ?? '') && !selectIn(first, 'p + p').length)) return first;
    if (/^(?:strong|b|h[1-6])$/.test(localName(first)) && at !== element) return null;
    at = first;
  }
  return null;
};
const foldOf = (element) => {
  const fold = attribute(element, 'data-callout-fold');
  if (fold === '-' || fold === '+') return fold;
  if (localName(element) !== 'details') return '';
  return attribute(element, 'open') === null ? '-' : '+';
};
