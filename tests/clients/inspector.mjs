// Runs the Inspector with OAuth: node inspector.mjs '{"url", "email", "password", "era", "dir", "ask"}', where `ask`
// are its arguments. It prints a URL and waits for the response. Its state is stored in `dir`.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { Visitor } from "../pages/visitor.mjs";

const { url, email, password, era, dir, ask } = JSON.parse(process.argv[2]);
const { origin } = new URL(url);
const port = await new Promise((found) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});

const inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
const asked = ["--cli", url, "--transport", "http", "--protocol-era", era, ...ask];
const callback = ["--callback-url", `http://127.0.0.1:${port}/oauth/callback`];
const env = { ...process.env, HOME: dir, BROWSER: "true", MCP_AUTO_OPEN_ENABLED: "true", MCP_STORAGE_DIR: dir };
const child = spawn(process.execPath, [inspector, ...asked, ...callback], { env, stdio: ["ignore", "pipe", "pipe"] });
const ended = new Promise((end) => child.on("close", end));

const read = async (stream) => {
  for await (const line of createInterface({ input: stream })) {
    console.log(line);
    const [address] = line.match(/https?:\/\/\S+\/oauth\/authorize\?\S+/) ?? [];
    if (address) await fetch(await new Visitor(origin).allow(address, { email, password }));
  }
};
await Promise.all([read(child.stdout), read(child.stderr)]);
const code = await ended;
console.log(`the inspector ended with ${code}`);
process.exit(code);
