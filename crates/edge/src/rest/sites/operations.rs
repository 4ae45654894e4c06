//! The operations in the OpenAPI document.

use grabd_proto::v1::ErrorCode;
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{Required, ResponseBuilder};

use super::super::openapi::parts::{self, authenticated, integer, json_content, parameter, success_response};
use super::super::openapi::tags;
use super::super::page;
use super::examples;

/// `POST /v1/sites`.
pub(in super::super) fn create_operation() -> OperationBuilder {
    let about = "Captures many pages of one site. Their addresses come from the links of its pages, beginning with `url`, or from a \
                 `sitemap`. Each capture is an asynchronous grab: it spends one credit if it ends as `done`. At most five of a job \
                 are open at a time, the site is asked at the rate of `requests_per_minute`, and its robots.txt is followed. Read \
                 the job until `finished_at` is set, or get the webhook `site.finished`.";
    let codes = [ErrorCode::BadRequest, ErrorCode::InvalidViewport, ErrorCode::SsrfDetected];
    let example =
        json!({ "url": "https://example.com/docs/", "include": ["/docs/*"], "capture": { "full_page": true } });
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    let body = body.content("application/json", json_content("CreateSiteRequest", example).build()).build();
    let created = success_response("Accepted. It begins at once.", &["Location"])
        .content("application/json", json_content("Site", examples::site()).build());
    authenticated(tags::SITES, "createSite", "Capture a site", about, &codes)
        .request_body(Some(body))
        .response("202", created)
}

/// `GET /v1/sites`.
pub(in super::super) fn list_operation() -> OperationBuilder {
    let about = "The site jobs of the key's team and environment, newest first. They are deleted 30 days after their end, and the \
                 oldest ones when there are more than 100. An app sees only those that it has created, and they are deleted when its \
                 access ends. For the next page, send the id of the last job as `starting_after`, or follow the `Link` with \
                 `rel=\"next\"`.";
    let all = json!({ "data": [examples::site()], "has_more": false });
    let list = success_response("One page of jobs.", &["Link"])
        .content("application/json", json_content("SiteList", all).build());
    let operation = authenticated(tags::SITES, "listSites", "List site jobs", about, &[ErrorCode::BadRequest]);
    page::paged(operation, "jobs", "job").response("200", list)
}

/// `GET /v1/sites/{id}`.
pub(in super::super) fn fetch_operation() -> OperationBuilder {
    authenticated(tags::SITES, "getSite", "Fetch a site job", "One site job.", &[ErrorCode::NotFound])
        .parameter(parts::id("site job"))
        .response("200", site("The job."))
}

/// `GET /v1/sites/{id}/pages`.
pub(in super::super) fn pages_operation() -> OperationBuilder {
    let about = "The pages of a site job, in the order of discovery, with those that are not captured and why. For the next ones, \
                 send the number of the last page as `starting_after`, or follow the `Link` with `rel=\"next\"`.";
    let all = json!({ "data": [examples::page()], "has_more": true });
    let list = success_response("Some pages of the job.", &["Link"])
        .content("application/json", json_content("SitePageList", all).build());
    let limit = integer(1, 100).default(Some(json!(25)));
    let cursor = integer(0, 1_000_000);
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest];
    authenticated(tags::SITES, "listSitePages", "List the pages of a site job", about, &codes)
        .parameter(parts::id("site job"))
        .parameter(parameter(ParameterIn::Query, "limit", "Maximum number of pages in the response.", limit, None))
        .parameter(parameter(
            ParameterIn::Query,
            "starting_after",
            "Only pages after the one with this number.",
            cursor,
            None,
        ))
        .response("200", list)
}

/// `POST /v1/sites/{id}/cancel`.
pub(in super::super) fn cancel_operation() -> OperationBuilder {
    let about = "Cancels a site job: waiting pages are not captured any more, and captures that run end as usual. A job that has \
                 ended stays as it is.";
    authenticated(tags::SITES, "cancelSite", "Cancel a site job", about, &[ErrorCode::NotFound])
        .parameter(parts::id("site job"))
        .response("200", site("The job."))
}

/// `DELETE /v1/sites/{id}`.
pub(in super::super) fn delete_operation() -> OperationBuilder {
    let about = "Deletes a site job with its list of pages. Its captures are grabs of their own, and stay. A job that is not \
                 finished captures nothing more.";
    authenticated(tags::SITES, "deleteSite", "Delete a site job", about, &[ErrorCode::NotFound])
        .parameter(parts::id("site job"))
        .response("204", success_response("The job is deleted. No body.", &[]))
}

fn site(about: &str) -> ResponseBuilder {
    success_response(about, &[]).content("application/json", json_content("Site", examples::site()).build())
}
