export { Grabd, hasEnded } from "./client.js";
export type {
  BatchCapture, BatchOptions, CaptureCallOptions, CreateOptions, DownloadOptions, HtmlOptions, ListGrabsOptions,
  ListGrabsPageOptions, PricingOptions, ReadOptions, WaitOptions, WatchOptions,
} from "./client.js";
export type { CoveredBy, ElementsFile, PageElement } from "./elements.js";
export * from "./errors.js";
export * from "./generated.js";
export { VERSION } from "./http.js";
export type { CallOptions, ClientOptions } from "./http.js";
export { isCreditsEvent, isGrabEvent, verifyWebhook } from "./webhooks.js";
export type {
  CreditsEvent, GrabEvent, ListDeliveriesOptions, OtherEvent, VerifyOptions, WebhookEvent, WebhookHeaders, Webhooks,
} from "./webhooks.js";
