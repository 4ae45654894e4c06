import { WebhookVerificationError } from "./errors.js";
import type {
  CreateWebhookOptions, Delivery, DeliveryList, Grab, Monitor, MonitorRun, Site, UpdateWebhookOptions, Webhook, WebhookList,
} from "./generated.js";
import { pathOf } from "./http.js";
import type { CallOptions, Http } from "./http.js";

/** Fields of a page of deliveries. */
export interface ListDeliveriesOptions extends CallOptions {
  /** Deliveries on each page, from 1 to 100. Default: 25. */
  limit?: number | undefined;
  /** Only deliveries older than the one with this id. */
  starting_after?: string | undefined;
}

/** The webhooks of the key's team and environment. */
export class Webhooks {
  readonly #http: Http;

  /** Use `Grabd.webhooks`. */
  constructor(http: Http) {
    this.#http = http;
  }

  /** Registers a URL. The `secret` is only in this response. */
  create(url: string, options: CreateWebhookOptions & CallOptions = {}): Promise<Webhook> {
    const { signal, timeoutMs, ...members } = options;
    const body = { ...members, url };
    return this.#http.json({ method: "POST", path: "/webhooks", body, repeatable: false, signal, timeoutMs });
  }

  /** All webhooks, newest first. */
  async list(options: CallOptions = {}): Promise<Webhook[]> {
    const page = await this.#http.json<WebhookList>({ method: "GET", path: "/webhooks", repeatable: true, ...options });
    return page.data;
  }

  /** One webhook, without its secret. */
  get(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#http.json({ method: "GET", path: path(id), repeatable: true, ...options });
  }

  /** Changes a webhook. What is left out stays as it is. */
  update(id: string, changes: UpdateWebhookOptions, options: CallOptions = {}): Promise<Webhook> {
    return this.#http.json({ method: "PATCH", path: path(id), body: changes, repeatable: true, ...options });
  }

  /** Removes a webhook. Its pending messages are not sent. */
  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#http.json({ method: "DELETE", path: path(id), repeatable: true, ...options });
  }

  /** Creates a new `secret`, which is only in this response. For 24 hours messages are also signed with the old one. */
  rotateSecret(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#http.json({ method: "POST", path: `${path(id)}/rotate_secret`, repeatable: false, ...options });
  }

  /** Sends a `webhook.test` message. */
  test(id: string, options: CallOptions = {}): Promise<Delivery> {
    return this.#http.json({ method: "POST", path: `${path(id)}/test`, repeatable: false, ...options });
  }

  /** The deliveries of the last 30 days, newest first. Further pages are fetched while you iterate. */
  async *deliveries(id: string, options: ListDeliveriesOptions = {}): AsyncGenerator<Delivery, void, void> {
    const { limit, starting_after, ...call } = options;
    let cursor = starting_after;
    for (;;) {
      const query = { limit, starting_after: cursor };
      const request = { method: "GET", path: `${path(id)}/deliveries`, query, repeatable: true, ...call } as const;
      const page = await this.#http.json<DeliveryList>(request);
      yield* page.data;
      cursor = page.data.at(-1)?.id;
      if (!page.has_more || cursor === undefined) return;
    }
  }

  /** Sends a message again, with the same `webhook-id`. */
  redeliver(id: string, deliveryId: string, options: CallOptions = {}): Promise<Delivery> {
    const to = `${path(id)}/deliveries/${encodeURIComponent(deliveryId)}/redeliver`;
    return this.#http.json({ method: "POST", path: to, repeatable: false, ...options });
  }
}

function path(id: string): string {
  return pathOf("webhooks", id);
}

/** A verified message. */
export type WebhookEvent = GrabEvent | MonitorEvent | SiteEvent | CreditsEvent | OtherEvent;

interface EventMembers {
  /** Id of the message, the same at every attempt. Store it to recognise repetitions. */
  id: string;
  /** When the message was made. RFC 3339. */
  timestamp: string;
  /** Environment of the grab. */
  environment: "live" | "test";
}

/** An asynchronous live grab has ended, or, with `grab.changed`, its image differs from the earlier one. */
export interface GrabEvent extends EventMembers {
  type: "grab.done" | "grab.failed" | "grab.changed";
  /** The grab, as `getGrab` returns it. */
  data: Grab;
}

/** A monitor found a change, failed three times in a row, or has captured its page again after that. */
export interface MonitorEvent extends EventMembers {
  type: "monitor.changed" | "monitor.failed" | "monitor.recovered";
  data: {
    /** The monitor, as `monitors.get` returns it. */
    monitor: Monitor;
    /** The run that the message is about. */
    run: MonitorRun;
  };
}

