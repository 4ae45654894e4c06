//! `GET /v1/grabs/{id}`, at once or, with `Prefer: wait=N`, when there is something to tell.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{GetGrabRequest, Grab};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;
use tonic::Code;

use super::error::Failure;
use super::prefer::Prefer;
use super::watch::{self, Next};
use super::{Edge, call, etag, headers, wire};

const CACHING: &str = "private, no-cache";
/// Longest wait for a change, in seconds; less than what proxies in between commonly allow.
const WAIT_MAX_S: u64 = 25;

/// One grab.
pub(super) async fn fetch(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Failure> {
    let id = super::id(path);
    let headers = request.headers();
    match Prefer::of(headers).wait_s {
        None | Some(0) => at_once(&edge, headers, id).await,
        Some(seconds) => when_changed(&edge, headers, id, seconds.min(WAIT_MAX_S)).await,
    }
}

async fn at_once(edge: &Edge, headers: &HeaderMap, id: String) -> Result<Response, Failure> {
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetGrabRequest { id }, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.get_grab(sent)).await?;
    let grab = answer.message.grab.ok_or_else(|| incomplete(headers))?;
    shown(&grab, &answer.metadata, headers)
}

/// Waits for a revision later than the one the caller has, as its `If-None-Match` says, or else for the end of the grab.
/// When the time is over, the answer is the state as it is then.
async fn when_changed(edge: &Edge, headers: &HeaderMap, id: String, seconds: u64) -> Result<Response, Failure> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let seen = etag::known_revision(headers);
    let lasting = Duration::from_secs(seconds) + call::PROMPT;
    let mut watch = watch::open(edge, headers, id, seen.unwrap_or(0), lasting).await?;
    let mut latest: Option<Box<Grab>> = None;
    loop {
        match watch.next(deadline.duration_since(Instant::now())).await {
            Ok(Next::Grab(grab)) => {
                let enough = seen.is_some() || watch::has_ended(&grab);
                latest = Some(grab);
                if enough {
                    break;
                }
            }
            Ok(Next::End | Next::Nothing) => break,
            // A core that drains cuts its streams; what was told so far, or that nothing was, is an answer.
            Err(status) if status.code() == Code::Unavailable && (latest.is_some() || seen.is_some()) => break,
            Err(status) => return Err(Failure::of_status(&status, headers)),
        }
    }
    let mut response = match (latest, seen) {
        (Some(grab), _) => shown(&grab, &watch.metadata, headers)?,
        (None, Some(revision)) => {
            let unchanged = headers::answer(StatusCode::OK, CACHING, Body::empty(), &watch.metadata);
            etag::tagged(unchanged, etag::of_revision(revision), headers)
        }
        (None, None) => {
            return Err(Failure::internal("a watched grab was not told in time", call::request_id(headers)));
        }
    };
    let applied = HeaderValue::from_str(&format!("wait={seconds}")).expect("digits are visible ASCII");
    response.headers_mut().insert(headers::PREFERENCE_APPLIED, applied);
    Ok(response)
}

fn shown(grab: &Grab, metadata: &HeaderMap, request: &HeaderMap) -> Result<Response, Failure> {
    let shown = wire::grab(grab).ok_or_else(|| incomplete(request))?;
    let response = headers::json(StatusCode::OK, CACHING, &shown, metadata);
    Ok(etag::tagged(response, etag::of_revision(grab.revision), request))
}

fn incomplete(request: &HeaderMap) -> Failure {
    Failure::internal("the core told an incomplete grab", call::request_id(request))
}
