// People's browsers that look at every page they are shown: its headers, its width, its accessibility, which axe and pa11y
// judge, and Lighthouse where a page can be loaded again. Each page's HTML is left in `dir` as it came. With `screenshots`, a
// directory, every page is photographed too: light and dark, narrow and wide.
import { writeFileSync } from "node:fs";
import axe from "axe-core";
import pa11y from "pa11y";
import { chromium } from "playwright-core";
import { openLighthouse } from "./lighthouse.mjs";

const NARROW = { width: 320, height: 900 };
const WIDE = { width: 1280, height: 900 };
// Colours do not depend on the width, nor the width on the colours, so two looks see it all.
const LOOKS = [[NARROW, "light"], [WIDE, "dark"]];
const OTHERS = [[NARROW, "dark"], [WIDE, "light"]];
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const HEADERS = {
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

// `own` tells the hosts that pages may ask.
export async function open({ dir, screenshots, own }) {
  const findings = [];
  // Also when the walk ends before its end, which what was wrong may explain.
  process.on("exit", () => findings.forEach((finding) => console.log(finding)));
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
  const browser = await chromium.launch({ executablePath });
  const lighthouse = await openLighthouse(executablePath);

  // Ends the walk: says whatever was wrong, and with 1 if anything was.
  async function close() {
    await browser.close();
    await lighthouse.close();
    if (findings.length > 0) process.exit(1);
    console.log("nothing is wrong");
  }

  // Somebody else, with a browser of their own.
  const visitor = (options) => visit({ browser, lighthouse, findings, own, dir, screenshots }, options);
  return { browser, findings, close, visitor, ...(await visitor()) };
}

async function visit({ browser, lighthouse, findings, own, dir, screenshots }, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  // It only bounds a walk that fails.
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    // The status of the page itself is looked at below.
    if (!message.text().startsWith("Failed to load resource")) findings.push(`the console says: ${message.text()}`);
  });
  page.on("pageerror", (error) => findings.push(`a script failed: ${error}`));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:" && !own().includes(host)) findings.push(`${page.url()} asks for ${request.url()}`);
  });
  let arrived;
  page.on("response", (response) => {
    if (response.request().isNavigationRequest()) arrived = response;
    else if (response.status() >= 400) findings.push(`${response.url()} is answered with ${response.status()}`);
  });

  // What pa11y needs of a browser's page. It is shown this one as it is: a page that answers a form cannot be loaded again.
  const shown = { on() {}, off() {}, setViewport() {}, evaluate: (...what) => page.evaluate(...what) };

  async function look(name, status) {
    if (arrived.status() !== status) findings.push(`${name}: HTTP ${arrived.status()} and not ${status}`);
    writeFileSync(`${dir}/${name}.html`, await arrived.text());
    const headers = arrived.headers();
    const policy = headers["content-security-policy"] ?? "";
    for (const part of ["default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      if (!policy.split("; ").includes(part)) findings.push(`${name}: the policy lacks ${part}: ${policy}`);
    }
    if (policy.includes("unsafe")) findings.push(`${name}: the policy allows too much: ${policy}`);
    for (const [header, value] of Object.entries(HEADERS)) {
      if (headers[header] !== value) findings.push(`${name}: ${header} is ${headers[header]}`);
    }
    const awaited = await page.evaluate(() => {
      const parts = performance.getEntriesByType("resource");
      return parts.filter((part) => part.renderBlockingStatus === "blocking").map((part) => part.name);
    });
    if (awaited.length > 1) findings.push(`${name} is not shown before it has ${awaited}`);
    await page.evaluate(axe.source);
    for (const [viewport, colorScheme] of screenshots ? [...LOOKS, ...OTHERS] : LOOKS) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      const how = `${viewport.width}-${colorScheme}`;
      if (screenshots) await page.screenshot({ path: `${screenshots}/${name}-${how}.png`, fullPage: true });
      const { violations } = await page.evaluate((tags) => axe.run({ runOnly: tags }), TAGS);
      for (const { id, help, nodes } of violations) {
        findings.push(`${name}, ${how}: ${id}: ${help}: ${nodes.map((node) => node.html)}`);
      }
      const { issues } = await pa11y(page.url(), { browser, page: shown, ignoreUrl: true, userAgent: "" });
      for (const { code, message, context } of issues) findings.push(`${name}, ${how}: ${code}: ${message}: ${context}`);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > viewport.width) findings.push(`${name} is ${width} wide where ${viewport.width} are shown`);
    }
    if (status === 200 && arrived.request().method() === "GET") findings.push(...(await lighthouse.look(name, page)));
  }

  // Sends the page's form as it stands, without the browser's own checks, which old ones do not have.
  async function send(button) {
    await page.$$eval("form", (forms) => forms.forEach((form) => (form.noValidate = true)));
    await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: button }).first().click()]);
  }

  async function fill(fields) {
    for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).fill(text);
  }

  async function follow(link) {
    await Promise.all([page.waitForNavigation(), page.getByRole("link", { name: link }).first().click()]);
  }

  return { context, page, look, send, follow, fill };
}
