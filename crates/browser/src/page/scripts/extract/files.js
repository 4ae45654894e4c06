const doctype = () => {
  const type = doctypeOf(document);
  return type ? `<!DOCTYPE ${type.name}>\n` : '';
};

const html = ({ most }) => {
  const element = rootOf(document);
  if (!element) return { content: '' };
  const shadowRoots = trees().slice(1);
  let content = doctype();
  if (shadowRoots.length > 0) {
    const empty = outerHtml(cloneNode(element, false));
    const end = empty.lastIndexOf('</');
    content += end < 0 ? empty : empty.slice(0, end) + getHtml(element, { shadowRoots }) + empty.slice(end);
  } else {
    content += outerHtml(element);
  }
  return content.length > most ? { isTooLarge: true } : { content };
};

const cut = (content, most) => ({ content: content.slice(0, most), isCut: content.length > most });

const text = ({ most, main }) => {
  const found = main ? mainContent() : null;
  if (found) return cut(plainText(found), most);
  const body = bodyOf(document) ?? rootOf(document);
  const content = body instanceof HTMLElement ? innerText(body) : body ? textContent(body) : '';
  return { ...cut(content.replace(/\u0000/g, ''), most), isWhole: Boolean(main) };
};

const MAX_LINKS = 5000;
const MAX_LINK_CHARACTERS = 1 << 20;

const links = () => {
  const all = [];
  let size = 0;
  const anchors = trees().flatMap((tree) => selectIn(tree, 'a[href], area[href]'));
  for (const anchor of anchors) {
    const url = webUrl(anchor instanceof HTMLAnchorElement ? anchorUrl(anchor) : anchor instanceof HTMLAreaElement ? areaUrl(anchor) : '');
    if (!url) continue;
    if (all.length === MAX_LINKS || size > MAX_LINK_CHARACTERS) return { links: all, isCut: true };
    const label = textContent(anchor) || attribute(anchor, 'aria-label') || attribute(anchor, 'alt') || '';
    const link = { url, text: oneLine(label, 300), rel: oneLine(attribute(anchor, 'rel') ?? '', 100) };
    size += link.url.length + link.text.length + link.rel.length;
    all.push(link);
  }
  return { links: all, isCut: false };
};

// Elements that a user can operate, with their boxes in pixels of the image.

const MAX_ELEMENTS = 2000;
const MAX_NAME = 300;
const OPERABLE =
  'a[href], area[href], button, input:not([type="hidden" i]), select, textarea, summary, audio[controls], video[controls], ' +
  '[contenteditable]:not([contenteditable="false" i]), [tabindex]:not([tabindex^="-"]), [onclick], [role]';
// Roles of other elements tell what the page is made of, and not what can be operated.
const OPERABLE_ROLES = new Set([
  'button', 'checkbox', 'combobox', 'gridcell', 'link', 'listbox', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option', 'radio',
  'scrollbar', 'searchbox', 'slider', 'spinbutton', 'switch', 'tab', 'textbox', 'treeitem',
]);
const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button', color: 'button',
  checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox',
};

const boxOf = method(Element.prototype, 'getBoundingClientRect');
const isVisible = method(Element.prototype, 'checkVisibility');
const matchesSelector = method(Element.prototype, 'matches');
const rootNode = method(Node.prototype, 'getRootNode');
const parentElement = getter(Node.prototype, 'parentElement');
const previousSibling = getter(Element.prototype, 'previousElementSibling');
const nextSiblingElement = getter(Element.prototype, 'nextElementSibling');

const roleOf = (element) => {
  const given = (attribute(element, 'role') ?? '').trim().split(/\s+/)[0].toLowerCase();
  if (given && given !== 'presentation' && given !== 'none') return given;
  switch (localName(element)) {
    case 'a':
    case 'area':
      return 'link';
    case 'button':
    case 'summary':
      return 'button';
    case 'select':
      return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
    case 'textarea':
      return 'textbox';
    case 'input':
      return INPUT_ROLES[element.type] ?? (attribute(element, 'list') === null ? 'textbox' : 'combobox');
    case 'audio':
    case 'video':
      return localName(element);
    default:
      return matchesSelector(element, '[contenteditable]') ? 'textbox' : 'generic';
  }
};

const isOperable = (element) => {
  const role = (attribute(element, 'role') ?? '').trim().split(/\s+/)[0].toLowerCase();
  const natively = 'a[href], area[href], button, input, select, textarea, summary, audio, video, [contenteditable], [tabindex]:not([tabindex^="-"]), [onclick]';
  return OPERABLE_ROLES.has(role) || matchesSelector(element, natively);
};

const textWithImages = (element) => {
  const text = oneLine(element instanceof HTMLElement ? innerText(element) : textContent(element), MAX_NAME);
  if (text) return text;
  const labels = selectIn(element, 'img[alt], [aria-label], svg title').map((inner) => attribute(inner, 'alt') || attribute(inner, 'aria-label') || textContent(inner));
  return oneLine(labels.join(' '), MAX_NAME);
};

