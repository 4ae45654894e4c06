// Browser walk through sign-in and apps: node walk.mjs FILE, where FILE holds {origin, closed, email, password, dir,
// screenshots}. `origin` allows sign-up, `closed` does not. The HTML of every page is saved in `dir`. Findings are
// printed, and make the exit status 1. With `screenshots`, a directory, screenshots are taken: light and dark, narrow
// and wide.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { challenge, exchange, register } from "./client.mjs";
import { open } from "./audits.mjs";

const { origin, closed, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [origin, closed, callback].map((url) => new URL(url).host);
const { context, page, audit, send, fill, close } = await open({ dir, screenshots, own });

// The app, which records the responses it receives.
const returned = [];
const app = createServer((request, response) => {
  if (request.url.startsWith("/callback")) returned.push(new URL(request.url, callback).searchParams);
  response.writeHead(200, { "content-type": "text/html" });
  response.end("<!doctype html><html lang=en><title>The app</title><link rel=icon href='data:,'><p>Connected.");
});
await new Promise((ready) => app.listen(0, "127.0.0.1", ready));
const callback = `http://127.0.0.1:${app.address().port}/callback`;

async function authorize(client, changes = {}) {
  const request = await challenge(client, callback, changes);
  await page.goto(`${origin}/oauth/authorize?${request.query}`);
  return request;
}

// Errors on sign-in and sign-up, then an account.
await page.goto(`${closed}/sign-up`);
await audit("sign-up-closed", 200);
await page.goto(`${closed}/sign-in`);
await audit("sign-in-closed", 200);
await page.goto(`${origin}/sign-in`);
await audit("sign-in", 200);
await send("Sign in");
await audit("sign-in-empty", 422);
await fill({ "E-mail address": email, Password: "nobody knows it" });
await send("Sign in");
await audit("sign-in-wrong", 422);
await page.getByRole("link", { name: "Create one" }).click();
await page.waitForURL("**/sign-up**");
await audit("sign-up", 200);
await fill({ "E-mail address": "no address", Password: "short" });
await send("Create account");
await audit("sign-up-no-address", 422);
await fill({ "E-mail address": email, Password: "short" });
await send("Create account");
await audit("sign-up-short", 422);
await fill({ "E-mail address": email, Password: password });
await send("Create account");
assert.match(new URL(page.url()).pathname, /^\/teams\/[0-9a-f-]{36}\/grabs$/);
await page.goto(`${origin}/apps`);
await audit("apps-none", 200);
// How to connect an agent: a tab for each client.
await page.getByRole("link", { name: "How to connect" }).click();
await page.waitForURL("**/connect");
await audit("connect", 200);
assert.match(await page.locator("main pre").first().innerText(), new RegExp(`claude mcp add .* ${origin}/mcp$`));
await page.getByRole("link", { name: "VS Code" }).click();
await page.waitForURL("**/connect?client=vs-code");
await audit("connect-vs-code", 200);
assert.equal(JSON.parse(await page.locator("main pre").first().innerText()).servers.grabd.url, `${origin}/mcp`);
await send("Sign out");
await audit("signed-out", 200);

// The documentation, with examples in several languages, and its search.
await page.goto(`${origin}/docs`);
await audit("docs", 200);
assert.equal(await page.locator("figure.code:visible").filter({ hasText: "urllib.request" }).count(), 0);
// The example in all its languages has one link to try it.
assert.equal(await page.getByRole("link", { name: "Open in the capture form (example 1)" }).count(), 1);
assert.equal(await page.getByRole("link", { name: "Open in the capture form" }).count(), 1);
assert.equal(await page.getByRole("button", { name: "Run it" }).count(), 0);
await page.getByRole("button", { name: "Python" }).click();
assert.equal(await page.locator("figure.code:visible").filter({ hasText: "urllib.request" }).count(), 1);
await page.getByRole("searchbox").fill("idempotency key");
await send("Search");
await audit("docs-search", 200);
await page.getByRole("link", { name: "Be charged once" }).click();
await page.waitForURL("**/docs/retries#be-charged-once");
await audit("docs-retries", 200);
for (const name of ["options", "webhooks", "picture", "automation", "changelog", "configuration"]) {
  await page.goto(`${origin}/docs/${name}`);
  await audit(`docs-${name}`, 200);
  // The changelog grows with every change, and the options with every option. The page of recipes has one for each.
  if (["changelog", "options"].includes(name)) continue;
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height <= 9000, `/docs/${name} is ${height} px tall`);
}
// The API reference is a part of the documentation.
await page.goto(`${origin}/docs/api`);
const reference = await page.locator(".wide-docs a[href^='/docs/api']").evaluateAll((links) => links.map((link) => link.href));
assert.ok(reference.length >= 6, `the API reference has ${reference.length} pages`);
for (const address of reference) {
  await page.goto(address);
  await audit(`docs-api-${address.split("/").at(-1)}`, 200);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  // The page with the objects of all responses is the longest, before that of monitors, whose requests have the most members.
  const limit = { objects: 24000, monitors: 20000 }[address.split("/").at(-1)] ?? 16000;
  assert.ok(height <= limit, `${address} is ${height} px tall`);
}
await page.goto(`${origin}/docs/search?q=full+page`);
await audit("docs-search-audiences", 200);
assert.deepEqual(await page.locator(".text h2").allInnerTexts(), ["For customers", "For operators"]);
// Each option has an address of its own.
await page.goto(`${origin}/docs/options#full_page`);
assert.equal(await page.locator(":target").innerText(), "full_page");
await page.goto(`${origin}/docs/search`);
await audit("docs-search-empty", 200);
await page.goto(`${origin}/docs/nothing`);
await audit("docs-unknown", 404);

