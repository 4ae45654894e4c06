//! Common handling of page responses: security headers, problem pages, redirects and allowed methods.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use grabd_engine::origin::from_address;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, Entry, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::page::{CspOptions, csp_header};
use crate::problem::Problem;
use crate::{Address, Web};

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
        response = problem.render(&web, &request_headers).await;
        response.headers_mut().extend(headers.into_iter().filter(|(name, _)| *name == Some(ALLOW)));
    }
    add_headers(response.headers_mut());
    response
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
    methods.fallback(async move |method: Method| -> Response {
        let mut response = match method {
            Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            _ => Problem::method_not_allowed().into_response(),
        };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    })
}

/// A 303 redirect, which the browser follows with GET.
pub(crate) fn see_other(location: &str) -> Response {
    match HeaderValue::try_from(location) {
        Ok(location) => (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response(),
        Err(_) => Problem::bad_request("Invalid redirect", "The redirect URL is invalid.", "").into_response(),
    }
}

/// The client address, as the key of rate limits.
#[derive(Clone, Copy)]
pub(crate) struct ClientIp(pub(crate) IpAddr);

impl<S: Sync> FromRequestParts<S> for ClientIp {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let address = parts.extensions.get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Address(address)| *address);
        Ok(Self(address))
    }
}
