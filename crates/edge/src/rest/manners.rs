//! What every HTTP answer has, whoever gives it: a request id that the log has too, and with an error a way to its meaning.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use grabd_proto::{origin, reason};
use http::header::{LINK, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::Instrument;

use super::{docs, headers};

const TRACEPARENT: HeaderName = HeaderName::from_static(reason::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Puts the manners around routes. `public_url` is the origin under which the reference is served.
pub fn manners(router: Router, public_url: &str) -> Router {
    let reference: Arc<str> = format!("{}{}", public_url.trim_end_matches('/'), docs::PATH).into();
    router.layer(middleware::from_fn(move |request, next| mannered(Arc::clone(&reference), request, next)))
}

/// The code of an error answer, for the link to its meaning.
#[derive(Clone, Copy)]
pub(super) struct Code(pub(super) &'static str);

/// Whatever is logged on behalf of a request stands in a span with its id and, if the caller traces, its trace.
async fn mannered(reference: Arc<str>, mut request: Request, next: Next) -> Response {
    let request_id = headers::request_id(request.headers());
    request.headers_mut().insert(headers::REQUEST_ID, request_id.clone());
    let span = tracing::info_span!(
        "http",
        request.id = request_id.to_str().unwrap_or_default(),
        trace.id = tracing::field::Empty
    );
    match trace_id(request.headers()) {
        Some(trace) => {
            span.record("trace.id", trace);
        }
        // A trace that is none begins anew, with whoever traces next.
        None => {
            request.headers_mut().remove(TRACEPARENT);
            request.headers_mut().remove(TRACESTATE);
        }
    }
    let mut response = next.run(request).instrument(span).await;
    let code = response.extensions().get().copied();
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let headers = response.headers_mut();
    headers.insert(headers::REQUEST_ID, request_id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_error {
        let anchor = code.map_or("errors", |Code(code)| code);
        let link = HeaderValue::from_str(&format!("<{reference}#{anchor}>; rel=\"help\""));
        headers.append(LINK, link.expect("an origin and a code are visible ASCII"));
    }
    response
}

fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(TRACEPARENT).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    origin::trace_id(line.to_str().ok()?)
}
