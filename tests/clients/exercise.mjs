// The checks that every connected client runs: list the tools, and call each of them.
import assert from "node:assert/strict";

const TOOLS = ["create_grab", "get_grab", "list_grabs", "get_usage", "get_pricing", "capture_site", "monitor"];

/// `list()` returns the tools, `call(name, args, onprogress)` a result; `page` is the URL of a slow page.
export async function exercise({ list, call, page }) {
  const tools = await list();
  assert.deepEqual(tools.map((tool) => tool.name), TOOLS);

  const steps = [];
  const made = await call("create_grab", { url: page, width: 800, height: 600 }, (progress) => steps.push(progress.progress));
  assert.ok(!made.isError, JSON.stringify(made.content));
  assert.equal(made.structuredContent.status, "done");
  assert.deepEqual(made.content.map((block) => block.type), ["image", "resource_link", "text"]);
  assert.deepEqual(JSON.parse(made.content[2].text), made.structuredContent);
  assert.ok(steps.length > 0 && steps.every((step, at) => at === 0 || step > steps[at - 1]), `progress: ${steps}`);

  const id = made.structuredContent.id;
  const got = await call("get_grab", { id, include_image: true });
  assert.equal(got.content[0].data, made.content[0].data);
  const listed = await call("list_grabs", { limit: 1 });
  assert.equal(listed.structuredContent.data[0].id, id);
  const usage = await call("get_usage", {});
  assert.equal(typeof usage.structuredContent.credits.total, "number");
  const pricing = await call("get_pricing", {});
  assert.equal(pricing.structuredContent.pricing.per_grab_usd, 0.002);

  const refused = await call("create_grab", { url: page, width: 1 });
  assert.equal(refused.isError, true);
  const { error, hint } = JSON.parse(refused.content[0].text);
  assert.equal(error.code, "invalid_viewport");
  assert.ok(hint.length > 0);
}

/// The task of a client, as JSON in the only argument. `auth` is described in `sign_in.mjs`.
export function task() {
  return JSON.parse(process.argv[2]);
}
