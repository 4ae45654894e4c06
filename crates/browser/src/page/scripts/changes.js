// Applies the changes that the caller requested, and waits for elements.

// Styles are added to the document and to every open shadow tree. Constructed style sheets are not subject to the page's
// content security policy.
page.applyChanges = ({ hide, remove, css }) => {
  const sheet = new CSSStyleSheet();
  const rules = [css ?? '', ...hide.map((selector) => `${selector} { visibility: hidden !important }`), ...remove.map((selector) => `${selector} { display: none !important }`)];
  sheet.replaceSync(rules.join('\n'));
  for (const tree of trees()) tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, sheet];
  return {};
};

const isVisible = (element) => hasArea(element.getBoundingClientRect()) && isShown(element);

// Waits until an element is visible, or until none is. Returns the problem if the wait fails.
page.waitFor = async ({ selector, isGone, budgetMs }) => {
  const until = performance.now() + budgetMs;
  for (;;) {
    let found;
    try {
      found = elements(selector).some(isVisible);
    } catch {
      return { problem: 'invalid' };
    }
    if (found !== isGone) return {};
    if (performance.now() >= until) return { problem: 'timeout' };
    await frame();
  }
};
