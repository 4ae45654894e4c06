// Runs the node of the installed package against a service: node exercise.mjs TASK, where TASK is JSON.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";

import { parametersFor } from "./parameters.mjs";

const task = JSON.parse(process.argv[2] ?? "");
// n8n itself can run the node too: a module with the same functions.
const { load } = await import(task.runner ?? "./routing.mjs");
const { description, run, testCredentials } = await load(join(task.dir, "node_modules/n8n-nodes-grabd"));
const live = { credentials: { baseUrl: task.base_url, apiKey: task.live_key } };
const test = { credentials: { baseUrl: `${task.base_url}/`, apiKey: task.test_key } };
const PNG = "89504e47";

const bytes = (binary) => Buffer.from(binary.data, "base64");
const code = (expected) => (error) => {
  assert.ok(error.message.startsWith(`${expected}: `), `${expected}: ${error.stack}`);
  return true;
};

async function credentials() {
  assert.equal(await testCredentials(live.credentials), 200);
  // The root may be given without the version.
  const origin = task.base_url.replace(/\/v1$/, "");
  assert.equal(await testCredentials({ ...test.credentials, baseUrl: origin }), 200);
  assert.equal(await testCredentials({ ...live.credentials, apiKey: "sk_live_wrong" }), 401);
}

async function capture() {
  const parameters = {
    url: task.page, format: "jpeg", downloadImage: true, imageField: "shot",
    options: { width: 800, height: 600, quality: 70, hide: [".ad", ""], metadata: { entry: [{ name: "order", value: "7" }] } },
  };
  const [{ json, binary, pairedItem }] = await run(parameters, { ...live, itemIndex: 0 });
  assert.deepEqual([json.status, json.width, json.height, json.format], ["done", 800, 600, "jpeg"]);
  assert.deepEqual(json.metadata, { order: "7" });
  assert.deepEqual(Object.keys(binary), ["shot"]);
  assert.equal(bytes(binary.shot).subarray(0, 3).toString("hex"), "ffd8ff");
  assert.deepEqual([binary.shot.mimeType, binary.shot.fileName], ["image/jpeg", `${json.id}.jpeg`]);
  assert.equal(bytes(binary.shot).length, json.bytes);
  assert.deepEqual(pairedItem, { item: 0 });

  // The same item of the same execution is not captured again.
  const [again] = await run(parameters, { ...live, itemIndex: 0 });
  assert.equal(again.json.id, json.id);
  return json.id;
}

/** The example of each capture option in the OpenAPI document arrives as it is if it is filled in in the node. */
async function allOptions() {
  const { components } = await (await fetch(`${task.base_url}/openapi.json`)).json();
  const bodies = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(200, { "content-type": "application/json" }).end('{"id":"x","status":"done"}');
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const credentials = { baseUrl: `http://127.0.0.1:${server.address().port}`, apiKey: "sk_live_x" };
  const options = Object.entries(components.schemas.CreateGrabRequest.properties);
  for (const [name, { examples }] of options) {
    const given = { url: task.page, ...parametersFor(description, name, examples[0]) };
    await run(given, { credentials });
    assert.deepEqual(bodies.at(-1)[name], examples[0], name);
  }
  assert.ok(bodies.length > 50, `${bodies.length} options`);
  server.close();
}

/** The parameters that are written by hand have the choices and bounds of the OpenAPI document. */
async function otherParameters() {
  const { paths } = await (await fetch(`${task.base_url}/openapi.json`)).json();
  const stated = (path, name) => paths[path].get.parameters.find((parameter) => parameter.name === name).schema;
  const top = (name) => description.properties.find((property) => property.name === name);
  const member = (collection, name) => top(collection).options.find((property) => property.name === name);
  for (const [path, name, { options }] of [
    ["/grabs/{id}/read", "format", top("text")],
    ["/grabs", "status", member("filters", "status")],
  ]) {
    assert.deepEqual(options.map(({ value }) => value), [...stated(path, name).enum].sort(), name);
  }
  for (const name of ["max_tokens", "from"]) {
    const { minimum, maximum, default: value } = stated("/grabs/{id}/read", name);
    const { typeOptions, default: own } = member("readOptions", name);
    assert.deepEqual([typeOptions.minValue, typeOptions.maxValue, own], [minimum, maximum, value], name);
  }
  for (const name of ["url", "from", "until"]) assert.ok(stated("/grabs", name) && member("filters", name), name);
}

