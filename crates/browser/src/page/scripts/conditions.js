// Looks for what the caller waits for, or does not accept.

// The texts that a tree shows, without those of the trees in it. The text of an element that is not rendered is its whole
// content.
const ownTexts = (tree) => {
  if (tree.nodeType === Node.DOCUMENT_NODE) return [tree.body?.innerText ?? tree.documentElement?.textContent];
  return [...tree.childNodes].map((node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    return node.nodeType === Node.ELEMENT_NODE && getComputedStyle(node).display !== 'none' ? node.innerText : '';
  });
};

// The texts that a tree, its open shadow trees and the documents of its frames that can be read show.
const shownTexts = (tree) => {
  const all = ownTexts(tree);
  for (const element of tree.querySelectorAll('*')) {
    for (const inner of [element.shadowRoot, documentIn(element)]) if (inner && isShown(element)) all.push(...shownTexts(inner));
  }
  return all;
};

const showsText = (text) => {
  // Names in the document may replace its properties by elements.
  const shown = shownTexts(document).filter((part) => typeof part === 'string');
  return oneLine(shown.join('\n')).toLowerCase().includes(oneLine(text).toLowerCase());
};

// Waits until the page shows the text. Returns whether it does.
page.waitForText = async ({ text, budgetMs }) => {
  const until = performance.now() + budgetMs;
  for (;;) {
    if (showsText(text)) return { found: true };
    if (performance.now() >= until) return { found: false };
    await frame();
    await after(50);
  }
};

// Returns the option that the page is not captured with: `selector` or `text`, or `invalid` for a selector that is none.
page.findUnwanted = ({ selector, text }) => {
  try {
    if (selector !== null && selected(selector).some(isVisible)) return { unwanted: 'selector' };
  } catch {
    return { unwanted: 'invalid' };
  }
  return { unwanted: text !== null && showsText(text) ? 'text' : null };
};
