import { ConnectionError, UnexpectedResponseError, WaitTimeoutError } from "./errors.js";
import { EventParser } from "./events.js";
import type { Batch, CaptureOptions, Grab, GrabList, GrabText, Pricing, Usage } from "./generated.js";
import { Deadline, Http, checkedMs, pathOf, readBytes, sleep } from "./http.js";
import type { Call, CallOptions, ClientOptions } from "./http.js";
import { Monitors } from "./monitors.js";
import { checkNames } from "./options.js";
import type { BatchCapture } from "./options.js";
import { Proxies } from "./proxies.js";
import { Sites } from "./sites.js";
import { Webhooks } from "./webhooks.js";

/** Settings of a create. */
export interface CreateOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. Creates with the same key capture and charge once. Default: a random key, the
   * same for all attempts of this call.
   */
  idempotencyKey?: string | undefined;
  /** Capture options that this version of the library does not know. */
  extraOptions?: Record<string, unknown> | undefined;
  /** Time limit of the wait for limits that are used up (429), in milliseconds. Default: 5 minutes. */
  waitTimeoutMs?: number | undefined;
}

/** The options of a capture of a document instead of a page. */
export type HtmlOptions = CaptureOptions & { html: string };

/** Settings of `createBatch`. */
export interface BatchOptions extends CallOptions {
  /** The options that all captures share. Those of a capture win. */
  options?: CaptureOptions | undefined;
  /**
   * 1 to 250 visible ASCII characters. A batch with the same key returns what was created before, and tries the rest
   * again. Default: a random key, the same for all attempts of this call.
   */
  idempotencyKey?: string | undefined;
  /** Time limit of the wait for limits that are used up (429), in milliseconds. Default: 5 minutes. */
  waitTimeoutMs?: number | undefined;
}

/** Settings of `capture`. */
export interface CaptureCallOptions extends CreateOptions {
  /**
   * Time limit of the wait for limits that are used up, and of that for a grab that is still open after the create, in
   * milliseconds. Default: 5 minutes.
   */
  waitTimeoutMs?: number | undefined;
}

/** Which grabs are listed. */
export interface ListGrabsOptions extends CallOptions {
  /** Grabs on each page, from 1 to 100. Default: 25. */
  limit?: number | undefined;
  /** Only grabs in this state. */
  status?: Grab["status"] | undefined;
  /** Only grabs older than the one with this id. */
  starting_after?: string | undefined;
  /** Only grabs whose requested URL contains this text. */
  url?: string | undefined;
  /** Only grabs of this day (UTC) and later ones, such as `2026-11-20`. */
  from?: string | undefined;
  /** Only grabs of this day (UTC) and earlier ones. */
  until?: string | undefined;
}

/** What is read of a grab. */
export interface ReadOptions extends CallOptions {
  /** Default: `markdown`. Files are made at the capture: create it with `also`. */
  format?: GrabText["format"] | undefined;
  /** Estimated number of tokens, at most: 100 to 50,000. Default: 8,000. */
  max_tokens?: number | undefined;
  /** The byte at which to begin: the `next` of an earlier part. Default: 0. */
  from?: number | null | undefined;
  /** Of a difference: the id of the earlier grab, unless the capture named it. */
  compare_to?: string | undefined;
}

/** Which page of grabs is read. */
export interface ListGrabsPageOptions extends ListGrabsOptions {
  /** Only grabs newer than the one with this id. Excludes `starting_after`. */
  ending_before?: string | undefined;
}

/** Settings of `wait`. */
export interface WaitOptions extends CallOptions {
  /** Time limit of the whole wait in milliseconds. Default: 5 minutes. */
  waitTimeoutMs?: number | undefined;
}

/** Settings of `watch`. */
export interface WatchOptions {
  /** Ends the watch. */
  signal?: AbortSignal | undefined;
  /** Time limit of the whole watch in milliseconds. Default: 30 minutes. */
  waitTimeoutMs?: number | undefined;
}

/** Settings of `download`. */
export interface DownloadOptions extends CallOptions {
  /** Largest accepted image in bytes. Default: 256 MiB. */
  maxBytes?: number | undefined;
}

/** Which prices are read. */
export interface PricingOptions extends CallOptions {
  /** Compare with this provider only. */
  provider?: string | undefined;
  /** Level of detail. Default: `full`. */
  detail?: "summary" | "full" | undefined;
}

