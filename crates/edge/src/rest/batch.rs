//! `POST /v1/grabs/batch`: queues several captures. Each is a create of its own in the core, in the order of the
//! request, so that limits, credits and idempotency apply as they do to single creates.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CreateGrabRequest, CreateGrabResponse, CreateMode, ErrorCode};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{self, CoreResponse, unparsed};
use super::create::read_body;
use super::error::{self, ApiError};
use super::fields::Fields;
use super::json::{self, Members};
use super::{Edge, headers, idempotency_key, limits, options, wire};

/// Path of the operation.
pub(super) const PATH: &str = "/v1/grabs/batch";
/// Maximum number of captures in one request.
pub(super) const MAX_GRABS: usize = 50;
/// Maximum length of the idempotency key, to which the position of the capture is appended.
pub(super) const MAX_KEY_CHARS: usize = 250;

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
    let bytes = read.map_err(|error| format!("The body must be a JSON object; got {}.", error.seen));
    let requests = bytes.and_then(|bytes| parse(&parts.headers, &bytes));
    let mut response = match requests {
        Ok(requests) => {
            let (total, mut results) = (requests.len(), Vec::with_capacity(requests.len()));
            for request in requests {
                results.push(send(&mut core, &parts, request).await);
                if results.last().is_some_and(|result| result.as_ref().is_err_and(is_for_all)) {
                    break;
                }
            }
            respond(&edge, &parts.headers, results, total)
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

/// Parses a batch into its creates.
///
/// # Errors
/// A message for the caller, without values of the body: they may be secret.
fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Vec<CreateGrabRequest>, String> {
    let members = json::object(body).map_err(|seen| match seen.as_bytes().first() {
        Some(b'a'..=b'z' | b'A'..=b'Z') => format!("The body must be a JSON object; got {seen}."),
        _ => "The body must be a JSON object.".to_owned(),
    })?;
    let key = batch_key(headers)?;
    let grabs = list(members.get("grabs").copied())?;
    let shared = match members.get("options") {
        Some(shared) => json::object(shared.get().as_bytes()).map_err(|_| "`options` must be an object.".to_owned())?,
        None => Members::default(),
    };
    let mut requests = Vec::with_capacity(grabs.len());
    for (index, grab) in grabs.into_iter().enumerate() {
        let own = json::object(grab.get().as_bytes()).map_err(|_| format!("`grabs[{index}]` must be an object."))?;
        let all: Members<'_> = shared.clone().into_iter().chain(own).collect();
        let mut fields = Fields::from(all);
        let options = options::read(&mut fields);
        requests.push(CreateGrabRequest {
            options: Some(options),
            idempotency_key: key.as_ref().map(|key| format!("{key}#{index}")),
            unparsed: fields.unparsed,
            ..CreateGrabRequest::default()
        });
    }
    Ok(requests)
}

fn list(member: Option<&RawValue>) -> Result<Vec<&RawValue>, String> {
    let message = |got: String| format!("`grabs` must be a list of 1 to {MAX_GRABS} objects; got {got}.");
    let Some(member) = member else { return Err(message("nothing".to_owned())) };
    let grabs: Vec<&RawValue> = serde_json::from_str(member.get()).map_err(|_| message("another type".to_owned()))?;
    match grabs.len() {
        1..=MAX_GRABS => Ok(grabs),
        count => Err(message(count.to_string())),
    }
}

fn batch_key(headers: &HeaderMap) -> Result<Option<String>, String> {
    let mut rejected = Vec::new();
    let key = idempotency_key::from_headers(headers, &mut rejected);
    let is_valid = |key: &String| (1..=MAX_KEY_CHARS).contains(&key.len());
    match rejected.is_empty() && key.as_ref().is_none_or(is_valid) {
        true => Ok(key),
        false => Err(format!("`Idempotency-Key` of a batch must be 1 to {MAX_KEY_CHARS} visible ASCII characters.")),
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
