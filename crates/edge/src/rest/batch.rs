//! `POST /v1/grabs/batch`: queues several captures. Each is a create of its own in the core, in the order of the
//! request, so that limits, credits and idempotency apply as they do to single creates.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CreateGrabRequest, CreateGrabResponse, CreateMode, ErrorCode};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use super::call::{self, CoreResponse, unparsed};
use super::captures::Captures;
use super::create::read_body;
use super::error::{self, ApiError};
use super::state::Edge;
use super::{headers, limits, wire};

/// Path of the operation.
pub(super) const PATH: &str = "/v1/grabs/batch";
/// The time after which no further capture is created.
const TIME_LIMIT: Duration = Duration::from_secs(20);
const TOO_SLOW: &str =
    "The captures before this one took too long. Send the batch again with the same Idempotency-Key.";

/// The response. `openapi::grabs` has its schema.
#[derive(Serialize)]
struct Batch<'a> {
    /// One result for each capture, in the order of the request.
    results: Vec<BatchResult<'a>>,
}

/// The result of one capture of a batch. Either member is null.
#[derive(Serialize)]
struct BatchResult<'a> {
    /// The grab, if it was created by this request or an earlier one with the same key.
    grab: Option<wire::Grab<'a>>,
    /// Why no grab was created.
    error: Option<error::Body<'a>>,
}

/// Queues the captures. The first refusal that would meet all further captures too ends the batch: the rest get the same
/// error. If it meets the first capture, it is the response.
pub(super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let read = read_body(&edge, &parts.headers, body).await;
    let is_unread = read.as_ref().is_err_and(|error| error.unread);
    let parsed = match &read {
        Ok(bytes) => Captures::parse(&parts.headers, bytes),
        Err(error) => Err(format!("The body must be a JSON object; got {}.", error.seen)),
    };
    let mut response = match parsed {
        Ok(captures) => {
            let results = create_all(&mut core, &parts, &captures).await;
            respond(&edge, &parts.headers, results, captures.own.len())
        }
        Err(message) => refuse(&mut core, &parts, message).await.into_response(),
    };
    if is_unread {
        headers::close_http1(&parts, &mut response);
    }
    response
}

type Core = GrabServiceClient<crate::transport::Transport>;
type Created = Result<CoreResponse<CreateGrabResponse>, ApiError>;

/// Creates one grab after the other.
async fn create_all(core: &mut Core, parts: &Parts, captures: &Captures<'_>) -> Vec<Created> {
    let began = Instant::now();
    let mut results = Vec::with_capacity(captures.own.len());
    for index in 0..captures.own.len() {
        let result = match began.elapsed() < TIME_LIMIT {
            true => send(core, parts, captures.request(index)).await,
            false => Err(ApiError::new(ErrorCode::InternalError, TOO_SLOW)),
        };
        let is_last = result.as_ref().is_err_and(is_for_all);
        results.push(result);
        if is_last {
            break;
        }
    }
    results
}

async fn send(core: &mut Core, parts: &Parts, mut request: CreateGrabRequest) -> Created {
    request.set_mode(CreateMode::Async);
    let sent = call::request(&parts.headers, request, call::QUERY_DEADLINE);
    call::send(&parts.headers, call::QUERY_DEADLINE, core.create_grab(sent)).await
}

/// The error of a request that is not a batch. The core reports an invalid credential and exceeded limits first.
async fn refuse(core: &mut Core, parts: &Parts, message: String) -> ApiError {
    let request = CreateGrabRequest { unparsed: vec![unparsed("body", "")], ..CreateGrabRequest::default() };
    match send(core, parts, request).await {
        Err(error) if error.code == ErrorCode::BadRequest => ApiError { message: message.into(), ..error },
        Err(error) => error,
        Ok(_) => ApiError::internal("the core accepted an invalid create", call::request_id(&parts.headers)),
    }
}

/// Whether the refusal of one capture would meet all others, too.
fn is_for_all(error: &ApiError) -> bool {
    match error.code {
        ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::RateLimitExceeded
        | ErrorCode::QueueLimitExceeded
        | ErrorCode::CreditsExhausted
        | ErrorCode::InternalError
        | ErrorCode::Unspecified => true,
        ErrorCode::BadRequest
        | ErrorCode::InvalidViewport
        | ErrorCode::SsrfDetected
        | ErrorCode::IdempotencyMismatch
        | ErrorCode::IdempotencyConflict
        | ErrorCode::NotFound
        | ErrorCode::RenderBlocked
        | ErrorCode::RenderFailed => false,
    }
}

fn respond(edge: &Edge, request: &HeaderMap, mut results: Vec<Created>, total: usize) -> Response {
    if results.first().is_some_and(|first| first.as_ref().is_err_and(is_for_all))
        && let Err(first) = results.swap_remove(0)
    {
        let mut response = first.into_response();
        limits::add_async_queue(response.headers_mut(), edge.async_queue_limit);
        return response;
    }
    let Some(batch) = wire(&results, total) else {
        let error = ApiError::internal("the core returned an incomplete grab", call::request_id(request));
        return error.into_response();
    };
    let metadata = results.iter().rev().find_map(|result| Some(&result.as_ref().ok()?.metadata));
    let none = HeaderMap::new();
    let mut response =
        headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &batch, metadata.unwrap_or(&none));
    if let Some(Err(last)) = results.last() {
        // The current state of the limits, and when to send the rest again.
        response.headers_mut().extend((*last.headers).clone());
    }
    limits::add_async_queue(response.headers_mut(), edge.async_queue_limit);
    response
}

/// The results of all captures: those that were not sent get the error of the last one that was. `None` if a grab is
/// incomplete.
fn wire(results: &[Created], total: usize) -> Option<Batch<'_>> {
    fn of(result: &Created) -> Option<BatchResult<'_>> {
        Some(match result {
            Ok(created) => BatchResult { grab: Some(wire::grab(created.message.grab.as_ref()?)?), error: None },
            Err(error) => BatchResult { grab: None, error: Some(error.body()) },
        })
    }
    let rest = results.last().into_iter().cycle().take(total - results.len());
    Some(Batch { results: results.iter().chain(rest).map(of).collect::<Option<_>>()? })
}
