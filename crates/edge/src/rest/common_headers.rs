//! Headers of every HTTP response: the request id, which is also logged, and for errors a link to the documentation and whose
//! fault they are.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use grabd_proto::v1::ErrorCause;
use grabd_proto::{called_as, correlation, reason};
use http::header::{LINK, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tracing::Instrument;

use super::{headers, paths};

const TRACEPARENT: HeaderName = HeaderName::from_static(reason::TRACEPARENT);
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Adds the headers that all responses share. `public_url` is the origin at which the API reference is served.
pub fn common_headers(router: Router, public_url: &str) -> Router {
    let reference: Arc<str> = format!("{}{}", public_url.trim_end_matches('/'), paths::API_REFERENCE).into();
    router.layer(middleware::from_fn(move |request, next| add_common_headers(Arc::clone(&reference), request, next)))
}

/// Response extension: the error code, which is the anchor of its documentation.
#[derive(Clone, Copy)]
pub(super) struct ErrorAnchor(pub(super) &'static str);

/// Runs the request in a tracing span with its id and, if there is one, its trace id.
async fn add_common_headers(reference: Arc<str>, mut request: Request, next: Next) -> Response {
    let request_id = headers::request_id(request.headers());
    request.headers_mut().insert(headers::REQUEST_ID, request_id.clone());
    called_as::remove(request.headers_mut());
    let span = tracing::info_span!(
        "http",
        request.id = request_id.to_str().unwrap_or_default(),
        trace.id = tracing::field::Empty
    );
    match trace_id(request.headers()) {
        Some(trace) => {
            span.record("trace.id", trace);
        }
        // A malformed trace is not continued.
        None => {
            request.headers_mut().remove(TRACEPARENT);
            request.headers_mut().remove(TRACESTATE);
        }
    }
    let mut response = next.run(request).instrument(span).await;
    let anchor = response.extensions().get().copied();
    let usual_cause = usual_cause(response.status());
    let headers = response.headers_mut();
    headers.insert(headers::REQUEST_ID, request_id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(cause) = usual_cause {
        headers.entry(headers::ERROR_CAUSE).or_insert(HeaderValue::from_static(cause));
        let anchor = anchor.map_or("errors", |ErrorAnchor(anchor)| anchor);
        let link = HeaderValue::from_str(&format!("<{reference}#{anchor}>; rel=\"help\""));
        headers.append(LINK, link.expect("an origin and a code are visible ASCII"));
    }
    response
}

/// The cause of errors that do not name one: those of OAuth, of the MCP protocol and of pages. `None` for other statuses.
fn usual_cause(status: StatusCode) -> Option<&'static str> {
    let cause = match status {
        _ if status.is_client_error() => ErrorCause::Request,
        _ if status.is_server_error() => ErrorCause::Service,
        _ => return None,
    };
    reason::cause_name(cause)
}

fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(TRACEPARENT).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    correlation::trace_id(line.to_str().ok()?)
}
