// Says whether anything in the page changes within a time, or draws without a change to the document.
async ({ forMs }) => {
  const draws = document.querySelector('canvas, video, object, embed, iframe') !== null || document.getAnimations().length > 0;
  // What happens inside a shadow tree is not told to an observer of the document.
  if (draws || [...document.querySelectorAll('*')].some((element) => element.shadowRoot)) return { changed: true };
  let changed = false;
  const observer = new MutationObserver(() => (changed = true));
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  const scrolled = () => (changed = true);
  addEventListener('scroll', scrolled, { capture: true });
  await new Promise((done) => setTimeout(done, forMs));
  observer.disconnect();
  removeEventListener('scroll', scrolled, { capture: true });
  return { changed };
}
