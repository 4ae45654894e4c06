// What is in front of elements: whether the hit test of the window, which tells where clicks go, finds something else in the middle
// of their visible part and in at least half of the places around it.

const MAX_COVER_NAME = 80;
const MAX_COVER_SELECTOR = 256;
// Of names and selectors of all that is in front.
const MAX_COVER_CHARACTERS = 1 << 20;
const MAX_SHADOW_DEPTH = 100;
const MAX_RECTS = 50;
// Of those that lie above each other at a point.
const MAX_LAYERS = 200;
// The middle, and the places around it, as parts of the width and of the height.
const PLACES = [[0.5, 0.5], [0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]];
const HALF = (PLACES.length - 1) / 2;
const UNKNOWN = 'unknown';

const clientRects = method(Element.prototype, 'getClientRects');
const elementInDocument = method(Document.prototype, 'elementFromPoint');
const elementInShadow = method(ShadowRoot.prototype, 'elementFromPoint');
const elementsInDocument = method(Document.prototype, 'elementsFromPoint');
const elementsInShadow = method(ShadowRoot.prototype, 'elementsFromPoint');
const styleSheets = Object.getOwnPropertyDescriptor(Document.prototype, 'adoptedStyleSheets');

// The innermost element at a point of the window, also in open shadow trees.
const elementAt = (x, y) => {
  let element = elementInDocument(document, x, y);
  for (let depth = 0; element && depth < MAX_SHADOW_DEPTH; depth += 1) {
    const tree = shadowRoot(element);
    const inner = tree && elementInShadow(tree, x, y);
    if (!inner || inner === element) break;
    element = inner;
  }
  return element;
};

// Is `inner` the element, or inside it, also across shadow trees?
const holds = (outer, inner) => {
  for (let at = inner; at; at = flatParent(at)) if (at === outer) return true;
  return false;
};

// Does a click on `hit` act on the element? One on a label acts on its field.
const isHit = (element, hit) =>
  holds(element, hit) || labelsOf(element).some((label) => holds(label, hit)) || (element instanceof HTMLAreaElement && isOnMap(element, hit));

const isInWindow = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

// The places of a part of an element where it is looked for, as parts of its box. A link that is broken into lines has a box for
// each of them.
const placesIn = (element, part) => {
  const box = boxOf(element);
  if (!box.width || !box.height) return null;
  const areaOf = (of) => (hasNoArea(of) ? 0 : (of.right - of.left) * (of.bottom - of.top));
  const rects = [...clientRects(element)].slice(0, MAX_RECTS).map((rect) => intersection(part, rect));
  const { left, top, right, bottom } = rects.reduce((one, other) => (areaOf(other) > areaOf(one) ? other : one), NOWHERE);
  if (right <= left || bottom <= top) return null;
  return PLACES.map(([x, y]) => [(left + (right - left) * x - box.left) / box.width, (top + (bottom - top) * y - box.top) / box.height]);
};
const pointOf = (box, [x, y]) => [box.left + box.width * x, box.top + box.height * y];

// What is drawn above all that is not in it.
const modalAround = (element) => {
  for (let at = element; at; at = flatParent(at)) if (matchesSelector(at, ':modal')) return at;
  return null;
};

// What the hit test finds in front of an element, or null. `undefined` if it finds neither the element nor what is surely before it:
// elements that let clicks through, for example.
const frontAt = (element, [x, y]) => {
  const hit = elementAt(x, y);
  if (!hit) return undefined;
  if (isHit(element, hit)) return null;
  const modal = modalAround(hit);
  if (modal && !holds(modal, element)) return hit;
  const tree = rootNode(element);
  const all = tree instanceof ShadowRoot ? elementsInShadow(tree, x, y) : elementsInDocument(document, x, y);
  return [...all].slice(0, MAX_LAYERS).some((other) => isHit(element, other)) ? hit : undefined;
};

// The largest part of the page at the point that is in front of the element.
const partInFront = (element, hit, [x, y]) => {
  let front = hit;
  for (let at = hit; at && !holds(at, element); at = flatParent(at)) {
    const box = boxOf(at);
    if (box.left <= x && box.right >= x && box.top <= y && box.bottom >= y) front = at;
  }
  // Elements in shadow trees have no selectors, but those that they belong to have.
  for (let tree = rootNode(front); tree instanceof ShadowRoot && !holds(shadowHost(tree), element); tree = rootNode(front)) front = shadowHost(tree);
  return front;
};

let coverCharacters = 0;
const describe = once((front) => {
  const selector = selectorOf(front);
  const cover = {
    selector: selector && selector.length <= MAX_COVER_SELECTOR ? selector : null,
    name: oneLine(nameOf(front, true), MAX_COVER_NAME).toWellFormed(),
  };
  return hiddenTexts.some((text) => text !== '' && cover.name.includes(text)) ? { ...cover, name: '' } : cover;
});

