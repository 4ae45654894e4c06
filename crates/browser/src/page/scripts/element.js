// Prepares one element for its capture.

const find = (selector) => {
  try {
    return { element: document.querySelector(selector) };
  } catch {
    return { problem: 'invalid' };
  }
};

// Observers may count the lower part of the window as out of view, so that content there is not loaded yet.
const SEEN_PART = 0.85;

// Has the window shown the whole element since the page was loaded? Then scrolling to it would change nothing.
const isWhollyInView = (element) => {
  const box = element.getBoundingClientRect();
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
  element.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
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
    if (element && hasArea(element.getBoundingClientRect())) break;
    if (performance.now() >= until) return { problem: element ? 'hidden' : 'missing' };
    await frame();
    hasWaited = true;
  }
  if (!hasWaited && isWhollyInView(element)) return { isNew: false };
  for (const lazy of [element, ...element.querySelectorAll('[loading="lazy"]')]) if (lazy.loading === 'lazy') lazy.loading = 'eager';
  layOutWith(element);
  bringIntoView(element);
  await frame();
  const top = element.getBoundingClientRect().top + scrollY;
  const hidden = () => element.getBoundingClientRect().height - innerHeight;
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

const isRelated = (element, other) => element.contains(other) || other.contains(element);

// Hides what covers the element and does not belong to it: fixed or sticky bars, dialogs, and neighbours that extend
// over its edge. What lies entirely within it, such as a badge, belongs to it.
const uncover = (element) => {
  const box = element.getBoundingClientRect();
  for (const other of elements('body, body *')) {
    const { position } = getComputedStyle(other);
    if ((position !== 'fixed' && position !== 'sticky') || isRelated(element, other)) continue;
    const over = other.getBoundingClientRect();
    if (hasArea(over) && overlaps(box, over)) setStyle(other, { visibility: 'hidden', transition: 'none' });
  }
  for (let step = 0; step < 25; step += 1) {
    const x = box.left + (box.width * ((step % 5) + 0.5)) / 5;
    const y = box.top + (box.height * (Math.floor(step / 5) + 0.5)) / 5;
    for (const over of document.elementsFromPoint(x, y)) {
      if (isRelated(element, over)) break;
      let neighbour = over;
      while (neighbour.parentElement && !neighbour.parentElement.contains(element)) neighbour = neighbour.parentElement;
      const reach = neighbour.getBoundingClientRect();
      const within = reach.left >= box.left - 2 && reach.top >= box.top - 2 && reach.right <= box.right + 2 && reach.bottom <= box.bottom + 2;
      if (!within) setStyle(over, { visibility: 'hidden', transition: 'none' });
    }
  }
};

// Shows the part of the element that a scrolling ancestor would clip.
const unclip = (element) => {
  for (let parent = parentOf(element); parent && parent !== document.body; parent = parentOf(parent)) {
    const box = element.getBoundingClientRect();
    const { overflowX, overflowY } = getComputedStyle(parent);
    if (/^(?:auto|scroll)$/.test(overflowY) && box.height > parent.clientHeight + 1) expand(parent);
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
    if (element && hasArea(element.getBoundingClientRect()) && isShown(element)) break;
    if (performance.now() >= until) return { problem: element ? 'hidden' : 'missing' };
    await frame();
  }
  const position = () => JSON.stringify(element.getBoundingClientRect());
  const before = position();
  bringIntoView(element);
  unclip(element);
  if (position() !== before) await frame();
  await finishAllAnimations();
  uncover(element);
  const isInside = (other) => element.contains(other);
  await Promise.race([decodeImages({ waits: true, shows: isInside }), after(Math.max(0, until - performance.now()))]);
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x: x + scrollX - leftEdge(), y: y + scrollY, width, height, state: state(isInside) };
};
