// Captures pages with other tools, for comparison: reads one JSON object a line from standard input,
//   {"contender":"playwright","url":"http://…","mode":"full_page","selector":null,"width":1280,"height":720,"file":"/tmp/x.png"}
// and answers each with one line: {"ms":123} or {"ms":123,"error":"…"}.
//
// The packages are those that package.json beside this file names, installed where the working directory is.
import { createRequire } from 'node:module';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const load = async (name) => {
  const module = await import(pathToFileURL(require.resolve(name)).href);
  return module.default ?? module;
};

const executablePath = process.env.GRABD_PEERS_CHROMIUM ?? '/usr/bin/chromium-headless-shell';
// The pages are our own, and the tools cannot run as another user, so no sandbox is needed.
const args = ['--no-sandbox', '--hide-scrollbars', '--disable-background-networking', '--disable-dev-shm-usage'];
const LIMIT_MS = 30_000;

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

const byPuppeteer = (waitUntil) => async ({ url, mode, selector, width, height }) => {
  const browser = await puppeteerBrowser();
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    await page.setViewport({ width, height });
    await page.goto(url, { waitUntil, timeout: LIMIT_MS });
    if (mode === 'element') {
      const element = await page.waitForSelector(selector, { visible: true, timeout: 5_000 });
      return await element.screenshot({ type: 'png' });
    }
    return await page.screenshot({ type: 'png', fullPage: mode === 'full_page' });
  } finally {
    await context.close();
  }
};

const byPlaywright = async ({ url, mode, selector, width, height }) => {
  const browser = await once('playwright', async () => {
    const playwright = await load('playwright-core');
    return playwright.chromium.launch({ executablePath, args, headless: true });
  });
  const context = await browser.newContext({ viewport: { width, height } });
  try {
    const page = await context.newPage();
    await page.goto(url, { waitUntil: 'load', timeout: LIMIT_MS });
    if (mode === 'element') return await page.locator(selector).first().screenshot({ timeout: 5_000 });
    return await page.screenshot({ fullPage: mode === 'full_page' });
  } finally {
    await context.close();
  }
};

const byBrowserless = async ({ url, mode, selector, width, height }) => {
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
    return await context.screenshot(url, options);
  } finally {
    await context.destroyContext();
  }
};

const byCaptureWebsite = async ({ url, mode, selector, width, height }) => {
  const captureWebsite = await load('capture-website');
  const options = { width, height, scaleFactor: 1, type: 'png', timeout: LIMIT_MS / 1000, launchOptions: { executablePath, args, headless: 'shell' } };
  // The options that its documentation recommends for full pages.
  if (mode === 'full_page') Object.assign(options, { fullPage: true, preloadLazyContent: true, waitForNetworkIdle: true });
  if (mode === 'element') options.element = selector;
  return captureWebsite.buffer(url, options);
};

const contenders = {
  'puppeteer-load': byPuppeteer('load'),
  'puppeteer-networkidle2': byPuppeteer('networkidle2'),
  playwright: byPlaywright,
  browserless: byBrowserless,
  'capture-website': byCaptureWebsite,
};

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const began = performance.now();
  const answer = {};
  try {
    const image = await contenders[task.contender](task);
    answer.ms = performance.now() - began;
    await writeFile(task.file, image);
  } catch (error) {
    answer.ms ??= performance.now() - began;
    answer.error = String(error?.message ?? error).split('\n')[0];
  }
  console.log(JSON.stringify(answer));
}

for (const browser of launched.values()) await (await browser).close();
process.exit(0);