/** The service renders for up to 25 s. */
const CREATE_TIMEOUT_MS = 40_000;
const DOWNLOAD_TIMEOUT_MS = 120_000;
const WAIT_TIMEOUT_MS = 5 * 60_000;
const WATCH_TIMEOUT_MS = 30 * 60_000;
/** The longest wait that the service supports in one request. */
const LONG_POLL_S = 25;
/** Between two polls of a service, or a proxy, that responds without waiting. */
const MIN_POLL_MS = 1_000;
/** A stream that is silent for longer is broken: the service sends a comment every 15 s. */
const STREAM_IDLE_MS = 45_000;
/** Streams in a row without an event after which a watch fails. */
const MAX_EMPTY_STREAMS = 5;
const MAX_IMAGE_BYTES = 256 << 20;
/** The most grabs that one request waits for. */
const IDS_PER_REQUEST = 100;

/** A request that waits, without its path. */
type WaitCall = Omit<Call, "path">;

/** Whether a grab has reached its final state. */
export function hasEnded(grab: Grab): boolean {
  return grab.status === "done" || grab.status === "failed";
}

/** A client of one grabd service with one API key. It holds no connection, and needs not be closed. */
export class Grabd {
  /** The webhooks of the key's team and environment. */
  readonly webhooks: Webhooks;
  /** The monitors of the key's team and environment. */
  readonly monitors: Monitors;
  /** The jobs that capture many pages of one site, of the key's team and environment. */
  readonly sites: Sites;
  /** The proxies of the key's team and environment, through which pages can be loaded. */
  readonly proxies: Proxies;
  readonly #http: Http;

