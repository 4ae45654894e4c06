// Captures pages as a patient reader sees them, as references for `script/bench sites`: node patient.mjs VISITS_AT_A_TIME
//
// Reads one visit per line from standard input,
//   {"id":1,"url":"http://…","directory":"/tmp/x","device":"desktop","dark":false,"modes":["view","full","element"],"again":false}
// waits for the load event, then for PATIENCE_MS, and scrolls slowly through the page and back. Answers each visit with one
// line when it has ended,
//   {"id":1,"selector":"#x","height":4210,"scroller":0} or {"id":1,"error":"…"}.
//
// Images in the directory: view.png from before it scrolls; element.png; full.png, the whole page with what is pinned to the
// window where the first screen has it; and unless this is the second visit (`again`), others that are as good:
// - full-tile-N.png: screens as a reader sees them while scrolling, at 0, 720, …; what is pinned is only on the first.
// - full-bare.png without what is pinned, and full-end.png as it is at the end of the page.
// - view-other.png and element-other.png in the other font for `monospace`: a headless browser begins with the font of a
//   windowed one, and changes it when it has made an image of more than the window.
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

import { DEVICES, executablePath, isolatedFlags } from './browser.mjs';
import { hideAbove, largeElement, layoutOf, pinnedBoxes, setHidden, showHidden } from './in-page.mjs';

const { chromium } = createRequire(process.cwd() + '/')('playwright-core');

const LOAD_LIMIT_MS = 30_000;
const PATIENCE_MS = 8_000;
// A visit is given up after this time.
const VISIT_LIMIT_MS = 120_000;
// After the slow scroll, for what comes in when it has been seen.
const SCROLLED_MS = 4_000;
// After each further one, for what begins then.
const REST_MS = 800;
// After the scroll to each screen.
const TILE_MS = 150;
const SCROLL_PAUSE_MS = 150;
const SCROLL_STEPS_MOST = 60;
// The tallest image that grabd makes.
const TALLEST = 16_384;

// A windowed browser has a mouse; a headless one says that it has none.
const MOUSE =
  '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4';
const launch = (...flags) => chromium.launch({ executablePath, args: [...isolatedFlags(), ...flags], headless: true });
const browsers = { desktop: await launch(MOUSE), phone: await launch() };
const version = browsers.desktop.version();
const agent = (system, mobile) =>
  `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version.split('.')[0]}.0.0.0 ${mobile}Safari/537.36`;
const AGENTS = { desktop: agent('X11; Linux x86_64', ''), phone: agent('Linux; Android 10; K', 'Mobile ') };

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const scrollThrough = async (page) => {
  for (let step = 0; step < SCROLL_STEPS_MOST; step++) {
    const more = await page.evaluate(() => {
      const scroller = globalThis.grabdScroller?.() ?? document.scrollingElement ?? document.documentElement;
      const before = scroller.scrollTop;
      scroller.scrollBy({ top: innerHeight / 2, behavior: 'instant' });
      return scroller.scrollTop > before + 1;
    });
    await pause(SCROLL_PAUSE_MS);
    if (!more) break;
  }
};

const toTop = (page) =>
  page.evaluate(() => {
    globalThis.grabdScroller?.()?.scrollTo({ top: 0, behavior: 'instant' });
    scrollTo({ top: 0, behavior: 'instant' });
  });

