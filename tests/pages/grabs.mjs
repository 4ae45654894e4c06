// Browser walk through captures: node grabs.mjs FILE, where FILE holds {origin, site, email, password, dir,
// screenshots}. The person has an account, one team, and credits. `site` serves the pages to capture. Findings are
// printed, and make the exit status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { origin, site, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host];
const { browser, context, page, audit, send, fill, openMenu, close } = await open({ dir, screenshots, own });

const path = () => new URL(page.url()).pathname;
const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);

// Releases a held page. Until then, the waiting state can be audited.
const release = (name) => fetch(`${site}/held/${name}`, { method: "POST" });

// Fills in and sends the form. The result is shown beside it.
async function request(fields, { live = true, whole = false } = {}) {
  await page.goto(`${origin}${team}/capture`);
  await openGroups();
  await fill(fields);
  await page.getByRole("switch", { name: "Test mode" }).setChecked(!live);
  if (whole) await page.getByLabel("Full page").check();
  await press();
}

// Opens all groups of options.
const openGroups = () => page.$$eval(".group", (groups) => groups.forEach((group) => (group.open = true)));

// Sends the form without the browser's own validation.
async function press() {
  await page.$eval("form.capture", (form) => (form.noValidate = true));
  await page.getByRole("button", { name: "Capture", exact: true }).click();
}

// Captures, and opens the page of the capture.
async function capture(fields, options) {
  await request(fields, options);
  await follow("Details");
}

// Types a URL and presses Copy at once, for each language: what is copied is the code of the form, and so is what is shown.
async function copyRightAfterTyping(name) {
  const code = page.locator("#code");
  const button = code.locator("figure.code:visible .copy");
  const before = await code.locator("[aria-pressed=true]").innerText();
  for (const language of ["curl", "JavaScript", "Python", "Go", "Rust", "PHP"]) {
    await code.getByRole("button", { name: language, exact: true }).click();
    const url = `https://example.com/${name}/${language}`;
    await page.getByLabel("URL", { exact: true }).fill(url);
    await button.click();
    await button.and(page.getByText("Copied", { exact: true })).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.includes(`"${url}"`), `${language}: ${copied}`);
    assert.equal(copied, await code.locator("figure.code:visible code").innerText());
    assert.equal(await code.locator("[aria-pressed=true]").innerText(), language);
  }
  await code.getByRole("button", { name: before, exact: true }).click();
}

// Without an account.
await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
await page.goto(`${origin}/`);
await audit("start", 200);
await copyRightAfterTyping("start");
await page.getByLabel("Device").selectOption("phone");
await page.locator("#code").getByText("device").and(page.locator(":visible")).waitFor();
await fill({ "URL": "ftp://example.com" });
await page.locator("#code", { hasText: "There is no code for this URL" }).waitFor();
await page.goto(`${origin}/`);
await page.getByLabel("Page", { exact: true }).selectOption("dashboard");
await page.getByLabel("Full page").check();
await send("Capture sample");
await audit("start-sample", 200);
const sample = await page.locator(".result img").evaluate((image) => image.decode().then(() => [image.naturalWidth, image.naturalHeight]));
assert.ok(sample[0] === 1280 && sample[1] > 720, `${sample}`);
assert.ok(await page.getByLabel("Full page").isChecked());
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

// The menus of the header, one at a time. Escape closes a menu, and so does a press elsewhere.
await page.goto(`${origin}${team}/grabs`);
await openMenu();
await audit("grabs-menu", 200);
const menus = page.locator(".drop[open]");
await page.locator(".drop > summary").first().click();
assert.equal(await menus.count(), 1);
await page.keyboard.press("Escape");
assert.equal(await menus.count(), 0);
await page.locator(".drop > summary").first().click();
await page.getByRole("heading", { level: 1 }).click();
assert.equal(await menus.count(), 0);

