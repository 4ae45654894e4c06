// Browser walk through the key and account pages: node account.mjs FILE, where FILE holds {silent, mailing, reset,
// password, dir, screenshots}. `silent` sends no mail, `mailing` does, and `reset` is its password reset link for
// ada@example.com.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { silent, mailing, reset, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [silent, mailing].map((url) => new URL(url).host);
const ada = await open({ dir, screenshots, own });
const { findings, visitor } = ada;
const other = "quite another password";

// Reset the password.
await ada.page.goto(`${silent}/forgotten-password`);
await ada.audit("forgotten-no-mail", 200);
await ada.fill({ "E-mail address": "ada@example.com" });
await ada.send("Request reset link");
await ada.audit("forgotten-no-mail-sent", 200);
await ada.page.goto(`${mailing}/sign-in`);
await ada.follow("Forgot your password?");
await ada.audit("forgotten", 200);
await ada.send("Send reset link");
await ada.audit("forgotten-empty", 422);
await ada.fill({ "E-mail address": "nobody@example.com" });
await ada.send("Send reset link");
await ada.audit("forgotten-sent", 200);
await ada.page.goto(reset);
await ada.audit("new-password", 200);
await ada.fill({ "New password": "short" });
await ada.send("Set password");
await ada.audit("new-password-short", 422);
await ada.fill({ "New password": other });
await ada.send("Set password");
await ada.audit("password-reset", 200);
await ada.page.goto(reset);
await ada.audit("link-over", 404);

// Keys.
await ada.page.goto(`${mailing}/keys`);
await ada.audit("keys-none", 200);
const keys = ada.page.url();
await ada.send("Create key");
await ada.audit("key-no-name", 422);
await ada.fill({ Name: "build server" });
await ada.page.getByRole("radio", { name: "Live" }).check();
await ada.send("Create key");
const key = await ada.page.getByLabel("Live key").inputValue();
assert.match(key, /^sk_live_[\w-]{43}$/);
await ada.audit("key-made", 200);
await ada.page.getByRole("button", { name: "Copy" }).first().click();
await ada.page.locator("#said", { hasText: "opi" }).waitFor();
const said = await ada.page.getByRole("status").innerText();
if (said !== "Copied.") findings.push(`the key was not copied: ${said}`);
await ada.audit("key-copied", 200);
// The programs have the key in them. Only that of the chosen language is shown.
const program = ada.page.locator("section figure.code:visible code").first();
assert.ok((await program.innerText()).includes(`'Authorization: Bearer ${key}'`));
await ada.page.getByRole("button", { name: "Python" }).click();
assert.match(await program.innerText(), /requests\.post\(/);
assert.ok((await program.innerText()).includes(`"Bearer ${key}"`));
// A reload sends the form again, and makes no second key.
await ada.page.reload();
await ada.audit("key-created-already", 409);
assert.equal(await ada.page.getByRole("link", { name: "Revoke build server" }).count(), 1);
await ada.page.goto(keys);
assert.equal(ada.page.url(), keys);
const list = await ada.page.content();
assert.ok(!list.includes(key) && list.includes(key.slice(-4)), "the list shows the end of the key alone");

// The requests of keys: none, one that was refused, and its record.
const requests = keys.replace(/keys$/, "requests");
await ada.page.goto(requests);
await ada.audit("requests-none", 200);
const refused = await fetch(`${mailing}/v1/grabs`, {
  method: "POST",
  headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
  body: JSON.stringify({ url: "https://example.com/", width: 1, full_page: true }),
});
assert.equal(refused.status, 400);
await ada.page.goto(requests);
await ada.audit("requests", 200);
await ada.page.getByLabel("Error code").selectOption("invalid_viewport");
await ada.send("Filter");
await ada.audit("requests-filtered", 200);
await ada.page.getByRole("row").nth(1).getByRole("link").click();
await ada.page.waitForURL("**/requests/*");
await ada.audit("request", 200);
await ada.page.getByRole("button", { name: "Copy" }).click();
await ada.page.locator("#said", { hasText: "opi" }).waitFor();
await ada.page.goto(keys);

await ada.fill({ Name: "W".repeat(60) });
await ada.send("Create key");
await ada.audit("key-made-long-name", 200);
await ada.follow("Done");
await ada.audit("keys", 200);
await ada.page.goto(keys);
await ada.fill({ Name: "read only" });
await ada.page.getByLabel("Create Capture pages and sites, and create, change and delete monitors.").uncheck();
await ada.page.getByLabel("Manage Manage webhooks").uncheck();
await ada.send("Create key");
await ada.audit("key-made-read-only", 200);
assert.match(await ada.page.locator("section figure.code:visible code").first().innerText(), /requests\.get\(/);
await ada.follow("Done");
await ada.follow("Revoke build server");
await ada.audit("key-revoke", 200);
await ada.follow("Cancel");
assert.equal(ada.page.url(), keys);
await ada.follow("Revoke build server");
await ada.send("Revoke");
await ada.audit("key-revoked", 200);

// Without JavaScript: the key field can be selected, and there is no copy button.
const plain = await visitor({ javaScriptEnabled: false });
await plain.page.goto(`${mailing}/sign-in`);
await plain.fill({ "E-mail address": "ada@example.com", Password: other });
await plain.page.getByRole("button", { name: "Sign in" }).click();
await plain.page.waitForURL("**/teams/*/grabs");
await plain.page.goto(keys);
await plain.fill({ Name: "without scripts" });
await plain.page.getByRole("button", { name: "Create key" }).click();
assert.match(await plain.page.getByLabel("Test key").inputValue(), /^sk_test_/);
assert.equal(await plain.page.getByRole("button", { name: "Copy" }).count(), 0);
await plain.follow("Done");
await plain.follow("Revoke without scripts");
await plain.page.getByRole("button", { name: "Revoke" }).click();
await plain.page.waitForURL("**/keys?revoked");

// The account and its sessions.
await ada.page.goto(`${mailing}/account`);
await ada.audit("account", 200);
await ada.fill({ "Current password": password, "New password": password });
await ada.send("Change password");
await ada.audit("account-wrong", 422);
await ada.fill({ "Current password": other, "New password": password });
await ada.send("Change password");
await ada.audit("account-changed", 200);

await ada.close();
