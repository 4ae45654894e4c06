//! The bodies of creates and changes. They are read member by member, so that each mistake gets its own error, and have no
//! struct to derive this from; the limits are the contract's.

use serde_json::json;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, SchemaFormat, Type};

use super::super::wire;
use super::parts::{integer, text};

/// What to capture.
pub(super) fn create_grab() -> Object {
    let url = text()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .min_length(Some(1))
        .max_length(Some(4096))
        .pattern(Some("^[hH][tT][tT][pP][sS]?://"))
        .description(Some("Absolute http or https address of a public page."))
        .examples([json!("https://example.com")]);
    let width = integer(320, 1920).default(Some(json!(1280))).description(Some("Width of the viewport in pixels."));
    let height = integer(240, 1080).default(Some(json!(720))).description(Some("Height of the viewport in pixels."));
    let mut format = wire::known_formats();
    format.default = Some(json!("png"));
    format.description = Some("Format of the image.".to_owned());
    let full_page = flag().default(Some(json!(false))).description(Some(
        "Capture the whole page instead of the viewport. The grab then reports a height of 3240; the true size is in \
         `image_height`.",
    ));
    let delay = integer(0, 10_000)
        .default(Some(json!(0)))
        .description(Some("Further wait before the shot, in milliseconds, after the page has come to rest."));
    let selector = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .min_length(Some(1))
        .max_length(Some(1024))
        .pattern(Some(r"\S"))
        .description(Some("A CSS selector: capture the first element that it finds. Null is none."));
    ObjectBuilder::new()
        .description(Some("What to capture. Unknown members are ignored."))
        .property("url", url)
        .property("width", width)
        .property("height", height)
        .property("format", format)
        .property("full_page", full_page)
        .property("delay_ms", delay)
        .property("selector", selector)
        .required("url")
        .build()
}

/// Where messages go, and which.
pub(super) fn create_webhook() -> Object {
    webhook("What to register. Unknown members are ignored.").required("url").build()
}

/// What to change of a webhook.
pub(super) fn update_webhook() -> Object {
    let status = text()
        .enum_values(Some(["enabled", "disabled"]))
        .description(Some("`disabled` cancels what was still to be sent; `enabled` begins anew."));
    webhook("What to change; what is not there stays. Unknown members are ignored.").property("status", status).build()
}

fn webhook(about: &str) -> ObjectBuilder {
    let url = text()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .min_length(Some(1))
        .max_length(Some(4096))
        .pattern(Some("^[hH][tT][tT][pP][sS]://"))
        .description(Some("An https address of a public host, without user name and password."))
        .examples([json!("https://example.com/hooks/grabd")]);
    let event = text().enum_values(Some(["grab.done", "grab.failed", "*"]));
    let events = ArrayBuilder::new()
        .items(event)
        .description(Some("What it is told. `*`, or an empty list, is everything, also what is added later."))
        .default(Some(json!(["*"])));
    let description = text().max_length(Some(200)).default(Some(json!(""))).description(Some("For people."));
    ObjectBuilder::new()
        .description(Some(about))
        .property("url", url)
        .property("events", events)
        .property("description", description)
}

fn flag() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}