// The form and its error messages.
await page.goto(`${origin}${team}/capture`);
await audit("capture", 200);
await openGroups();
await audit("capture-options", 200);
const height = await page.evaluate(() => document.documentElement.scrollHeight);
assert.ok(height <= 4000, `the form with all options is ${height} px tall`);
await page.$$eval(".help", (helps) => helps.forEach((help) => (help.open = true)));
await audit("capture-help", 200);
await page.goto(`${origin}${team}/capture`);

// The URL has the focus, and the signs of the help are no stops of the keyboard.
const active = () => page.evaluate(() => document.activeElement.id);
assert.equal(await active(), "url");
await page.locator("#width").focus();
await page.keyboard.press("Tab");
assert.equal(await active(), "height");
const hint = page.locator("#width-hint");
assert.equal(await hint.isVisible(), false);
await page.getByLabel("Explain all options").check();
assert.ok(await hint.isVisible(), "the options are not explained");

// Presets fill in a size and keep the rest, options are found by their texts, and the code follows the form.
const shown = page.locator("#code");
const preset = (name) => page.getByRole("button", { name, exact: true });
const placeholders = () => page.locator("#width, #height").evaluateAll((fields) => fields.map((field) => field.placeholder));
assert.deepEqual(await placeholders(), ["1280", "720"]);
await page.getByLabel("URL", { exact: true }).fill("example.com/a");
await preset("Phone").click();
assert.equal(await page.getByLabel("Device").inputValue(), "phone");
assert.deepEqual(await placeholders(), ["390", "844"]);
assert.equal(await preset("Phone").getAttribute("aria-pressed"), "true");
await shown.getByText('"url":"https://example.com/a","device":"phone"').waitFor();
await preset("Desktop").click();
assert.equal(await page.getByLabel("Device").inputValue(), "desktop");
assert.equal(await preset("Phone").getAttribute("aria-pressed"), "false");
await page.getByLabel("Full page").check();
await page.getByLabel("Format").selectOption("webp");
await shown.getByText('"url":"https://example.com/a","width":1440,"height":900,"format":"webp","full_page":true').waitFor();
await shown.getByRole("button", { name: "Python" }).click();
await page.getByLabel("Format").selectOption("jpeg");
await shown.getByText('"format": "jpeg"').and(page.locator(":visible")).waitFor();
await copyRightAfterTyping("form");
await page.getByLabel("Find an option").fill("time zone");
assert.equal(await page.locator(".group:visible").count(), 1);
assert.ok(await page.getByLabel("Time zone", { exact: true }).isVisible(), "the group with the option is not open");
await page.getByLabel("Find an option").fill("");
assert.ok((await page.locator(".group:visible").count()) > 2);
assert.equal(await page.locator(".group[open]").count(), 0);
await page.goto(`${origin}${team}/capture`);
await press();
await page.locator("#url-error", { hasText: "Enter a web address" }).waitFor();
assert.match(await page.evaluate(() => document.activeElement.innerText), /There is a problem/);
await audit("capture-empty", 200);
await fill({ "URL": `${site}/showcase`, Width: "10" });
await press();
await page.locator("#width-error").waitFor();
assert.equal(await page.locator(".error").count(), 1);
assert.equal(await page.locator("#url[aria-invalid]").count(), 0);
await audit("capture-too-narrow", 200);
await page.getByRole("link", { name: /Width must be/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "width");

// The result is shown beside the form: nothing is loaded again, and nothing moves.
await page.goto(`${origin}${team}/capture`);
await page.setViewportSize({ width: 1280, height: 900 });
await page.evaluate(() => {
  window.shift = 0;
  const add = (list) => list.getEntries().forEach((entry) => (window.shift += entry.hadRecentInput ? 0 : entry.value));
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
});
await fill({ "URL": `${site}/held/showcase` });
await page.getByRole("switch", { name: "Test mode" }).setChecked(false);
await press();
await page.locator("#state", { hasText: "The page is being rendered." }).waitFor();
await page.locator("#outcome .stages .reached", { hasText: "Page requested" }).waitFor();
await audit("capture-open", 200);
await release("showcase");
const shot = page.locator("#outcome .canvas img");
await shot.waitFor();
await shot.evaluate((image) => image.decode());
await audit("capture-done", 200);
const widthOfShot = () => shot.evaluate((image) => image.clientWidth);
await page.setViewportSize({ width: 1280, height: 900 });
assert.ok((await widthOfShot()) < 700);
assert.ok(await shot.evaluate((image) => {
  const { width, height } = image.getBoundingClientRect();
  const canvas = image.parentElement;
  return width <= canvas.clientWidth && height <= canvas.clientHeight && canvas.clientHeight > 250;
}), "the image is not shown whole");
await page.getByRole("button", { name: "100 %" }).click();
assert.equal(await widthOfShot(), 1280);
assert.equal(await page.getByRole("button", { name: "Fit", exact: true }).getAttribute("aria-pressed"), "false");
const imageUrl = await page.getByLabel("Image URL").inputValue();
assert.equal(await shot.evaluate((image) => image.src), imageUrl);
assert.equal((await page.request.get(imageUrl)).status(), 200);
assert.match(await page.locator("#outcome dl").innerText(), /HTTP status\s+200/);
// The balance follows the capture.
await page.locator("#environment-hint", { hasText: "1 of 24 credits" }).waitFor();
assert.equal(await page.evaluate(() => window.shift), 0, "something moved");
// Another capture with the same form is another one. On a phone, its result is scrolled to.
const earlier = await page.getByRole("link", { name: "Details" }).getAttribute("href");
await page.setViewportSize({ width: 390, height: 800 });
await page.evaluate(() => scrollTo(0, 0));
await page.getByRole("switch", { name: "Test mode" }).setChecked(true);
await press();
await page.locator("#state", { hasText: "Placeholder image" }).waitFor();
assert.notEqual(await page.getByRole("link", { name: "Details" }).getAttribute("href"), earlier);
assert.ok(await page.locator("#state").evaluate((state) => {
  const { top, bottom } = state.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}), "the result is out of view");
await page.setViewportSize({ width: 1280, height: 900 });

// A link that is pressed while a capture ends is followed when the button is released.
async function pressWhile(link, event) {
  await link.hover();
  await page.mouse.down();
  await event();
  await Promise.all([page.waitForNavigation(), page.mouse.up()]);
}
await request({ "URL": `${site}/held/element` });
await pressWhile(page.getByRole("link", { name: "Details" }), async () => {
  await release("element");
  await shot.waitFor();
});
assert.match(path(), /\/grabs\/[0-9a-f-]{36}$/);

// The page of a capture updates without reloading.
await capture({ "URL": `${site}/held/tall`, "Delay": "250" });
assert.match(path(), /\/grabs\/[0-9a-f-]{36}$/);
const first = page.url();
await page.evaluate(() => (window.isTheSamePage = true));
assert.match(await page.title(), /^(Queued|Rendering): /);
await page.locator("#state", { hasText: "The page is being rendered." }).waitFor();
await audit("grab-open", 200);
await release("tall");
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
const newest = page.locator(".card").first();
await newest.getByRole("checkbox").check();
await newest.locator("a").first().focus();
await release("article");
await newest.locator("img").waitFor();
assert.ok(await newest.getByRole("checkbox").isChecked());
assert.equal(await newest.locator("a").first().evaluate((link) => link === document.activeElement), true);
assert.equal(await newest.locator(".state").innerText(), "Done");
assert.match(await page.locator("#news").innerText(), /article: Done$/);
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the gallery was loaded again");
assert.equal(await newest.locator("img").evaluate((image) => image.decode().then(() => image.naturalWidth)), 480);
await capture({ "URL": `${site}/held/dashboard` });
const opened = path();
await page.goto(`${origin}${team}/grabs`);
await pressWhile(newest.locator("a").first(), async () => {
  await release("dashboard");
  await newest.locator("img").waitFor();
});
assert.equal(path(), opened);

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
// One click captures again with the same options, and shows the difference.
await capture({ "URL": "https://example.com/", "Slice height": "300" }, { live: false });
await page.reload();
await page.locator("summary", { hasText: "Response (JSON)" }).click();
await page.locator("summary", { hasText: /^More$/ }).click();
await audit("grab-all-open", 200);
const before = path();
await send("Retake and compare");
assert.notEqual(path(), before);
assert.match(await page.locator(".changed").innerText(), /^Nothing changed since the earlier capture/);
await follow("Compare side by side");
await audit("compare-equal", 200);
await request({ "URL": "https://example.com/", "Height": "700", "Compare to": before.slice(-36) }, { live: false });
await page.locator("#outcome .changed", { hasText: "changed in" }).waitFor();
await audit("capture-compared", 200);
await page.locator("#outcome").getByRole("button", { name: "Image", exact: true }).click();
await follow("Details");
assert.equal(await page.locator(".of-image").isVisible(), false);
await page.getByRole("button", { name: "Image", exact: true }).click();
assert.deepEqual([await page.locator(".of-image").isVisible(), await page.locator(".of-difference").isVisible()], [true, false]);
await page.reload();
await audit("grab-compared", 200);
await capture({ "URL": `${site}/element`, "Element": "#target" });
await picture.waitFor();
assert.deepEqual(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)), 300);
await request({ "URL": "http://127.0.0.3/" });
await page.locator("#url-error", { hasText: "not public" }).waitFor();
await audit("capture-refused", 200);

