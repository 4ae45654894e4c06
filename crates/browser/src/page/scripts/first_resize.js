// Frames are drawn on demand, so that the first one of a page of a phone may come after the load event. The browser then
// reports the size of the window as if it had changed, which it would not if it drew by a timer. Pages would react to that:
// close menus, for example.
let known = null;
const size = () => `${innerWidth}x${innerHeight}`;
addEventListener('DOMContentLoaded', () => (known = size()), { capture: true, once: true });
addEventListener('resize', (event) => size() === known && event.stopImmediatePropagation(), { capture: true, once: true });
