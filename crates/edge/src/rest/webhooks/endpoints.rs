//! Endpoints: create, read, update, rotate the secret, delete.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{
    CreateWebhookRequest, DeleteWebhookRequest, GetWebhookRequest, ListWebhooksRequest, RotateWebhookSecretRequest,
    UpdateWebhookRequest, Webhook,
};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use prost_types::FieldMask;

use super::super::error::ApiError;
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
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
