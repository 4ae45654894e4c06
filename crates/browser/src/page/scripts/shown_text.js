// The texts that a reader can see.

const styleOf = (element) => getComputedStyle(element);
const localName = (element) => element.localName;
const flatParent = (element) => parentOf(element);
const matchesSelector = (element, selector) => element.matches(selector);

// The texts that a tree shows, without those of the trees in it. The text of an element that is not rendered is its whole
// content.
const ownTexts = (tree) => {
  if (tree.nodeType === Node.DOCUMENT_NODE) return [tree.body?.innerText ?? tree.documentElement?.textContent];
  return [...tree.childNodes].map((node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    return node.nodeType === Node.ELEMENT_NODE && getComputedStyle(node).display !== 'none' ? node.innerText : '';
  });
};

// The tree, its open shadow trees and the documents of its frames that can be read, as far as they are shown.
const shownTrees = (tree = document) => {
  const all = [tree];
  for (const element of tree.querySelectorAll('*')) {
    if (element.shadowRoot && isShown(element)) all.push(...shownTrees(element.shadowRoot));
    const inner = documentIn(element);
    if (inner && isVisible(element)) all.push(...shownTrees(inner));
  }
  return all;
};

// What the window leaves of this document: users cannot scroll to what is above or to the left of its origin, nor to the right where
// it hides that, and not at all to what is fixed.
const reachOfWindow = () => {
  const isLeftToRight = getComputedStyle(document.documentElement).direction === 'ltr';
  const page = {
    left: isLeftToRight ? -scrollX : EVERYWHERE.left,
    top: -scrollY,
    right: isLeftToRight && hidesWidth() ? Math.max(innerWidth, root().clientWidth) : EVERYWHERE.right,
    bottom: EVERYWHERE.bottom,
  };
  const fixed = { ...EVERYWHERE, left: 0, top: 0, right: Math.max(innerWidth, root().scrollWidth) };
  return { ...UNCUT, own: page, inFlow: page, absolute: page, fixed };
};

// Is a text in the element drawn, and is it opaque? One directly in an element with `display: contents` has the box of an ancestor.
const drawingOf = (element) => {
  const { display, visibility } = getComputedStyle(element);
  if (display === 'contents') {
    const parent = parentOf(element);
    const outer = parent ? drawingOf(parent) : { isDrawn: true, isOpaque: true };
    return { ...outer, isDrawn: visibility === 'visible' && outer.isDrawn };
  }
  // Options of a closed list have no boxes.
  const boxed = element.matches('option, optgroup') ? (element.closest('select') ?? element) : element;
  return { isDrawn: boxed.checkVisibility({ visibilityProperty: true }), isOpaque: isShown(boxed) && isInked(element), isOption: boxed !== element };
};

// Does the text of the element leave anything in the image? The background may be what has its shape.
const isInked = (element) => {
  const { webkitTextFillColor, webkitTextStrokeWidth, textShadow } = getComputedStyle(element);
  const isClear = /^rgba\(.*, 0\)$|\/ 0\)$/.test(webkitTextFillColor);
  if (!isClear || textShadow !== 'none' || parseFloat(webkitTextStrokeWidth) > 0) return true;
  for (let holder = element; holder; holder = parentOf(holder)) {
    if (getComputedStyle(holder).backgroundClip.includes('text')) return true;
  }
  return false;
};

const isInLine = (element) => element.localName !== 'br' && /^(?:inline|contents|none|ruby)/.test(getComputedStyle(element).display);

// The texts of a tree that are drawn, and those of them that can be seen: that are not transparent, not cut off, and have a size.
// What is in different blocks or on different lines is separated by spaces.
const drawnTexts = (tree) => {
  const clipping = newClipping(tree.ownerDocument === document || tree === document ? reachOfWindow() : UNCUT, true);
  const drawings = new Map();
  const blocks = new Map();
  const cached = (known, element, read) => {
    if (!known.has(element)) known.set(element, read(element));
    return known.get(element);
  };
  // The parent of a text is visited before the text.
  const blockOf = (element) => cached(blocks, element, () => (isInLine(element) ? (blocks.get(element.parentElement) ?? null) : element));
  const range = new Range();
  const canBeSeen = (node, parent) => {
    const { isOpaque, isOption } = cached(drawings, parent, drawingOf);
    // A space at the end of a line has no size.
    if (!isOpaque || isOption || node.data.trim() === '') return isOpaque;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    return hasArea(box) && !hasNoArea(intersection(box, clipsOf(parent, clipping).inFlow));
  };
  const texts = { drawn: [], seen: [] };
  const add = (text, isSeen) => {
    texts.drawn.push(text);
    if (isSeen) texts.seen.push(text);
  };
  const walker = Document.prototype.createTreeWalker.call(document, tree, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  let last = null;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (blockOf(node) === node) add(' ', true);
      continue;
    }
    const parent = node.parentElement;
    const block = parent ? blockOf(parent) : null;
    if (block !== last) add(' ', true);
    last = block;
    if (parent && cached(drawings, parent, drawingOf).isDrawn) add(node.data, canBeSeen(node, parent));
    else if (!parent) add(node.data, true);
  }
  return texts;
};

// Does the page show the text?
const showsText = (text) => {
  const wanted = oneLine(text).toLowerCase();
  // Names in the document may replace its properties by elements.
  const has = (parts) => oneLine(parts.filter((part) => typeof part === 'string').join('')).toLowerCase().includes(wanted);
  const all = shownTrees();
  if (!has(all.flatMap(ownTexts).flatMap((part) => [part, '\n']))) return false;
  const texts = all.map(drawnTexts);
  // A text that styles put together otherwise is not looked at.
  const isKnown = has(texts.flatMap(({ drawn }) => [...drawn, '\n']));
  return !isKnown || has(texts.flatMap(({ seen }) => [...seen, '\n']));
};
