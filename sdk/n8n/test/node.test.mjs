// Runs the compiled node, in ../dist, against a server with scripted responses.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { parametersFor } from "../e2e/parameters.mjs";
import { load } from "../e2e/routing.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const ID = "01993e1c-7b1a-7000-8000-0123456789ab";
const DONE = { id: ID, status: "done", image_url: "/i/x.png", format: "png" };
const { description, run } = load(ROOT);
const { requestBody } = createRequire(import.meta.url)(`${ROOT}/dist/nodes/Grabd/body.js`);

/** Starts a server that gives these responses, one after the other, and keeps the requests. */
async function serve(context, replies) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    requests.push({ method: request.method, url: request.url, headers: request.headers, body, at: Date.now() });
    const reply = replies[requests.length - 1] ?? { status: 500 };
    const { status = 200, headers = {}, json, text = JSON.stringify(json), drop = false } = reply;
    if (drop) return void request.socket.destroy();
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(status === 204 ? undefined : text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.closeAllConnections() ?? server.close());
  const credentials = { baseUrl: `http://127.0.0.1:${server.address().port}/v1`, apiKey: "sk_live_x" };
  return { requests, credentials };
}

const refusal = (status, code, headers = {}) => ({ status, headers, json: { error: { code, message: "Text." } } });
const idempotencyKeys = (requests) => requests.map(({ headers }) => headers["idempotency-key"]);

test("create has the stated method, URL, credential and body", async (context) => {
  const { requests, credentials } = await serve(context, [{ json: DONE }]);
  const [item] = await run({ url: "https://example.com/", full_page: true, options: { css: "" } }, { credentials, itemIndex: 4 });
  assert.deepEqual(item, { json: DONE, pairedItem: { item: 4 } });
  const [{ method, url, headers, body }] = requests;
  assert.deepEqual([method, url, headers.authorization], ["POST", "/v1/grabs", "Bearer sk_live_x"]);
  assert.equal(headers.prefer, undefined);
  const expected = { url: "https://example.com/", full_page: true, format: "png", device: "desktop" };
  assert.deepEqual(JSON.parse(body), expected);
});

test("idempotency key depends on the execution, the run, the item and the options, and on nothing else", async (context) => {
  const { requests, credentials } = await serve(context, Array(8).fill({ json: DONE }));
  const url = "https://example.com/";
  await run({ url }, { credentials });
  await run({ url }, { credentials });
  await run({ url }, { credentials, execution: "8" });
  await run({ url }, { credentials, runIndex: 1 });
  await run({ url }, { credentials, itemIndex: 1 });
  await run({ url, format: "webp" }, { credentials });
  await run({ url, settings: { idempotencyKey: "order-7" } }, { credentials });
  await run({ url }, { credentials, execution: "__UNKNOWN__" });
  const [first, repeated, ...others] = idempotencyKeys(requests);
  assert.match(first, /^n8n-[0-9a-f]{64}$/);
  assert.equal(repeated, first);
  assert.equal(new Set([first, ...others]).size, 7);
  assert.equal(others[4], "order-7");
  assert.match(others[5], /^n8n-[0-9a-f-]{36}$/);
});

test("limit is waited for as long as the service says, and the create is repeated with its key", async (context) => {
  const limit = refusal(429, "rate_limit_exceeded", { "retry-after": "1" });
  const { requests, credentials } = await serve(context, [limit, { json: DONE }]);
  await run({ url: "https://example.com/" }, { credentials });
  assert.equal(requests.length, 2);
  assert.ok(requests[1].at - requests[0].at >= 1000, "it waited");
  assert.equal(new Set(idempotencyKeys(requests)).size, 1);
  assert.equal(requests[0].body, requests[1].body);
});

test("limit that lasts longer than the time limit is an error at once", async (context) => {
  const limit = refusal(429, "queue_limit_exceeded", { "retry-after": "30", "error-cause": "request" });
  const { requests, credentials } = await serve(context, [limit]);
  const call = run({ url: "https://example.com/", settings: { timeLimit: 5 } }, { credentials });
  await assert.rejects(call, ({ message, description: details, httpCode }) => {
    assert.deepEqual([message, httpCode], ["queue_limit_exceeded: Text.", "429"]);
    assert.match(details, /cause: request; .*retry after seconds: 30/);
    return true;
  });
  assert.equal(requests.length, 1);
});

