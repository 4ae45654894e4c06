// Queues fifty pages and waits for all of them: node queue_many.mts TASK, where TASK is JSON. Each way to wait has a key of
// a team of its own, with the limits that a service has by default.
import assert from "node:assert/strict";

import { type Grab, Grabd } from "grabd";

interface Task {
  base_url: string;
  key: string;
  other_key: string;
  third_key: string;
  page: string;
}

const { base_url: baseUrl, key, other_key, third_key, page } = JSON.parse(process.argv[2] ?? "") as Task;
const pages = Array.from({ length: 50 }, (_, number) => `${page}?page=${number}`);

async function all(apiKey: string, end: (client: Grabd, id: string) => Promise<Grab | undefined>): Promise<void> {
  const client = new Grabd({ baseUrl, apiKey });
  const { results } = await client.createBatch(pages);
  const ended = await Promise.all(results.map(({ grab }) => grab && end(client, grab.id)));
  assert.deepEqual(ended.map((grab) => grab?.status === "done" && grab.target_url), pages);
}

await all(key, (client, id) => client.wait(id));
await all(other_key, async (client, id) => {
  let last: Grab | undefined;
  for await (const grab of client.watch(id)) last = grab;
  return last;
});
const client = new Grabd({ baseUrl, apiKey: third_key });
const { results } = await client.createBatch(pages);
const ended = await client.waitAll(results.flatMap(({ grab }) => grab ?? []));
assert.deepEqual(ended.map((grab) => grab.status === "done" && grab.target_url), pages);
console.log("all fifty arrived, three times");
