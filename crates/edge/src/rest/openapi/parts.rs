//! Shared parts of operations: parameters, responses and common errors.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, SecurityRequirement, Type,
};

use super::errors;
use super::examples::EXAMPLE_ID;
use super::headers::header;
use super::security::{BEARER, GRABS, MANAGE, OAUTH};

/// An operation that needs a key, or a token with the scope `grabs`. `codes` are its errors in addition to the common
/// ones.
pub(in super::super) fn authenticated(
    tag: &str,
    id: &str,
    summary: &str,
    about: &str,
    codes: &[ErrorCode],
) -> OperationBuilder {
    scoped(GRABS, public(tag, id, summary, about, &with_credential(codes)))
}

/// The same for an operation that needs a token with the scope `manage`.
pub(in super::super) fn managing(
    tag: &str,
    id: &str,
    summary: &str,
    about: &str,
    codes: &[ErrorCode],
) -> OperationBuilder {
    scoped(MANAGE, public(tag, id, summary, about, &with_credential(codes)))
}

fn scoped(scope: &str, operation: OperationBuilder) -> OperationBuilder {
    let by_key = SecurityRequirement::new::<_, [&str; 0], _>(BEARER, []);
    operation.securities(Some([by_key, SecurityRequirement::new(OAUTH, [scope])]))
}

/// The errors of an operation that needs a credential.
fn with_credential(codes: &[ErrorCode]) -> Vec<ErrorCode> {
    [codes, &[ErrorCode::Unauthorized, ErrorCode::Forbidden]].concat()
}

/// An operation that needs no key.
pub(in super::super) fn public(
    tag: &str,
    id: &str,
    summary: &str,
    about: &str,
    codes: &[ErrorCode],
) -> OperationBuilder {
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
pub(in super::super) fn success_response(about: &str, further: &[&str]) -> ResponseBuilder {
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
pub(in super::super) fn json_content(schema: &str, example: Value) -> ContentBuilder {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).example(Some(example))
}

/// The 304 response.
pub(in super::super) fn not_modified(further: &[&str]) -> ResponseBuilder {
    success_response("Not changed since the response you have. No body.", &[further, &["ETag"]].concat())
}

/// An optional parameter.
pub(in super::super) fn parameter(
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
pub(in super::super) fn id(what: &str) -> Parameter {
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
pub(in super::super) fn if_none_match() -> Parameter {
    let about = "The `ETag` of the response you have. If it is still current, the response is 304.";
    parameter(ParameterIn::Header, "If-None-Match", about, text(), None)
}

/// A string.
pub(in super::super) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// An integer within bounds.
pub(in super::super) fn integer(least: i64, most: i64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least as f64)).maximum(Some(most as f64))
}
