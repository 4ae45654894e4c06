// Reads the page as files. This is an expression of its own, which is sent only if files are asked for. It runs in an
// isolated world, but names in the document may still replace properties of the document and of forms by elements, so
// that only the getters and methods of the prototypes are used.
(() => {
const getter = (prototype, name) => {
  const { get } = Object.getOwnPropertyDescriptor(prototype, name);
  return (of) => get.call(of);
};
const method = (prototype, name) => {
  const function_ = prototype[name];
  return (of, ...args) => function_.apply(of, args);
};

const rootOf = getter(Document.prototype, 'documentElement');
const bodyOf = getter(Document.prototype, 'body');
const doctypeOf = getter(Document.prototype, 'doctype');
const typeOf = getter(Node.prototype, 'nodeType');
const firstChild = getter(Node.prototype, 'firstChild');
const nextSibling = getter(Node.prototype, 'nextSibling');
const textContent = getter(Node.prototype, 'textContent');
const cloneNode = method(Node.prototype, 'cloneNode');
const localName = getter(Element.prototype, 'localName');
const shadowRoot = getter(Element.prototype, 'shadowRoot');
const outerHtml = getter(Element.prototype, 'outerHTML');
const getHtml = method(Element.prototype, 'getHTML');
const attribute = method(Element.prototype, 'getAttribute');
const selectIn = (tree, selector) => {
  const prototype = tree === document ? Document.prototype : tree instanceof ShadowRoot ? DocumentFragment.prototype : Element.prototype;
  return [...prototype.querySelectorAll.call(tree, selector)];
};
const innerText = getter(HTMLElement.prototype, 'innerText');
const anchorUrl = getter(HTMLAnchorElement.prototype, 'href');
const areaUrl = getter(HTMLAreaElement.prototype, 'href');
const shownSource = getter(HTMLImageElement.prototype, 'currentSrc');
const imageSource = getter(HTMLImageElement.prototype, 'src');
const assignedNodes = method(HTMLSlotElement.prototype, 'assignedNodes');
const codeOf = getter(CharacterData.prototype, 'data');

const ELEMENT = 1;
const TEXT = 3;
const MAX_URL = 2048;

const oneLine = (text, most) => text.slice(0, 10 * most).replace(/\s+/g, ' ').trim().slice(0, most);
const webUrl = (url) => (/^https?:\/\//i.test(url) && url.length <= MAX_URL ? url : null);

// The document and its open shadow trees.
const trees = () => {
  const all = [document];
  for (const tree of all) for (const element of selectIn(tree, '*')) if (shadowRoot(element)) all.push(shadowRoot(element));
  return all;
};

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

const text = ({ most }) => {
  const body = bodyOf(document) ?? rootOf(document);
  const content = body instanceof HTMLElement ? innerText(body) : body ? textContent(body) : '';
  return cut(content.replace(/\u0000/g, ''), most);
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

// Markdown.

const MAX_NODES = 200000;
const MAX_DEPTH = 150;
const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'head', 'title', 'svg', 'canvas', 'iframe', 'object', 'embed', 'audio', 'video', 'select', 'input', 'textarea', 'datalist', 'map']);
const BOLD = new Set(['b', 'strong']);
const ITALIC = new Set(['i', 'em', 'cite', 'var', 'dfn']);
const STRUCK = new Set(['s', 'del', 'strike']);
const CODE = new Set(['code', 'kbd', 'samp', 'tt']);

const childrenOf = (node) => {
  const tree = typeOf(node) === ELEMENT ? shadowRoot(node) : null;
  if (node instanceof HTMLSlotElement) {
    const assigned = assignedNodes(node, { flatten: true });
    if (assigned.length > 0) return assigned;
  }
  const children = [];
  for (let child = firstChild(tree ?? node); child; child = nextSibling(child)) children.push(child);
  return children;
};

const escapeInline = (text) =>
  text.replace(/[\\`*\[\]<]/g, '\\$&').replace(/(^|[^\p{L}\p{N}])_|_(?=[^\p{L}\p{N}]|$)/gu, (found) => found.replace('_', '\\_'));
// What would begin a heading, a list or a quotation.
const escapeStart = (line) => line.replace(/^(\s*)(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|={3,}|-{3,}|~{3,})/, '$1\\$2').replace(/^(\s*\d{1,9})([.)])(?=\s|$)/, '$1\\$2');
const target = (url) => url.replace(/[()<>\\\s]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
const fence = (code, least) => {
  const longest = Math.max(0, ...(code.match(/`+/g) ?? []).map((run) => run.length));
  return '`'.repeat(Math.max(least, longest + 1));
};
// Marks are directly beside the text, and spaces are kept outside.
const wrap = (text, mark) => {
  const inner = text.trim();
  if (!inner) return text;
  return `${/^\s/.test(text) ? ' ' : ''}${mark}${inner}${mark}${/\s$/.test(text) ? ' ' : ''}`;
};

