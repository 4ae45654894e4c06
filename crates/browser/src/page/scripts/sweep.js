// Scrolls through the whole page, so that everything loads that loads or appears only when it is scrolled to.

// The minimum part of a list that its rows cover.
const LIST_FILLED = 0.5;

// The inner element that scrolls in place of the document, or null.
let scroller = null;
// Elements that were seen while scrolling. If many are removed later, the page has a virtual list.
const visited = new Set();
// The ancestors of these elements. A virtual list removes elements from one of them and adds others.
const ancestors = new Map();
// The height that was scrolled through.
let knownHeight = 0;
// The first screen before the page was scrolled.
let unscrolled = { seen: [] };

const scrollTop = () => (scroller ? scroller.scrollTop : scrollY);
const screenHeight = () => (scroller ? scroller.clientHeight : innerHeight);
const contentHeight = () => (scroller ?? root()).scrollHeight;
const scrollToY = (top) => (scroller ?? window).scrollTo({ left: scroller?.scrollLeft ?? 0, top, behavior: 'instant' });

const recordVisible = () => {
  for (const across of [0.3, 0.6]) {
    for (const down of [0.2, 0.5, 0.8]) {
      const element = document.elementFromPoint(innerWidth * across, innerHeight * down);
      if (!element || element === document.body || element === document.documentElement || visited.has(element)) continue;
      visited.add(element);
      const around = [];
      for (let parent = element; parent && parent !== document.body && around.length < 6; parent = parentOf(parent)) around.push(parent);
      ancestors.set(element, around);
    }
  }
};

// Lays out sections that would be laid out only in view.
const layOutSections = () => {
  for (const element of elements('body *')) {
    if (getComputedStyle(element).contentVisibility === 'auto') setStyle(element, { 'content-visibility': 'visible' });
  }
};

// Elements with attributes that a script changed near the window, with the values they had then. Pages with scroll
// animations may hide elements again that are scrolled out of view. What an element had in view is kept, or else the first
// values it had above the window, or just below: a throttled scroll handler runs after the element has been scrolled past,
// and a library may show an element that it has moved out of the window.
const savedElements = new Map();
const MAX_SAVED_ELEMENTS = 2000;
const SAVED_ATTRIBUTES = /^(?:class|style|hidden|inert|aria-hidden|data-.+)$/;
const area = (box) => box.width * box.height;
const [BELOW, ABOVE, IN_VIEW] = [0, 1, 2];
const sideOf = (box) => {
  if (overlaps(box, viewport())) return IN_VIEW;
  return box.bottom <= 0 ? ABOVE : BELOW;
};
const attributeObserver = new MutationObserver((records) => {
  const changed = new Map();
  for (const { target, attributeName, oldValue } of records) {
    if (!SAVED_ATTRIBUTES.test(attributeName) || target.getAttribute(attributeName) === oldValue) continue;
    changed.set(target, (changed.get(target) ?? new Set()).add(attributeName));
  }
  for (const [element, names] of changed) {
    const box = element.getBoundingClientRect();
    const side = sideOf(box);
    const saved = savedElements.get(element);
    if (saved ? side < IN_VIEW && side <= saved.side : savedElements.size >= MAX_SAVED_ELEMENTS || box.top > 2 * innerHeight) continue;
    for (const name of saved?.values.keys() ?? []) names.add(name);
    const values = new Map([...names].map((name) => [name, element.getAttribute(name)]));
    savedElements.set(element, { values, area: area(box), side });
  }
});

