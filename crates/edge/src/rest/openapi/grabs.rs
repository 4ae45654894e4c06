//! Operations on grabs.

use grabd_api::words;
use grabd_proto::v1::ErrorCode;
use serde_json::json;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{
    ArrayBuilder, ContentBuilder, Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Required, Schema, Type,
};

use super::super::captures;
use super::errors;
use super::examples::{done, pending};
use super::parts::{
    authenticated, id, if_none_match, integer, json_content, managing, not_modified, parameter, path, success_response,
    text,
};

const TAG: &str = "Grabs";

/// All paths of grabs.
pub(super) fn operations() -> Vec<(&'static str, PathItem)> {
    vec![
        path("/grabs", [(HttpMethod::Post, create()), (HttpMethod::Get, list())]),
        path("/grabs/batch", [(HttpMethod::Post, create_batch())]),
        path("/grabs/{id}", [(HttpMethod::Get, fetch()), (HttpMethod::Delete, delete())]),
        path("/grabs/{id}/events", [(HttpMethod::Get, events())]),
    ]
}

fn create() -> OperationBuilder {
    let about = "Renders the page and returns the finished grab, within 25 seconds. With a live key and `Prefer: \
                 respond-async`, or `?async=true`, the response is 202 at once and the page is rendered later. A test key \
                 always gets its placeholder at once.\n\nOne credit is spent when the grab ends as `done`. Closing the \
                 connection cancels nothing: retry with the same `Idempotency-Key` to get the result.";
    let key = text().min_length(Some(1)).max_length(Some(255)).pattern(Some(r"^[\x21-\x7e]+$"));
    let idempotency_key = parameter(
        ParameterIn::Header,
        "Idempotency-Key",
        "A key that you choose, 1 to 255 visible ASCII characters. Retries with the same key return the original response.",
        key,
        Some(json!("8e03978e-40d5-43dd-bc93-6894a57f9324")),
    );
    let prefer = parameter(
        ParameterIn::Header,
        "Prefer",
        "`respond-async` queues the grab and answers 202 (live keys only).",
        text(),
        Some(json!("respond-async")),
    );
    let asynchronous = parameter(
        ParameterIn::Query,
        "async",
        "The same as `Prefer: respond-async`. If either asks for it, the grab is queued.",
        ObjectBuilder::new().schema_type(Type::Boolean),
        None,
    );
    let example = json!({ "url": "https://example.com", "width": 1280, "height": 720, "format": "png" });
    let body = RequestBodyBuilder::new()
        .required(Some(Required::True))
        .content("application/json", json_content("CreateGrabRequest", example).build());
    let codes = [
        ErrorCode::BadRequest,
        ErrorCode::InvalidViewport,
        ErrorCode::SsrfDetected,
        ErrorCode::IdempotencyMismatch,
        ErrorCode::CreditsExhausted,
        ErrorCode::IdempotencyConflict,
        ErrorCode::RenderBlocked,
        ErrorCode::QueueLimitExceeded,
        ErrorCode::RenderFailed,
    ];
    let captured = success_response("Captured; the image is ready.", &["Location", "Idempotent-Replayed"])
        .content("application/json", json_content("Grab", done()).build());
    let queued = success_response(
        "Queued. Poll the grab at `Location`, or follow its events.",
        &["Location", "Retry-After", "Preference-Applied", "Idempotent-Replayed"],
    )
    .content("application/json", json_content("Grab", pending()).build());
    authenticated(TAG, "createGrab", "Capture a page", about, &codes)
        .parameter(idempotency_key)
        .parameter(prefer)
        .parameter(asynchronous)
        .request_body(Some(body.build()))
        .response("200", captured)
        .response("202", queued)
}

fn create_batch() -> OperationBuilder {
    let about = format!(
        "Queues up to {} captures, as `Prefer: respond-async` does for one. Each counts as one request. The response has \
         one result for each capture, in the same order: its grab, or why it was refused. When the limits or credits are \
         used up, the remaining captures get that error; if it meets the first one, it is the response.\n\nRetry with \
         the same `Idempotency-Key`: what was created before is returned again, and what was refused is tried again.",
        captures::MAX_GRABS
    );
    let key = text().min_length(Some(1)).max_length(Some(captures::MAX_KEY_CHARS)).pattern(Some(r"^[\x21-\x7e]+$"));
    let idempotency_key = parameter(
        ParameterIn::Header,
        "Idempotency-Key",
        "A key that you choose. Capture number N of the batch, from 0, has the key followed by `#N`.",
        key,
        Some(json!("8e03978e-40d5-43dd-bc93-6894a57f9324")),
    );
    let example = json!({
        "grabs": [{ "url": "https://example.com" }, { "url": "https://example.org", "full_page": true }],
        "options": { "format": "webp" },
    });
    let body = RequestBodyBuilder::new()
        .required(Some(Required::True))
        .content("application/json", json_content("CreateBatchRequest", example).build());
    let codes = [ErrorCode::BadRequest, ErrorCode::CreditsExhausted, ErrorCode::QueueLimitExceeded];
    let refused = json!({ "code": "bad_request", "message": "`url` must be …" });
    let refused = json!({ "grab": null, "error": refused, "error_cause": "request" });
    let results = json!({ "results": [{ "grab": pending(), "error": null }, refused] });
    let response = success_response("One result for each capture.", &["Retry-After"])
        .content("application/json", json_content("Batch", results).build());
    authenticated(TAG, "createBatch", "Capture several pages", &about, &codes)
        .parameter(idempotency_key)
        .request_body(Some(body.build()))
        .response("200", response)
}

