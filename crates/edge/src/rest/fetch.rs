//! `GET /v1/grabs/{id}`, with long polling for `Prefer: wait=N`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_http::with_etag;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{ErrorCode, GetGrabRequest, Grab, WatchGrabRequest};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;
use tonic::Code;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};

use super::error::ApiError;
use super::openapi::examples::done;
use super::openapi::parts::{
    self, authenticated, if_none_match, json_content, not_modified, parameter, success_response, text,
};
use super::openapi::tags;
use super::path_id::id;
use super::prefer::Prefer;
use super::state::Edge;
use super::watch::{self, Next};
use super::{call, etag, headers, wire};

const CACHE_POLICY: &str = "private, no-cache";
/// Longest wait for a change in seconds, below the common timeouts of proxies.
pub(super) const WAIT_MAX_S: u64 = 25;

/// Returns one grab.
pub(super) async fn fetch(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let id = id(path);
    let headers = request.headers();
    match Prefer::from_headers(headers).wait_s {
        None | Some(0) => fetch_now(&edge, headers, id).await,
        Some(seconds) => wait_for_change(&edge, headers, id, seconds.min(WAIT_MAX_S)).await,
    }
}

async fn fetch_now(edge: &Edge, headers: &HeaderMap, id: String) -> Result<Response, ApiError> {
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetGrabRequest { id }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.get_grab(sent)).await?;
    let grab = reply.message.grab.ok_or_else(|| incomplete_grab(headers))?;
    grab_response(&grab, &reply.metadata, headers)
}

/// Waits for a revision later than the one in `If-None-Match`, or without one for the end of the grab. After the
/// timeout the current state is returned.
async fn wait_for_change(edge: &Edge, headers: &HeaderMap, id: String, seconds: u64) -> Result<Response, ApiError> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let seen = etag::known_revision(headers);
    let max_duration = Duration::from_secs(seconds) + call::QUERY_DEADLINE;
    let after_revision = seen.unwrap_or(0);
    let asked = WatchGrabRequest { id, after_revision, with_stages: false };
    let mut watch = watch::open(edge, headers, asked, max_duration).await?;
    let mut latest: Option<Box<Grab>> = None;
    loop {
        match watch.next(deadline.duration_since(Instant::now())).await {
            Ok(Next::Grab(grab)) => {
                let stop = seen.is_some() || watch::has_ended(&grab);
                latest = Some(grab);
                if stop {
                    break;
                }
            }
            Ok(Next::End | Next::Nothing) => break,
            // A draining core ends its streams. The latest revision, or a 304, is still a valid response.
            Err(status) if status.code() == Code::Unavailable && (latest.is_some() || seen.is_some()) => break,
            Err(status) => return Err(ApiError::from_status(&status, headers)),
        }
    }
    let mut response = match (latest, seen) {
        (Some(grab), _) => grab_response(&grab, &watch.metadata, headers)?,
        (None, Some(revision)) => {
            let unchanged = headers::response(StatusCode::OK, CACHE_POLICY, Body::empty(), &watch.metadata);
            with_etag(unchanged, etag::of_revision(revision), headers)
        }
        (None, None) => {
            return Err(ApiError::internal("the watch stream sent no grab in time", call::request_id(headers)));
        }
    };
    let applied = HeaderValue::from_str(&format!("wait={seconds}")).expect("digits are visible ASCII");
    response.headers_mut().insert(headers::PREFERENCE_APPLIED, applied);
    Ok(response)
}

fn grab_response(grab: &Grab, metadata: &HeaderMap, request: &HeaderMap) -> Result<Response, ApiError> {
    let body = wire::grab(grab).ok_or_else(|| incomplete_grab(request))?;
    let response = headers::json_response(StatusCode::OK, CACHE_POLICY, &body, metadata);
    Ok(with_etag(response, etag::of_revision(grab.revision), request))
}

fn incomplete_grab(request: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete grab", call::request_id(request))
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "The current state of the grab. With `Prefer: wait=N` the response waits up to N seconds, at most 25: until \
                 the grab has ended or, together with `If-None-Match`, until it has changed.";
    let prefer = parameter(
        ParameterIn::Header,
        "Prefer",
        "`wait=N` delays the response until the grab changes, at most N seconds.",
        text(),
        None,
    );
    authenticated(tags::GRABS, "getGrab", "Fetch a grab", about, &[ErrorCode::NotFound])
        .parameter(parts::id("grab"))
        .parameter(prefer)
        .parameter(if_none_match())
        .response(
            "200",
            success_response("The grab.", &["ETag", "Preference-Applied"])
                .content("application/json", json_content("Grab", done()).build()),
        )
        .response("304", not_modified(&["Preference-Applied"]))
}