test("failures of the service and of connections are repeated", async (context) => {
  const replies = [{ drop: true }, { status: 503, text: "<html>" }, refusal(409, "idempotency_conflict"), { json: DONE }];
  const { requests, credentials } = await serve(context, replies);
  await run({ url: "https://example.com/" }, { credentials });
  assert.equal(new Set(idempotencyKeys(requests)).size, 1);
  assert.equal(requests.length, 4);
});

test("failures that would be the same again are not repeated", async (context) => {
  const last = { status: 502, text: "Bad gateway" };
  const notOurs = "unexpected_response: The response has the status 502 and is no error of grabd. Check the base URL.";
  const cases = [
    [[refusal(500, "render_failed")], "render_failed: Text."],
    [[refusal(402, "credits_exhausted")], "credits_exhausted: Text."],
    [[last, last, last, last], notOurs],
  ];
  for (const [replies, message] of cases) {
    const { requests, credentials } = await serve(context, replies);
    await assert.rejects(run({ url: "https://example.com/" }, { credentials }), { message });
    assert.equal(requests.length, replies.length, message);
  }
});

test("failed capture is made again if n8n repeats the node, and a done one is not", async (context) => {
  const headers = { "idempotent-replayed": "true" };
  const replayed = refusal(500, "render_failed", headers);
  const failed = { status: 202, headers, json: { ...DONE, status: "failed", error_code: "render_failed", error_message: "x" } };
  const { requests, credentials } = await serve(context, [replayed, failed, { json: DONE }, { headers, json: DONE }]);
  await run({ url: "https://example.com/" }, { credentials });
  const [key, ...others] = idempotencyKeys(requests);
  assert.deepEqual(others, [`${key}-2`, `${key}-3`]);
  await run({ url: "https://example.com/" }, { credentials });
  assert.equal(requests.length, 4);

  // With a key of one's own, the first result counts, and there is an end in any case.
  for (const [idempotencyKey, count] of [["order-7", 1], ["", 6]]) {
    const again = await serve(context, Array(9).fill(replayed));
    const call = run({ url: "https://example.com/", settings: { idempotencyKey } }, { credentials: again.credentials });
    await assert.rejects(call, { message: "render_failed: Text." });
    assert.equal(again.requests.length, count);
  }
});

test("page that is not of the service is an error, and so are numbers that are none", async (context) => {
  const { credentials } = await serve(context, [{ text: "<html>", headers: { "content-type": "text/html" } }]);
  const call = run({ url: "https://example.com/" }, { credentials });
  await assert.rejects(call, { message: "unexpected_response: The response is no JSON of grabd. Check the base URL." });
  const limited = run({ url: "https://example.com/", settings: { timeLimit: "soon" } }, { credentials });
  await assert.rejects(limited, { message: "`Time Limit` must be from 1 to 3600 seconds; got NaN." });
  const none = run({ operation: "list", limit: 0 }, { credentials });
  await assert.rejects(none, { message: "`Limit` must be an integer from 1 on; got 0." });
});

test("redirect is not followed, and the key goes nowhere else", async (context) => {
  const other = await serve(context, [{ json: DONE }]);
  const location = `${other.credentials.baseUrl}/grabs`;
  const { credentials } = await serve(context, [{ status: 307, headers: { location }, text: "" }]);
  await assert.rejects(run({ url: "https://example.com/" }, { credentials }), /^NodeApiError: unexpected_response: .* status 307/);
  assert.equal(other.requests.length, 0);
});

test("image is requested without the key", async (context) => {
  const moved = { status: 302, headers: { location: "/store/x.png" }, text: "" };
  const { requests, credentials } = await serve(context, [{ json: DONE }, moved, { text: "image" }]);
  const [{ binary }] = await run({ operation: "get", grabId: ID, downloadImage: true }, { credentials });
  const data = Buffer.from("image").toString("base64");
  assert.deepEqual(binary, { data: { data, fileName: `${ID}.png`, mimeType: "image/png" } });
  assert.deepEqual(requests.map(({ url }) => url), [`/v1/grabs/${ID}`, "/i/x.png", "/store/x.png"]);
  assert.deepEqual(requests.map(({ headers }) => headers.authorization), ["Bearer sk_live_x", undefined, undefined]);
});

