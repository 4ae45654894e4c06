// Has Lighthouse load pages as somebody signed in has them, in a browser of its own, which a walk shares.
//
// A run takes seconds, so a page has one for each path, and another when it shows kinds of elements that it had not shown
// before. What Lighthouse says about time depends on the machine, and a test must not: here it judges what does not. With
// GRABD_TEST_PERFORMANCE, a file, its scores for speed are appended there (`script/bench pages`).
import { appendFileSync } from "node:fs";
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

// What a page asks for beside pictures: itself, the sheet, the icon, and a script.
const REQUESTS = 4;
// What these may weigh together, as they come over the wire.
const BYTES = 60_000;
const AUDITS = ["unsized-images", "cumulative-layout-shift", "network-requests"];
// Nothing is timed, so nothing has to come to rest before. What would move later counts in the score for speed.
const AT_ONCE = { pauseAfterFcpMs: 0, pauseAfterLoadMs: 0, networkQuietThresholdMs: 0, cpuQuietThresholdMs: 0 };
// The score for speed that a page is to have.
const ENOUGH = 0.95;
const scores = process.env.GRABD_TEST_PERFORMANCE;

export async function openLighthouse(executablePath) {
  const browser = await puppeteer.launch({ executablePath, headless: "shell", args: ["--no-sandbox"] });
  const tab = await browser.newPage();
  const known = new Map();

  // As somebody signed in like the one who is shown the page.
  async function run(page, flags, config) {
    await browser.deleteCookie(...(await browser.cookies()));
    await browser.setCookie(...(await page.context().cookies()));
    return (await lighthouse(page.url(), { logLevel: "error", ...flags }, config, tab)).lhr;
  }

  // What is wrong with the page that somebody is shown, if it has to be looked at.
  async function look(name, page) {
    // One that waits for news never ends loading. It is looked at once the news is there.
    if ((await page.locator("[data-events]").count()) > 0 || !(await isNew(page, known))) return [];
    const flags = { ...AT_ONCE, onlyCategories: ["accessibility"], onlyAudits: AUDITS, disableFullPageScreenshot: true };
    const { categories, audits, finalDisplayedUrl, runtimeError } = await run(page, flags);
    if (scores) await measure(name, page);
    if (runtimeError) return [`${name}: Lighthouse cannot load it: ${runtimeError.message}`];
    if (finalDisplayedUrl !== page.url()) return [`${name}: Lighthouse is shown ${finalDisplayedUrl}`];
    const found = [];
    const { score, auditRefs } = categories.accessibility;
    const failed = auditRefs.map(({ id }) => audits[id]).filter(({ score }) => score !== null && score < 1);
    if (score !== 1) found.push(`${name}: Lighthouse gives ${score}: ${failed.map(({ title }) => title)}`);
    const unsized = audits["unsized-images"].details.items.map(({ url }) => url);
    if (unsized.length > 0) found.push(`${name}: nobody knows the size of ${unsized} before they are loaded`);
    const shift = audits["cumulative-layout-shift"].numericValue;
    if (shift !== 0) found.push(`${name}: what is shown moves by ${shift} while the page is loaded`);
    const parts = audits["network-requests"].details.items.filter(({ resourceType }) => resourceType !== "Image");
    const bytes = parts.reduce((sum, { transferSize }) => sum + transferSize, 0);
    if (parts.length > REQUESTS) found.push(`${name} asks for ${parts.map(({ url }) => url)}`);
    if (bytes > BYTES) found.push(`${name} weighs ${bytes} bytes without its pictures`);
    return found;
  }

  // Whatever else the machine does makes a page slower and never quicker, so the best of three tries counts.
  async function measure(name, page) {
    const scored = async (config) => {
      let best = 0;
      for (let tries = 0; tries < 3 && best < ENOUGH; tries++) {
        const { categories } = await run(page, { onlyCategories: ["performance"] }, config);
        best = Math.max(best, categories.performance.score);
      }
      return best;
    };
    appendFileSync(scores, `${name}\t${await scored()}\t${await scored(desktopConfig)}\n`);
  }

  return { look, close: () => browser.close() };
}

// Does it show a kind of element that its path has not shown yet?
async function isNew(page, known) {
  const path = new URL(page.url()).pathname.replaceAll(/[\w-]{20,}/g, "*");
  const kinds = await page.$$eval("*", (all) => all.map(({ tagName, className }) => `${tagName}.${className}`));
  const before = known.get(path) ?? new Set();
  known.set(path, before.union(new Set(kinds)));
  return kinds.some((kind) => !before.has(kind));
}
