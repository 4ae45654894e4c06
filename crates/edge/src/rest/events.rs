//! `GET /v1/grabs/{id}/events`: the revisions of a grab as Server-Sent Events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use grabd_proto::v1::Grab;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::error::Failure;
use super::watch::{self, Next, Watch};
use super::{Edge, headers, limits, wire};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Comments in between keep proxies from closing a quiet connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long the answer's head waits for the first revision. A fresh reader gets it at once; one that resumes may not.
const FIRST: Duration = Duration::from_secs(1);
/// Longest life of a stream; the core ends it after 30 minutes, and readers resume.
const LASTING: Duration = Duration::from_secs(31 * 60);

/// Follows a grab to its end. A reader that resumes after the end is told with 204 that there is nothing to come back for.
pub(super) async fn events(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Failure> {
    let headers = request.headers();
    let mut watch = watch::open(&edge, headers, super::id(path), last_event_id(headers), LASTING).await?;
    let first = match watch.next(FIRST).await {
        Ok(Next::Grab(grab)) => Some(grab),
        Ok(Next::Nothing) => None,
        Ok(Next::End) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            decorate(response.headers_mut(), &watch.metadata);
            return Ok(response);
        }
        Err(status) => return Err(Failure::of_status(&status, headers)),
    };
    let metadata = std::mem::take(&mut watch.metadata);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(told(watch, first)).keep_alive(keep_alive).into_response();
    decorate(response.headers_mut(), &metadata);
    Ok(response)
}

/// Every revision as it comes. A stream that breaks just ends: readers resume by themselves.
fn told(watch: Watch, first: Option<Box<Grab>>) -> impl Stream<Item = Result<Event, Infallible>> {
    let deadline = Instant::now() + LASTING;
    stream::unfold(Some((watch, first)), move |state| async move {
        let (mut watch, first): (Watch, _) = state?;
        let grab = match first {
            Some(grab) => grab,
            None => match watch.next(deadline.duration_since(Instant::now())).await {
                Ok(Next::Grab(grab)) => grab,
                Ok(Next::End | Next::Nothing) => return None,
                Err(status) => {
                    tracing::debug!("A watched grab's stream ended early: {}.", status.message());
                    return None;
                }
            },
        };
        let data = String::from_utf8(headers::to_json(&wire::grab(&grab)?)).expect("JSON is UTF-8");
        let event = Event::default().event("grab").id(grab.revision.to_string()).data(data);
        let rest = (!watch::has_ended(&grab)).then_some((watch, None));
        Some((Ok(event), rest))
    })
}

fn decorate(headers: &mut HeaderMap, metadata: &HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(headers::PRIVATE));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    limits::copy(metadata, headers);
}

/// The revision after which a reader resumes. What is no revision resumes nothing.
fn last_event_id(headers: &HeaderMap) -> i64 {
    let id = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    id.unwrap_or(0)
}
