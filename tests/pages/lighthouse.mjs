// Audits pages with Lighthouse as the signed-in person, in one browser per walk.
//
// A run takes seconds, so each path is audited once without and once with images. Its accessibility audits are axe's,
// which see every state of a page anyway. Tests use only audits that do not depend on timing. If GRABD_TEST_PERFORMANCE
// names a file, performance scores are appended to it (`script/bench pages`).
import { appendFileSync } from "node:fs";
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

// Maximum requests of a page besides images: itself, the style sheet, the font, the icon, the script of all
// pages, and one of its own.
const REQUESTS = 6;
// Maximum transfer size of these requests.
const BYTES = 115_000;
const AUDITS = ["unsized-images", "cumulative-layout-shift", "network-requests"];
// Nothing is timed, so no pauses are needed. Later layout shifts count in the performance score.
const AT_ONCE = { pauseAfterFcpMs: 0, pauseAfterLoadMs: 0, networkQuietThresholdMs: 0, cpuQuietThresholdMs: 0 };
// The required performance score.
const ENOUGH = 0.95;
const scores = process.env.GRABD_TEST_PERFORMANCE;

export async function openLighthouse(executablePath) {
  const browser = await puppeteer.launch({ executablePath, headless: "shell", args: ["--no-sandbox"] });
  const tab = await browser.newPage();
  const known = new Set();

  // Runs Lighthouse with the cookies of the page.
  async function run(page, flags, config) {
    await browser.deleteCookie(...(await browser.cookies()));
    await browser.setCookie(...(await page.context().cookies()));
    return (await lighthouse(page.url(), { logLevel: "error", ...flags }, config, tab)).lhr;
  }

  // Returns the findings for a page, if it needs an audit.
  async function audit(name, page) {
    // A page that waits for events never finishes loading. It is audited after its events.
    if ((await page.locator("[data-events]").count()) > 0) return [];
    const kind = `${pathOf(page)} ${(await page.locator("img").count()) > 0}`;
    if (known.has(kind)) return [];
    known.add(kind);
    const flags = { ...AT_ONCE, onlyCategories: ["accessibility"], onlyAudits: AUDITS, disableFullPageScreenshot: true };
    const { categories, audits, finalDisplayedUrl, runtimeError } = await run(page, flags);
    if (scores) await measure(name, page);
    if (runtimeError) return [`${name}: Lighthouse cannot load the page: ${runtimeError.message}`];
    if (finalDisplayedUrl !== page.url()) return [`${name}: Lighthouse was redirected to ${finalDisplayedUrl}`];
    const found = [];
    const { score, auditRefs } = categories.accessibility;
    const failed = auditRefs.map(({ id }) => audits[id]).filter(({ score }) => score !== null && score < 1);
    if (score !== 1) found.push(`${name}: Lighthouse accessibility score ${score}: ${failed.map(({ title }) => title)}`);
    const unsized = audits["unsized-images"].details.items.map(({ url }) => url);
    if (unsized.length > 0) found.push(`${name}: images without dimensions: ${unsized}`);
    const shift = audits["cumulative-layout-shift"].numericValue;
    if (shift !== 0) found.push(`${name}: cumulative layout shift is ${shift}`);
    const parts = audits["network-requests"].details.items.filter(({ resourceType }) => resourceType !== "Image");
    const bytes = parts.reduce((sum, { transferSize }) => sum + transferSize, 0);
    if (parts.length > REQUESTS) found.push(`${name} requests ${parts.map(({ url }) => url)}`);
    if (bytes > BYTES) found.push(`${name} has ${bytes} bytes without its images`);
    return found;
  }

  // Other load only lowers scores, so the best of three runs counts.
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

  return { audit, close: () => browser.close() };
}

// The path of a page, with a star for each id.
function pathOf(page) {
  return new URL(page.url()).pathname.replaceAll(/[\w-]{20,}/g, "*");
}
