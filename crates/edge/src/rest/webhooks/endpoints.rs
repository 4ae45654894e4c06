//! Endpoints: create, read, update, rotate the secret, delete.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{
    CreateWebhookRequest, DeleteWebhookRequest, ErrorCode, GetWebhookRequest, ListWebhooksRequest,
    RotateWebhookSecretRequest, UpdateWebhookRequest, Webhook,
};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use prost_types::FieldMask;
use serde_json::{Value, json};
use utoipa::openapi::Required;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};

use super::super::error::ApiError;
use super::super::openapi::parts::{self, json_content, managing, success_response};
use super::super::openapi::tags;
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
use super::examples;
use super::request::EndpointRequest;
use super::wire;

type HandlerResult = Result<Response, ApiError>;
type Id = Result<Path<String>, PathRejection>;

/// `POST /v1/webhooks`.
pub(in super::super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    // A status is ignored, valid or not: new endpoints are enabled.
    let EndpointRequest { url, events, description, status: _, mut unparsed } =
        EndpointRequest::read(headers, body).await;
    unparsed.retain(|field| field.field != "status");
    let message = CreateWebhookRequest { url, events: events.unwrap_or_default(), description, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.create_webhook(sent)).await?;
    let webhook = reply.message.webhook;
    let location = webhook.as_ref().map(|webhook| format!("/v1/webhooks/{}", webhook.id));
    let location = location.and_then(|location| HeaderValue::from_str(&location).ok());
    let mut response = webhook_response(StatusCode::CREATED, webhook.as_ref(), &reply.metadata, headers)?;
    response.headers_mut().insert(LOCATION, location.ok_or_else(|| incomplete(headers))?);
    Ok(response)
}

/// `GET /v1/webhooks`.
pub(in super::super) async fn list(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, ListWebhooksRequest {}, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.list_webhooks(sent)).await?;
    let data = reply.message.webhooks.iter().map(wire::webhook).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(headers))?;
    let page = wire::WebhookList { data, has_more: reply.message.has_more };
    Ok(headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &page, &reply.metadata))
}

/// `GET /v1/webhooks/{id}`.
pub(in super::super) async fn fetch(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetWebhookRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.get_webhook(sent)).await?;
    webhook_response(StatusCode::OK, reply.message.webhook.as_ref(), &reply.metadata, headers)
}

/// `PATCH /v1/webhooks/{id}`.
pub(in super::super) async fn update(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let (webhook, paths, unparsed) = EndpointRequest::read(headers, body).await.into_change();
    let update_mask = Some(FieldMask { paths });
    let message = UpdateWebhookRequest { id: id(path), webhook: Some(webhook), update_mask, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.update_webhook(sent)).await?;
    webhook_response(StatusCode::OK, reply.message.webhook.as_ref(), &reply.metadata, headers)
}

/// `DELETE /v1/webhooks/{id}`. The request body is ignored.
pub(in super::super) async fn delete(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, DeleteWebhookRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.delete_webhook(sent)).await?;
    let mut response =
        headers::response(StatusCode::NO_CONTENT, headers::PRIVATE_NO_STORE, Body::empty(), &reply.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}

/// `POST /v1/webhooks/{id}/rotate_secret`. The request body is ignored.
pub(in super::super) async fn rotate_secret(
    State(edge): State<Arc<Edge>>,
    path: Id,
    request: Request,
) -> HandlerResult {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, RotateWebhookSecretRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.rotate_webhook_secret(sent)).await?;
    webhook_response(StatusCode::OK, reply.message.webhook.as_ref(), &reply.metadata, headers)
}

fn webhook_response(
    status: StatusCode,
    webhook: Option<&Webhook>,
    metadata: &HeaderMap,
    request: &HeaderMap,
) -> HandlerResult {
    let shown = webhook.and_then(wire::webhook).ok_or_else(|| incomplete(request))?;
    Ok(headers::json_response(status, headers::PRIVATE_NO_STORE, &shown, metadata))
}

