// Walks through the pages of teams and their invitations as people do, in a real browser, and looks at each: node teams.mjs
// FILE, where FILE holds {silent, mailing, password, dir, screenshots}. Both services let people sign up; `silent` sends no
// mail, `mailing` does.
import { readFileSync } from "node:fs";
import { open } from "./eyes.mjs";

const { silent, mailing, password, dir, screenshots } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const own = () => [silent, mailing].map((url) => new URL(url).host);
const ada = await open({ dir, screenshots, own });
const { visitor } = ada;

async function signUp(somebody, origin, email) {
  await somebody.page.goto(`${origin}/sign-up`);
  await somebody.fill({ "E-mail address": email, Password: password });
  await somebody.send("Make the account");
}

await signUp(ada, mailing, "ada@example.com");

// Teams, and an invitation by mail.
await ada.page.goto(`${mailing}/teams`);
await ada.look("teams", 200);
await ada.send("Make the team");
await ada.look("teams-no-name", 422);
await ada.fill({ "Name of the new team": "<b>Söhne & Töchter</b>" });
await ada.send("Make the team");
await ada.look("team-founded", 200);
await ada.fill({ "E-mail address": "no address" });
await ada.send("Invite");
await ada.look("invite-no-address", 422);
await ada.fill({ "E-mail address": "bob@example.com" });
await ada.send("Invite");
await ada.look("invited-by-mail", 200);
await ada.send("Take back");
await ada.look("invitation-taken-back", 200);
await ada.fill({ "Name of the team": "" });
await ada.send("Rename");
await ada.look("rename-empty", 422);
const people = await ada.page.getByRole("link", { name: "People" }).evaluate((link) => link.href);
await ada.page.goto(people.replace("/people", "/leave"));
await ada.look("leave", 200);
await ada.send("Leave the team");
await ada.look("last-owner", 409);

// The same where no mail is sent: the link is passed on.
const eve = await visitor();
await signUp(eve, silent, "eve@example.com");
await eve.page.goto(`${silent}/teams`);
await eve.follow("People");
await eve.look("team-alone", 200);
const team = eve.page.url();
async function invite(email) {
  await eve.fill({ "E-mail address": email });
  await eve.send("Invite");
  return eve.page.getByLabel("Link for whoever you invited").inputValue();
}
const link = await invite("bob@example.com");
await eve.look("invited-by-hand", 200);
await eve.page.goto(link);
await eve.look("invitation-for-somebody-else", 200);
const bob = await visitor();
await bob.page.goto(link);
await bob.look("invitation", 200);
await bob.fill({ Password: "short" });
await bob.send("Make the account and join");
await bob.look("invitation-short", 422);
await bob.fill({ Password: password });
await bob.send("Make the account and join");
await bob.look("joined", 200);
await bob.page.goto(link);
await bob.look("invitation-over", 404);
await eve.page.goto(team);
const carol = await visitor();
await signUp(carol, silent, "carol@example.com");
const another = await invite("carol@example.com");
await carol.page.goto(another);
await carol.look("invitation-signed-in", 200);
await carol.send("Join the team");
await carol.page.goto(`${silent}/teams`);
await carol.look("teams-two", 200);
await carol.page.goto(`${silent}/keys`);
await carol.look("keys-with-other-teams", 200);
await eve.page.goto(team);
await eve.look("team", 200);
const remove = await eve.page.getByRole("link", { name: "Remove bob@example.com" }).getAttribute("href");
await bob.page.goto(`${silent}${remove}`);
await bob.look("not-owner", 403);
await eve.follow("Remove bob@example.com");
await eve.look("remove", 200);
await eve.send("Remove");
await eve.look("removed", 200);
await bob.page.goto(`${silent}/teams`);
await bob.look("teams-none", 200);

await ada.close();
