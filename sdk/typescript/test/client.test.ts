import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  ApiError, BadRequestError, ConnectionError, CreditsExhaustedError, ERROR_CLASSES, type ErrorCode, Grabd,
  RateLimitExceededError, RenderFailedError, RequestTimeoutError, UnexpectedResponseError, VERSION, WaitTimeoutError,
  type WatchOptions,
} from "../src/index.js";
import { downloadToFile } from "../src/node.js";
import { FakeService, type Responder, failure, grab, json, reset, silence } from "./server.js";

const DONE = json(200, grab("done", { image_url: "/i/1.png" }));

test("create that fails twice is repeated with the same key and body", async () => {
  await FakeService.with([failure(503, "internal_error"), reset, DONE], async (client, service) => {
    const captured = await client.capture("https://example.com/", { width: 800, hide: ["#a"] });
    assert.equal(captured.status, "done");
    assert.equal(service.received.length, 3);
    const [first] = service.received;
    assert.deepEqual(JSON.parse(first!.body), { width: 800, hide: ["#a"], url: "https://example.com/" });
    assert.match(String(first!.headers["idempotency-key"]), /^[0-9a-f-]{36}$/);
    assert.equal(first!.headers.authorization, "Bearer sk_live_secret");
    for (const { body, headers } of service.received) {
      assert.equal(body, first!.body);
      assert.equal(headers["idempotency-key"], first!.headers["idempotency-key"]);
    }
  });
});

test("document is captured without a URL", async () => {
  await FakeService.with([DONE], async (client, service) => {
    await client.capture({ html: "<p>1</p>", width: 400 });
    await client.createGrab({ html: "<p>2</p>" });
    const bodies = service.received.map(({ body }) => JSON.parse(body) as unknown);
    assert.deepEqual(bodies, [{ html: "<p>1</p>", width: 400 }, { html: "<p>2</p>" }]);
    // @ts-expect-error: there is nothing to capture.
    const none = () => client.capture({ width: 400 });
    assert.equal(typeof none, "function");
  });
});

test("different creates have different keys unless the caller chooses one", async () => {
  await FakeService.with([DONE], async (client, service) => {
    await client.capture("https://example.com/");
    await client.capture("https://example.com/");
    await client.createGrab("https://example.com/", { idempotencyKey: "mine" });
    const keys = service.received.map(({ headers }) => headers["idempotency-key"]);
    assert.equal(new Set(keys).size, 3);
    assert.equal(keys[2], "mine");
    assert.deepEqual(service.received.map(({ headers }) => headers.prefer), [undefined, undefined, "respond-async"]);
  });
});

test("batch is one request with its own key, and unknown options are refused before it is sent", async () => {
  const error = { code: "bad_request", message: "`url` must be set." };
  const results = [{ grab: grab("pending"), error: null }, { grab: null, error, error_cause: "request" }];
  await FakeService.with([failure(503, "internal_error"), json(200, { results })], async (client, service) => {
    const batch = await client.createBatch(["https://example.com/", { width: 400 }], { options: { format: "webp" } });
    assert.equal(batch.results[0]?.grab?.status, "pending");
    assert.deepEqual([batch.results[1]?.error?.code, batch.results[1]?.error_cause], ["bad_request", "request"]);
    const [first, second] = service.received;
    assert.deepEqual(JSON.parse(first!.body), {
      grabs: [{ url: "https://example.com/" }, { width: 400 }], options: { format: "webp" },
    });
    assert.match(String(first!.headers["idempotency-key"]), /^[0-9a-f-]{36}$/);
    assert.equal(second!.headers["idempotency-key"], first!.headers["idempotency-key"]);
    assert.equal(service.received.length, 2);
    const misspelled = { widht: 1 } as object;
    assert.throws(() => client.createBatch([misspelled]), TypeError);
    assert.throws(() => client.createBatch([], { options: misspelled }), TypeError);
    assert.equal(service.received.length, 2);
  });
});

