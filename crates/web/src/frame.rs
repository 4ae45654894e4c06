//! What holds for every answer to people, whichever page it is: who may frame, keep and be told of it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, Entry, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::page::{Rights, policy};
use crate::problem::Problem;
use crate::{Address, Web};

/// Shows problems as pages, and puts the headers on whatever is answered.
pub(crate) async fn frame(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let asked = request.headers().clone();
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let headers = std::mem::take(response.headers_mut());
        response = problem.show(&web, &asked).await;
        response.headers_mut().extend(headers.into_iter().filter(|(name, _)| *name == Some(ALLOW)));
    }
    let headers = response.headers_mut();
    unless_told(headers, CONTENT_SECURITY_POLICY, || policy(Rights::default()));
    unless_told(headers, CACHE_CONTROL, || HeaderValue::from_static("no-store"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn unless_told(headers: &mut HeaderMap, name: HeaderName, value: impl FnOnce() -> HeaderValue) {
    if let Entry::Vacant(vacant) = headers.entry(name) {
        vacant.insert(value());
    }
}

/// Answers every other method with `allowed`: as a problem, or as the answer to OPTIONS.
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

/// Sends the browser on, with GET whatever it came with.
pub(crate) fn see_other(location: &str) -> Response {
    match HeaderValue::try_from(location) {
        Ok(location) => (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response(),
        Err(_) => Problem::bad_request("You cannot be sent on", "The address to go to is not one.", "").into_response(),
    }
}

/// Whose request it is, for the limits.
#[derive(Clone, Copy)]
pub(crate) struct Client(pub(crate) IpAddr);

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let address = parts.extensions.get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Address(address)| *address);
        Ok(Self(address))
    }
}
