// Uses the installed package against a running service: node exercise.mts TASK, where TASK is JSON.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import {
  type Grab, Grabd, NotFoundError, RenderFailedError, SsrfDetectedError, UnauthorizedError, type WebhookEvent,
  WebhookVerificationError, hasEnded, isGrabEvent, verifyWebhook,
} from "grabd";
import { downloadToFile } from "grabd/node";

interface Task {
  base_url: string;
  live_key: string;
  test_key: string;
  page: string;
  slow_page: string;
  failing_page: string;
  refused_page: string;
  receiver: string;
  dir: string;
}

const task = JSON.parse(process.argv[2] ?? "") as Task;
const grabd = new Grabd({ baseUrl: task.base_url, apiKey: task.live_key });
const placeholders = new Grabd({ baseUrl: task.base_url, apiKey: task.test_key });
const PNG = [0x89, 0x50, 0x4e, 0x47];
const JPEG = [0xff, 0xd8, 0xff];

async function capture(): Promise<Grab> {
  const grab = await grabd.capture(task.page, { width: 800, height: 600, format: "jpeg", quality: 70, hide: [".ad"] });
  assert.deepEqual([grab.status, grab.width, grab.height, grab.format], ["done", 800, 600, "jpeg"]);
  assert.equal(grab.target_url, task.page);

  const bytes = await grabd.download(grab);
  assert.deepEqual([...bytes.subarray(0, 3)], JPEG);
  assert.equal(bytes.length, grab.bytes);
  const path = join(task.dir, "image.jpeg");
  await downloadToFile(grabd, grab, path);
  assert.deepEqual(new Uint8Array(await readFile(path)), bytes);
  return grab;
}

/** A test key's image has a relative URL. */
async function placeholder(): Promise<void> {
  const grab = await placeholders.capture(task.page);
  assert.deepEqual([...(await placeholders.download(grab)).subarray(0, 4)], PNG);
  const { environment } = await placeholders.usage();
  assert.equal(environment, "test");
  const { id } = await placeholders.capture(task.page, { also: ["markdown"] });
  const part = await placeholders.read(id, { max_tokens: 100 });
  assert.ok(part.text.startsWith("# TEST"), part.text);
  assert.deepEqual([part.from, part.next], [0, null]);
  const found: string[] = [];
  for await (const listed of placeholders.listGrabs({ url: task.page, limit: 1 })) found.push(listed.id);
  assert.equal(found[0], id);
}

async function createAndWait(): Promise<void> {
  const created = await grabd.createGrab(task.slow_page);
  assert.ok(!hasEnded(created), created.status);
  const grab = await grabd.wait(created.id);
  assert.equal(grab.status, "done");
  assert.deepEqual(await grabd.getGrab(created.id), grab);
}

async function watch(): Promise<void> {
  const created = await grabd.createGrab(task.slow_page);
  const states: string[] = [];
  for await (const grab of grabd.watch(created.id)) states.push(grab.status);
  assert.equal(states.at(-1), "done");
  assert.ok(states.length > 1, `${states}`);
  // Whoever comes after the end gets the end.
  const late: string[] = [];
  for await (const grab of grabd.watch(created.id)) late.push(grab.status);
  assert.deepEqual(late, ["done"]);
}

async function repeat(): Promise<Grab> {
  const idempotencyKey = crypto.randomUUID();
  const first = await grabd.capture(task.page, { idempotencyKey });
  const second = await grabd.capture(task.page, { idempotencyKey });
  assert.equal(second.id, first.id);
  return first;
}

async function errors(): Promise<void> {
  await assert.rejects(grabd.capture(task.refused_page), (error) => {
    assert.ok(error instanceof SsrfDetectedError);
    assert.deepEqual([error.status, error.code, error.name], [400, "ssrf_detected", "SsrfDetectedError"]);
    assert.equal(error.cause, "request");
    assert.match(error.requestId ?? "", /^\S+$/);
    return true;
  });
  const failure = await grabd.capture(task.failing_page).catch((error: unknown) => error);
  assert.ok(failure instanceof RenderFailedError);
  assert.match(failure.grabId ?? "", /^[0-9a-f-]{36}$/);
  const { error_code, error_cause, error_message } = await grabd.getGrab(failure.grabId ?? "");
  assert.deepEqual([error_code, error_cause, error_message], [failure.code, failure.cause, failure.message]);
  await assert.rejects(grabd.getGrab("01993e1c-7b1a-7000-8000-0123456789ab"), NotFoundError);
  await assert.rejects(new Grabd({ baseUrl: task.base_url, apiKey: "sk_live_wrong" }).usage(), UnauthorizedError);
  // @ts-expect-error: a misspelled option is an error of the compiler, and costs no credit without one.
  assert.throws(() => grabd.createGrab(task.page, { widht: 800 }), TypeError);
}

async function list(captured: Grab, repeated: Grab): Promise<void> {
  const ids: string[] = [];
  for await (const grab of grabd.listGrabs({ limit: 2, status: "done" })) ids.push(grab.id);
  // Newest first, and none twice, over several pages.
  assert.ok(ids.length >= 4, `${ids}`);
  assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
  assert.ok(ids.includes(captured.id) && ids.includes(repeated.id));
  const page = await grabd.listGrabsPage({ limit: 1 });
  assert.deepEqual([page.data.length, page.has_more], [1, true]);

  await grabd.deleteGrab(captured.id);
  assert.equal((await grabd.getGrab(captured.id)).image_url, null);
  await assert.rejects(grabd.download(captured));
}

