//! How programs are answered: the errors of RFC 6749 section 5.2, never kept by a cache, open to pages of any site.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use grabd_engine::oauth::TokenError;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_TYPE, PRAGMA, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::Web;
use crate::form::Unreadable;
use crate::limits::Spent;

/// An error on its way to a program.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    error: &'static str,
    description: String,
    retry_after_s: Option<u64>,
}

impl Refused {
    /// A request that is not as it should be.
    pub(super) fn bad_request(error: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, description: description.into(), retry_after_s: None }
    }

    /// What the engine refused, with the status that it wants.
    pub(super) fn of(status: u16, error: &'static str, description: String) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, error, description, retry_after_s: None }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self { status, error, description, retry_after_s } = self;
        let mut response = uncached(status, &json!({ "error": error, "error_description": description }));
        let headers = response.headers_mut();
        if let Some(seconds) = retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"grabd\""));
        }
        response
    }
}

impl From<Spent> for Refused {
    fn from(Spent { retry_after_s }: Spent) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            error: "temporarily_unavailable",
            description: format!("Too many requests from this address. Retry in {retry_after_s} s."),
            retry_after_s: Some(retry_after_s),
        }
    }
}

impl From<Unreadable> for Refused {
    fn from(why: Unreadable) -> Self {
        Self::bad_request("invalid_request", why.to_string())
    }
}

impl From<TokenError> for Refused {
    fn from(TokenError { status, error, description }: TokenError) -> Self {
        Self::of(status, error, description)
    }
}

/// JSON that nobody keeps.
pub(super) fn uncached(status: StatusCode, body: &Value) -> Response {
    let mut response = json_of(status, body, "no-store");
    response.headers_mut().insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// JSON that may be kept as `caching` says.
pub(super) fn json_of(status: StatusCode, body: &Value, caching: &'static str) -> Response {
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, caching)], body.to_string()).into_response()
}

/// Answers every other method with `allowed`: as an error, or as the answer to OPTIONS.
pub(super) fn only(allowed: &'static str, methods: MethodRouter<Arc<Web>>) -> MethodRouter<Arc<Web>> {
    methods.fallback(async move |method: Method| -> Response {
        let mut response = match method {
            Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            _ => {
                let refused = Refused::bad_request("invalid_request", format!("This path answers {allowed} only."));
                Refused { status: StatusCode::METHOD_NOT_ALLOWED, ..refused }.into_response()
            }
        };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    })
}

/// Lets pages of any site call and read, without the cookies of whoever looks at them. What opens something here is in
/// the request itself.
pub(super) async fn open_to_browsers(request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let any = HeaderValue::from_static("*");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
    if is_preflight {
        let methods = headers.get(ALLOW).cloned().unwrap_or_else(|| HeaderValue::from_static("OPTIONS"));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        // The star stands for every header but this one.
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    } else {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, any);
    }
    response
}
