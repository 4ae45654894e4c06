//! The operations in the OpenAPI document.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{ContentBuilder, Required, ResponseBuilder};

use super::super::openapi::parts::{self, authenticated, json_content, success_response};
use super::super::openapi::tags;
use super::super::page;
use super::examples;

/// `POST /v1/monitors`.
pub(in super::super) fn create_operation() -> OperationBuilder {
    let about = "Captures a page by a schedule, and compares each capture with a baseline. When the page has changed, webhooks get \
                 `monitor.changed`, and the members who get the alerts of the team an e-mail. A run is an asynchronous grab: \
                 it spends one credit if it ends as `done`. A monitor with an interval runs at once.";
    let codes = [ErrorCode::BadRequest, ErrorCode::InvalidViewport, ErrorCode::SsrfDetected];
    let example = json!({ "capture": { "url": "https://example.com/prices", "full_page": true }, "every": "1h" });
    let created = success_response("Created.", &["Location"])
        .content("application/json", json_content("Monitor", examples::monitor()).build());
    authenticated(tags::MONITORS, "createMonitor", "Create a monitor", about, &codes)
        .request_body(Some(body("CreateMonitorRequest", example, Required::True)))
        .response("201", created)
}

/// `POST /v1/monitors/batch`.
pub(in super::super) fn create_batch_operation() -> OperationBuilder {
    let about = "Creates a monitor for each of up to 50 pages, all with the same settings: all of them, or none. Each has its own \
                 history and baseline. The first runs of monitors with an interval begin one after the other, within a tenth of the \
                 interval and at most five minutes.";
    let codes = [ErrorCode::BadRequest, ErrorCode::InvalidViewport, ErrorCode::SsrfDetected];
    let example = json!({
        "urls": ["https://example.com/prices", "https://example.org/"],
        "capture": { "full_page": true },
        "every": "1h",
    });
    let created = success_response("Created.", &[]).content(
        "application/json",
        json_content("MonitorBatch", json!({ "monitors": [examples::monitor()] })).build(),
    );
    authenticated(tags::MONITORS, "createMonitorBatch", "Create several monitors", about, &codes)
        .request_body(Some(body("CreateMonitorBatchRequest", example, Required::True)))
        .response("201", created)
}

/// `GET /v1/monitors`.
pub(in super::super) fn list_operation() -> OperationBuilder {
    let about = "The monitors of the key's team and environment, newest first. An app sees and changes only those that it has \
                 created, and they are deleted when its access ends. For the next page, send the id of the last monitor as \
                 `starting_after`, or follow the `Link` with `rel=\"next\"`.";
    let all = json!({ "data": [examples::monitor()], "has_more": false });
    let page = success_response("One page of monitors.", &["Link"])
        .content("application/json", json_content("MonitorList", all).build());
    let operation = authenticated(tags::MONITORS, "listMonitors", "List monitors", about, &[ErrorCode::BadRequest]);
    page::paged(operation, "monitors", "monitor").response("200", page)
}

/// `GET /v1/monitors/{id}`.
pub(in super::super) fn fetch_operation() -> OperationBuilder {
    authenticated(tags::MONITORS, "getMonitor", "Fetch a monitor", "One monitor.", &[ErrorCode::NotFound])
        .parameter(parts::id("monitor"))
        .response("200", monitor("The monitor."))
}

/// `PATCH /v1/monitors/{id}`.
pub(in super::super) fn update_operation() -> OperationBuilder {
    let about = "Changes the members in the body. A new schedule, and the end of a pause, begin now. Members that callers cannot \
                 choose, such as `state`, are ignored. Leave out `capture` unless it changes: a response does not have its secret options.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest, ErrorCode::InvalidViewport, ErrorCode::SsrfDetected];
    authenticated(tags::MONITORS, "updateMonitor", "Change a monitor", about, &codes)
        .parameter(parts::id("monitor"))
        .request_body(Some(body("UpdateMonitorRequest", json!({ "paused": true }), Required::True)))
        .response("200", monitor("The changed monitor."))
}

