// The TypeScript client, version 2, in each of its era modes.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

import { exercise, task } from "./exercise.mjs";
import { credential } from "./sign_in.mjs";

const { url, auth, page, era } = task();
const mode = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } }[era];
const { options, answered } = credential(url, auth);
const connect = async () => {
  const client = new Client({ name: "sdk2", version: "1" }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(url), options);
  const failure = await client.connect(transport).then(() => undefined, (error) => error);
  return { client, transport, failure };
};
let { client, transport, failure } = await connect();
if (failure instanceof UnauthorizedError && answered) {
  await transport.finishAuth(answered());
  ({ client, transport, failure } = await connect());
}
if (failure) throw failure;
await exercise({
  page,
  list: async () => (await client.listTools()).tools,
  call: (name, args, onprogress) => client.callTool({ name, arguments: args }, { onprogress }),
});
console.log(`sdk2 negotiated ${transport.protocolVersion}; all checks passed`);
await client.close();