const visit = async ({ url, directory, device, dark, modes, selector, again = directory.endsWith('-2') }) => {
  await mkdir(directory, { recursive: true });
  const answer = { notes: [] };
  const { width, height, scale } = DEVICES[device];
  const context = await browsers[device].newContext({
    viewport: { width, height },
    screen: device === 'phone' ? { width, height } : { width: 1920, height: 1080 },
    deviceScaleFactor: scale,
    isMobile: device === 'phone',
    hasTouch: device === 'phone',
    userAgent: AGENTS[device],
    locale: 'en-US',
    colorScheme: dark ? 'dark' : 'light',
  });
  const limit = setTimeout(() => context.close(), VISIT_LIMIT_MS);
  try {
    const page = await context.newPage();
    page.on('dialog', (dialog) => dialog.dismiss().catch(() => {}));
    await page.goto(url, { waitUntil: 'load', timeout: LOAD_LIMIT_MS }).catch((error) => {
      answer.notes.push(String(error.message).split('\n')[0]);
    });
    await pause(PATIENCE_MS);
    const session = await context.newCDPSession(page);
    const write = (name, data) => writeFile(`${directory}/${name}.png`, data);
    // In device pixels, of a box in the window or of all of it.
    const shot = async (name, clip) =>
      write(name, await page.screenshot({ clip, animations: 'allow', caret: 'initial', timeout: LOAD_LIMIT_MS }));
    const shotBeyond = async (name, clip) => {
      const options = { format: 'png', optimizeForSpeed: true, captureBeyondViewport: true, clip: { ...clip, scale: 1 } };
      const { data } = await session.send('Page.captureScreenshot', options);
      await write(name, Buffer.from(data, 'base64'));
    };
    const scrollTo = async (top) => {
      await page.evaluate((y) => globalThis.scrollTo({ top: y, behavior: 'instant' }), top);
      await pause(TILE_MS);
    };
    if (modes.includes('view')) await shot('view');
    Object.assign(answer, await page.evaluate(layoutOf));
    if (modes.includes('element')) answer.selector = await page.evaluate(largeElement, selector ?? null);

    let clip = { x: 0, y: 0, width, height };
    if (modes.includes('full') || answer.selector) {
      await scrollThrough(page);
      await toTop(page);
      await pause(SCROLLED_MS);
      Object.assign(answer, await page.evaluate(layoutOf));
      clip = { ...clip, height: Math.min(Math.max(answer.height, height), TALLEST) };
    }
    const isTall = clip.height > height;
    const elementShot = async (name) => {
      await page.evaluate((wanted) => document.querySelector(wanted)?.scrollIntoView({ block: 'center', behavior: 'instant' }), answer.selector);
      await pause(REST_MS);
      const box = await page.evaluate(hideAbove, answer.selector);
      if (box) await shot(name, box);
      else delete answer.selector;
      await page.evaluate(showHidden);
      await toTop(page);
    };
    if (answer.selector) await elementShot('element');
    if (modes.includes('full') && !again && isTall) {
      for (let top = 0; top < clip.height; top += height) {
        await scrollTo(top);
        await shot(`full-tile-${String(top).padStart(5, '0')}`);
        if (top === 0) await page.evaluate(setHidden, await page.evaluate(pinnedBoxes));
      }
      await page.evaluate(setHidden, 0);
      await toTop(page);
      await pause(REST_MS);
    }
    if (modes.includes('full')) {
      await shotBeyond('full', clip);
    } else if (!again) {
      await shotBeyond('other', { x: 0, y: 0, width: 1, height: 1 });
    }
    if (again) return answer;
    if (modes.includes('full')) {
      await page.evaluate(setHidden, await page.evaluate(pinnedBoxes));
      await shotBeyond('full-bare', clip);
      await page.evaluate(setHidden, 0);
      if (isTall) {
        await scrollTo(clip.height);
        await pause(REST_MS);
        await shotBeyond('full-end', clip);
        await toTop(page);
      }
    }
    await pause(REST_MS);
    if (modes.includes('view')) await shot('view-other');
    if (answer.selector) await elementShot('element-other');
    return answer;
  } finally {
    clearTimeout(limit);
    await context.close().catch(() => {});
  }
};

const queue = [];
for await (const line of createInterface({ input: process.stdin })) queue.push(JSON.parse(line));
const work = async () => {
  for (let task = queue.shift(); task; task = queue.shift()) {
    const answer = await visit(task).catch((error) => ({ error: String(error?.message ?? error).split('\n')[0] }));
    console.log(JSON.stringify({ id: task.id, ...answer }));
  }
};
await Promise.all(Array.from({ length: Number(process.argv[2] ?? 4) }, work));
await Promise.all(Object.values(browsers).map((browser) => browser.close()));
process.exit(0);
