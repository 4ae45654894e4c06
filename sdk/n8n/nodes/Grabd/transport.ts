import {
  type IExecuteSingleFunctions, type IHttpRequestOptions, type IN8nHttpFullResponse, NodeApiError, sleep,
} from "n8n-workflow";

/** Attempts after the first, of requests that failed for another reason than a limit. */
const MAX_RETRIES = 3;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8_000;
/** The time limit of an attempt: the service responds to every request within half of it. */
const ATTEMPT_MS = 60_000;
/** How soon a pause ends after the execution was cancelled. */
const PAUSE_STEP_MS = 1_000;
/** Failures of a connection, after which the same request may succeed. */
const CONNECTION_ERRORS = new Set([
  "EAI_AGAIN", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH",
]);

/** A request without what is the same for all requests of a node. */
export type Request = Omit<IHttpRequestOptions, "baseURL">;

function header(response: IN8nHttpFullResponse, name: string): string | undefined {
  const value = response.headers[name];
  return typeof value === "string" ? value : undefined;
}

/** The members of a JSON object, also if it was received as bytes. */
export function members(body: unknown): Record<string, unknown> {
  try {
    const value: unknown = Buffer.isBuffer(body) ? JSON.parse(body.toString()) : body;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Whether a response is that of an earlier request with the same `Idempotency-Key`. */
export function isReplayed(response: IN8nHttpFullResponse): boolean {
  return header(response, "idempotent-replayed") === "true";
}

/** Errors that only repeat how an earlier request ended. */
export const REPLAYED = new WeakSet<object>();

/** Seconds of a `Retry-After`, which is a number or a date. */
function retryAfterS(response: IN8nHttpFullResponse): number | undefined {
  const value = header(response, "retry-after");
  if (value === undefined) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

function backoffMs(retries: number): number {
  // Items that failed together do not come back together.
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** retries) * (0.5 + Math.random() / 2);
}

/** An error for n8n: the code comes first in its message, so that a workflow can compare it. */
export function failure(
  context: IExecuteSingleFunctions, code: string, message: string, details: Record<string, unknown>, status?: number,
): NodeApiError {
  const known = Object.entries(details).filter(([, value]) => value !== undefined && value !== null);
  const description = known.map(([name, value]) => `${name}: ${String(value)}`).join("; ");
  return new NodeApiError(context.getNode(), { code, message }, {
    message: `${code}: ${message}`, description, httpCode: status === undefined ? "none" : String(status),
    itemIndex: context.getItemIndex(),
  });
}

/** The error for a response that is no success. */
function responseFailure(context: IExecuteSingleFunctions, response: IN8nHttpFullResponse): NodeApiError {
  const status = response.statusCode;
  const { code, message } = members(members(response.body)["error"]);
  const details = {
    cause: header(response, "error-cause"), request: header(response, "x-request-id"),
    "retry after seconds": retryAfterS(response),
  };
  if (typeof code === "string" && typeof message === "string") return failure(context, code, message, details, status);
  const text = `The response has the status ${status} and is no error of grabd. Check the base URL.`;
  return failure(context, "unexpected_response", text, details, status);
}

/** The wait before the next attempt after a response. Undefined if it would be the same again. */
function delayMs(response: IN8nHttpFullResponse, retries: number, limits: number): number | undefined {
  const { code } = members(members(response.body)["error"]);
  // The service has not begun to work, so that this is no failed attempt.
  if (response.statusCode === 429) {
    const seconds = retryAfterS(response);
    return seconds === undefined ? backoffMs(limits) : (seconds + Math.random()) * 1000;
  }
  // A repeated error of an earlier request with the same Idempotency-Key stays what it is.
  if (retries >= MAX_RETRIES || isReplayed(response)) return undefined;
  const isPassing = code === "idempotency_conflict" || code === "internal_error" || response.statusCode > 500;
  return isPassing ? backoffMs(retries) + (retryAfterS(response) ?? 0) * 1000 : undefined;
}

/** Requests for one item. All of them may be repeated: they read or delete, or have an `Idempotency-Key`. */
export class Transport {
  readonly context: IExecuteSingleFunctions;
  readonly #defaults: IHttpRequestOptions;
  readonly #endMs: number;

  /** Requests with the settings of the node in `defaults`, and `seconds` for all of them with their retries. */
  constructor(context: IExecuteSingleFunctions, defaults: IHttpRequestOptions, seconds: number) {
    this.context = context;
    const signal = context.getExecutionCancelSignal();
    this.#defaults = { ...defaults, timeout: Math.min(defaults.timeout ?? ATTEMPT_MS, ATTEMPT_MS) };
    if (signal) this.#defaults.abortSignal = signal;
    this.#endMs = Date.now() + seconds * 1000;
  }

  /** Seconds until the time for this item is up. */
  get secondsLeft(): number {
    return Math.max(0, (this.#endMs - Date.now()) / 1000);
  }

  /** Sends a request to the API, whose response is a JSON object or empty. */
  async send(request: Request): Promise<IN8nHttpFullResponse> {
    const { abortSignal, timeout } = this.#defaults;
    const options: IHttpRequestOptions = { ...this.#defaults, ...request, ...(abortSignal ? { abortSignal } : {}), timeout };
    const { helpers } = this.context;
    const response = await this.#retry(() =>
      helpers.httpRequestWithAuthentication.call(this.context, "grabdApi", options));
    if (response.statusCode === 204 || (typeof response.body === "object" && response.body !== null)) return response;
    const text = "The response is no JSON of grabd. Check the base URL.";
    throw failure(this.context, "unexpected_response", text, {}, response.statusCode);
  }

  /** The content of a URL, which is requested without the key. It may be a path on the service. */
  async download(url: string): Promise<Buffer> {
    const absolute = new URL(url, this.#defaults.baseURL).href;
    const { allowedDomains: _, baseURL: __, ...defaults } = this.#defaults;
    const options: IHttpRequestOptions = {
      ...defaults, method: "GET", url: absolute, headers: {}, qs: {}, body: undefined, json: false, encoding: "arraybuffer",
      // An object store may redirect.
      disableFollowRedirect: false,
    };
    const { body } = await this.#retry(() => this.context.helpers.httpRequest(options));
    return Buffer.isBuffer(body) ? body : Buffer.from(body as ArrayBuffer);
  }

  /** Waits between two attempts. */
  async pause(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= PAUSE_STEP_MS) {
      this.context.getExecutionCancelSignal()?.throwIfAborted();
      await sleep(Math.min(left, PAUSE_STEP_MS));
    }
    this.context.getExecutionCancelSignal()?.throwIfAborted();
  }

  async #retry(attempt: () => Promise<unknown>): Promise<IN8nHttpFullResponse> {
    for (let retries = 0, limits = 0; ; ) {
      let ms: number | undefined;
      let error: unknown;
      let isLimit = false;
      try {
        const response = (await attempt()) as IN8nHttpFullResponse;
        if (response.statusCode >= 200 && response.statusCode < 300) return response;
        isLimit = response.statusCode === 429;
        ms = delayMs(response, retries, limits);
        const refusal = responseFailure(this.context, response);
        if (isReplayed(response)) REPLAYED.add(refusal);
        error = refusal;
      } catch (thrown) {
        const code = members(thrown)["code"] ?? members(members(thrown)["cause"])["code"];
        if (retries < MAX_RETRIES && CONNECTION_ERRORS.has(String(code))) ms = backoffMs(retries);
        error = thrown;
      }
      if (ms === undefined || ms > this.secondsLeft * 1000) throw error;
      if (isLimit) limits += 1;
      else retries += 1;
      await this.pause(ms);
    }
  }
}
