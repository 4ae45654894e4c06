// Walks through every page as a person does, in a real browser, and looks at each: node walk.mjs FILE, where FILE holds
// {origin, closed, email, password, dir, screenshots}. `origin` lets people sign up, `closed` does not. Every page's HTML
// is left in `dir` as it came; whatever is wrong is printed, and ends the walk with 1. With `screenshots`, a directory,
// every page is photographed too: light and dark, narrow and wide.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { challenge, exchange, register } from "./client.mjs";

const { origin, closed, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const NARROW = { width: 320, height: 900 };
const WIDE = { width: 1280, height: 900 };
// Colours do not depend on the width, nor the width on the colours, so two looks see it all.
const LOOKS = [[NARROW, "light"], [WIDE, "dark"]];
const OTHERS = [[NARROW, "dark"], [WIDE, "light"]];
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const findings = [];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell" });
const context = await browser.newContext();
const page = await context.newPage();
page.setDefaultTimeout(20_000);
page.on("console", (message) => {
  // The status of the page itself is looked at below.
  if (!message.text().startsWith("Failed to load resource")) findings.push(`the console says: ${message.text()}`);
});
page.on("pageerror", (error) => findings.push(`a script failed: ${error}`));
page.on("request", (request) => {
  const host = new URL(request.url()).host;
  const own = [new URL(origin).host, new URL(closed).host, new URL(callback).host];
  if (!own.includes(host)) findings.push(`${page.url()} asks for ${request.url()}`);
});
let arrived;
page.on("response", (response) => {
  if (response.request().isNavigationRequest()) arrived = response;
  else if (!response.ok()) findings.push(`${response.url()} is answered with ${response.status()}`);
});

// The app: what comes back to it, in its order.
const returned = [];
const app = createServer((request, response) => {
  if (request.url.startsWith("/callback")) returned.push(new URL(request.url, callback).searchParams);
  response.writeHead(200, { "content-type": "text/html" });
  response.end("<!doctype html><html lang=en><title>The app</title><link rel=icon href='data:,'><p>Connected.");
});
await new Promise((ready) => app.listen(0, "127.0.0.1", ready));
const callback = `http://127.0.0.1:${app.address().port}/callback`;

async function look(name, status) {
  if (arrived.status() !== status) findings.push(`${name}: HTTP ${arrived.status()} and not ${status}`);
  writeFileSync(`${dir}/${name}.html`, await arrived.text());
  const headers = arrived.headers();
  const policy = headers["content-security-policy"] ?? "";
  for (const part of ["default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
    if (!policy.split("; ").includes(part)) findings.push(`${name}: the policy lacks ${part}: ${policy}`);
  }
  const wanted = {
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  for (const [header, value] of Object.entries(wanted)) {
    if (headers[header] !== value) findings.push(`${name}: ${header} is ${headers[header]}`);
  }
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
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > viewport.width) findings.push(`${name} is ${width} wide where ${viewport.width} are shown`);
  }
}

// Sends the page's form as it stands, without the browser's own checks, which old ones do not have.
async function send(button) {
  await page.$$eval("form", (forms) => forms.forEach((form) => (form.noValidate = true)));
  await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: button }).first().click()]);
}

async function fill(fields) {
  for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).fill(text);
}

async function ask(client, changes = {}) {
  const asked = await challenge(client, callback, changes);
  await page.goto(`${origin}/oauth/authorize?${asked.query}`);
  return asked;
}

// In: a mistake, then an account.
await page.goto(`${closed}/sign-up`);
await look("sign-up-closed", 200);
await page.goto(`${closed}/sign-in`);
await look("sign-in-closed", 200);
await page.goto(`${origin}/sign-in`);
await look("sign-in", 200);
await send("Sign in");
await look("sign-in-empty", 422);
await fill({ "E-mail address": email, Password: "nobody knows it" });
await send("Sign in");
await look("sign-in-wrong", 422);
await page.getByRole("link", { name: "Make one" }).click();
await page.waitForURL("**/sign-up**");
await look("sign-up", 200);
await fill({ "E-mail address": "no address", Password: "short" });
await send("Make the account");
await look("sign-up-no-address", 422);
await fill({ "E-mail address": email, Password: "short" });
await send("Make the account");
await look("sign-up-short", 422);
await fill({ "E-mail address": email, Password: password });
await send("Make the account");
assert.equal(new URL(page.url()).pathname, "/apps");
await look("apps-none", 200);
await send("Sign out");
await look("signed-out", 200);

// An app asks somebody who is not signed in.
const client = await register(origin, { client_name: "<b>Claude</b> & Söhne", redirect_uris: [callback] });
const asked = await ask(client);
assert.equal(new URL(page.url()).pathname, "/sign-in");
await look("sign-in-for-app", 200);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
assert.equal(new URL(page.url()).pathname, "/oauth/authorize");
assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Connect <b>Claude</b> & Söhne?");
await look("consent", 200);
await page.$$eval("[name=place]", (choices) => choices.forEach((choice) => (choice.checked = false)));
await send("Allow");
await look("consent-nothing-chosen", 422);
await page.getByRole("radio").last().check();
await send("Allow");
assert.equal(new URL(page.url()).origin, new URL(callback).origin, "the policy keeps people from leaving");
assert.deepEqual([...returned[0].keys()].sort(), ["code", "iss", "state"]);
assert.equal(returned[0].get("iss"), origin);
await exchange(origin, client, returned[0], callback, asked);

// What was answered cannot be answered again.
await ask(client);
const spent = await page.$eval("[name=ticket]", (field) => field.value);
await send("Deny");
assert.equal(returned.at(-1).get("error"), "access_denied");
await ask(client);
await page.$eval("[name=ticket]", (field, spent) => (field.value = spent), spent);
await send("Allow");
await look("too-late", 400);
await ask(client);
await page.$eval("[name=form_token]", (field) => (field.value = "forged"));
await send("Allow");
await look("forged", 403);
await ask({ client_id: "gcl_unknown" });
await look("unknown-app", 400);
await page.goto(`${origin}/sign-out`);
await look("wrong-method", 405);

// A name as long as names may be, without a place to break it, in an app with a scheme of its own.
const long = await register(origin, { client_name: "W".repeat(100), redirect_uris: ["com.example.app:/callback"] });
const { query } = await challenge(long, "com.example.app:/callback");
await page.goto(`${origin}/oauth/authorize?${query}`);
await look("consent-long-name", 200);

// Out again.
await page.goto(`${origin}/apps`);
await look("apps", 200);
const disconnect = await page.getByRole("button", { name: "Disconnect" }).evaluate((button) => button.form.action);
await send("Disconnect");
await look("apps-disconnected", 200);
await page.$eval("form", (form, action) => (form.action = action), disconnect);
await send("Sign out");
await look("disconnected-before", 404);
await page.goto(`${origin}/apps`);
await context.clearCookies();
await page.$eval("form", (form, action) => (form.action = action), disconnect);
await send("Sign out");
await look("session-over", 403);

// Too often. Whoever asks so counts, whatever came with it.
await page.goto(`${origin}/sign-in`);
for (let tries = 0; tries < 30; tries++) await fetch(`${origin}/sign-in`, { method: "POST" });
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
await look("too-often", 429);

await browser.close();
app.close();
for (const finding of findings) console.log(finding);
if (findings.length > 0) process.exit(1);
console.log("nothing is wrong");