const markdown = ({ most }) => {
  let nodes = 0;
  let size = 0;
  let isCut = false;
  const styleOf = (element) => getComputedStyle(element);
  const isLeftOut = (element, style) => SKIPPED.has(localName(element)) || style.display === 'none' || attribute(element, 'aria-hidden') === 'true';
  const isInline = (style) => /^(?:inline|contents|ruby)/.test(style.display);
  const enter = (depth) => {
    nodes += 1;
    if (nodes > MAX_NODES || size > most || depth > MAX_DEPTH) isCut = true;
    return !(nodes > MAX_NODES || size > most || depth > MAX_DEPTH);
  };
  const count = (text) => {
    size += text.length;
    return text;
  };

  const image = (element) => {
    const url = webUrl(shownSource(element) || imageSource(element));
    const alt = escapeInline(oneLine(attribute(element, 'alt') ?? '', 300));
    return url ? count(`![${alt}](${target(url)})`) : alt;
  };

  // An element or a text, in one line.
  const inline = (node, depth, isShown) => {
    if (!enter(depth)) return '';
    if (typeOf(node) === TEXT) return isShown ? count(escapeInline(codeOf(node).replace(/[\s\u0000]+/g, ' '))) : '';
    if (typeOf(node) !== ELEMENT) return '';
    const style = styleOf(node);
    if (isLeftOut(node, style)) return '';
    const name = localName(node);
    const shown = style.visibility === 'visible';
    if (name === 'br') return '\n';
    if (name === 'img' && node instanceof HTMLImageElement) return shown ? image(node) : '';
    if (CODE.has(name)) {
      const code = textContent(node).replace(/\s+/g, ' ').trim();
      if (!code || !shown) return '';
      const mark = fence(code, 1);
      const space = /^`|`$/.test(code) ? ' ' : '';
      return count(`${mark}${space}${code}${space}${mark}`);
    }
    const inner = inlines(node, depth, shown);
    if (name === 'a' && node instanceof HTMLAnchorElement) {
      const url = anchorUrl(node);
      const label = inner.replace(/\s+/g, ' ').trim() || escapeInline(oneLine(attribute(node, 'aria-label') ?? '', 300));
      if (!label || !(webUrl(url) || /^(?:mailto|tel):/i.test(url)) || url.length > MAX_URL) return inner;
      return count(`${/^\s/.test(inner) ? ' ' : ''}[${label}](${target(url)})${/\s$/.test(inner) ? ' ' : ''}`);
    }
    if (BOLD.has(name)) return wrap(inner, '**');
    if (ITALIC.has(name)) return wrap(inner, '*');
    if (STRUCK.has(name)) return wrap(inner, '~~');
    return isInline(style) ? inner : ` ${inner} `;
  };
  const inlines = (node, depth, isShown) => {
    let text = '';
    for (const child of childrenOf(node)) text += inline(child, depth + 1, isShown);
    return text;
  };
  const tidy = (text) =>
    text.split('\n').map((line) => line.replace(/\s+/g, ' ').trim()).join('\n').replace(/^\n+|\n+$/g, '').replace(/\n{2,}/g, '\n');
  const singleLine = (text) => text.replace(/\s+/g, ' ').trim();
  const paragraph = (text) => tidy(text).split('\n').map(escapeStart).join('  \n');

  const hasBlocks = (node, depth) => {
    if (depth > MAX_DEPTH) return false;
    for (const child of childrenOf(node)) {
      if (typeOf(child) !== ELEMENT) continue;
      const style = styleOf(child);
      if (SKIPPED.has(localName(child)) || style.display === 'none') continue;
      if (!isInline(style) || hasBlocks(child, depth + 1)) return true;
    }
    return false;
  };

  const indent = (text, first, rest) => text.split('\n').map((line, at) => (at === 0 ? first + line : line ? rest + line : line)).join('\n');

  const list = (element, depth) => {
    const isOrdered = localName(element) === 'ol';
    const start = Number.parseInt(attribute(element, 'start') ?? '1', 10);
    let number = Number.isFinite(start) && start >= 0 && start < 1e9 ? start : 1;
    const items = [];
    for (const child of childrenOf(element)) {
      if (typeOf(child) !== ELEMENT || isLeftOut(child, styleOf(child))) continue;
      const content = blocks(child, depth + 1).join('\n\n').replace(/\n\n(?=\s*(?:[-*]|\d+\.) )/g, '\n');
      if (!content) continue;
      const marker = isOrdered ? `${number}. ` : '- ';
      number += 1;
      items.push(indent(content, marker, ' '.repeat(marker.length)));
    }
    return items.join('\n');
  };

  const rowsOf = (table) => selectIn(table, ':scope > tr, :scope > thead > tr, :scope > tbody > tr, :scope > tfoot > tr');
  const cellsOf = (row) => selectIn(row, ':scope > th, :scope > td');
  const isData = (table, rows) => {
    if (selectIn(table, 'table').length > 0 || rows.length < 1) return false;
    const widest = Math.max(...rows.slice(0, 1000).map((row) => cellsOf(row).length));
    return widest > 1 && widest <= 100 && (rows.length > 1 || selectIn(table, 'th').length > 0);
  };
  const tableOf = (table, rows, depth) => {
    const lines = [];
    for (const row of rows) {
      if (!enter(depth)) break;
      if (styleOf(row).display === 'none') continue;
      lines.push(cellsOf(row).map((cell) => singleLine(inlines(cell, depth + 2, styleOf(cell).visibility === 'visible')).replace(/\|/g, '\\|')));
    }
    const width = Math.max(0, ...lines.map((line) => line.length));
    if (width === 0) return '';
    const write = (cells) => `| ${Array.from({ length: width }, (_, at) => cells[at] ?? '').join(' | ')} |`;
    return [write(lines[0]), `|${' --- |'.repeat(width)}`, ...lines.slice(1).map(write)].join('\n');
  };

  const preformatted = (element) => {
    const code = (element instanceof HTMLElement ? innerText(element) : textContent(element)).replace(/\u0000/g, '').replace(/^\n|\s+$/g, '');
    if (!code) return '';
    const classes = [element, ...selectIn(element, 'code')].map((of) => attribute(of, 'class') ?? '').join(' ');
    const language = /(?:^|\s)lang(?:uage)?-([\w+#-]{1,30})/.exec(classes)?.[1] ?? '';
    const mark = fence(code, 3);
    return count(`${mark}${language}\n${code}\n${mark}`);
  };

  // The blocks of an element that is a block, or has some.
  const block = (element, depth) => {
    const name = localName(element);
    const isShown = styleOf(element).visibility === 'visible';
    const level = /^h([1-6])$/.exec(name)?.[1];
    if (level) {
      const heading = singleLine(inlines(element, depth, isShown));
      return heading ? [`${'#'.repeat(Number(level))} ${heading}`] : [];
    }
    const one = (text) => (text ? [text] : []);
    switch (name) {
      case 'hr':
        return ['---'];
      case 'pre':
        return isShown ? one(preformatted(element)) : [];
      case 'ul':
      case 'ol':
      case 'menu':
        return one(list(element, depth));
      case 'blockquote': {
        const inner = blocks(element, depth + 1).join('\n\n');
        return one(inner.split('\n').map((line) => (inner ? `> ${line}`.trimEnd() : '')).join('\n'));
      }
      case 'table': {
        const rows = rowsOf(element);
        return isData(element, rows) ? one(tableOf(element, rows, depth + 1)) : blocks(element, depth + 1);
      }
      case 'dt':
        return one(wrap(singleLine(inlines(element, depth, isShown)), '**'));
      default:
        return blocks(element, depth + 1);
    }
  };

  const blocks = (node, depth) => {
    const found = [];
    let run = '';
    const flush = () => {
      const text = paragraph(run);
      if (text) found.push(text);
      run = '';
    };
    const isShown = typeOf(node) !== ELEMENT || styleOf(node).visibility === 'visible';
    for (const child of childrenOf(node)) {
      if (typeOf(child) !== ELEMENT) {
        run += inline(child, depth + 1, isShown);
        continue;
      }
      if (!enter(depth)) break;
      const style = styleOf(child);
      if (isLeftOut(child, style)) continue;
      const name = localName(child);
      // A link or a span around blocks is left out, so that they are written as such; links around text stay.
      const isBlock = !isInline(style) || (name !== 'a' && hasBlocks(child, depth));
      if (isBlock && name !== 'br' && name !== 'img') {
        flush();
        found.push(...block(child, depth + 1));
      } else {
        run += inline(child, depth + 1, isShown);
      }
    }
    flush();
    return found;
  };

  const body = bodyOf(document) ?? rootOf(document);
  const content = body ? `${blocks(body, 0).join('\n\n')}\n` : '';
  return { content: content.slice(0, most), isCut: isCut || content.length > most };
};

const height = () => {
  const element = document.scrollingElement ?? rootOf(document);
  return { height: element instanceof Element ? element.scrollHeight : 0 };
};

return { html, text, links, elements, headings, markdown, height };
})()
