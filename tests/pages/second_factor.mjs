// Browser walk through the pages of the second factor: node second_factor.mjs FILE, where FILE holds {origin, email,
// password, dir, screenshots}. The service requires a second factor of operators, and `email` is one.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { origin, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { context, page, audit, send, follow, fill, findings, close } = await open({
  dir,
  screenshots,
  own: () => [new URL(origin).host],
});

// The code that an authenticator app shows (RFC 6238), some steps of 30 seconds from now.
function code(secret, later) {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...secret].map((char) => alphabet.indexOf(char).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const digest = createHmac("sha1", key).update(counter).digest();
  const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}

async function signIn() {
  await page.goto(`${origin}/sign-in`);
  await fill({ "E-mail address": email, Password: password });
  await send("Sign in");
}

// The operator pages lead to the page that sets it up.
await signIn();
await page.goto(`${origin}/operator`);
assert.equal(page.url(), `${origin}/account/second-factor?required`);
await audit("second-factor-required", 200);
await page.goto(`${origin}/account`);
await audit("account-second-factor-off", 200);
await follow("Set up second factor");
await audit("second-factor-setup", 200);
const secret = await page.getByLabel("Secret", { exact: true }).inputValue();
assert.match(secret, /^[A-Z2-7]{32}$/);
await page.getByRole("button", { name: "Copy" }).click();
await page.locator("#said", { hasText: "Copied." }).waitFor();
await fill({ Code: "12", Password: password });
await send("Turn on");
await audit("second-factor-setup-malformed", 422);
assert.equal(await page.getByLabel("Secret", { exact: true }).inputValue(), secret);
await fill({ Code: code(secret, 0), Password: "nobody knows it" });
await send("Turn on");
await audit("second-factor-setup-wrong-password", 422);
await fill({ Code: code(secret, 0), Password: password });
await send("Turn on");
await audit("second-factor-codes", 200);
const recovery = (await page.getByLabel("Recovery codes").inputValue()).split("\n");
assert.equal(recovery.length, 10);
await page.getByRole("button", { name: "Copy" }).click();
await page.locator("#said", { hasText: "Copied." }).waitFor();
await follow("I have saved them");
await audit("second-factor-on", 200);
await page.goto(`${origin}/operator`);
assert.equal(page.url(), `${origin}/operator`);

// Sign in with a code of the app, and with a recovery code.
await send("Sign out");
await signIn();
await audit("sign-in-code", 200);
assert.equal(await page.getByLabel("Code", { exact: true }).getAttribute("inputmode"), "numeric");
await fill({ Code: "aaaa-aaaa-aaaa-aaaa" });
await send("Sign in");
await audit("sign-in-code-wrong", 422);
await fill({ Code: code(secret, 1) });
await send("Sign in");
assert.match(new URL(page.url()).pathname, /^\/teams\/[0-9a-f-]{36}\/grabs$/);
await send("Sign out");
await signIn();
await follow("Use a recovery code");
await audit("sign-in-recovery-code", 200);
await fill({ "Recovery code": "x" });
await send("Sign in");
await audit("sign-in-recovery-code-malformed", 422);
await fill({ "Recovery code": recovery[0] });
await send("Sign in");
assert.match(new URL(page.url()).pathname, /^\/teams\/[0-9a-f-]{36}\/grabs$/);

// New recovery codes.
await page.goto(`${origin}/account`);
await audit("account-second-factor-on", 200);
await follow("Manage second factor");
await follow("New recovery codes");
await audit("second-factor-new-codes", 200);
await fill({ Code: recovery[0], Password: password });
await send("Create codes");
await audit("second-factor-new-codes-used", 422);
await fill({ Code: recovery[1], Password: password });
await send("Create codes");
await audit("second-factor-codes-replaced", 200);
const replaced = (await page.getByLabel("Recovery codes").inputValue()).split("\n");
if (replaced.some((own) => recovery.includes(own))) findings.push("a former recovery code is shown again");

// Off again, and an expired sign-in.
await follow("I have saved them");
await follow("Turn off");
await audit("second-factor-off", 200);
await send("Turn off");
await audit("second-factor-off-empty", 422);
await send("Sign out");
await signIn();
await context.clearCookies({ name: "grabd_sign_in" });
await context.addCookies([{ name: "grabd_sign_in", value: "x", url: origin }]);
await page.reload();
assert.equal(new URL(page.url()).pathname, "/sign-in");
await audit("sign-in-expired", 200);
await signIn();
await fill({ Code: replaced[0] });
await send("Sign in");
await page.goto(`${origin}/account/second-factor/off`);
await fill({ Code: replaced[1], Password: password });
await send("Turn off");
await audit("account-second-factor-turned-off", 200);

await close();
