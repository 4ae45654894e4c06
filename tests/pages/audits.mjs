// Browsers that audit every page: headers, width, accessibility with axe, once for each path also with pa11y, and how it
// loads if it can be reloaded. The HTML of each page is saved in `dir`. With `screenshots`, a directory, screenshots are taken: light and
// dark, narrow and wide.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import pa11y from "pa11y";
import { chromium } from "playwright-core";
import { openLoading, pathOf } from "./loading.mjs";

// Evaluated in each page, so the smaller file.
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const NARROW = { width: 320, height: 900 };
const WIDE = { width: 1280, height: 900 };
// Colours and widths are independent, so two combinations cover everything. The second one needs only the rules that
// depend on colours or widths: the others judge the document, which is the same.
const COMBINATIONS = [[NARROW, "light"], [WIDE, "dark"]];
const OTHER_COMBINATIONS = [[NARROW, "dark"], [WIDE, "light"]];
const VISUAL_RULES = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"];
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const HEADERS = {
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

// `own` returns the hosts that pages may request.
export async function open({ dir, screenshots, own }) {
  const findings = [];
  // Print findings also if the walk fails, because they may explain why.
  process.on("exit", () => findings.forEach((finding) => console.log(finding)));
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
  const browser = await chromium.launch({ executablePath });
  const loading = await openLoading(executablePath);
  const known = new Set();

  // Ends the walk. Exits with 1 if there were findings.
  async function close() {
    await browser.close();
    await loading.close();
    if (findings.length > 0) process.exit(1);
    console.log("no findings");
  }

  // Another visitor, with a browser context of their own.
  const visitor = (options) => visit({ browser, loading, known, findings, own, dir, screenshots }, options);
  return { browser, findings, close, visitor, ...(await visitor()) };
}

async function visit({ browser, loading, known, findings, own, dir, screenshots }, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  // If a step fails, what the page shows may be the reason.
  process.once("uncaughtException", async (error) => {
    const text = page.locator("body").innerText({ timeout: 5_000 });
    const shown = await text.catch(({ message }) => message);
    console.log(`${error.stack}\n${page.url()} shows:\n${shown}`);
    process.exit(1);
  });
  // Only reached by failing walks.
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    // The status of the page itself is checked below.
    if (!message.text().startsWith("Failed to load resource")) findings.push(`console message: ${message.text()}`);
  });
  page.on("pageerror", (error) => findings.push(`a script failed: ${error}`));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:" && !own().includes(host)) findings.push(`${page.url()} requests ${request.url()}`);
  });
  let navigation;
  page.on("response", (response) => {
    if (response.request().isNavigationRequest()) navigation = response;
    // A script sends the form of captures, and its errors are answered with 422.
    else if (response.status() >= 400 && response.status() !== 422) findings.push(`${response.url()} returned ${response.status()}`);
  });

  // The page interface that pa11y needs. It audits the current page, because the response to a form cannot be reloaded.
  const shown = { on() {}, off() {}, setViewport() {}, evaluate: (...what) => page.evaluate(...what) };

  async function audit(name, status) {
    if (navigation.status() !== status) findings.push(`${name}: HTTP ${navigation.status()}, expected ${status}`);
    writeFileSync(`${dir}/${name}.html`, await navigation.text());
    const headers = navigation.headers();
    const policy = headers["content-security-policy"] ?? "";
    for (const part of ["default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      if (!policy.split("; ").includes(part)) findings.push(`${name}: the policy lacks ${part}: ${policy}`);
    }
    if (policy.includes("unsafe")) findings.push(`${name}: the policy allows too much: ${policy}`);
    for (const [header, value] of Object.entries(HEADERS)) {
      if (headers[header] !== value) findings.push(`${name}: ${header} is ${headers[header]}`);
    }
    const blocking = await page.evaluate(() => {
      const parts = performance.getEntriesByType("resource");
      return parts.filter((part) => part.renderBlockingStatus === "blocking").map((part) => part.name);
    });
    // The style sheet, and the script that applies the chosen theme before the page is painted. They load side by side.
    const others = blocking.filter((path) => !/\/assets\/(style|site)\./.test(path));
    if (others.length > 0) findings.push(`${name} is blocked by ${others}`);
    await page.evaluate(AXE);
    const combinations = screenshots ? [...COMBINATIONS, ...OTHER_COMBINATIONS] : COMBINATIONS;
    for (const [index, [viewport, colorScheme]] of combinations.entries()) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      const how = `${viewport.width}-${colorScheme}`;
      if (screenshots) await page.screenshot({ path: `${screenshots}/${name}-${how}.png`, fullPage: true });
      // Details of rules that passed, and selectors of elements, are not used. Each take about a fifth of the time.
      const options = { runOnly: index === 0 ? TAGS : VISUAL_RULES, resultTypes: ["violations"], selectors: false };
      const { violations } = await page.evaluate((options) => axe.run(options), options);
      for (const { id, help, nodes } of violations) {
        findings.push(`${name}, ${how}: ${id}: ${help}: ${nodes.map((node) => node.html)}`);
      }
      // It is the slower of the two, and judges the elements that all states of a page have in common.
      const kind = `${pathOf(page)} ${status} ${await page.title()}`;
      if (index === 0 && !known.has(kind)) {
        known.add(kind);
        const { issues } = await pa11y(page.url(), { browser, page: shown, ignoreUrl: true, userAgent: "" });
        for (const { code, message, context } of issues) findings.push(`${name}, ${how}: ${code}: ${message}: ${context}`);
      }
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > viewport.width) findings.push(`${name} is ${width} wide where ${viewport.width} are shown`);
    }
    if (status === 200 && navigation.request().method() === "GET") findings.push(...(await loading.audit(name, page)));
  }

  // Submits the form without the browser's own validation.
  async function send(button) {
    await page.$$eval("form", (forms) => forms.forEach((form) => (form.noValidate = true)));
    if (button === "Sign out") await openMenu();
    // "Capture" is also a part of "Capture sample".
    const named = page.getByRole("button", { name: button, exact: true });
    const found = (await named.count()) > 0 ? named : page.getByRole("button", { name: button });
    await Promise.all([page.waitForNavigation(), found.first().click()]);
  }

  // Opens the menu of the header that has the button to sign out.
  async function openMenu() {
    await page.locator("header details:has(form)").filter({ visible: true }).evaluate((menu) => (menu.open = true));
  }

  async function fill(fields) {
    for (const [label, text] of Object.entries(fields)) {
      // "Width" is also a part of "Fit width", and sections may have the name of their only field.
      const named = (exact) => page.getByLabel(label, { exact }).and(page.locator("input, textarea, select"));
      await ((await named(true).count()) > 0 ? named(true) : named(false)).fill(text);
    }
  }

  async function follow(link) {
    await Promise.all([page.waitForNavigation(), page.getByRole("link", { name: link }).first().click()]);
  }

  return { context, page, audit, send, follow, fill, openMenu };
}
