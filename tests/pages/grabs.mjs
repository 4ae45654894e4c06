// Browser walk through captures: node grabs.mjs FILE, where FILE holds {origin, site, email, password, dir,
// screenshots}. The person has an account, one team, and credits. `site` serves the pages to capture. Findings are
// printed, and make the exit status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { origin, site, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host];
const { browser, context, page, audit, send, fill, close } = await open({ dir, screenshots, own });

const path = () => new URL(page.url()).pathname;
const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);

// Releases a held page. Until then, the waiting state can be audited.
const release = (name) => fetch(`${site}/held/${name}`, { method: "POST" });

async function capture(fields, { live = true, whole = false } = {}) {
  await page.goto(`${origin}${team}/capture`);
  await page.getByText("More options").click();
  await fill(fields);
  await page.getByRole("radio", { name: live ? /^Live/ : /^Test/ }).check();
  if (whole) await page.getByLabel("Full page").check();
  await send("Capture");
}

// Without an account.
await page.goto(`${origin}/`);
await audit("start", 200);
await fill({ "URL": "http://127.0.0.1/" });
await send("Capture");
await audit("start-refused", 422);
await fill({ "URL": "example.com" });
await send("Capture");
await audit("start-tried", 200);
const drawn = await page.locator(".result img").evaluate((image) => [image.naturalWidth, image.naturalHeight]);
assert.deepEqual(drawn, [1280, 720]);

// Sign in, with a team without captures.
await page.goto(`${origin}/grabs`);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
const team = path().replace("/grabs", "");
assert.match(team, /^\/teams\/[0-9a-f-]{36}$/);
await audit("grabs-none", 200);
await page.goto(`${origin}/`);
await audit("start-signed-in", 200);

// The form and its error messages.
await page.goto(`${origin}${team}/capture`);
await audit("capture", 200);
await page.getByText("More options").click();
await audit("capture-options", 200);

// Presets fill in the form, options are found by their texts, and the code follows the form.
const shown = page.locator("#code");
await page.getByRole("link", { name: "Phone", exact: true }).click();
assert.equal(await page.getByLabel("Device").inputValue(), "phone");
await shown.getByText('"device":"phone"').waitFor();
await page.getByRole("link", { name: "Full page", exact: true }).click();
assert.equal(await page.getByLabel("Device").inputValue(), "desktop");
await page.getByLabel("URL", { exact: true }).fill("example.com/a");
await page.getByLabel("Format").selectOption("webp");
await shown.getByText('"url":"https://example.com/a","format":"webp","full_page":true').waitFor();
await shown.getByRole("button", { name: "Python" }).click();
await page.getByLabel("Format").selectOption("jpeg");
await shown.getByText('"format": "jpeg"').and(page.locator(":visible")).waitFor();
await page.getByLabel("Find an option").fill("time zone");
assert.equal(await page.locator(".more fieldset:visible").count(), 1);
await page.getByLabel("Find an option").fill("");
assert.ok((await page.locator(".more fieldset:visible").count()) > 2);
await page.goto(`${origin}${team}/capture`);
await send("Capture");
await audit("capture-empty", 422);
await fill({ "URL": `${site}/showcase`, Width: "10" });
await send("Capture");
await audit("capture-too-narrow", 422);
assert.equal(await page.getByLabel("URL", { exact: true }).inputValue(), `${site}/showcase`);
await page.getByRole("link", { name: /Width must be/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "width");

// The page of a capture updates without reloading.
await capture({ "URL": `${site}/held/showcase`, "Delay": "250" });
assert.match(path(), /\/grabs\/[0-9a-f-]{36}$/);
const first = page.url();
await page.evaluate(() => (window.isTheSamePage = true));
assert.match(await page.title(), /^(Queued|Rendering): /);
await page.locator("#state", { hasText: "The page is being rendered." }).waitFor();
await audit("grab-open", 200);
await release("showcase");
const picture = page.locator("#outcome img");
await picture.waitFor();
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the page was loaded again");
assert.match(await page.title(), /^Done: /);
assert.match(await page.locator("#state").innerText(), /Captured in/);
await picture.evaluate((image) => image.decode());
assert.deepEqual(await picture.evaluate((image) => [image.naturalWidth, image.naturalHeight]), [1280, 720]);
await page.reload();
await audit("grab-done", 200);

// So does the gallery.
await capture({ "URL": `${site}/held/article` });
await page.goto(`${origin}${team}/grabs`);
await page.evaluate(() => (window.isTheSamePage = true));
await release("article");
const newest = page.locator(".card").first();
await newest.locator("img").waitFor();
assert.equal(await newest.locator(".state").innerText(), "Done");
assert.match(await page.locator("#news").innerText(), /article: Done$/);
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the gallery was loaded again");
assert.equal(await newest.locator("img").evaluate((image) => image.decode().then(() => image.naturalWidth)), 480);

// Failed captures show the reason, and long or small images are shown completely.
for (const [name, address, options] of [
  ["grab-blocked", `${site}/status/403`],
  ["grab-failed", `${site}/nocontent`],
  ["grab-long", `${site}/tall`, { whole: true }],
  ["grab-test", "https://example.com/a/rather/long/path/to/see/where/it/breaks?and=a&query=too", { live: false }],
]) {
  await capture({ "URL": address }, options);
  await page.locator("#outcome img, #outcome .notice").waitFor();
  await page.reload();
  await audit(name, 200);
}
await capture({ "URL": `${site}/element`, "Element": "#target" });
await picture.waitFor();
assert.deepEqual(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)), 300);
await capture({ "URL": "http://127.0.0.3/" });
await audit("capture-refused", 422);

