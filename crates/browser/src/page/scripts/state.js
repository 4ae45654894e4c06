// The state of the page: its content, whether it is loading, and what failed.

// A page with this many characters shows more than a loading screen.
const ENOUGH_TEXT = 200;
// Boxes with a smaller side are ignored.
const SMALL_PX = 16;

let changes = 0;
const observed = new Set();
const countChange = () => (changes += 1);
// Elements that are hidden again whenever a script of the page shows them. That does not change the image.
const keptHidden = new WeakSet();
const observer = new MutationObserver((records) => {
  if (records.some(({ target }) => !keptHidden.has(target))) countChange();
});
const observeChanges = () => {
  for (const tree of trees()) {
    if (observed.has(tree)) continue;
    observed.add(tree);
    observer.observe(tree, { subtree: true, childList: true, attributes: true, characterData: true });
    // Smooth scrolling takes half a second and longer. The events do not leave a shadow tree.
    tree.addEventListener('scroll', countChange, { capture: true, passive: true });
  }
};

// The number of characters that are shown, up to `enough`: in the whole document, or in one element.
const textLength = (enough, within = null) => {
  let length = 0;
  for (const tree of within ? [within] : trees()) {
    const walker = document.createTreeWalker(tree === document ? (document.body ?? document) : tree, NodeFilter.SHOW_TEXT);
    while (length < enough && walker.nextNode()) {
      const text = walker.currentNode.data.trim();
      const parent = walker.currentNode.parentElement;
      if (text && !parent?.matches('script, style, noscript, template') && (!parent || isShown(parent))) length += text.length;
    }
  }
  return length;
};

const isTransparent = (colour) => colour === 'transparent' || /^rgba\(.*,\s*0\)$|\/\s*0\)$/.test(colour);

const hasBackground = (element, style = getComputedStyle(element)) =>
  style.backgroundImage !== 'none' || !isTransparent(style.backgroundColor);

const isLarge = (element) => {
  const box = element.getBoundingClientRect();
  return box.width >= SMALL_PX && box.height >= SMALL_PX && overlaps(box, viewport());
};

// Is anything painted besides text and the page's background?
const isPainted = () =>
  elements(PAINTING).some((element) => isLarge(element) && isShown(element)) ||
  elements('body *').some((element) => isLarge(element) && isShown(element) && hasBackground(element));

// `full`; `sparse`: only a few words; or `empty`.
const content = () => {
  const length = textLength(ENOUGH_TEXT);
  if (length >= ENOUGH_TEXT || isPainted()) return 'full';
  return length > 0 ? 'sparse' : 'empty';
};

// The positioned element that covers the window, if there is one: nothing behind it is seen.
const frontLayer = () => {
  let layer = null;
  for (const across of [0.02, 0.5, 0.98]) {
    for (const down of [0.02, 0.5, 0.98]) {
      let element = document.elementFromPoint(innerWidth * across, innerHeight * down);
      while (element && getComputedStyle(element).position === 'static') element = parentOf(element);
      if (!element || element === document.body || element === document.documentElement) return null;
      if (!layer || holds(element, layer)) layer = element;
      else if (!holds(layer, element)) return null;
    }
  }
  const box = layer.getBoundingClientRect();
  return box.left <= 1 && box.top <= 1 && box.right >= innerWidth - 1 && box.bottom >= innerHeight - 1 ? layer : null;
};

// Is there little text, and no more than one screen to be seen?
const isOneScreen = () => {
  const layer = frontLayer();
  const height = layer ? innerHeight : root().scrollHeight;
  return height <= innerHeight + SMALL_PX && textLength(ENOUGH_TEXT, layer) < ENOUGH_TEXT;
};

const hasPageBackground = () =>
  [document.documentElement, document.body].some((element) => {
    if (!element) return false;
    const { backgroundImage, backgroundColor } = getComputedStyle(element);
    return backgroundImage !== 'none' || !(isTransparent(backgroundColor) || backgroundColor === 'rgb(255, 255, 255)');
  });

