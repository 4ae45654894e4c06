// Browser walk through teams and invitations: node teams.mjs FILE, where FILE holds {silent, mailing, password, dir,
// screenshots}. Both services allow sign-up; `silent` sends no mail, `mailing` does, and has the account of
// ada@example.com.
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { silent, mailing, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [silent, mailing].map((url) => new URL(url).host);
const ada = await open({ dir, screenshots, own });
const { visitor } = ada;

async function signUp(somebody, origin, email) {
  await somebody.page.goto(`${origin}/sign-up`);
  await somebody.fill({ "E-mail address": email, Password: password });
  await somebody.send("Create account");
}

await ada.page.goto(`${mailing}/sign-in`);
await ada.fill({ "E-mail address": "ada@example.com", Password: password });
await ada.send("Sign in");

// Teams, and an invitation by email.
await ada.page.goto(`${mailing}/teams`);
await ada.audit("teams", 200);
await ada.send("Create team");
await ada.audit("teams-no-name", 422);
await ada.fill({ "Team name": "<b>Söhne & Töchter</b>" });
await ada.send("Create team");
await ada.audit("team-founded", 200);
await ada.fill({ "E-mail address": "no address" });
await ada.send("Invite");
await ada.audit("invite-no-address", 422);
await ada.fill({ "E-mail address": "bob@example.com" });
await ada.send("Invite");
await ada.audit("invited-by-mail", 200);
await ada.send("Revoke");
await ada.audit("invitation-taken-back", 200);
const people = await ada.page.getByRole("link", { name: "Members" }).evaluate((link) => link.href);
await ada.page.goto(people.replace("/people", "/settings"));
await ada.audit("team-settings", 200);
await ada.fill({ "Team name": "" });
await ada.send("Rename");
await ada.audit("rename-empty", 422);
await ada.page.goto(people.replace("/people", "/audit"));
await ada.audit("team-audit", 200);
await ada.page.getByLabel("Action", { exact: true }).selectOption({ label: "Key revoked" });
await ada.send("Filter");
await ada.audit("team-audit-no-match", 200);
await ada.page.goto(people.replace("/people", "/audit?day=never"));
await ada.audit("team-audit-wrong-filter", 422);
await ada.page.goto(people.replace("/people", "/leave"));
await ada.audit("leave", 200);
await ada.send("Leave team");
await ada.audit("last-owner", 409);

// The same without mail: the link is passed on by hand.
const eve = await visitor();
await signUp(eve, silent, "eve@example.com");
await eve.page.goto(`${silent}/teams`);
await eve.follow("Members");
await eve.audit("team-alone", 200);
const team = eve.page.url();
async function invite(email) {
  await eve.fill({ "E-mail address": email });
  await eve.send("Invite");
  return eve.page.getByLabel("Invitation link").inputValue();
}
const link = await invite("bob@example.com");
await eve.audit("invited-by-hand", 200);
await eve.page.goto(link);
await eve.audit("invitation-for-somebody-else", 200);
const bob = await visitor();
await bob.page.goto(link);
await bob.audit("invitation", 200);
await bob.fill({ Password: "short" });
await bob.send("Create account and join");
await bob.audit("invitation-short", 422);
await bob.fill({ Password: password });
await bob.send("Create account and join");
await bob.audit("joined", 200);
// A key whose link secret he sees, which stays in use when he is removed.
await bob.page.goto(team.replace("/people", "/keys"));
await bob.fill({ Name: "Bob’s key" });
await bob.page.getByRole("radio", { name: "Test" }).check();
await bob.send("Create key");
await bob.follow("Done");
await bob.follow("Link secret Bob’s key");
await bob.audit("link-secret-ask", 200);
await bob.send("Show secret");
await bob.audit("link-secret", 200);
await bob.follow("Replace secret…");
await bob.audit("link-secret-replace", 200);
await bob.send("Replace secret");
await bob.audit("link-secret-replaced", 200);
await bob.page.goto(link);
await bob.audit("invitation-over", 404);
await eve.page.goto(team);
const carol = await visitor();
await signUp(carol, silent, "carol@example.com");
const another = await invite("carol@example.com");
await carol.page.goto(another);
await carol.audit("invitation-signed-in", 200);
await carol.send("Join team");
await carol.page.goto(`${silent}/teams`);
await carol.audit("teams-two", 200);
await carol.page.goto(`${silent}/keys`);
await carol.audit("keys-with-other-teams", 200);
await eve.page.goto(team);
await eve.audit("team", 200);
const remove = await eve.page.getByRole("link", { name: "Remove bob@example.com" }).getAttribute("href");
await bob.page.goto(`${silent}${remove}`);
await bob.audit("not-owner", 403);
await eve.follow("Remove bob@example.com");
await eve.audit("remove", 200);
await eve.send("Remove");
await eve.audit("removed", 200);
await eve.page.goto(team);
await eve.audit("team-with-known-secrets", 200);
await eve.follow("Review and replace");
await eve.audit("known-secrets", 200);
await bob.page.goto(`${silent}/teams`);
await bob.audit("teams-none", 200);

await ada.close();
