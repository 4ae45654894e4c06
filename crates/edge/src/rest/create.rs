//! `POST /v1/grabs`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CreateGrabRequest, CreateGrabResponse, CreateMode, Grab, GrabStatus};
use http::header::{CONNECTION, LOCATION, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use serde_json::value::RawValue;

use super::body::{self, Refused};
use super::call::{self, Answer, unparsed};
use super::error::Failure;
use super::fields::Fields;
use super::prefer::Prefer;
use super::query::Query;
use super::{Edge, headers, idempotency_key, json, limits, wire};

const RESPOND_ASYNC: &str = "respond-async";
/// When to look again after a grab that was queued, in seconds.
const LOOK_AGAIN_S: u64 = 2;

/// Captures a page. Nothing malformed is refused here: it goes on as "unparsed", so that a bad credential and an empty
/// limit are told before a bad body. A caller that goes away cancels nothing, because the core owns the work.
pub(super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (mut message, unread) = match body::read(&parts.headers, body, body::LIMIT_BYTES).await {
        Ok(bytes) => (message_of(&bytes), false),
        Err(Refused { seen, unread, why: _ }) => (unusable(&seen), unread),
    };
    let prefer = Prefer::of(&parts.headers);
    let asked = Query::of(&parts.uri).parsed("async", &mut message.unparsed, boolean);
    let mode = match prefer.respond_async || asked == Some(true) {
        true => CreateMode::Async,
        false => CreateMode::Sync,
    };
    message.set_mode(mode);
    message.idempotency_key = idempotency_key::of(&parts.headers, &mut message.unparsed);

    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::CREATE);
    let outcome = call::answer(&parts.headers, call::CREATE, core.create_grab(sent)).await;
    // Grabs of test keys never queue, whatever was asked.
    let queued = mode == CreateMode::Async && outcome.as_ref().ok().and_then(live).unwrap_or(true);
    let mut response = outcome.and_then(|answer| respond(answer, &prefer, &parts.headers)).into_response();
    if queued {
        limits::add_async_queue(response.headers_mut(), edge.async_queue_limit);
    }
    if unread && parts.version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The grab as it stands: ended well, failed, or not ended yet.
fn respond(answer: Answer<CreateGrabResponse>, prefer: &Prefer, request: &HeaderMap) -> Result<Response, Failure> {
    let Answer { message: CreateGrabResponse { grab, replayed }, metadata } = answer;
    let incomplete = || Failure::internal("the core created an incomplete grab", call::request_id(request));
    let grab = grab.ok_or_else(incomplete)?;
    let location = HeaderValue::from_str(&format!("/v1/grabs/{}", grab.id)).map_err(|_| incomplete())?;
    let mut response = match grab.status() {
        GrabStatus::Unspecified => return Err(incomplete()),
        GrabStatus::Done => shown(StatusCode::OK, &grab, &metadata, location).ok_or_else(incomplete)?,
        GrabStatus::Failed => {
            let mut failure = Failure::of_grab(grab, location);
            limits::copy(&metadata, &mut failure.headers);
            failure.into_response()
        }
        GrabStatus::Pending | GrabStatus::Processing => {
            let mut response = shown(StatusCode::ACCEPTED, &grab, &metadata, location).ok_or_else(incomplete)?;
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, LOOK_AGAIN_S.into());
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

fn shown(status: StatusCode, grab: &Grab, metadata: &HeaderMap, location: HeaderValue) -> Option<Response> {
    let mut response = headers::json(status, headers::PRIVATE, &wire::grab(grab)?, metadata);
    response.headers_mut().insert(LOCATION, location);
    Some(response)
}

fn live(answer: &Answer<CreateGrabResponse>) -> Option<bool> {
    answer.message.grab.as_ref().map(|grab| grab.live)
}

/// A body that holds no JSON object.
fn unusable(seen: &str) -> CreateGrabRequest {
    CreateGrabRequest { unparsed: vec![unparsed("body", seen)], ..CreateGrabRequest::default() }
}

/// The create that a body asks for. Members that are not the contract's are ignored.
pub(super) fn message_of(body: &[u8]) -> CreateGrabRequest {
    let mut fields = match Fields::of(body) {
        Ok(fields) => fields,
        Err(seen) => return unusable(&seen),
    };
    let message = captured(&mut fields);
    CreateGrabRequest { unparsed: fields.unparsed, ..message }
}

/// What to capture: each member as its type. What was seen instead stays with the fields.
pub(crate) fn captured(fields: &mut Fields<'_>) -> CreateGrabRequest {
    let format = |value: &RawValue| wire::parse_format(&json::string(value)?);
    CreateGrabRequest {
        url: fields.read("url", json::string),
        width: fields.read("width", json::integer),
        height: fields.read("height", json::integer),
        format: fields.read("format", format).unwrap_or_default().into(),
        full_page: fields.read("full_page", json::boolean),
        delay_ms: fields.read("delay_ms", json::integer),
        selector: fields.read("selector", json::nullable_string).flatten(),
        mode: CreateMode::Unspecified.into(),
        idempotency_key: None,
        unparsed: Vec::new(),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