// What is in front of an element at its places: what it is, null, or `unknown`.
const frontOf = (element, box, places) => {
  const points = places.map((place) => pointOf(box, place));
  const [middle, ...around] = points;
  const front = frontAt(element, middle);
  if (front === null) return null;
  if (front === undefined) return around.some((point) => frontAt(element, point) === null) ? null : UNKNOWN;
  const isAway = ([x, y]) => {
    const hit = elementAt(x, y);
    return hit !== null && !isHit(element, hit);
  };
  if (around.filter(isAway).length < HALF) return null;
  const cover = describe(partInFront(element, front, middle));
  coverCharacters += cover.name.length + (cover.selector ?? '').length;
  return coverCharacters > MAX_COVER_CHARACTERS ? UNKNOWN : cover;
};

// Applies styles while the function runs, and begins no transitions by it.
const withStyles = (rules, run) => {
  const before = styleSheets.get.call(document);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`@layer { *, *::before, *::after { transition: none !important } ${rules} }`);
  styleSheets.set.call(document, [...before, sheet]);
  try {
    run();
  } finally {
    // The styles are those of before, without a transition to them.
    if (rootOf(document)) boxOf(rootOf(document));
    styleSheets.set.call(document, [...before]);
  }
};

const LEAST_FACTOR = 1 / 256;

// Makes the page so small that all of these are in the window, while the function runs: only what is in the window is found by the hit
// test. Does nothing if that is not possible.
const whileAllAreInWindow = (boxes, run) => {
  const page = globalThis.page;
  const right = boxes.reduce((edge, box) => Math.max(edge, box.right + scrollX), 0);
  const bottom = boxes.reduce((edge, box) => Math.max(edge, box.bottom + scrollY), 0);
  let factor = 1;
  while (factor >= LEAST_FACTOR && (right * factor > innerWidth || bottom * factor > innerHeight)) factor /= 2;
  if (!page?.scale || factor < LEAST_FACTOR) return;
  withStyles('', () => {
    let result = null;
    try {
      result = page.scale({ factor });
      if (result.scaled) run();
    } finally {
      if (result?.scaled !== false) page.unscale();
    }
  });
};

// What is in front of each of the elements, in their order. `element` is what is looked for, `carrier` is the element whose box the
// places are in; `places` is null where nothing is asked.
const frontsOf = (asked) => {
  try {
    return findFronts(asked);
  } catch {
    return asked.map(({ places }) => (places ? UNKNOWN : null));
  }
};
const findFronts = (asked) => {
  const fronts = asked.map(({ places }) => (places ? UNKNOWN : null));
  const beyond = [];
  const unhit = [];
  asked.forEach(({ element, carrier, places }, at) => {
    if (!places) return;
    const box = boxOf(carrier);
    if (isInWindow(pointOf(box, places[0]))) fronts[at] = frontOf(element, box, places);
    else beyond.push([at, box]);
    if (fronts[at] === UNKNOWN && styleOf(element).pointerEvents === 'none') unhit.push(at);
  });
  if (beyond.length > 0) {
    whileAllAreInWindow(beyond.map(([, box]) => box), () => {
      for (const [at] of beyond) fronts[at] = frontOf(asked[at].element, boxOf(asked[at].carrier), asked[at].places);
    });
  }
  if (unhit.length > 0) {
    // Where an element lets clicks through, nothing is in front of it if everything else does not.
    withStyles('* { pointer-events: auto !important }', () => {
      for (const at of unhit) {
        const { element, carrier, places } = asked[at];
        if (frontAt(element, pointOf(boxOf(carrier), places[0])) === null) fronts[at] = null;
      }
    });
  }
  return fronts;
};

// What is in front of a frame at places in its document, each with several points. Returns the points in this document as well.
const frontsOfFrame = (element, { points, hidden }) => {
  hiddenTexts = hidden ?? [];
  // Where a point of a turned frame is cannot be told from its box.
  if (clipsOf(element, clipping).isTurned) return { fronts: points.map((own) => own && UNKNOWN), points: points.map(() => null) };
  const box = boxOf(element);
  const style = styleOf(element);
  const [left, top] = [contentInset(style, 'left'), contentInset(style, 'top')];
  const placeOf = ([x, y]) => [(left + x) / (element.offsetWidth || 1), (top + y) / (element.offsetHeight || 1)];
  const places = points.map((own) => own && own.map(placeOf));
  const fronts = frontsOf(places.map((own) => ({ element, carrier: element, places: own })));
  return { fronts, points: places.map((own, at) => (own && fronts[at] === null ? own.map((place) => pointOf(box, place)) : null)) };
};
