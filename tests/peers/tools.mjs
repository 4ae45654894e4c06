// Other screenshot tools, each as a function that captures one page and returns the image.
//
// The packages are those that package.json beside this file names, installed where the working directory is. Each function
// takes { url, mode, selector, width, height } and an optional `imaged`, which it calls with the image as soon as it has it,
// before it closes what it opened for the capture.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

import { DEVICES, executablePath, isolatedFlags } from './browser.mjs';

const require = createRequire(process.cwd() + '/');
const load = async (name) => {
  const module = await import(pathToFileURL(require.resolve(name)).href);
  return module.default ?? module;
};

const args = isolatedFlags();
const LIMIT_MS = 30_000;
// More than script/bench peers captures at the same time.
const CLUSTER_WORKERS = 16;

// In place of an `imaged` that the caller left out.
const unobserved = (image) => image;

const launched = new Map();
const once = (name, make) => {
  if (!launched.has(name)) launched.set(name, make());
  return launched.get(name);
};

const puppeteerBrowser = () =>
  once('puppeteer', async () => {
    const puppeteer = await load('puppeteer-core');
    return puppeteer.launch({ executablePath, args, headless: 'shell' });
  });

const byPuppeteer = (waitUntil) => async ({ url, mode, selector, width, height, imaged = unobserved }) => {
  const browser = await puppeteerBrowser();
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    await page.setViewport({ width, height });
    await page.goto(url, { waitUntil, timeout: LIMIT_MS });
    if (mode === 'element') {
      const element = await page.waitForSelector(selector, { visible: true, timeout: 5_000 });
      return imaged(await element.screenshot({ type: 'png' }));
    }
    return imaged(await page.screenshot({ type: 'png', fullPage: mode === 'full_page' }));
  } finally {
    await context.close();
  }
};

const byPlaywright = (waitUntil) => async ({ url, mode, selector, width, height, device, dark, imaged = unobserved }) => {
  const browser = await once('playwright', async () => {
    const playwright = await load('playwright-core');
    return playwright.chromium.launch({ executablePath, args, headless: true });
  });
  const options = { viewport: { width, height } };
  if (device === 'phone') {
    Object.assign(options, { deviceScaleFactor: DEVICES.phone.scale, isMobile: true, hasTouch: true });
    options.userAgent = `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${browser.version()} Mobile Safari/537.36`;
  }
  if (dark) options.colorScheme = 'dark';
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    await page.goto(url, { waitUntil, timeout: LIMIT_MS });
    if (mode === 'element') return imaged(await page.locator(selector).first().screenshot({ timeout: 5_000 }));
    return imaged(await page.screenshot({ fullPage: mode === 'full_page' }));
  } finally {
    await context.close();
  }
};

const byBrowserless = async ({ url, mode, selector, width, height, imaged = unobserved }) => {
  const factory = await once('browserless', async () => {
    const createBrowser = await load('browserless');
    const current = await load('puppeteer-core');
    // It uses the API of an older puppeteer to check whether the browser is running.
    const launch = async (options) => {
      const browser = await current.launch(options);
      browser.isConnected ??= () => browser.connected;
      return browser;
    };
    const puppeteer = { ...current, launch };
    return createBrowser({ puppeteer, executablePath, args, headless: 'shell', timeout: LIMIT_MS });
  });
  const context = await factory.createContext({ retry: 0 });
  try {
    const options = { type: 'png', viewport: { width, height, deviceScaleFactor: 1 }, adblock: false };
    if (mode === 'full_page') options.fullPage = true;
    if (mode === 'element') options.element = selector;
    return imaged(await context.screenshot(url, options));
  } finally {
    await context.destroyContext();
  }
};

// One browser, and a new context for each capture. Who calls it limits how many captures run at the same time.
const byCluster = async ({ url, mode, width, height, imaged = unobserved }) => {
  const cluster = await once('puppeteer-cluster', async () => {
    const { Cluster } = await load('puppeteer-cluster');
    const puppeteer = await load('puppeteer-core');
    return Cluster.launch({
      puppeteer,
      concurrency: Cluster.CONCURRENCY_CONTEXT,
      maxConcurrency: CLUSTER_WORKERS,
      puppeteerOptions: { executablePath, args, headless: 'shell' },
      timeout: LIMIT_MS,
    });
  });
  return cluster.execute(url, async ({ page }) => {
    await page.setViewport({ width, height });
    await page.goto(url, { waitUntil: 'load', timeout: LIMIT_MS });
    return imaged(await page.screenshot({ type: 'png', fullPage: mode === 'full_page' }));
  });
};

const byCaptureWebsite = async ({ url, mode, selector, width, height }) => {
  const captureWebsite = await load('capture-website');
  const options = { width, height, scaleFactor: 1, type: 'png', timeout: LIMIT_MS / 1000, launchOptions: { executablePath, args, headless: 'shell' } };
  // The options that its documentation recommends for full pages.
  if (mode === 'full_page') Object.assign(options, { fullPage: true, preloadLazyContent: true, waitForNetworkIdle: true });
  if (mode === 'element') options.element = selector;
  return captureWebsite.buffer(url, options);
};

export const contenders = {
  'puppeteer-load': byPuppeteer('load'),
  'puppeteer-networkidle0': byPuppeteer('networkidle0'),
  'puppeteer-networkidle2': byPuppeteer('networkidle2'),
  'puppeteer-cluster': byCluster,
  playwright: byPlaywright('load'),
  'playwright-networkidle': byPlaywright('networkidle'),
  browserless: byBrowserless,
  'capture-website': byCaptureWebsite,
};

/** Forgets a browser that does not answer any more, and kills it, so that the next capture launches another one. */
export const abandon = async () => {
  const former = [...launched.values()];
  launched.clear();
  for (const browser of former) (await browser).process?.()?.kill('SIGKILL');
};

/** Closes all browsers that the tools have launched. */
export const close = async () => {
  for (const browser of launched.values()) await (await browser).close();
};
