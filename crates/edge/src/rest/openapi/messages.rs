//! The messages that webhooks receive, as OpenAPI `webhooks`.

use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{Object, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Schema, SecurityRequirement};

use super::super::monitors::examples;
use super::super::sites::examples as site_examples;
use super::examples::{EXAMPLE_ID, done};
use super::parts::{integer, json_content, path, text};
use super::tags;

const MESSAGE_ID: &str = "msg_0199f3a17c527d0e9b7a3f0c5c1e2a44";
const SENT_AT: &str = "2026-11-21T09:30:13.020Z";

/// Names of the schemas.
const GRAB_MESSAGE: &str = "GrabMessage";
const CREDITS_MESSAGE: &str = "CreditsMessage";
const MONITOR_MESSAGE: &str = "MonitorMessage";
const SITE_MESSAGE: &str = "SiteMessage";
const TEST_MESSAGE: &str = "TestMessage";

/// All messages by the name of their event.
pub(super) fn operations() -> Vec<(&'static str, PathItem)> {
    let mut failed = done();
    for name in ["image_url", "bytes", "image_sha256"] {
        failed[name] = Value::Null;
    }
    let mut changed = done();
    changed["difference"] = json!({
        "compared_to": EXAMPLE_ID,
        "ratio": 0.021,
        "regions": [{ "x": 0, "y": 64, "width": 320, "height": 48 }],
    });
    let monitor = json!({ "monitor": examples::monitor(), "run": examples::run() });
    let low = json!({ "team_id": EXAMPLE_ID, "credits": 99, "alert_below": 100 });
    failed["status"] = json!("failed");
    failed["error_message"] = json!("The page did not respond.");
    failed["error_code"] = json!("render_failed");
    failed["error_cause"] = json!("target");
    [
        ("grab.done", "grabDone", "A grab is done", GRAB_MESSAGE, done()),
        ("grab.failed", "grabFailed", "A grab has failed", GRAB_MESSAGE, failed),
        ("grab.changed", "grabChanged", "The image of a grab differs from the earlier one", GRAB_MESSAGE, changed),
        ("credits.low", "creditsLow", "The balance of the team is low", CREDITS_MESSAGE, low),
        ("monitor.changed", "monitorChanged", "A page that is monitored has changed", MONITOR_MESSAGE, monitor.clone()),
        (
            "monitor.failed",
            "monitorFailed",
            "Three runs of a monitor in a row have failed",
            MONITOR_MESSAGE,
            monitor.clone(),
        ),
        ("monitor.recovered", "monitorRecovered", "A run is done after failed ones", MONITOR_MESSAGE, monitor),
        (
            "site.finished",
            "siteFinished",
            "A site job has ended",
            SITE_MESSAGE,
            json!({ "site": site_examples::finished() }),
        ),
        ("webhook.test", "webhookTest", "A test was requested", TEST_MESSAGE, json!({ "webhook_id": EXAMPLE_ID })),
    ]
    .into_iter()
    .map(|(event, id, summary, schema, data)| {
        path(event, [(HttpMethod::Post, receive(event, id, summary, schema, &data))])
    })
    .collect()
}

/// The schemas of the messages.
pub(super) fn schemas() -> [(&'static str, Object); 5] {
    let webhook_id = text().description(Some("Id of the webhook that is tested."));
    let tested = ObjectBuilder::new().property("webhook_id", webhook_id).required("webhook_id");
    [
        (GRAB_MESSAGE, message(&["grab.done", "grab.failed", "grab.changed"], Ref::from_schema_name("Grab"))),
        (CREDITS_MESSAGE, message(&["credits.low"], balance())),
        (MONITOR_MESSAGE, message(&["monitor.changed", "monitor.failed", "monitor.recovered"], run_of_monitor())),
        (SITE_MESSAGE, message(&["site.finished"], ended_site())),
        (TEST_MESSAGE, message(&["webhook.test"], tested.build())),
    ]
}

/// The data of the message about a low balance.
fn balance() -> Object {
    let count = |about| integer(0, 1_000_000).description(Some(about));
    ObjectBuilder::new()
        .property("team_id", text().description(Some("Id of the team.")))
        .property("credits", count("Unspent credits, with those reserved for open grabs."))
        .property("alert_below", count("The number of credits that the owners chose."))
        .required("team_id")
        .required("credits")
        .required("alert_below")
        .build()
}

/// The data of the messages about a monitor.
fn run_of_monitor() -> Object {
    ObjectBuilder::new()
        .property("monitor", Ref::from_schema_name("Monitor"))
        .property("run", Ref::from_schema_name("MonitorRun"))
        .required("monitor")
        .required("run")
        .build()
}

/// The data of the message about a site job.
fn ended_site() -> Object {
    ObjectBuilder::new().property("site", Ref::from_schema_name("Site")).required("site").build()
}

fn message(events: &[&str], data: impl Into<RefOr<Schema>>) -> Object {
    let id =
        text().description(Some("Id of the message. It is the same at each attempt, so repeated ones can be found."));
    let event = text().enum_values(Some(events.iter().copied())).description(Some("What happened."));
    let timestamp = text().description(Some("When it happened, in UTC with milliseconds."));
    let environment = text().enum_values(Some(["live", "test"]));
    let members = ObjectBuilder::new()
        .property("id", id)
        .property("type", event)
        .property("timestamp", timestamp)
        .property("environment", environment)
        .property("data", data);
    ["id", "type", "timestamp", "environment", "data"].into_iter().fold(members, ObjectBuilder::required).build()
}

fn receive(event: &str, id: &str, summary: &str, schema: &str, data: &Value) -> OperationBuilder {
    let about = "Sent to the URL of a webhook, as Standard Webhooks specifies. Verify the signature before you read the \
                 body. Any 2xx within 15 seconds confirms it; otherwise it is sent again.";
    let example = json!({
        "id": MESSAGE_ID, "type": event, "timestamp": SENT_AT, "environment": "live", "data": data,
    });
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    OperationBuilder::new()
        .tag(tags::WEBHOOKS)
        .operation_id(Some(id))
        .summary(Some(summary))
        .description(Some(about))
        .securities(Some([SecurityRequirement::default()]))
        .parameter(header("webhook-id", "The same id as in the body.", json!(MESSAGE_ID)))
        .parameter(header("webhook-timestamp", "Seconds since 1970 at which this attempt was sent.", json!("1795253413")))
        .parameter(header(
            "webhook-signature",
            "HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}` in base64, after `v1,`. Two, separated by a space, \
             while a secret is rotated.",
            json!("v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
        ))
        .request_body(Some(body.content("application/json", json_content(schema, example).build()).build()))
        .response("2XX", ResponseBuilder::new().description("The message was received."))
}

fn header(name: &str, about: &str, example: Value) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(text()))
        .example(Some(example))
        .build()
}
