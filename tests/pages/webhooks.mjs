// Browser walk through webhooks, with a receiver: node webhooks.mjs FILE, where FILE holds {origin, site, allowed,
// email, former, password, dir, screenshots}. The person has an account, one team, and credits; `former` is the address
// of another one, whose team has a webhook without a known creator. `site` serves the pages to capture, and `allowed` is
// the address of the receiver. Findings are printed, and make the exit status 1.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { open } from "./audits.mjs";

const { origin, site, allowed, email, former, password, dir, screenshots } = JSON.parse(
  readFileSync(process.argv[2], "utf8"),
);
const own = () => [new URL(origin).host];
const { browser, context, page, audit, send, fill, close, visitor } = await open({ dir, screenshots, own });

const path = () => new URL(page.url()).pathname;
const follow = (name) =>
  Promise.all([page.waitForNavigation(), page.getByRole("link", { name, exact: true }).first().click()]);
const state = () => page.locator(".stands .state").innerText();

// The receiver responds with this status. Without one, it holds the response.
let status = 200;
const held = [];
const receiver = createServer((request, response) => {
  request.resume();
  if (status === undefined) return held.push(response);
  response.writeHead(status);
  response.end();
  receiver.emit("answered");
});
receiver.listen(0, allowed);
await once(receiver, "listening");
const hook = `http://${allowed}:${receiver.address().port}/hooks/grabd`;

// Sign in, with a team without webhooks.
await page.goto(`${origin}/grabs`);
await fill({ "E-mail address": email, Password: password });
await send("Sign in");
const team = path().replace("/grabs", "");
await follow("Webhooks");
await audit("webhooks-none", 200);

