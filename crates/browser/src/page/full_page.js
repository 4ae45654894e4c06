// Brings in what only loads when it is scrolled to, and says how tall the page then is.
async ({ budgetMs, maxHeight }) => {
  const until = performance.now() + budgetMs;
  const left = () => Math.max(0, until - performance.now());
  // Unlike a timer, it has no number by which the page could clear it.
  const after = (ms) => scheduler.postTask(() => {}, { delay: ms });
  // A frame, or a moment where none is drawn.
  const frame = () => Promise.race([new Promise((done) => requestAnimationFrame(() => setTimeout(done))), after(100)]);
  const root = document.scrollingElement ?? document.documentElement;

  // Many applications scroll an element instead of the document: give that element its whole height.
  const expand = () => {
    if (root.scrollHeight > innerHeight + 1) return;
    let tallest = null;
    for (const element of document.body?.querySelectorAll('*') ?? []) {
      if (element.scrollHeight <= Math.max(element.clientHeight + 1, tallest?.scrollHeight ?? 0)) continue;
      if (element.clientWidth * element.clientHeight < (innerWidth * innerHeight) / 3) continue;
      if (/^(auto|scroll|overlay)$/.test(getComputedStyle(element).overflowY)) tallest = element;
    }
    for (let element = tallest; element; element = element.parentElement) {
      const { position } = getComputedStyle(element);
      const set = (name, value) => element.style.setProperty(name, value, 'important');
      set('overflow', 'visible');
      set('height', 'auto');
      set('max-height', 'none');
      set('flex', 'none');
      if (position === 'fixed' || position === 'absolute') {
        set('position', 'absolute');
        set('bottom', 'auto');
      }
    }
  };

  expand();
  const lazy = (image) => image.loading === 'lazy' && image.getBoundingClientRect().top + scrollY < maxHeight;
  for (const image of [...document.images].filter(lazy)) image.loading = 'eager';
  for (let y = 0; y < Math.min(root.scrollHeight, maxHeight) && left() > 0; y += innerHeight) {
    scrollTo({ top: y, behavior: 'instant' });
    await frame();
  }
  scrollTo({ top: 0, behavior: 'instant' });
  await frame();

  const captured = (image) => {
    const box = image.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < maxHeight && box.left < innerWidth;
  };
  const decoded = [...document.images].filter(captured).map((image) => image.decode().catch(() => {}));
  await Promise.race([Promise.all([document.fonts.ready, ...decoded]), after(left())]);
  return { height: Math.max(root.scrollHeight, innerHeight) };
}