// The gallery and its filters.
await page.goto(`${origin}${team}/grabs`);
await page.locator(".card img").last().scrollIntoViewIfNeeded();
await audit("grabs", 200);
await page.setViewportSize({ width: 1280, height: 800 });
await page.evaluate(() => scrollTo(0, 0));
const top = await page.locator(".card .thumb").first().evaluate((tile) => tile.getBoundingClientRect().top);
assert.ok(top < 260, `the first picture begins at ${top}`);
assert.match(await page.locator(".card", { hasText: "/tall" }).first().locator(".about").innerText(), /full page/);
const openFilter = (menu) => page.locator(".menus summary", { hasText: `${menu}:` }).click();
async function choose(menu, name) {
  await openFilter(menu);
  await follow(name);
}
await openFilter("Date");
await audit("grabs-dates", 200);
await page.goto(`${origin}${team}/grabs`);
await choose("Status", "Failed");
assert.equal(await page.locator(".card").count(), 2);
await audit("grabs-failed", 200);
await choose("Status", "Queued");
await audit("grabs-none-waiting", 200);
await choose("Environment", "Test");
await choose("Status", "All statuses");
assert.equal(await page.locator(".card").count(), 5);
// On a phone, one button shows the menus, and the menu of the header opens below its button.
await page.setViewportSize({ width: 390, height: 800 });
assert.equal(await page.locator(".menus").isVisible(), false);
await page.getByRole("switch", { name: "Filters" }).check();
await audit("grabs-filters", 200);
await page.setViewportSize({ width: 390, height: 800 });
await openFilter("Status");
const button = page.locator(".menu > summary");
const menuButton = await button.boundingBox();
await button.click();
assert.deepEqual(await button.boundingBox(), menuButton, "the button of the menu moved");
await page.setViewportSize({ width: 1280, height: 900 });
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
const compareButton = page.getByRole("button", { name: "Compare", exact: true });
const selected = page.locator(".selection .count");
assert.equal(await selected.innerText(), "1 selected");
assert.equal(await compareButton.isDisabled(), true);
await page.keyboard.press("Escape");
assert.equal(await compareButton.isVisible(), false);
await page.keyboard.press("c");
await page.keyboard.press("x");
await page.getByRole("checkbox").nth(0).check();
await page.getByRole("checkbox").nth(2).check();
assert.deepEqual([await selected.innerText(), await compareButton.isDisabled()], ["3 selected", true]);
await page.getByRole("checkbox").nth(2).uncheck();
assert.deepEqual([await selected.innerText(), await compareButton.isDisabled()], ["2 selected", false]);
await audit("grabs-selected", 200);
// Keys that are typed into a field press no button.
await page.locator("#q").focus();
await page.keyboard.type("cd");
await page.locator("#q").fill("");
await page.locator(".card > a").nth(1).focus();
const [archive] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("d")]);
assert.match(archive.suggestedFilename(), /^grabd-captures-/);
await Promise.all([page.waitForNavigation(), page.keyboard.press("c")]);
const compared = await page.locator(".comparison img").evaluateAll((images) => images.map((image) => image.naturalWidth));
assert.deepEqual(compared, [1280, 300]);
assert.match(await page.locator(".changed").innerText(), / changed in \d+ regions?\./);
assert.ok((await page.locator(".regions rect").count()) > 0);
await audit("compare", 200);
await page.getByRole("button", { name: "Outline changes" }).click();
assert.equal(await page.locator(".regions").isVisible(), false);
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

