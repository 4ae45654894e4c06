export { Grabd, hasEnded } from "./client.js";
export type {
  BatchOptions, CaptureCallOptions, CreateOptions, DownloadOptions, HtmlOptions, ListGrabsOptions,
  ListGrabsPageOptions, PricingOptions, ReadOptions, WaitOptions, WatchOptions,
} from "./client.js";
export type { CoveredBy, ElementsFile, PageElement } from "./elements.js";
export * from "./errors.js";
export * from "./generated.js";
export { VERSION } from "./http.js";
export type { CallOptions, ClientOptions } from "./http.js";
export type { ListMonitorsOptions, MonitorHistoryOptions, Monitors } from "./monitors.js";
export type { BatchCapture } from "./options.js";
export type { Proxies } from "./proxies.js";
export type { ListSitePagesOptions, ListSitesOptions, Sites, WaitForSiteOptions } from "./sites.js";
export { isCreditsEvent, isGrabEvent, isMonitorEvent, isSiteEvent, verifyWebhook } from "./webhooks.js";
export type {
  CreditsEvent, GrabEvent, ListDeliveriesOptions, MonitorEvent, OtherEvent, SiteEvent, VerifyOptions, WebhookEvent, WebhookHeaders,
  Webhooks,
} from "./webhooks.js";
