// Browser walk through usage and billing.
//
//     node billing.mjs ARGUMENTS.json
//
// where the file holds {origin, stripe, secret, closed, email, busy, past, password, dir, screenshots}. `origin` sells
// credits through the fake Stripe at `stripe`, whose events are signed with `secret`; `closed` sells none. On both,
// `email` has one team without history. `busy` is in a team with history, whose page is at `past`. Findings are
// printed, and make the exit status 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { host, openCheckout } from "./checkout.mjs";
import { open } from "./audits.mjs";

const { origin, stripe, secret, closed, email, busy, past, password, dir, screenshots } =
  JSON.parse(readFileSync(process.argv[2], "utf8"));
const hosts = [origin, closed].map((url) => new URL(url).host);
const { context, page, audit, send, follow, fill, close } = await open({ dir, screenshots, own: () => [...hosts, host] });
const { session, pay } = await openCheckout({ context, page, stripe, secret, origin });

async function signIn(address, email) {
  await page.goto(address);
  await fill({ "E-mail address": email, Password: password });
  await send("Sign in");
}

// No history, and no sales.
await signIn(`${closed}/grabs`, email);
await follow("Usage and billing");
await audit("billing-closed", 200);
assert.equal(await page.getByRole("button", { name: /^Buy/ }).count(), 0);
await page.goto(`${page.url()}/ledger`);
await audit("ledger-none", 200);

// A cancelled purchase, and a completed one.
await signIn(`${origin}/grabs`, email);
await follow("Usage and billing");
await audit("billing-none", 200);
await send("Buy for $50");
const { cancel_url } = await session();
await page.goto(cancel_url);
await audit("billing-cancelled", 200);
await send("Buy for $100");
const bought = await session();
await page.goto(bought.success_url);
await audit("paid-not-yet", 200);
await follow("Refresh");
assert.match(await page.locator("main").innerText(), /are added as soon as/);
await pay(bought);
await follow("Refresh");
await audit("paid", 200);
assert.match(await page.locator("main").innerText(), /50,000 credits were added/);
await follow("Usage and billing");
await audit("billing-bought", 200);

// Too many purchases.
const here = page.url();
for (let begun = 2; begun < 10; begun++) {
  await page.goto(here);
  await send("Buy for $250");
}
await page.goto(here);
await send("Buy for $250");
await audit("billing-too-often", 429);

// A team with history: the chart and the table show the same figures.
await context.clearCookies();
await signIn(origin + past, busy);
await audit("billing", 200);
await page.getByText("Show as table").click();
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
await audit("billing-figures", 200);
await page.setViewportSize({ width: 320, height: 900 });
const cut = await page.locator(".chart text, .chart rect").evaluateAll((parts) =>
  parts.map((part) => part.getBoundingClientRect()).filter(({ left, right }) => left < 0 || right > 320).length,
);
assert.equal(cut, 0, "parts of the chart are cut off");
await follow("All entries");
await audit("ledger", 200);
await follow("Older");
await audit("ledger-older", 200);
const downloading = page.waitForEvent("download");
await page.getByRole("link", { name: "Export as CSV" }).click();
const download = await downloading;
assert.match(download.suggestedFilename(), /^grabd-ledger-\d{4}-\d\d-\d\d\.csv$/);
const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n");
assert.equal(lines[0], "entry,at,kind,credits,lot,grab_id,reference,host,balance");
await page.goto(`${new URL(page.url()).href.split("?")[0]}?before=1`);
await audit("ledger-end", 200);

await close();
