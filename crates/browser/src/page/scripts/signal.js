// Notes the event with which a page says that it is ready, which may come before it is waited for. Runs in the page's world,
// before the page's scripts.
(() => {
  const noted = Symbol.for('grabReady');
  const note = () => {
    globalThis[noted] = true;
  };
  // Events of the document also pass the window.
  addEventListener('grabReady', note, { capture: true });
})();
