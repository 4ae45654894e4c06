// Prepares one element for its capture.

// The element that was found, and the number of visible elements that match.
let foundElement = null;
let matching = 0;

// Finds the first visible element, also in open shadow trees. If none is visible, the first one.
const find = (selector) => {
  let all;
  try {
    all = selected(selector);
  } catch {
    return { problem: 'invalid' };
  }
  const visible = all.filter((element) => hasArea(boxOf(element)) && isShown(element));
  matching = visible.length;
  const isKept = foundElement && (visible.length === 0 || visible.includes(foundElement)) && all.includes(foundElement);
  if (!isKept) foundElement = visible[0] ?? all.find((element) => hasArea(boxOf(element))) ?? all[0] ?? null;
  return { element: foundElement };
};

// Observers may count the lower part of the window as out of view, so that content there is not loaded yet.
const SEEN_PART = 0.85;

// Has the window shown the whole element since the page was loaded? Then scrolling to it would change nothing.
const isWhollyInView = (element) => {
  const box = boxOf(element);
  const isWithin = (outer) => box.left >= outer.left - 1 && box.top >= outer.top - 1 && box.right <= outer.right + 1 && box.bottom <= outer.bottom + 1;
  if (!isWithin({ left: 0, top: 0, right: innerWidth, bottom: innerHeight * SEEN_PART })) return false;
  for (let parent = parentOf(element); parent && parent !== document.body; parent = parentOf(parent)) {
    const { overflowX, overflowY } = getComputedStyle(parent);
    if ((overflowX !== 'visible' || overflowY !== 'visible') && !isWithin(parent.getBoundingClientRect())) return false;
  }
  return [...element.querySelectorAll('img, iframe')].every((inner) => inner.loading !== 'lazy' && (inner.complete ?? true));
};

const bringIntoView = (element) => {
  if (isWhollyInView(element)) return;
  // A snapping scroller would move to its next snap position.
  for (let parent = parentOf(element); parent; parent = parentOf(parent)) {
    if (getComputedStyle(parent).scrollSnapType !== 'none') setStyle(parent, { 'scroll-snap-type': 'none' });
  }
  const target = getComputedStyle(element).display === 'contents' ? (element.firstElementChild ?? element) : element;
  target.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
};

// Waits until the first matching element has a box, then scrolls to it and through it, so that lazy content is loaded
// and content that appears on scrolling appears. Tells whether it had to scroll or to wait.
page.findElement = async ({ selector, budgetMs }) => {
  const until = performance.now() + budgetMs;
  let element;
  let hasWaited = false;
  for (;;) {
    const found = find(selector);
    if (found.problem) return found;
    element = found.element;
    if (element && hasArea(boxOf(element))) break;
    if (performance.now() >= until) return { problem: element ? 'hidden' : 'missing' };
    await frame();
    hasWaited = true;
  }
  if (!hasWaited && isWhollyInView(element)) return { isNew: false };
  for (const lazy of [element, ...element.querySelectorAll('[loading="lazy"]')]) if (lazy.loading === 'lazy') lazy.loading = 'eager';
  layOutWith(element);
  bringIntoView(element);
  await frame();
  const top = boxOf(element).top + scrollY;
  const hidden = () => boxOf(element).height - innerHeight;
  if (hidden() <= 0) return { isNew: true };
  for (let at = 0; at < hidden() && performance.now() < until; at += innerHeight) {
    scrollToTop(top + at);
    await frame();
  }
  bringIntoView(element);
  await frame();
  return { isNew: true };
};

// Lays out sections around the element and inside it that would be laid out only in view.
const layOutWith = (element) => {
  const around = [];
  for (let parent = element; parent; parent = parentOf(parent)) around.push(parent);
  for (const section of [...around, ...element.querySelectorAll('*')]) {
    if (getComputedStyle(section).contentVisibility === 'auto') setStyle(section, { 'content-visibility': 'visible' });
  }
};

const isRelated = (element, other) => holds(element, other) || holds(other, element);