const FINAL: [number, ErrorCode][] = [
  [400, "bad_request"], [400, "invalid_viewport"], [400, "ssrf_detected"], [400, "idempotency_mismatch"],
  [401, "unauthorized"], [402, "credits_exhausted"], [404, "not_found"], [422, "render_blocked"],
  [500, "render_failed"],
];
for (const [status, code] of FINAL) {
  test(`${code} is not retried and has its own class`, async () => {
    const headers = { location: "/v1/grabs/id-1", "error-cause": "target" };
    await FakeService.with([failure(status, code, headers)], async (client, service) => {
      await assert.rejects(client.capture("https://example.com/"), (error) => {
        assert.ok(error instanceof ERROR_CLASSES[code] && error instanceof ApiError);
        assert.deepEqual([error.status, error.code, error.message], [status, code, `It is ${code}.`]);
        assert.deepEqual([error.requestId, error.grabId, error.cause], ["request-1", "id-1", "target"]);
        return true;
      });
      assert.equal(service.received.length, 1);
    });
  });
}

const TRANSIENT: [number, ErrorCode][] = [
  [409, "idempotency_conflict"], [429, "queue_limit_exceeded"], [500, "internal_error"],
];
for (const [status, code] of TRANSIENT) {
  test(`${code} is retried`, async () => {
    await FakeService.with([failure(status, code), DONE], async (client, service) => {
      await client.capture("https://example.com/");
      assert.equal(service.received.length, 2);
    });
  });
}

test("replayed internal_error is final", async () => {
  const replay = failure(500, "internal_error", { "idempotent-replayed": "true" });
  await FakeService.with([replay], async (client, service) => {
    await assert.rejects(client.capture("https://example.com/"), { code: "internal_error" });
    assert.equal(service.received.length, 1);
  });
});

test("capture goes on while a limit is used up", async () => {
  const limit = failure(429, "rate_limit_exceeded", { "retry-after": "0" });
  await FakeService.with([...Array.from({ length: 12 }, () => limit), DONE], async (client, service) => {
    assert.equal((await client.capture("https://example.com/")).status, "done");
    const keys = new Set(service.received.map(({ headers }) => headers["idempotency-key"]));
    assert.deepEqual([service.received.length, keys.size], [13, 1]);
  }, { maxRetries: 1 });
  await FakeService.with([limit], async (client) => {
    await assert.rejects(client.capture("https://example.com/", { waitTimeoutMs: 1 }), RateLimitExceededError);
  }, { maxRetries: 1 });
});

const CREATES: [string, Responder, (client: Grabd, waitTimeoutMs?: number) => Promise<unknown>][] = [
  ["createGrab", DONE, (client, waitTimeoutMs) => client.createGrab("https://example.com/", { waitTimeoutMs })],
  [
    "createBatch",
    json(200, { results: [{ grab: grab("pending"), error: null }] }),
    (client, waitTimeoutMs) => client.createBatch(["https://example.com/"], { waitTimeoutMs }),
  ],
];
for (const [name, result, create] of CREATES) {
  test(`${name} keeps to Retry-After until the time limit of the caller`, async () => {
    const limit = failure(429, "rate_limit_exceeded", { "retry-after": "0" });
    await FakeService.with([...Array.from({ length: 12 }, () => limit), result], async (client, service) => {
      await create(client);
      const keys = new Set(service.received.map(({ headers }) => headers["idempotency-key"]));
      assert.deepEqual([service.received.length, keys.size], [13, 1]);
    });
    // The caller's time is shorter than what the service asks for, so nothing is waited for.
    const late = failure(429, "rate_limit_exceeded", { "retry-after": "90" });
    await FakeService.with([late], async (client, service) => {
      await assert.rejects(create(client, 60_000), { retryAfterS: 90 });
      assert.equal(service.received.length, 1);
    });
    await FakeService.with([limit], async (client, service) => {
      await assert.rejects(create(client), RateLimitExceededError);
      assert.equal(service.received.length, 1);
    }, { maxRetries: 0 });
  });
}

