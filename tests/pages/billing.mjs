// A person's way through usage and billing, in a browser that looks at every page in each of its states.
//
//     node billing.mjs ARGUMENTS.json
//
// where the file holds {origin, stripe, secret, closed, email, busy, past, password, dir, screenshots}. `origin` sells credits
// through the stand-in at `stripe`, whose events are signed with `secret`; `closed` sells none. On both, whoever signs in
// with `email` has one team in which nothing has happened; `busy` is in a team with a past, whose page is at `past`. Whatever
// is wrong is printed, and ends the walk with 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { host, openCheckout } from "./checkout.mjs";
import { open } from "./eyes.mjs";

const { origin, stripe, secret, closed, email, busy, past, password, dir, screenshots } =
  JSON.parse(readFileSync(process.argv[2], "utf8"));
const hosts = [origin, closed].map((url) => new URL(url).host);
const { context, page, look, send, follow, fill, close } = await open({ dir, screenshots, own: () => [...hosts, host] });
const { session, pay } = await openCheckout({ context, page, stripe, secret, origin });

async function signIn(address, email) {
  await page.goto(address);
  await fill({ "E-mail address": email, Password: password });
  await send("Sign in");
}

// Nothing has happened yet, and nothing is sold.
await signIn(`${closed}/grabs`, email);
await follow("Usage and billing");
await look("billing-closed", 200);
assert.equal(await page.getByRole("button", { name: /^Buy/ }).count(), 0);
await page.goto(`${page.url()}/ledger`);
await look("ledger-none", 200);

// A purchase that is broken off, and one that is not.
await signIn(`${origin}/grabs`, email);
await follow("Usage and billing");
await look("billing-none", 200);
await send("Buy for 50 USD");
const { cancel_url } = await session();
await page.goto(cancel_url);
await look("billing-cancelled", 200);
await send("Buy for 100 USD");
const bought = await session();
await page.goto(bought.success_url);
await look("paid-not-yet", 200);
await follow("Look again");
assert.match(await page.locator("main").innerText(), /arrive in a moment/);
await pay(bought);
await follow("Look again");
await look("paid", 200);
assert.match(await page.locator("main").innerText(), /50,000 credits have come/);
await follow("Usage and billing");
await look("billing-bought", 200);

// Too many of them.
const here = page.url();
for (let begun = 2; begun < 10; begun++) {
  await page.goto(here);
  await send("Buy for 250 USD");
}
await page.goto(here);
await send("Buy for 250 USD");
await look("billing-too-often", 429);

// A team with a past: the drawing, and the same figures in the table.
await context.clearCookies();
await signIn(origin + past, busy);
await look("billing", 200);
await page.getByText("The figures as a table").click();
const rows = await page.locator("details tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].slice(1).map((cell) => Number(cell.innerText.replaceAll(",", "")))),
);
const drawn = await page.locator(".chart g").evaluateAll((bars) =>
  bars.map((bar) =>
    ["live", "live failed", "test", "test failed"].map((name) => {
      const part = bar.querySelector(`[class="${name}"]`);
      return part ? part.getBBox().height : 0;
    }),
  ),
);
assert.equal(rows.length, 30);
const [top] = await page.locator(".chart text").allTextContents().then((texts) => texts.map(Number));
assert.deepEqual(
  drawn.reverse().map((bar) => bar.map((height) => Math.round((height * top) / 168))),
  rows,
);
await look("billing-figures", 200);
await page.setViewportSize({ width: 320, height: 900 });
const cut = await page.locator(".chart text, .chart rect").evaluateAll((parts) =>
  parts.map((part) => part.getBoundingClientRect()).filter(({ left, right }) => left < 0 || right > 320).length,
);
assert.equal(cut, 0, "something of the drawing is cut off");
await follow("All entries");
await look("ledger", 200);
await follow("Older");
await look("ledger-older", 200);
const downloading = page.waitForEvent("download");
await page.getByRole("link", { name: "Export as CSV" }).click();
const download = await downloading;
assert.match(download.suggestedFilename(), /^grabd-ledger-\d{4}-\d\d-\d\d\.csv$/);
const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n");
assert.equal(lines[0], "entry,at,kind,credits,lot,grab_id,reference");
await page.goto(`${new URL(page.url()).href.split("?")[0]}?before=1`);
await look("ledger-end", 200);

await close();