// The form and its error messages.
await follow("Create webhook");
await audit("webhook-new", 200);
await send("Create webhook");
await audit("webhook-new-empty", 422);
await fill({ "Endpoint URL": "https://10.0.0.1/hooks/grabd" });
await send("Create webhook");
await audit("webhook-new-private", 422);
assert.equal(await page.getByLabel("Endpoint URL").inputValue(), "https://10.0.0.1/hooks/grabd");
await page.getByRole("link", { name: /must be a URL whose host is a public address; it was "10.0.0.1"/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "url");
await fill({ "Endpoint URL": hook });
await page.getByLabel("All events").uncheck();
await send("Create webhook");
await audit("webhook-new-hears-nothing", 422);
await page.getByLabel("Capture done").check();
await page.getByLabel("Capture failed").check();
await fill({ Description: "The shop’s back office" });

// The secret is shown once.
await send("Create webhook");
await audit("webhook-secret", 200);
const secret = await page.getByLabel(/^Secret of/).inputValue();
assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
await page.getByRole("button", { name: "Copy" }).first().click();
await page.locator("#said", { hasText: /^Copied\.$/ }).waitFor();
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
await follow("Done");
const webhook = page.url();
await audit("webhook-nothing-sent", 200);

// Messages and their responses. The page of a message waits for the response.
await send("Send test message");
assert.equal(await state(), "Delivered");
await audit("delivery", 200);
status = 500;
await page.goto(webhook);
await send("Send test message");
assert.equal(await state(), "Failed, will retry");
await audit("delivery-failed", 200);
status = undefined;
await send("Send again");
assert.equal(await state(), "Sending");
await audit("delivery-sending", 200);
status = 200;
held.forEach((response) => response.writeHead(204).end());
await follow("Refresh");
assert.equal(await state(), "Delivered");

// A capture is delivered.
const delivered = once(receiver, "answered");
await page.goto(`${origin}${team}/capture`);
await fill({ "URL": `${site}/tiny?${"and=a&".repeat(30)}query` });
await page.getByRole("switch", { name: "Test mode" }).setChecked(false);
await page.getByRole("button", { name: "Capture", exact: true }).click();
await delivered;
await page.goto(webhook);
await page.getByRole("link", { name: "grab.done" }).click();
await page.waitForURL("**/deliveries/**");
await page.goto(`${page.url()}?sent`);
assert.equal(await state(), "Delivered");
await audit("delivery-of-capture", 200);
await follow("View capture");
assert.match(path(), /\/grabs\/[0-9a-f-]{36}$/);
status = 503;
await page.goto(webhook);
await send("Send test message");
await page.goto(webhook);
await audit("webhook", 200);

// Changes to long values.
await follow("Edit…");
await audit("webhook-change", 200);
await fill({ "Endpoint URL": "http://127.0.0.1/" });
await send("Save changes");
await audit("webhook-change-private", 422);
await fill({
  "Endpoint URL": `${hook}/${"a-rather-long-path-without-a-place-to-break-it".repeat(4)}?and=a&query=too`,
  Description: "W".repeat(200),
});
await send("Save changes");
await audit("webhook-changed", 200);

// A new secret.
await follow("Rotate secret…");
await audit("webhook-new-secret", 200);
await follow("Cancel");
await follow("Rotate secret…");
await send("Rotate secret");
await audit("webhook-secret-again", 200);
assert.notEqual(await page.getByLabel(/^New secret of/).inputValue(), secret);
await follow("Done");

// Disabled, enabled, and disabled by 410.
await follow("Disable…");
await audit("webhook-switch-off", 200);
await send("Disable webhook");
await audit("webhook-off", 200);
await page.locator(".log a").first().click();
await page.waitForURL("**/deliveries/**");
assert.equal(await state(), "Failed");
await audit("delivery-given-up", 200);
await page.goto(webhook);
const test = `${webhook}/test`;
await page.$eval("main form", (form, test) => (form.action = test), test);
await send("Enable");
await audit("webhook-is-off", 409);
await page.goto(webhook);
await send("Enable");
await audit("webhook-on", 200);
status = 410;
await send("Send test message");
await page.goto(webhook);
await audit("webhook-gone", 200);

// Two more webhooks, and the list.
for (const [address, place] of [["https://hooks.example.com/grabd", "Test"], ["https://example.org/", "Live"]]) {
  await page.goto(`${origin}${team}/webhooks/new`);
  await fill({ "Endpoint URL": address });
  await page.getByRole("radio", { name: new RegExp(`^${place}`) }).check();
  await send("Create webhook");
}
await follow("Webhooks");
await audit("webhooks", 200);
await page.goto(webhook);
await follow("Delete…");
await audit("webhook-delete", 200);
await send("Delete");
await audit("webhooks-deleted", 200);
await page.goto(webhook);
await audit("no-such-webhook", 404);
await page.goto(`${origin}${team}/webhooks/${team.slice(7)}/deliveries/x`);
await audit("no-such-delivery", 404);

// Without JavaScript: the secret can be selected, and messages are sent as well.
const storageState = await context.storageState();
const plain = await browser.newContext({ javaScriptEnabled: false, storageState });
const old = await plain.newPage();
old.setDefaultTimeout(30_000);
const press = (name) => Promise.all([old.waitForNavigation(), old.getByRole("button", { name }).click()]);
status = 200;
await old.goto(`${origin}${team}/webhooks/new`);
await old.getByLabel("Endpoint URL").fill(hook);
await press("Create webhook");
assert.match(await old.getByLabel(/^Secret of/).inputValue(), /^whsec_/);
assert.equal(await old.getByRole("button", { name: "Copy" }).count(), 0);
await Promise.all([old.waitForNavigation(), old.getByRole("link", { name: "Done" }).click()]);
await press("Send test message");
assert.equal(await old.locator(".stands .state").innerText(), "Delivered");

// A webhook of an earlier version, whose creator was not recorded.
const bob = await visitor();
await bob.page.goto(`${origin}/apps`);
await bob.fill({ "E-mail address": former, Password: password });
await bob.send("Sign in");
await bob.audit("apps-with-unknown-webhooks", 200);
await bob.page.getByRole("link", { name: /^webhooks of/ }).click();
await bob.page.waitForURL("**/webhooks");
await bob.audit("webhooks-unknown", 200);
await bob.page.locator("h2 a").click();
await bob.page.waitForURL("**/webhooks/*");
await bob.audit("webhook-unknown", 200);
await bob.send("Keep webhook");
assert.equal(await bob.page.getByRole("status").innerText(), "Webhook kept.");
assert.equal(await bob.page.getByText("Do you know").count(), 0);
await bob.page.goto(`${origin}/apps`);
assert.equal(await bob.page.getByRole("link", { name: /^webhooks of/ }).count(), 0);

receiver.closeAllConnections();
receiver.close();
await close();