async function placeholder() {
  const settings = { downloadFiles: true };
  const parameters = { url: task.page, also: ["markdown", "pdf"], downloadImage: true, settings };
  const [{ json, binary }] = await run(parameters, test);
  assert.deepEqual(Object.keys(binary).sort(), ["data", "markdown", "pdf"]);
  assert.equal(bytes(binary.data).subarray(0, 4).toString("hex"), PNG);
  assert.equal(binary.pdf.fileName, `${json.id}-pdf.pdf`);
  assert.equal(binary.markdown.fileName, `${json.id}-markdown.md`);
  assert.ok(bytes(binary.pdf).toString("latin1").startsWith("%PDF"));

  const read = { operation: "read", grabId: json.id, readOptions: { max_tokens: 100 } };
  const [part] = await run(read, test);
  assert.ok(part.json.text.startsWith("# TEST"), part.json.text);
  assert.deepEqual([part.json.format, part.json.from, part.json.next], ["markdown", 0, null]);
  await assert.rejects(run({ ...read, text: "report" }, test), code("not_found"));

  const [listed] = await run({ operation: "list", limit: 1, filters: { url: task.page, status: "done", from: "" } }, test);
  assert.equal(listed.json.id, json.id);
}

async function queueAndWait() {
  const settings = { waitForResult: false };
  const [queued] = await run({ url: task.slow_page, settings }, { ...live, itemIndex: 1 });
  assert.ok(["pending", "processing"].includes(queued.json.status), queued.json.status);
  const byId = { grabId: queued.json.id, downloadImage: true };
  const [ended] = await run({ operation: "wait", ...byId }, live);
  assert.deepEqual([ended.json.id, ended.json.status], [queued.json.id, "done"]);
  assert.equal(bytes(ended.binary.data).length, ended.json.bytes);
  const [got] = await run({ operation: "get", ...byId, downloadImage: false }, live);
  assert.deepEqual([got.json, got.binary], [ended.json, undefined]);

  // A capture that takes longer than a synchronous one may is queued and waited for.
  const options = { timeout_ms: 30000 };
  const [slow] = await run({ url: task.slow_page, options }, { ...live, itemIndex: 2 });
  assert.equal(slow.json.status, "done");
}

async function errors() {
  await assert.rejects(run({ url: task.refused_page }, live), code("ssrf_detected"));
  // A failed capture is free, and is made again if n8n repeats the node.
  for (const count of [1, 2, 3]) {
    await assert.rejects(run({ url: task.failing_page }, live), code("render_failed"));
    const failures = await run({ operation: "list", filters: { status: "failed", url: task.failing_page } }, live);
    assert.equal(failures.length, count);
  }
  const settings = { waitForResult: false };
  const [queued] = await run({ url: task.failing_page, settings }, { ...live, itemIndex: 3 });
  await assert.rejects(run({ operation: "wait", grabId: queued.json.id }, live), (error) => {
    assert.match(error.description, new RegExp(`grab: ${queued.json.id}`));
    return code("render_failed")(error);
  });
  // `Get` returns a failed grab as it is.
  const [failed] = await run({ operation: "get", grabId: queued.json.id }, live);
  assert.equal(failed.json.error_code, "render_failed");

  await assert.rejects(run({ url: task.page, options: { width: 100 } }, live), code("invalid_viewport"));
  await assert.rejects(run({ url: "" }, live), code("bad_request"));
  await assert.rejects(run({ url: task.page, options: { steps: "[{" } }, live), /`steps` must be JSON; got "\[\{"/);
  await assert.rejects(run({ operation: "get", grabId: ".." }, live), /`Grab ID` must be the id of a grab; got "\.\."/);
  const unknown = { operation: "delete", grabId: "01993e1c-7b1a-7000-8000-0123456789ab" };
  await assert.rejects(run(unknown, live), code("not_found"));
  const wrong = { credentials: { ...live.credentials, apiKey: "sk_live_wrong" } };
  await assert.rejects(run({ url: task.page }, wrong), code("unauthorized"));
}

async function listAndDelete(captured) {
  const all = await run({ operation: "list", returnAll: true }, live);
  const ids = all.map(({ json }) => json.id);
  assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
  assert.ok(ids.includes(captured), `${ids}`);
  const [first, second, ...rest] = await run({ operation: "list", limit: 2 }, live);
  assert.deepEqual([first.json.id, second.json.id, rest], [ids[0], ids[1], []]);

  const [deleted] = await run({ operation: "delete", grabId: captured }, live);
  assert.deepEqual(deleted.json, { id: captured, deleted: true });
  const [{ json, binary }] = await run({ operation: "get", grabId: captured, downloadImage: true }, live);
  assert.deepEqual([json.image_url, binary], [null, undefined]);
}

await credentials();
await allOptions();
await otherParameters();
const captured = await capture();
await placeholder();
await queueAndWait();
await errors();
await listAndDelete(captured);
console.log("all checks passed");