// Is the other element painted above this one, where both are inside the window? Boxes that let clicks through would not be
// found.
const isAbove = (element, other) => {
  const [box, over] = [boxOf(element), boxOf(other)];
  const left = Math.max(box.left, over.left, 0);
  const top = Math.max(box.top, over.top, 0);
  const width = Math.min(box.right, over.right, innerWidth) - left;
  const height = Math.min(box.bottom, over.bottom, innerHeight) - top;
  if (width <= 0 || height <= 0) return false;
  const caught = new Map();
  for (const each of [element, other]) setStyle(each, { 'pointer-events': 'auto' }, caught);
  const tree = element.getRootNode() === other.getRootNode() ? element.getRootNode() : document;
  const hostOf = (each) => {
    let at = each;
    while (at.getRootNode() !== tree && at.getRootNode().host) at = at.getRootNode().host;
    return at;
  };
  const [mine, its] = [hostOf(element), hostOf(other)];
  const indexOf = (list, each) => list.findIndex((inner) => holds(each, inner));
  let above = false;
  for (let step = 0; step < 9 && !above; step += 1) {
    const list = tree.elementsFromPoint(left + (width * ((step % 3) + 0.5)) / 3, top + (height * (Math.floor(step / 3) + 0.5)) / 3);
    const [lower, upper] = [indexOf(list, mine), indexOf(list, its)];
    above = upper >= 0 && (lower < 0 || upper < lower);
  }
  restore(caught);
  return above;
};

// Also descendants that are visible on their own are hidden.
const COVERING = { visibility: 'hidden', opacity: '0', transition: 'none' };

// Hides what covers the element and does not belong to it: fixed or sticky bars, dialogs, and neighbours that extend
// over its edge. What lies entirely within it, such as a badge, belongs to it; what is painted below it is its background.
const uncover = (element) => {
  const box = boxOf(element);
  for (const other of elements('body, body *')) {
    const { position } = getComputedStyle(other);
    if ((position !== 'fixed' && position !== 'sticky') || isRelated(element, other)) continue;
    const over = other.getBoundingClientRect();
    if (hasArea(over) && overlaps(box, over) && isAbove(element, other)) setStyle(other, COVERING);
  }
  for (let step = 0; step < 25; step += 1) {
    const x = box.left + (box.width * ((step % 5) + 0.5)) / 5;
    const y = box.top + (box.height * (Math.floor(step / 5) + 0.5)) / 5;
    for (const over of document.elementsFromPoint(x, y)) {
      if (isRelated(element, over)) break;
      let neighbour = over;
      while (parentOf(neighbour) && !holds(parentOf(neighbour), element)) neighbour = parentOf(neighbour);
      const reach = neighbour.getBoundingClientRect();
      const within = reach.left >= box.left - 2 && reach.top >= box.top - 2 && reach.right <= box.right + 2 && reach.bottom <= box.bottom + 2;
      if (!within) setStyle(over, COVERING);
    }
  }
};

// Shows the part of the element that a scrolling ancestor would clip.
const unclip = (element) => {
  for (let parent = parentOf(element); parent && parent !== document.body; parent = parentOf(parent)) {
    const box = boxOf(element);
    const { overflowX, overflowY } = getComputedStyle(parent);
    if (/^(?:auto|scroll)$/.test(overflowY) && box.height > parent.clientHeight + 1) {
      grow(parent);
      keepExpanded();
    }
    // A table that is too wide for its box overflows it. Content that the author clips on purpose stays clipped.
    if (/^(?:auto|scroll)$/.test(overflowX) && box.width > parent.clientWidth + 1) {
      parent.scrollLeft = 0;
      setStyle(parent, { 'overflow-x': 'visible', 'overflow-y': 'visible' });
    }
  }
};

// Waits until the element is visible, uncovers it and returns its position.
page.placeElement = async ({ selector, budgetMs }) => {
  const until = performance.now() + budgetMs;
  let element;
  for (;;) {
    element = find(selector).element;
    await finishAllAnimations();
    if (element && hasArea(boxOf(element)) && isShown(element)) break;
    if (performance.now() >= until) return { problem: element ? 'hidden' : 'missing' };
    await frame();
  }
  const position = () => JSON.stringify(boxOf(element));
  const before = position();
  bringIntoView(element);
  unclip(element);
  if (position() !== before) await frame();
  await finishAllAnimations();
  uncover(element);
  const isInside = (other) => holds(element, other);
  await Promise.race([decodeImages({ waits: true, shows: isInside }), after(Math.max(0, until - performance.now()))]);
  const { x, y, width, height } = boxOf(element);
  const rectangle = { left: x + scrollX, top: y + scrollY, right: x + scrollX + width, bottom: y + scrollY + height };
  const isFilled = [element, ...element.querySelectorAll('*')].some((inner) => showsSomething(inner) && hasArea(boxOf(inner)) && isShown(inner));
  return { x: x + scrollX - leftEdge(), y: y + scrollY, width, height, matching, filled: isFilled, frames: unpaintedFrames(rectangle), state: state(isInside) };
};
