// Web vitals: how fast the page was shown, as the browser has measured it.

// The browser keeps as many entries of a type. A value that further ones may change is not known.
const MAX_BUFFERED = 150;
// Layout shifts belong together if they follow each other within the one time, and all of them are within the other.
const SHIFT_GAP_MS = 1000;
const SHIFT_SESSION_MS = 5000;

const measuredEntries = (type) => {
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type, buffered: true });
  const entries = observer.takeRecords();
  observer.disconnect();
  return entries;
};

// The largest sum of shifts that belong together.
const layoutShift = (shifts) => {
  let largest = 0;
  let session = null;
  for (const { startTime, value, hadRecentInput } of shifts) {
    if (hadRecentInput) continue;
    const goesOn = session !== null && startTime - session.last < SHIFT_GAP_MS && startTime - session.first < SHIFT_SESSION_MS;
    session = { first: goesOn ? session.first : startTime, last: startTime, sum: (goesOn ? session.sum : 0) + value };
    largest = Math.max(largest, session.sum);
  }
  return Math.round(largest * 10000) / 10000;
};

page.vitals = () => {
  const rounded = (ms) => (ms > 0 ? Math.round(ms * 10) / 10 : null);
  const [navigation] = performance.getEntriesByType('navigation');
  const first = measuredEntries('paint').find(({ name }) => name === 'first-contentful-paint');
  const largest = measuredEntries('largest-contentful-paint');
  const shifts = measuredEntries('layout-shift');
  return {
    ttfbMs: rounded(navigation?.responseStart),
    fcpMs: rounded(first?.startTime),
    lcpMs: largest.length < MAX_BUFFERED ? rounded(largest.at(-1)?.startTime) : null,
    cls: shifts.length < MAX_BUFFERED ? layoutShift(shifts) : null,
  };
};
