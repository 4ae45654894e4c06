// The TypeScript SDK, version 1, which supports the legacy era.
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { exercise, task } from "./exercise.mjs";
import { credential } from "./sign_in.mjs";

const { url, auth, page } = task();
const { options, answered } = credential(url, auth);
const client = new Client({ name: "sdk1", version: "1" });
let transport = new StreamableHTTPClientTransport(new URL(url), options);
try {
  await client.connect(transport);
} catch (error) {
  if (!(error instanceof UnauthorizedError && answered)) throw error;
  await transport.finishAuth(answered().get("code"));
  transport = new StreamableHTTPClientTransport(new URL(url), options);
  await client.connect(transport);
}
await exercise({
  page,
  list: async () => (await client.listTools()).tools,
  call: (name, args, onprogress) => client.callTool({ name, arguments: args }, undefined, { onprogress }),
});
console.log(`sdk1 negotiated ${transport.protocolVersion}; all checks passed`);
await client.close();
