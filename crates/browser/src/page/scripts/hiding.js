// Hides the elements that filter lists name.

const MAX_NAMES = 10000;
const MAX_NAME_LENGTH = 128;

const knownNames = { classes: new Set(), ids: new Set() };
const knownSelectors = new Set();
const hidingSelectors = [];
let hidingSheet = null;

// Hides elements again that a script of the page shows. Each is watched by itself: a list has too many selectors to look for at
// each change of a page.
const undoneHiding = new MutationObserver((records) => {
  for (const element of new Set(records.map(({ target }) => target))) {
    if (isRendered(element) && isAllowed(element)) keepStyle(element, REMOVED);
  }
});

// Hides what the selectors match now. Returns the elements.
const hideMatches = () => {
  const listed = hidingSelectors.length > 0 ? matches([hidingSelectors.join()]) : [];
  for (const element of listed) {
    if (isRendered(element)) keepStyle(element, REMOVED);
    undoneHiding.observe(element, { attributes: true, attributeFilter: ['style', 'class', 'id', 'hidden'] });
  }
  return listed;
};

// Returns the classes and ids in the page that it has not returned before, and whether this is the first call.
page.newNames = () => {
  const isFirst = !hidingSheet;
  hidingSheet ??= new CSSStyleSheet();
  const found = { classes: [], ids: [], isFirst };
  const add = (kind, name) => {
    if (!name || name.length > MAX_NAME_LENGTH || knownNames[kind].has(name) || knownNames[kind].size >= MAX_NAMES) return;
    knownNames[kind].add(name);
    found[kind].push(name);
  };
  for (const element of elements('[class], [id]')) {
    for (const name of element.classList) add('classes', name);
    add('ids', element.getAttribute('id'));
  }
  return found;
};

// Takes elements that match the selectors out of the layout, also those that are added later. Selectors that are invalid,
// or would hide the whole page, are left out. Returns whether the document has such elements.
page.hideListed = ({ selectors }) => {
  const isWholePage = (selector) => [document.documentElement, document.body].some((element) => element?.matches(selector));
  const added = selectors.filter((selector) => {
    if (knownSelectors.has(selector)) return false;
    knownSelectors.add(selector);
    try {
      if (isWholePage(selector)) return false;
      hidingSheet.insertRule(`@layer ${LAYER} { ${selector} { ${declarations(REMOVED)} } }`, hidingSheet.cssRules.length);
      hidingSelectors.push(selector);
      return true;
    } catch {
      return false;
    }
  });
  for (const tree of trees()) {
    if (!tree.adoptedStyleSheets.includes(hidingSheet)) tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, hidingSheet];
  }
  const listed = hideMatches();
  return added.length > 0 && listed.length > 0;
};
