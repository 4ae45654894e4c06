// Waits until the document is loaded, its fonts are there and the images in view are decoded, and says what it found.
async ({ waitForLoad }) => {
  if (waitForLoad && document.readyState !== 'complete') {
    await new Promise((done) => addEventListener('load', done, { once: true }));
  }
  // Reading a size lays the page out, which is when fonts begin to load.
  document.documentElement.getBoundingClientRect();
  await document.fonts.ready;

  const inView = (image) => {
    const box = image.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  };
  // Small images are decoded with the frame that shows them; large ones a frame may leave out. After a load event that
  // never came, images that are still under way have had their time.
  const large = (image) => image.naturalWidth * image.naturalHeight > 65536;
  const worth = (image) => (image.complete ? large(image) : waitForLoad) && inView(image);
  await Promise.all([...document.images].filter(worth).map((image) => image.decode().catch(() => {})));

  const has = (selector) => document.querySelector(selector) !== null;
  // Nothing in such a page can start anything any more: no script ran or can run, no frame, no timer, no animation.
  const still =
    document.scripts.length === 0 &&
    window.length === 0 &&
    !has('object, embed, video, audio, meta[http-equiv="refresh" i], img[srcset][sizes="auto" i]') &&
    document.getAnimations().length === 0 &&
    !document.evaluate('boolean(//@*[starts-with(local-name(), "on")])', document, null, XPathResult.BOOLEAN_TYPE).booleanValue;

  const few = () => (document.body?.innerText ?? '').length < 600;
  const challenge =
    (/^Just a moment/.test(document.title) && (has('script[src*="/cdn-cgi/challenge-platform/"]') || [...document.scripts].some((script) => script.text.includes('_cf_chl_opt')))) ||
    has('#challenge-form[action*="__cf_chl"], #px-captcha, iframe[src*="geo.captcha-delivery.com"]') ||
    (has('.h-captcha, iframe[src*="hcaptcha.com"], script[src*="hcaptcha.com"]') && !has('input:not([type="hidden"])') && few());
  return { still, challenge };
}
