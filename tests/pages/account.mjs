// Walks through the pages of keys and accounts as a person does, in a real browser, and looks at each: node account.mjs
// FILE, where FILE holds {silent, mailing, reset, password, dir, screenshots}. `silent` sends no mail, `mailing` does, and
// `reset` is a link of it for ada@example.com.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./eyes.mjs";

const { silent, mailing, reset, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [silent, mailing].map((url) => new URL(url).host);
const ada = await open({ dir, screenshots, own });
const { findings, visitor } = ada;
const other = "quite another password";

// A password is forgotten, and chosen anew.
await ada.page.goto(`${silent}/forgotten-password`);
await ada.look("forgotten-no-mail", 200);
await ada.fill({ "E-mail address": "ada@example.com" });
await ada.send("Leave the link");
await ada.look("forgotten-no-mail-sent", 200);
await ada.page.goto(`${mailing}/sign-in`);
await ada.follow("Forgotten your password?");
await ada.look("forgotten", 200);
await ada.send("Send me the link");
await ada.look("forgotten-empty", 422);
await ada.fill({ "E-mail address": "nobody@example.com" });
await ada.send("Send me the link");
await ada.look("forgotten-sent", 200);
await ada.page.goto(reset);
await ada.look("new-password", 200);
await ada.fill({ "New password": "short" });
await ada.send("Set the password");
await ada.look("new-password-short", 422);
await ada.fill({ "New password": other });
await ada.send("Set the password");
await ada.look("sign-in-password-set", 200);
await ada.fill({ "E-mail address": "ada@example.com", Password: other });
await ada.send("Sign in");
await ada.page.goto(reset);
await ada.look("link-over", 404);

// Keys.
await ada.page.goto(`${mailing}/keys`);
await ada.look("keys-none", 200);
const keys = ada.page.url();
await ada.send("Make the key");
await ada.look("key-no-name", 422);
await ada.fill({ Name: "build server" });
await ada.page.getByRole("radio", { name: "Live" }).check();
await ada.send("Make the key");
const key = await ada.page.getByLabel("Live key").inputValue();
assert.match(key, /^sk_live_[\w-]{43}$/);
await ada.look("key-made", 200);
await ada.page.getByRole("button", { name: "Copy" }).click();
await ada.page.locator("#said", { hasText: "opi" }).waitFor();
const said = await ada.page.getByRole("status").innerText();
if (said !== "Copied.") findings.push(`the key was not copied: ${said}`);
await ada.look("key-copied", 200);
await ada.follow("I have copied it");
assert.equal(ada.page.url(), keys);
const list = await ada.page.content();
assert.ok(!list.includes(key) && list.includes(key.slice(-4)), "the list shows the end of the key alone");
await ada.fill({ Name: "W".repeat(60) });
await ada.send("Make the key");
await ada.look("key-made-long-name", 200);
await ada.follow("I have copied it");
await ada.look("keys", 200);
await ada.follow("Revoke build server");
await ada.look("key-revoke", 200);
await ada.follow("Keep it as it is");
assert.equal(ada.page.url(), keys);
await ada.follow("Revoke build server");
await ada.send("Revoke");
await ada.look("key-revoked", 200);

// Without scripts, the same: the field is there to be selected, and no button that does nothing.
const plain = await visitor({ javaScriptEnabled: false });
await plain.page.goto(`${mailing}/sign-in`);
await plain.fill({ "E-mail address": "ada@example.com", Password: other });
await plain.page.getByRole("button", { name: "Sign in" }).click();
await plain.page.waitForURL("**/teams/*/grabs");
await plain.page.goto(keys);
await plain.fill({ Name: "without scripts" });
await plain.page.getByRole("button", { name: "Make the key" }).click();
assert.match(await plain.page.getByLabel("Test key").inputValue(), /^sk_test_/);
assert.equal(await plain.page.getByRole("button", { name: "Copy" }).count(), 0);
await plain.follow("I have copied it");
await plain.follow("Revoke without scripts");
await plain.page.getByRole("button", { name: "Revoke" }).click();
await plain.page.waitForURL("**/keys?revoked");

// The account, and where one is signed in.
await ada.page.goto(`${mailing}/account`);
await ada.look("account", 200);
await ada.fill({ "Current password": password, "New password": password });
await ada.send("Change the password");
await ada.look("account-wrong", 422);
await ada.fill({ "Current password": other, "New password": password });
await ada.send("Change the password");
await ada.look("account-changed", 200);

await ada.close();
