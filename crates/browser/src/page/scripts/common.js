// Shared functions. All scripts run in an isolated world: they see the document, and the page's own scripts can neither
// see them nor replace the functions they call.

// Unlike a timer, a task has no id with which the page could cancel it.
const after = (ms) => scheduler.postTask(() => {}, { delay: ms });

// Waits for a frame and for the one after it, which shows the effects of the first; at most 100 ms, if no frames are
// drawn.
const frame = () => Promise.race([new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))), after(100)]);

const root = () => document.scrollingElement ?? document.documentElement;

const documentHeight = () => Math.max(root().scrollHeight, innerHeight);

const pageSize = () => ({ width: Math.max(root().scrollWidth, innerWidth), height: documentHeight() });

// The document and all open shadow trees in it. Closed shadow trees are inaccessible. The result is valid until the
// page's scripts run again.
let knownTrees = null;
const trees = () => {
  if (knownTrees) return knownTrees;
  knownTrees = [document];
  queueMicrotask(() => (knownTrees = null));
  for (const tree of knownTrees) {
    for (const element of tree.querySelectorAll('*')) if (element.shadowRoot) knownTrees.push(element.shadowRoot);
  }
  return knownTrees;
};

const elements = (selector = '*') => trees().flatMap((tree) => [...tree.querySelectorAll(selector)]);

// The elements that a selector of the caller matches. For those that are none of CSS, `locate.js` was sent before.
const selected = (selector) =>
  (/^(?:text|role)=/.test(selector) ? globalThis[Symbol.for('grabd-steps')].search(selector) : elements(selector));

// The parent in the flat tree: through slots and out of shadow trees.
const parentOf = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;

// Is `inner` the element, or inside it, also across shadow trees?
const holds = (outer, inner) => {
  for (let at = inner; at; at = parentOf(at)) if (at === outer) return true;
  return false;
};

const hasArea = (box) => box.width > 0 && box.height > 0;

const overlaps = (box, other) =>
  box.left < other.right && box.right > other.left && box.top < other.bottom && box.bottom > other.top;

const viewport = () => ({ left: 0, top: 0, right: innerWidth, bottom: innerHeight });

const isInView = (element) => {
  const box = element.getBoundingClientRect();
  return hasArea(box) && overlaps(box, viewport());
};

// An element with `display: contents` has no box of its own, and is shown if its parent is.
const isShown = (element) =>
  getComputedStyle(element).display === 'contents'
    ? isShown(parentOf(element) ?? document.documentElement)
    : element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

// Sets styles for good.
const keepStyle = (element, values) => {
  for (const [name, value] of Object.entries(values)) element.style?.setProperty(name, value, 'important');
};

// The styles that elements had before the page was laid out for an image.
const formerStyles = new Map();

// Sets styles until `restore` is called with the same map.
const setStyle = (element, values, formerOf = formerStyles) => {
  if (!element.style) return;
  const former = formerOf.get(element) ?? new Map();
  formerOf.set(element, former);
  for (const name of Object.keys(values)) {
    if (!former.has(name)) former.set(name, [element.style.getPropertyValue(name), element.style.getPropertyPriority(name)]);
  }
  keepStyle(element, values);
};

const restore = (formerOf) => {
  for (const [element, former] of formerOf) {
    for (const [name, [value, priority]] of former) {
      if (value) element.style.setProperty(name, value, priority);
      else element.style.removeProperty(name);
    }
  }
  formerOf.clear();
};

// The box of an element. One with `display: contents` has none of its own, but its content has.
const boxOf = (element) => {
  if (getComputedStyle(element).display !== 'contents') return element.getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(element);
  return range.getBoundingClientRect();
};

const isVisible = (element) => hasArea(boxOf(element)) && isShown(element);

// How much the CSS `zoom` of the element, and that of what contains it, enlarges the lengths in its styles.
const zoomOf = (element) => element.currentCSSZoom ?? 1;

// A length on the screen as a length in styles of the element.
const styleLength = (element, length) => `${length / zoomOf(element)}px`;

// How much larger a frame is drawn than it is laid out, across and down. Of a frame that is not drawn, it is no number.
const drawnScale = (element) => {
  const { width, height } = element.getBoundingClientRect();
  return [width / element.offsetWidth, height / element.offsetHeight];
};

// Where the document of a frame begins in the window.
const frameCorner = (element) => {
  const { left, top } = element.getBoundingClientRect();
  const { paddingLeft, paddingTop } = getComputedStyle(element);
  const [across, down] = drawnScale(element);
  return {
    x: left + (element.clientLeft + parseFloat(paddingLeft)) * across,
    y: top + (element.clientTop + parseFloat(paddingTop)) * down,
  };
};

const PAINTING = 'img, svg, canvas, video, iframe, frame, object, embed, input, button, select, textarea, meter, math';

// Does the element show text, an image or a control by itself?
const showsSomething = (element) =>
  element.matches(PAINTING) || [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');

const scrollToTop = (y) => scrollTo({ left: 0, top: y, behavior: 'instant' });

// The innermost element at a point of the window, also in open shadow trees.
const elementAt = (x, y) => {
  let element = document.elementFromPoint(x, y);
  while (element?.shadowRoot) {
    const inner = element.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === element) break;
    element = inner;
  }
  return element;
};

// Without characters that are not drawn, such as soft hyphens.
const drawnText = (text) => text.replace(/[\u00AD\u200B-\u200D\u2060\uFEFF]/g, '');
const oneLine = (text) => drawnText(text).replace(/\s+/g, ' ').trim();
