// Captures pages as a person does, in a real browser, and looks at every page on the way: node grabs.mjs FILE, where FILE
// holds {origin, site, email, password, dir, screenshots}. The person has an account, one team, and credits; `site` is
// where the pages to capture are. Whatever is wrong is printed, and ends the walk with 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./eyes.mjs";

const { origin, site, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host];
const { browser, context, page, look, send, fill, close } = await open({ dir, screenshots, own });

const path = () => new URL(page.url()).pathname;
const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);

// Lets a page come that is held, so that there is time for all there is to see before.
const release = (name) => fetch(`${site}/held/${name}`, { method: "POST" });

async function capture(fields, { live = true, whole = false } = {}) {
  await page.goto(`${origin}${team}/capture`);
  await fill(fields);
  await page.getByRole("radio", { name: live ? /^Live/ : /^Test/ }).check();
  if (whole) await page.getByLabel("The whole page").check();
  await send("Capture");
}

// Without an account.
await page.goto(`${origin}/`);
await look("start", 200);
await fill({ "Address of the page": "http://127.0.0.1/" });
await send("Capture");
await look("start-refused", 422);
await fill({ "Address of the page": "example.com" });
await send("Capture");
await look("start-tried", 200);
const drawn = await page.locator(".result img").evaluate((image) => [image.naturalWidth, image.naturalHeight]);
assert.deepEqual(drawn, [1280, 720]);

// In, and to a team in which nothing was ever captured.
await page.goto(`${origin}/grabs`);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
const team = path().replace("/grabs", "");
assert.match(team, /^\/teams\/[0-9a-f-]{36}$/);
await look("grabs-none", 200);
await page.goto(`${origin}/`);
await look("start-signed-in", 200);

// The form, and what it says about mistakes.
await page.goto(`${origin}${team}/capture`);
await look("capture", 200);
await send("Capture");
await look("capture-empty", 422);
await fill({ "Address of the page": `${site}/showcase`, Width: "10" });
await send("Capture");
await look("capture-too-narrow", 422);
assert.equal(await page.getByLabel("Address of the page").inputValue(), `${site}/showcase`);
await page.getByRole("link", { name: /The width must be/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "width");

// A capture is watched from its page, which is loaded once.
await capture({ "Address of the page": `${site}/held/showcase`, "Wait before the shot": "250" });
assert.match(path(), /\/grabs\/[0-9a-f-]{36}$/);
const first = page.url();
await page.evaluate(() => (window.isTheSamePage = true));
assert.match(await page.title(), /^(Waiting|In the browser): /);
await page.locator("#state", { hasText: "A browser has the page open." }).waitFor();
await look("grab-open", 200);
await release("showcase");
const picture = page.locator("#outcome img");
await picture.waitFor();
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the page was loaded again");
assert.match(await page.title(), /^Done: /);
assert.match(await page.locator("#state").innerText(), /The picture is there/);
await picture.evaluate((image) => image.decode());
assert.deepEqual(await picture.evaluate((image) => [image.naturalWidth, image.naturalHeight]), [1280, 720]);
await page.reload();
await look("grab-done", 200);

// So is the gallery.
await capture({ "Address of the page": `${site}/held/article` });
await page.goto(`${origin}${team}/grabs`);
await page.evaluate(() => (window.isTheSamePage = true));
await release("article");
const newest = page.locator(".card").first();
await newest.locator("img").waitFor();
assert.equal(await newest.locator(".state").innerText(), "Done");
assert.match(await page.locator("#news").innerText(), /article: Done$/);
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the gallery was loaded again");
assert.equal(await newest.locator("img").evaluate((image) => image.decode().then(() => image.naturalWidth)), 480);

// What fails says why, and what is long or small is shown whole.
for (const [name, address, options] of [
  ["grab-blocked", `${site}/status/403`],
  ["grab-failed", `${site}/nocontent`],
  ["grab-long", `${site}/tall`, { whole: true }],
  ["grab-test", "https://example.com/a/rather/long/path/to/see/where/it/breaks?and=a&query=too", { live: false }],
]) {
  await capture({ "Address of the page": address }, options);
  await page.locator("#outcome img, #outcome .notice").waitFor();
  await page.reload();
  await look(name, 200);
}
await capture({ "Address of the page": `${site}/element`, "Only one element": "#target" });
await picture.waitFor();
assert.deepEqual(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)), 300);
await capture({ "Address of the page": "http://127.0.0.3/" });
await look("capture-refused", 422);

// The gallery and its filters.
await page.goto(`${origin}${team}/grabs`);
await page.locator(".card img").last().scrollIntoViewIfNeeded();
await look("grabs", 200);
await follow("Failed");
assert.equal(await page.locator(".card").count(), 2);
await look("grabs-failed", 200);
await follow("Waiting");
await look("grabs-none-waiting", 200);
await follow("Test");
await follow("All");
assert.equal(await page.locator(".card").count(), 1);
await page.goto(`${origin}${team}/grabs?starting_after=${team.slice(7)}`);
await look("grabs-no-such-place", 400);
await page.goto(`${origin}/teams/${first.slice(-36)}/grabs`);
await look("no-such-team", 404);

// Once more, and away.
await page.goto(first);
await follow("Capture it again");
assert.equal(await page.getByLabel("Wait before the shot").inputValue(), "250");
await page.goto(first);
await follow("Delete …");
await look("grab-delete", 200);
await follow("Keep it");
await follow("Delete …");
await send("Delete the picture");
await look("grab-deleted", 200);
assert.equal(await page.locator("#outcome img").count(), 0);
await page.goto(`${origin}${team}/grabs`);
await look("grabs-with-deleted", 200);

// Without script, the page is loaded again until the picture is there.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const old = await plain.newPage();
old.setDefaultTimeout(60_000);
await old.goto(`${origin}${team}/capture`);
await old.getByLabel("Address of the page").fill(`${site}/held/tiny`);
await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: "Capture" }).click()]);
assert.match(await old.title(), /^(Waiting|In the browser): /);
await release("tiny");
await old.locator("#outcome img").waitFor();
assert.match(await old.title(), /^Done: /);

await close();