interface Message {
  headers: NodeJS.Dict<string | string[]>;
  body: Buffer;
}

async function webhooks(): Promise<void> {
  let receive: (message: Message) => void = () => {};
  const received = new Promise<Message>((resolve) => (receive = resolve));
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.writeHead(204).end();
    receive({ headers: request.headers, body: Buffer.concat(chunks) });
  });
  await new Promise<void>((resolve) => server.listen(0, task.receiver, resolve));
  const url = `http://${task.receiver}:${(server.address() as AddressInfo).port}/hook`;

  const webhook = await grabd.webhooks.create(url, { events: ["grab.done"], description: "exercise" });
  assert.ok(webhook.secret);
  assert.deepEqual((await grabd.webhooks.list()).map((one) => one.id), [webhook.id]);
  assert.equal((await grabd.webhooks.update(webhook.id, { description: "changed" })).description, "changed");
  assert.equal((await grabd.webhooks.get(webhook.id)).secret, undefined);

  const sent = await grabd.webhooks.test(webhook.id);
  const message = await received;
  const event: WebhookEvent = await verifyWebhook(message.body, message.headers, webhook.secret);
  assert.deepEqual([event.id, event.type, isGrabEvent(event)], [sent.message_id, "webhook.test", false]);
  const changed = Buffer.concat([message.body, Buffer.from(" ")]);
  await assert.rejects(verifyWebhook(changed, message.headers, webhook.secret), WebhookVerificationError);

  const deliveries: string[] = [];
  for await (const delivery of grabd.webhooks.deliveries(webhook.id)) deliveries.push(delivery.id);
  assert.deepEqual(deliveries, [sent.id]);
  const { secret } = await grabd.webhooks.rotateSecret(webhook.id);
  assert.notEqual(secret, webhook.secret);
  assert.equal((await grabd.webhooks.redeliver(webhook.id, sent.id)).message_id, sent.message_id);
  await grabd.webhooks.delete(webhook.id);
  await assert.rejects(grabd.webhooks.get(webhook.id), NotFoundError);
  server.closeAllConnections();
  server.close();
}

async function monitors(): Promise<void> {
  const page = { url: task.page, width: 800 };
  const monitor = await placeholders.monitors.create(page, { every: "1d", notify: { email: false } });
  assert.deepEqual([monitor.state, monitor.every, monitor.capture["width"]], ["active", "1d", 800]);
  assert.deepEqual([monitor.notify.email, monitor.live], [false, false]);
  const ids: string[] = [];
  for await (const listed of placeholders.monitors.list({ limit: 1 })) ids.push(listed.id);
  assert.deepEqual(ids, [monitor.id]);
  assert.equal((await placeholders.monitors.update(monitor.id, { paused: true })).next_run_at, null);
  assert.equal((await placeholders.monitors.update(monitor.id, { paused: false })).state, "active");
  for await (const run of placeholders.monitors.runs(monitor.id)) {
    assert.ok(["running", "first", "same"].includes(run.outcome), run.outcome);
  }
  await placeholders.monitors.delete(monitor.id);
  await assert.rejects(placeholders.monitors.get(monitor.id), NotFoundError);
  const urls = [task.page, `${task.page}?2`];
  for (const one of await placeholders.monitors.createBatch(urls, { every: "1d", capture: { width: 800 } })) {
    assert.equal(one.capture["width"], 800);
    await placeholders.monitors.delete(one.id);
  }
}

async function sites(): Promise<void> {
  const site = await placeholders.sites.create(task.page, { max_depth: 0, max_pages: 5, capture: { width: 800 } });
  assert.deepEqual([site.live, site.max_pages, site.max_depth, site.capture["width"]], [false, 5, 0, 800]);
  const found: string[] = [];
  for await (const listed of placeholders.sites.list({ limit: 1 })) found.push(listed.id);
  // A job that has ended stays as it is.
  assert.ok(["canceled", "done"].includes((await placeholders.sites.cancel(site.id)).state));
  for await (const page of placeholders.sites.pages(site.id)) found.push(page.url);
  assert.deepEqual(found, [site.id, task.page]);
  await placeholders.sites.delete(site.id);
  await assert.rejects(placeholders.sites.get(site.id), NotFoundError);
}

async function proxies(): Promise<void> {
  const url = "http://8.8.8.8:3128";
  const proxy = await placeholders.proxies.create({ name: "exercise", url, username: "me", password: "hidden" });
  assert.deepEqual([proxy.url, proxy.has_login, proxy.last_used_at, proxy.last_error], [url, true, null, null]);
  assert.deepEqual((await placeholders.proxies.list()).map((one) => one.id), [proxy.id]);
  assert.equal((await placeholders.proxies.update(proxy.id, { username: "" })).has_login, false);
  assert.equal((await placeholders.capture(task.page, { proxy: proxy.id })).status, "done");
  await placeholders.proxies.delete(proxy.id);
  await assert.rejects(placeholders.proxies.get(proxy.id), NotFoundError);
}

const captured = await capture();
await placeholder();
await createAndWait();
await watch();
const repeated = await repeat();
await errors();
await list(captured, repeated);
await webhooks();
await monitors();
await sites();
await proxies();
assert.equal((await grabd.pricing({ detail: "summary" })).pricing.currency, "USD");
const { credits } = await grabd.usage();
console.log(`all checks passed; ${credits.total} credits left`);
