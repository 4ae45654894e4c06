// Finds the box that scrolls in place of the document, and gives it the height of its content.

// What a box must hide at least, in screens, if it cannot be scrolled: less is decoration.
const LEAST_CLIPPED = 0.25;
// A scrolling box of this part of the window has the content of the page.
const MOST_OF_WINDOW = 0.6;
// Elements of the first screen that are compared before and after.
const MAX_COMPARED = 300;
// Elements may move by this many pixels.
const SAME_PLACE = 4;

const scrolls = (element) => /^(?:auto|scroll|overlay)$/.test(getComputedStyle(element).overflowY);
const hides = (element) => /^(?:hidden|clip)$/.test(getComputedStyle(element).overflowY);
const hiddenHeight = (element) => element.scrollHeight - element.clientHeight;

const isIn = (positions, element) => {
  for (let at = element; at; at = parentOf(at)) if (positions.includes(getComputedStyle(at).position)) return true;
  return false;
};

const isInFixed = (element) => isIn(['fixed'], element);

// A background of this many pixels is content.
const LARGE_BACKGROUND = 40_000;

const showsAnything = (element, box) => showsSomething(element) || (box.width * box.height >= LARGE_BACKGROUND && hasBackground(element));

// Does the document itself show anything below the first screen?
const hasOwnContent = () =>
  elements('body *').some((element) => {
    const box = element.getBoundingClientRect();
    return box.top + scrollY >= innerHeight && hasArea(box) && showsAnything(element, box) && isShown(element) && !isInFixed(element);
  });

// Does the box clip content that is below it?
const clipsContent = (outer) => {
  const { left, right, bottom } = outer.getBoundingClientRect();
  return [...outer.querySelectorAll('*')].some((element) => {
    const box = element.getBoundingClientRect();
    return box.top >= bottom - 1 && box.left < right && box.right > left && hasArea(box) && showsAnything(element, box) && isShown(element);
  });
};

// Finds the element that scrolls in place of the document: it hides more height than the document and covers at least a
// third of the window. Scripts scroll elements that only clip, or move their content: these must cover the window. A
// document may be tall only to make its scroll bar appear, while a fixed element shows the content.
const findScroller = () => {
  const whole = innerWidth * innerHeight;
  const beyond = Math.max(1, root().scrollHeight - innerHeight);
  const isTall = beyond > innerHeight / 4;
  if (isTall && hasOwnContent()) return null;
  const least = isTall ? beyond / 2 : beyond;
  let [best, largest] = [null, null];
  const isMore = (hidden, other) => hidden > Math.max(least, other ? hiddenHeight(other) : 0);
  for (const element of elements('body, body *, :host *')) {
    const hidden = hiddenHeight(element);
    if (element === root() || hidden <= least || (isTall && !isInFixed(element))) continue;
    const area = Math.min(element.clientWidth, innerWidth) * Math.min(element.clientHeight, innerHeight);
    const isScrolling = area >= whole / 3 && scrolls(element);
    if (isScrolling && area >= whole * MOST_OF_WINDOW && isMore(hidden, largest)) largest = element;
    const isClipping = () => area >= whole * 0.9 && hides(element) && hidden > innerHeight * LEAST_CLIPPED && clipsContent(element);
    if (isMore(hidden, best) && (isScrolling || isClipping())) best = element;
  }
  // What a box only hides is beside the content that readers scroll in it.
  return largest && best && hides(best) && holds(best, largest) ? largest : best;
};

const isPercentage = (value) => value !== undefined && String(value).includes('%');

// Elements whose height is a percentage, with their height now. It would become that of their content.
const percentHeights = (chain) => {
  const found = [];
  for (const element of elements('body *')) {
    if (chain.has(element)) continue;
    const styles = element.computedStyleMap?.();
    if (styles && ['height', 'min-height', 'max-height'].some((name) => isPercentage(styles.get(name)))) found.push([element, getComputedStyle(element).height]);
  }
  return found;
};

// Elements that are positioned within one of the boxes that grow, with their place now.
const positioned = (chain) => {
  const found = [];
  for (const element of elements('body *')) {
    if (chain.has(element) || getComputedStyle(element).position !== 'absolute' || !chain.has(element.offsetParent)) continue;
    const styles = element.computedStyleMap?.();
    const isCentred = isPercentage(styles?.get('top')) || (isGiven(element, 'top') && isGiven(element, 'bottom'));
    if (isCentred && !isBare(element)) found.push([element, element.getBoundingClientRect()]);
  }
  return found;
};

