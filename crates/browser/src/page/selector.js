// Waits for the first element that a selector finds to be visible, brings it into view and says where it is.
async ({ selector, budgetMs }) => {
  const until = performance.now() + budgetMs;
  const left = () => Math.max(0, until - performance.now());
  // Unlike a timer, it has no number by which the page could clear it.
  const after = (ms) => scheduler.postTask(() => {}, { delay: ms });
  const frame = () => Promise.race([new Promise((done) => requestAnimationFrame(() => setTimeout(done))), after(100)]);
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };

  let element;
  for (;;) {
    try {
      element = document.querySelector(selector);
    } catch {
      return { problem: 'invalid' };
    }
    if (element && visible(element)) break;
    if (left() === 0) return { problem: element ? 'hidden' : 'missing' };
    await frame();
  }
  element.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
  await frame();

  const images = [element, ...element.querySelectorAll('img')].filter((inside) => inside instanceof HTMLImageElement);
  const decoded = images.map((image) => image.decode().catch(() => {}));
  await Promise.race([Promise.all(decoded), after(left())]);
  const box = element.getBoundingClientRect();
  return { x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height };
}
