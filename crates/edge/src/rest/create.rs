//! `POST /v1/grabs`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use grabd_proto::credential;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CreateGrabRequest, CreateGrabResponse, CreateMode, ErrorCode, Grab, GrabStatus};
use http::header::{LOCATION, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{ObjectBuilder, Required, Type};

use super::body;
use super::call::{self, CoreResponse, unparsed};
use super::error::ApiError;
use super::fields::Fields;
use super::large_body::LargeBodyError;
use super::openapi::examples::{done, pending};
use super::openapi::parts::{authenticated, json_content, parameter, success_response, text};
use super::openapi::tags;
use super::prefer::Prefer;
use super::query::Query;
use super::state::Edge;
use super::{headers, idempotency_key, options, rate_limit_headers, wire};

const RESPOND_ASYNC: &str = "respond-async";
/// Poll interval in seconds that is suggested for a queued grab.
const RETRY_AFTER_S: u64 = 2;

/// Captures a page. Malformed input is forwarded as `unparsed` instead of being rejected here, so that an invalid
/// credential and an exceeded limit are reported first. A disconnect cancels nothing, because the core owns the work.
pub(super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut message = match read_body(&edge, &parts.headers, body).await {
        Ok(bytes) => parse_body(&bytes),
        Err(LargeBodyError::Body(error)) => unparsed_body(&error.seen),
        Err(LargeBodyError::Refused(error)) => return error.into_response(),
    };
    let prefer = Prefer::from_headers(&parts.headers);
    let async_param = Query::from_uri(&parts.uri).parse("async", &mut message.unparsed, boolean);
    let mode = match prefer.respond_async || async_param == Some(true) {
        true => CreateMode::Async,
        false => CreateMode::Sync,
    };
    message.set_mode(mode);
    message.idempotency_key = idempotency_key::from_headers(&parts.headers, &mut message.unparsed);
    let unknown = message.unknown.clone();

    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::CREATE_DEADLINE);
    let outcome = call::send(&parts.headers, call::CREATE_DEADLINE, core.create_grab(sent)).await;
    // Grabs of test keys are never queued.
    let queued = mode == CreateMode::Async && outcome.as_ref().ok().and_then(is_live).unwrap_or(true);
    let outcome = outcome.and_then(|reply| respond(reply, &prefer, &parts.headers, &unknown));
    let mut response = outcome.map_err(|error| error.with_ignored(&unknown)).into_response();
    if queued {
        rate_limit_headers::add_async_queue(response.headers_mut(), edge.async_queue_limit);
    }
    response
}

/// Reads the body of a create, which only an HTML document makes large.
pub(super) async fn read_body(edge: &Edge, headers: &HeaderMap, body: Body) -> Result<Bytes, LargeBodyError> {
    match credential::bearer(headers) {
        Some(_) => edge.large_bodies.read(headers, body).await,
        None => Ok(body::read(headers, body, body::MAX_BODY_BYTES).await?),
    }
}

