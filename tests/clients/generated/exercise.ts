// Does with clients that are generated from the OpenAPI document what every caller does first: a capture, one as on a phone, a
// batch, an asynchronous capture that is waited for, and an error.
import createClient from "openapi-fetch";
import type { paths } from "./schema";
import * as hey from "./hey";
import { client as heyClient } from "./hey/client.gen";
import * as orval from "./orval";

const { BASE = "", KEY = "", REFUSED = "" } = process.env;
const headers = { Authorization: `Bearer ${KEY}` };

interface Answer {
  status: number;
  // What a generator calls it is not what is tested.
  data: any;
}
type Create = (body: any, prefer?: string) => Promise<Answer>;

async function exercise(
  name: string, create: Create, batch: (body: any) => Promise<Answer>, get: (id: string) => Promise<Answer>,
) {
  const check = (isRight: boolean, answer: Answer) => {
    if (!isRight) throw new Error(`${name}: ${answer.status} ${JSON.stringify(answer.data)}`);
  };
  const plain = await create({ url: "https://example.com/" });
  check(plain.status === 200 && plain.data.status === "done" && plain.data.width === 1280, plain);
  const phone = await create({ url: "https://example.com/", device: "phone" });
  check(phone.data.width === 390 && phone.data.height === 844, phone);
  const several = await batch({ grabs: [{ url: "https://example.com/a" }, { url: "https://example.com/b", width: 800 }] });
  check(several.data.results.every((result: any) => result.grab.status === "done"), several);
  const queued = await create({ url: "https://example.com/async" }, "respond-async");
  const ended = await get(queued.data.id);
  check(ended.data.status === "done", ended);
  const refused = await create({ url: REFUSED });
  check(refused.status === 400 && refused.data.error.code === "ssrf_detected", refused);
  console.log(`${name}: all done`);
}

async function main() {
  heyClient.setConfig({ baseUrl: BASE, auth: KEY });
  const ofHey = (answer: any): Answer => ({ status: answer.response.status, data: answer.data ?? answer.error });
  await exercise(
    "hey-api",
    async (body, prefer) => ofHey(await hey.createGrab({ body, headers: prefer ? { Prefer: prefer } : {} })),
    async (body) => ofHey(await hey.createBatch({ body })),
    async (id) => ofHey(await hey.getGrab({ path: { id }, headers: { Prefer: "wait=20" } })),
  );
  const own = createClient<paths>({ baseUrl: BASE, headers });
  await exercise(
    "openapi-typescript",
    async (body, prefer) => ofHey(await own.POST("/grabs", { body, params: { header: prefer ? { Prefer: prefer } : {} } })),
    async (body) => ofHey(await own.POST("/grabs/batch", { body })),
    async (id) => ofHey(await own.GET("/grabs/{id}", { params: { path: { id }, header: { Prefer: "wait=20" } } })),
  );
  // Its functions ask the server of the page that they are on.
  const { fetch } = globalThis;
  globalThis.fetch = (input, init) => fetch(typeof input === "string" && input.startsWith("/") ? BASE + input : input, init);
  const more = (prefer?: string) => ({ headers: prefer ? { ...headers, Prefer: prefer } : headers });
  await exercise(
    "orval",
    (body, prefer) => orval.createGrab(body, undefined, more(prefer)),
    (body) => orval.createBatch(body, more()),
    (id) => orval.getGrab(id, more("wait=20")),
  );
}

void main();