  /** @throws TypeError for settings that are missing or invalid. */
  constructor(options: ClientOptions = {}) {
    this.#http = new Http(options);
    this.webhooks = new Webhooks(this.#http);
    this.monitors = new Monitors(this.#http);
    this.sites = new Sites(this.#http);
    this.proxies = new Proxies(this.#http);
  }

  /**
   * Captures a page and returns the done grab. One credit is spent, whatever number of attempts was needed. If a limit is
   * used up (429), the create is sent again after its `Retry-After`, until `waitTimeoutMs` has passed.
   *
   * @throws RenderBlockedError or RenderFailedError if the page cannot be captured, which is free.
   */
  capture(url: string, options?: CaptureOptions & CaptureCallOptions): Promise<Grab>;
  /** Captures the document in `html`, which needs no URL. */
  capture(options: HtmlOptions & CaptureCallOptions): Promise<Grab>;
  async capture(
    target: string | (HtmlOptions & CaptureCallOptions), more: CaptureOptions & CaptureCallOptions = {},
  ): Promise<Grab> {
    const [url, options] = typeof target === "string" ? [target, more] : [undefined, target];
    const create = { ...options, idempotencyKey: options.idempotencyKey ?? crypto.randomUUID() };
    const grab = await this.#create(url, create, false);
    if (hasEnded(grab)) return grab;
    const { signal, timeoutMs, waitTimeoutMs } = create;
    const ended = await this.wait(grab.id, { waitTimeoutMs, signal, timeoutMs });
    // For a failure, the same key gets the error response with its code.
    return ended.status === "done" ? ended : this.#create(url, create, false);
  }

  /**
   * Creates a grab and returns at once, with a live key: `wait` for it, `watch` it, or receive a webhook. With a test
   * key the returned grab has already ended. If a limit is used up (429), the create is sent again after its
   * `Retry-After`, until `waitTimeoutMs` has passed.
   */
  createGrab(url: string, options?: CaptureOptions & CreateOptions): Promise<Grab>;
  /** Creates a grab of the document in `html`, which needs no URL. */
  createGrab(options: HtmlOptions & CreateOptions): Promise<Grab>;
  createGrab(
    target: string | (HtmlOptions & CreateOptions), options: CaptureOptions & CreateOptions = {},
  ): Promise<Grab> {
    return typeof target === "string" ? this.#create(target, options, true) : this.#create(undefined, target, true);
  }

  /**
   * Queues up to 50 captures in one request. The results are in the same order: each has the grab, or the error of a
   * capture that was refused. When credits or limits are used up, the rest get that error. If the batch itself is refused
   * because a limit is used up (429), it is sent again after its `Retry-After`, until `waitTimeoutMs` has passed.
   */
  createBatch(captures: readonly (string | BatchCapture)[], options: BatchOptions = {}): Promise<Batch> {
    const { signal, timeoutMs, waitTimeoutMs, idempotencyKey, options: shared = {} } = options;
    const grabs = captures.map((capture) => (typeof capture === "string" ? { url: capture } : capture));
    checkNames(shared);
    for (const { url: _, ...own } of grabs) checkNames(own);
    const call: Call = {
      method: "POST",
      path: "/grabs/batch",
      body: { grabs, options: shared },
      headers: { "idempotency-key": idempotencyKey ?? crypto.randomUUID() },
      repeatable: true,
      waits: true,
      defaultTimeoutMs: CREATE_TIMEOUT_MS,
      signal,
      timeoutMs,
    };
    return this.#sendWithinLimits(call, waitTimeoutMs);
  }

  /** Sends a create, and waits for limits that are used up (429). */
  async #sendWithinLimits<T>(call: Call, waitTimeoutMs: number | undefined): Promise<T> {
    const end = performance.now() + checkedMs("waitTimeoutMs", waitTimeoutMs ?? WAIT_TIMEOUT_MS);
    for (let refusals = 0; ; refusals += 1) {
      try {
        return await this.#http.json<T>(call);
      } catch (error) {
        const delayMs = this.#http.createDelayMs(error, refusals);
        if (delayMs === undefined || performance.now() + delayMs >= end) throw error;
        await sleep(delayMs, call.signal);
      }
    }
  }

  #create(url: string | undefined, options: CaptureOptions & CreateOptions, isAsync: boolean): Promise<Grab> {
    const { signal, timeoutMs, waitTimeoutMs, idempotencyKey, extraOptions, ...members } = options;
    checkNames(members, " Give newer ones in `extraOptions`.");
    const headers: Record<string, string> = { "idempotency-key": idempotencyKey ?? crypto.randomUUID() };
    if (isAsync) headers["prefer"] = "respond-async";
    const body = url === undefined ? { ...extraOptions, ...members } : { ...extraOptions, ...members, url };
    const call: Call = {
      method: "POST",
      path: "/grabs",
      body,
      headers,
      repeatable: true,
      waits: true,
      defaultTimeoutMs: CREATE_TIMEOUT_MS,
      signal,
      timeoutMs,
    };
    return this.#sendWithinLimits(call, waitTimeoutMs);
  }

  /** The current state of a grab. */
  getGrab(id: string, options: CallOptions = {}): Promise<Grab> {
    return this.#http.json({ method: "GET", path: grabPath(id), repeatable: true, ...options });
  }

  /**
   * A text of a done grab: what it says, its elements, its report, or the difference to an earlier grab. If `next` of the
   * answer is not null, go on with it as `from`.
   *
   * @throws NotFoundError if there is no such file.
   */
  read(id: string, options: ReadOptions = {}): Promise<GrabText> {
    const { format, max_tokens, from, compare_to, ...call } = options;
    const query = { format, max_tokens, from: from ?? undefined, compare_to };
    return this.#http.json({ method: "GET", path: `${grabPath(id)}/read`, query, repeatable: true, ...call });
  }

  /** The grabs of the key's team and environment, newest first. Further pages are fetched while you iterate. */
  async *listGrabs(options: ListGrabsOptions = {}): AsyncGenerator<Grab, void, void> {
    let cursor = options.starting_after;
    for (;;) {
      const page = await this.listGrabsPage({ ...options, starting_after: cursor });
      yield* page.data;
      cursor = page.next ?? page.data.at(-1)?.id;
      if (!page.has_more || cursor === undefined) return;
    }
  }

  /**
   * One page of grabs. With `url`, it can have fewer grabs than `limit`, or none: go on with its `next` as
   * `starting_after`.
   */
  listGrabsPage(options: ListGrabsPageOptions = {}): Promise<GrabList> {
    const { limit, status, starting_after, ending_before, url, from, until, ...call } = options;
    const query = { limit, status, starting_after, ending_before, url, from, until };
    return this.#http.json({ method: "GET", path: "/grabs", query, repeatable: true, ...call });
  }

  /** Deletes the image of a grab: its URL stops working. The grab stays in the list. */
  deleteGrab(id: string, options: CallOptions = {}): Promise<void> {
    return this.#http.json({ method: "DELETE", path: grabPath(id), repeatable: true, ...options });
  }

  /**
   * Waits until a grab has ended, and returns it: `done` or `failed`. A limit that is used up (429) does not end the
   * wait: the next request is sent after its `Retry-After`.
   *
   * @throws WaitTimeoutError if it has not ended in time. It goes on, and can be waited for again.
   */
  async wait(id: string, options: WaitOptions = {}): Promise<Grab> {
    const ask = (call: WaitCall) => this.#http.json<Grab>({ ...call, path: grabPath(id) });
    return this.#poll(id, options, ask, (grab) => (hasEnded(grab) ? undefined : id));
  }

  /**
   * Waits until all of these grabs have ended, and returns them in the same order, each once: `done` or `failed`. A request
   * waits for up to 100 grabs, so that a whole batch needs one connection. Limits are obeyed as by `wait`.
   *
   * @throws WaitTimeoutError, with the id of one of them, if not all have ended in time.
   * @throws NotFoundError if there is no grab with one of the ids.
   */
  async waitAll(grabs: Iterable<Grab | string>, options: WaitOptions = {}): Promise<Grab[]> {
    const ids = [...new Set([...grabs].map((grab) => (typeof grab === "string" ? grab : grab.id)))];
    const waitMs = checkedMs("waitTimeoutMs", options.waitTimeoutMs ?? WAIT_TIMEOUT_MS);
    const end = performance.now() + waitMs;
    const ended: Grab[] = [];
    for (let at = 0; at < ids.length; at += IDS_PER_REQUEST) {
      const chunk = ids.slice(at, at + IDS_PER_REQUEST);
      const query = { ids: chunk.join(",") };
      const ask = (call: WaitCall) => this.#http.json<GrabList>({ ...call, path: "/grabs", query });
      const openId = (page: GrabList) => page.data.find((grab) => !hasEnded(grab))?.id;
      const waitTimeoutMs = Math.max(1, end - performance.now());
      const { data } = await this.#poll(chunk[0] ?? "", { ...options, waitTimeoutMs }, ask, openId);
      const missing = chunk.find((id) => !data.some((grab) => grab.id === id.toLowerCase()));
      // It fails with the error that names the id.
      ended.push(...data, ...(missing === undefined ? [] : [await this.getGrab(missing, options)]));
    }
    return ended;
  }

  /** Asks until no grab of the answer is open. `id` is one of the grabs. */
  async #poll<T>(
    id: string, options: WaitOptions, ask: (call: WaitCall) => Promise<T>,
    openId: (answer: T) => string | undefined,
  ): Promise<T> {
    const waitMs = checkedMs("waitTimeoutMs", options.waitTimeoutMs ?? WAIT_TIMEOUT_MS);
    const { signal, timeoutMs } = options;
    const end = performance.now() + waitMs;
    for (let refusals = 0, refused: unknown; ;) {
      const start = performance.now();
      const seconds = Math.max(0, Math.min(LONG_POLL_S, Math.ceil((end - start) / 1000)));
      const headers = { prefer: `wait=${seconds}` };
      const limit = this.#http.timeoutMs({ timeoutMs }) + seconds * 1000;
      let delayMs: number | undefined;
      try {
        const answer = await ask({ method: "GET", headers, repeatable: true, waits: true, signal, timeoutMs: limit });
        const open = openId(answer);
        if (open === undefined) return answer;
        [id, refused, refusals] = [open, undefined, 0];
        delayMs = performance.now() - start < MIN_POLL_MS ? MIN_POLL_MS : 0;
      } catch (error) {
        delayMs = this.#http.limitDelayMs(error, refusals);
        if (delayMs === undefined) throw error;
        [refused, refusals] = [error, refusals + 1];
      }
      const left = end - performance.now();
      if (left <= 0) throw timedOut(id, waitMs, refused);
      if (delayMs > 0) await sleep(Math.min(delayMs, left), signal);
    }
  }

  /**
   * Follows a grab: yields its current state and each later one, until it has ended. A broken stream is resumed, and a
   * limit that is used up (429) is waited for.
   *
   * @throws WaitTimeoutError if it has not ended in time.
   */
  async *watch(id: string, options: WatchOptions = {}): AsyncGenerator<Grab, void, void> {
    const waitMs = checkedMs("waitTimeoutMs", options.waitTimeoutMs ?? WATCH_TIMEOUT_MS);
    const { signal } = options;
    const end = performance.now() + waitMs;
    let [lastEventId, refusals, refused]: [string, number, unknown] = ["", 0, undefined];
    for (let emptyStreams = 0; emptyStreams < MAX_EMPTY_STREAMS; emptyStreams += 1) {
      const remaining = end - performance.now();
      if (remaining <= 0) throw timedOut(id, waitMs, refused);
      if (emptyStreams > 0) await sleep(Math.min(this.#http.delayMs(emptyStreams - 1) ?? 0, remaining), signal);
      try {
        for await (const [grab, eventId] of this.#stream(id, lastEventId, end, signal)) {
          // Sent again by something that does not know where to resume.
          if (eventId !== "" && eventId === lastEventId && !hasEnded(grab)) continue;
          yield grab;
          if (hasEnded(grab)) return;
          lastEventId = eventId;
          // The next turn of the loop counts from zero.
          emptyStreams = -1;
          [refused, refusals] = [undefined, 0];
        }
      } catch (error) {
        // A broken stream is resumed, and a limit that is used up is waited for. Anything else is final.
        const delayMs = this.#http.limitDelayMs(error, refusals);
        if (delayMs === undefined && !(error instanceof ConnectionError)) throw error;
        const left = end - performance.now();
        if (left <= 0) throw timedOut(id, waitMs, refused);
        if (delayMs !== undefined) {
          [refused, refusals] = [error, refusals + 1];
          emptyStreams -= 1;
          await sleep(Math.min(delayMs, left), signal);
        }
      }
    }
    throw new UnexpectedResponseError(`The events of the grab ${id} end without an event.`, 200, undefined);
  }

  /** One stream: the grabs and the ids of their events. */
  async *#stream(
    id: string, lastEventId: string, end: number, signal: AbortSignal | undefined,
  ): AsyncGenerator<[Grab, string], void, void> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastEventId !== "") headers["last-event-id"] = lastEventId;
    const path = `${grabPath(id)}/events`;
    const call: Call = { method: "GET", path, headers, repeatable: true, waits: true, signal };
    // Opening has the time limit and the retries of every request.
    const response = await this.#http.retry(call, (deadline) => this.#http.open(call, deadline));
    if (response.status === 204) {
      // Nothing is left to send, because the grab has ended.
      const grab = await this.getGrab(id, { signal });
      if (hasEnded(grab)) yield [grab, lastEventId];
      return;
    }
    const reader = response.body?.getReader();
    const parser = new EventParser();
    try {
      while (reader) {
        const limit = Math.max(1, Math.min(STREAM_IDLE_MS, end - performance.now()));
        const { done, value } = await readWithin(limit, signal, reader);
        if (done) return;
        yield* parse(parser, value);
      }
    } finally {
      await reader?.cancel().catch(() => {});
    }
  }

