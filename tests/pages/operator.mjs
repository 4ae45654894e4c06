// Looks after a service as its operator does, in a real browser, and looks at every page on the way: node operator.mjs FILE,
// where FILE holds {fresh, busy, team, others, operator, member, password, dir, screenshots}. At `fresh` nothing has happened
// yet, at `busy` a lot; `team` is a team there, and `others` what the names of many teams begin with. Whatever is wrong is
// printed, and ends the walk with 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./eyes.mjs";

const { fresh, busy, team, others, operator, member, password, dir, screenshots } = JSON.parse(
  readFileSync(process.argv[2], "utf8"),
);
const own = () => [fresh, busy].map((origin) => new URL(origin).host);
const { browser, context, page, look, send, fill, close } = await open({ dir, screenshots, own });

const write = (name, text) => page.getByRole("textbox", { name, exact: true }).fill(text);
const go = (name, among = page) =>
  Promise.all([page.waitForNavigation(), among.getByRole("link", { name, exact: true }).first().click()]);
const turn = (name) => go(name, page.getByRole("navigation", { name: "Operator" }));

async function signIn(origin, email) {
  await context.clearCookies();
  await page.goto(`${origin}/sign-in`);
  await fill({ "E-mail address": email, Password: password });
  await send("Sign in");
}

// Where a lot has happened, and the queue is full for a while yet.
await signIn(busy, operator);
await go("Operator");
assert.equal(new URL(page.url()).pathname, "/operator");
assert.match(await page.locator(".notice.bad").innerText(), /endpoint does not answer/);
assert.match(await page.locator("#queue-teams + .scroll").innerText(), /3 of 3\s+full/);
await look("operator", 200);
await page.goto(`${busy}/apps`);
await look("operator-elsewhere", 200);
await go("Operator");
await turn("Recent failures");
assert.ok((await page.locator("tbody tr").count()) >= 2);
await look("operator-failures", 200);
await page.goto(`${busy}/operator/failures?after=1.${team}`);
await look("operator-failures-no-earlier", 200);
await go("Begin at the latest one");
await page.goto(`${busy}/operator/failures?after=nowhere`);
await look("operator-failures-nowhere", 400);

// Teams, page by page and searched for.
await page.goto(`${busy}/operator`);
await turn("Teams");
assert.equal(await page.locator("tbody tr").count(), 25);
await look("operator-teams", 200);
await go("Older");
await look("operator-teams-older", 200);
await go("Newest");
await fill({ "Find a team": `${others} 7` });
await send("Find");
assert.equal(await page.getByLabel("Find a team").inputValue(), `${others} 7`);
await look("operator-teams-found", 200);
await fill({ "Find a team": "nobody’s" });
await send("Find");
await look("operator-teams-none", 200);
await go("Show all teams");
await page.locator("tbody a").first().click();
await page.waitForURL(/\/operator\/teams\/.+/);
await look("operator-team-empty", 200);

// A grant, and what is said about mistakes.
await page.goto(`${busy}/operator/teams/${team}`);
await look("operator-team", 200);
await send("Grant");
await look("operator-grant-empty", 422);
await page.getByRole("link", { name: /Write a reason/ }).click();
assert.equal(await page.evaluate(() => document.activeElement.id), "reason");
await write("Credits", "1000001");
await write("Reason", "Sorry for the outage on Friday.");
await send("Grant");
await look("operator-grant-too-many", 422);
assert.equal(await page.getByLabel("Reason").inputValue(), "Sorry for the outage on Friday.");
const once = await page.locator("[name=once]").inputValue();
await write("Credits", "500");
await send("Grant");
await look("operator-granted", 200);
assert.equal(new URL(page.url()).search, "?granted");
await page.locator("[name=once]").evaluate((field, once) => (field.value = once), once);
await write("Credits", "600");
await write("Reason", "Sorry for the outage on Friday.");
await send("Grant");
await look("operator-grant-sent-before", 422);

// Boxes that scroll can be reached and scrolled with keys alone.
await page.setViewportSize({ width: 320, height: 900 });
await page.goto(`${busy}/operator/teams`);
const box = page.getByRole("group", { name: "Teams" });
await box.focus();
await page.keyboard.press("ArrowRight");
await page.waitForFunction(() => document.querySelector(".scroll").scrollLeft > 0);

// What is not there, and who is no operator.
await page.goto(`${busy}/operator/teams/${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`);
await look("operator-no-such-team", 404);
await signIn(busy, member);
assert.equal(await page.getByRole("link", { name: "Operator" }).count(), 0);
await page.goto(`${busy}/operator`);
await look("operator-of-somebody-else", 404);

// Without script it is all the same, since there is none.
await signIn(busy, operator);
const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await context.storageState() });
const old = await plain.newPage();
await old.goto(`${busy}/operator/teams/${team}`);
await old.getByRole("textbox", { name: "Credits" }).fill("7");
await old.getByRole("textbox", { name: "Reason" }).fill("Once more, by hand.");
await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: "Grant" }).click()]);
assert.match(await old.locator(".notice").innerText(), /granted/);
await old.close();

// Where nothing has happened.
await signIn(fresh, operator);
await page.goto(`${fresh}/operator`);
await look("operator-fresh", 200);
await turn("Recent failures");
await look("operator-failures-none", 200);
await turn("Teams");
await look("operator-teams-few", 200);
await go("the test's");
await look("operator-team-fresh", 200);

await close();
