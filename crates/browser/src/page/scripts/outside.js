// Work of the page that goes on outside of its thread, which its virtual time does not wait for: storage, encryption and
// service workers. The page's own operations are not visible here. Operations of our own are answered after those of the
// page that were begun before.

// Operations of the page that may follow each other before they change the document.
const ROUNDS = 16;

const orElse = (promise, value) => Promise.resolve(promise).catch(() => value);

const databaseCount = async () => (await orElse(globalThis.indexedDB?.databases(), []))?.length ?? 0;

// Bytes that the page has stored, by kind.
const storedBytes = async () => (await orElse(navigator.storage?.estimate(), {}))?.usageDetails ?? {};

// The number of locks that the page holds or waits for.
const lockCount = async () => {
  const { held = [], pending = [] } = (await orElse(navigator.locks?.query(), {})) ?? {};
  return held.length + pending.length;
};

const registrations = async () => (await orElse(navigator.serviceWorker?.getRegistrations(), [])) ?? [];

const isStarting = ({ installing, active }) => installing !== null || active?.state === 'activating';

// What the page has outside of its thread.
const holdings = async () => {
  const [databases, stored, locks, workers] = await Promise.all([databaseCount(), storedBytes(), lockCount(), registrations()]);
  const counts = [databases, workers.length, ...Object.values(stored)];
  return { counts, isActive: locks > 0 || workers.some(isStarting) };
};

// Does the page use any of that? Our own operations are answered after those of the page.
page.look = async () => {
  const { counts, isActive } = await holdings();
  return { exists: counts.some((count) => count > 0), active: isActive, changes };
};

// Waits until the page's operations have been answered, or until the time is up.
page.answers = async ({ forMs }) => {
  const until = performance.now() + forMs;
  let known = '';
  for (let round = 0; ; ) {
    const { counts, isActive } = await holdings();
    const isSame = String(counts) === known;
    known = String(counts);
    round = isActive || !isSame ? 0 : round + 1;
    if (round >= ROUNDS) return { pending: false };
    if (performance.now() >= until) return { pending: true };
  }
};
