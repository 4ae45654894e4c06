// Browser walk through the operator pages: node operator.mjs FILE, where FILE holds {fresh, busy, team, others,
// operator, member, password, dir, screenshots}. `fresh` has no history, `busy` has; `team` is a team of `busy`, and
// `others` the name prefix of many teams. Findings are printed, and make the exit status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./audits.mjs";

const { fresh, busy, team, others, operator, member, password, dir, screenshots } = JSON.parse(
  readFileSync(process.argv[2], "utf8"),
);
const own = () => [fresh, busy].map((origin) => new URL(origin).host);
const { browser, context, page, audit, send, fill, close } = await open({ dir, screenshots, own });

const write = (name, text) => page.getByRole("textbox", { name, exact: true }).fill(text);
const go = (name, among = page) =>
  Promise.all([page.waitForNavigation(), among.getByRole("link", { name, exact: true }).first().click()]);
const openTab = (name) => go(name, page.getByRole("navigation", { name: "Operator" }));

async function signIn(origin, email) {
  await context.clearCookies();
  await page.goto(`${origin}/sign-in`);
  await fill({ "E-mail address": email, Password: password });
  await send("Sign in");
}

// A service with history and a full queue.
await signIn(busy, operator);
await go("Operator");
assert.equal(new URL(page.url()).pathname, "/operator");
assert.match(await page.locator(".notice.bad").innerText(), /endpoint is failing/);
assert.match(await page.locator("#queue-teams + .scroll").innerText(), /3 of 3\s+full/);
await audit("operator", 200);
await page.goto(`${busy}/apps`);
await audit("operator-elsewhere", 200);
await go("Operator");
await openTab("Recent failures");
assert.ok((await page.locator("tbody tr").count()) >= 2);
await audit("operator-failures", 200);
assert.match(await page.locator("section", { has: page.locator("#hosts") }).innerText(), /Hosts with the most failures/);
await page.getByLabel("Result", { exact: true }).selectOption({ label: "Blocked by the site" });
await page.getByLabel("Cause", { exact: true }).selectOption({ label: "Target site" });
await send("Filter");
await audit("operator-failures-filtered", 200);
await go("Clear");
await page.goto(`${busy}/operator/failures?code=nothing&day=never`);
await audit("operator-failures-wrong-filter", 422);
await page.goto(`${busy}/operator/failures?day=2020-01-01`);
await audit("operator-failures-no-match", 200);
await page.goto(`${busy}/operator/failures?after=1.${team}`);
await audit("operator-failures-no-earlier", 200);
await go("Show the latest");
await page.goto(`${busy}/operator/failures?after=nowhere`);
await audit("operator-failures-nowhere", 400);

// Teams: paging and search.
await page.goto(`${busy}/operator`);
await openTab("Teams");
assert.equal(await page.locator("tbody tr").count(), 25);
await audit("operator-teams", 200);
await go("Older");
await audit("operator-teams-older", 200);
await go("Newest");
await fill({ "Search teams": `${others} 7` });
await send("Search");
assert.equal(await page.getByLabel("Search teams").inputValue(), `${others} 7`);
await audit("operator-teams-found", 200);
await fill({ "Search teams": "nobody’s" });
await send("Search");
await audit("operator-teams-none", 200);
await go("Show all teams");
await page.locator("tbody a").first().click();
await page.waitForURL(/\/operator\/teams\/.+/);
await audit("operator-team-empty", 200);

