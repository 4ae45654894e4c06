// Covers what the caller masks, and outlines what the caller highlights, while the image is taken.

// Nothing is drawn above a masked element: it is not drawn itself. Its opacity is also that of everything in it, wherever that is
// positioned and whatever it declares: texts, pseudo-elements, images, canvases, videos, frames, and what is added later. The
// layout stays the same. Then grey boxes are drawn in the places of the elements. If one of them is at a wrong place, or
// missing, nothing is disclosed.
const MASKED = { opacity: '0', visibility: 'hidden', transition: 'none' };
// The background of the body is drawn behind all of the page, whatever the opacity of the body is.
const MASKED_BODY = { ...MASKED, 'background-color': 'transparent', 'background-image': 'none' };
const MASK_COLOUR = '#808080';
// The boxes of more elements are not drawn.
const MAX_BOXES = 2000;
const XHTML = 'http://www.w3.org/1999/xhtml';

const documentIn = (element) => {
  if (!/^(?:iframe|frame|object|embed)$/.test(element.localName)) return null;
  try {
    return element.contentDocument ?? null;
  } catch {
    return null;
  }
};

// The tree, the open shadow trees and the documents of frames in it that can be read, and those in these.
const everyTree = (tree = document) => {
  const all = [tree];
  for (const element of tree.querySelectorAll('*')) {
    for (const inner of [element.shadowRoot, documentIn(element)]) if (inner) all.push(...everyTree(inner));
  }
  return all;
};

// The elements whose boxes are those of this one: an option is drawn by its list, and an element with `display: contents` has
// no box of its own.
const boxedElements = (element) => {
  const shown = element.matches('option, optgroup') ? (element.closest('select') ?? element) : element;
  if (getComputedStyle(shown).display !== 'contents') return [shown];
  const assigned = shown.assignedElements?.({ flatten: true }) ?? [];
  return [...assigned, ...(shown.shadowRoot ?? shown).children].flatMap(boxedElements);
};

const isBody = (element) => element.localName === 'body';

// Is nothing of an element with a box drawn?
const isUndrawn = (element) => {
  const { backgroundColor, backgroundImage } = getComputedStyle(element);
  return isHidden(element) && (!isBody(element) || (isTransparent(backgroundColor) && backgroundImage === 'none'));
};

// Is nothing of the element drawn? Texts directly in an element with `display: contents` have its visibility.
const isMasked = (element) => {
  const { display, visibility } = getComputedStyle(element);
  return (display !== 'contents' || visibility === 'hidden') && boxedElements(element).every(isUndrawn);
};

// The styles of elements before they were masked.
const unmasked = new Map();
const maskElement = (element) => {
  if (getComputedStyle(element).display === 'contents') setStyle(element, MASKED, unmasked);
  for (const boxed of boxedElements(element)) if (!isUndrawn(boxed)) setStyle(boxed, isBody(boxed) ? MASKED_BODY : MASKED, unmasked);
};

// What is drawn above the page for the image, in a closed shadow tree, which the styles of the page do not reach.
let overlay = null;
const removeOverlay = () => {
  overlay?.remove();
  overlay = null;
};

let maskSelectors = [];

// The copies of masked elements that were made for the image, with the selectors that the originals match: a selector need not
// match a copy.
const maskedCopies = new Map();
const noteCopy = (element, copy) => {
  const selectors = [...maskSelectors.filter((selector) => element.matches(selector)), ...(maskedCopies.get(element) ?? [])];
  if (selectors.length > 0) maskedCopies.set(copy, selectors);
};

const isSelector = (selector) => {
  try {
    document.createDocumentFragment().querySelector(selector);
    return true;
  } catch {
    return false;
  }
};

// Before anything is copied for the image.
page.prepareLooks = ({ mask }) => {
  maskSelectors = mask.filter(isSelector);
  return {};
};

// The elements that match each selector. What is in the top layer is drawn apart from the element that it belongs to, so that it
// is listed by itself.
const findMasked = () => {
  const all = everyTree();
  const copies = [...maskedCopies].filter(([copy]) => copy.isConnected);
  const found = maskSelectors.map((selector) => [
    ...all.flatMap((tree) => [...tree.querySelectorAll(selector)]).filter((element) => element !== overlay),
    ...copies.filter(([, selectors]) => selectors.includes(selector)).map(([copy]) => copy),
  ]);
  const listed = new Set(found.flat());
  const top = all.flatMap((tree) => [...tree.querySelectorAll(':modal, :popover-open, :fullscreen')]).filter((element) => element !== overlay);
  for (const element of top) {
    for (let at = element; at; at = parentOf(at)) if (listed.has(at)) listed.add(element);
  }
  return { missing: maskSelectors.find((_, index) => found[index].length === 0) ?? null, elements: [...listed] };
};

