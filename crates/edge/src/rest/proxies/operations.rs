//! The operations in the OpenAPI document.

use grabd_proto::v1::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{Required, ResponseBuilder};

use super::super::openapi::parts::{self, json_content, managing, success_response};
use super::super::openapi::tags;
use super::examples;

/// `POST /v1/proxies`.
pub(in super::super) fn create_operation() -> OperationBuilder {
    let about = "Stores a server of yours, through which pages can be loaded: a capture names it as `proxy`. It speaks HTTP CONNECT \
                 or SOCKS 5, and is at a public address. The user name and password are encrypted and never returned. A team \
                 may have 20 proxies in each environment.";
    let codes = [ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let example = json!({
        "name": "Office in Vienna", "url": "http://proxy.example.com:3128", "username": "grabs", "password": "a secret",
    });
    let created = success_response("Created.", &["Location"])
        .content("application/json", json_content("Proxy", examples::proxy()).build());
    managing(tags::PROXIES, "createProxy", "Create a proxy", about, &codes)
        .request_body(Some(body("CreateProxyRequest", example)))
        .response("201", created)
}

/// `GET /v1/proxies`.
pub(in super::super) fn list_operation() -> OperationBuilder {
    let about = "The proxies of the key's team and environment, newest first, all on one page. An app sees, uses and changes only \
                 those that it has created, and they are deleted when its access ends.";
    let all = json!({ "data": [examples::proxy()], "has_more": false });
    let page =
        success_response("All proxies.", &[]).content("application/json", json_content("ProxyList", all).build());
    managing(tags::PROXIES, "listProxies", "List proxies", about, &[ErrorCode::BadRequest]).response("200", page)
}

/// `GET /v1/proxies/{id}`.
pub(in super::super) fn fetch_operation() -> OperationBuilder {
    let about = "One proxy, with its last use and its last failure.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest];
    managing(tags::PROXIES, "getProxy", "Fetch a proxy", about, &codes)
        .parameter(parts::id("proxy"))
        .response("200", proxy("The proxy."))
}

/// `PATCH /v1/proxies/{id}`.
pub(in super::super) fn update_operation() -> OperationBuilder {
    let about = "Changes the members in the body. Captures that are rendered from then on use them.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    managing(tags::PROXIES, "updateProxy", "Change a proxy", about, &codes)
        .parameter(parts::id("proxy"))
        .request_body(Some(body("UpdateProxyRequest", json!({ "password": "another secret" }))))
        .response("200", proxy("The changed proxy."))
}

/// `DELETE /v1/proxies/{id}`.
pub(in super::super) fn delete_operation() -> OperationBuilder {
    let about = "Deletes a proxy. Captures that name it fail from then on, and are not charged.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest];
    managing(tags::PROXIES, "deleteProxy", "Delete a proxy", about, &codes)
        .parameter(parts::id("proxy"))
        .response("204", success_response("The proxy is deleted. No body.", &[]))
}

fn proxy(about: &str) -> ResponseBuilder {
    success_response(about, &[]).content("application/json", json_content("Proxy", examples::proxy()).build())
}

fn body(schema: &str, example: Value) -> RequestBody {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    body.content("application/json", json_content(schema, example).build()).build()
}
