// Browser walk through site jobs: node sites.mjs FILE, where FILE holds {origin, site, email, password, dir, screenshots}. The
// person has an account and a team without jobs; the service has no browser, so that live captures wait. Findings are printed, and
// make the exit status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { origin, site, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host];
const { browser, context, page, audit, send, fill, close } = await open({ dir, screenshots, own });

const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);

// Sign in, with a team without jobs.
await page.goto(`${origin}/grabs`);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
await follow("Sites");
await audit("sites-none", 200);

// The form and its error messages.
await follow("Capture a site");
await audit("site-new", 200);
assert.equal(await page.getByLabel("Pages at most", { exact: true }).inputValue(), "50");
await page.getByRole("radio", { name: /^Test/ }).check();
await send("Capture the site");
await audit("site-new-empty", 422);
await fill({ "Start page or sitemap": `${site}/tiny`, "Pages at most": "0" });
await send("Capture the site");
await audit("site-new-pages", 422);
await page.getByRole("link", { name: /^The number of pages must be/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "max_pages");
await fill({ "Pages at most": "5", "Links away from the start page": "0", Name: "N".repeat(100), Exclude: "/old/*" });
await send("Capture the site");

// A job that has ended: its page is updated by script.
await page.locator(".stands .state", { hasText: "Done" }).waitFor();
const created = page.url().split("?")[0];
await page.goto(created);
await audit("site-done", 200);
assert.equal(await page.locator(".gallery .card").count(), 1);
await follow("Sites");
await audit("sites", 200);

// Deleted.
await page.goto(created);
await follow("Delete…");
await audit("site-delete", 200);
await send("Delete");
await audit("sites-deleted", 200);
await page.goto(created);
await audit("no-such-site", 404);

// A live job, whose captures wait, is canceled without JavaScript.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const openPlain = async (url) => {
  const tab = await plain.newPage();
  tab.setDefaultTimeout(30_000);
  await tab.goto(url);
  return tab;
};
const press = (tab, name) => Promise.all([tab.waitForNavigation(), tab.getByRole("button", { name }).click()]);
const old = await openPlain(`${origin}${new URL(created).pathname.replace(/[^/]+$/, "new")}`);
await old.getByLabel("Start page or sitemap", { exact: true }).fill(`${site}/tiny`);
await old.getByLabel("Links away from the start page", { exact: true }).fill("0");
await press(old, "Capture the site");
const waiting = old.url().split("?")[0];
// It reloads itself, which could interrupt a later navigation.
await old.close();
await page.goto(waiting);
await audit("site-open", 200);
await page.goto(`${waiting}/cancel`);
await audit("site-cancel", 200);
const confirmation = await openPlain(`${waiting}/cancel`);
await press(confirmation, "Cancel the job");
assert.equal(await confirmation.locator(".stands .state").innerText(), "Canceled");
await page.goto(waiting);
await audit("site-canceled", 200);

await close();