fn incomplete(request: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete webhook", call::request_id(request))
}

/// `POST /v1/webhooks` in the OpenAPI document.
pub(in super::super) fn create_operation() -> OperationBuilder {
    let about = "Registers a URL for signed messages about asynchronous live grabs that have ended. The `secret` is only \
                 returned in this response. A team may have ten webhooks in each environment.";
    let codes = [ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let example = json!({ "url": "https://example.com/hooks/grabd", "events": ["grab.done", "grab.failed"] });
    let registered = success_response("Registered, with its secret.", &["Location"])
        .content("application/json", json_content("Webhook", examples::with_secret()).build());
    managing(tags::WEBHOOKS, "createWebhook", "Register a webhook", about, &codes)
        .request_body(Some(body("CreateWebhookRequest", example)))
        .response("201", registered)
}

/// `GET /v1/webhooks` in the OpenAPI document.
pub(in super::super) fn list_operation() -> OperationBuilder {
    let about = "The webhooks of the key's team and environment, newest first, all on one page. An app sees and changes \
                 only those that it has created, and they are deleted when its access ends.";
    let all = json!({ "data": [examples::webhook()], "has_more": false });
    let page =
        success_response("All webhooks.", &[]).content("application/json", json_content("WebhookList", all).build());
    managing(tags::WEBHOOKS, "listWebhooks", "List webhooks", about, &[]).response("200", page)
}

/// `GET /v1/webhooks/{id}` in the OpenAPI document.
pub(in super::super) fn fetch_operation() -> OperationBuilder {
    let about = "One webhook, without its secret.";
    let response = success_response("The webhook.", &[])
        .content("application/json", json_content("Webhook", examples::webhook()).build());
    managing(tags::WEBHOOKS, "getWebhook", "Fetch a webhook", about, &[ErrorCode::NotFound])
        .parameter(parts::id("webhook"))
        .response("200", response)
}

/// `PATCH /v1/webhooks/{id}` in the OpenAPI document.
pub(in super::super) fn update_operation() -> OperationBuilder {
    let about =
        "Changes the members in the body. Disabling cancels pending deliveries; enabling clears earlier failures.";
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest, ErrorCode::SsrfDetected];
    let changed = success_response("The changed webhook.", &[])
        .content("application/json", json_content("Webhook", examples::webhook()).build());
    managing(tags::WEBHOOKS, "updateWebhook", "Change a webhook", about, &codes)
        .parameter(parts::id("webhook"))
        .request_body(Some(body("UpdateWebhookRequest", json!({ "status": "disabled" }))))
        .response("200", changed)
}

/// `DELETE /v1/webhooks/{id}` in the OpenAPI document.
pub(in super::super) fn delete_operation() -> OperationBuilder {
    let about = "Removes a webhook. Its pending deliveries are not sent.";
    managing(tags::WEBHOOKS, "deleteWebhook", "Remove a webhook", about, &[ErrorCode::NotFound])
        .parameter(parts::id("webhook"))
        .response("204", success_response("The webhook is removed. No body.", &[]))
}

/// `POST /v1/webhooks/{id}/rotate_secret` in the OpenAPI document.
pub(in super::super) fn rotate_secret_operation() -> OperationBuilder {
    let about = "Creates a new secret, which is only returned in this response. For 24 hours messages are also signed with \
                 the old one, so that you can switch without losing a message.";
    let rotated = success_response("The webhook with its new secret.", &[])
        .content("application/json", json_content("Webhook", examples::with_secret()).build());
    managing(tags::WEBHOOKS, "rotateWebhookSecret", "Rotate the secret", about, &[ErrorCode::NotFound])
        .parameter(parts::id("webhook"))
        .response("200", rotated)
}

fn body(schema: &str, example: Value) -> RequestBody {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    body.content("application/json", json_content(schema, example).build()).build()
}