// Does the page mark itself as loading?
const saysBusy = () =>
  elements('[aria-busy="true"], progress:indeterminate, [role="progressbar"]:not([aria-valuenow])').some(
    (element) => isInView(element) && isShown(element),
  );

// Milliseconds until a `meta` element redirects the page to another URL, or null.
const refreshMs = () => {
  const meta = document.querySelector('meta[http-equiv="refresh" i]');
  const parts = /^\s*(\d+(?:\.\d+)?)\s*(?:[;,]\s*(?:url\s*=\s*)?['"]?([^'"]*))?/i.exec(meta?.content ?? '');
  if (!parts?.[2]) return null;
  try {
    // A page that reloads itself counts as settled.
    if (new URL(parts[2].trim(), document.baseURI).href === location.href) return null;
  } catch {
    return null;
  }
  return Number(parts[1]) * 1000;
};

// The bot protection service whose challenge the page is, or null. Captchas are also on ordinary pages, with a form and
// more text.
const challenge = () => {
  const has = (selector) => document.querySelector(selector) !== null;
  const isBare = () => !has('input:not([type="hidden"])') && (document.body?.innerText ?? '').length < 600;
  if (/^Just a moment/.test(document.title) && (has('script[src*="/cdn-cgi/challenge-platform/"]') || [...document.scripts].some((script) => script.text.includes('_cf_chl_opt')))) return 'cloudflare';
  if (has('#challenge-form[action*="__cf_chl"]')) return 'cloudflare';
  if (has('#px-captcha')) return 'perimeterx';
  if (has('iframe[src*="geo.captcha-delivery.com"]')) return 'datadome';
  if (has('#sec-if-cpt-container, #sec-cpt-if')) return 'akamai';
  if (has('script#anubis_challenge')) return 'unknown';
  if (has('iframe[src*="/_Incapsula_Resource?"]') && isBare()) return 'imperva';
  if (has('.h-captcha, iframe[src*="hcaptcha.com"], script[src*="hcaptcha.com"]') && isBare()) return 'hcaptcha';
  if (has('.g-recaptcha:not([data-size="invisible"])') && isBare()) return 'recaptcha';
  return null;
};

// May the page still be scrolling to the fragment of its URL?
const scrollsToFragment = () => {
  if (location.hash.length < 2) return false;
  for (let element = document.querySelector(':target') ?? root(); element; element = parentOf(element)) {
    if (getComputedStyle(element).scrollBehavior === 'smooth') return true;
  }
  return getComputedStyle(document.documentElement).scrollBehavior === 'smooth';
};

// Can nothing in the page start any activity? It has no script, frame, media, refresh, or movement of its own.
const isStill = () =>
  document.scripts.length === 0 &&
  !scrollsToFragment() &&
  document.querySelector('animate, animateTransform, animateMotion, set') === null &&
  window.length === 0 &&
  document.querySelector('object, embed, video, audio, meta[http-equiv="refresh" i], img[srcset][sizes="auto" i]') === null &&
  !document.evaluate('boolean(//@*[starts-with(local-name(), "on")])', document, null, XPathResult.BOOLEAN_TYPE).booleanValue;

// Is any part of the element visible after ancestors have clipped it?
const isUncut = (element, box) => {
  let { left, top, right, bottom } = box;
  for (let parent = parentOf(element); parent && parent !== document.body && parent !== document.documentElement; parent = parentOf(parent)) {
    const style = getComputedStyle(parent);
    if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
    const around = parent.getBoundingClientRect();
    if (style.overflowX !== 'visible') [left, right] = [Math.max(left, around.left), Math.min(right, around.right)];
    if (style.overflowY !== 'visible') [top, bottom] = [Math.max(top, around.top), Math.min(bottom, around.bottom)];
    if (right - left < 2 || bottom - top < 2) return false;
  }
  return true;
};

// The number of URLs of failed images that are reported, and their maximum length.
const MAX_FAILED_URLS = 200;
const MAX_URL = 2048;

const imageCounts = (isCaptured) => {
  const counts = { failed: 0, missing: 0, failedUrls: [] };
  for (const image of elements('img')) {
    const box = image.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || !isCaptured(image, box) || !isShown(image)) continue;
    // An SVG image without intrinsic size has no natural width and is drawn nevertheless.
    const hasFailed = image.complete && image.currentSrc && image.naturalWidth === 0 && !/\.svg([?#]|$)|^data:image\/svg/i.test(image.currentSrc);
    const isMissing = !image.complete || isPlaceholder(image, box);
    if (!(hasFailed || isMissing) || !isUncut(image, box)) continue;
    counts[hasFailed ? 'failed' : 'missing'] += 1;
    if (hasFailed && counts.failedUrls.length < MAX_FAILED_URLS) counts.failedUrls.push(image.currentSrc.slice(0, MAX_URL));
  }
  return counts;
};

const LOOKS_LIKE_ADDRESS = /^(?:https?:)?\/\/|^\.{0,2}\/\S|url\(|\.(?:avif|gif|jpe?g|png|svg|webp)(?:[?#\s]|$)/i;

// Does a `data-` attribute hold a URL?
const namesAnotherSource = (element) =>
  [...element.attributes].some(({ name, value }) => name.startsWith('data-') && LOOKS_LIKE_ADDRESS.test(value));

// Is the image a placeholder for one that is loaded later?
const isPlaceholder = (image, box = image.getBoundingClientRect()) =>
  box.width >= SMALL_PX &&
  box.height >= SMALL_PX &&
  (!image.currentSrc || image.naturalWidth * 4 < box.width || image.currentSrc.startsWith('data:')) &&
  namesAnotherSource(image);

// The number of frames whose first document has not loaded.
const unfinishedFrames = (isCaptured) =>
  elements('iframe').filter((frame) => {
    const box = frame.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || !isCaptured(frame, box) || !isShown(frame) || !isUncut(frame, box)) return false;
    try {
      const inner = frame.contentDocument;
      // A cross-origin document cannot be read and counts as loaded.
      if (inner === null) return false;
      const asked = frame.src && frame.src !== 'about:blank' && !frame.srcdoc;
      return inner.readyState !== 'complete' || (asked && inner.URL === 'about:blank');
    } catch {
      return false;
    }
  }).length;

const failedFonts = () => [...document.fonts].filter((font) => font.status === 'error').length;

// Reads the complete state of the page.
const state = (isCaptured = (element, box) => overlaps(box, viewport())) => {
  observeChanges();
  const amount = content();
  const busy = saysBusy();
  const endless = hasEndlessAnimation();
  return {
    still: isStill(),
    challenge: challenge(),
    content: amount,
    pageBackground: amount !== 'full' && hasPageBackground(),
    scripted: document.scripts.length > 0,
    oneScreen: isOneScreen(),
    busy,
    endlessAnimation: endless,
    refreshMs: refreshMs(),
    changes,
    images: imageCounts(isCaptured),
    unfinishedFrames: unfinishedFrames(isCaptured),
    failedFonts: failedFonts(),
  };
};

page.state = state;

// Could a pending image move content that is in view?
const mayShift = (image, box) =>
  box.top < innerHeight &&
  (box.width === 0 || box.height === 0 || box.bottom <= 0) &&
  !(image.hasAttribute('width') && image.hasAttribute('height')) &&
  image.checkVisibility();

// Returns those of the given URLs of pending requests that cannot change the captured image: their element is in the
// document, but not in view. URLs without an element may be relevant.
page.irrelevant = ({ urls, whole }) => {
  const shows = (element) => {
    const box = element.getBoundingClientRect();
    return (box.width > 2 && box.height > 2 && (whole || overlaps(box, viewport()))) || mayShift(element, box);
  };
  const users = new Map(urls.map((url) => [url, []]));
  for (const element of elements('img, iframe, input[type="image"], video[poster]')) {
    for (const url of [element.currentSrc, element.src, element.poster]) users.get(url)?.push(element);
  }
  return urls.filter((url) => users.get(url).length > 0 && !users.get(url).some(shows));
};
