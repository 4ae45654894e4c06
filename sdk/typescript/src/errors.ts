/** Base class of every error of this library, except errors in the use of JavaScript itself (`TypeError`). */
export class GrabdError extends Error {
  override name = "GrabdError";
}

/** What the service said about a request that it refused. */
export interface ApiErrorDetails {
  /** HTTP status. */
  status: number;
  /** Machine-readable code. Later versions of the service may add codes. */
  code: string;
  /** Whose fault it is: `request`, `target` (the captured site) or `service`. Undefined if the service does not say it. */
  cause?: string | undefined;
  /** `X-Request-Id` of the response. Quote it when you ask for help. */
  requestId: string | undefined;
  /** Seconds to wait before a retry, if the service named them. */
  retryAfterS: number | undefined;
  /** The path of the grab that failed, if there is one. */
  location: string | undefined;
}

/** The service responded with an error. There is a subclass for each code. */
export class ApiError extends GrabdError {
  override name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  /** Machine-readable code. Later versions of the service may add codes. */
  readonly code: string;
  /** Whose fault it is: `request`, `target` (the captured site) or `service`. Undefined if the service does not say it. */
  override readonly cause: string | undefined;
  /** `X-Request-Id` of the response. Quote it when you ask for help. */
  readonly requestId: string | undefined;
  /** Seconds to wait before a retry, if the service named them. */
  readonly retryAfterS: number | undefined;
  /** Id of the grab that failed. Undefined if the request created none. */
  readonly grabId: string | undefined;

  constructor(message: string, details: ApiErrorDetails) {
    super(message);
    this.status = details.status;
    this.code = details.code;
    this.cause = details.cause;
    this.requestId = details.requestId;
    this.retryAfterS = details.retryAfterS;
    this.grabId = details.location?.match(/\/grabs\/([^/?#]+)$/)?.[1];
  }
}

/** No response arrived: no connection, or it broke. `cause` has the reason. */
export class ConnectionError extends GrabdError {
  override name = "ConnectionError";
}

/** No complete response arrived in time. */
export class RequestTimeoutError extends ConnectionError {
  override name = "RequestTimeoutError";
}

/** A grab or a site job did not end in the time that the caller gave. It goes on, and can be waited for again. */
export class WaitTimeoutError extends GrabdError {
  override name = "WaitTimeoutError";
  /** Id of the grab or the site job. */
  readonly grabId: string;

  constructor(message: string, grabId: string, cause?: unknown) {
    super(message, { cause });
    this.grabId = grabId;
  }
}

/** A response is not what the REST API promises, for example because a proxy sent it. */
export class UnexpectedResponseError extends GrabdError {
  override name = "UnexpectedResponseError";
  /** HTTP status. */
  readonly status: number;
  /** `X-Request-Id` of the response. */
  readonly requestId: string | undefined;
  /** Seconds to wait before a retry, if the response named them. */
  readonly retryAfterS: number | undefined;

  constructor(
    message: string, status: number, requestId: string | undefined, cause?: unknown, retryAfterS?: number,
  ) {
    super(message, { cause });
    this.status = status;
    this.requestId = requestId;
    this.retryAfterS = retryAfterS;
  }
}

/** A webhook message is not from the service, was changed, or is too old. Do not process it. */
export class WebhookVerificationError extends GrabdError {
  override name = "WebhookVerificationError";
}
