// One person's way through everything, in a browser that looks at every page: node journey.mjs FILE, where FILE holds
// {origin, site, stripe, secret, email, password, dir, screenshots}. `origin` lets people sign up and sells credits through
// the stand-in at `stripe`, whose events are signed with `secret`; `site` is where the pages to capture are. Whatever is
// wrong is printed, and ends the walk with 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { host, openCheckout } from "./checkout.mjs";
import { open } from "./eyes.mjs";

const { origin, site, stripe, secret, email, password, dir, screenshots } =
  JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host, host];
const { context, page, look, send, follow, fill, close } = await open({ dir, screenshots, own });
const checkout = await openCheckout({ context, page, stripe, secret, origin });
const main = () => page.locator("main").innerText();

// In, from the first page.
await page.goto(`${origin}/`);
await follow("Make an account");
await fill({ "E-mail address": email, Password: password });
await look("journey-sign-up", 200);
await send("Make the account");
await look("journey-signed-up", 200);

// A key for a program.
await follow("Keys");
await fill({ Name: "build server" });
await page.getByRole("radio", { name: /^Live/ }).check();
await look("journey-keys", 200);
await send("Make the key");
const key = await page.getByLabel("Live key").inputValue();
await look("journey-key-made", 200);
await follow("I have copied it");
await look("journey-key-there", 200);

// What a program asks for, and what it is answered.
async function ask(path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${origin}/v1${path}`, { method: body ? "POST" : "GET", headers, body: JSON.stringify(body) });
  return [answer.status, await answer.json()];
}
const credits = async () => (await ask("/usage"))[1].credits.total;

// There is nothing to spend yet.
async function capture() {
  await follow("Capture a page");
  await fill({ "Address of the page": `${site}/held/showcase` });
  await page.getByRole("radio", { name: /^Live/ }).check();
  await send("Capture");
}
await capture();
await look("journey-no-credits", 422);
assert.match(await main(), /no live credits left/);
assert.equal((await ask("/grabs", { url: `${site}/tiny` }))[0], 402);

// So some are bought, and they come when they are paid for.
await follow("Usage and billing");
await look("journey-billing", 200);
await send("Buy for 50 USD");
const session = await checkout.session();
await page.goto(session.success_url);
await look("journey-not-paid-yet", 200);
assert.equal(await credits(), 0);
await checkout.pay(session);
await follow("Look again");
await look("journey-paid", 200);
assert.match(await main(), /25,000 credits/);
assert.equal(await credits(), 25_000);

// A page is captured, and its picture comes while somebody looks on.
await capture();
await page.evaluate(() => (window.isTheSamePage = true));
await page.locator("#state", { hasText: "A browser has the page open." }).waitFor();
await look("journey-open", 200);
await fetch(`${site}/held/showcase`, { method: "POST" });
const picture = page.locator("#outcome img");
await picture.waitFor();
assert.deepEqual(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1280);
assert.equal(await page.evaluate(() => window.isTheSamePage), true, "the page was loaded again");
await look("journey-done", 200);
const captured = page.url();
const address = await picture.evaluate((image) => image.src);
assert.equal(await credits(), 24_999);

// The program captures another.
const [status, grab] = await ask("/grabs", { url: `${site}/article` });
assert.deepEqual([status, grab.status], [200, "done"]);
assert.equal((await fetch(grab.image_url)).headers.get("content-type"), "image/png");
assert.equal(await credits(), 24_998);
await page.goto(`${origin}/grabs`);
assert.equal(await page.locator(".card").count(), 2);
await look("journey-captures", 200);

// Its key is revoked, and opens nothing any more.
await follow("Keys");
await follow("Revoke build server");
await look("journey-revoke", 200);
assert.equal((await ask("/usage"))[0], 200);
await send("Revoke");
await look("journey-revoked", 200);
for (const path of ["/usage", `/grabs/${grab.id}`]) assert.equal((await ask(path))[0], 401, path);
assert.equal((await ask("/grabs", { url: `${site}/tiny` }))[0], 401);

// The first picture is deleted, and the person leaves.
await page.goto(captured);
await follow("Delete …");
await look("journey-delete", 200);
assert.equal((await fetch(address)).status, 200);
await send("Delete the picture");
await look("journey-deleted", 200);
assert.equal((await fetch(address)).status, 404);
await send("Sign out");
await look("journey-signed-out", 200);
await page.goto(captured);
assert.equal(new URL(page.url()).pathname, "/sign-in");
await look("journey-over", 200);

await close();
