//! `GET /v1/grabs/{id}/events`: the revisions and stages of a grab as Server-Sent Events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use grabd_proto::v1::{ErrorCode, Grab, WatchGrabRequest};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use tokio::time::Instant;
use utoipa::openapi::ContentBuilder;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};

use super::error::ApiError;
use super::openapi::examples::{done, pending};
use super::openapi::parts::{self, authenticated, parameter, success_response, text};
use super::openapi::tags;
use super::path_id::id;
use super::state::Edge;
use super::watch::{self, Next, Watch};
use super::{headers, rate_limit_headers, wire};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The event of a new revision, and that of a stage of the current one.
const REVISION: &str = "grab";
const STAGE: &str = "stage";
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Interval of comments that keep proxies from closing an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long the response head waits for the first revision, so that errors get their HTTP status. New readers get it at
/// once; resuming readers may have to wait.
const FIRST_EVENT_WAIT: Duration = Duration::from_secs(1);
/// Longest duration of a stream. The core ends it after 30 minutes, and readers resume.
const MAX_DURATION: Duration = Duration::from_secs(31 * 60);

/// Streams the revisions of a grab until it ends, and between them the stages of its render. A reader that has seen the last revision gets 204, which tells
/// browsers not to reconnect.
pub(super) async fn events(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    let seen = last_event_id(headers);
    let asked = WatchGrabRequest { id: id(path), after_revision: seen, with_stages: true };
    let mut watch = watch::open(&edge, headers, asked, MAX_DURATION).await?;
    let first = match watch.next(FIRST_EVENT_WAIT).await {
        Ok(Next::Grab(grab)) => Some(grab),
        Ok(Next::Nothing) => None,
        Ok(Next::End) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            insert_headers(response.headers_mut(), &watch.metadata);
            return Ok(response);
        }
        Err(status) => return Err(ApiError::from_status(&status, headers)),
    };
    let metadata = std::mem::take(&mut watch.metadata);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(event_stream(watch, seen, first)).keep_alive(keep_alive).into_response();
    insert_headers(response.headers_mut(), &metadata);
    Ok(response)
}

/// The events, one for each revision after `seen`, and one for each stage. A stage has the id of its revision: a reader
/// resumes after the revision. When the core's stream fails, this one ends: readers resume.
fn event_stream(watch: Watch, seen: i64, first: Option<Box<Grab>>) -> impl Stream<Item = Result<Event, Infallible>> {
    let deadline = Instant::now() + MAX_DURATION;
    stream::unfold(Some((watch, seen, first)), move |state| async move {
        let (mut watch, seen, first): (Watch, _, _) = state?;
        let grab = match first {
            Some(grab) => grab,
            None => match watch.next(deadline.duration_since(Instant::now())).await {
                Ok(Next::Grab(grab)) => grab,
                Ok(Next::End | Next::Nothing) => return None,
                Err(status) => {
                    tracing::debug!("the watch stream of a grab failed: {}", status.message());
                    return None;
                }
            },
        };
        let data = String::from_utf8(headers::to_json(&wire::grab(&grab)?)).expect("JSON is UTF-8");
        let name = if grab.revision > seen { REVISION } else { STAGE };
        let event = Event::default().event(name).id(grab.revision.to_string()).data(data);
        let rest = (!watch::has_ended(&grab)).then_some((watch, grab.revision, None));
        Some((Ok(event), rest))
    })
}

fn insert_headers(headers: &mut HeaderMap, metadata: &HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(headers::PRIVATE_NO_STORE));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    rate_limit_headers::copy(metadata, headers);
}

/// The revision after which a reader resumes. An invalid value is ignored.
fn last_event_id(headers: &HeaderMap) -> i64 {
    let id = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    id.unwrap_or(0)
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "Server-Sent Events: the current state of the grab, then its state after each change, until it has ended. \
                 Each event is named `grab` and its data is a Grab. To resume, send its id as `Last-Event-ID`, as browsers \
                 do automatically. A reader that resumes after the last event gets 204.\n\nWhile the page is rendered, \
                 events named `stage` come between them, at most one for each stage. Their data is the Grab with \
                 `stages`, all that were reached so far, and their id is that of the last `grab`. The stages are not \
                 stored: some may be missing.";
    let last = parameter(
        ParameterIn::Header,
        "Last-Event-ID",
        "Id of the last event you received; only later states are sent.",
        text(),
        None,
    );
    let mut rendering = pending();
    rendering["status"] = json!("processing");
    rendering["stages"] = json!([{ "stage": "navigating", "ms": 3 }, { "stage": "loaded", "ms": 412 }]);
    let example = format!("event: stage\nid: 2\ndata: {rendering}\n\nevent: grab\nid: 4\ndata: {}\n\n", done());
    // No schema: OpenAPI 3.1 cannot describe single events of a stream.
    let stream = ContentBuilder::new().example(Some(json!(example)));
    authenticated(tags::GRABS, "watchGrab", "Follow a grab", about, &[ErrorCode::NotFound])
        .parameter(parts::id("grab"))
        .parameter(last)
        .response("200", success_response("A stream of events.", &[]).content("text/event-stream", stream.build()))
        .response("204", success_response("The grab has ended and you have seen it. No body.", &[]))
}
