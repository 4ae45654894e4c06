// Stripe's side of a purchase: a replacement for its checkout page, because no request leaves this machine, and the
// event that follows. The fake Stripe is at `stripe`, its events are signed with `secret`, and `origin` sells credits.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";

const CHECKOUT = "https://checkout.stripe.com";
export const host = new URL(CHECKOUT).host;

export async function openCheckout({ context, page, stripe, secret, origin }) {
  // Intercept over CDP, because `page.route` does not see redirect targets.
  const cdp = await context.newCDPSession(page);
  cdp.on("Fetch.requestPaused", ({ requestId }) => {
    const body = Buffer.from("<!doctype html><html lang=en><title>Pay</title><h1>Pay</h1>").toString("base64");
    const responseHeaders = [{ name: "content-type", value: "text/html" }];
    cdp.send("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders, body });
  });
  await cdp.send("Fetch.enable", { patterns: [{ urlPattern: `${CHECKOUT}/*` }] });

  // The session of the checkout page that was just opened.
  async function session() {
    const { origin, pathname } = new URL(page.url());
    assert.equal(origin, CHECKOUT);
    const answer = await fetch(`${stripe}/v1/checkout/sessions/${pathname.split("/").pop()}`);
    assert.equal(answer.status, 200);
    return answer.json();
  }

  async function pay(session) {
    const payment_intent = session.id.replace("cs_test_", "pi_");
    const object = { ...session, status: "complete", payment_status: "paid", payment_intent, url: null };
    const type = "checkout.session.completed";
    const body = JSON.stringify({ id: "evt_1", object: "event", type, livemode: false, data: { object } });
    const time = Math.floor(Date.now() / 1000);
    const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
    const headers = { "stripe-signature": `t=${time},v1=${signature}` };
    const answer = await fetch(`${origin}/v1/billing/stripe`, { method: "POST", headers, body });
    assert.equal(answer.status, 200, await answer.text());
  }

  return { session, pay };
}
