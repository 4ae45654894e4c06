//! Documentation of the error codes and the responses that have them.

use std::collections::BTreeMap;

use grabd_proto::v1::ErrorCode;
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, AllOfBuilder};
use utoipa::openapi::{ContentBuilder, Object, ObjectBuilder, Ref, Response, ResponseBuilder, Schema, Type};

use super::super::error;
use super::headers::header;

/// Every code, in the order of the contract's table, and then the additions to it.
pub(in super::super) const ERROR_CODES: [ErrorCode; 14] = [
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
    ErrorCode::Forbidden,
];

/// When a code is returned, and what to do.
pub(in super::super) fn meaning(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "The Bearer token is missing or not valid. Check the key.",
        ErrorCode::Forbidden => {
            "The API key or the app's token is valid, but lacks the scope that the request needs; the message names it."
        }
        ErrorCode::BadRequest => "The request is invalid; the message names the problem. Do not retry it unchanged.",
        ErrorCode::InvalidViewport => "`width` or `height` is not an integer within its range.",
        ErrorCode::SsrfDetected => "The URL leads to an address that is not public: private, local or reserved.",
        ErrorCode::IdempotencyMismatch => {
            "The Idempotency-Key was used for another request, or is not 1 to 255 visible ASCII characters in one header line."
        }
        ErrorCode::CreditsExhausted => {
            "No live credits are left. Read `GET /usage`, then top up. Test keys spend no credits."
        }
        ErrorCode::NotFound => "Nothing with that id is visible to this key, or the path does not exist.",
        ErrorCode::IdempotencyConflict => {
            "The first request with this Idempotency-Key is still running. Retry shortly."
        }
        ErrorCode::RenderBlocked => "The target site blocked the capture. Nothing was charged.",
        ErrorCode::RateLimitExceeded => {
            "Too many requests, too much time of failed captures, or, with the `Error-Cause` `service`, a queue that is \
             longer than a synchronous request can wait. Wait for the seconds in `Retry-After`."
        }
        ErrorCode::QueueLimitExceeded => {
            "Too many asynchronous grabs of the team are open. Wait until some have ended."
        }
        ErrorCode::RenderFailed => "The page could not be rendered, or not within 25 seconds. Nothing was charged.",
        ErrorCode::InternalError | ErrorCode::Unspecified => {
            "Something went wrong on our side. Nothing was charged; retry, and quote the `X-Request-Id` if it persists."
        }
    }
}

/// An example message.
fn example(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "Missing or invalid Bearer token.",
        ErrorCode::Forbidden => {
            "This API key lacks the scope `create`; its scopes: read. Use another key, or create one."
        }
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
        ErrorCode::InternalError | ErrorCode::Unspecified => error::INTERNAL_MESSAGE,
    }
}

/// Schema of the error envelope. The contract allows no further members.
pub(in super::super) fn schema() -> Object {
    ObjectBuilder::new()
        .description(Some("Body of every error response. The header `Error-Cause` says whose fault it is."))
        .property("error", error())
        .required("error")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
}

/// What an error is.
pub(in super::super) fn error() -> Object {
    error_with(&ERROR_CODES)
}

/// An error with one of these codes.
fn error_with(codes: &[ErrorCode]) -> Object {
    let code = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(codes.iter().map(|code| error::status_and_code(*code).1)))
        .description(Some("Machine-readable error code. Stable."));
    let message =
        ObjectBuilder::new().schema_type(Type::String).description(Some("Human-readable message. May change."));
    ObjectBuilder::new()
        .property("code", code)
        .property("message", message)
        .required("code")
        .required("message")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
}

/// The responses with these codes, one for each HTTP status.
pub(in super::super) fn responses(codes: &[ErrorCode]) -> Vec<(String, Response)> {
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in ERROR_CODES.into_iter().filter(|code| codes.contains(code)) {
        by_status.entry(error::status_and_code(code).0.as_u16()).or_default().push(code);
    }
    by_status.into_iter().map(|(status, codes)| (status.to_string(), response(status, &codes))).collect()
}

fn response(status: u16, codes: &[ErrorCode]) -> Response {
    let lines: Vec<String> =
        codes.iter().map(|code| format!("- `{}`: {}", error::status_and_code(*code).1, meaning(*code))).collect();
    let words = codes.iter().map(|code| error::status_and_code(*code).1);
    // All members, because some validators accept only those of one part of an `allOf`.
    let error = ObjectBuilder::new().property("error", error_with(codes));
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
    for name in ["X-Request-Id", "Error-Cause", "RateLimit", "RateLimit-Policy"].iter().chain(further) {
        response = response.header_ref(*name, header(name));
    }
    response.build()
}