// What a screen reader would call an element, in the order of the accessible name computation.
const nameOf = (element, role) => {
  const tree = rootNode(element);
  const ids = (attribute(element, 'aria-labelledby') ?? '').split(/\s+/).filter(Boolean).slice(0, 10);
  const labels = ids.flatMap((id) => (tree instanceof Document || tree instanceof ShadowRoot ? selectIn(tree, `#${CSS.escape(id)}`).slice(0, 1) : []));
  const labelled = oneLine(labels.map((label) => textContent(label)).join(' '), MAX_NAME);
  if (labelled) return labelled;
  const own = oneLine(attribute(element, 'aria-label') ?? '', MAX_NAME);
  if (own) return own;
  if (element instanceof HTMLInputElement && ['button', 'submit', 'reset', 'image'].includes(element.type)) {
    const given = oneLine((element.type === 'image' ? attribute(element, 'alt') : element.value) ?? '', MAX_NAME);
    return given || { submit: 'Submit', image: 'Submit', reset: 'Reset' }[element.type] || oneLine(attribute(element, 'title') ?? '', MAX_NAME);
  }
  const isField = element instanceof HTMLInputElement || element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;
  if (isField) {
    const label = oneLine([...(element.labels ?? [])].map((label) => textContent(label)).join(' '), MAX_NAME);
    if (label) return label;
  } else if (localName(element) === 'area') {
    return oneLine(attribute(element, 'alt') ?? '', MAX_NAME);
  } else if (role !== 'textbox' && role !== 'video' && role !== 'audio') {
    const text = textWithImages(element);
    if (text) return text;
  }
  return oneLine(attribute(element, 'title') || attribute(element, 'placeholder') || '', MAX_NAME);
};

// A selector that matches this element only. Elements in shadow trees have none.
const selectorOf = (element) => {
  if (rootNode(element) !== document) return null;
  const steps = [];
  for (let at = element; at; at = parentElement(at)) {
    const id = attribute(at, 'id');
    if (id && id.length <= 64 && selectIn(document, `#${CSS.escape(id)}`).length === 1) {
      steps.unshift(`#${CSS.escape(id)}`);
      break;
    }
    const name = localName(at);
    let before = 0;
    for (let sibling = previousSibling(at); sibling; sibling = previousSibling(sibling)) before += localName(sibling) === name ? 1 : 0;
    let isAlone = before === 0;
    for (let sibling = nextSiblingElement(at); isAlone && sibling; sibling = nextSiblingElement(sibling)) isAlone = localName(sibling) !== name;
    steps.unshift(isAlone ? CSS.escape(name) : `${CSS.escape(name)}:nth-of-type(${before + 1})`);
  }
  const selector = steps.join(' > ');
  return selector.length <= 1024 ? selector : null;
};

const statesOf = (element) => {
  const states = {};
  if (matchesSelector(element, ':disabled') || attribute(element, 'aria-disabled') === 'true') states.disabled = true;
  const isCheckable = element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type);
  const checked = attribute(element, 'aria-checked');
  if (isCheckable) states.checked = element.checked;
  else if (checked !== null) states.checked = checked === 'true';
  const expanded = attribute(element, 'aria-expanded');
  if (expanded !== null) states.expanded = expanded === 'true';
  return states;
};

// `area` is the captured part of the page, or null for the window.
const elements = ({ area, leftEdge, image }) => {
  const origin = area ? { x: area.x - scrollX + leftEdge, y: area.y - scrollY } : { x: visualViewport.offsetLeft, y: visualViewport.offsetTop };
  const factor = image.width / (area ? area.width : visualViewport.width);
  const clamp = (value, most) => Math.min(most, Math.max(0, Math.round(value * factor)));
  const all = [];
  for (const element of trees().flatMap((tree) => selectIn(tree, OPERABLE))) {
    if (!isOperable(element) || !isVisible(element, { opacityProperty: true, visibilityProperty: true })) continue;
    const box = boxOf(element);
    const [left, right] = [box.left - origin.x, box.right - origin.x].map((x) => clamp(x, image.width));
    const [top, bottom] = [box.top - origin.y, box.bottom - origin.y].map((y) => clamp(y, image.height));
    if (right <= left || bottom <= top) continue;
    if (all.length === MAX_ELEMENTS) return { elements: all, isCut: true };
    const role = oneLine(roleOf(element), 64);
    const found = { role, name: nameOf(element, role), selector: selectorOf(element), box: { x: left, y: top, width: right - left, height: bottom - top } };
    const url = element instanceof HTMLAnchorElement ? webUrl(anchorUrl(element)) : element instanceof HTMLAreaElement ? webUrl(areaUrl(element)) : null;
    if (url) found.url = url;
    all.push({ ...found, ...statesOf(element) });
  }
  return { elements: all, isCut: false };
};

// Visible headings, with the row of the image in which each begins. It is negative above the image.

const MAX_HEADINGS = 2000;
const MAX_HEADING = 200;

const headings = ({ area, leftEdge, image }) => {
  const origin = area ? { x: area.x - scrollX + leftEdge, y: area.y - scrollY } : { x: visualViewport.offsetLeft, y: visualViewport.offsetTop };
  const width = area ? area.width : visualViewport.width;
  const factor = image.width / width;
  const all = [];
  for (const element of trees().flatMap((tree) => selectIn(tree, 'h1, h2, h3, h4, h5, h6'))) {
    if (!isVisible(element, { opacityProperty: true, visibilityProperty: true })) continue;
    const box = boxOf(element);
    // Those for screen readers only are a pixel large, or outside of the page.
    const isShown = box.width > 1 && box.height > 1 && box.right > origin.x && box.left < origin.x + width && box.bottom + scrollY > 0;
    const text = isShown ? oneLine(textWithImages(element).toWellFormed(), MAX_HEADING).toWellFormed() : '';
    if (!text) continue;
    all.push({ y: Math.round((box.top - origin.y) * factor), text });
    if (all.length === MAX_HEADINGS) break;
  }
  return { headings: all };
};
const height = () => {
  const element = document.scrollingElement ?? rootOf(document);
  return { height: element instanceof Element ? element.scrollHeight : 0 };
};

// The day in the time zone of the page.
const today = () => {
  const now = new Date();
  const two = (number) => String(number).padStart(2, '0');
  return { date: `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}` };
};