/// The response: 200 for a done grab, 202 for an open one, or the error of a failed one.
fn respond(
    reply: CoreResponse<CreateGrabResponse>,
    prefer: &Prefer,
    request: &HeaderMap,
    unknown: &[String],
) -> Result<Response, ApiError> {
    let CoreResponse { message: CreateGrabResponse { grab, replayed }, metadata } = reply;
    let incomplete = || ApiError::internal("the core returned an incomplete grab", call::request_id(request));
    let grab = grab.ok_or_else(incomplete)?;
    let location = HeaderValue::from_str(&format!("/v1/grabs/{}", grab.id)).map_err(|_| incomplete())?;
    let mut response = match grab.status() {
        GrabStatus::Unspecified => return Err(incomplete()),
        GrabStatus::Done => grab_response(StatusCode::OK, &grab, &metadata, location).ok_or_else(incomplete)?,
        GrabStatus::Failed => {
            let mut failure = ApiError::from_grab(grab, location);
            rate_limit_headers::copy(&metadata, &mut failure.headers);
            failure.with_ignored(unknown).into_response()
        }
        GrabStatus::Pending | GrabStatus::Processing => {
            let mut response =
                grab_response(StatusCode::ACCEPTED, &grab, &metadata, location).ok_or_else(incomplete)?;
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, RETRY_AFTER_S.into());
            headers.insert(VARY, HeaderValue::from_static("Prefer"));
            if prefer.respond_async {
                headers.insert(headers::PREFERENCE_APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
            }
            response
        }
    };
    if replayed {
        response.headers_mut().insert(headers::IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn grab_response(status: StatusCode, grab: &Grab, metadata: &HeaderMap, location: HeaderValue) -> Option<Response> {
    let mut response = headers::json_response(status, headers::PRIVATE_NO_STORE, &wire::grab(grab)?, metadata);
    response.headers_mut().insert(LOCATION, location);
    Some(response)
}

fn is_live(reply: &CoreResponse<CreateGrabResponse>) -> Option<bool> {
    reply.message.grab.as_ref().map(|grab| grab.live)
}

/// The request for a body that is not a JSON object.
fn unparsed_body(seen: &str) -> CreateGrabRequest {
    CreateGrabRequest { unparsed: vec![unparsed("body", seen)], ..CreateGrabRequest::default() }
}

/// Parses a body. Unknown members are ignored, and named.
pub(super) fn parse_body(body: &[u8]) -> CreateGrabRequest {
    let mut fields = match Fields::parse(body) {
        Ok(fields) => fields,
        Err(seen) => return unparsed_body(&seen),
    };
    let options = options::read(&mut fields);
    let unknown = fields.no_options();
    CreateGrabRequest { options: Some(options), unparsed: fields.unparsed, unknown, ..CreateGrabRequest::default() }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "Renders the page and returns the finished grab, within 25 seconds. With a live key and `Prefer: \
                 respond-async`, or `?async=true`, the response is 202 at once and the page is rendered later. A test key \
                 always gets its placeholder at once.\n\nOne credit is spent when the grab ends as `done`. Closing the \
                 connection cancels nothing: retry with the same `Idempotency-Key` to get the result.";
    let key = text().min_length(Some(1)).max_length(Some(255)).pattern(Some(r"^[\x21-\x7e]+$"));
    let idempotency_key = parameter(
        ParameterIn::Header,
        "Idempotency-Key",
        "A key that you choose, 1 to 255 visible ASCII characters. Retries with the same key return the original response.",
        key,
        Some(json!("8e03978e-40d5-43dd-bc93-6894a57f9324")),
    );
    let prefer = parameter(
        ParameterIn::Header,
        "Prefer",
        "`respond-async` queues the grab and answers 202 (live keys only).",
        text(),
        Some(json!("respond-async")),
    );
    let asynchronous = parameter(
        ParameterIn::Query,
        "async",
        "The same as `Prefer: respond-async`. If either asks for it, the grab is queued.",
        ObjectBuilder::new().schema_type(Type::Boolean),
        None,
    );
    let example = json!({ "url": "https://example.com", "width": 1280, "height": 720, "format": "png" });
    let body = RequestBodyBuilder::new()
        .required(Some(Required::True))
        .content("application/json", json_content("CreateGrabRequest", example).build());
    let codes = [
        ErrorCode::BadRequest,
        ErrorCode::InvalidViewport,
        ErrorCode::SsrfDetected,
        ErrorCode::IdempotencyMismatch,
        ErrorCode::CreditsExhausted,
        ErrorCode::IdempotencyConflict,
        ErrorCode::RenderBlocked,
        ErrorCode::QueueLimitExceeded,
        ErrorCode::RenderFailed,
    ];
    let captured = success_response("Captured; the image is ready.", &["Location", "Idempotent-Replayed"])
        .content("application/json", json_content("Grab", done()).build());
    let queued = success_response(
        "Queued. Poll the grab at `Location`, or follow its events.",
        &["Location", "Retry-After", "Preference-Applied", "Idempotent-Replayed"],
    )
    .content("application/json", json_content("Grab", pending()).build());
    authenticated(tags::GRABS, "createGrab", "Capture a page", about, &codes)
        .parameter(idempotency_key)
        .parameter(prefer)
        .parameter(asynchronous)
        .request_body(Some(body.build()))
        .response("200", captured)
        .response("202", queued)
}
