// Finds what the caller wants to be clicked.

// Waits until an element is visible and not covered, scrolls to it, and returns its centre in the window.
page.clickTarget = async ({ selector, budgetMs }) => {
  const until = performance.now() + budgetMs;
  for (;;) {
    let found;
    try {
      found = selected(selector).find(isVisible);
    } catch {
      return { problem: 'invalid' };
    }
    if (found) {
      found.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      await frame();
      // A link that is broken into lines has a box for each of them.
      const box = [...found.getClientRects()].find(hasArea) ?? found.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      if (holds(found, elementAt(x, y))) return { x, y };
    }
    if (performance.now() >= until) return { problem: found ? 'covered' : 'missing' };
    await frame();
  }
};