const setAttributes = (element, values) => {
  for (const [name, value] of values) {
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
};

// Restores the attributes of elements below the first screen that are now hidden or have shrunk.
const restoreAttributes = () => {
  attributeObserver.disconnect();
  const isHidden = (element) => [element, ...element.querySelectorAll('*')].some((inside) => hasArea(inside.getBoundingClientRect()) && !isShown(inside));
  for (const [element, saved] of savedElements) {
    const now = new Map([...saved.values.keys()].map((name) => [name, element.getAttribute(name)]));
    const isSame = [...saved.values].every(([name, value]) => now.get(name) === value);
    const box = element.getBoundingClientRect();
    if (isSame || !element.isConnected || overlaps(box, viewport()) || !(area(box) < saved.area / 2 || isHidden(element))) continue;
    setAttributes(element, saved.values);
    // What is fixed to the window would be on the first screen.
    if (isInFixed(element) && overlaps(element.getBoundingClientRect(), viewport())) setAttributes(element, now);
  }
};

// Prepares the page for scrolling.
page.prepareSweep = ({ maxHeight }) => {
  layOutSections();
  for (const element of elements('img[loading="lazy"], iframe[loading="lazy"]')) {
    if (element.getBoundingClientRect().top + scrollY < maxHeight) element.loading = 'eager';
  }
  scroller = findScroller();
  knownHeight = contentHeight();
  for (const tree of trees()) attributeObserver.observe(tree, { subtree: true, attributeOldValue: true });
  unscrolled = firstScreen();
  return {};
};

// Scrolls to the end, or to the maximum height. A further call continues where the page has grown.
page.sweep = async ({ maxHeight, budgetMs }) => {
  const until = performance.now() + budgetMs;
  let at = scrollTop();
  let last = -1;
  for (;;) {
    scrollToY(at);
    await frame();
    recordVisible();
    const end = Math.min(contentHeight(), maxHeight) - screenHeight();
    // A snapping scroller may stop elsewhere.
    if (at >= end || at === last || performance.now() >= until) break;
    last = at;
    at = Math.min(at + screenHeight(), end);
  }
  knownHeight = contentHeight();
  return { reached: Math.min(knownHeight, maxHeight) - screenHeight() <= at };
};

page.hasGrown = () => contentHeight() > knownHeight;

// Does a box that covers a third of the window hide content that a reader can scroll to?
const isCut = () =>
  elements('body *').some((element) => {
    if (hiddenHeight(element) < innerHeight * LEAST_CLIPPED || !scrolls(element) || !isShown(element)) return false;
    return Math.min(element.clientWidth, innerWidth) * Math.min(element.clientHeight, innerHeight) >= (innerWidth * innerHeight) / 3;
  });

// Were many of the elements removed that were seen while the page was scrolled?
const isVirtual = () => {
  const gone = [...visited].filter((element) => !element.isConnected).length;
  return visited.size >= 12 && gone * 3 > visited.size;
};

// Scrolls to the top and expands an inner scroller to the height of its content.
page.endSweep = async ({ maxHeight }) => {
  scrollToY(0);
  await frame();
  // The scroller may contain another one.
  for (let round = 0; scroller && round < 2; round += 1) {
    const before = contentHeight();
    if (!expand(scroller, isVirtual())) break;
    await frame();
    // A virtual list would fill any height.
    if (root().scrollHeight > Math.max(2 * before, 2 * maxHeight)) setStyle(scroller, { 'max-height': `${maxHeight}px`, 'overflow-y': 'clip' });
    scroller = findScroller();
  }
  scroller = null;
  layOutSections();
  return { virtual: isVirtual(), height: documentHeight() };
};

// Sizes that depend on the height of the window. They are kept when the window becomes as tall as the page.
const SIZES = ['height', 'min-height', 'max-height'];
const sizesOf = (element) => {
  const styles = element.computedStyleMap?.();
  return SIZES.map((name) => String(styles?.get(name) ?? ''));
};
const sizes = new Map();
page.rememberSizes = () => {
  for (const element of elements('body, body *')) {
    const isFixed = getComputedStyle(element).position === 'fixed';
    sizes.set(element, { given: sizesOf(element), fixed: isFixed ? element.getBoundingClientRect() : null });
  }
};
page.keepSizes = () => {
  for (const [element, { given, fixed }] of sizes) {
    const now = sizesOf(element);
    given.forEach((size, index) => {
      if (size !== now[index] && size.endsWith('px')) setStyle(element, { [SIZES[index]]: size });
    });
    if (fixed && hasArea(fixed) && element.getBoundingClientRect().height !== fixed.height) {
      setStyle(element, { top: styleLength(element, fixed.top), bottom: 'auto', height: styleLength(element, fixed.height) });
    }
  }
  sizes.clear();
};

// Do the rows of a virtual list fill it, now that the window is as tall as the page?
page.isListFilled = () => {
  const counts = new Map();
  for (const around of ancestors.values()) {
    const holder = around[0].isConnected ? undefined : around.find((element) => element.isConnected);
    if (holder) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  }
  const [holder] = [...counts].sort((one, other) => other[1] - one[1])[0] ?? [];
  if (!holder) return true;
  const rows = [...holder.children].filter((row) => row.textContent.trim() !== '' || row.querySelector(PAINTING) !== null);
  let filled = 0;
  for (const row of rows) filled += row.getBoundingClientRect().height;
  return filled >= holder.scrollHeight * LIST_FILLED;
};

// Does an attribute that lazy-loading libraries use name another image than the current one?
const isToBeSwapped = (image) =>
  [...image.attributes].some(({ name, value }) => {
    if (!/^data-(?:[a-z]+-)?(?:src|original|lazy)$/.test(name) || /zoom|full|large|hires/.test(name) || !LOOKS_LIKE_ADDRESS.test(value)) return false;
    try {
      return new URL(value, document.baseURI).href !== image.currentSrc;
    } catch {
      return false;
    }
  });

// Boxes whose content seems to be missing: placeholder images, empty frames and boxes, and hidden elements in the flow.
const unfilled = (maxHeight) =>
  elements('body *').filter((element) => {
    const box = element.getBoundingClientRect();
    if (box.width < SMALL_PX || box.height < SMALL_PX || (scroller && !holds(scroller, element))) return false;
    if (placeOf(box) >= maxHeight || placeOf(box) + box.height <= 0) return false;
    if (element instanceof HTMLImageElement) return element.complete && (isPlaceholder(element, box) || isToBeSwapped(element));
    if (element instanceof HTMLIFrameElement) return !element.src && !element.srcdoc && namesAnotherSource(element);
    if (area(box) < 10_000) return false;
    const style = getComputedStyle(element);
    if ((style.visibility === 'hidden' || Number(style.opacity) < 0.1) && !/fixed|absolute/.test(style.position)) {
      return element.textContent.trim() !== '' || element.querySelector(PAINTING) !== null;
    }
    if (style.backgroundImage !== 'none') return false;
    if (namesAnotherSource(element)) return !element.querySelector('img');
    const isEmpty = element.childElementCount === 0 && !element.textContent.trim() && !element.shadowRoot && !element.matches(PAINTING);
    return isEmpty && element.matches('div, section, li, article, figure, span, a');
  });

// The position of a box in the scrolled content.
const placeOf = (box) => box.top - (scroller?.getBoundingClientRect().top ?? 0) + scrollTop();

// Returns the scroll positions with missing content, from the top: at most one for each third of a screen.
page.unfilledPlaces = ({ maxHeight }) => {
  const places = [];
  for (const element of unfilled(maxHeight)) {
    const box = element.getBoundingClientRect();
    const centre = placeOf(box) + Math.min(box.height, screenHeight()) / 2 - screenHeight() / 2;
    const place = Math.max(0, Math.min(centre, contentHeight() - screenHeight()));
    if (!places.some((known) => Math.abs(known - place) < screenHeight() / 3)) places.push(place);
  }
  return places.sort((one, other) => one - other).slice(0, 64);
};

// Scrolls to a position and returns the number of boxes with missing content before that.
page.visit = async ({ place, maxHeight }) => {
  const before = unfilled(maxHeight).length;
  scrollToY(place);
  await frame();
  return { unfilled: before };
};

page.unfilledCount = ({ maxHeight }) => unfilled(maxHeight).length;