// Content that is moved towards or away from the reader is shown where it is when its part of the page is in the middle of
// the window, and at the size that it has there.
const flattenPerspective = (inner) => {
  const distance = Number.parseFloat(getComputedStyle(inner).perspective);
  if (!(distance > 0)) return;
  for (const element of inner.querySelectorAll('*')) {
    const { transform } = getComputedStyle(element);
    if (!transform.startsWith('matrix3d')) continue;
    const { a, b, c, d, e, f, m43 } = new DOMMatrix(transform);
    if (m43 === 0 || m43 >= distance) continue;
    const factor = distance / (distance - m43);
    setStyle(element, { transform: `matrix(${[a, b, c, d, e, f].map((value) => value * factor).join()})`, transition: 'none' }, expanded);
  }
  setStyle(inner, { perspective: 'none' }, expanded);
};

// Content that scripts move up when the document is scrolled is where it is at the top.
const moveToTop = (inner) => {
  for (const element of inner.querySelectorAll(':scope > *, :scope > * > *, :scope > * > * > *')) {
    const moved = /^matrix\(1, 0, 0, 1, [-\d.e]+, (-[\d.e]+)\)$/.exec(getComputedStyle(element).transform);
    if (moved && Number(moved[1]) < -1 && element.getBoundingClientRect().height > innerHeight) {
      setStyle(element, { transform: 'none', transition: 'none' }, expanded);
    }
  }
};

// The styles before a box was expanded, until it is decided whether it stays so, and those of all boxes that do.
const expanded = new Map();
const grown = new Map();

// Gives a box, and its ancestors, the height of its content.
const grow = (inner) => {
  const resize = [];
  const growth = hiddenHeight(inner);
  const chain = new Set();
  for (let element = inner; element; element = parentOf(element)) chain.add(element);
  const clipping = [...chain].filter((element) => element !== inner && element !== document.body && element !== root() && hides(element));
  const heights = percentHeights(chain);
  const places = positioned(chain);
  for (const element of chain) {
    const style = getComputedStyle(element);
    const parent = parentOf(element);
    const parentStyle = parent && getComputedStyle(parent);
    const values = { height: 'auto', 'max-height': 'none', 'overflow-y': 'visible' };
    if (style.overflowX !== 'visible') {
      // Content that is too wide stays inside.
      values['overflow-x'] = 'clip';
      values['min-width'] = '0';
    }
    if (style.perspective !== 'none') values['perspective-origin'] = style.perspectiveOrigin;
    if (/strict|content|size|layout|paint/.test(style.contain)) values.contain = 'none';
    if (style.containerType === 'size') values['container-type'] = 'inline-size';
    if (parentStyle && /flex/.test(parentStyle.display) && parentStyle.flexDirection.startsWith('column')) values.flex = 'none';
    if (/grid/.test(style.display)) {
      // The current row heights become minimum heights.
      const rows = style.gridTemplateRows.split(' ').filter((row) => /^[\d.]+px$/.test(row));
      if (rows.length > 0) values['grid-template-rows'] = rows.map((row) => `minmax(${row}, auto)`).join(' ');
    }
    if (style.position === 'fixed' || style.position === 'absolute') {
      values.position = 'absolute';
      values.bottom = 'auto';
      // Elements below it keep their distance.
      const holder = isGiven(element, 'bottom') ? element.offsetParent : null;
      if (holder && holder !== document.body) resize.push([holder, { 'min-height': `${holder.offsetHeight + growth}px` }]);
    }
    resize.push([element, values]);
  }
  flattenPerspective(inner);
  if (isInFixed(inner)) moveToTop(inner);
  for (const [element, values] of resize) setStyle(element, values, expanded);
  // What they hide beside the content, such as closed menus, stays hidden.
  const { bottom } = inner.getBoundingClientRect();
  for (const element of clipping) {
    if (element.getBoundingClientRect().bottom >= bottom - 1) setStyle(element, { 'overflow-y': 'clip' }, expanded);
  }
  for (const [element, height] of heights) {
    if (getComputedStyle(element).height === height || !height.endsWith('px')) continue;
    setStyle(element, holds(inner, element) ? { height, 'max-height': 'none' } : { 'min-height': height }, expanded);
  }
  for (const [element, before] of places) {
    const now = element.getBoundingClientRect();
    const moved = before.top - now.top;
    if (Math.abs(moved) < 1 && Math.abs(now.height - before.height) < 1) continue;
    const top = element.offsetTop - Number.parseFloat(getComputedStyle(element).marginTop) + moved / zoomOf(element);
    setStyle(element, { top: `${top}px`, bottom: 'auto', height: styleLength(element, before.height), 'box-sizing': 'border-box' }, expanded);
  }
};

