//! Shared parts of operations: headers, parameters and common errors.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, SecurityRequirement, Type,
};

use super::{BEARER, OAUTH, OAUTH_SCOPE, errors};

/// An operation that needs a key. `codes` are its errors in addition to the common ones.
pub(super) fn authenticated(tag: &str, id: &str, summary: &str, about: &str, codes: &[ErrorCode]) -> OperationBuilder {
    let codes = [codes, &[ErrorCode::Unauthorized, ErrorCode::Forbidden]].concat();
    let by_key = SecurityRequirement::new::<_, [&str; 0], _>(BEARER, []);
    let by_token = SecurityRequirement::new(OAUTH, [OAUTH_SCOPE]);
    public(tag, id, summary, about, &codes).securities(Some([by_key, by_token]))
}

/// An operation that needs no key.
pub(super) fn public(tag: &str, id: &str, summary: &str, about: &str, codes: &[ErrorCode]) -> OperationBuilder {
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

/// A successful response with the common headers and `further` ones.
pub(super) fn success_response(about: &str, further: &[&str]) -> ResponseBuilder {
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

/// JSON content with the schema of a component.
pub(super) fn json_content(schema: &str, example: Value) -> ContentBuilder {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).example(Some(example))
}

/// The 304 response.
pub(super) fn not_modified(further: &[&str]) -> ResponseBuilder {
    success_response("Not changed since the response you have. No body.", &[further, &["ETag"]].concat())
}

/// An optional parameter.
pub(super) fn parameter(
    location: ParameterIn,
    name: &str,
    about: &str,
    schema: impl Into<RefOr<Schema>>,
    example: Option<Value>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
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

/// The `If-None-Match` header.
pub(super) fn if_none_match() -> Parameter {
    let about = "The `ETag` of the response you have. If it is still current, the response is 304.";
    parameter(ParameterIn::Header, "If-None-Match", about, text(), None)
}

/// A string.
pub(super) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// An integer within bounds.
pub(super) fn integer(least: i64, most: i64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least as f64)).maximum(Some(most as f64))
}

/// A reference to one of [`headers`].
pub(super) fn header(name: &str) -> Ref {
    Ref::new(format!("#/components/headers/{name}"))
}

/// All response headers.
pub(super) fn headers() -> Vec<(&'static str, Header)> {
    let header = |name, about: &str, schema: ObjectBuilder, example: Value| {
        (name, HeaderBuilder::new().description(Some(about)).schema(Some(schema)).example(Some(example)).build())
    };
    let number = || ObjectBuilder::new().schema_type(Type::Integer);
    vec![
        header(
            "X-Request-Id",
            "Id of the request, also used in the log.",
            text(),
            json!("0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44"),
        ),
        header(
            "RateLimit",
            "Remaining quota: `r` requests, and `t` seconds until one more is available.",
            text(),
            json!("\"default\";r=59;t=1"),
        ),
        header("RateLimit-Policy", "The limit: `q` requests in `w` seconds.", text(), json!("\"default\";q=60;w=60")),
        header("X-RateLimit-Limit", "The limit of requests per minute.", number(), json!(60)),
        header("X-RateLimit-Remaining", "Requests left.", number(), json!(59)),
        header("X-RateLimit-Reset", "Unix time at which one more is available.", number(), json!(1_795_206_775)),
        header("Retry-After", "Seconds to wait.", number(), json!(2)),
        header("Location", "Path of the resource.", text(), json!(format!("/v1/grabs/{EXAMPLE_ID}"))),
        header("Cache-Control", "How long the response may be stored.", text(), json!("public, max-age=86400")),
        header("ETag", "Tag of this state, for `If-None-Match`.", text(), json!("W/\"4\"")),
        header(
            "Link",
            "The next page, as `rel=\"next\"` or `rel=\"prev\"`.",
            text(),
            json!("</v1/grabs?starting_after=…>; rel=\"next\""),
        ),
        header("Preference-Applied", "The preference of `Prefer` that was applied.", text(), json!("respond-async")),
        header("Idempotent-Replayed", "`true` for a replay of an earlier response.", text(), json!("true")),
        header("WWW-Authenticate", "The required authentication scheme.", text(), json!("Bearer")),
    ]
}

/// Id of the grab in all examples.
pub(super) const EXAMPLE_ID: &str = "0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44";

/// Example of a done grab.
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
        "truncated": false,
        "warnings": [],
        "title": "Example Domain",
        "description": null,
        "lang": "en",
        "canonical_url": null,
        "icon_url": null,
        "page_width": 1280,
        "page_height": 720,
        "redirects": 0,
        "timings": { "queued_ms": 24, "navigate_ms": 96, "load_ms": 14, "settle_ms": 152, "shot_ms": 38 },
        "image_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "blank": false
    })
}

/// Example of a pending grab.
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
        "warnings",
        "title",
        "lang",
        "page_width",
        "page_height",
        "redirects",
        "timings",
        "image_sha256",
    ] {
        grab[name] = Value::Null;
    }
    if let Value::Object(members) = &mut grab {
        members.remove("blank");
    }
    grab
}
