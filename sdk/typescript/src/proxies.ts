import type { CreateProxyOptions, Proxy, ProxyList, UpdateProxyOptions } from "./generated.js";
import { pathOf } from "./http.js";
import type { CallOptions, Http } from "./http.js";

/** The proxies of the key's team and environment, through which pages can be loaded. */
export class Proxies {
  readonly #http: Http;

  /** Use `Grabd.proxies`. */
  constructor(http: Http) {
    this.#http = http;
  }

  /** Stores a proxy. Its id is for the capture option `proxy`. The user name and the password are never returned. */
  create(options: CreateProxyOptions & CallOptions): Promise<Proxy> {
    const { signal, timeoutMs, ...body } = options;
    return this.#http.json({ method: "POST", path: "/proxies", body, repeatable: false, signal, timeoutMs });
  }

  /** All proxies, newest first. */
  async list(options: CallOptions = {}): Promise<Proxy[]> {
    const page = await this.#http.json<ProxyList>({ method: "GET", path: "/proxies", repeatable: true, ...options });
    return page.data;
  }

  /** One proxy, with its last use and its last failure. */
  get(id: string, options: CallOptions = {}): Promise<Proxy> {
    return this.#http.json({ method: "GET", path: path(id), repeatable: true, ...options });
  }

  /** Changes a proxy. What is left out stays as it is. */
  update(id: string, changes: UpdateProxyOptions, options: CallOptions = {}): Promise<Proxy> {
    return this.#http.json({ method: "PATCH", path: path(id), body: changes, repeatable: true, ...options });
  }

  /** Removes a proxy. Captures that name it fail from then on, and are not charged. */
  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#http.json({ method: "DELETE", path: path(id), repeatable: true, ...options });
  }
}

function path(id: string): string {
  return pathOf("proxies", id);
}