/// `DELETE /v1/monitors/{id}`.
pub(in super::super) fn delete_operation() -> OperationBuilder {
    let about = "Deletes a monitor with its runs. Their grabs stay.";
    authenticated(tags::MONITORS, "deleteMonitor", "Delete a monitor", about, &[ErrorCode::NotFound])
        .parameter(parts::id("monitor"))
        .response("204", success_response("The monitor is deleted. No body.", &[]))
}

/// `GET /v1/monitors/{id}/runs`.
pub(in super::super) fn runs_operation() -> OperationBuilder {
    let about = "The runs of a monitor, newest first. The captures are grabs of the team.";
    let all = json!({ "data": [examples::run()], "has_more": true });
    let page = success_response("One page of runs.", &["Link"])
        .content("application/json", json_content("MonitorRunList", all).build());
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest];
    let operation = authenticated(tags::MONITORS, "listMonitorRuns", "List the runs of a monitor", about, &codes)
        .parameter(parts::id("monitor"));
    page::paged(operation, "runs", "run").response("200", page)
}

/// `GET /v1/monitors/{id}/history.zip`.
pub(in super::super) fn history_operation() -> OperationBuilder {
    let about = "The images of the runs that still exist, and `runs.json`: an object with the `monitor` and its `runs`, newest \
                 first. `image` of a run is the name of its file, or null. The images have at most 1 GiB together; those of the \
                 oldest runs are left out beyond that. An account receives one archive at a time.";
    // No schema: OpenAPI has none for the content of archives.
    let archive = ContentBuilder::new().build();
    authenticated(tags::MONITORS, "getMonitorHistory", "Download the history", about, &[ErrorCode::NotFound])
        .parameter(parts::id("monitor"))
        .response("200", success_response("A zip archive.", &[]).content("application/zip", archive))
}

/// `POST /v1/monitors/{id}/feed`.
pub(in super::super) fn open_feed_operation() -> OperationBuilder {
    let about = "Gives an Atom feed and a badge of the monitor public addresses, which replace the former ones. They cannot be \
                 read again. Whoever knows them can read both, without a key.";
    let created = success_response("The addresses.", &[])
        .content("application/json", json_content("MonitorFeed", examples::feed()).build());
    authenticated(tags::MONITORS, "createMonitorFeed", "Create a feed", about, &[ErrorCode::NotFound])
        .parameter(parts::id("monitor"))
        .response("201", created)
}

/// `DELETE /v1/monitors/{id}/feed`.
pub(in super::super) fn close_feed_operation() -> OperationBuilder {
    let about = "Removes the public addresses of the feed and the badge.";
    authenticated(tags::MONITORS, "deleteMonitorFeed", "Turn off the feed", about, &[ErrorCode::NotFound])
        .parameter(parts::id("monitor"))
        .response("204", success_response("There are no addresses any more. No body.", &[]))
}

/// `POST /v1/monitors/{id}/accept`.
pub(in super::super) fn accept_operation() -> OperationBuilder {
    let about = "Makes the capture of a run the baseline that later ones are compared with.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest];
    authenticated(tags::MONITORS, "acceptBaseline", "Accept a capture", about, &codes)
        .parameter(parts::id("monitor"))
        .request_body(Some(body("AcceptBaselineRequest", json!({}), Required::False)))
        .response("200", monitor("The monitor with its new baseline."))
}

fn monitor(about: &str) -> ResponseBuilder {
    success_response(about, &[]).content("application/json", json_content("Monitor", examples::monitor()).build())
}

fn body(schema: &str, example: Value, required: Required) -> RequestBody {
    let body = RequestBodyBuilder::new().required(Some(required));
    body.content("application/json", json_content(schema, example).build()).build()
}
