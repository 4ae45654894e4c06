//! `POST /v1/grabs/batch`: queues several captures, which the core creates one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_api::ErrorMembers;
use grabd_api::words;
use grabd_proto::v1::batch_result::Result as CoreResult;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{
    BatchCreateGrabsRequest, BatchCreateGrabsResponse, BatchResult, CreateGrabRequest, ErrorCode, Grab,
};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Required, Schema, Type};

use super::call::{self, CoreResponse, unparsed};
use super::captures;
use super::captures::Captures;
use super::create::read_body;
use super::error::ApiError;
use super::large_body::LargeBodyError;
use super::openapi::errors;
use super::openapi::examples::pending;
use super::openapi::parts::{authenticated, json_content, parameter, success_response, text};
use super::openapi::tags;
use super::state::Edge;
use super::{headers, rate_limit_headers, wire};

/// Path of the operation.
pub(super) const PATH: &str = "/v1/grabs/batch";
/// The time after which no further call is made. One call has a limit of its own in the core.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Captures are sent in one call up to this size: the core accepts requests of 2 MiB, and one capture may have a
/// document of 1 MiB.
const MAX_CALL_BYTES: usize = 1 << 20;

/// The response. [`schema`] describes it.
#[derive(Serialize)]
struct Batch<'a> {
    /// One result for each capture, in the order of the request.
    results: Vec<ShownResult<'a>>,
}

/// The result of one capture of a batch. Either `grab` or `error` is null.
#[derive(Serialize)]
struct ShownResult<'a> {
    /// The grab, if it was created by this request or an earlier one with the same key.
    grab: Option<grabd_api::Grab<'a>>,
    /// Why no grab was created.
    error: Option<ErrorMembers<'a>>,
    /// Whose fault the error is: a result has no header of its own. Absent without an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_cause: Option<&'static str>,
    /// Seconds after which the capture may be sent again. Absent without an error, and where that would not help.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

/// Queues the captures. If the core refuses the first one for a reason that meets all, that is the response.
pub(super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let read = match read_body(&edge, &parts.headers, body).await {
        Ok(bytes) => Ok(bytes),
        Err(LargeBodyError::Body(error)) => Err(error.seen),
        Err(LargeBodyError::Refused(error)) => return error.into_response(),
    };
    let parsed = match &read {
        Ok(bytes) => Captures::parse(&parts.headers, bytes),
        Err(seen) => Err(format!("The body must be a JSON object; got {seen}.")),
    };
    match parsed {
        Ok(captures) => {
            let created = create_all(&mut core, &parts, &captures).await;
            let response = created.and_then(|created| respond(&parts.headers, &created, captures.own.len()));
            let mut response = response.unwrap_or_else(IntoResponse::into_response);
            rate_limit_headers::add_async_queue(response.headers_mut(), edge.async_queue_limit);
            response
        }
        Err(message) => refuse(&mut core, &parts, message).await.into_response(),
    }
}

type Core = GrabServiceClient<crate::transport::Transport>;

/// What the core has created.
#[derive(Default)]
struct Created {
    /// The results, without those of captures that were not sent.
    results: Vec<Result<Grab, ApiError>>,
    /// Metadata of the last response.
    metadata: HeaderMap,
}

/// Sends the captures, in as few calls as their size allows. Their messages are made for one call at a time: shared
/// options may be large.
///
/// # Errors
/// Why the core refused all of them.
async fn create_all(core: &mut Core, parts: &Parts, captures: &Captures<'_>) -> Result<Created, ApiError> {
    let began = Instant::now();
    let (mut created, total) = (Created::default(), captures.own.len());
    let mut requests = (0..total).map(|index| captures.request(index)).peekable();
    while created.results.len() < total {
        let sent = match began.elapsed() < TIME_LIMIT {
            true => send(core, parts, next_requests(&mut requests)).await,
            false => Err(ApiError::internal("a batch took too long", call::request_id(&parts.headers))),
        };
        let is_stopped = match sent {
            Ok(CoreResponse { message: BatchCreateGrabsResponse { results, stopped }, metadata }) => {
                let results = results.into_iter().map(|result| to_result(result, &metadata, &parts.headers));
                created.results.extend(results);
                created.metadata = metadata;
                stopped
            }
            Err(error) if created.results.is_empty() => return Err(error),
            Err(error) => {
                created.results.push(Err(error));
                true
            }
        };
        if is_stopped || created.results.is_empty() {
            break;
        }
    }
    let named = |(index, result): (usize, Result<Grab, ApiError>)| {
        result.map_err(|error| error.with_ignored(&captures.unknown(index)))
    };
    created.results = created.results.into_iter().enumerate().map(named).collect();
    Ok(created)
}

/// The requests of the next call: at least one.
fn next_requests(
    requests: &mut std::iter::Peekable<impl Iterator<Item = CreateGrabRequest>>,
) -> Vec<CreateGrabRequest> {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    while let Some(next) = requests.peek() {
        bytes += grabd_proto::encoded_len(next);
        if bytes > MAX_CALL_BYTES && !taken.is_empty() {
            break;
        }
        taken.extend(requests.next());
    }
    taken
}

async fn send(
    core: &mut Core,
    parts: &Parts,
    requests: Vec<CreateGrabRequest>,
) -> Result<CoreResponse<BatchCreateGrabsResponse>, ApiError> {
    let sent = call::request(&parts.headers, BatchCreateGrabsRequest { requests }, call::CREATE_DEADLINE);
    call::send(&parts.headers, call::CREATE_DEADLINE, core.batch_create_grabs(sent)).await
}

