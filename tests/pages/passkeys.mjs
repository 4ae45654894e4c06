// Browser walk through the pages of passkeys, with a virtual device: node passkeys.mjs FILE, where FILE holds {origin, email,
// password, dir, screenshots}.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { origin, email, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { context, page, audit, send, follow, fill, visitor, close } = await open({
  dir,
  screenshots,
  own: () => [new URL(origin).host],
});
const grabs = /^\/teams\/[0-9a-f-]{36}\/grabs$/;

const devtools = await context.newCDPSession(page);
await devtools.send("WebAuthn.enable");
const options = {
  protocol: "ctap2",
  transport: "internal",
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
};
const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", { options });
const credentials = async () => (await devtools.send("WebAuthn.getCredentials", { authenticatorId })).credentials;

async function signIn() {
  await page.goto(`${origin}/sign-in`);
  await fill({ "E-mail address": email, Password: password });
  await send("Sign in");
}

// The first passkey, which turns on the second factor.
await signIn();
await page.goto(`${origin}/account`);
await audit("account-without-passkeys", 200);
await follow("Manage passkeys");
await audit("passkeys-none", 200);
await follow("Add a passkey");
await audit("passkey-new", 200);
assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Chrome on Linux");
await fill({ Name: "", Password: password });
await send("Continue");
await audit("passkey-new-without-name", 422);
await fill({ Name: "Laptop", Password: password });
await send("Continue");
await audit("passkey-create", 200);
await send("Create the passkey");
await audit("passkey-recovery-codes", 200);
const recovery = (await page.getByLabel("Recovery codes").inputValue()).split("\n");
assert.equal((await credentials()).length, 1);
assert.equal((await credentials())[0].rpId, "localhost");
await page.goto(`${origin}/account/passkeys`);
await audit("passkeys-one", 200);

// The device has a passkey already, so it creates no other one.
await follow("Add a passkey");
await audit("passkey-another", 200);
await fill({ Name: "Again", Password: password, "Recovery code": recovery[0] });
await send("Continue");
await page.getByRole("button", { name: "Create the passkey" }).click();
await page.locator("#passkey-said", { hasText: "This device has a passkey for your account already." }).waitFor();
await audit("passkey-create-refused", 200);

// Sign in with it.
await send("Sign out");
await page.goto(`${origin}/sign-in`);
await audit("sign-in-with-passkeys", 200);
await send("Sign in with a passkey");
assert.match(new URL(page.url()).pathname, grabs);
await page.goto(`${origin}/account/second-factor`);
await audit("second-factor-passkeys", 200);
await follow("Add an authenticator app");
await audit("second-factor-app", 200);
await page.getByRole("button", { name: "Copy" }).click();
await page.locator("#said", { hasText: "Copied." }).waitFor();
await fill({ "Code of the new app": "12", Password: password });
await send("Confirm with a passkey instead");
await audit("second-factor-app-malformed", 422);

// It is the second step after the password.
await send("Sign out");
await signIn();
assert.equal(new URL(page.url()).pathname, "/sign-in/code");
await audit("sign-in-code-or-passkey", 200);
// A device that does not verify its user is of no use.
await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
await page.getByRole("button", { name: "Use a passkey" }).click();
await page.locator("#passkey-said", { hasText: "No passkey was used. Try again." }).waitFor();
await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
await send("Use a passkey");
assert.match(new URL(page.url()).pathname, grabs);
await page.goto(`${origin}/account`);
await audit("account-with-passkeys", 200);

// A passkey that the service does not know.
const [own] = await credentials();
await devtools.send("WebAuthn.removeCredential", { authenticatorId, credentialId: own.credentialId });
const unknown = { ...own, credentialId: Buffer.from("another").toString("base64") };
await devtools.send("WebAuthn.addCredential", { authenticatorId, credential: unknown });
await send("Sign out");
await page.goto(`${origin}/sign-in`);
await send("Sign in with a passkey");
await audit("sign-in-passkey-unknown", 422);
await devtools.send("WebAuthn.clearCredentials", { authenticatorId });
await devtools.send("WebAuthn.addCredential", { authenticatorId, credential: own });
await send("Sign in with a passkey");
assert.match(new URL(page.url()).pathname, grabs);

// Rename and remove it, with the passkey instead of a code.
await page.goto(`${origin}/account/passkeys`);
await follow("Laptop");
await audit("passkey-page", 200);
await fill({ Name: "Blue key" });
await send("Rename");
await audit("passkeys-renamed", 200);
await follow("Blue key");
await send("Remove passkey");
await audit("passkey-remove-empty", 422);
await page.getByRole("button", { name: "Remove with a passkey" }).click();
assert.equal(await page.getByLabel("Password").evaluate((field) => field.validity.valueMissing), true);
await fill({ Password: password });
await send("Remove with a passkey");
assert.equal(page.url(), `${origin}/account/passkeys?off`);
await audit("passkeys-removed", 200);

// Without scripts the pages say what passkeys need, and the password works.
const plain = await visitor({ javaScriptEnabled: false });
await plain.page.goto(`${origin}/sign-in`);
// The browser does not show the element `noscript` here, although it runs no scripts.
assert.match(await plain.page.locator("noscript").first().textContent(), /Passkeys need JavaScript/);
assert.equal(await plain.page.getByRole("button", { name: "Sign in with a passkey" }).isDisabled(), true);
await plain.page.getByLabel("E-mail address").fill(email);
await plain.page.getByLabel("Password").fill(password);
await plain.page.getByRole("button", { name: "Sign in", exact: true }).click();
await plain.page.waitForURL(/\/grabs$/);

await close();
