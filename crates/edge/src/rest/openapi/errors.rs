//! What each error code means, and the answers that carry it.

use std::collections::BTreeMap;

use grabd_proto::v1::ErrorCode;
use serde_json::json;
use utoipa::openapi::schema::AllOfBuilder;
use utoipa::openapi::{ContentBuilder, Object, ObjectBuilder, Ref, Response, ResponseBuilder, Type};

use super::super::error;
use super::parts::header;

/// Every code, in the order of the contract's table.
pub(in super::super) const TABLE: [ErrorCode; 13] = [
    ErrorCode::Unauthorized,
    ErrorCode::BadRequest,
    ErrorCode::InvalidViewport,
    ErrorCode::SsrfDetected,
    ErrorCode::IdempotencyMismatch,
    ErrorCode::CreditsExhausted,
    ErrorCode::NotFound,
    ErrorCode::IdempotencyConflict,
    ErrorCode::RenderBlocked,
    ErrorCode::RateLimitExceeded,
    ErrorCode::QueueLimitExceeded,
    ErrorCode::RenderFailed,
    ErrorCode::InternalError,
];

/// When a code is answered, and what to do then.
pub(in super::super) fn meaning(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "The Bearer token is missing or not valid. Check the key.",
        ErrorCode::BadRequest => {
            "Something in the request cannot be accepted; the message says what. Do not retry it as it is."
        }
        ErrorCode::InvalidViewport => "`width` or `height` is not an integer within its range.",
        ErrorCode::SsrfDetected => "The address is not public: it is private, local or reserved, or leads there.",
        ErrorCode::IdempotencyMismatch => {
            "The Idempotency-Key was used for another request, or is not 1 to 255 visible ASCII characters in one header line."
        }
        ErrorCode::CreditsExhausted => {
            "No live credits are left. Read `GET /usage`, then top up; a test key only tries the wiring."
        }
        ErrorCode::NotFound => "There is nothing with that id for this key, or nothing at this path.",
        ErrorCode::IdempotencyConflict => {
            "The first request with this Idempotency-Key is still running. Retry shortly."
        }
        ErrorCode::RenderBlocked => "The target site refused to be captured. Nothing was charged.",
        ErrorCode::RateLimitExceeded => "Too many requests. Wait as long as `Retry-After` says.",
        ErrorCode::QueueLimitExceeded => {
            "Too many asynchronous grabs of the team are open. Wait until some have ended."
        }
        ErrorCode::RenderFailed => "The page could not be rendered, or not within 25 seconds. Nothing was charged.",
        ErrorCode::InternalError | ErrorCode::Unspecified => {
            "Something went wrong on our side. Nothing was charged; retry, and quote the `X-Request-Id` if it persists."
        }
    }
}

/// A message as callers get it.
fn example(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "Missing or invalid Bearer token.",
        ErrorCode::BadRequest => "`url` must be present.",
        ErrorCode::InvalidViewport => "`width` must be an integer from 320 to 1920; got 100.",
        ErrorCode::SsrfDetected => "The target URL is not an allowed public address.",
        ErrorCode::IdempotencyMismatch => {
            "`Idempotency-Key` must be unused, or come with the request it came with first."
        }
        ErrorCode::CreditsExhausted => {
            "No live credits left. Read the usage endpoint, then add a prepaid top-up or wait for the next grant."
        }
        ErrorCode::NotFound => "No grab with that id for this key.",
        ErrorCode::IdempotencyConflict => {
            "A request with the same Idempotency-Key is still in flight; retry shortly for its answer."
        }
        ErrorCode::RenderBlocked => "The target site blocked the capture: HTTP 403.",
        ErrorCode::RateLimitExceeded => "Request rate limit exceeded: 60 requests per minute. Retry in 1 s.",
        ErrorCode::QueueLimitExceeded => {
            "Async queue limit exceeded: 50 grabs of this team are already pending or processing."
        }
        ErrorCode::RenderFailed => "The page could not be rendered: the connection was refused.",
        ErrorCode::InternalError | ErrorCode::Unspecified => error::INTERNAL,
    }
}

/// The envelope with any code.
pub(super) fn schema() -> Object {
    let code = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(TABLE.map(|code| error::row(code).1)))
        .description(Some("What happened, for programs. Stable."));
    let message =
        ObjectBuilder::new().schema_type(Type::String).description(Some("What happened, for people. May change."));
    let error =
        ObjectBuilder::new().property("code", code).property("message", message).required("code").required("message");
    ObjectBuilder::new()
        .description(Some("Every error answer, and nothing else in it."))
        .property("error", error)
        .required("error")
        .build()
}

/// The answers that carry these codes, one for each HTTP status.
pub(super) fn responses(codes: &[ErrorCode]) -> Vec<(String, Response)> {
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in TABLE.into_iter().filter(|code| codes.contains(code)) {
        by_status.entry(error::row(code).0.as_u16()).or_default().push(code);
    }
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(status, &codes))).collect()
}

fn response(status: u16, codes: &[ErrorCode]) -> Response {
    let lines: Vec<String> =
        codes.iter().map(|code| format!("- `{}`: {}", error::row(*code).1, meaning(*code))).collect();
    let words = codes.iter().map(|code| error::row(*code).1);
    let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.clone()));
    let error = ObjectBuilder::new().property("error", ObjectBuilder::new().property("code", code));
    let schema = AllOfBuilder::new().item(Ref::from_schema_name("Error")).item(error);
    let examples = codes.iter().zip(words).map(|(code, word)| {
        let value = json!({ "error": { "code": word, "message": example(*code) } });
        (word, utoipa::openapi::example::ExampleBuilder::new().value(Some(value)).build())
    });
    let content = ContentBuilder::new().schema(Some(schema)).examples_from_iter(examples);
    let mut response =
        ResponseBuilder::new().description(lines.join("\n")).content("application/json", content.build());
    let further: &[&str] = match status {
        401 => &["WWW-Authenticate"],
        409 | 429 => &["Retry-After"],
        _ => &[],
    };
    for name in ["X-Request-Id", "RateLimit", "RateLimit-Policy"].iter().chain(further) {
        response = response.header_ref(*name, header(name));
    }
    response.build()
}
