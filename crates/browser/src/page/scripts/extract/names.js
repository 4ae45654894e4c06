// The accessible name of an element, by the Accessible Name and Description Computation and the HTML Accessibility API
// Mappings: what a screen reader would say.

const MAX_NAME = 300;
// What is read for a name: nodes, and characters. Longer names are cut.
const MAX_NAME_NODES = 2000;
const MAX_NAME_TEXT = 10 * MAX_NAME;
const MAX_NAME_DEPTH = 200;
// Nodes that are read for all names of a document.
const MAX_NODES_OF_ALL = 30000;
let nodesLeft = MAX_NODES_OF_ALL;
const MAX_REFERENCES = 20;

const styleOf = (element, pseudo) => getComputedStyle(element, pseudo);
const elementById = (tree, id) =>
  tree instanceof Document || tree instanceof ShadowRoot ? (selectIn(tree, `#${CSS.escape(id)}`)[0] ?? null) : null;
const labelledByElements = Object.getOwnPropertyDescriptor(Element.prototype, 'ariaLabelledByElements')?.get;

// No-break spaces are part of a name, and other white space is one space.
const collapsed = (text) => text.replace(/[\t\n\f\r ]+/g, ' ');
const trimmed = (text) => collapsed(text).replace(/^ | $/g, '');

// Roles of which the content is the name.
const NAMED_BY_CONTENT = new Set(
  ('button cell checkbox columnheader comment gridcell heading link menuitem menuitemcheckbox menuitemradio option radio row rowheader ' +
    'switch tab tooltip treeitem doc-backlink doc-biblioref doc-glossref doc-noteref').split(' '),
);
// Roles of controls and windows, of which the content is no part of the name of what they are in.
const APART = new Set(
  ('alertdialog application combobox dialog feed grid listbox log marquee menu menubar meter progressbar radiogroup scrollbar searchbox ' +
    'slider spinbutton tablist tabpanel textbox toolbar tree treegrid audio video').split(' '),
);
const TEXT_FIELDS = new Set(['combobox', 'listbox', 'searchbox', 'textbox']);
const RANGES = new Set(['meter', 'progressbar', 'scrollbar', 'slider', 'spinbutton']);
const UNREAD = new Set(['script', 'style', 'template', 'noscript', 'head', 'datalist', 'desc', 'defs', 'metadata', 'symbol']);

const referenced = (element, name) => {
  const tree = rootNode(element);
  const ids = (attribute(element, name) ?? '').slice(0, 10000).split(/\s+/).filter(Boolean).slice(0, MAX_REFERENCES);
  return ids.map((id) => elementById(tree, id)).filter((found) => found !== null);
};
const labelledBy = (element) => {
  const given = labelledByElements?.call(element);
  return given ? [...given].slice(0, MAX_REFERENCES) : referenced(element, 'aria-labelledby');
};

// Is the element, or what it is in, not shown or kept from screen readers?
const isHidden = (element) => {
  if (!isRendered(element)) return true;
  for (let at = element; at; at = flatParent(at)) if (attribute(at, 'aria-hidden') === 'true') return true;
  return false;
};
const isRendered = (element) => {
  // Options of a closed list and areas of an image map have no boxes.
  const list = element instanceof HTMLOptionElement || element instanceof HTMLOptGroupElement ? closest(element, 'select') : null;
  const image = element instanceof HTMLAreaElement ? imageOf(element) : null;
  return hasBox(list ?? image ?? element);
};
const hasBox = (element) => {
  let at = element;
  while (at && styleOf(at).display === 'contents') at = flatParent(at);
  return isVisible(at ?? element, { visibilityProperty: true });
};
const flatParent = (element) => {
  const slot = assignedSlot(element);
  if (slot) return slot;
  const parent = parentNode(element);
  return parent instanceof ShadowRoot ? shadowHost(parent) : parent instanceof Element ? parent : null;
};
const assignedSlot = getter(Element.prototype, 'assignedSlot');
const shadowHost = getter(ShadowRoot.prototype, 'host');

// Fields whose values are nobody's business: those that the page hides, and those that it marks as secret.
const isSecret = (element) =>
  (element instanceof HTMLInputElement && element.type === 'password') ||
  /(^|\s)(cc-[a-z-]+|current-password|new-password|one-time-code)(\s|$)/i.test(attribute(element, 'autocomplete') ?? '') ||
  (styleOf(element).webkitTextSecurity ?? 'none') !== 'none';

const optionText = (option) => attribute(option, 'label') || textContent(option);

// Texts that are never given back as values.
let hiddenTexts = [];

