// Runs the authorization scenarios of the conformance suite: node authorization.mjs '{"origin", "mcp", "email",
// "password"}'. The suite waits for somebody to open a URL and allow the app, which this script does.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { register } from "../pages/client.mjs";
import { Visitor } from "../pages/visitor.mjs";

const { origin, mcp, email, password } = JSON.parse(process.argv[2]);

// The suite listens on a given port.
const port = await new Promise((found) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});
const client = await register(origin, {
  client_name: "the suite",
  redirect_uris: [`http://127.0.0.1:${port}/callback`],
});

const suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const asked = ["--url", origin, "--client-id", client.client_id, "--resource", mcp, "--port", `${port}`];
const child = spawn(process.execPath, [suite, "authorization", ...asked], { stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((end) => child.on("close", end));
for await (const line of createInterface({ input: child.stdout })) {
  console.log(line);
  if (line.startsWith(`${origin}/oauth/authorize?`)) {
    await fetch(await new Visitor(origin).allow(line, { email, password }));
  }
}
const code = await ended;
console.log(`the suite ended with ${code}`);
process.exit(code);