test("waitAll waits for a hundred grabs with each request", async () => {
  const ids = Array.from({ length: 101 }, (_, number) => `id-${number}`);
  const page = (part: string[], status: string) => {
    return json(200, { data: part.map((id) => ({ ...grab(status), id })), has_more: false });
  };
  const [first, last] = [ids.slice(0, 100), ids.slice(100)];
  const responders = [page(first, "pending"), page(first, "done"), page(last, "done")];
  await FakeService.with(responders, async (client, service) => {
    const ended = await client.waitAll([...ids, "id-0"]);
    assert.deepEqual(ended.map(({ id }) => id), ids);
    const paths = [first, first, last].map((part) => `/v1/grabs?ids=${part.join("%2C")}`);
    assert.deepEqual(service.received.map(({ url }) => url), paths);
  });
  await FakeService.with([page(["a"], "done"), failure(404, "not_found")], async (client) => {
    await assert.rejects(client.waitAll(["a", "b"]), { code: "not_found" });
  });
});

test("retries are bounded", async () => {
  await FakeService.with([failure(429, "rate_limit_exceeded")], async (client, service) => {
    await assert.rejects(client.usage(), RateLimitExceededError);
    assert.equal(service.received.length, 3);
  }, { maxRetries: 2 });
});

test("Retry-After delays the retry", async () => {
  await FakeService.with([failure(429, "rate_limit_exceeded", { "retry-after": "1" }), DONE], async (client) => {
    const start = performance.now();
    await client.capture("https://example.com/");
    assert.ok(performance.now() - start >= 990);
  });
});

test("Retry-After of more than a minute is left to the caller", async () => {
  await FakeService.with([failure(429, "rate_limit_exceeded", { "retry-after": "61" })], async (client, service) => {
    await assert.rejects(client.usage(), { retryAfterS: 61 });
    assert.equal(service.received.length, 1);
  });
});

test("request without Idempotency-Key is repeated only if it was not carried out", async () => {
  for (const responder of [reset, failure(500, "internal_error"), failure(503, "internal_error")]) {
    await FakeService.with([responder], async (client, service) => {
      await assert.rejects(client.webhooks.create("https://example.com/hook"));
      assert.equal(service.received.length, 1);
    });
  }
  await FakeService.with([failure(429, "rate_limit_exceeded"), json(201, { id: "w" })], async (client, service) => {
    assert.equal((await client.webhooks.create("https://example.com/hook", { events: ["grab.done"] })).id, "w");
    assert.equal(service.received.length, 2);
  });
});

test("monitor is created, listed over pages, accepted and deleted", async () => {
  const page = (id: string, has_more: boolean) => json(200, { data: [{ id }], has_more });
  const responders = [json(201, { id: "m" }), page("m", true), page("n", false), page("r", false), json(200, { id: "m" })];
  const feed = json(201, { feed_url: "https://g.example/f", badge_url: "https://g.example/b" });
  const archive: Responder = (response) => response.writeHead(200).end("archive");
  const gone: Responder = (response) => response.writeHead(204).end();
  await FakeService.with([...responders, json(200, { id: "m" }), feed, archive, gone], async (client, service) => {
    const capture = { url: "https://example.com/", width: 800 };
    assert.equal((await client.monitors.create(capture, { every: "6h" })).id, "m");
    const ids = [];
    for await (const monitor of client.monitors.list({ limit: 1 })) ids.push(monitor.id);
    for await (const run of client.monitors.runs("m")) ids.push(run.id);
    assert.deepEqual(ids, ["m", "n", "r"]);
    await client.monitors.update("m", { paused: true });
    await client.monitors.accept("m", { grab_id: "g" });
    assert.equal((await client.monitors.createFeed("m")).badge_url, "https://g.example/b");
    assert.equal(new TextDecoder().decode(await client.monitors.history("m")), "archive");
    await client.monitors.deleteFeed("m");
    await client.monitors.delete("m");
    const sent = service.received.map(({ method, url, body }) => [method, url, body && JSON.parse(body)]);
    assert.deepEqual(sent, [
      ["POST", "/v1/monitors", { every: "6h", capture }],
      ["GET", "/v1/monitors?limit=1", ""],
      ["GET", "/v1/monitors?limit=1&starting_after=m", ""],
      ["GET", "/v1/monitors/m/runs", ""],
      ["PATCH", "/v1/monitors/m", { paused: true }],
      ["POST", "/v1/monitors/m/accept", { grab_id: "g" }],
      ["POST", "/v1/monitors/m/feed", ""],
      ["GET", "/v1/monitors/m/history.zip", ""],
      ["DELETE", "/v1/monitors/m/feed", ""],
      ["DELETE", "/v1/monitors/m", ""],
    ]);
  });
});