// What a field has as its value, as text; null if the element is no field.
const valueOf = (element, role, of) => {
  const value = fieldValue(element, role, of);
  return value !== null && hiddenTexts.some((text) => text !== '' && value.includes(text)) ? '' : value;
};
const fieldValue = (element, role, of) => {
  if (!RANGES.has(role) && !TEXT_FIELDS.has(role)) return null;
  if (isSecret(element)) return '';
  if (RANGES.has(role)) {
    const given = attribute(element, 'aria-valuetext') || attribute(element, 'aria-valuenow');
    if (given) return given;
    if (element instanceof HTMLInputElement) return element.value;
    const measured = element instanceof HTMLMeterElement || element instanceof HTMLProgressElement ? attribute(element, 'value') : null;
    return measured ?? (role === 'spinbutton' ? contentOf(element, of) : '');
  }
  if (role === 'combobox' || role === 'listbox') {
    if (element instanceof HTMLSelectElement) return [...element.selectedOptions].slice(0, 50).map(optionText).join(' ');
    if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) return element.value;
    return chosenOptions(element, of);
  }
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) return element.value;
  return contentOf(element, of);
};

// The chosen options of a list that the page made itself; of a combobox without any, its content.
const chosenOptions = (element, of) => {
  const lists = [element, ...referenced(element, 'aria-owns'), ...referenced(element, 'aria-controls')];
  const chosen = lists.flatMap((list) => selectIn(list, '[role="option" i][aria-selected="true"]')).slice(0, 50);
  if (chosen.length > 0) return chosen.map((option) => textContent(option)).join(' ');
  if (roleOf(element) !== 'combobox') return '';
  const field = selectIn(element, 'input:not([type="hidden" i]), textarea, [role="textbox" i], [role="searchbox" i]')[0];
  if (field) return isSecret(field) ? '' : field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement ? field.value : textContent(field);
  return contentOf(element, of);
};

// The text that styles add before or after an element. A text for screen readers takes the place of what is shown, and the
// private characters of icon fonts mean nothing.
const TOKEN = /"((?:[^"\\]|\\.)*)"|attr\(\s*([\w-]+)[^)]*\)|(\/)|[a-z-]+\((?:[^()"]|"(?:[^"\\]|\\.)*")*\)|[a-z-]+/gi;
const addedText = (element, pseudo) => {
  const style = styleOf(element, pseudo);
  const { content } = style;
  if (content === 'none' || content === 'normal' || style.display === 'none' || style.visibility !== 'visible') return '';
  let text = '';
  for (const [, string, name, slash] of content.slice(0, 4000).matchAll(TOKEN)) {
    if (slash) text = '';
    else if (name) text += attribute(element, name) ?? '';
    else if (string !== undefined) text += string.replace(/\\([0-9a-f]{1,6}) ?|\\(.)/gi, (_, code, other) => (code ? String.fromCodePoint(Math.min(parseInt(code, 16), 0x10ffff)) : other));
  }
  text = text.replace(/[\ue000-\uf8ff]/g, '');
  return style.display.startsWith('inline') && style.display !== 'inline-block' ? text : ` ${text} `;
};

// The content of an element as text, with what styles add, and what the element owns elsewhere.
const contentOf = (element, of) => {
  const parts = [addedText(element, '::before')];
  const isClosed = element instanceof HTMLDetailsElement && !hasAttribute(element, 'open');
  for (const child of childrenOf(element)) {
    if (of.nodes > MAX_NAME_NODES || of.characters > MAX_NAME_TEXT) break;
    if (isClosed && (typeOf(child) !== ELEMENT || localName(child) !== 'summary')) continue;
    parts.push(partOf(child, of));
  }
  for (const owned of referenced(element, 'aria-owns')) parts.push(' ', partOf(owned, of), ' ');
  parts.push(addedText(element, '::after'));
  return parts.join('');
};

const partOf = (node, of) => {
  const type = typeOf(node);
  if (type === TEXT) {
    if (of.seen.has(node) || of.isInvisible) return '';
    of.seen.add(node);
    const text = collapsed(codeOf(node).slice(0, MAX_NAME_TEXT));
    of.characters += text.length;
    return text;
  }
  if (type !== ELEMENT || UNREAD.has(localName(node)) || of.depth >= MAX_NAME_DEPTH) return '';
  if (++of.nodes > MAX_NAME_NODES || --nodesLeft < 0) return '';
  if (localName(node) === 'br') return ' ';
  const { display, visibility } = styleOf(node);
  if (!of.isHiddenRead && (display === 'none' || attribute(node, 'aria-hidden') === 'true')) return '';
  const isInvisible = !of.isHiddenRead && visibility !== 'visible';
  const was = of.isInvisible;
  of.isInvisible = isInvisible;
  of.depth += 1;
  // What is visible in something invisible is part of the name, but nothing of the invisible element itself.
  const text = isInvisible ? childrenOf(node).map((child) => partOf(child, of)).join('') : textOf(node, of);
  of.isInvisible = was;
  of.depth -= 1;
  const isInline = !isLeaf(node) && (display === 'contents' || display === 'inline' || display.startsWith('ruby') || (display === 'none' && !(node instanceof HTMLElement)));
  return isInline ? text : ` ${text} `;
};

