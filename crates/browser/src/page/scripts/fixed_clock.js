// Gives a page a clock and random numbers of its own, so that it looks the same in every capture. Runs in the page's world, and
// in its workers, before the scripts of the page.
//
// The clock begins at a fixed date. It stands still while something loads, then goes from one due timer to the next, and stops
// at a fixed end. So a timer has run as often, and an animation has come as far, however long the page took to load.
({ epochMs, endMs, phaseMs, eventMs, loadMs, holdMs }) => {
  // The time between two animation frames, at first and later. Scripts take a longer gap for a pause.
  const FRAME_MS = 16;
  const LATER_FRAME_MS = 64;
  const SMOOTH_MS = 1000;
  // A timer that was set by this many timers in a row has a shortest delay, as in browsers.
  const NESTED = 5;
  const NESTED_MS = 4;
  const MAX_DELAY_MS = 0x7fffffff;
  // The most timers that move the clock, and the most in a row that run after it has stopped.
  const MAX_RUNS = 50_000;
  const MAX_LATE_TIMEOUTS = 100;
  const MAX_LATE_FRAMES = 3;
  // The most times that the clock is read in one task without moving. A loop that waits for it must end.
  const MAX_READS = 20_000;
  // The most times that the wait for what loads is given up. After that, nothing is waited for.
  const MAX_RELEASES = 3;
  // How often the clock waits for a frame of the browser, by its own time, and for how long at most. Frames that are not shown
  // have none.
  const FRAME_EVERY_MS = 500;
  const FRAME_WAIT_MS = 2000;
  // The most actions of the caller that let the clock go on.
  const MAX_EVENTS = 60;
  // The first messages to a worker and from it. The scripts of the page do not receive them.
  const START = 'grabd-clock-start';
  const STARTED = 'grabd-clock-started';
  // The states that the random numbers begin with: any numbers but zero.
  const MATH_SEED = 0x2545f491;
  const CRYPTO_SEED = 0x6c078965;

  const { Date: RealDate, Map: RealMap, Set: RealSet, WeakMap: RealWeakMap, Promise: RealPromise, Proxy: RealProxy } = globalThis;
  const { Uint8Array: Bytes, UIEvent: RealEvent, MutationObserver: RealObserver, Element: RealElement } = globalThis;
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { floor, trunc, max } = Math;
  const isFunction = (value) => typeof value === 'function';
  // Before its script runs, a worker has no timers: the browser adds them to a prototype then (Chromium 156).
  const readTimer = (name) => {
    const native = globalThis[name];
    if (native) return native.bind(globalThis);
    const holder = getPrototypeOf(getPrototypeOf(globalThis));
    return (...args) => holder[name] && apply(holder[name], globalThis, args);
  };
  const setRealTimeout = readTimer('setTimeout');
  const clearRealTimeout = readTimer('clearTimeout');
  const readRealDate = RealDate.now;
  const sendStarted = globalThis.postMessage?.bind(globalThis);
  const requestRealFrame = globalThis.requestAnimationFrame?.bind(globalThis);
  const hasDocument = globalThis.document !== undefined;

  // Replaces a method of an object, or of what it inherits from. `change` gets the original, `this` and the arguments. A proxy
  // has the name and the text of what it replaces.
  const wrap = (object, name, change) => {
    let holder = object ?? null;
    while (holder && !getOwnPropertyDescriptor(holder, name)) holder = getPrototypeOf(holder);
    const descriptor = holder && getOwnPropertyDescriptor(holder, name);
    if (!isFunction(descriptor?.value) || !descriptor.configurable) return;
    defineProperty(holder, name, { ...descriptor, value: new RealProxy(descriptor.value, { apply: change }) });
  };

  // Replaces a timer function. A property of the worker itself hides the one that the browser adds to a prototype later.
  const wrapTimer = (name, change) => {
    if (isFunction(globalThis[name])) {
      wrap(globalThis, name, change);
      return;
    }
    const value = new RealProxy({ [name]() {} }[name], { apply: change });
    defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
  };

  // Replaces what reads or sets a property of a prototype.
  const wrapAccessor = (object, name, accessor, change) => {
    const descriptor = object && getOwnPropertyDescriptor(object, name);
    if (!descriptor?.[accessor] || !descriptor.configurable) return;
    defineProperty(object, name, { ...descriptor, [accessor]: new RealProxy(descriptor[accessor], { apply: change }) });
  };

  // Timers that have not run, by id, and ordered by when they are due: a binary heap, whose first one is the earliest.
  const live = new RealMap();
  const heap = [];
  const isBefore = (one, other) => one.due < other.due || (one.due === other.due && one.order < other.order);
  const push = (timer) => {
    let at = heap.length;
    heap[at] = timer;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(timer, heap[parent])) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = timer;
  };
  const dropFirst = () => {
    const last = heap[heap.length - 1];
    heap.length -= 1;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], last)) break;
      heap[at] = heap[child];
      at = child;
    }
    if (heap.length > 0) heap[at] = last;
  };
  // The earliest timer. Those that were cancelled, or that have run late, are dropped.
  const earliest = () => {
    while (heap.length > 0 && live.get(heap[0].id) !== heap[0]) dropFirst();
    return heap[0] ?? null;
  };

  // Timers that were set while the clock stood at its end. They run at once, so that a page can react to what happens then.
  let late = [];
  let lateAt = 0;
  const nextLate = () => {
    while (lateAt < late.length) {
      const timer = late[lateAt];
      lateAt += 1;
      if (live.get(timer.id) === timer) return timer;
    }
    [late, lateAt] = [[], 0];
    return null;
  };

  // What the page loads. The clock stands still meanwhile.
  const loads = new RealSet();
  let releases = 0;
  let isLoaded = false;
  let holdTimer = null;
  const isHeld = () => releases < MAX_RELEASES && (loads.size > 0 || !isLoaded);
  const endHold = () => {
    if (holdTimer !== null) clearRealTimeout(holdTimer);
    holdTimer = null;
  };
  const release = () => {
    holdTimer = null;
    releases += 1;
    isLoaded = true;
    loads.clear();
    wake();
  };
  // Returns what ends it.
  const beginLoad = () => {
    const load = {};
    loads.add(load);
    return () => {
      if (!loads.delete(load)) return;
      // What has arrived is shown, and may start an animation.
      isFrameDue = true;
      wake();
    };
  };
  const track = (promise) => {
    const done = beginLoad();
    apply(RealPromise.prototype.then, promise, [done, done]);
    return promise;
  };

  // Observers report what they have seen after a frame of the browser. The clock goes on when they have.
  let isFrameDue = hasDocument;
  let hasFrames = hasDocument;
  let frameWait = null;
  const waitForFrame = () => {
    isFrameDue = false;
    const wait = {};
    const finish = (isDrawn) => {
      if (frameWait !== wait) return;
      frameWait = null;
      hasFrames &&= isDrawn;
      clearRealTimeout(limit);
      wake();
    };
    const limit = setRealTimeout(() => finish(false), FRAME_WAIT_MS);
    frameWait = wait;
    requestRealFrame(() => requestRealFrame(() => finish(true)));
  };

  let [now, end, phase, events] = [0, endMs, 0, 0];
  let [runs, reads, lastId] = [0, 0, 0];
  // The timer whose task, or whose promises, run.
  let current = null;
  // What waits until the clock stands at its end.
  let waiting = [];

  const readClock = () => {
    reads += 1;
    if (reads === 1) wake();
    if (reads > MAX_READS) now += 1;
    return now;
  };
  const date = () => epochMs + readClock();

  const run = (timer) => {
    current = timer;
    if (timer.every === null) {
      live.delete(timer.id);
    } else {
      timer.due = now + timer.every;
      timer.order = lastId += 1;
      push(timer);
    }
    try {
      timer.call();
    } catch (error) {
      globalThis.reportError(error);
    }
  };

  // Runs at most one timer: each is a task of its own.
  const turn = () => {
    [isAwake, current, reads] = [false, null, 0];
    const next = earliest();
    const isDue = next !== null && next.due <= now && next.due <= end;
    const delayed = isDue ? null : nextLate();
    if (delayed !== null) {
      run(delayed);
    } else if (!isDue && isHeld()) {
      holdTimer ??= setRealTimeout(release, isLoaded ? holdMs : loadMs);
      return;
    } else if (!isDue && frameWait !== null) {
      return;
    } else if (!isDue && isFrameDue && hasFrames) {
      endHold();
      waitForFrame();
      return;
    } else if (next !== null && next.due <= end && runs < MAX_RUNS) {
      endHold();
      runs += 1;
      isFrameDue ||= floor(next.due / FRAME_EVERY_MS) > floor(now / FRAME_EVERY_MS);
      now = max(now, next.due);
      dropFirst();
      run(next);
    } else {
      endHold();
      now = max(now, end);
      const answers = waiting;
      waiting = [];
      for (let at = 0; at < answers.length; at += 1) answers[at]();
      return;
    }
    wake();
  };

  const channel = new MessageChannel();
  const post = channel.port2.postMessage.bind(channel.port2);
  let isAwake = false;
  function wake() {
    if (isAwake) return;
    isAwake = true;
    post(null);
  }
  channel.port1.onmessage = turn;

  const addTimer = (kind, call, delay, every = null) => {
    const nesting = current === null ? 0 : current.nesting + 1;
    const depth = current === null ? 0 : current.depth + 1;
    const isLate = now >= end;
    const id = (lastId += 1);
    const due = now + (nesting >= NESTED ? max(delay, NESTED_MS) : delay);
    const timer = { id, order: id, due, call, every, nesting, depth: isLate ? depth : -1 };
    live.set(id, timer);
    push(timer);
    const mostLate = kind === 'frame' ? MAX_LATE_FRAMES : MAX_LATE_TIMEOUTS;
    if (isLate && every === null && depth < mostLate) late[late.length] = timer;
    wake();
    return id;
  };
  const cancel = (_native, _this, [id]) => {
    live.delete(trunc(Number(id)) || 0);
  };

  const delayOf = (value) => {
    const delay = trunc(Number(value)) || 0;
    return delay > 0 && delay <= MAX_DELAY_MS ? delay : 0;
  };
  // What a timer calls. A text is a script.
  const callOf = (handler, args) => {
    if (isFunction(handler)) return () => apply(handler, globalThis, args);
    const source = String(handler);
    return () => (0, eval)(source);
  };
  wrapTimer('setTimeout', (_native, _this, [handler, delay, ...args]) =>
    addTimer('timeout', callOf(handler, args), delayOf(delay)));
  wrapTimer('setInterval', (_native, _this, [handler, delay, ...args]) => {
    const every = max(delayOf(delay), NESTED_MS);
    return addTimer('interval', callOf(handler, args), every, every);
  });
  wrap(globalThis, 'requestAnimationFrame', (native, self, args) => {
    const [callback] = args;
    // The browser's error.
    if (!isFunction(callback)) return apply(native, self, args);
    const interval = now < SMOOTH_MS ? FRAME_MS : LATER_FRAME_MS;
    return addTimer('frame', () => callback(now), interval - (now % interval));
  });
  wrap(globalThis, 'requestIdleCallback', (native, self, args) => {
    const [callback] = args;
    if (!isFunction(callback)) return apply(native, self, args);
    return addTimer('timeout', () => callback({ didTimeout: false, timeRemaining: () => FRAME_MS }), 1);
  });
  for (const name of ['clearTimeout', 'clearInterval']) wrapTimer(name, cancel);
  for (const name of ['cancelAnimationFrame', 'cancelIdleCallback']) wrap(globalThis, name, cancel);
  wrap(globalThis.scheduler, 'postTask', (native, self, args) => {
    const delay = delayOf(args[1]?.delay);
    if (delay === 0) return apply(native, self, args);
    const waited = new RealPromise((done) => addTimer('timeout', done, delay));
    return waited.then(() => apply(native, self, [args[0], { ...args[1], delay: 0 }]));
  });

  const changeDates = () => {
    const FixedDate = new RealProxy(RealDate, {
      apply: () => new RealDate(date()).toString(),
      construct: (real, args, made) => construct(real, args.length === 0 ? [date()] : args, made),
    });
    defineProperty(globalThis, 'Date', { value: FixedDate, writable: true, configurable: true, enumerable: false });
    defineProperty(RealDate.prototype, 'constructor', { value: FixedDate, writable: true, configurable: true, enumerable: false });
    wrap(RealDate, 'now', date);
    wrap(globalThis.performance, 'now', readClock);
    wrapAccessor(globalThis.Performance?.prototype, 'timeOrigin', 'get', () => epochMs);
    const formats = Intl.DateTimeFormat.prototype;
    wrapAccessor(formats, 'format', 'get', (native, self) => {
      const format = apply(native, self, []);
      return (value) => format(value === undefined ? date() : value);
    });
    wrap(formats, 'formatToParts', (native, self, [value]) => apply(native, self, [value === undefined ? date() : value]));
    const { Temporal } = globalThis;
    if (!Temporal) return;
    const instant = () => Temporal.Instant.fromEpochMilliseconds(date());
    const zoned = (zone) => instant().toZonedDateTimeISO(zone ?? Temporal.Now.timeZoneId());
    wrap(Temporal.Now, 'instant', instant);
    wrap(Temporal.Now, 'zonedDateTimeISO', (_native, _this, [zone]) => zoned(zone));
    wrap(Temporal.Now, 'plainDateTimeISO', (_native, _this, [zone]) => zoned(zone).toPlainDateTime());
    wrap(Temporal.Now, 'plainDateISO', (_native, _this, [zone]) => zoned(zone).toPlainDate());
    wrap(Temporal.Now, 'plainTimeISO', (_native, _this, [zone]) => zoned(zone).toPlainTime());
  };

  // Cookies expire by the clock of the browser.
  const changeCookies = () => {
    const shifted = (time) => new RealDate(time + readRealDate() - epochMs - now).toUTCString();
    wrapAccessor(globalThis.Document?.prototype, 'cookie', 'set', (native, self, [cookie]) => {
      const text = String(cookie).replace(/(;\s*expires\s*=\s*)([^;]+)/i, (all, name, value) => {
        const time = RealDate.parse(value);
        return Number.isNaN(time) ? all : name + shifted(time);
      });
      return apply(native, self, [text]);
    });
  };

  // Frameworks compare the time of an event with their own.
  const changeEventTimes = () => {
    const times = new RealWeakMap();
    wrapAccessor(globalThis.Event?.prototype, 'timeStamp', 'get', (_native, event) => {
      if (!times.has(event)) times.set(event, now);
      return times.get(event);
    });
  };

  // A generator of 32 bits at a time: xorshift.
  const generator = (seed) => () => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return seed >>> 0;
  };
  const changeRandomNumbers = () => {
    const nextOfMath = generator(MATH_SEED);
    const nextOfCrypto = generator(CRYPTO_SEED);
    wrap(Math, 'random', () => nextOfMath() / 2 ** 32);
    const fill = (bytes) => {
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = nextOfCrypto() >>> 24;
      return bytes;
    };
    const crypto = globalThis.Crypto?.prototype;
    // The original checks what is to be filled.
    wrap(crypto, 'getRandomValues', (native, self, args) => {
      const filled = apply(native, self, args);
      fill(new Bytes(filled.buffer, filled.byteOffset, filled.byteLength));
      return filled;
    });
    wrap(crypto, 'randomUUID', () => {
      const bytes = fill(new Bytes(16));
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    });
  };

  const watchRequests = () => {
    wrap(globalThis, 'fetch', (native, self, args) => track(apply(native, self, args)));
    for (const name of ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text']) {
      wrap(globalThis.Response?.prototype, name, (native, self, args) => track(apply(native, self, args)));
    }
    wrap(globalThis.XMLHttpRequest?.prototype, 'send', (native, self, args) => {
      const done = beginLoad();
      self.addEventListener('loadend', done, { once: true });
      try {
        return apply(native, self, args);
      } catch (error) {
        done();
        throw error;
      }
    });
  };

  // A worker receives messages when its script has run.
  const watchWorkers = () => {
    const { Worker: RealWorker } = globalThis;
    if (!RealWorker) return;
    const starts = new RealWeakMap();
    const watched = (native, args, made) => {
      const worker = construct(native, args, made);
      const done = beginLoad();
      starts.set(worker, done);
      const receive = (event) => {
        if (event.data !== STARTED) return;
        event.stopImmediatePropagation();
        worker.removeEventListener('message', receive);
        done();
      };
      worker.addEventListener('message', receive);
      worker.addEventListener('error', done, { once: true });
      worker.postMessage(START);
      return worker;
    };
    wrap(RealWorker.prototype, 'terminate', (native, worker, args) => {
      starts.get(worker)?.();
      return apply(native, worker, args);
    });
    const value = new RealProxy(RealWorker, { construct: watched });
    defineProperty(globalThis, 'Worker', { value, writable: true, configurable: true, enumerable: false });
    defineProperty(RealWorker.prototype, 'constructor', { value, writable: true, configurable: true, enumerable: false });
  };

  // Images, scripts, style sheets and frames that are added after the document has loaded.
  const LOADING = 'img, script[src], link[rel~=stylesheet], iframe';
  const isLoading = (element) => {
    switch (element.localName) {
      case 'img':
        return !element.complete && element.loading !== 'lazy';
      case 'iframe':
        return element.loading !== 'lazy';
      case 'link':
        return element.sheet === null && !element.disabled;
      default:
        return /^$|^module$|javascript/.test(element.type);
    }
  };
  const trackElement = (element) => {
    if (!isLoading(element)) return;
    const done = beginLoad();
    for (const name of ['load', 'error']) element.addEventListener(name, done, { once: true });
  };
  const watchElements = () => {
    new RealObserver((changes) => {
      for (const { addedNodes } of changes) {
        for (const node of addedNodes) {
          if (!(node instanceof RealElement)) continue;
          if (node.matches(LOADING)) trackElement(node);
          for (const inner of node.querySelectorAll(LOADING)) trackElement(inner);
        }
      }
    }).observe(globalThis.document, { childList: true, subtree: true });
    wrapAccessor(globalThis.HTMLImageElement?.prototype, 'src', 'set', (native, image, args) => {
      apply(native, image, args);
      trackElement(image);
    });
  };
  const watchObservers = () => {
    for (const observer of [globalThis.IntersectionObserver, globalThis.ResizeObserver]) {
      wrap(observer?.prototype, 'observe', (native, self, args) => {
        isFrameDue = true;
        return apply(native, self, args);
      });
    }
  };
  const watchFonts = () => {
    const { fonts } = globalThis.document;
    let done = null;
    fonts?.addEventListener('loading', () => (done ??= beginLoad()));
    for (const name of ['loadingdone', 'loadingerror']) {
      fonts?.addEventListener(name, () => {
        done?.();
        done = null;
      });
    }
  };
  const watchDocument = () => {
    const loaded = () => {
      [isLoaded, isFrameDue] = [true, true];
      // The time for what is loaded later begins.
      endHold();
      watchElements();
      wake();
    };
    if (globalThis.document.readyState === 'complete') loaded();
    else globalThis.addEventListener('load', loaded, { once: true });
    watchFonts();
  };

  // What moves by itself would come as far as real time allows.
  const stopMotion = () => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('*, *::before, *::after { transition: none !important; scroll-behavior: auto !important }');
    globalThis.document.adoptedStyleSheets.push(sheet);
    const atOnce = (native, self, args) => {
      const [options] = args;
      const isSmooth = typeof options === 'object' && options?.behavior === 'smooth';
      return apply(native, self, isSmooth ? [{ ...options, behavior: 'instant' }] : args);
    };
    for (const name of ['scroll', 'scrollTo', 'scrollBy', 'scrollIntoView']) {
      wrap(RealElement.prototype, name, atOnce);
      wrap(globalThis, name, atOnce);
    }
  };

  // Lets the clock go on to the end of a phase, and answers when it stands there. What it waited for may never come: no scripts run
  // while an image is taken, and a message or a frame that comes then is lost.
  const goOn = (to, answer) => {
    phase = max(phase, trunc(to));
    end = max(end, endMs + phase * phaseMs + events * eventMs);
    waiting[waiting.length] = answer;
    isFrameDue ||= frameWait !== null;
    [isAwake, frameWait] = [false, null];
    wake();
  };
  const answerCalls = () => {
    globalThis.addEventListener('grabd-clock', (event) => {
      event.preventDefault();
      event.stopImmediatePropagation();
      goOn(event.detail, () => globalThis.dispatchEvent(new RealEvent('grabd-clock-stands')));
    });
    // Clicks and keys of the caller. Those that the page makes up are not trusted.
    const act = (event) => {
      if (!event.isTrusted || events >= MAX_EVENTS) return;
      events += 1;
      end += eventMs;
      wake();
    };
    for (const name of ['click', 'keydown']) globalThis.addEventListener(name, act, { capture: true });
  };

  changeDates();
  changeCookies();
  changeEventTimes();
  changeRandomNumbers();
  watchRequests();
  watchWorkers();
  if (hasDocument) {
    answerCalls();
    watchObservers();
    watchDocument();
    stopMotion();
  } else {
    const stand = (to) => new RealPromise((done) => goOn(to, done));
    defineProperty(globalThis, Symbol.for('grabd-clock'), { value: stand });
    const start = (event) => {
      if (event.data !== START) return;
      event.stopImmediatePropagation();
      globalThis.removeEventListener('message', start);
      isLoaded = true;
      endHold();
      sendStarted(STARTED);
      wake();
    };
    globalThis.addEventListener('message', start);
  }
  // For what the caller waits for, besides the page.
  const waitInRealTime = (ms) => new RealPromise((done) => setRealTimeout(done, ms));
  defineProperty(globalThis, Symbol.for('grabd-wait'), { value: waitInRealTime });
}