test("site is captured, listed over pages, canceled and deleted", async () => {
  const page = (one: object, has_more: boolean) => json(200, { data: [one], has_more });
  const jobs = [page({ id: "s" }, true), page({ id: "t" }, false)];
  const pages = [page({ number: 1, url: "https://example.com/1" }, true), page({ number: 2, url: "https://example.com/2" }, false)];
  const responders = [json(202, { id: "s" }), ...jobs, ...pages, json(200, { id: "s" })];
  await FakeService.with([...responders, (response) => response.writeHead(204).end()], async (client, service) => {
    const options = { max_pages: 20, capture: { width: 800 } };
    assert.equal((await client.sites.create("https://example.com/", options)).id, "s");
    const found = [];
    for await (const site of client.sites.list({ limit: 1 })) found.push(site.id);
    for await (const page of client.sites.pages("s")) found.push(page.url);
    assert.deepEqual(found, ["s", "t", "https://example.com/1", "https://example.com/2"]);
    await client.sites.cancel("s");
    await client.sites.delete("s");
    const sent = service.received.map(({ method, url, body }) => [method, url, body && JSON.parse(body)]);
    assert.deepEqual(sent, [
      ["POST", "/v1/sites", { ...options, url: "https://example.com/" }],
      ["GET", "/v1/sites?limit=1", ""],
      ["GET", "/v1/sites?limit=1&starting_after=s", ""],
      ["GET", "/v1/sites/s/pages", ""],
      ["GET", "/v1/sites/s/pages?starting_after=1", ""],
      ["POST", "/v1/sites/s/cancel", {}],
      ["DELETE", "/v1/sites/s", ""],
    ]);
  });
});

test("proxy is created, listed, read, changed and deleted", async () => {
  const page = json(200, { data: [{ id: "p" }, { id: "q" }], has_more: false });
  const one = json(200, { id: "p" });
  const responders: Responder[] = [json(201, { id: "p" }), page, one, one, (response) => response.writeHead(204).end()];
  await FakeService.with(responders, async (client, service) => {
    const members = { name: "Office", url: "http://proxy.example.com:3128", username: "me", password: "hidden" };
    assert.equal((await client.proxies.create({ ...members, timeoutMs: 5000 })).id, "p");
    assert.deepEqual((await client.proxies.list()).map(({ id }) => id), ["p", "q"]);
    assert.equal((await client.proxies.get("a/b")).id, "p");
    await client.proxies.update("p", { username: "" });
    assert.equal(await client.proxies.delete("p"), undefined);
    const sent = service.received.map(({ method, url, body }) => [method, url, body && JSON.parse(body)]);
    assert.deepEqual(sent, [
      ["POST", "/v1/proxies", members],
      ["GET", "/v1/proxies", ""],
      ["GET", "/v1/proxies/a%2Fb", ""],
      ["PATCH", "/v1/proxies/p", { username: "" }],
      ["DELETE", "/v1/proxies/p", ""],
    ]);
    assert.throws(() => client.proxies.get(""), TypeError);
    assert.equal(service.received.length, 5);
  });
});

test("create of a proxy that may have been carried out is not repeated", async () => {
  await FakeService.with([failure(503, "internal_error")], async (client, service) => {
    await assert.rejects(client.proxies.create({ name: "Office", url: "http://proxy.example.com:3128" }));
    assert.equal(service.received.length, 1);
  });
});

test("site is waited for until it has ended", async () => {
  const ended = json(200, { id: "s", state: "done", finished_at: "2026-11-21T09:02:00.000Z" });
  await FakeService.with([json(200, { id: "s", finished_at: null }), ended], async (client, service) => {
    assert.equal((await client.sites.wait("s", { waitTimeoutMs: 60_000 })).state, "done");
    assert.deepEqual(service.received.map(({ url }) => url), ["/v1/sites/s", "/v1/sites/s"]);
  });
  await FakeService.with([json(200, { id: "s", finished_at: null })], async (client) => {
    await assert.rejects(client.sites.wait("s", { waitTimeoutMs: 50 }), WaitTimeoutError);
  });
});

