// Applies the changes that the caller requested, and waits for elements.

// In a layer, declarations with `!important` win over all those of the page that are in none, whatever their selectors are.
// Those in `style` attributes win over them.
const LAYER = 'grabd-changes';
const HIDDEN = { opacity: '0', visibility: 'hidden' };
const REMOVED = { display: 'none' };
// How often a script of the page may undo the change of one element while the page settles, and just before an image: without a
// limit, two observers would undo each other's changes without end.
const MAX_REPEATS = 50;
const MAX_REPEATS_FOR_IMAGE = 1000;

const declarations = (values) => Object.entries(values).map(([name, value]) => `${name}: ${value} !important`).join('; ');

let requested = { hide: [], remove: [] };
let repeats = new WeakMap();
let maxRepeats = MAX_REPEATS;

const matches = (selectors) => selectors.flatMap((selector) => elements(selector));

// The first selector that is not valid, with its option. It would match nothing, and its rule would have no effect.
const firstInvalid = (options) => {
  const nothing = document.createDocumentFragment();
  for (const [option, selectors] of Object.entries(options)) {
    for (const selector of selectors) {
      try {
        nothing.querySelector(selector);
      } catch {
        return { option, selector };
      }
    }
  }
  return null;
};

const isRendered = (element) => element.getClientRects().length > 0;

// Is nothing of the element visible, whatever its descendants declare?
const isHidden = (element) => {
  const { display, opacity } = getComputedStyle(element);
  return display === 'contents' ? [...element.children].every(isHidden) : opacity === '0' || !isRendered(element);
};

// An element without a box of its own is hidden by hiding its children.
const hideBoxes = (element) => {
  if (getComputedStyle(element).display !== 'contents') return keepStyle(element, { ...HIDDEN, transition: 'none' });
  for (const child of element.children) hideBoxes(child);
};

// Called before an element is hidden again.
const isAllowed = (element) => {
  keptHidden.add(element);
  const count = repeats.get(element) ?? 0;
  repeats.set(element, count + 1);
  return count < maxRepeats;
};

// Hides and removes what the style sheet did not, because the page has declarations that win over it.
const enforce = (isLast) => {
  for (const element of matches(requested.hide)) {
    if (!isHidden(element) && (isLast || isAllowed(element))) hideBoxes(element);
  }
  for (const element of matches(requested.remove)) {
    if (!isRendered(element) || !(isLast || isAllowed(element))) continue;
    keepStyle(element, { ...REMOVED, transition: 'none' });
    if (isLast && isRendered(element)) element.remove();
  }
};

const undoings = new MutationObserver(() => enforce(false));

// Begins to watch the trees that are there now. A tree that is watched already is not watched twice.
const watchUndoings = () => {
  const watched = { subtree: true, childList: true, attributes: true, attributeFilter: ['style', 'class', 'id', 'hidden'] };
  for (const tree of trees()) undoings.observe(tree, watched);
};

// The number of elements that are visible although they are to be hidden or removed.
const countShown = () => {
  const visible = matches(requested.hide).filter((element) => !isHidden(element));
  return visible.length + matches(requested.remove).filter(isRendered).length;
};

// Styles are added to the document and to every open shadow tree. Constructed style sheets are not subject to the page's
// content security policy.
page.applyChanges = ({ hide, remove, css }) => {
  const invalid = firstInvalid({ hide, remove });
  if (invalid) return { invalid };
  requested = { hide, remove };
  const sheet = new CSSStyleSheet();
  const rules = [
    ...hide.map((selector) => `${selector} { ${declarations(HIDDEN)} }`),
    ...hide.map((selector) => `${selector}::backdrop { ${declarations(REMOVED)} }`),
    ...remove.map((selector) => `${selector} { ${declarations(REMOVED)} }`),
  ];
  sheet.replaceSync(`${css ?? ''}\n@layer ${LAYER} {\n${rules.join('\n')}\n}`);
  for (const tree of trees()) tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, sheet];
  if (hide.length + remove.length > 0) {
    enforce(false);
    watchUndoings();
  }
  return {};
};

// Applies the changes again before an image is taken, and returns the number of elements that are visible nevertheless. Until the
// image is taken, the page's scripts run: what they show again is hidden before a frame is drawn.
page.enforceChanges = () => {
  repeats = new WeakMap();
  maxRepeats = MAX_REPEATS_FOR_IMAGE;
  hideMatches();
  watchUndoings();
  enforce(true);
  return countShown();
};

// The number of elements that are visible after an image was taken, although they are to be hidden or removed.
page.checkChanges = () => {
  maxRepeats = MAX_REPEATS;
  return countShown();
};

// Waits until an element is visible, or until none is. Returns the problem if the wait fails.
page.waitFor = async ({ selector, isGone, budgetMs }) => {
  const until = performance.now() + budgetMs;
  for (;;) {
    let found;
    try {
      found = selected(selector).some(isVisible);
    } catch {
      return { problem: 'invalid' };
    }
    if (found !== isGone) return {};
    if (performance.now() >= until) return { problem: 'timeout' };
    await frame();
  }
};
