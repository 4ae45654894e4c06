//! Common handling of page responses: security headers, problem pages, redirects and allowed methods.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use grabd_engine::client_address::from_address;
use grabd_http::allow_methods;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, Entry, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::client_ip::Address;
use crate::page::{CspOptions, Layout, csp_header};
use crate::problem::Problem;
use crate::state::Web;

/// The `Allow` header of a page.
pub(crate) const READ: &str = "GET, HEAD, OPTIONS";
/// The `Allow` header of a page that accepts a form.
pub(crate) const FORM: &str = "GET, HEAD, POST, OPTIONS";
/// The `Allow` header of a form that has no page at its own path.
pub(crate) const WRITE: &str = "POST, OPTIONS";

/// Middleware that renders problems as pages and adds the common headers.
pub(crate) async fn finish(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let request_headers = request.headers().clone();
    let address = request.extensions().get().map(|Address(address)| *address);
    let mut response = match address {
        Some(address) => from_address(address, next.run(request)).await,
        None => next.run(request).await,
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let headers = std::mem::take(response.headers_mut());
        response = problem.render(problem_layout(&web, &request_headers, &problem).await);
        response.headers_mut().extend(headers.into_iter().filter(|(name, _)| *name == Some(ALLOW)));
    }
    add_headers(response.headers_mut());
    response
}

/// The layout of a problem page, with the navigation of the user who sent these headers.
async fn problem_layout(web: &Web, headers: &HeaderMap, problem: &Problem) -> Layout {
    let signed_in = match problem.retry_after_s() {
        // Rate-limited requests must not cost a session lookup.
        Some(_) => None,
        // The lookup may fail for the same reason as the request.
        None => web.signed_in(headers).await.unwrap_or_default(),
    };
    signed_in.map_or_else(|| web.plain_layout(), |user| web.user_layout(&user.session, ""))
}

/// Adds the common headers of pages.
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    insert_default(headers, CONTENT_SECURITY_POLICY, || csp_header(CspOptions::default()));
    insert_default(headers, CACHE_CONTROL, || HeaderValue::from_static("no-store"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

fn insert_default(headers: &mut HeaderMap, name: HeaderName, value: impl FnOnce() -> HeaderValue) {
    if let Entry::Vacant(vacant) = headers.entry(name) {
        vacant.insert(value());
    }
}

/// Adds a fallback for all other methods, with `allowed` as the `Allow` header: 204 for OPTIONS, otherwise 405.
pub(crate) fn only(allowed: &'static str, methods: MethodRouter<Arc<Web>>) -> MethodRouter<Arc<Web>> {
    allow_methods(allowed, methods, |_| Problem::method_not_allowed().into_response())
}

/// A 303 redirect, which the browser follows with GET.
pub(crate) fn see_other(location: &str) -> Response {
    match HeaderValue::try_from(location) {
        Ok(location) => (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response(),
        Err(_) => Problem::bad_request("Invalid redirect", "The redirect URL is invalid.", "").into_response(),
    }
}
