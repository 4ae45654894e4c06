//! What operations have in common: headers, parameters, the errors that any of them may answer.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, SecurityRequirement, Type,
};

use super::{BEARER, errors};

/// An operation that needs a key, with its errors on top of those that any such operation has.
pub(super) fn keyed(tag: &str, id: &str, summary: &str, about: &str, codes: &[ErrorCode]) -> OperationBuilder {
    let codes = [codes, &[ErrorCode::Unauthorized]].concat();
    open(tag, id, summary, about, &codes).securities(Some([SecurityRequirement::new::<_, [&str; 0], _>(BEARER, [])]))
}

/// An operation that needs no key.
pub(super) fn open(tag: &str, id: &str, summary: &str, about: &str, codes: &[ErrorCode]) -> OperationBuilder {
    let codes = [codes, &[ErrorCode::RateLimitExceeded, ErrorCode::InternalError]].concat();
    let operation = OperationBuilder::new()
        .tag(tag)
        .operation_id(Some(id))
        .summary(Some(summary))
        .description(Some(about))
        .securities(Some([SecurityRequirement::default()]));
    errors::responses(&codes)
        .into_iter()
        .fold(operation, |operation, (status, answer)| operation.response(status, answer))
}

/// A path with its operations.
pub(super) fn path<const N: usize>(
    path: &'static str,
    operations: [(HttpMethod, OperationBuilder); N],
) -> (&'static str, PathItem) {
    let mut item = PathItem::default();
    for (method, operation) in operations {
        item.merge_operations(PathItem::new(method, operation));
    }
    (path, item)
}

/// An answer that is no error, with the headers that all of them have and `further` ones.
pub(super) fn answer(about: &str, further: &[&str]) -> ResponseBuilder {
    let always = [
        "X-Request-Id",
        "RateLimit",
        "RateLimit-Policy",
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
    ];
    always
        .iter()
        .chain(further)
        .fold(ResponseBuilder::new().description(about), |answer, name| answer.header_ref(*name, header(name)))
}

/// JSON of a component's schema.
pub(super) fn json_of(schema: &str, example: Value) -> ContentBuilder {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).example(Some(example))
}

/// The answer to somebody who has it already.
pub(super) fn unchanged(further: &[&str]) -> ResponseBuilder {
    answer("What you have is what there is. No body.", &[further, &["ETag"]].concat())
}

/// A parameter that may be left out.
pub(super) fn parameter(
    place: ParameterIn,
    name: &str,
    about: &str,
    schema: impl Into<RefOr<Schema>>,
    example: Option<Value>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(schema))
        .example(example)
        .build()
}

/// The `{id}` of a path.
pub(super) fn id(what: &str) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(utoipa::openapi::SchemaFormat::Custom("uuid".to_owned())));
    ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(format!("Id of the {what}.")))
        .schema(Some(schema))
        .example(Some(json!(EXAMPLE_ID)))
        .build()
}

/// The tag of what the caller has.
pub(super) fn if_none_match() -> Parameter {
    let about = "The `ETag` of the answer you have. If it still holds, the answer is 304.";
    parameter(ParameterIn::Header, "If-None-Match", about, text(), None)
}

/// Any text.
pub(super) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// A whole number within bounds.
pub(super) fn integer(least: i64, most: i64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least as f64)).maximum(Some(most as f64))
}

/// A reference to one of [`headers`].
pub(super) fn header(name: &str) -> Ref {
    Ref::new(format!("#/components/headers/{name}"))
}

/// Every header that answers have.
pub(super) fn headers() -> Vec<(&'static str, Header)> {
    let header = |name, about: &str, schema: ObjectBuilder, example: Value| {
        (name, HeaderBuilder::new().description(Some(about)).schema(Some(schema)).example(Some(example)).build())
    };
    let number = || ObjectBuilder::new().schema_type(Type::Integer);
    vec![
        header(
            "X-Request-Id",
            "Names the request, here and in the log.",
            text(),
            json!("0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44"),
        ),
        header(
            "RateLimit",
            "What is left: `r` requests, and `t` seconds until there is one more.",
            text(),
            json!("\"default\";r=59;t=1"),
        ),
        header("RateLimit-Policy", "The limit: `q` requests in `w` seconds.", text(), json!("\"default\";q=60;w=60")),
        header("X-RateLimit-Limit", "The limit of requests per minute.", number(), json!(60)),
        header("X-RateLimit-Remaining", "Requests left.", number(), json!(59)),
        header("X-RateLimit-Reset", "Unix time at which there is one more.", number(), json!(1_795_206_775)),
        header("Retry-After", "Seconds to wait.", number(), json!(2)),
        header("Location", "Where it is.", text(), json!(format!("/v1/grabs/{EXAMPLE_ID}"))),
        header("ETag", "Tag of this state, for `If-None-Match`.", text(), json!("W/\"4\"")),
        header(
            "Link",
            "The next page, as `rel=\"next\"` or `rel=\"prev\"`.",
            text(),
            json!("</v1/grabs?starting_after=…>; rel=\"next\""),
        ),
        header("Preference-Applied", "Which preference of `Prefer` was honoured.", text(), json!("respond-async")),
        header("Idempotent-Replayed", "`true` when this answer was given before.", text(), json!("true")),
        header("WWW-Authenticate", "That a Bearer token is wanted.", text(), json!("Bearer")),
    ]
}

/// Id of the grab in all examples.
pub(super) const EXAMPLE_ID: &str = "0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44";

/// A grab that went well.
pub(super) fn done() -> Value {
    json!({
        "id": EXAMPLE_ID,
        "status": "done",
        "created_at": "2026-11-21T09:30:12.480Z",
        "target_url": "https://example.com/",
        "image_url": "https://grabd.example/i/Zx/4k/Zx4kQ0c8mW2rT7yB1nE5uA.png",
        "width": 1280,
        "height": 720,
        "format": "png",
        "bytes": 18213,
        "execution_ms": 312,
        "error_message": null,
        "final_url": "https://example.com/",
        "http_status": 200,
        "settled_by": "quiet",
        "blocked_requests": 0,
        "image_width": 1280,
        "image_height": 720,
        "truncated": false
    })
}

/// A grab that is still to be rendered.
pub(super) fn pending() -> Value {
    let mut grab = done();
    grab["status"] = json!("pending");
    for name in [
        "image_url",
        "bytes",
        "execution_ms",
        "final_url",
        "http_status",
        "settled_by",
        "blocked_requests",
        "image_width",
        "image_height",
        "truncated",
    ] {
        grab[name] = Value::Null;
    }
    grab
}