test("misspelled capture option of a site is refused before it is sent", async () => {
  await FakeService.with([json(202, { id: "s" })], async (client, service) => {
    const capture = { width: 800, widht: 800 };
    assert.throws(() => client.sites.create({ sitemap: "https://example.com/sitemap.xml" }, { capture }), TypeError);
    assert.throws(() => client.sites.get(""), TypeError);
    assert.equal(service.received.length, 0);
  });
});

test("monitors of several pages are created by one request", async () => {
  const created = json(201, { monitors: [{ id: "m" }, { id: "n" }] });
  await FakeService.with([created, created], async (client, service) => {
    const urls = ["https://example.com/", "https://example.org/"];
    const monitors = await client.monitors.createBatch(urls, { every: "6h", capture: { width: 800 } });
    assert.deepEqual(monitors.map(({ id }) => id), ["m", "n"]);
    await client.monitors.createBatch(urls, { every: "6h" });
    const misspelled = { width: 800, widht: 800 };
    assert.throws(() => client.monitors.createBatch(urls, { every: "6h", capture: misspelled }), TypeError);
    const sent = service.received.map(({ method, url, body }) => [method, url, JSON.parse(body)]);
    assert.deepEqual(sent, [
      ["POST", "/v1/monitors/batch", { every: "6h", urls, capture: { width: 800 } }],
      ["POST", "/v1/monitors/batch", { every: "6h", urls }],
    ]);
  });
});

test("misspelled capture option of a monitor is refused before it is sent", async () => {
  await FakeService.with([json(201, { id: "m" })], async (client, service) => {
    const capture = { url: "https://example.com/", widht: 800 };
    assert.throws(() => client.monitors.create(capture, { every: "6h" }), TypeError);
    assert.throws(() => client.monitors.get(""), TypeError);
    assert.equal(service.received.length, 0);
  });
});

test("silent service ends in a timeout after the retries", async () => {
  await FakeService.with([silence], async (client, service) => {
    await assert.rejects(client.usage({ timeoutMs: 500 }), (error) => {
      assert.ok(error instanceof RequestTimeoutError && error instanceof ConnectionError && error.cause);
      return true;
    });
    assert.equal(service.received.length, 2);
  }, { maxRetries: 1 });
});

test("body that stops ends in a timeout", async () => {
  const half: Responder = (response) => response.writeHead(200, { "content-length": "100" }).write("{");
  await FakeService.with([half], async (client) => {
    await assert.rejects(client.usage({ timeoutMs: 50 }), RequestTimeoutError);
  }, { maxRetries: 0 });
});

test("abort by the caller ends the call with the caller's reason", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const abort: Responder = (response, request) => {
    failure(503, "internal_error")(response, request);
    response.on("finish", () => controller.abort(reason));
  };
  await FakeService.with([abort], async (client, service) => {
    await assert.rejects(client.usage({ signal: controller.signal }), reason);
    assert.equal(service.received.length, 1);
  }, { retryDelayMs: 60_000 });
});

test("unreachable service is a connection error with its cause", async () => {
  const client = new Grabd({ baseUrl: "http://127.0.0.1:9/v1", maxRetries: 0 });
  await assert.rejects(client.usage(), (error) => error instanceof ConnectionError && error.cause instanceof Error);
});

test("redirect is not followed", async () => {
  const elsewhere: Responder = (response) => response.writeHead(302, { location: "/elsewhere" }).end();
  await FakeService.with([elsewhere], async (client, service) => {
    await assert.rejects(client.usage(), UnexpectedResponseError);
    assert.equal(service.received.length, 1);
  });
});

test("response of something else is reported as such", async () => {
  const page: Responder = (response) => response.writeHead(200).end("<html>");
  await FakeService.with([page], async (client) => {
    await assert.rejects(client.usage(), UnexpectedResponseError);
  });
  const refused: Responder = (response) => response.writeHead(403).end("<html>no</html>");
  await FakeService.with([refused], async (client) => {
    await assert.rejects(client.usage(), { name: "UnexpectedResponseError", status: 403, message: /<html>no/ });
  });
});