// A grant and its error messages.
await page.goto(`${busy}/operator/teams/${team}`);
await audit("operator-team", 200);
await send("Grant");
await audit("operator-grant-empty", 422);
await page.getByRole("link", { name: /Enter a reason/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "reason");
await write("Credits", "1000001");
await write("Reason", "Sorry for the outage on Friday.");
await send("Grant");
await audit("operator-grant-too-many", 422);
assert.equal(await page.getByLabel("Reason", { exact: true }).inputValue(), "Sorry for the outage on Friday.");
const once = await page.locator("[name=once]").inputValue();
await write("Credits", "500");
await send("Grant");
await audit("operator-granted", 200);
assert.equal(new URL(page.url()).search, "?granted");
await page.locator("[name=once]").evaluate((field, once) => (field.value = once), once);
await write("Credits", "600");
await write("Reason", "Sorry for the outage on Friday.");
await send("Grant");
await audit("operator-grant-sent-before", 422);

// A suspension, and the audit trail.
await page.goto(`${busy}/operator/teams/${team}`);
await go("Suspend team…");
await audit("operator-suspend", 200);
await go("Cancel");
await go("Suspend team…");
await send("Suspend team");
await audit("operator-suspend-empty", 422);
await write("Reason for the suspension", "Pages that imitate a bank.");
await send("Suspend team");
await audit("operator-suspended", 200);
assert.match(await page.locator(".notice.bad").innerText(), /This team is suspended/);
await send("Restore team");
assert.ok(await page.getByRole("link", { name: "Suspend team…" }).isVisible());
await openTab("Audit trail");
assert.match(await page.locator("tbody").innerText(), /Pages that imitate a bank/);
await audit("operator-audit", 200);
await page.locator("tbody summary").first().click();
await audit("operator-audit-more", 200);
await page.getByLabel("By", { exact: true }).fill(operator);
await page.getByLabel("Action", { exact: true }).selectOption({ label: "Team suspended" });
await send("Filter");
assert.equal(await page.locator("tbody tr").count(), 1);
await audit("operator-audit-filtered", 200);
await page.goto(`${busy}/operator/audit?by=nobody@example.com&day=never`);
await audit("operator-audit-wrong-filter", 422);
await page.goto(`${busy}/operator/audit?team=nobody`);
await audit("operator-audit-no-match", 200);
await page.goto(`${busy}/operator/audit?after=0`);
await audit("operator-audit-no-earlier", 200);
await page.goto(`${busy}/operator/audit?after=nowhere`);
await audit("operator-audit-nowhere", 400);

// People.
await page.goto(`${busy}/operator`);
await openTab("People");
await audit("operator-people", 200);
await fill({ "Search people": "rather.long" });
await send("Search");
assert.equal(await page.locator("tbody tr").count(), 1);
await audit("operator-people-found", 200);
await fill({ "Search people": "nobody’s" });
await send("Search");
await audit("operator-people-none", 200);
await go("Show all people");

// Rules for domains: one of each kind, their errors, and their removal. Error pages have no tabs.
await page.goto(`${busy}/operator`);
await openTab("Domain rules");
assert.match(await page.locator("tbody").innerText(), /config\.example\.net\s+Denied\s+Configuration/);
await send("Add rule");
await audit("operator-domain-empty", 422);
await page.getByRole("link", { name: /Enter a domain/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "domain");
await write("Domain", "https://example.com/a-path");
await send("Add rule");
await audit("operator-domain-wrong", 422);
assert.equal(await page.getByLabel("Domain", { exact: true }).inputValue(), "https://example.com/a-path");
await write("Domain", "a-long-name-of-a-department.of-a-rather-large-company.example.com");
await send("Add rule");
await audit("operator-domain-denied", 200);
assert.equal(new URL(page.url()).search, "?saved");
const remove = /^Remove a-long-name/;
assert.ok(await page.getByRole("button", { name: remove }).isVisible());
await write("Domain", "example.org");
await page.getByRole("radio", { name: /Allow/ }).check();
await send("Add rule");
assert.match(await page.locator(".lead").innerText(), /Only pages of allowed domains/);
await audit("operator-domain-allowed", 200);
await page.setViewportSize({ width: 320, height: 900 });
await page.goto(`${busy}/operator/domains`);
assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
for (const name of [remove, /^Remove example\.org/]) {
  await Promise.all([page.waitForNavigation(), page.getByRole("button", { name }).click()]);
}
await audit("operator-domain-removed", 200);
await openTab("Limits");
await audit("operator-limits", 200);
assert.match(await page.locator("tbody").first().innerText(), /Open asynchronous captures\s+3\s+limits\.async_queue/);

// On a phone, each row of a table is a block below the other, and nothing has to be scrolled sideways.
await page.setViewportSize({ width: 320, height: 900 });
for (const path of ["teams", "people", "failures", "domains", "limits", "audit"]) {
  await page.goto(`${busy}/operator/${path}`);
  const [scrolled, shown] = await page.locator(".scroll").first().evaluate((box) => [box.scrollWidth, box.clientWidth]);
  assert.ok(scrolled <= shown, `${path}: ${scrolled} > ${shown}`);
}

// On a wider screen, tables that do not fit can be focused and scrolled with the keyboard.
await page.setViewportSize({ width: 660, height: 900 });
await page.goto(`${busy}/operator/failures`);
const box = page.getByRole("group", { name: "Recent failures" });
await box.focus();
await page.keyboard.press("ArrowRight");
await page.waitForFunction((box) => box.scrollLeft > 0, await box.elementHandle());

// Unknown teams, and people who are not operators.
await page.goto(`${busy}/operator/teams/${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`);
await audit("operator-no-such-team", 404);
await signIn(busy, member);
assert.equal(await page.getByRole("link", { name: "Operator" }).count(), 0);
await page.goto(`${busy}/operator`);
await audit("operator-of-somebody-else", 404);

// Without JavaScript everything works the same.
await signIn(busy, operator);
const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await context.storageState() });
const old = await plain.newPage();
await old.goto(`${busy}/operator/teams/${team}`);
await old.getByRole("textbox", { name: "Credits" }).fill("7");
await old.getByRole("textbox", { name: "Reason", exact: true }).fill("Once more, by hand.");
await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: "Grant" }).click()]);
assert.match(await old.locator(".notice").innerText(), /granted/);
await old.close();

// A service without history.
await signIn(fresh, operator);
await page.goto(`${fresh}/operator`);
await audit("operator-fresh", 200);
await openTab("Recent failures");
await audit("operator-failures-none", 200);
await openTab("Teams");
await audit("operator-teams-few", 200);
await go("the test's");
await audit("operator-team-fresh", 200);
await openTab("Domain rules");
await audit("operator-domains-none", 200);

await close();
