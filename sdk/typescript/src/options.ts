import { CAPTURE_OPTIONS } from "./generated.js";
import type { CaptureOptions } from "./generated.js";

/** One capture of a batch, or of a monitor: its URL, or the HTML document in `html`, and the options that are its own. */
export type BatchCapture = CaptureOptions & { url?: string | undefined };

/** The service ignores unknown members, so a misspelled option would cost a credit. */
export function checkNames(options: object, hint = ""): void {
  const unknown = Object.keys(options).filter((name) => !CAPTURE_OPTIONS.includes(name));
  if (unknown.length > 0) throw new TypeError(`Unknown capture options: ${unknown.join(", ")}.${hint}`);
}