test("unknown code is an ApiError", async () => {
  await FakeService.with([failure(418, "constructor")], async (client) => {
    await assert.rejects(client.usage(), (error) => (
      error instanceof ApiError && error.constructor === ApiError && error.cause === undefined
    ));
  });
});

test("grab that is open after the create is waited for", async () => {
  await FakeService.with([json(202, grab("pending")), json(200, grab("processing")), DONE], async (client, service) => {
    assert.equal((await client.capture("https://example.com/")).status, "done");
    const [, poll] = service.received;
    assert.deepEqual([poll!.url, poll!.headers.prefer], ["/v1/grabs/id-1", "wait=25"]);
  });
});

test("grab that fails after the create has the error of its create", async () => {
  const responders = [json(202, grab("pending")), json(200, grab("failed")), failure(500, "render_failed")];
  await FakeService.with(responders, async (client, service) => {
    await assert.rejects(client.capture("https://example.com/"), RenderFailedError);
    const [first, , last] = service.received;
    assert.equal(last!.headers["idempotency-key"], first!.headers["idempotency-key"]);
  });
});

test("wait ends with an error that names the grab", async () => {
  await FakeService.with([json(200, grab("processing"))], async (client, service) => {
    await assert.rejects(client.wait("id-1", { waitTimeoutMs: 100 }), (error) => {
      return error instanceof WaitTimeoutError && error.grabId === "id-1";
    });
    // A service that responds without waiting is not asked in a loop.
    assert.ok(service.received.length <= 3, `${service.received.length}`);
  });
});

test("list follows the pages", async () => {
  const page = (ids: string[], has_more: boolean) =>
    json(200, { data: ids.map((id) => grab("done", { id })), has_more });
  await FakeService.with([page(["c", "b"], true), page(["a"], false)], async (client, service) => {
    const ids: string[] = [];
    for await (const { id } of client.listGrabs({ limit: 2, status: "done" })) ids.push(id);
    assert.deepEqual(ids, ["c", "b", "a"]);
    const urls = service.received.map(({ url }) => url);
    assert.deepEqual(urls, ["/v1/grabs?limit=2&status=done", "/v1/grabs?limit=2&status=done&starting_after=b"]);
  });
});

test("a search goes on after pages without grabs", async () => {
  const empty = json(200, { data: [], has_more: true, next: "b" });
  const last = json(200, { data: [grab("done", { id: "a" })], has_more: false });
  await FakeService.with([empty, last], async (client, service) => {
    const ids: string[] = [];
    const filters = { url: "example.com", from: "2026-11-20", until: "2026-11-21" };
    for await (const { id } of client.listGrabs(filters)) ids.push(id);
    assert.deepEqual(ids, ["a"]);
    const query = "url=example.com&from=2026-11-20&until=2026-11-21";
    const urls = service.received.map(({ url }) => url);
    assert.deepEqual(urls, [`/v1/grabs?${query}`, `/v1/grabs?starting_after=b&${query}`]);
  });
});

test("a text is read in parts", async () => {
  const part = { format: "text", text: "One. ", from: 0, next: 5, tokens_estimate: 2, total_tokens: 4 };
  const last = { ...part, text: "Two.", from: 5, next: null };
  await FakeService.with([json(200, part), json(200, last)], async (client, service) => {
    const first = await client.read("a/b", { format: "text", max_tokens: 100 });
    assert.deepEqual([first.text, first.next], ["One. ", 5]);
    const second = await client.read("a/b", { format: "text", from: first.next });
    assert.deepEqual([second.text, second.from, second.next], ["Two.", 5, null]);
    const urls = service.received.map(({ url }) => url);
    const path = "/v1/grabs/a%2Fb/read?format=text";
    assert.deepEqual(urls, [`${path}&max_tokens=100`, `${path}&from=5`]);
  });
});