// Elements that are added after the others were found are masked by a style sheet, or at the next change of the document.
const maskSheets = new Map();
const addMaskSheet = (tree) => {
  const view = (tree.ownerDocument ?? tree).defaultView;
  if (!view || maskSheets.has(tree)) return;
  const sheet = new view.CSSStyleSheet();
  for (const selector of maskSelectors) {
    try {
      sheet.insertRule(`@layer ${LAYER} { ${selector} { ${declarations(MASKED)} } }`, sheet.cssRules.length);
      // Those of an element with `display: contents` have only their own visibility.
      const pseudo = ['', ' *'].flatMap((inner) => ['before', 'after'].map((kind) => `:is(${selector})${inner}::${kind}`)).join();
      sheet.insertRule(`@layer ${LAYER} { ${pseudo} { visibility: hidden !important } }`, sheet.cssRules.length);
    } catch {
      // The elements that it matches are masked one by one.
    }
  }
  // The pictures of a transition between two views are drawn instead of the elements.
  sheet.insertRule('::view-transition { display: none !important }', sheet.cssRules.length);
  maskSheets.set(tree, sheet);
  tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, sheet];
};

const maskChanges = new MutationObserver(() => {
  for (const element of findMasked().elements) if (!isMasked(element) && isAllowed(element)) maskElement(element);
});

// The part of a box that is not cut off by the ancestors of its element, or null.
const uncutPart = (element, box) => {
  let { left, top, right, bottom } = box;
  let { position } = getComputedStyle(element);
  for (let parent = parentOf(element); parent && position !== 'fixed'; parent = parentOf(parent)) {
    const style = getComputedStyle(parent);
    // What is positioned absolutely is cut off only by the ancestor that it is positioned in, and by those around that.
    if (position === 'absolute' && style.position === 'static' && style.transform === 'none') continue;
    position = style.position;
    const { body, documentElement } = parent.ownerDocument;
    if (parent === body || parent === documentElement || (style.overflowX === 'visible' && style.overflowY === 'visible')) continue;
    const around = parent.getBoundingClientRect();
    if (style.overflowX !== 'visible') [left, right] = [Math.max(left, around.left), Math.min(right, around.right)];
    if (style.overflowY !== 'visible') [top, bottom] = [Math.max(top, around.top), Math.min(bottom, around.bottom)];
  }
  return right > left && bottom > top ? { left, top, right, bottom } : null;
};

// A box of an element, from the corner of the window, or null if it cannot be seen. That of an element in a frame is moved by the
// place of the frame.
const placeInWindow = (element, box) => {
  let place = uncutPart(element, box);
  for (let view = element.ownerDocument.defaultView; place && view && view !== window; view = view.parent) {
    const frame = view.frameElement;
    if (!frame) return null;
    const outer = frame.getBoundingClientRect();
    const [across, down] = drawnScale(frame);
    const { x, y } = frameCorner(frame);
    const left = Math.max(place.left * across + x, outer.left);
    const top = Math.max(place.top * down + y, outer.top);
    const right = Math.min(place.right * across + x, outer.right);
    const bottom = Math.min(place.bottom * down + y, outer.bottom);
    place = right > left && bottom > top ? uncutPart(frame, { left, top, right, bottom }) : null;
  }
  return place;
};

const drawn = (styles) => {
  const element = document.createElementNS(XHTML, 'div');
  keepStyle(element, { all: 'initial', display: 'block', 'box-sizing': 'border-box', position: 'absolute', ...styles });
  return element;
};

const pixels = (place, origin) => ({
  left: `${place.left - origin.left}px`,
  top: `${place.top - origin.top}px`,
  width: `${place.right - place.left}px`,
  height: `${place.bottom - place.top}px`,
});

const drawOverlay = (draw) => {
  removeOverlay();
  overlay = drawn({ left: '0', top: '0', width: '0', height: '0', overflow: 'visible', 'z-index': '2147483647', 'pointer-events': 'none' });
  const tree = overlay.attachShadow({ mode: 'closed' });
  const hasTopLayer = document.querySelector(':modal, :popover-open, :fullscreen') !== null;
  if (hasTopLayer) overlay.setAttribute('popover', 'manual');
  document.documentElement.append(overlay);
  // Otherwise an open dialog would be above it.
  if (hasTopLayer) overlay.showPopover();
  tree.append(...draw(overlay.getBoundingClientRect()));
};

const OUTLINE_PX = 3;
// The outlined elements of each selector.
const MAX_OUTLINED = 100;
const DARK = ['red', 'green', 'blue', 'purple', 'black'];

