// Makes webhooks as a person does, in a real browser, has messages sent to a receiver of its own, and looks at every page
// on the way: node webhooks.mjs FILE, where FILE holds {origin, site, allowed, email, password, dir, screenshots}. The
// person has an account, one team, and credits; `site` is where the pages to capture are, and `allowed` the address at
// which the receiver can be reached. Whatever is wrong is printed, and ends the walk with 1.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { open } from "./eyes.mjs";

const { origin, site, allowed, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [new URL(origin).host];
const { browser, context, page, look, send, fill, close } = await open({ dir, screenshots, own });

const path = () => new URL(page.url()).pathname;
const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);
const state = () => page.locator(".stands .state").innerText();

// The receiver answers with this status, and keeps who asks waiting where there is none.
let status = 200;
const kept = [];
const receiver = createServer((request, response) => {
  request.resume();
  if (status === undefined) return kept.push(response);
  response.writeHead(status);
  response.end();
  receiver.emit("answered");
});
receiver.listen(0, allowed);
await once(receiver, "listening");
const hook = `http://${allowed}:${receiver.address().port}/hooks/grabd`;

// In, and to a team that has no webhook.
await page.goto(`${origin}/grabs`);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
const team = path().replace("/grabs", "");
await follow("Webhooks");
await look("webhooks-none", 200);

// The form, and what it says about mistakes.
await follow("Make the first webhook");
await look("webhook-new", 200);
await send("Make the webhook");
await look("webhook-new-empty", 422);
await fill({ "Address of your receiver": "https://10.0.0.1/hooks/grabd" });
await send("Make the webhook");
await look("webhook-new-private", 422);
assert.equal(await page.getByLabel("Address of your receiver").inputValue(), "https://10.0.0.1/hooks/grabd");
await page.getByRole("link", { name: /must be a URL whose host is a public address; it was "10.0.0.1"/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "url");
await fill({ "Address of your receiver": hook });
await page.getByLabel("Everything").uncheck();
await send("Make the webhook");
await look("webhook-new-hears-nothing", 422);
await page.getByLabel("A capture is done").check();
await page.getByLabel("A capture has failed").check();
await fill({ Description: "The shop’s back office" });

// Its secret, once.
await send("Make the webhook");
await look("webhook-secret", 200);
const secret = await page.getByLabel(/^Secret of/).inputValue();
assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
await page.getByRole("button", { name: "Copy" }).click();
await page.locator("#said", { hasText: /^Copied\.$/ }).waitFor();
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
await follow("I have copied it");
const webhook = page.url();
await look("webhook-nothing-sent", 200);

// What is sent, and how it is answered: the page of a message has waited for that.
await send("Send a test");
assert.equal(await state(), "Delivered");
await look("delivery", 200);
status = 500;
await page.goto(webhook);
await send("Send a test");
assert.equal(await state(), "Failed so far");
await look("delivery-failed", 200);
status = undefined;
await send("Send it again now");
assert.equal(await state(), "Sending");
await look("delivery-sending", 200);
status = 200;
kept.forEach((response) => response.writeHead(204).end());
await follow("Look again");
assert.equal(await state(), "Delivered");

// A capture is told.
const told = once(receiver, "answered");
await page.goto(`${origin}${team}/capture`);
await fill({ "Address of the page": `${site}/tiny?${"and=a&".repeat(30)}query` });
await page.getByRole("radio", { name: /^Live/ }).check();
await send("Capture");
await told;
await page.goto(webhook);
await page.getByRole("link", { name: "grab.done" }).click();
await page.waitForURL("**/deliveries/**");
await page.goto(`${page.url()}?sent`);
assert.equal(await state(), "Delivered");
await look("delivery-of-capture", 200);
await follow("See the capture");
assert.match(path(), /\/grabs\/[0-9a-f-]{36}$/);
status = 503;
await page.goto(webhook);
await send("Send a test");
await page.goto(webhook);
await look("webhook", 200);

// Changed, into what is long.
await follow("Change …");
await look("webhook-change", 200);
await fill({ "Address of your receiver": "http://127.0.0.1/" });
await send("Keep the changes");
await look("webhook-change-private", 422);
await fill({
  "Address of your receiver": `${hook}/${"a-rather-long-path-without-a-place-to-break-it".repeat(4)}?and=a&query=too`,
  Description: "W".repeat(200),
});
await send("Keep the changes");
await look("webhook-changed", 200);

// A new secret.
await follow("New secret …");
await look("webhook-new-secret", 200);
await follow("Keep it as it is");
await follow("New secret …");
await send("New secret");
await look("webhook-secret-again", 200);
assert.notEqual(await page.getByLabel(/^New secret of/).inputValue(), secret);
await follow("I have copied it");

// Off, on, gone.
await follow("Switch off …");
await look("webhook-switch-off", 200);
await send("Switch off");
await look("webhook-off", 200);
await page.locator(".log a").first().click();
await page.waitForURL("**/deliveries/**");
assert.equal(await state(), "Given up");
await look("delivery-given-up", 200);
await page.goto(webhook);
const test = `${webhook}/test`;
await page.$eval("main form", (form, test) => (form.action = test), test);
await send("Switch on");
await look("webhook-is-off", 409);
await page.goto(webhook);
await send("Switch on");
await look("webhook-on", 200);
status = 410;
await send("Send a test");
await page.goto(webhook);
await look("webhook-gone", 200);

// Two more, and the list of them all.
for (const [address, place] of [["https://hooks.example.com/grabd", "Test"], ["https://example.org/", "Live"]]) {
  await page.goto(`${origin}${team}/webhooks/new`);
  await fill({ "Address of your receiver": address });
  await page.getByRole("radio", { name: new RegExp(`^${place}`) }).check();
  await send("Make the webhook");
}
await follow("Webhooks");
await look("webhooks", 200);
await page.goto(webhook);
await follow("Delete …");
await look("webhook-delete", 200);
await send("Delete");
await look("webhooks-deleted", 200);
await page.goto(webhook);
await look("no-such-webhook", 404);
await page.goto(`${origin}${team}/webhooks/${team.slice(7)}/deliveries/x`);
await look("no-such-delivery", 404);

// Without script: the secret can be selected by hand, and what is sent is answered as well.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const old = await plain.newPage();
old.setDefaultTimeout(30_000);
const press = (name) => Promise.all([old.waitForNavigation(), old.getByRole("button", { name }).click()]);
status = 200;
await old.goto(`${origin}${team}/webhooks/new`);
await old.getByLabel("Address of your receiver").fill(hook);
await press("Make the webhook");
assert.match(await old.getByLabel(/^Secret of/).inputValue(), /^whsec_/);
assert.equal(await old.getByRole("button", { name: "Copy" }).count(), 0);
await Promise.all([old.waitForNavigation(), old.getByRole("link", { name: "I have copied it" }).click()]);
await press("Send a test");
assert.equal(await old.locator(".stands .state").innerText(), "Delivered");

receiver.closeAllConnections();
receiver.close();
await close();