fn to_result(
    BatchResult { result, .. }: BatchResult,
    metadata: &HeaderMap,
    request: &HeaderMap,
) -> Result<Grab, ApiError> {
    match result {
        Some(CoreResult::Grab(grab)) => Ok(*grab),
        Some(CoreResult::Error(error)) => Err(ApiError::from_batch(error, metadata)),
        None => Err(ApiError::internal("the core returned an empty result", call::request_id(request))),
    }
}

/// The error of a request that is not a batch. The core reports an invalid credential and exceeded limits first.
async fn refuse(core: &mut Core, parts: &Parts, message: String) -> ApiError {
    let request = CreateGrabRequest { unparsed: vec![unparsed("body", "")], ..CreateGrabRequest::default() };
    match send(core, parts, vec![request]).await {
        Err(error) => error,
        Ok(CoreResponse { message: BatchCreateGrabsResponse { results, .. }, metadata }) => {
            match results.into_iter().next().map(|result| to_result(result, &metadata, &parts.headers)) {
                Some(Err(mut error)) => {
                    rate_limit_headers::copy(&metadata, &mut error.headers);
                    if error.code == ErrorCode::BadRequest {
                        error.message = message.into();
                    }
                    error
                }
                Some(Ok(_)) | None => {
                    ApiError::internal("the core accepted an invalid create", call::request_id(&parts.headers))
                }
            }
        }
    }
}

/// The results of all captures: those that were not sent get the error of the last one that was.
fn respond(request: &HeaderMap, created: &Created, total: usize) -> Result<Response, ApiError> {
    let incomplete = || ApiError::internal("the core returned an incomplete grab", call::request_id(request));
    let Created { results, metadata } = created;
    let last = results.last().ok_or_else(incomplete)?;
    let rest = std::iter::repeat_n(last, total.saturating_sub(results.len()));
    let all: Option<Vec<_>> = results.iter().chain(rest).map(show).collect();
    let batch = Batch { results: all.ok_or_else(incomplete)? };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &batch, metadata);
    if let Err(error) = last {
        // The current state of the limits, and when to send the rest again.
        response.headers_mut().extend((*error.headers).clone());
    }
    Ok(response)
}

/// One result. `None` if its grab is incomplete.
fn show(result: &Result<Grab, ApiError>) -> Option<ShownResult<'_>> {
    Some(match result {
        Ok(grab) => ShownResult { grab: Some(wire::grab(grab)?), error: None, error_cause: None, retry_after: None },
        Err(error) => {
            let retry_after = error.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let (body, cause) = (error.body(), error.cause_name());
            ShownResult { grab: None, error: Some(body), error_cause: Some(cause), retry_after }
        }
    })
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = format!(
        "Queues up to {} captures, as `Prefer: respond-async` does for one. Each counts as one request. The response has \
         one result for each capture, in the same order: its grab, or why it was refused. When the limits or credits are \
         used up, the remaining captures get that error; if it meets the first one, it is the response.\n\nRetry with \
         the same `Idempotency-Key`: what was created before is returned again, and what was refused is tried again.",
        captures::MAX_GRABS
    );
    let key = text().min_length(Some(1)).max_length(Some(captures::MAX_KEY_CHARS)).pattern(Some(r"^[\x21-\x7e]+$"));
    let idempotency_key = parameter(
        ParameterIn::Header,
        "Idempotency-Key",
        "A key that you choose. Capture number N of the batch, from 0, has the key followed by `#N`.",
        key,
        Some(json!("8e03978e-40d5-43dd-bc93-6894a57f9324")),
    );
    let example = json!({
        "grabs": [{ "url": "https://example.com" }, { "url": "https://example.org", "full_page": true }],
        "options": { "format": "webp" },
    });
    let body = RequestBodyBuilder::new()
        .required(Some(Required::True))
        .content("application/json", json_content("CreateBatchRequest", example).build());
    let codes = [ErrorCode::BadRequest, ErrorCode::CreditsExhausted, ErrorCode::QueueLimitExceeded];
    let refused = json!({ "code": "bad_request", "message": "`url` must be …" });
    let refused = json!({ "grab": null, "error": refused, "error_cause": "request" });
    let results = json!({ "results": [{ "grab": pending(), "error": null }, refused] });
    let response = success_response("One result for each capture.", &["Retry-After"])
        .content("application/json", json_content("Batch", results).build());
    authenticated(tags::GRABS, "createBatch", "Capture several pages", &about, &codes)
        .parameter(idempotency_key)
        .request_body(Some(body.build()))
        .response("200", response)
}

/// The schema of the response.
pub(super) fn schema() -> Object {
    let null = || ObjectBuilder::new().schema_type(Type::Null);
    let or_null = |schema: RefOr<Schema>, about: &str| -> Schema {
        OneOfBuilder::new().item(schema).item(null()).description(Some(about)).build().into()
    };
    let grab = or_null(Ref::from_schema_name("Grab").into(), "The grab. Null if none was created.");
    let error = or_null(errors::error().into(), "Why no grab was created. Null if one was.");
    let mut cause = words::cause_schema();
    cause.description = Some("Whose fault the error is. Only present if no grab was created.".to_owned());
    let retry_after = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(
        "Seconds after which the capture may be sent again, with the same `Idempotency-Key`. Only present if the error is a \
         limit or passes by itself.",
    ));
    let result = ObjectBuilder::new()
        .property("grab", grab)
        .property("error", error)
        .property("error_cause", cause)
        .property("retry_after", retry_after)
        .required("grab")
        .required("error");
    ObjectBuilder::new()
        .description(Some("One result for each capture, in the order of the request."))
        .property("results", ArrayBuilder::new().items(result))
        .required("results")
        .build()
}
