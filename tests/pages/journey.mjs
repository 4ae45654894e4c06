// Browser walk of one person through everything: node journey.mjs FILE, where FILE holds {origin, site, stripe, secret,
// email, password, dir, screenshots}. `origin` allows sign-up and sells credits through the fake Stripe at `stripe`,
// whose events are signed with `secret`; `site` serves the pages to capture. Findings are printed, and make the exit
// status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { host, openCheckout } from "./checkout.mjs";
import { open } from "./audits.mjs";

const { origin, site, stripe, secret, email, password, dir, screenshots } =
  JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host, host];
const { context, page, audit, send, follow, fill, close } = await open({ dir, screenshots, own });
const checkout = await openCheckout({ context, page, stripe, secret, origin });
const main = () => page.locator("main").innerText();

// Sign up from the start page.
await page.goto(`${origin}/`);
await follow("Create account");
await fill({ "E-mail address": email, Password: password });
await audit("journey-sign-up", 200);
await send("Create account");
await audit("journey-signed-up", 200);

// Create a key for a program.
await follow("Keys");
await fill({ Name: "build server" });
await page.getByRole("radio", { name: /^Live/ }).check();
await audit("journey-keys", 200);
await send("Create key");
const key = await page.getByLabel("Live key").inputValue();
await audit("journey-key-made", 200);
await follow("Done");
await audit("journey-key-there", 200);

// Calls the API as the program.
async function callApi(path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${origin}/v1${path}`, { method: body ? "POST" : "GET", headers, body: JSON.stringify(body) });
  return [answer.status, await answer.json()];
}
const credits = async () => (await callApi("/usage"))[1].credits.total;

// Captures need credits.
async function capture() {
  await follow("New capture");
  await fill({ "URL": `${site}/held/showcase` });
  await page.getByRole("switch", { name: "Test mode" }).setChecked(false);
  await page.getByRole("button", { name: "Capture", exact: true }).click();
}
await capture();
await page.locator("#outcome .notice.bad", { hasText: "the team has none left" }).waitFor();
await audit("journey-no-credits", 200);
assert.equal((await callApi("/grabs", { url: `${site}/tiny` }))[0], 402);

// Buy credits, which are granted once paid.
await follow("Usage and billing");
await audit("journey-billing", 200);
await send("Buy for $50");
const session = await checkout.session();
await page.goto(session.success_url);
await audit("journey-not-paid-yet", 200);
assert.equal(await credits(), 0);
await checkout.pay(session);
await follow("Refresh");
await audit("journey-paid", 200);
assert.match(await main(), /25,000 credits/);
assert.equal(await credits(), 25_000);

// Capture a page while watching it.
await capture();
await follow("Details");
await page.evaluate(() => (window.isTheSamePage = true));
await page.locator("#state", { hasText: "The page is being rendered." }).waitFor();
await audit("journey-open", 200);
await fetch(`${site}/held/showcase`, { method: "POST" });
const picture = page.locator("#outcome img");
await picture.waitFor();
assert.deepEqual(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1280);
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the page was loaded again");
await audit("journey-done", 200);
const captured = page.url();
const address = await picture.evaluate((image) => image.src);
assert.equal(await credits(), 24_999);

// The program captures another page.
const [status, grab] = await callApi("/grabs", { url: `${site}/article` });
assert.deepEqual([status, grab.status], [200, "done"]);
assert.equal((await fetch(grab.image_url)).headers.get("content-type"), "image/png");
assert.equal(await credits(), 24_998);
await page.goto(`${origin}/grabs`);
assert.equal(await page.locator(".card").count(), 2);
await audit("journey-captures", 200);

// Revoke key.
await follow("Keys");
await follow("Revoke build server");
await audit("journey-revoke", 200);
assert.equal((await callApi("/usage"))[0], 200);
await send("Revoke");
await audit("journey-revoked", 200);
for (const path of ["/usage", `/grabs/${grab.id}`]) assert.equal((await callApi(path))[0], 401, path);
assert.equal((await callApi("/grabs", { url: `${site}/tiny` }))[0], 401);

// Delete the first image and sign out.
await page.goto(captured);
await follow("Delete…");
await audit("journey-delete", 200);
assert.equal((await fetch(address)).status, 200);
await send("Delete image");
await audit("journey-deleted", 200);
assert.equal((await fetch(address)).status, 404);
await send("Sign out");
await audit("journey-signed-out", 200);
await page.goto(captured);
assert.equal(new URL(page.url()).pathname, "/sign-in");
await audit("journey-over", 200);

await close();
