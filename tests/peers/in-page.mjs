// Functions that run in a page. Each must be complete in itself, since only its text is sent there.

// The height of the document, and how much a box that fills most of the window can scroll, 0 if there is none.
export const layoutOf = () => {
  const roots = [document.scrollingElement, document.documentElement, document.body].filter(Boolean);
  const height = Math.max(0, ...roots.slice(0, 2).map((root) => root.scrollHeight));
  // Kept for the scroll through the page: the box that a reader would scroll if the document does not scroll.
  globalThis.grabdScroller = () => {
    if (document.documentElement.scrollHeight > innerHeight + 1) return null;
    return [...document.querySelectorAll('*')].find((box) => {
      if (roots.includes(box) || box.scrollHeight < box.clientHeight + 40) return false;
      if (box.clientHeight < innerHeight / 2 || box.clientWidth < innerWidth / 2) return false;
      return ['auto', 'scroll', 'overlay'].includes(getComputedStyle(box).overflowY);
    });
  };
  const scroller = globalThis.grabdScroller();
  return { height, scroller: scroller ? scroller.scrollHeight : 0 };
};

// A selector of the largest element that fits into the window, or null. The rule is fixed: an element of at least 200 by 100
// pixels and at most the window, which is in the flow and visible, whose selector names it alone.
export const largeElement = (known) => {
  const alone = (selector) => document.querySelectorAll(selector).length === 1;
  if (known) return alone(known) ? known : null;
  const path = (element) => {
    const parts = [];
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      if (/^[a-z][a-z0-9_-]*$/i.test(at.id) && alone(`#${at.id}`)) return [`#${at.id}`, ...parts].join(' > ');
      const same = [...at.parentElement.children].filter((child) => child.localName === at.localName);
      parts.unshift(`${at.localName}:nth-of-type(${same.indexOf(at) + 1})`);
    }
    return ['body', ...parts].join(' > ');
  };
  let best = null;
  for (const element of document.body?.querySelectorAll('*') ?? []) {
    if (!/^[a-z]+$/.test(element.localName) || element.closest('svg svg, svg *, picture, select, map, noscript')) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 200 || box.height < 100 || box.width > innerWidth || box.height > innerHeight - 40) continue;
    const top = box.top + scrollY;
    if (box.left < 0 || top < 0 || top > 12_000) continue;
    const style = getComputedStyle(element);
    if (['fixed', 'sticky'].includes(style.position) || style.visibility !== 'visible' || style.display === 'contents') continue;
    if (!element.checkVisibility({ opacityProperty: true })) continue;
    const area = box.width * box.height;
    if (!best || area > best.area) best = { element, area };
  }
  if (!best) return null;
  const selector = path(best.element);
  return selector.length <= 1000 && alone(selector) ? selector : null;
};

// Marks boxes that are fixed, or stuck, to the window. Returns their number.
export const pinnedBoxes = () => {
  let count = 0;
  for (const box of document.querySelectorAll('*')) {
    if (!['fixed', 'sticky'].includes(getComputedStyle(box).position)) continue;
    box.setAttribute('data-grabd-pinned', '');
    count += 1;
  }
  return count;
};

// Hides the marked boxes if there are any, or shows them again with 0.
export const setHidden = (count) => {
  const id = 'grabd-pinned-style';
  document.getElementById(id)?.remove();
  if (count === 0) return;
  const style = document.createElement('style');
  style.id = id;
  style.textContent = '[data-grabd-pinned], [data-grabd-pinned] * { visibility: hidden !important }';
  document.documentElement.append(style);
};

// Hides what is pinned and painted above an element, and returns the element's box in the window.
export const hideAbove = (selector) => {
  const element = document.querySelector(selector);
  if (!element) return null;
  const box = element.getBoundingClientRect();
  const pinned = (node) => {
    for (let at = node; at instanceof Element; at = at.parentElement ?? at.getRootNode().host) {
      if (['fixed', 'sticky'].includes(getComputedStyle(at).position)) return at.contains(element) ? null : at;
    }
    return null;
  };
  for (let x = box.left + 3; x < box.right; x += 12) {
    for (let y = box.top + 3; y < box.bottom; y += 12) {
      for (const above of document.elementsFromPoint(x, y)) {
        if (above === element || element.contains(above)) break;
        pinned(above)?.setAttribute('data-grabd-above', '');
      }
    }
  }
  const style = document.createElement('style');
  style.id = 'grabd-above-style';
  style.textContent = '[data-grabd-above], [data-grabd-above] * { visibility: hidden !important; transition: none !important }';
  document.documentElement.append(style);
  const [left, top] = [Math.max(0, box.left), Math.max(0, box.top)];
  const [right, bottom] = [Math.min(innerWidth, box.right), Math.min(innerHeight, box.bottom)];
  if (right - left < 1 || bottom - top < 1) return null;
  return { x: left, y: top, width: right - left, height: bottom - top };
};

// Shows again what hideAbove has hidden.
export const showHidden = () => {
  document.getElementById('grabd-above-style')?.remove();
  for (const box of document.querySelectorAll('[data-grabd-above]')) box.removeAttribute('data-grabd-above');
};