test("deletion has no body", async () => {
  await FakeService.with([(response) => response.writeHead(204).end()], async (client, service) => {
    assert.equal(await client.deleteGrab("a/b"), undefined);
    assert.deepEqual([service.received[0]!.method, service.received[0]!.url], ["DELETE", "/v1/grabs/a%2Fb"]);
    await assert.rejects(async () => client.deleteGrab(""), TypeError);
  });
});

const event = (id: number, status: string) => `event: grab\nid: ${id}\ndata: ${JSON.stringify(grab(status))}\n\n`;
const stream = (text: string, breaks = false): Responder => (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(text, () => (breaks ? response.destroy() : response.end()));
};

async function watched(client: Grabd, options: WatchOptions = {}): Promise<string[]> {
  const states: string[] = [];
  for await (const { status } of client.watch("id-1", options)) states.push(status);
  return states;
}

test("broken stream of events is resumed after the last one", async () => {
  const [first, last] = [stream(event(1, "pending"), true), stream(": \n\n" + event(3, "done"))];
  const responders = [first, stream(event(2, "processing")), last];
  await FakeService.with(responders, async (client, service) => {
    assert.deepEqual(await watched(client), ["pending", "processing", "done"]);
    const ids = service.received.map(({ headers }) => headers["last-event-id"]);
    assert.deepEqual(ids, [undefined, "1", "2"]);
    assert.equal(service.received[0]!.url, "/v1/grabs/id-1/events");
  });
});

const LIMITED: Responder[] = [
  failure(429, "rate_limit_exceeded", { "retry-after": "0" }),
  (response) => response.writeHead(429, { "retry-after": "0" }).end("<html>Too Many Requests</html>"),
];
for (const limited of LIMITED) {
  test(`wait goes on while a limit is used up: ${LIMITED.indexOf(limited)}`, async () => {
    const refusals = Array<Responder>(12).fill(limited);
    await FakeService.with([...refusals, json(200, grab("processing")), limited, DONE], async (client, service) => {
      assert.equal((await client.wait("id-1")).status, "done");
      assert.equal(service.received.length, 15);
    }, { maxRetries: 0 });
  });

  test(`watch goes on while a limit is used up: ${LIMITED.indexOf(limited)}`, async () => {
    const refusals = Array<Responder>(12).fill(limited);
    const events = [stream(event(1, "pending")), limited, stream(event(2, "done"))];
    await FakeService.with([...refusals, ...events], async (client, service) => {
      assert.deepEqual(await watched(client), ["pending", "done"]);
      assert.equal(service.received.length, 15);
    }, { maxRetries: 0 });
  });
}

test("limit that is used up until the end of the wait is its cause, and Retry-After is obeyed", async () => {
  await FakeService.with([failure(429, "rate_limit_exceeded", { "retry-after": "3600" })], async (client, service) => {
    for (const end of [client.wait.bind(client, "id-1"), watched.bind(undefined, client)]) {
      await assert.rejects(end({ waitTimeoutMs: 50 }), (error) => {
        return error instanceof WaitTimeoutError && error.cause instanceof RateLimitExceededError;
      });
    }
    assert.ok(service.received.length <= 4, `${service.received.length}`);
  });
});

test("watch of a grab whose last state was seen reads the grab", async () => {
  const responders: Responder[] = [stream(event(1, "pending")), (response) => response.writeHead(204).end(), DONE];
  await FakeService.with(responders, async (client) => {
    assert.deepEqual(await watched(client), ["pending", "done"]);
  });
});

test("events that are sent again are not yielded again", async () => {
  const repeated = stream(event(1, "pending") + event(1, "pending"));
  await FakeService.with([repeated, stream(event(1, "pending") + event(2, "done"))], async (client) => {
    assert.deepEqual(await watched(client), ["pending", "done"]);
  });
});

test("streams without events end the watch with an error", async () => {
  await FakeService.with([stream("")], async (client, service) => {
    await assert.rejects(watched(client), UnexpectedResponseError);
    assert.equal(service.received.length, 5);
  });
});

test("silent stream ends with the time limit of the watch", async () => {
  const open: Responder = (response) => response.writeHead(200).write(event(1, "pending"));
  await FakeService.with([open], async (client) => {
    await assert.rejects(async () => {
      for await (const _ of client.watch("id-1", { waitTimeoutMs: 200 }));
    }, WaitTimeoutError);
  });
});