// Draws an outline around a place, and its label above it, or in it if there is no room. Both stay in the shown part of the page.
const drawnOutline = ({ place, label, color }, shown, origin) => {
  const outer = {
    left: Math.max(place.left - OUTLINE_PX, shown.left),
    top: Math.max(place.top - OUTLINE_PX, shown.top),
    right: Math.min(place.right + OUTLINE_PX, shown.right),
    bottom: Math.min(place.bottom + OUTLINE_PX, shown.bottom),
  };
  const outline = drawn({ ...pixels(outer, origin), border: `${OUTLINE_PX}px solid ${color}` });
  if (!label) return [outline];
  const height = 20;
  const isAbove = outer.top - height >= shown.top;
  const text = drawn({
    left: `${outer.left - origin.left}px`, top: `${outer.top - origin.top - (isAbove ? height : 0)}px`, height: `${height}px`,
    'max-width': `${Math.max(0, shown.right - outer.left)}px`, padding: '0 6px', overflow: 'hidden', background: color,
    color: DARK.includes(color) ? 'white' : 'black', font: '600 13px/20px Arial, Helvetica, sans-serif', 'white-space': 'nowrap',
  });
  text.textContent = label;
  return [outline, text];
};

// The places to outline, or the problem.
const findOutlines = (highlight, shown) => {
  const outlines = [];
  for (const { selector, label, color } of highlight) {
    const visible = elements(selector).filter((element) => hasArea(boxOf(element)) && isShown(element));
    const places = visible.map((element) => uncutPart(element, boxOf(element))).filter((place) => place !== null && overlaps(place, shown));
    if (places.length === 0) return { problem: { kind: visible.length > 0 ? 'outside' : 'missing', option: 'highlight', selector } };
    for (const place of places.slice(0, MAX_OUTLINED)) outlines.push({ place, label, color });
  }
  return { problem: null, outlines };
};

// The part of the page that the image shows, from the corner of the window.
const shownPart = (area) => {
  if (!area) return viewport();
  const [left, top] = [area.x + leftEdge() - scrollX, area.y - scrollY];
  return { left, top, right: left + area.width, bottom: top + area.height };
};

let hasBegun = false;

// Masks the elements, and draws what covers and outlines elements. Returns the first selector that is invalid, matches nothing,
// or, of what is outlined, nothing in the image.
page.beginLooks = ({ mask, highlight, area }) => {
  removeOverlay();
  const selectors = [...mask.map((selector) => ['mask', selector]), ...highlight.map(({ selector }) => ['highlight', selector])];
  for (const [option, selector] of selectors) {
    if (!isSelector(selector)) return { problem: { kind: 'invalid', option, selector } };
  }
  maskSelectors = mask;
  const shown = highlight.length > 0 ? shownPart(area) : null;
  // Before anything is masked.
  const { problem, outlines } = findOutlines(highlight, shown);
  if (problem) return { problem };
  const { missing, elements: masked } = mask.length > 0 ? findMasked() : { missing: null, elements: [] };
  if (missing !== null) return { problem: { kind: 'missing', option: 'mask', selector: missing } };
  const places = masked
    .flatMap(boxedElements)
    .filter(isShown)
    .slice(0, MAX_BOXES)
    .flatMap((element) => [...element.getClientRects()].filter(hasArea).map((box) => placeInWindow(element, box)))
    .filter((place) => place !== null);
  if (mask.length > 0) {
    for (const tree of everyTree()) {
      addMaskSheet(tree);
      maskChanges.observe(tree, { subtree: true, childList: true, attributes: true, attributeFilter: ['style', 'class', 'id', 'hidden', 'open'] });
    }
    masked.forEach(maskElement);
  }
  if (places.length + outlines.length > 0) {
    drawOverlay((origin) => [
      ...places.map((place) => drawn({ ...pixels(place, origin), background: MASK_COLOUR })),
      ...outlines.flatMap((outline) => drawnOutline(outline, shown, origin)),
    ]);
  }
  hasBegun = true;
  return { problem: null };
};

// After the image was taken: undoes all of that, and returns whether this document is the one in which it was done, the number of
// masked elements that were drawn nevertheless, and a selector that matches nothing any more.
page.endLooks = () => {
  const { missing, elements: masked } = findMasked();
  const result = { begun: hasBegun, visible: masked.filter((element) => !isMasked(element)).length, missing };
  hasBegun = false;
  maskChanges.disconnect();
  removeOverlay();
  restore(unmasked);
  for (const [tree, sheet] of maskSheets) tree.adoptedStyleSheets = tree.adoptedStyleSheets.filter((other) => other !== sheet);
  maskSheets.clear();
  return result;
};