// New captures of others arrive without moving what is there: the selection and the focus stay.
await page.goto(`${origin}${team}/grabs?environment=test`);
const known = await page.locator(".card").count();
await page.getByRole("checkbox").first().check();
const elsewhere = await context.newPage();
await elsewhere.goto(`${origin}${team}/capture`);
await elsewhere.getByLabel("URL", { exact: true }).fill("https://example.com/new");
await elsewhere.getByRole("switch", { name: "Test mode" }).setChecked(true);
await elsewhere.getByRole("button", { name: "Capture", exact: true }).click();
await elsewhere.getByRole("link", { name: "Details" }).waitFor();
await elsewhere.close();
const fresh = page.locator("#fresh");
assert.equal(await fresh.isVisible(), false);
// The page asks as soon as it is shown again.
await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
await fresh.filter({ hasText: "1 new capture" }).and(page.locator(":visible")).waitFor();
assert.equal(await page.locator(".card").count(), known);
assert.equal(await page.getByRole("checkbox", { checked: true }).count(), 1);
await audit("grabs-new", 200);
await fresh.click();
assert.match(await page.locator(".card").first().innerText(), /example\.com\/new/);
assert.equal(await page.locator(".card").count(), known + 1);
assert.equal(await page.getByRole("checkbox", { checked: true }).count(), 1);
assert.match(await focused(), /\/grabs\/[0-9a-f-]{36}$/);
await page.goto(`${origin}${team}/grabs?sort=oldest&size=48`);
await audit("grabs-oldest", 200);
assert.equal(await page.locator("nav[aria-label='Per page'] [aria-current]").textContent(), "48 per page");
assert.equal(await page.locator("#fresh").count(), 0);

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

// An example of the documentation runs in test mode.
await page.goto(`${origin}/docs/picture`);
await audit("docs-signed-in", 200);
await send("Run it (example 1)");
assert.match(path(), /^\/teams\/[0-9a-f-]{36}\/grabs\/[0-9a-f-]{36}$/);
await audit("docs-example-ran", 200);

// Without JavaScript, the page reloads until the image is there.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const old = await plain.newPage();
old.setDefaultTimeout(60_000);
await old.goto(`${origin}${team}/capture`);
await old.getByLabel("URL", { exact: true }).fill(`${site}/held/tiny`);
await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: "Phone" }).click()]);
assert.equal(await old.getByLabel("Width", { exact: true }).getAttribute("placeholder"), "390");
assert.equal(await old.getByLabel("URL", { exact: true }).inputValue(), `${site}/held/tiny`);
await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: "Capture" }).click()]);
assert.match(await old.title(), /^(Queued|Rendering): /);
await release("tiny");
await old.locator("#outcome img").waitFor();
assert.match(await old.title(), /^Done: /);

await close();
