// Lets a capture wait for what a worker is about to do: timers that fire once, and frames. Runs in the worker before its own
// script.
() => {
  // A timer that was set by this many timers in a row belongs to a loop, which may never end.
  const MAX_CHAIN = 3;
  const POLL_MS = 10;
  // A worklet has neither timers nor frames.
  if (!globalThis.postMessage) return;

  const { apply, defineProperty, getPrototypeOf } = Reflect;
  const now = performance.now.bind(performance);
  // Before its script runs, a worker has no timers: the browser adds them to a prototype then (Chromium 156).
  const readNative = (name) => {
    const native = globalThis[name];
    const holder = getPrototypeOf(getPrototypeOf(globalThis));
    return (...args) => apply(native ?? holder[name], globalThis, args);
  };
  const define = (name, value) =>
    defineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true });

  const setTimer = readNative('setTimeout');
  // When each timer is due.
  const dueTimes = new Map();
  // The number of timers that led to the running code.
  let chain = 0;
  define('setTimeout', function setTimeout(handler, delay, ...args) {
    if (typeof handler !== 'function') return setTimer(handler, delay, ...args);
    const own = chain + 1;
    const id = setTimer((...values) => {
      dueTimes.delete(id);
      const before = chain;
      chain = own;
      try {
        apply(handler, globalThis, values);
      } finally {
        chain = before;
      }
    }, delay, ...args);
    if (own <= MAX_CHAIN) dueTimes.set(id, now() + (Number(delay) || 0));
    return id;
  });
  for (const name of ['clearTimeout', 'clearInterval']) {
    const clear = readNative(name);
    define(name, (id) => {
      dueTimes.delete(id);
      return clear(id);
    });
  }

  const frames = new Set();
  const requestFrame = readNative('requestAnimationFrame');
  const cancelFrame = readNative('cancelAnimationFrame');
  define('requestAnimationFrame', function requestAnimationFrame(callback) {
    const id = requestFrame((...values) => {
      frames.delete(id);
      apply(callback, globalThis, values);
    });
    frames.add(id);
    return id;
  });
  define('cancelAnimationFrame', function cancelAnimationFrame(id) {
    frames.delete(id);
    return cancelFrame(id);
  });

  // Waits for the timers that are due within a time, and for frames if the browser draws them by itself.
  const work = async (limitMs, drawsFrames) => {
    const until = now() + limitMs;
    const isWaiting = () =>
      (drawsFrames && frames.size > 0) || [...dueTimes.values()].some((dueTime) => dueTime <= until);
    while (isWaiting() && now() < until) await new Promise((resolve) => setTimer(resolve, POLL_MS));
    return { awaitsFrame: frames.size > 0 };
  };
  defineProperty(globalThis, Symbol.for('grabd-work'), { value: work });
}
