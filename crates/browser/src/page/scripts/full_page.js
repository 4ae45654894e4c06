// Arranges the whole page for one image, as if the screens of a user were joined.

// Is the element fixed to the viewport, and not to an ancestor that establishes a containing block?
const isFixedToViewport = (element, end = null) => {
  for (let parent = parentOf(element); parent && parent !== end; parent = parentOf(parent)) {
    const { transform, perspective, filter, backdropFilter, contain, willChange, containerType } = getComputedStyle(parent);
    const moved = [transform, perspective, filter, backdropFilter ?? 'none'].some((value) => value !== 'none');
    if (moved || /paint|layout|strict|content/.test(contain) || /transform|perspective|filter/.test(willChange) || containerType === 'size') return false;
  }
  return true;
};

// Does the author set this property of the box, or is it `auto`?
const isGiven = (element, side) => {
  const value = element.computedStyleMap?.().get(side);
  return value !== undefined && String(value) !== 'auto';
};

const isBare = (element) => !element.textContent.trim() && ![...element.querySelectorAll('*')].some((inside) => isLarge(inside) && isShown(inside));

const hasPicture = (style) => /url\(|gradient\(/.test(style.backgroundImage);

const contentTops = (element) => [...element.querySelectorAll('*')].slice(0, 200).map((inside) => inside.getBoundingClientRect().top);

// Copies that continue a layer or a rail below the first screen.
const continuations = [];
const MAX_CONTINUATIONS = 24;
// The most elements of a layer that are copied with it.
const MAX_COPIED = 50;

// Does the box contain large pictures?
const containsPicture = (element) =>
  [...element.querySelectorAll('*')].some((inside) => isLarge(inside) && isShown(inside) && (inside.matches('img, svg, canvas') || hasPicture(getComputedStyle(inside))));

// What a copy would load again, or show differently.
const NOT_COPIED = 'video, audio, iframe, frame, object, embed, input, select, textarea, script, style, link';

// A copy of the box, with its content if that contains a picture. Null if there cannot be one.
const copyOf = (element, isDeep) => {
  const all = [element, ...(isDeep ? element.querySelectorAll('*') : [])];
  if (element.matches(PAINTING) || element.getRootNode() !== document || all.some((inside) => inside.localName.includes('-'))) return null;
  if (isDeep && (all.length > MAX_COPIED || element.querySelector(NOT_COPIED))) return null;
  const copy = element.cloneNode(isDeep);
  const copies = [copy, ...copy.querySelectorAll('*')];
  all.forEach((original, at) => noteCopy(original, copies[at]));
  const canvases = [...element.querySelectorAll('canvas')];
  [...copy.querySelectorAll('canvas')].forEach((canvas, at) => canvas.getContext('2d')?.drawImage(canvases[at], 0, 0));
  return copy;
};

// Continues the background of a box that is as tall as the window. A picture is shown once on each screen, as a reader sees
// it. Returns whether that is possible.
const continueBackground = (element, box, style, height, isDeep = false) => {
  const isPicture = isDeep || hasPicture(style);
  const step = isPicture ? box.height : height - box.bottom;
  if (step < 1 || (height - box.bottom) / step > MAX_CONTINUATIONS) return false;
  for (let top = box.bottom; top < height - 1; top += step) {
    const copy = copyOf(element, isDeep);
    if (!copy) return false;
    copy.removeAttribute('hidden');
    element.after(copy);
    continuations.push(copy);
    const px = (length) => styleLength(copy, length);
    const size = { width: px(box.width), height: px(Math.min(step, height - top)), 'min-height': '0', 'max-height': 'none', 'box-sizing': 'border-box' };
    const picture = isPicture ? { height: px(step), 'clip-path': `inset(0 0 ${px(Math.max(0, top + step - height))} 0)` } : {};
    keepStyle(copy, { ...size, ...picture, top: px(top), left: px(box.left), right: 'auto', bottom: 'auto', margin: '0', transition: 'none', animation: 'none', 'pointer-events': 'none' });
  }
  return true;
};

const positionFixed = (element, style, height) => {
  const box = element.getBoundingClientRect();
  if (!hasArea(box) || !overlaps(box, viewport()) || !isFixedToViewport(element)) return;
  const px = (length) => styleLength(element, length);
  if (box.height >= innerHeight * 0.9) {
    const isLayer = box.width >= innerWidth * 0.9;
    // A layer with content, such as a dialog, stays on the first screen. A background layer is extended, and so is a
    // side bar.
    if (isLayer && Number(style.zIndex) >= 0 && !isBare(element)) return;
    const isDeep = isLayer && containsPicture(element);
    if ((isDeep || hasPicture(style)) && continueBackground(element, box, style, height, isDeep)) return;
    const before = contentTops(element);
    setStyle(element, { transition: 'none', bottom: 'auto', 'max-height': 'none', [isLayer ? 'height' : 'min-height']: px(height - Math.max(0, box.top)) }, arranged);
    // Content that is centred stays where readers see it. Content at the end of a rail moves to its new end.
    const growth = element.getBoundingClientRect().height - box.height;
    const isMoved = contentTops(element).some((top, at) => Math.abs(top - before[at]) > 1 && (isLayer || Math.abs(top - before[at] - growth) > 1));
    if (isMoved) {
      if (isLayer) setStyle(element, { height: px(box.height) }, arranged);
      setStyle(element, { 'min-height': px(box.height), 'max-height': px(box.height) }, arranged);
      continueBackground(element, box, style, height);
    }
    return;
  }
  const isLow = innerHeight - box.bottom < box.top / 4;
  const atBottom = isGiven(element, 'bottom') ? !isGiven(element, 'top') : isLow && (!isGiven(element, 'top') || box.top > innerHeight / 2);
  if (!atBottom) return;
  const [x = '0px', y = '0px'] = style.translate === 'none' ? [] : style.translate.split(' ');
  setStyle(element, { transition: 'none', translate: `${x} calc(${y} + ${px(height - innerHeight)})` }, arranged);
};

// The styles before the page was arranged.
const arranged = new Map();

// Positions elements that are fixed, sticky or painted relative to the viewport for the full page. It can be repeated.
const arrange = () => {
  restore(arranged);
  for (const copy of continuations.splice(0)) copy.remove();
  const fixed = [];
  for (const element of elements()) {
    const style = getComputedStyle(element);
    if (style.backgroundAttachment.includes('fixed')) setStyle(element, { 'background-attachment': 'scroll' }, arranged);
    // Otherwise it would be in the middle of the captured image.
    if (style.position === 'sticky' && style.bottom !== 'auto') setStyle(element, { position: 'relative', top: 'auto', bottom: 'auto' }, arranged);
    if (style.position === 'fixed') fixed.push([element, style]);
  }
  const height = documentHeight();
  for (const [element, style] of fixed) positionFixed(element, style, height);
};

// How far the document extends to the left of its origin, as right-to-left pages do.
const leftEdge = () => {
  const before = [scrollX, scrollY];
  scrollTo({ left: -1e7, top: scrollY, behavior: 'instant' });
  const edge = scrollX;
  scrollTo({ left: before[0], top: before[1], behavior: 'instant' });
  return Math.min(0, edge);
};

page.leftEdge = () => ({ leftEdge: leftEdge() });

// Does the page hide what is wider than the window? The root's overflow applies, or the body's if the root's is
// `visible`.
const hidesWidth = () => {
  const overflow = (element) => (element ? getComputedStyle(element).overflowX : 'visible');
  const applied = overflow(document.documentElement) === 'visible' ? overflow(document.body) : overflow(document.documentElement);
  return applied === 'hidden' || applied === 'clip';
};

// A part of the first screen that may have changed by itself while the page was scrolled.
const MAX_LOST = 0.3;
// Fewer elements say nothing about the page.
const LEAST_COMPARED = 4;
// An area of this many pixels is not overlooked.
const LARGE_AREA = 60_000;

// The number of large areas whose content is still hidden: it appears only when a reader scrolls to it.
const hiddenAreas = (isCaptured) => {
  const found = [];
  for (const element of elements('body *')) {
    const box = element.getBoundingClientRect();
    if (area(box) < LARGE_AREA || !isCaptured(element, box) || found.some((outer) => holds(outer, element))) continue;
    const style = getComputedStyle(element);
    if (style.visibility !== 'hidden' && Number(style.opacity) > 0.1) continue;
    // A closed menu or dialog lies above the page.
    if (isIn(['fixed', 'absolute'], element) || style.pointerEvents === 'none' || !isUncut(element, box)) continue;
    if (element.textContent.trim() !== '' || element.querySelector(PAINTING) !== null) found.push(element);
  }
  return found.length;
};

// Prepares the page for a full-page capture and returns its size.
page.arrangeFullPage = async ({ maxHeight, budgetMs }) => {
  const until = performance.now() + budgetMs;
  if (scrollX !== 0 || scrollY !== 0) {
    scrollToTop(0);
    await frame();
  }
  centreViewAnimations();
  await finishAllAnimations();
  restoreAttributes();
  await finishAllAnimations();
  arrange();
  const isCaptured = (element, box) => box.bottom + scrollY > 0 && box.top + scrollY < maxHeight;
  const decoded = decodeImages({ waits: true, shows: (image) => hasArea(image.getBoundingClientRect()) && isCaptured(image, image.getBoundingClientRect()) });
  await Promise.race([decoded, after(Math.max(0, until - performance.now()))]);
  const width = hidesWidth() ? innerWidth : Math.max(root().scrollWidth, innerWidth);
  const height = documentHeight();
  return {
    width,
    height,
    frames: unpaintedFrames({ left: 0, top: 0, right: width, bottom: Math.min(height, maxHeight) }),
    cut: isCut(),
    hiddenAreas: hiddenAreas(isCaptured),
    differs: unscrolled.seen.length >= LEAST_COMPARED && lostPart(unscrolled) > MAX_LOST,
    state: state(isCaptured),
  };
};

// Undoes what was done to the page for an image, so that it can be laid out for another one.
page.undoLayout = () => {
  restore(arranged);
  for (const copy of continuations.splice(0)) copy.remove();
  restore(grown);
  restore(formerStyles);
  for (const known of [visited, ancestors, savedStyles, sizes]) known.clear();
  scrollToTop(0);
  return {};
};

// Where the page was scrolled to before it was laid out for an image that a step takes.
let keptScroll = [0, 0];
page.keepScroll = () => {
  keptScroll = [scrollX, scrollY];
  return {};
};
page.restoreScroll = () => {
  scrollTo({ left: keptScroll[0], top: keptScroll[1], behavior: 'instant' });
  return {};
};
