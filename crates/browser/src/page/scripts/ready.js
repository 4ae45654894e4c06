// Waits until a document is ready to be captured.

// After this time browsers draw text without its font.
const FONT_MS = 3000;

const fontsReady = () => {
  const began = performance.getEntriesByType('navigation')[0]?.responseStart ?? 0;
  return Promise.race([document.fonts.ready, after(Math.max(0, began + FONT_MS - performance.now()))]);
};

// Small images are decoded with the frame that shows them; a frame may omit large ones.
const decodeImages = (options) => {
  const large = (image) => image.naturalWidth * image.naturalHeight > 65536;
  const images = elements('img').filter((image) => (image.complete ? large(image) : options.waits) && options.shows(image));
  return Promise.all(images.map((image) => image.decode().catch(() => {})));
};

// Waits until the document is loaded, its fonts are ready and the images in view are decoded, and returns its state. If
// the load event did not come, pending images are not waited for.
page.ready = async ({ waitForLoad }) => {
  if (waitForLoad && document.readyState !== 'complete') {
    await new Promise((done) => addEventListener('load', done, { once: true }));
  }
  // Reading a size forces a layout, which starts the loading of fonts.
  document.documentElement.getBoundingClientRect();
  await fontsReady();
  await decodeImages({ waits: waitForLoad, shows: isInView });
  finishAnimations();
  return state();
};

// Returns the number of observed changes, whether the page may also draw without changing the document, and its clock.
page.changes = () => {
  // Idle callbacks run only after a frame that the page requested.
  requestAnimationFrame(() => {});
  const draws = [document, ...observed].some((tree) => tree.querySelector('canvas') !== null);
  return { count: changes, draws, now: performance.now() };
};

// Finishes the animations and returns the state.
page.settled = async () => {
  await decodeImages({ waits: false, shows: isInView });
  await finishAllAnimations();
  return state();
};

// Waits until something changes, or until the time is up.
page.nextChange = async ({ forMs }) => {
  const until = performance.now() + forMs;
  const before = changes;
  while (changes === before && performance.now() < until) await after(20);
};
