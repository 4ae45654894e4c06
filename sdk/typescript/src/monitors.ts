import type {
  CaptureOptions, CreateMonitorOptions, Monitor, MonitorBatch, MonitorFeed, MonitorRun, UpdateMonitorOptions,
} from "./generated.js";
import { pathOf, readBytes } from "./http.js";
import type { CallOptions, Http } from "./http.js";
import { checkNames } from "./options.js";
import type { BatchCapture } from "./options.js";

/** Fields of a page of monitors or runs. */
export interface ListMonitorsOptions extends CallOptions {
  /** Entries on each page, from 1 to 100. Default: 25. */
  limit?: number | undefined;
  /** Only entries older than the one with this id. */
  starting_after?: string | undefined;
}

/** Settings of `history`. */
export interface MonitorHistoryOptions extends CallOptions {
  /** Largest accepted archive in bytes. Default: 256 MiB. */
  maxBytes?: number | undefined;
}

const HISTORY_TIMEOUT_MS = 120_000;
const MAX_HISTORY_BYTES = 256 << 20;

/** The monitors of the key's team and environment. */
export class Monitors {
  readonly #http: Http;

  /** Use `Grabd.monitors`. */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Watches a page: a URL, or an object with its capture options. Give `every` or `cron`. Each capture that is done costs a
   * credit.
   */
  create(capture: string | BatchCapture, options: CreateMonitorOptions & CallOptions): Promise<Monitor> {
    const { signal, timeoutMs, ...members } = options;
    const body = { ...members, capture: checked(capture) };
    return this.#http.json({ method: "POST", path: "/monitors", body, repeatable: false, signal, timeoutMs });
  }

  /**
   * Watches up to 50 pages with the same settings: creates a monitor for each URL, or none. The monitors have the order of the
   * URLs. Each name is followed by the host and the path of the page.
   */
  createBatch(
    urls: readonly string[], options: CreateMonitorOptions & CallOptions & { capture?: CaptureOptions | undefined },
  ): Promise<Monitor[]> {
    const { signal, timeoutMs, capture, ...members } = options;
    if (capture !== undefined) checkNames(capture);
    const body = capture === undefined ? { ...members, urls } : { ...members, urls, capture };
    const call = { method: "POST", path: "/monitors/batch", body, repeatable: false, signal, timeoutMs } as const;
    return this.#http.json<MonitorBatch>(call).then(({ monitors }) => monitors);
  }

  /** All monitors, newest first. Further pages are fetched while you iterate. */
  list(options: ListMonitorsOptions = {}): AsyncGenerator<Monitor, void, void> {
    return this.#pages<Monitor>("/monitors", options);
  }

  /** One monitor with its last run. */
  get(id: string, options: CallOptions = {}): Promise<Monitor> {
    return this.#http.json({ method: "GET", path: path(id), repeatable: true, ...options });
  }

  /** Changes a monitor. What is left out stays as it is. `paused` stops and continues its schedule. */
  update(
    id: string, changes: UpdateMonitorOptions & { capture?: string | BatchCapture | undefined }, options: CallOptions = {},
  ): Promise<Monitor> {
    const { capture, ...members } = changes;
    const body = capture === undefined ? members : { ...members, capture: checked(capture) };
    return this.#http.json({ method: "PATCH", path: path(id), body, repeatable: true, ...options });
  }

  /** Removes a monitor and the list of its runs. Its captures stay. */
  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#http.json({ method: "DELETE", path: path(id), repeatable: true, ...options });
  }

  /** The runs of a monitor, newest first. Further pages are fetched while you iterate. */
  runs(id: string, options: ListMonitorsOptions = {}): AsyncGenerator<MonitorRun, void, void> {
    return this.#pages<MonitorRun>(`${path(id)}/runs`, options);
  }

  /**
   * The history of a monitor as a zip archive: the images of its runs, and `runs.json`. It is refused if it has more than
   * `maxBytes`. An account receives one archive at a time.
   */
  history(id: string, options: MonitorHistoryOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const { maxBytes = MAX_HISTORY_BYTES, ...own } = options;
    const request = { method: "GET", path: `${path(id)}/history.zip`, repeatable: true } as const;
    const call = { ...request, defaultTimeoutMs: HISTORY_TIMEOUT_MS, ...own };
    return this.#http.retry(call, async (deadline) => readBytes(await this.#http.open(call, deadline), maxBytes));
  }

  /** Makes a capture of the monitor the baseline of later ones: by default the latest that is done. */
  accept(id: string, options: CallOptions & { grab_id?: string | undefined } = {}): Promise<Monitor> {
    const { grab_id, ...call } = options;
    const body = grab_id === undefined ? {} : { grab_id };
    return this.#http.json({ method: "POST", path: `${path(id)}/accept`, body, repeatable: true, ...call });
  }

  /**
   * Gives an Atom feed and a badge of the monitor public addresses, which replace the former ones. They cannot be read again.
   * Whoever knows them can read both, without a key.
   */
  createFeed(id: string, options: CallOptions = {}): Promise<MonitorFeed> {
    return this.#http.json({ method: "POST", path: `${path(id)}/feed`, repeatable: true, ...options });
  }

  /** Removes the public addresses of the feed and the badge. */
  deleteFeed(id: string, options: CallOptions = {}): Promise<void> {
    return this.#http.json({ method: "DELETE", path: `${path(id)}/feed`, repeatable: true, ...options });
  }

  async *#pages<T extends { id: string }>(from: string, options: ListMonitorsOptions): AsyncGenerator<T, void, void> {
    const { limit, starting_after, ...call } = options;
    let cursor = starting_after;
    for (;;) {
      const request = { method: "GET", path: from, query: { limit, starting_after: cursor }, repeatable: true } as const;
      const page = await this.#http.json<{ data: T[]; has_more: boolean }>({ ...request, ...call });
      yield* page.data;
      cursor = page.data.at(-1)?.id;
      if (!page.has_more || cursor === undefined) return;
    }
  }
}

/** The options of a capture, none of which is misspelled. */
function checked(capture: string | BatchCapture): BatchCapture {
  if (typeof capture === "string") return { url: capture };
  const { url: _, ...options } = capture;
  checkNames(options);
  return capture;
}

function path(id: string): string {
  return pathOf("monitors", id);
}