// The text of labels and of other elements that are referred to. Where the page hides them, all of their content counts.
const referredText = (elements, of, by) => {
  const { by: was, isHiddenRead } = of;
  const texts = elements.map((element) => {
    of.by = by;
    of.isHiddenRead = isHidden(element);
    return of.seen.has(element) ? '' : trimmed(textOf(element, of, true));
  });
  Object.assign(of, { by: was, isHiddenRead });
  return texts.filter(Boolean).join(' ');
};

const LABELABLE = new Set(['button', 'input', 'meter', 'output', 'progress', 'select', 'textarea']);
const labelsOf = (element) =>
  LABELABLE.has(localName(element)) && element instanceof HTMLElement ? [...(element.labels ?? [])].slice(0, MAX_REFERENCES) : [];

const childNamed = (element, name) => childrenOf(element).find((child) => typeOf(child) === ELEMENT && localName(child) === name);

// What names an element by the rules of HTML and SVG.
const nativeText = (element, of) => {
  const labels = labelsOf(element);
  if (labels.length > 0) {
    const text = referredText(labels, of, 'label');
    if (text) return text;
  }
  switch (localName(element)) {
    case 'input':
      if (!(element instanceof HTMLInputElement)) return '';
      if (element.type === 'image') return trimmed(attribute(element, 'alt') ?? '') || trimmed(attribute(element, 'title') ?? '') || 'Submit';
      if (!['button', 'submit', 'reset'].includes(element.type)) return '';
      return hasAttribute(element, 'value') ? trimmed(element.value) : ({ submit: 'Submit', reset: 'Reset' }[element.type] ?? '');
    case 'img':
    case 'area':
      return attribute(element, 'alt') ?? '';
    case 'optgroup':
    case 'option':
      return attribute(element, 'label') ?? '';
    case 'fieldset':
    case 'table':
    case 'figure': {
      const caption = childNamed(element, { fieldset: 'legend', table: 'caption', figure: 'figcaption' }[localName(element)]);
      return caption ? referredText([caption], of, 'label') : '';
    }
    default: {
      const title = element instanceof SVGElement ? childNamed(element, 'title') : null;
      return title ? textContent(title) : '';
    }
  }
};

// The text of an element that is named, or is part of the name of another one. `isReferred` if a label or an attribute
// leads to it.
const textOf = (element, of, isReferred = false) => {
  const isFirst = of.isStart;
  of.isStart = false;
  if (of.by !== 'labelledby') {
    const labels = labelledBy(element);
    if (labels.length > 0) {
      const text = referredText(labels, of, 'labelledby');
      if (text) return text;
    }
  }
  if (!isFirst && of.seen.has(element)) return '';
  of.seen.add(element);
  const role = roleOf(element);
  const isPart = !isFirst && element !== of.first;
  if (isPart) {
    const value = valueOf(element, role, of);
    if (value !== null) return collapsed(value);
  }
  // Slots are not there for screen readers.
  const label = localName(element) === 'slot' ? '' : trimmed(attribute(element, 'aria-label') ?? '');
  if (label) return label;
  const isDecoration = role === 'none' && isPart;
  if (role !== 'none' || element === of.first) {
    const native = nativeText(element, of);
    if (native.trim()) return collapsed(native);
  }
  const isRead = isFirst ? NAMED_BY_CONTENT.has(role) || (of.isOperable && isNamedAnyway(element, role)) : isReferred || !APART.has(role);
  if (isRead && !isLeaf(element)) {
    const content = contentOf(element, of);
    if (content.trim()) return content;
    if (isPart && !isReferred && content) return content + tooltip(element, isDecoration);
  }
  return tooltip(element, isDecoration);
};
const tooltip = (element, isDecoration) => {
  if (isDecoration) return '';
  const title = trimmed(attribute(element, 'title') ?? '');
  return title || placeholder(element);
};
const placeholder = (element) => {
  const isField = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;
  return trimmed((isField ? attribute(element, 'placeholder') : null) || attribute(element, 'aria-placeholder') || '');
};
// Links with a role that has no name of its own, and what only scripts make operable, have nothing else that tells what they are.
const isNamedAnyway = (element, role) => role === 'generic' || (!APART.has(role) && matchesSelector(element, 'a[href], button'));
const isLeaf = (element) =>
  ['img', 'input', 'textarea', 'select', 'iframe', 'frame', 'object', 'embed', 'canvas', 'audio', 'video', 'progress', 'meter'].includes(localName(element));

// The name of an element, at most `MAX_NAME` characters. What can be operated has its content as its name if it has no role.
const nameOf = (element, isOperable) => {
  if (!isRendered(element)) return '';
  const of = { first: element, isStart: true, isOperable, seen: new Set(), by: null, isHiddenRead: false, isInvisible: false, nodes: 0, characters: 0, depth: 0 };
  const text = collapsed(textOf(element, of));
  const isLabel = trimmed(attribute(element, 'aria-label') ?? '') === trimmed(text);
  return (isLabel ? trimmed(text) : text.trim()).slice(0, MAX_NAME).toWellFormed();
};
