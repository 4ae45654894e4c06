// Walks through every page as a person does, in a real browser, and looks at each: node walk.mjs FILE, where FILE holds
// {origin, closed, email, password, dir, screenshots}. `origin` lets people sign up, `closed` does not. Every page's HTML
// is left in `dir` as it came; whatever is wrong is printed, and ends the walk with 1. With `screenshots`, a directory,
// every page is photographed too: light and dark, narrow and wide.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { challenge, exchange, register } from "./client.mjs";
import { open } from "./eyes.mjs";

const { origin, closed, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [origin, closed, callback].map((url) => new URL(url).host);
const { context, page, look, send, fill, close } = await open({ dir, screenshots, own });

// The app: what comes back to it, in its order.
const returned = [];
const app = createServer((request, response) => {
  if (request.url.startsWith("/callback")) returned.push(new URL(request.url, callback).searchParams);
  response.writeHead(200, { "content-type": "text/html" });
  response.end("<!doctype html><html lang=en><title>The app</title><link rel=icon href='data:,'><p>Connected.");
});
await new Promise((ready) => app.listen(0, "127.0.0.1", ready));
const callback = `http://127.0.0.1:${app.address().port}/callback`;

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
assert.match(new URL(page.url()).pathname, /^\/teams\/[0-9a-f-]{36}\/grabs$/);
await page.goto(`${origin}/apps`);
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

// Too often. Whoever asks so counts, whatever came with it. What earlier tries had taken comes back at any moment, so it is
// taken again until nothing is left.
await page.goto(`${origin}/sign-in`);
do {
  for (let tries = 0; tries < 30; tries++) await fetch(`${origin}/sign-in`, { method: "POST" });
  await send("Sign in");
} while ((await page.title()).startsWith("Error: Sign in"));
await look("too-often", 429);

app.close();
await close();