// The gallery and its filters.
await page.goto(`${origin}${team}/grabs`);
await page.locator(".card img").last().scrollIntoViewIfNeeded();
await audit("grabs", 200);
await follow("Failed");
assert.equal(await page.locator(".card").count(), 2);
await audit("grabs-failed", 200);
await follow("Queued");
await audit("grabs-none-waiting", 200);
await follow("Test");
await follow("All");
assert.equal(await page.locator(".card").count(), 1);
await page.goto(`${origin}${team}/grabs?starting_after=${team.slice(7)}`);
await audit("grabs-no-such-place", 400);
await page.goto(`${origin}/teams/${first.slice(-36)}/grabs`);
await audit("no-such-team", 404);

// Captures are selected with the keyboard, compared and deleted.
const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("href"));
await page.goto(`${origin}${team}/grabs`);
const links = await page.locator(".card > a").evaluateAll((cards) => cards.map((card) => card.getAttribute("href")));
for (const [key, expected] of [["k", links[0]], ["j", links[1]], ["j", links[2]], ["k", links[1]], ["/", "q"]]) {
  await page.keyboard.press(key);
  assert.equal(await focused(), expected, key);
}
await page.keyboard.type("jx");
assert.equal(await page.getByLabel("URL contains").inputValue(), "jx");
await page.locator(".card > a").nth(1).focus();
assert.equal(await page.getByRole("button", { name: "Compare", exact: true }).isVisible(), false);
await page.keyboard.press("x");
await page.getByRole("checkbox").nth(0).check();
await audit("grabs-selected", 200);
await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: "Compare", exact: true }).click()]);
const compared = await page.locator(".comparison img").evaluateAll((images) => images.map((image) => image.naturalWidth));
assert.deepEqual(compared, [1280, 300]);
await audit("compare", 200);
await page.getByRole("button", { name: "Overlay with a slider" }).click();
await page.getByRole("slider").fill("25");
const newer = page.locator(".comparison figure").last();
assert.equal(await newer.evaluate((side) => getComputedStyle(side).clipPath), "inset(0px 0px 0px 25%)");
await audit("compare-overlay", 200);
for (const [query, status] of [["", 400], [`?grab=${links[0].slice(-36)}`, 400], [`?grab=${team.slice(7)}`, 404]]) {
  assert.equal((await page.goto(`${origin}${team}/grabs/compare${query}`)).status(), status);
}
await page.goto(`${origin}${team}/grabs`);
await page.getByRole("checkbox").nth(0).check();
await page.getByRole("checkbox").nth(2).check();
await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: "Delete…", exact: true }).click()]);
assert.match(await page.locator("main").innerText(), /1 of the selected captures has no image/);
await audit("grabs-delete", 200);
await send("Delete 1 image");
assert.match(await page.getByRole("status").first().innerText(), /^1 image was deleted/);
assert.equal(await page.locator(".card").first().locator(".thumb").innerText(), "Image deleted");
await audit("grabs-some-deleted", 200);

// Repeat and delete.
await page.goto(first);
await follow("Edit and retake");
assert.equal(await page.getByLabel("Delay").inputValue(), "250");
await page.goto(first);
await follow("Delete…");
await audit("grab-delete", 200);
await follow("Cancel");
await follow("Delete…");
await send("Delete image");
await audit("grab-deleted", 200);
assert.equal(await page.locator("#outcome img").count(), 0);
await page.goto(`${origin}${team}/grabs`);
await audit("grabs-with-deleted", 200);

// Without JavaScript, the page reloads until the image is there.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const old = await plain.newPage();
old.setDefaultTimeout(60_000);
await old.goto(`${origin}${team}/capture`);
await old.getByLabel("URL", { exact: true }).fill(`${site}/held/tiny`);
await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: "Capture" }).click()]);
assert.match(await old.title(), /^(Queued|Rendering): /);
await release("tiny");
await old.locator("#outcome img").waitFor();
assert.match(await old.title(), /^Done: /);

await close();
