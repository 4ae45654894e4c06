// Work of the page that goes on outside of its thread, which its virtual time does not wait for: storage, encryption and
// service workers. The page's own operations are not visible here. Operations of our own are answered after those of the
// page that were begun before.

// Operations of the page that may follow each other before they change the document.
const ROUNDS = 10;

const orElse = (promise, value) => Promise.resolve(promise).catch(() => value);

const databaseCount = async () => (await orElse(globalThis.indexedDB?.databases(), []))?.length ?? 0;

const cacheCount = async () => (await orElse(globalThis.caches?.keys(), []))?.length ?? 0;

// Does the page have files of its own?
const hasFiles = async () => {
  const directory = await orElse(navigator.storage?.getDirectory?.(), null);
  return directory !== null && !(await orElse(directory.keys().next(), { done: true })).done;
};

const registrations = async () => (await orElse(navigator.serviceWorker?.getRegistrations(), [])) ?? [];

// Derives a key, for which the browser has one thread (Chromium 156). What takes no time, such as a digest of a few bytes,
// is not carried out there.
let derivable = null;
const encrypt = async () => {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) return;
  derivable ??= await orElse(subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']), null);
  const algorithm = { name: 'PBKDF2', salt: new Uint8Array(8), iterations: 1, hash: 'SHA-256' };
  if (derivable) await orElse(subtle.deriveBits(algorithm, derivable, 128), null);
};

// Does the page use any of that? Our own operations are answered after those of the page.
page.look = async () => {
  const [, databases, caches, files, { length }] = await Promise.all([encrypt(), databaseCount(), cacheCount(), hasFiles(), registrations()]);
  return databases > 0 || caches > 0 || files || length > 0;
};

const isStarting = ({ installing, active }) => installing !== null || active?.state === 'activating';

// Waits until the page's operations have been answered, or until the time is up.
page.answers = async ({ forMs }) => {
  const until = performance.now() + forMs;
  for (let round = 0; ; ) {
    const [, , , workers] = await Promise.all([encrypt(), databaseCount(), hasFiles(), registrations()]);
    const isPending = workers.some(isStarting);
    round = isPending ? 0 : round + 1;
    if (round >= ROUNDS) return { pending: false };
    if (performance.now() >= until) return { pending: true };
  }
};
