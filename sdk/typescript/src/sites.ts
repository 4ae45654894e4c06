import type { CaptureOptions, CreateSiteOptions, Site, SitePage } from "./generated.js";
import { WaitTimeoutError } from "./errors.js";
import { type CallOptions, type Http, checkedMs, pathOf, sleep } from "./http.js";
import { checkNames } from "./options.js";

const WAIT_TIMEOUT_MS = 30 * 60_000;
/** Between two reads of a job, which takes minutes. */
const POLL_MS = 2_000;

/** Fields of a page of jobs. */
export interface ListSitesOptions extends CallOptions {
  /** Jobs on each page, from 1 to 100. Default: 25. */
  limit?: number | undefined;
  /** Only jobs older than the one with this id. */
  starting_after?: string | undefined;
}

/** Fields of a part of the list of a job's pages. */
export interface ListSitePagesOptions extends CallOptions {
  /** Pages in each part, from 1 to 100. Default: 25. */
  limit?: number | undefined;
  /** Only pages after the one with this number. */
  starting_after?: number | undefined;
}

/** Settings of `sites.wait`. */
export interface WaitForSiteOptions extends CallOptions {
  /** Time limit of the whole wait in milliseconds. Default: 30 minutes. */
  waitTimeoutMs?: number | undefined;
}

/** The jobs that capture many pages of one site. */
export class Sites {
  readonly #http: Http;

  /** Use `Grabd.sites`. */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Captures the pages of a site: those that links lead to from a start page, whose URL is given, or those of a sitemap.
   * Returns the job at once; `wait` waits for its end. `capture` has the capture options. Each capture that is done costs a
   * credit.
   */
  create(
    site: string | { sitemap: string },
    options: CreateSiteOptions & CallOptions & { capture?: CaptureOptions | undefined } = {},
  ): Promise<Site> {
    const { signal, timeoutMs, ...members } = options;
    if (members.capture !== undefined) checkNames(members.capture);
    const body = { ...members, ...(typeof site === "string" ? { url: site } : { sitemap: site.sitemap }) };
    return this.#http.json({ method: "POST", path: "/sites", body, repeatable: false, signal, timeoutMs });
  }

  /** All jobs, newest first. Further pages are fetched while you iterate. */
  async *list(options: ListSitesOptions = {}): AsyncGenerator<Site, void, void> {
    const { limit, starting_after, ...call } = options;
    let cursor = starting_after;
    for (;;) {
      const page = await this.#part<Site>("/sites", limit, cursor, call);
      yield* page.data;
      cursor = page.data.at(-1)?.id;
      if (!page.has_more || cursor === undefined) return;
    }
  }

  /** One job with its state and the numbers of its pages. */
  get(id: string, options: CallOptions = {}): Promise<Site> {
    return this.#http.json({ method: "GET", path: path(id), repeatable: true, ...options });
  }

  /**
   * Waits until a job has ended with its last capture, and returns it. A limit that is used up (429) does not end the wait.
   *
   * @throws WaitTimeoutError if it has not ended in time. It goes on, and can be waited for again.
   */
  async wait(id: string, options: WaitForSiteOptions = {}): Promise<Site> {
    const { signal, timeoutMs } = options;
    const waitMs = checkedMs("waitTimeoutMs", options.waitTimeoutMs ?? WAIT_TIMEOUT_MS);
    const end = performance.now() + waitMs;
    const call = { method: "GET", path: path(id), repeatable: true, waits: true, signal, timeoutMs } as const;
    for (let refusals = 0, refused: unknown; ;) {
      let delayMs: number | undefined = POLL_MS;
      try {
        const site = await this.#http.json<Site>(call);
        if (site.finished_at) return site;
        [refused, refusals] = [undefined, 0];
      } catch (error) {
        delayMs = this.#http.limitDelayMs(error, refusals);
        if (delayMs === undefined) throw error;
        [refused, refusals] = [error, refusals + 1];
      }
      const left = end - performance.now();
      if (left <= 0) throw new WaitTimeoutError(`The site job ${id} has not ended after ${waitMs} ms.`, id, refused);
      await sleep(Math.min(delayMs, left), signal);
    }
  }

  /** The pages of a job in the order in which they were found. Further ones are fetched while you iterate. */
  async *pages(id: string, options: ListSitePagesOptions = {}): AsyncGenerator<SitePage, void, void> {
    const { limit, starting_after, ...call } = options;
    let cursor = starting_after;
    for (;;) {
      const page = await this.#part<SitePage>(`${path(id)}/pages`, limit, cursor, call);
      yield* page.data;
      cursor = page.data.at(-1)?.number;
      if (!page.has_more || cursor === undefined) return;
    }
  }

  /** Stops a job: no more pages are found or captured. Captures that have begun are finished. */
  cancel(id: string, options: CallOptions = {}): Promise<Site> {
    return this.#http.json({ method: "POST", path: `${path(id)}/cancel`, body: {}, repeatable: true, ...options });
  }

  /** Removes a job and the list of its pages. Its captures stay. */
  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#http.json({ method: "DELETE", path: path(id), repeatable: true, ...options });
  }

  #part<T>(
    from: string, limit: number | undefined, starting_after: string | number | undefined, call: CallOptions,
  ): Promise<{ data: T[]; has_more: boolean }> {
    const request = { method: "GET", path: from, query: { limit, starting_after }, repeatable: true } as const;
    return this.#http.json({ ...request, ...call });
  }
}

function path(id: string): string {
  return pathOf("sites", id);
}
