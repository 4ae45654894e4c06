import assert from "node:assert/strict";
import { test } from "node:test";

import { Webhook } from "standardwebhooks";

import { EventParser } from "../src/events.js";
import { WebhookVerificationError, isGrabEvent, isMonitorEvent, isSiteEvent, verifyWebhook } from "../src/index.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET = "whsec_K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9";
const AT = 1_795_206_774;
const now = AT * 1000;
const BODY = JSON.stringify({
  id: "msg_1", type: "grab.done", timestamp: "2026-11-20T20:32:54.120Z", environment: "live",
  data: { id: "id-1", status: "done" },
});

/** Signs with another library. */
function signed(body = BODY, secret = SECRET): Record<string, string> {
  const signature = new Webhook(secret).sign("msg_1", new Date(now), body);
  return { "webhook-id": "msg_1", "webhook-timestamp": String(AT), "webhook-signature": signature };
}

test("message about a site has the job", async () => {
  const data = { site: { id: "s", state: "done" } };
  const body = JSON.stringify({ ...(JSON.parse(BODY) as object), type: "site.finished", data });
  const event = await verifyWebhook(body, signed(body), SECRET, { now });
  assert.ok(isSiteEvent(event) && !isMonitorEvent(event));
  assert.deepEqual([event.data.site.id, event.data.site.state], ["s", "done"]);
});

test("message about a monitor has the monitor and its run", async () => {
  const data = { monitor: { id: "m" }, run: { id: "r", outcome: "changed" } };
  const body = JSON.stringify({ ...(JSON.parse(BODY) as object), type: "monitor.changed", data });
  const event = await verifyWebhook(body, signed(body), SECRET, { now });
  assert.ok(isMonitorEvent(event) && !isGrabEvent(event));
  assert.deepEqual([event.data.monitor.id, event.data.run.outcome], ["m", "changed"]);
});

test("signed message is returned parsed", async () => {
  for (const headers of [signed(), new Headers(signed())]) {
    for (const payload of [BODY, new TextEncoder().encode(BODY)]) {
      const event = await verifyWebhook(payload, headers, SECRET, { now });
      assert.ok(isGrabEvent(event));
      assert.deepEqual([event.id, event.type, event.data.status], ["msg_1", "grab.done", "done"]);
    }
  }
  const upper = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.toUpperCase(), [value]]));
  await verifyWebhook(BODY, upper, SECRET, { now });
});

test("one of several signatures or secrets is enough", async () => {
  const headers = signed();
  const others = `v1a,x v1,AAAA v1,!! ${signed(BODY, OLD_SECRET)["webhook-signature"]}`;
  headers["webhook-signature"] = `${others} ${headers["webhook-signature"]}`;
  await verifyWebhook(BODY, headers, SECRET, { now });
  await verifyWebhook(BODY, signed(), [OLD_SECRET, SECRET], { now });
  await assert.rejects(verifyWebhook(BODY, signed(), OLD_SECRET, { now }), WebhookVerificationError);
});

test("changed message is refused", async () => {
  const headers = signed();
  const changes: [string, Record<string, string>][] = [
    [BODY + " ", headers],
    [BODY, { ...headers, "webhook-id": "msg_2" }],
    [BODY, { ...headers, "webhook-timestamp": String(AT + 1) }],
    [BODY, { ...headers, "webhook-signature": "v1," }],
    [BODY, { ...headers, "webhook-signature": headers["webhook-signature"]!.replace("v1,", "v2,") }],
    [BODY, { ...headers, "webhook-timestamp": "soon" }],
    [BODY, { ...headers, "webhook-timestamp": "-1" }],
  ];
  for (const [body, changed] of changes) {
    await assert.rejects(verifyWebhook(body, changed, SECRET, { now }), WebhookVerificationError);
  }
  for (const name of Object.keys(headers)) {
    const { [name]: _, ...rest } = headers;
    await assert.rejects(verifyWebhook(BODY, rest, SECRET, { now }), WebhookVerificationError, name);
  }
});

test("message outside of the tolerance is refused", async () => {
  for (const off of [300, -300]) await verifyWebhook(BODY, signed(), SECRET, { now: now + off * 1000 });
  for (const off of [301, -301]) {
    await assert.rejects(verifyWebhook(BODY, signed(), SECRET, { now: now + off * 1000 }), WebhookVerificationError);
  }
  const narrow = { now: now + 11_000, toleranceS: 10 };
  await assert.rejects(verifyWebhook(BODY, signed(), SECRET, narrow), WebhookVerificationError);
  await assert.rejects(verifyWebhook(BODY, signed(), SECRET), WebhookVerificationError);
});

test("signed body that is no message is refused", async () => {
  for (const body of ["", "[]", "null", '{"type":1}', "{"]) {
    await assert.rejects(verifyWebhook(body, signed(body), SECRET, { now }), WebhookVerificationError, body);
  }
});

test("wrong arguments are reported as such", async () => {
  await assert.rejects(verifyWebhook(JSON.parse(BODY) as string, signed(), SECRET), TypeError);
  for (const secret of ["", "whsec_", "whsec_!", []]) {
    await assert.rejects(verifyWebhook(BODY, signed(), secret), TypeError);
  }
});

test("events are parsed however they are cut", () => {
  const text = ':x\r\n\r\nid: 7\r\nevent: grab\r\ndata: {"a":\r\ndata:"ü"}\r\n\r\ndata: b\rid:8\r\rid\n\ndata\n\n';
  const bytes = new TextEncoder().encode(text);
  const expected = [{ id: "7", data: '{"a":\n"ü"}' }, { id: "8", data: "b" }, { id: "", data: "" }];
  for (let size = 1; size <= bytes.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < bytes.length; at += size) events.push(...parser.push(bytes.subarray(at, at + size)));
    assert.deepEqual(events, expected, `${size}`);
  }
});

test("event without an end is refused at the size limit", () => {
  const chunk = new TextEncoder().encode("x".repeat(1 << 19));
  const parser = new EventParser();
  assert.throws(() => {
    for (let count = 0; count < 4; count += 1) parser.push(chunk);
  }, RangeError);
});