  /** The image of a done grab. The URL is public, so that no API key is sent. */
  async download(grab: Grab | string, options: DownloadOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const { maxBytes = MAX_IMAGE_BYTES, ...call } = options;
    const url = this.imageUrl(grab);
    const request = { ...call, method: "GET", path: url, repeatable: true, defaultTimeoutMs: DOWNLOAD_TIMEOUT_MS };
    return this.#http.retry(request, async (deadline) => {
      return readBytes(await this.#http.fetch(url, { signal: deadline.signal }), maxBytes);
    });
  }

  /** The absolute URL of an image. That of a test key's grab is relative to the service. */
  imageUrl(grab: Grab | string): string {
    const url = typeof grab === "string" ? grab : grab.image_url;
    if (!url) throw new TypeError("The grab has no image: it is not done, or its image was deleted.");
    return new URL(url, this.#http.baseUrl).href;
  }

  /** Remaining credits, the plan, and the number of grabs of the last 30 days. */
  usage(options: CallOptions = {}): Promise<Usage> {
    return this.#http.json({ method: "GET", path: "/usage", repeatable: true, ...options });
  }

  /** The prices, and a comparison with other services. */
  pricing(options: PricingOptions = {}): Promise<Pricing> {
    const { provider, detail, ...call } = options;
    return this.#http.json({ method: "GET", path: "/pricing", query: { provider, detail }, repeatable: true, ...call });
  }
}

function timedOut(id: string, waitMs: number, refused: unknown): WaitTimeoutError {
  return new WaitTimeoutError(`The grab ${id} has not ended after ${waitMs} ms.`, id, refused);
}

function grabPath(id: string): string {
  return pathOf("grabs", id);
}

type Chunk = ReadableStreamReadResult<Uint8Array>;

/** The next chunk of a stream. */
async function readWithin(
  ms: number, signal: AbortSignal | undefined, reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Chunk> {
  const deadline = new Deadline(ms, signal);
  const aborted = new Promise<never>((_, reject) => {
    deadline.signal.addEventListener("abort", () => reject(deadline.signal.reason), { once: true });
  });
  try {
    return await Promise.race([reader.read(), aborted]);
  } catch (cause) {
    throw deadline.error("The event stream", cause);
  } finally {
    deadline.end();
  }
}

/** The grabs in a chunk, with the ids of their events. */
function parse(parser: EventParser, chunk: Uint8Array): [Grab, string][] {
  try {
    return parser.push(chunk).map((event) => [JSON.parse(event.data) as Grab, event.id]);
  } catch (cause) {
    throw new UnexpectedResponseError("An event is no grab.", 200, undefined, cause);
  }
}