test("watch of an unknown grab fails at once", async () => {
  await FakeService.with([failure(404, "not_found")], async (client, service) => {
    await assert.rejects(watched(client), { code: "not_found" });
    assert.equal(service.received.length, 1);
  });
});

test("download resolves a relative URL and sends no API key", async () => {
  await FakeService.with([(response) => response.end("image")], async (client, service) => {
    const image = await client.download({ ...grab("done"), image_url: "/i/1.png" } as never);
    assert.equal(new TextDecoder().decode(image), "image");
    assert.deepEqual([service.received[0]!.url, service.received[0]!.headers.authorization], ["/i/1.png", undefined]);
    await assert.rejects(client.download("/i/1.png", { maxBytes: 4 }), UnexpectedResponseError);
    assert.throws(() => client.imageUrl({ ...grab("failed"), image_url: null } as never), TypeError);
  });
});

test("downloaded file is complete or absent", async () => {
  const dir = await mkdtemp(join(tmpdir(), "grabd-"));
  await FakeService.with([(response) => response.end("image"), failure(404, "not_found")], async (client) => {
    await downloadToFile(client, "/i/1.png", join(dir, "a.png"));
    await assert.rejects(downloadToFile(client, "/i/1.png", join(dir, "b.png")), ApiError);
    assert.equal(await readFile(join(dir, "a.png"), "utf8"), "image");
    assert.deepEqual(await readdir(dir), ["a.png"]);
    await assert.rejects(downloadToFile(client, "/i/1.png", join(dir, "missing", "c.png")));
  });
});

test("invalid settings are reported", () => {
  assert.throws(() => new Grabd({ baseUrl: "" }), /GRAB_BASE_URL/);
  assert.throws(() => new Grabd({ baseUrl: "ftp://example.com" }), /http/);
  const baseUrl = "https://example.com/v1";
  for (const maxRetries of [-1, 11, Number.NaN]) assert.throws(() => new Grabd({ baseUrl, maxRetries }), /maxRetries/);
  for (const timeoutMs of [0, 2 ** 31]) assert.throws(() => new Grabd({ baseUrl, timeoutMs }), /timeoutMs/);
});

test("unknown option is refused unless it is given as an extra", async () => {
  await FakeService.with([DONE], async (client, service) => {
    // @ts-expect-error: the name is misspelled.
    await assert.rejects(client.capture("https://example.com/", { widht: 800 }), /widht/);
    assert.equal(service.received.length, 0);
    await client.capture("https://example.com/", { extraOptions: { sepia: true } });
    assert.equal((JSON.parse(service.received[0]!.body) as { sepia: boolean }).sepia, true);
  });
});

test("types refuse wrong values", () => {
  // Never called: the compiler checks it.
  const check = (client: Grabd) => [
    // @ts-expect-error: not a format.
    client.capture("", { format: "gif" }),
    // @ts-expect-error: not a number.
    client.capture("", { width: "800" }),
    // @ts-expect-error: not a state.
    client.listGrabs({ status: "finished" }),
  ];
  assert.equal(typeof check, "function");
  assert.ok(new CreditsExhaustedError("", {
    status: 402, code: "credits_exhausted", cause: undefined, requestId: undefined, retryAfterS: undefined, location: undefined,
  }) instanceof ApiError);
  assert.ok(!(new BadRequestError("", {
    status: 400, code: "bad_request", cause: undefined, requestId: undefined, retryAfterS: undefined, location: undefined,
  }) instanceof ConnectionError));
});

test("only the module for Node.js imports its modules", async () => {
  const source = new URL("../src/", import.meta.url);
  const files = (await readdir(source)).filter((name) => name.endsWith(".js"));
  assert.ok(files.length > 5, `${files}`);
  for (const name of files) {
    const imports = /from "node:/.test(await readFile(new URL(name, source), "utf8"));
    assert.equal(imports, name === "node.js", name);
  }
});

test("version is that of the package", async () => {
  const file = new URL("../../package.json", import.meta.url);
  assert.equal((JSON.parse(await readFile(file, "utf8")) as { version: string }).version, VERSION);
});
