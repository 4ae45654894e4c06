//! Schemas of request bodies. They are written by hand because bodies are parsed member by member, to report each
//! invalid member, and not into a struct. The limits are those of the contract.

use grabd_options::TABLE;
use serde_json::json;
use utoipa::openapi::schema::AllOfBuilder;
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, Ref, SchemaFormat};

use super::super::{captures, options};
use super::parts::text;

/// What to capture.
pub(super) fn create_grab() -> Object {
    let body = ObjectBuilder::new()
        .description(Some("What to capture. Unknown members are ignored, and named in `warnings` of the grab."));
    // Either `url` or `html` is required, which is said by their descriptions.
    TABLE.iter().fold(body, |body, option| body.property(option.name, options::schema(option))).build()
}

/// Several captures.
pub(super) fn create_batch() -> Object {
    let object = || Ref::from_schema_name("CreateGrabRequest");
    let grabs =
        ArrayBuilder::new().items(object()).min_items(Some(1)).max_items(Some(captures::MAX_GRABS)).description(Some(
            "The captures. The members of each are those of a single capture, and win over the shared ones.",
        ));
    let shared = AllOfBuilder::new().item(object()).description(Some("Members that all captures share."));
    ObjectBuilder::new()
        .description(Some("What to capture. Unknown members are ignored, and named in `warnings` of the grabs."))
        .property("grabs", grabs)
        .property("options", shared)
        .required("grabs")
        .build()
}

/// A webhook to create.
pub(super) fn create_webhook() -> Object {
    webhook("The webhook to register. Unknown members are ignored.").required("url").build()
}

/// Changes of a webhook.
pub(super) fn update_webhook() -> Object {
    let status = text()
        .enum_values(Some(["enabled", "disabled"]))
        .description(Some("`disabled` cancels pending deliveries; `enabled` clears earlier failures."));
    webhook("The members to change. Unknown members are ignored.").property("status", status).build()
}

fn webhook(about: &str) -> ObjectBuilder {
    let url = text()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .min_length(Some(1))
        .max_length(Some(4096))
        .pattern(Some("^[hH][tT][tT][pP][sS]://"))
        .description(Some("An https URL of a public host, without user name and password."))
        .examples([json!("https://example.com/hooks/grabd")]);
    let event = text().enum_values(Some([
        "grab.done",
        "grab.failed",
        "grab.changed",
        "credits.low",
        "monitor.changed",
        "monitor.failed",
        "monitor.recovered",
        "site.finished",
        "*",
    ]));
    let events = ArrayBuilder::new()
        .items(event)
        .description(Some("Event types to send. `*`, or an empty list, selects all, including types added later."))
        .default(Some(json!(["*"])));
    let description = text().max_length(Some(200)).default(Some(json!(""))).description(Some("Free text."));
    ObjectBuilder::new()
        .description(Some(about))
        .property("url", url)
        .property("events", events)
        .property("description", description)
}
