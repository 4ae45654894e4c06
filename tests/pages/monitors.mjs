// Browser walk through monitors: node monitors.mjs FILE, where FILE holds {origin, email, watcher, password, dir, screenshots,
// monitor}. The person has an account and a team without monitors; the team of `watcher` has the monitor whose page is
// `monitor`, with runs of each outcome. Findings are printed, and make the exit status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { origin, email, watcher, password, dir, screenshots, monitor } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host];
const { browser, context, page, audit, send, fill, close, visitor } = await open({ dir, screenshots, own });

const path = () => new URL(page.url()).pathname;
const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);
const state = () => page.locator(".stands .state").innerText();

// Sign in, with a team without monitors.
await page.goto(`${origin}/grabs`);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
await follow("Monitors");
await audit("monitors-none", 200);

// The form and its error messages.
await follow("Create monitor");
await audit("monitor-new", 200);
assert.equal(await page.getByLabel("Schedule", { exact: true }).inputValue(), "1d");
await follow("Several pages with the same settings");
await audit("monitors-new", 200);
await page.getByRole("radio", { name: /^Test/ }).check();
await fill({ URLs: "https://example.com/a\nhttps://example.com/a" });
await send("Create monitors");
await audit("monitors-new-twice", 422);
await page.getByRole("link", { name: /^URL 2 must be another URL/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "urls");
await follow("One page");
await page.getByRole("radio", { name: /^Test/ }).check();
await send("Create monitor");
await audit("monitor-new-empty", 422);
await fill({ URL: "https://example.com/", Threshold: "200" });
await send("Create monitor");
await audit("monitor-new-threshold", 422);
await page.getByRole("link", { name: "The threshold must be a number from 0 to 100." }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "threshold");
await page.getByLabel("The image", { exact: true }).uncheck();
await fill({ Threshold: "1", Name: "N".repeat(100), "Ignored elements": ".clock\n.ad" });
await send("Create monitor");
await audit("monitor-new-compares-nothing", 422);
await page.getByLabel("The image", { exact: true }).check();
await page.getByLabel("Schedule", { exact: true }).selectOption("cron");
await fill({ "Cron expression": "0 8 * * 1-5", "Time zone of the schedule": "Europe/Vienna" });
await send("Create monitor");
assert.equal(await state(), "Active");
await audit("monitor-without-runs", 200);
const created = page.url().split("?")[0];

// The feed and the badge.
await send("Create a feed and a badge");
await audit("monitor-feed", 200);
await follow("Done");
await send("Turn off feed and badge");
await audit("monitor-feed-off", 200);

// Changed, paused and resumed.
await follow("Edit…");
await audit("monitor-change", 200);
assert.equal(await page.getByLabel("Cron expression").inputValue(), "0 8 * * 1-5");
await fill({ Name: "The shop", "Cron expression": "0 8 * *" });
await send("Save changes");
await audit("monitor-change-cron", 422);
await fill({ "Cron expression": "0 9 * * *" });
await send("Save changes");
await audit("monitor-changed", 200);
await send("Pause");
assert.equal(await state(), "Paused");
await audit("monitor-paused", 200);
await send("Resume");
assert.equal(await state(), "Active");
await follow("Monitors");
await audit("monitors", 200);

// Deleted.
await page.goto(created);
await follow("Delete…");
await audit("monitor-delete", 200);
await send("Delete");
await audit("monitors-deleted", 200);
await page.goto(created);
await audit("no-such-monitor", 404);

// A monitor with runs.
const other = await visitor();
await other.page.goto(`${origin}/grabs`);
await other.fill({ "E-mail address": watcher, Password: password });
await other.send("Sign in");
await other.page.goto(`${origin}${monitor}`);
await other.audit("monitor", 200);
assert.equal(await other.page.locator("svg.chart g").count(), await other.page.locator(".log > li").count());

// The lines that changed, and the whole texts: side by side, or below each other where there is no room.
await other.page.locator(".kept-lines > summary").click();
const marked = () => other.page.locator(".text-diff :is(del, ins)").allInnerTexts();
assert.deepEqual(await marked(), ["5", "6", "Sold out", "Free delivery"]);
await other.audit("monitor-text-changes", 200);
await other.follow(/^Compare the whole texts/);
assert.deepEqual(await marked(), ["old", "new"]);
const sides = () => Promise.all([0, 1].map((at) => other.page.locator(".differs > td").nth(at).boundingBox()));
await other.page.setViewportSize({ width: 1280, height: 800 });
const [left, right] = await sides();
assert.ok(right.x >= left.x + left.width && right.y === left.y, "the sides are not beside each other");
await other.page.setViewportSize({ width: 390, height: 844 });
const [above, below] = await sides();
assert.ok(below.x === above.x && below.y >= above.y + above.height, "the sides are not below each other");
await other.audit("compare-texts", 200);
await other.page.goto(`${origin}${monitor.replace(/\/[^/]+$/, "")}`);
await other.audit("monitors-with-runs", 200);

// Without JavaScript.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const old = await plain.newPage();
old.setDefaultTimeout(30_000);
const press = (name) => Promise.all([old.waitForNavigation(), old.getByRole("button", { name }).click()]);
await old.goto(`${origin}${new URL(created).pathname.replace(/[^/]+$/, "new")}`);
await old.getByLabel("URL", { exact: true }).fill("https://example.com/");
await old.getByRole("radio", { name: /^Test/ }).check();
await press("Create monitor");
await press("Pause");
assert.equal(await old.locator(".stands .state").innerText(), "Paused");

await close();
