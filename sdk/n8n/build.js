// Compiles the package into dist, with the files that n8n reads beside the compiled node.
const { execFileSync } = require("node:child_process");
const { cpSync, rmSync } = require("node:fs");

process.chdir(__dirname);
rmSync("dist", { recursive: true, force: true });
execFileSync("tsc", { stdio: "inherit" });
for (const name of ["Grabd.node.json", "grabd.svg"]) cpSync(`nodes/Grabd/${name}`, `dist/nodes/Grabd/${name}`);
cpSync("nodes/Grabd/grabd.svg", "dist/credentials/grabd.svg");
