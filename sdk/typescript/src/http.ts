import { ApiError, ConnectionError, GrabdError, RequestTimeoutError, UnexpectedResponseError } from "./errors.js";
import { ERROR_CLASSES, type ErrorCode } from "./generated.js";

/** Settings of a client. */
export interface ClientOptions {
  /** An API key: `sk_live_…` captures pages, `sk_test_…` returns placeholders. Default: `GRAB_API_KEY`. */
  apiKey?: string | undefined;
  /** The API root, ending in `/v1`. Default: `GRAB_BASE_URL`. */
  baseUrl?: string | undefined;
  /** Retries after the first attempt, from 0 to 10. Default: 3. */
  maxRetries?: number | undefined;
  /** Wait before the first retry in milliseconds; it doubles for each further one, up to 8 s. Default: 500. */
  retryDelayMs?: number | undefined;
  /** Time limit of one attempt in milliseconds; a synchronous create has 40 s. Default: 30,000. */
  timeoutMs?: number | undefined;
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** Settings of one call. */
export interface CallOptions {
  /** Ends the call, including its retries. */
  signal?: AbortSignal | undefined;
  /** Time limit of one attempt in milliseconds. Default: that of the client. */
  timeoutMs?: number | undefined;
}

/** One request. */
export interface Call extends CallOptions {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below the API root, such as `/grabs`. */
  path: string;
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  /** Whether it may be repeated although it may have been carried out. */
  repeatable: boolean;
  /** Whether it creates grabs or waits for one. A limit that is used up is then waited for by the caller: no retry. */
  waits?: boolean;
  /** The time limit if neither the caller nor the client set one. */
  defaultTimeoutMs?: number;
}

export const VERSION = "0.2.0";
const MAX_RETRIES = 10;
const MAX_DELAY_MS = 8_000;
/** A longer `Retry-After` is left to the caller. */
const MAX_RETRY_AFTER_S = 60;
const DEFAULT_TIMEOUT_MS = 30_000;
/** JSON responses are far smaller. */
const MAX_JSON_BYTES = 16 << 20;

type Environment = Record<string, string | undefined>;

function environment(): Environment {
  const { process } = globalThis as { process?: { env?: Environment } };
  return process?.env ?? {};
}

function within(name: string, value: number, min: number, max: number): number {
  if (!(value >= min && value <= max)) throw new TypeError(`\`${name}\` must be from ${min} to ${max}; got ${value}.`);
  return value;
}

/** Checks a time limit. Timers of JavaScript cannot be longer. */
export function checkedMs(name: string, value: number): number {
  return within(name, value, 1, 2 ** 31 - 1);
}

/** Waits. Rejects with the reason of the signal as soon as it is aborted. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Aborts when time is up or when the caller's signal aborts. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly #ms: number;
  readonly #stop: () => void;
  readonly #timer: ReturnType<typeof setTimeout>;
  #isOver = false;

  constructor(ms: number, signal: AbortSignal | undefined) {
    this.#ms = ms;
    this.#signal = signal;
    this.#stop = () => this.#controller.abort(signal?.reason);
    if (signal?.aborted) this.#stop();
    signal?.addEventListener("abort", this.#stop, { once: true });
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.#controller.abort();
    }, ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#stop);
  }

  /** The error for what a request below this deadline threw. An abort of the caller is passed on as it is. */
  error(what: string, cause: unknown): unknown {
    if (this.#signal?.aborted) return this.#signal.reason;
    if (cause instanceof GrabdError) return cause;
    if (this.#isOver) return new RequestTimeoutError(`${what} had no response within ${this.#ms} ms.`, { cause });
    const reason = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause.message : cause.message) : "";
    return new ConnectionError(`${what} failed: ${reason || String(cause)}`, { cause });
  }
}

/** The path of one object of a collection, below the API root. */
export function pathOf(collection: string, id: string): string {
  if (!id) throw new TypeError("`id` must not be empty.");
  return `/${collection}/${encodeURIComponent(id)}`;
}

/** A complete body of at most `max` bytes. */
export async function readBytes(response: Response, max: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > max) {
      await reader.cancel().catch(() => {});
      const message = `The response is larger than ${max} bytes.`;
      throw new UnexpectedResponseError(message, response.status, requestId(response));
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function requestId(response: Response): string | undefined {
  return response.headers.get("x-request-id") ?? undefined;
}

/** Seconds of a `Retry-After`, which is a number or a date. */
function retryAfterS(response: Response): number | undefined {
  const value = response.headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** The error for a response that is no success. */
async function responseError(response: Response): Promise<ApiError | UnexpectedResponseError> {
  const text = new TextDecoder().decode(await readBytes(response, MAX_JSON_BYTES));
  const { status } = response;
  let error: { code?: unknown; message?: unknown } | undefined;
  try {
    error = (JSON.parse(text) as { error?: typeof error } | null)?.error;
  } catch {
    // The response is not from the service.
  }
  if (typeof error?.code !== "string" || typeof error.message !== "string") {
    const start = text.trim().slice(0, 200);
    const message = `The response has the status ${status} and is no error of grabd${start && `: ${start}`}`;
    return new UnexpectedResponseError(message, status, requestId(response), undefined, retryAfterS(response));
  }
  const { code, message } = error;
  const Class = Object.hasOwn(ERROR_CLASSES, code) ? ERROR_CLASSES[code as ErrorCode] : ApiError;
  const location = response.headers.get("location") ?? undefined;
  const cause = response.headers.get("error-cause") ?? undefined;
  return new Class(message, {
    status, code, cause, requestId: requestId(response), retryAfterS: retryAfterS(response), location,
  });
}

/** Errors that the service repeated from an earlier request with the same Idempotency-Key, and would repeat again. */
const REPLAYED = new WeakSet<Error>();

/** An error that says that a limit of the service, or of a proxy, is used up. The service has not begun to work then. */
function isLimit(error: unknown): error is ApiError | UnexpectedResponseError {
  return (error instanceof ApiError || error instanceof UnexpectedResponseError) && error.status === 429;
}

/** Whether a later attempt may succeed. */
function mayRetry(error: unknown, repeatable: boolean): boolean {
  if (isLimit(error)) return true;
  if (!repeatable) return false;
  if (error instanceof ConnectionError) return true;
  if (error instanceof UnexpectedResponseError) return [502, 503, 504].includes(error.status);
  if (!(error instanceof ApiError)) return false;
  if (REPLAYED.has(error)) return false;
  return error.code === "idempotency_conflict" || error.code === "internal_error" || error.status > 500;
}

/** Sends requests, with time limits and retries. */
export class Http {
  readonly baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #maxRetries: number;
  readonly #retryDelayMs: number;
  readonly #timeoutMs: number | undefined;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    const baseUrl = options.baseUrl ?? environment()["GRAB_BASE_URL"];
    if (!baseUrl) throw new TypeError("Set `baseUrl` or GRAB_BASE_URL to the API root, which ends in /v1.");
    if (!/^https?:\/\//i.test(baseUrl)) throw new TypeError(`\`baseUrl\` must be an http(s) URL; got ${baseUrl}.`);
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.#apiKey = options.apiKey ?? environment()["GRAB_API_KEY"];
    this.#maxRetries = Math.floor(within("maxRetries", options.maxRetries ?? 3, 0, MAX_RETRIES));
    this.#retryDelayMs = checkedMs("retryDelayMs", options.retryDelayMs ?? 500);
    this.#timeoutMs = options.timeoutMs === undefined ? undefined : checkedMs("timeoutMs", options.timeoutMs);
    // Some runtimes require that fetch is called as a method of the global object.
    this.#fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** The time limit of an attempt. */
  timeoutMs(call: CallOptions & { defaultTimeoutMs?: number }): number {
    const own = call.timeoutMs === undefined ? undefined : checkedMs("timeoutMs", call.timeoutMs);
    return own ?? this.#timeoutMs ?? call.defaultTimeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  /** Sends a request to the API and returns the response with its JSON, or undefined if it has no body. */
  async json<T>(call: Call): Promise<T> {
    return this.retry(call, async (deadline) => {
      const response = await this.open(call, deadline);
      const bytes = await readBytes(response, MAX_JSON_BYTES);
      if (bytes.length === 0) return undefined as T;
      try {
        return JSON.parse(new TextDecoder().decode(bytes)) as T;
      } catch (cause) {
        const message = `${call.method} ${call.path} returned no JSON.`;
        throw new UnexpectedResponseError(message, response.status, requestId(response), cause);
      }
    });
  }

  /** Sends a request to the API and returns the head of a successful response. */
  async open(call: Call, deadline: Deadline): Promise<Response> {
    const url = new URL(this.baseUrl + call.path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { accept: "application/json", ...call.headers };
    if (this.#apiKey) headers["authorization"] = `Bearer ${this.#apiKey}`;
    if (call.body !== undefined) headers["content-type"] = "application/json";
    // Browsers do not let a page choose it.
    if (!("document" in globalThis)) headers["user-agent"] = `grabd-typescript/${VERSION}`;
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    // The API does not redirect, and the key is meant for this address only.
    const init: RequestInit = { method: call.method, headers, body, redirect: "manual", signal: deadline.signal };
    return this.fetch(url.href, init);
  }

  /** Fetches a URL. Returns the head of a successful response. */
  async fetch(url: string, init: RequestInit): Promise<Response> {
    const response = await this.#fetch(url, init);
    if (response.ok) return response;
    const error = await responseError(response);
    if (response.headers.get("idempotent-replayed") === "true") REPLAYED.add(error);
    throw error;
  }

  /** Runs attempts until one succeeds, no retry is left, or an error is final. */
  async retry<T>(
    call: CallOptions & Pick<Call, "defaultTimeoutMs" | "repeatable" | "waits"> & { method: string; path: string },
    attempt: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const timeoutMs = this.timeoutMs(call);
    for (let retries = 0; ; retries += 1) {
      call.signal?.throwIfAborted();
      const deadline = new Deadline(timeoutMs, call.signal);
      try {
        return await attempt(deadline);
      } catch (cause) {
        const error = deadline.error(`${call.method} ${call.path}`, cause);
        const retryable = mayRetry(error, call.repeatable) && !(call.waits && isLimit(error));
        const isResponse = error instanceof ApiError || error instanceof UnexpectedResponseError;
        const delayMs = this.delayMs(retries, isResponse ? error.retryAfterS : undefined);
        if (!retryable || retries >= this.#maxRetries || delayMs === undefined) throw error;
        deadline.end();
        await sleep(delayMs, call.signal);
      } finally {
        deadline.end();
      }
    }
  }

  /** The wait after a limit was used up, however long. Undefined if the error is another one. */
  limitDelayMs(error: unknown, refusals: number): number | undefined {
    if (!isLimit(error)) return undefined;
    const { retryAfterS } = error;
    if (retryAfterS === undefined) return this.delayMs(refusals);
    // All that wait are told the same time, so they are spread over the next second.
    return (retryAfterS + Math.random() * Math.min(1, retryAfterS)) * 1000;
  }

  /** The wait before a create that met a limit. Undefined if it is left to the caller. */
  createDelayMs(error: unknown, refusals: number): number | undefined {
    return this.#maxRetries === 0 ? undefined : this.limitDelayMs(error, refusals);
  }

  /** The wait before the next attempt. Undefined if the service asks for a longer one. */
  delayMs(retries: number, retryAfterS?: number): number | undefined {
    if (retryAfterS !== undefined && retryAfterS > MAX_RETRY_AFTER_S) return undefined;
    const longest = Math.min(MAX_DELAY_MS, this.#retryDelayMs * 2 ** retries);
    // Callers that failed together do not come back together.
    const jittered = longest * (0.5 + Math.random() / 2);
    return retryAfterS === undefined ? jittered : retryAfterS * 1000 + jittered / 4;
  }
}