/** A job that captures a site has ended. */
export interface SiteEvent extends EventMembers {
  type: "site.finished";
  data: {
    /** The job, as `sites.get` returns it. */
    site: Site;
  };
}

/** The balance of the team has fallen below the number of credits that its owners chose. */
export interface CreditsEvent extends EventMembers {
  type: "credits.low";
  data: {
    team_id: string;
    /** Unspent credits, with those reserved for open grabs. */
    credits: number;
    /** The number of credits that the owners chose. */
    alert_below: number;
  };
}

/** A message of another type, such as `webhook.test`. Ignore the types that you do not know. */
export interface OtherEvent extends EventMembers {
  type: "webhook.test" | (string & Record<never, never>);
  data: unknown;
}

/** Whether a message is about a grab that has ended. */
export function isGrabEvent(event: WebhookEvent): event is GrabEvent {
  return event.type === "grab.done" || event.type === "grab.failed" || event.type === "grab.changed";
}

/** Whether a message is about a monitor. */
export function isMonitorEvent(event: WebhookEvent): event is MonitorEvent {
  return ["monitor.changed", "monitor.failed", "monitor.recovered"].includes(event.type);
}

/** Whether a message is about a job that captures a site. */
export function isSiteEvent(event: WebhookEvent): event is SiteEvent {
  return event.type === "site.finished";
}

/** Whether a message is about a low balance. */
export function isCreditsEvent(event: WebhookEvent): event is CreditsEvent {
  return event.type === "credits.low";
}

/** Where the headers of a message come from: `Request.headers`, or the object of Node.js and its frameworks. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

/** Settings of the verification. */
export interface VerifyOptions {
  /** How far the time of a message may be off, in seconds. Default: 300. */
  toleranceS?: number | undefined;
  /** The current time in milliseconds, for tests. Default: `Date.now()`. */
  now?: number | undefined;
}

/** During a rotation there are two. */
const MAX_SIGNATURES = 10;

/**
 * Verifies a message (Standard Webhooks) and returns it parsed.
 *
 * `payload` is the raw body, as it was received. `secret` is that of the webhook; give several to accept each of them.
 *
 * @throws WebhookVerificationError if the message must not be processed: respond with 400.
 */
export async function verifyWebhook(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  if (typeof payload !== "string" && !(payload instanceof Uint8Array)) {
    throw new TypeError("`payload` must be the raw body as a string or bytes; a parsed body cannot be verified.");
  }
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (secrets.length === 0) throw new TypeError("`secret` must not be empty.");
  const keys = await Promise.all(secrets.map(importSecret));
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");

  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError("`webhook-timestamp` is no time.");
  const offS = Math.abs((options.now ?? Date.now()) / 1000 - Number(timestamp));
  const toleranceS = options.toleranceS ?? 300;
  if (!(offS <= toleranceS)) {
    const off = `${Math.round(offS)} s off; ${toleranceS} s are allowed`;
    throw new WebhookVerificationError(`The time of the message is ${off}.`);
  }

  const bytes = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  const start = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(start.length + bytes.length);
  signed.set(start);
  signed.set(bytes, start.length);
  let isValid = false;
  for (const signature of signatures.split(" ").slice(0, MAX_SIGNATURES)) {
    const [version, encoded] = signature.split(",");
    const mac = version === "v1" && encoded ? decodeBase64(encoded) : undefined;
    if (!mac) continue;
    // `verify` compares in constant time.
    for (const key of keys) isValid = (await crypto.subtle.verify("HMAC", key, mac, signed)) || isValid;
  }
  if (!isValid) throw new WebhookVerificationError("No signature of the message is valid.");

  let event: unknown;
  try {
    event = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new WebhookVerificationError("The body is no JSON.");
  }
  if (typeof (event as WebhookEvent | null)?.type !== "string") {
    throw new WebhookVerificationError("The body is no message of grabd.");
  }
  return event as WebhookEvent;
}

async function importSecret(secret: string): Promise<CryptoKey> {
  const key = decodeBase64(secret.replace(/^whsec_/, ""));
  if (!key || key.length === 0) throw new TypeError("`secret` must be the secret of a webhook: whsec_ and base64.");
  return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function header(headers: WebhookHeaders, name: string): string {
  let value: string | readonly string[] | null | undefined;
  if (typeof (headers as Headers).get === "function") {
    value = (headers as Headers).get(name);
  } else {
    const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name);
    value = entry?.[1] as string | readonly string[] | undefined;
  }
  const text = typeof value === "string" ? value : value?.[0];
  if (!text) throw new WebhookVerificationError(`The header \`${name}\` is missing.`);
  return text;
}
