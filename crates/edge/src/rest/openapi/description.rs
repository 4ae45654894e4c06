//! The operation that returns the document itself.

use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::{ContentBuilder, ObjectBuilder, Type};

use super::parts::{if_none_match, not_modified, public, success_response};
use super::tags;

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "This API reference as an OpenAPI 3.1 document. Needs no key.";
    let document = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::Object)));
    public(tags::ACCOUNT, "getDescription", "Read this description", about, &[])
        .parameter(if_none_match())
        .response("200", success_response("The document.", &["ETag"]).content("application/json", document.build()))
        .response("304", not_modified(&[]))
}
