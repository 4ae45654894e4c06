// Stops everything that moves, so that every image of the page is the same.

// How long a video may take to show its first frame, in the time of the page, which may pass faster than that of the
// decoder.
const SEEK_MS = 2000;
// How long that frame may take after the seek has ended.
const FRAME_MS = 200;
// Frames of a later time, in seconds, are not the first one.
const FIRST_FRAME_S = 0.1;
// Images and videos with more pixels are not copied.
const MAX_STILL_PIXELS = 16_000_000;

// The document, its open shadow trees, and those of frames that can be accessed.
const reachableTrees = () => {
  const all = [...trees()];
  for (const frame of elements('iframe, frame')) {
    try {
      if (frame.contentDocument) all.push(frame.contentDocument);
    } catch {
      // A document of another origin.
    }
  }
  return all;
};

const withoutMotion = new WeakSet();
const stopStyles = (tree) => {
  if (withoutMotion.has(tree)) return;
  withoutMotion.add(tree);
  const { defaultView } = tree.ownerDocument ?? tree;
  if (!defaultView) return;
  const sheet = new defaultView.CSSStyleSheet();
  sheet.replaceSync('*, *::before, *::after { transition: none !important; caret-color: transparent !important }');
  tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, sheet];
};

// Finite animations end. Endless ones are removed: their beginning may be invisible.
const stopAnimations = (tree) => {
  for (const animation of tree.getAnimations()) {
    try {
      if (animation.playState !== 'running' || !(animation.timeline?.currentTime >= 0)) continue;
      if (isEndless(animation)) animation.cancel();
      else animation.finish();
    } catch {
      // The animation has no duration, or the page has just cancelled it.
    }
  }
  for (const svg of tree.querySelectorAll('svg')) {
    svg.pauseAnimations();
    svg.setCurrentTime(0);
  }
};

const HAVE_CURRENT_DATA = 2;
const NETWORK_LOADING = 2;

const once = (target, event) => new Promise((done) => target.addEventListener(event, done, { once: true }));

// Replaces an element by a copy of what it shows now.
const replaceByStill = (element, width, height) => {
  if (width * height === 0 || width * height > MAX_STILL_PIXELS) return;
  const still = element.ownerDocument.createElement('canvas');
  [still.width, still.height] = [width, height];
  still.getContext('2d').drawImage(element, 0, 0, width, height);
  for (const name of ['id', 'class', 'slot']) {
    if (element.hasAttribute(name)) still.setAttribute(name, element.getAttribute(name));
  }
  const style = getComputedStyle(element);
  const values = [...style].map((name) => [name, style.getPropertyValue(name)]);
  keepStyle(still, Object.fromEntries(values));
  keepStyle(still, { animation: 'none' });
  noteCopy(element, still);
  element.replaceWith(still);
};

// Resolves when a frame of the beginning has arrived. On a busy machine, that may be after the seek has ended.
const firstFrame = (video) => new Promise((done) => {
  const look = (_, { mediaTime }) => {
    if (mediaTime <= FIRST_FRAME_S) done();
    else video.requestVideoFrameCallback(look);
  };
  video.requestVideoFrameCallback(look);
});

// Shows the first frame of a video that has played. When that frame has arrived, it is not on the screen yet, and nothing
// tells when it is. A canvas has it at once. `starting` also shows that of a video that is about to play: whether it has begun
// depends on when the image is taken.
const stopVideo = async (video, starting) => {
  const isStarting = starting && (video.autoplay || !video.paused);
  video.autoplay = false;
  video.pause();
  const limit = after(SEEK_MS);
  if (video.readyState < HAVE_CURRENT_DATA && video.networkState === NETWORK_LOADING) {
    await Promise.race([once(video, 'loadeddata'), limit]);
  }
  if (video.readyState === 0 || (video.played.length === 0 && !isStarting)) return;
  let isLate = false;
  limit.then(() => { isLate = true; });
  const arrived = firstFrame(video);
  video.currentTime = 0;
  // A video that plays in a loop may just have begun to seek by itself, and the event is of that seek.
  while (video.seeking && !isLate) await Promise.race([once(video, 'seeked'), limit]);
  await Promise.race([arrived, after(FRAME_MS)]);
  replaceByStill(video, video.videoWidth, video.videoHeight);
};

// Replaces an image by its first frame, which is what a canvas draws of it.
const stopImage = (image) => {
  if (image.complete) replaceByStill(image, image.naturalWidth, image.naturalHeight);
};

// Lets the fixed clocks of the page, and of frames that can be accessed, go on to the end of a phase, and waits until they stand
// there. A frame without scripts has none.
page.standStill = async ({ phase, budgetMs }) => {
  const documents = reachableTrees().filter((tree) => tree.nodeType === Node.DOCUMENT_NODE);
  const stand = ({ defaultView: view }) => {
    if (!view) return null;
    const stands = once(view, 'grabd-clock-stands');
    const hasClock = !view.dispatchEvent(new UIEvent('grabd-clock', { detail: phase, cancelable: true }));
    return hasClock ? stands : null;
  };
  await Promise.race([Promise.all(documents.map(stand)), after(budgetMs)]);
  return {};
};

const isAnimatedData = (url) => /^data:image\/(?:gif|webp|apng)[;,]/i.test(url);

// Stops animations, videos and the images with these URLs, and hides carets.
page.freeze = async ({ images, starting }) => {
  const animated = new Set(images);
  const all = reachableTrees();
  for (const tree of all) {
    stopStyles(tree);
    stopAnimations(tree);
  }
  for (const image of all.flatMap((tree) => [...tree.querySelectorAll('img')])) {
    if (animated.has(image.currentSrc.split('#')[0]) || isAnimatedData(image.currentSrc)) stopImage(image);
  }
  await Promise.all(all.flatMap((tree) => [...tree.querySelectorAll('video')]).map((video) => stopVideo(video, starting)));
  return {};
};
