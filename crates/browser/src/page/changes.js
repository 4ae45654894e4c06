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
  // A timer comes after those of the page that are due. It has a number by which the page could clear it; a task has none.
  const task = scheduler.postTask(() => {}, { delay: forMs + 100 });
  await Promise.race([new Promise((done) => setTimeout(done, forMs)), task]);
  observer.disconnect();
  removeEventListener('scroll', scrolled, { capture: true });
  return { changed };
}
