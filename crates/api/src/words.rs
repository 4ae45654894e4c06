//! The words that members have as values, and their OpenAPI schemas.

use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, SchemaType};
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type};

/// The kind of the files that are slices of the image.
pub const SLICE_KIND: &str = "slice";
/// The states of a grab, in their order.
pub const STATUSES: [&str; 4] = ["pending", "processing", "done", "failed"];
/// The formats of images.
pub const FORMATS: [&str; 3] = ["png", "jpeg", "webp"];
/// Why an image was captured when it was.
pub const SETTLED_BY: [&str; 2] = ["quiet", "deadline"];
/// The error codes of failed grabs.
pub const FAILURE_CODES: [&str; 4] = ["render_blocked", "render_failed", "ssrf_detected", "internal_error"];
/// Whose fault an error is.
pub const CAUSES: [&str; 3] = ["request", "target", "service"];
/// The stages of a render, in their order.
pub const STAGES: [&str; 4] = ["navigating", "loaded", "settling", "captured"];
/// The environments of keys.
pub const ENVIRONMENTS: [&str; 2] = ["live", "test"];
/// The states of a monitor.
pub const MONITOR_STATES: [&str; 3] = ["active", "paused", "out_of_credits"];
/// The outcomes of a run of a monitor.
pub const RUN_OUTCOMES: [&str; 6] = ["running", "first", "same", "changed", "failed", "missed"];
/// Which capture a monitor compares with.
pub const BASELINES: [&str; 2] = ["latest", "accepted"];
/// The states of a site job.
pub const SITE_STATES: [&str; 6] = ["discovering", "capturing", "done", "canceled", "failed", "out_of_credits"];
/// The states of a page of a site job.
pub const PAGE_STATES: [&str; 5] = ["waiting", "capturing", "done", "failed", "skipped"];
/// What may happen to an element of a page.
pub const ELEMENT_CHANGES: [&str; 4] = ["added", "removed", "changed", "moved"];
/// The kinds of files that are text for people, in the order of their documentation.
const TEXT_FILES: [&str; 5] = ["markdown", "text", "elements", "accessibility", "report"];

/// What can be read of a grab as text: the files of these kinds that captures make, and the difference to an earlier grab.
pub fn text_formats() -> Vec<&'static str> {
    let files = TEXT_FILES.into_iter().filter(|file| also_words().contains(file));
    files.chain(["difference"]).collect()
}

/// OpenAPI schema of what can be read of a grab as text.
pub fn text_format_schema() -> Object {
    string_enum(text_formats())
}

/// OpenAPI schema of a status.
pub fn status_schema() -> Object {
    string_enum(STATUSES)
}

/// OpenAPI schema of a cause.
pub fn cause_schema() -> Object {
    string_enum(CAUSES)
}

pub(crate) fn environment_schema() -> Object {
    string_enum(ENVIRONMENTS)
}

pub(crate) fn stage_schema() -> Object {
    string_enum(STAGES)
}

pub(crate) fn site_state_schema() -> Object {
    string_enum(SITE_STATES)
}

pub(crate) fn page_state_schema() -> Object {
    string_enum(PAGE_STATES)
}

pub(crate) fn monitor_state_schema() -> Object {
    string_enum(MONITOR_STATES)
}

pub(crate) fn run_outcome_schema() -> Object {
    string_enum(RUN_OUTCOMES)
}

pub(crate) fn baseline_schema() -> Object {
    string_enum(BASELINES)
}

pub(crate) fn element_change_schema() -> Object {
    let mut schema = string_enum(ELEMENT_CHANGES);
    schema.description = Some("What has happened to it.".to_owned());
    schema
}

/// OpenAPI schema of what a monitor ignores in images.
pub(crate) fn ignored_schema() -> Schema {
    let selector = ObjectBuilder::new().schema_type(Type::String).description(Some("A CSS selector."));
    let side: Schema = ObjectBuilder::new().schema_type(Type::Integer).build().into();
    let area = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(side.into())))
        .description(Some(
            "A part of the image: `x`, `y`, `width` and `height` in CSS pixels from its top left corner.",
        ));
    ArrayBuilder::new()
        .items(OneOfBuilder::new().item(selector).item(area))
        .max_items(Some(40))
        .description(Some(
            "What never differs: CSS selectors of elements, which are made invisible, and parts of the image.",
        ))
        .into()
}

/// OpenAPI schema of a format or null.
pub(crate) fn nullable_format_schema() -> Object {
    nullable_enum(FORMATS)
}

pub(crate) fn settled_by_schema() -> Object {
    nullable_enum(SETTLED_BY)
}

/// OpenAPI schema of the code of a failure.
pub(crate) fn failure_code_schema() -> Object {
    let about =
        "The error code of the failure, which a synchronous create returns. Only present if the grab has failed.";
    let mut schema = string_enum(FAILURE_CODES);
    schema.description = Some(about.to_owned());
    schema
}

/// OpenAPI schema of the cause of a failure.
pub(crate) fn failure_cause_schema() -> Object {
    let about = "Whose fault the failure is: that of the request (`request`), of the target site (`target`), or of the \
                 service (`service`). Only present if the grab has failed.";
    let mut schema = cause_schema();
    schema.description = Some(about.to_owned());
    schema
}

/// OpenAPI schema of a kind of attachment: a word that the option takes, a slice, the image in a further viewport, that of a
/// step, that of a difference, a thumbnail, or evidence.
pub(crate) fn file_kind_schema() -> Object {
    string_enum(also_words().iter().copied().chain([
        SLICE_KIND,
        "viewport",
        "capture",
        "difference",
        "thumbnail",
        "evidence",
    ]))
}

/// The words that the option `also` takes.
fn also_words() -> &'static [&'static str] {
    match grabd_options::find("also").map(|option| option.kind) {
        Some(grabd_options::Kind::Words(words)) => words,
        Some(_) | None => &[],
    }
}

fn string_enum(words: impl IntoIterator<Item = &'static str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

fn nullable_enum(words: impl IntoIterator<Item = &'static str>) -> Object {
    let types = SchemaType::from_iter([Type::String, Type::Null]);
    let mut schema = ObjectBuilder::new().schema_type(types).enum_values(Some(words)).build();
    schema.enum_values.iter_mut().for_each(|values| values.push(Value::Null));
    schema
}
