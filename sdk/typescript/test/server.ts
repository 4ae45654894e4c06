// A server with scripted responses for the tests.
import { type IncomingHttpHeaders, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { type ClientOptions, Grabd } from "../src/index.js";

/** A received request. */
export interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export type Responder = (response: ServerResponse, request: Received) => void;

/** A server that gives the responses in turn, and the last one again and again. */
export class FakeService {
  readonly received: Received[] = [];
  readonly #server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const request = { method: incoming.method ?? "", url: incoming.url ?? "", headers: incoming.headers, body };
    this.received.push(request);
    const responder = this.responders[Math.min(this.received.length, this.responders.length) - 1];
    responder?.(response, request);
  });

  private constructor(private readonly responders: Responder[]) {}

  /** Runs a test with a server and a client that retries without delay. */
  static async with(
    responders: Responder[],
    test: (client: Grabd, service: FakeService) => Promise<void>,
    options: ClientOptions = {},
  ): Promise<void> {
    const service = new FakeService(responders);
    await new Promise<void>((resolve) => service.#server.listen(0, "127.0.0.1", resolve));
    try {
      const client = new Grabd({ baseUrl: service.baseUrl, apiKey: "sk_live_secret", retryDelayMs: 1, ...options });
      await test(client, service);
    } finally {
      service.#server.closeAllConnections();
      await new Promise((resolve) => service.#server.close(resolve));
    }
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Responder {
  const all = { "content-type": "application/json", ...headers };
  return (response) => response.writeHead(status, all).end(JSON.stringify(body));
}

export function failure(status: number, code: string, headers: Record<string, string> = {}): Responder {
  return json(status, { error: { code, message: `It is ${code}.` } }, { "x-request-id": "request-1", ...headers });
}

/** Breaks the connection without a response. */
export const reset: Responder = (response) => response.destroy();

/** Never responds. */
export const silence: Responder = () => {};

export function grab(status: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { id: "id-1", status, created_at: "2026-11-21T09:30:12.480Z", target_url: "https://example.com/", ...more };
}
