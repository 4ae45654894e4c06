// The TypeScript client in its second major version, in each of its ways to agree on an era.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { exercise, headers, task } from "./exercise.mjs";

const { url, auth, page, era } = task();
const mode = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } }[era];
const client = new Client({ name: "sdk2", version: "1" }, { versionNegotiation: { mode } });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: headers(auth) } });
await client.connect(transport);
await exercise({
  page,
  list: async () => (await client.listTools()).tools,
  call: (name, args, onprogress) => client.callTool({ name, arguments: args }, { onprogress }),
});
console.log(`sdk2 spoke ${transport.protocolVersion} and is content`);
await client.close();