/// The response to a batch.
pub(super) fn batch() -> Object {
    let null = || ObjectBuilder::new().schema_type(Type::Null);
    let or_null = |schema: RefOr<Schema>, about: &str| -> Schema {
        OneOfBuilder::new().item(schema).item(null()).description(Some(about)).build().into()
    };
    let grab = or_null(Ref::from_schema_name("Grab").into(), "The grab. Null if none was created.");
    let error = or_null(errors::error().into(), "Why no grab was created. Null if one was.");
    let mut cause = words::cause_schema();
    cause.description = Some("Whose fault the error is. Only present if no grab was created.".to_owned());
    let retry_after = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(
        "Seconds after which the capture may be sent again, with the same `Idempotency-Key`. Only present if the error is a \
         limit or passes by itself.",
    ));
    let result = ObjectBuilder::new()
        .property("grab", grab)
        .property("error", error)
        .property("error_cause", cause)
        .property("retry_after", retry_after)
        .required("grab")
        .required("error");
    ObjectBuilder::new()
        .description(Some("One result for each capture, in the order of the request."))
        .property("results", ArrayBuilder::new().items(result))
        .required("results")
        .build()
}

fn list() -> OperationBuilder {
    let about = "The grabs of the key's team and environment, newest first. For the next page, send the id of the last grab \
                 as `starting_after`, or follow the `Link` with `rel=\"next\"`. `starting_after` and `ending_before` exclude \
                 each other.";
    let cursor = || text().format(Some(utoipa::openapi::SchemaFormat::Custom("uuid".to_owned())));
    let page = success_response("One page of grabs.", &["Link"])
        .content("application/json", json_content("GrabList", json!({ "data": [done()], "has_more": true })).build());
    authenticated(TAG, "listGrabs", "List grabs", about, &[ErrorCode::BadRequest])
        .parameter(parameter(
            ParameterIn::Query,
            "limit",
            "Maximum number of grabs on the page.",
            integer(1, 100).default(Some(json!(25))),
            None,
        ))
        .parameter(parameter(ParameterIn::Query, "status", "Only grabs in this state.", words::status_schema(), None))
        .parameter(parameter(ParameterIn::Query, "starting_after", "Only grabs older than this one.", cursor(), None))
        .parameter(parameter(ParameterIn::Query, "ending_before", "Only grabs newer than this one.", cursor(), None))
        .response("200", page)
}

fn fetch() -> OperationBuilder {
    let about = "The current state of the grab. With `Prefer: wait=N` the response waits up to N seconds, at most 25: until \
                 the grab has ended or, together with `If-None-Match`, until it has changed.";
    let prefer = parameter(
        ParameterIn::Header,
        "Prefer",
        "`wait=N` delays the response until the grab changes, at most N seconds.",
        text(),
        None,
    );
    authenticated(TAG, "getGrab", "Fetch a grab", about, &[ErrorCode::NotFound])
        .parameter(id("grab"))
        .parameter(prefer)
        .parameter(if_none_match())
        .response(
            "200",
            success_response("The grab.", &["ETag", "Preference-Applied"])
                .content("application/json", json_content("Grab", done()).build()),
        )
        .response("304", not_modified(&["Preference-Applied"]))
}

fn delete() -> OperationBuilder {
    let about = "Permanently deletes the image: its URL stops working at once. The grab stays in the list, with an \
                 `image_url` of null, and its credit stays spent. Repeating the request has no effect. A grab that is \
                 still open runs to its end and then has no image.";
    managing(TAG, "deleteGrab", "Delete an image", about, &[ErrorCode::NotFound])
        .parameter(id("grab"))
        .response("204", success_response("The image is deleted. No body.", &[]))
}

fn events() -> OperationBuilder {
    let about = "Server-Sent Events: the current state of the grab, then its state after each change, until it has ended. \
                 Each event is named `grab` and its data is a Grab. To resume, send its id as `Last-Event-ID`, as browsers \
                 do automatically. A reader that resumes after the last event gets 204.\n\nWhile the page is rendered, \
                 events named `stage` come between them, at most one for each stage. Their data is the Grab with \
                 `stages`, all that were reached so far, and their id is that of the last `grab`. The stages are not \
                 stored: some may be missing.";
    let last = parameter(
        ParameterIn::Header,
        "Last-Event-ID",
        "Id of the last event you received; only later states are sent.",
        text(),
        None,
    );
    let mut rendering = pending();
    rendering["status"] = json!("processing");
    rendering["stages"] = json!([{ "stage": "navigating", "ms": 3 }, { "stage": "loaded", "ms": 412 }]);
    let example = format!("event: stage\nid: 2\ndata: {rendering}\n\nevent: grab\nid: 4\ndata: {}\n\n", done());
    // No schema: OpenAPI 3.1 cannot describe single events of a stream.
    let stream = ContentBuilder::new().example(Some(json!(example)));
    authenticated(TAG, "watchGrab", "Follow a grab", about, &[ErrorCode::NotFound])
        .parameter(id("grab"))
        .parameter(last)
        .response("200", success_response("A stream of events.", &[]).content("text/event-stream", stream.build()))
        .response("204", success_response("The grab has ended and you have seen it. No body.", &[]))
}
