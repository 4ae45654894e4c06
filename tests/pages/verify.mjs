// Browser walk through the verification of an e-mail address: node verify.mjs FILE, where FILE holds {mailing, reset,
// password, dir, screenshots}. `mailing` has the unverified account of ada@example.com, and `reset` is its link.
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { mailing, reset: link, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const ada = await open({ dir, screenshots, own: () => [new URL(mailing).host] });

// Somebody who is not signed in to the account.
const eve = await ada.visitor();
await eve.page.goto(`${mailing}/sign-up`);
await eve.fill({ "E-mail address": "ada@example.com", Password: "quite another password" });
await eve.send("Create account");
await eve.audit("sign-up-link-sent", 200);
await eve.page.goto(link);
await eve.audit("verify-email-signed-out", 200);
await eve.fill({ "New password": "short" });
await eve.send("Set the password and verify");
await eve.audit("verify-email-short", 422);

// The person.
await ada.page.goto(`${mailing}/sign-in`);
await ada.fill({ "E-mail address": "ada@example.com", Password: password });
await ada.send("Sign in");
await ada.audit("captures-unverified", 200);
await ada.page.goto(`${mailing}/teams`);
await ada.audit("teams-unverified", 200);
await ada.fill({ "Team name": "Another" });
await ada.send("Create team");
await ada.audit("unverified", 403);
await ada.send("Send another link");
await ada.audit("verification-sent", 200);
await ada.page.goto(link);
await ada.audit("verify-email", 200);
await ada.send("Verify");
await ada.page.getByText("E-mail address verified.").waitFor();
await ada.audit("verified", 200);
await ada.page.goto(link);
await ada.audit("verify-email-over", 404);

await ada.close();