// What a reader sees of the first screen, without what stays there when the page is scrolled.
const firstScreen = () => {
  const seen = [];
  for (const element of elements('body *')) {
    const box = element.getBoundingClientRect();
    if (!hasArea(box) || !overlaps(box, viewport()) || !showsSomething(element) || !isShown(element) || !isUncut(element, box) || isIn(['fixed', 'sticky'], element)) continue;
    if (seen.push([element, box]) === MAX_COMPARED) break;
  }
  return { seen, height: documentHeight() };
};

// Is an equal element where this one was? Virtual lists make new rows whenever they are scrolled.
const isReplaced = (element, { left, top, width, height }) => {
  const now = elementAt(left + width / 2, top + height / 2);
  return now?.localName === element.localName && now.textContent === element.textContent;
};

// The part of the elements that are gone, have moved or are smaller now. What was below `bottom` may have moved down.
const lostPart = ({ seen }, bottom = Number.POSITIVE_INFINITY) => {
  const isLost = ([element, before]) => {
    if (!element.isConnected) return !isReplaced(element, before);
    const box = element.getBoundingClientRect();
    if (!hasArea(box) || !isShown(element)) return true;
    const down = box.top - before.top;
    const isMoved = Math.abs(box.left - before.left) > SAME_PLACE || down < -SAME_PLACE || (down > SAME_PLACE && before.top < bottom - SAME_PLACE);
    return isMoved || Math.abs(box.width - before.width) > SAME_PLACE || box.height < before.height / 2;
  };
  return seen.length === 0 ? 0 : seen.filter(isLost).length / seen.length;
};

const keepExpanded = () => {
  for (const [element, former] of expanded) {
    const known = grown.get(element) ?? new Map();
    for (const [name, value] of former) if (!known.has(name)) known.set(name, value);
    grown.set(element, known);
  }
  expanded.clear();
};

page.undoExpand = () => {
  restore(grown);
  return {};
};

// The part of the screens below `from` that show nothing.
const emptyPart = (from) => {
  const count = Math.ceil((documentHeight() - from) / innerHeight);
  const filled = new Set();
  for (const element of elements('body *')) {
    const box = element.getBoundingClientRect();
    if (box.bottom <= from || !hasArea(box) || !showsSomething(element) || !isShown(element)) continue;
    for (let at = Math.max(0, Math.floor((box.top - from) / innerHeight)); at < Math.min(count, (box.bottom - from) / innerHeight); at += 1) filled.add(at);
    if (filled.size === count) break;
  }
  return count <= 0 ? 0 : 1 - filled.size / count;
};

// Expands a box, unless the page then shows less than a reader would see, or shows it elsewhere. Returns whether it did. A
// list that renders only its visible rows is not filled yet.
const expand = (inner, isVirtual) => {
  const before = firstScreen();
  const { bottom, height } = inner.getBoundingClientRect();
  const inside = { seen: before.seen.filter(([element]) => holds(inner, element)) };
  const around = { seen: before.seen.filter(([element]) => !holds(inner, element)) };
  const hadText = before.seen.some(([element]) => holds(inner, element));
  grow(inner);
  const isHigher = documentHeight() >= before.height && inner.getBoundingClientRect().height > height + 1;
  const isEmptier = !isVirtual && hadText && emptyPart(bottom) > 0.5;
  const isWorse = !isHigher || isEmptier || lostPart(inside) > 0.1 || lostPart(around, bottom) > 0.3;
  if (isWorse) restore(expanded);
  keepExpanded();
  return !isWorse;
};