test("open grab is waited for by long polling, until the time limit", async (context) => {
  const open = { json: { id: ID, status: "processing" } };
  const { requests, credentials } = await serve(context, [{ ...open, status: 202 }, open, { json: DONE }]);
  const [{ json }] = await run({ url: "https://example.com/", settings: { timeLimit: 60 } }, { credentials });
  assert.deepEqual(json, DONE);
  assert.deepEqual(requests.map(({ method, url }) => `${method} ${url}`).slice(1), Array(2).fill(`GET /v1/grabs/${ID}`));
  assert.deepEqual([requests[1].headers.prefer, requests[1].body], ["wait=25", ""]);
  assert.equal(requests[1].headers["idempotency-key"], undefined);

  const stays = await serve(context, Array(5).fill(open));
  const call = run({ operation: "wait", grabId: ID, settings: { timeLimit: 1 } }, { credentials: stays.credentials });
  await assert.rejects(call, new RegExp(`The grab ${ID} has not ended within the time limit of this node. It goes on.`));
});

test("cancelled execution ends its waits", async (context) => {
  const cancelled = new AbortController();
  const limit = refusal(429, "rate_limit_exceeded", { "retry-after": "200" });
  const { requests, credentials } = await serve(context, [limit, { json: DONE }]);
  const call = run({ url: "https://example.com/" }, { credentials, signal: cancelled.signal });
  while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  cancelled.abort();
  await assert.rejects(call, { name: "AbortError" });
  assert.equal(requests.length, 1);
});

test("list follows the pages, also those of a search that found nothing yet", async (context) => {
  const replies = [
    { json: { data: [{ id: "a" }], has_more: true } },
    { json: { data: [], has_more: true, next: "n" } },
    { json: { data: [{ id: "b" }], has_more: false } },
  ];
  const { requests, credentials } = await serve(context, replies);
  const items = await run({ operation: "list", limit: 150, filters: { url: "x", until: "" } }, { credentials });
  assert.deepEqual(items.map(({ json }) => json.id), ["a", "b"]);
  const expected = ["url=x&limit=100", "url=x&limit=100&starting_after=a", "url=x&limit=100&starting_after=n"];
  assert.deepEqual(requests.map(({ url }) => url.split("?")[1]), expected);
});

test("parameters become options in the form of the API", () => {
  const kinds = {
    headers: "map", cookies: "objects", "cookies.value": "text", pdf: "object", "pdf.header": "text", codes: "words",
    rules: "objects", "rules.status": "word", steps: "json",
  };
  const entry = [{ name: "A", value: "" }, { name: "", value: "x" }];
  const cases = [
    [{ url: "", css: null, width: 0, full_page: false, hide: ["", "a"], also: [] }, { width: 0, full_page: false, hide: ["a"] }],
    [{ headers: { entry } }, { headers: { A: "" } }],
    [{ headers: {}, pdf: {}, cookies: {}, steps: "", codes: [""] }, {}],
    [{ cookies: { value: [{ name: "a", value: "", more: { path: "" } }, {}] } }, { cookies: [{ name: "a", value: "" }] }],
    // An empty header is another one than none; an empty format is not filled in.
    [{ pdf: { header: "", format: "", scale: 1.5 } }, { pdf: { header: "", scale: 1.5 } }],
    [{ codes: ["404", "5xx"] }, { codes: [404, "5xx"] }],
    [{ rules: { value: [{ url: "*", more: { status: "404" } }] } }, { rules: [{ url: "*", status: 404 }] }],
    [{ steps: '[{"press":"Enter"}]' }, { steps: [{ press: "Enter" }] }],
    [{ steps: [{ press: "Enter" }] }, { steps: [{ press: "Enter" }] }],
  ];
  for (const [parameters, body] of cases) assert.deepEqual(requestBody(parameters, kinds), body);
  const message = '`steps` must be JSON; got "{".';
  assert.throws(() => requestBody({ steps: "{" }, kinds), { message });
});

test("required members come first, and all others are in a collection of their own", () => {
  assert.deepEqual(parametersFor(description, "geolocation", { latitude: 1, longitude: 2, accuracy: 3 }), {
    options: { geolocation: { value: { latitude: 1, longitude: 2, more: { accuracy: 3 } } } },
  });
});

test("description has what n8n requires of a community node", () => {
  const { name, keywords, n8n } = JSON.parse(readFileSync(`${ROOT}/package.json`, "utf8"));
  assert.ok(name.startsWith("n8n-nodes-") && keywords.includes("n8n-community-node-package"));
  assert.equal(n8n.n8nNodesApiVersion, 1);
  const codex = JSON.parse(readFileSync(`${ROOT}/nodes/Grabd/Grabd.node.json`, "utf8"));
  assert.equal(codex.node, `${name}.${description.name}`);
  const operations = description.properties.find((property) => property.name === "operation").options;
  assert.deepEqual(operations.map(({ value }) => value), ["capture", "delete", "get", "list", "read", "wait"]);
});