// An app sends a signed-out person.
const client = await register(origin, { client_name: "<b>Claude</b> & Söhne", redirect_uris: [callback] });
const request = await authorize(client);
assert.equal(new URL(page.url()).pathname, "/sign-in");
await audit("sign-in-for-app", 200);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
assert.equal(new URL(page.url()).pathname, "/oauth/authorize");
assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Connect <b>Claude</b> & Söhne?");
await audit("consent", 200);
await page.$$eval("[name=place]", (choices) => choices.forEach((choice) => (choice.checked = false)));
await send("Allow");
await audit("consent-nothing-chosen", 422);
await page.getByRole("radio").last().check();
await send("Allow");
assert.equal(new URL(page.url()).origin, new URL(callback).origin, "the policy blocks the redirect");
assert.deepEqual([...returned[0].keys()].sort(), ["code", "iss", "state"]);
assert.equal(returned[0].get("iss"), origin);
await exchange(origin, client, returned[0], callback, request);

// An app that asks for more has a box for it, which the person may tick.
await authorize(client, { scope: "grabs manage" });
await audit("consent-manage", 200);
const box = page.getByRole("checkbox", { name: /^Use webhooks and proxies, and delete images/ });
assert.ok(!(await box.isChecked()));
await box.check();
await page.$$eval("[name=place]", (choices) => choices.forEach((choice) => (choice.checked = false)));
await send("Allow");
await audit("consent-manage-nothing-chosen", 422);
assert.ok(await box.isChecked());
await send("Deny");
const wider = await authorize(client, { scope: "grabs manage" });
await box.check();
await page.getByRole("radio").last().check();
await send("Allow");
const { access_token, scope } = await exchange(origin, client, returned.at(-1), callback, wider);
assert.equal(scope, "grabs manage");
const webhook = { method: "POST", body: JSON.stringify({ url: "https://93.184.215.14/hooks/grabd" }) };
const headers = { authorization: `Bearer ${access_token}`, "content-type": "application/json" };
assert.equal((await fetch(`${origin}/v1/webhooks`, { ...webhook, headers })).status, 201);
await page.goto(`${origin}/apps`);
await audit("apps-manage", 200);
await page.goto(`${origin}/grabs`);
await page.getByRole("link", { name: "Webhooks" }).click();
await page.waitForURL("**/webhooks");
await audit("webhooks-of-app", 200);
await page.locator("h2 a").click();
await page.waitForURL("**/webhooks/*");
await audit("webhook-of-app", 200);
await page.goto(`${origin}/apps`);
await page.getByRole("button", { name: "Disconnect" }).first().click();
await page.waitForURL("**/apps?disconnected");
assert.equal((await fetch(`${origin}/v1/webhooks`, { headers })).status, 401);

// A consent request can be answered once.
await authorize(client);
const spent = await page.$eval("[name=ticket]", (field) => field.value);
await send("Deny");
assert.equal(returned.at(-1).get("error"), "access_denied");
await authorize(client);
await page.$eval("[name=ticket]", (field, spent) => (field.value = spent), spent);
await send("Allow");
await audit("too-late", 400);
await authorize(client);
await page.$eval("[name=form_token]", (field) => (field.value = "forged"));
await send("Allow");
await audit("forged", 403);
await authorize({ client_id: "gcl_unknown" });
await audit("unknown-app", 400);
await page.goto(`${origin}/sign-out`);
await audit("wrong-method", 405);

// A name of maximum length without break opportunities, and a custom URL scheme.
const long = await register(origin, { client_name: "W".repeat(100), redirect_uris: ["com.example.app:/callback"] });
const { query } = await challenge(long, "com.example.app:/callback");
await page.goto(`${origin}/oauth/authorize?${query}`);
await audit("consent-long-name", 200);

// Disconnect and sign out.
await page.goto(`${origin}/apps`);
await audit("apps", 200);
const disconnect = await page.getByRole("button", { name: "Disconnect" }).evaluate((button) => button.form.action);
await send("Disconnect");
await audit("apps-disconnected", 200);
await page.$eval("form", (form, action) => (form.action = action), disconnect);
await send("Sign out");
await audit("disconnected-before", 404);
await page.goto(`${origin}/apps`);
await context.clearCookies();
await page.$eval("form", (form, action) => (form.action = action), disconnect);
await send("Sign out");
await audit("session-over", 403);

// The rate limit, which counts all requests. Tokens are refilled meanwhile, so repeat until none is left.
await page.goto(`${origin}/sign-in`);
do {
  for (let tries = 0; tries < 30; tries++) await fetch(`${origin}/sign-in`, { method: "POST" });
  await send("Sign in");
} while ((await page.title()).startsWith("Error: Sign in"));
await audit("too-often", 429);

app.close();
await close();
