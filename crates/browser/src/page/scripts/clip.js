// Prepares a rectangle of the page, and tells where the viewport is.

// Scrolls through the part of the page around the rectangle that is not in view, so that it is loaded, and back to the
// top. Returns whether that was necessary.
page.sweepClip = async ({ y, height, budgetMs }) => {
  const until = performance.now() + budgetMs;
  if (y >= scrollY && y + height <= scrollY + innerHeight) return { scrolled: false };
  const bottom = y + height;
  for (const lazy of elements('[loading="lazy"]')) {
    const box = lazy.getBoundingClientRect();
    if (box.bottom + scrollY > y && box.top + scrollY < bottom) lazy.loading = 'eager';
  }
  for (let at = y; at < Math.min(bottom, documentHeight()) && performance.now() < until; at += innerHeight) {
    scrollToTop(at);
    await frame();
  }
  scrollToTop(0);
  await frame();
  return { scrolled: true };
};

// Waits for the images in the rectangle, and returns the size of the page and its state.
page.placeClip = async ({ x, y, width, height, budgetMs }) => {
  await finishAllAnimations();
  const isCaptured = (element, box) =>
    overlaps(
      { left: box.left + scrollX, top: box.top + scrollY, right: box.right + scrollX, bottom: box.bottom + scrollY },
      { left: x, top: y, right: x + width, bottom: y + height },
    );
  const decoded = decodeImages({ waits: true, shows: (image) => isCaptured(image, image.getBoundingClientRect()) });
  await Promise.race([decoded, after(budgetMs)]);
  const frames = unpaintedFrames({ left: x, top: y, right: x + width, bottom: y + height });
  return { ...pageSize(), frames, state: state(isCaptured) };
};

// Where the part of the page is that the window shows, in CSS pixels of the page.
page.visibleArea = () => ({
  x: visualViewport.pageLeft - leftEdge(),
  y: visualViewport.pageTop,
  width: visualViewport.width,
  height: visualViewport.height,
});
