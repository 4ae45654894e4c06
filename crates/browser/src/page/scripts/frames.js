// Frames of other sites. The browser paints them only inside the window.

// The number of frames of other sites in a rectangle of the page that are outside the window.
const unpaintedFrames = (rectangle) =>
  elements('iframe').filter((inner) => {
    const box = inner.getBoundingClientRect();
    const place = { left: box.left + scrollX, top: box.top + scrollY, right: box.right + scrollX, bottom: box.bottom + scrollY };
    const isWhole = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
    return inner.contentDocument === null && hasArea(box) && overlaps(place, rectangle) && !isWhole && isShown(inner) && isUncut(inner, box);
  }).length;

// The styles before the page was scaled.
const unscaled = new Map();
let scaledSheet = null;

// Content in the top layer is not scaled with the page. The page may have its own transformation.
const isScalable = () => {
  const { transform, translate, rotate, scale, filter, perspective } = getComputedStyle(document.documentElement);
  return document.querySelector(':modal, :popover-open, :fullscreen') === null && [transform, translate, rotate, scale, filter, perspective].every((value) => value === 'none');
};

// The background of the window is that of the root element, or of the body. It is not scaled, so that an element before
// all others shows it.
const scaleBackground = () => {
  const html = document.documentElement;
  const source = [html, document.body].find((element) => {
    if (!element) return false;
    const { backgroundImage, backgroundColor } = getComputedStyle(element);
    return backgroundImage !== 'none' || !isTransparent(backgroundColor);
  });
  if (!source || getComputedStyle(source).backgroundImage === 'none') return true;
  const pseudo = ['::before', '::after'].find((name) => getComputedStyle(html, name).content === 'none');
  if (!pseudo) return false;
  const style = getComputedStyle(source);
  const isNatural = style.backgroundSize === 'auto' && /gradient\(/.test(style.backgroundImage);
  const size = isNatural ? `${html.offsetWidth}px ${html.offsetHeight}px` : style.backgroundSize;
  const layer = {
    content: '""', position: 'absolute', left: '0', top: '0', width: `${root().scrollWidth}px`, height: `${documentHeight()}px`,
    margin: '0', padding: '0', border: '0', 'z-index': '-2147483648', 'pointer-events': 'none',
    'background-color': style.backgroundColor, 'background-image': style.backgroundImage, 'background-position': style.backgroundPosition,
    'background-repeat': style.backgroundRepeat, 'background-size': size, 'background-blend-mode': style.backgroundBlendMode,
  };
  const declarations = Object.entries(layer).map(([name, value]) => `${name}: ${value} !important`).join('; ');
  scaledSheet = new CSSStyleSheet();
  scaledSheet.replaceSync(`html${pseudo} { ${declarations} }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, scaledSheet];
  setStyle(html, { 'background-image': 'none', 'background-color': style.backgroundColor }, unscaled);
  if (source === document.body) setStyle(source, { 'background-image': 'none', 'background-color': 'transparent' }, unscaled);
  return true;
};

// Where the page was scrolled before it was scaled.
let scrolledTo = [0, 0];

// Makes the page smaller, so that all of it is inside the window, and scrolls to its top. Its layout stays the same. Returns
// whether that worked; scripts of the page must not run meanwhile.
page.scale = ({ factor }) => {
  if (!isScalable() || !scaleBackground()) return { scaled: false };
  const pinned = elements().filter((element) => /fixed|sticky/.test(getComputedStyle(element).position) && hasArea(element.getBoundingClientRect()));
  const places = pinned.map((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return { left: left + scrollX, top: top + scrollY, width, height };
  });
  scrolledTo = [scrollX, scrollY];
  setStyle(document.documentElement, { transform: `scale(${factor})`, 'transform-origin': '0 0', transition: 'none' }, unscaled);
  scrollTo({ left: 0, top: 0, behavior: 'instant' });
  pinned.forEach((element, index) => {
    const { left, top, width, height } = places[index];
    const style = getComputedStyle(element);
    if (style.position === 'fixed' && isFixedToViewport(element, document.documentElement)) {
      const size = { width: `${width}px`, height: `${height}px`, 'min-height': '0', 'max-height': 'none', 'box-sizing': 'border-box', margin: '0' };
      setStyle(element, { ...size, left: '0', top: '0', right: 'auto', bottom: 'auto', transition: 'none' }, unscaled);
    }
    // Fixed elements are now positioned in the page, and sticky ones are where the top of the page has them.
    const now = element.getBoundingClientRect();
    const [x, y] = [left - now.left / factor, top - now.top / factor];
    if (Math.abs(x) < 0.01 && Math.abs(y) < 0.01) return;
    const [before, above] = style.translate === 'none' ? ['0px', '0px'] : [...style.translate.split(' '), '0px'];
    setStyle(element, { translate: `calc(${before} + ${x}px) calc(${above} + ${y}px)`, transition: 'none' }, unscaled);
  });
  return { scaled: true };
};

page.unscale = () => {
  restore(unscaled);
  if (scaledSheet) document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== scaledSheet);
  scaledSheet = null;
  scrollTo({ left: scrolledTo[0], top: scrolledTo[1], behavior: 'instant' });
  return {};
};

// While the image is taken, scripts are off and the window is larger. What the browser shows to visitors without scripts stays
// hidden, also in frames that can be accessed. What another size of the window changes does not begin a transition, and an
// animation that begins or begins anew is at its end.
const stylesOfShot = new Map();
const stillSheets = [];

// Lets the animations of a tree that have not ended go on as they are. Returns whether pseudo-elements have some of them.
const keepPlaying = (tree) => {
  let hasPseudo = false;
  for (const animation of tree.getAnimations()) {
    const { target, pseudoElement } = animation.effect ?? {};
    if (animation.animationName === undefined || animation.playState === 'finished' || !target) continue;
    hasPseudo ||= pseudoElement !== null;
    if (stylesOfShot.has(target)) continue;
    const { animationDuration, animationDelay } = getComputedStyle(target);
    setStyle(target, { 'animation-duration': animationDuration, 'animation-delay': animationDelay }, stylesOfShot);
  }
  return hasPseudo;
};

page.beginShot = () => {
  for (const tree of reachableTrees()) {
    for (const element of tree.querySelectorAll('noscript')) setStyle(element, { display: 'none' }, stylesOfShot);
    const view = (tree.ownerDocument ?? tree).defaultView;
    if (!view) continue;
    const sheet = new view.CSSStyleSheet();
    const ended = keepPlaying(tree) ? '*' : '*, *::before, *::after';
    sheet.replaceSync(
      `*, *::before, *::after { transition: none !important } ${ended} { animation-duration: 0s !important; animation-delay: 0s !important }`,
    );
    tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, sheet];
    stillSheets.push([tree, sheet]);
  }
  return {};
};
page.endShot = () => {
  restore(stylesOfShot);
  for (const [tree, sheet] of stillSheets.splice(0)) tree.adoptedStyleSheets = tree.adoptedStyleSheets.filter((other) => other !== sheet);
  return {};
};
