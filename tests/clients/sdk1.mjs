// The TypeScript SDK in its first major version, which speaks the era with a handshake.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { exercise, headers, task } from "./exercise.mjs";

const { url, auth, page } = task();
const client = new Client({ name: "sdk1", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: headers(auth) } });
await client.connect(transport);
await exercise({
  page,
  list: async () => (await client.listTools()).tools,
  call: (name, args, onprogress) => client.callTool({ name, arguments: args }, undefined, { onprogress }),
});
console.log(`sdk1 spoke ${transport.protocolVersion} and is content`);
await client.close();
