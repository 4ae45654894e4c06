// Looks for what the caller waits for, or does not accept.

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
