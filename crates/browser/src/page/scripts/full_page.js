// Arranges the whole page for one image, as if the screens of a user were joined.

// Is the element fixed to the viewport, and not to an ancestor that establishes a containing block?
const isFixedToViewport = (element) => {
  for (let parent = parentOf(element); parent; parent = parentOf(parent)) {
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

const positionFixed = (element, style, height) => {
  const box = element.getBoundingClientRect();
  if (!hasArea(box) || !overlaps(box, viewport()) || !isFixedToViewport(element)) return;
  if (box.height >= innerHeight * 0.9) {
    const isLayer = box.width >= innerWidth * 0.9;
    // A layer with content, such as a dialog, stays on the first screen. A background layer is extended, and so is a
    // side bar.
    if (!isLayer || Number(style.zIndex) < 0 || isBare(element)) {
      setStyle(element, { transition: 'none', bottom: 'auto', 'max-height': 'none', [isLayer ? 'height' : 'min-height']: `${height - Math.max(0, box.top)}px` });
    }
    return;
  }
  const atBottom = isGiven(element, 'bottom') ? !isGiven(element, 'top') : innerHeight - box.bottom < box.top / 4;
  if (!atBottom) return;
  const [x = '0px', y = '0px'] = style.translate === 'none' ? [] : style.translate.split(' ');
  setStyle(element, { transition: 'none', translate: `${x} calc(${y} + ${height - innerHeight}px)` });
};

const documentHeight = () => Math.max(root().scrollHeight, innerHeight);

// Positions elements that are fixed, sticky or painted relative to the viewport for the full page.
const arrange = () => {
  const fixed = [];
  for (const element of elements()) {
    const style = getComputedStyle(element);
    if (style.backgroundAttachment.includes('fixed')) setStyle(element, { 'background-attachment': 'scroll' });
    // Otherwise it would be in the middle of the captured image.
    if (style.position === 'sticky' && style.bottom !== 'auto') setStyle(element, { position: 'relative', top: 'auto', bottom: 'auto' });
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

// Prepares the page for a full-page capture and returns its size.
page.arrangeFullPage = async ({ maxHeight, budgetMs }) => {
  const until = performance.now() + budgetMs;
  if (scrollX !== 0 || scrollY !== 0) {
    scrollToTop(0);
    await frame();
  }
  centreViewAnimations();
  await finishAllAnimations();
  restoreStyles();
  await finishAllAnimations();
  arrange();
  const isCaptured = (element, box) => box.bottom + scrollY > 0 && box.top + scrollY < maxHeight;
  const decoded = decodeImages({ waits: true, shows: (image) => hasArea(image.getBoundingClientRect()) && isCaptured(image, image.getBoundingClientRect()) });
  await Promise.race([decoded, after(Math.max(0, until - performance.now()))]);
  const width = hidesWidth() ? innerWidth : Math.max(root().scrollWidth, innerWidth);
  return { width, height: documentHeight(), state: state(isCaptured) };
};

// Undoes what was done to the page for an image, so that it can be laid out for another one.
page.undoLayout = () => {
  restoreFormerStyles();
  for (const known of [visited, ancestors, savedStyles, sizes]) known.clear();
  scrollToTop(0);
  return {};
};
