/** What needs a file system: for Node.js, Deno and Bun. */
import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";

import type { DownloadOptions, Grabd } from "./client.js";
import type { Grab } from "./generated.js";

/** Downloads the image of a done grab. The file appears complete or not at all; an existing one is replaced. */
export async function downloadToFile(
  client: Grabd, grab: Grab | string, path: string, options: DownloadOptions = {},
): Promise<void> {
  const image = await client.download(grab, options);
  // In the same directory, because a file can only be renamed within a file system.
  const partial = `${path}.${randomUUID()}.part`;
  try {
    await writeFile(partial, image, { flag: "wx" });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
