//! Endpoints: register, read, change, rotate, remove.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{
    CreateWebhookRequest, DeleteWebhookRequest, GetWebhookRequest, ListWebhooksRequest, RotateWebhookSecretRequest,
    UpdateWebhookRequest, Webhook,
};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use prost_types::FieldMask;

use super::super::error::Failure;
use super::super::{Edge, call, headers, id};
use super::request::{Asked, close_if};
use super::wire;

type Answered = Result<Response, Failure>;
type Id = Result<Path<String>, PathRejection>;

/// `POST /v1/webhooks`.
pub(in super::super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (asked, unread) = Asked::read(&parts, body).await;
    let mut response = registered(&edge, &parts.headers, asked).await.into_response();
    close_if(unread, parts.version, response.headers_mut());
    response
}

async fn registered(edge: &Edge, headers: &HeaderMap, asked: Asked) -> Answered {
    // A status is of no meaning here, whatever it is: an endpoint begins enabled.
    let Asked { url, events, description, status: _, mut unparsed } = asked;
    unparsed.retain(|field| field.field != "status");
    let message = CreateWebhookRequest { url, events: events.unwrap_or_default(), description, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.create_webhook(sent)).await?;
    let webhook = answer.message.webhook;
    let location = webhook.as_ref().map(|webhook| format!("/v1/webhooks/{}", webhook.id));
    let location = location.and_then(|location| HeaderValue::from_str(&location).ok());
    let mut response = shown(StatusCode::CREATED, webhook.as_ref(), &answer.metadata, headers)?;
    response.headers_mut().insert(LOCATION, location.ok_or_else(|| incomplete(headers))?);
    Ok(response)
}

/// `GET /v1/webhooks`.
pub(in super::super) async fn list(State(edge): State<Arc<Edge>>, request: Request) -> Answered {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, ListWebhooksRequest {}, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.list_webhooks(sent)).await?;
    let data = answer.message.webhooks.iter().map(wire::webhook).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(headers))?;
    let page = wire::WebhookList { data, has_more: answer.message.has_more };
    Ok(headers::json(StatusCode::OK, headers::PRIVATE, &page, &answer.metadata))
}

/// `GET /v1/webhooks/{id}`.
pub(in super::super) async fn fetch(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> Answered {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetWebhookRequest { id: id(path) }, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.get_webhook(sent)).await?;
    shown(StatusCode::OK, answer.message.webhook.as_ref(), &answer.metadata, headers)
}

/// `PATCH /v1/webhooks/{id}`.
pub(in super::super) async fn update(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (asked, unread) = Asked::read(&parts, body).await;
    let mut response = changed(&edge, &parts.headers, id(path), asked).await.into_response();
    close_if(unread, parts.version, response.headers_mut());
    response
}

async fn changed(edge: &Edge, headers: &HeaderMap, id: String, asked: Asked) -> Answered {
    let (webhook, paths, unparsed) = asked.into_change();
    let update_mask = Some(FieldMask { paths });
    let message = UpdateWebhookRequest { id, webhook: Some(webhook), update_mask, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.update_webhook(sent)).await?;
    shown(StatusCode::OK, answer.message.webhook.as_ref(), &answer.metadata, headers)
}

/// `DELETE /v1/webhooks/{id}`. A body is not read, because nothing in it could matter.
pub(in super::super) async fn delete(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> Answered {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, DeleteWebhookRequest { id: id(path) }, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.delete_webhook(sent)).await?;
    let mut response = headers::answer(StatusCode::NO_CONTENT, headers::PRIVATE, Body::empty(), &answer.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}

/// `POST /v1/webhooks/{id}/rotate_secret`. A body is not read.
pub(in super::super) async fn rotate_secret(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> Answered {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, RotateWebhookSecretRequest { id: id(path) }, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.rotate_webhook_secret(sent)).await?;
    shown(StatusCode::OK, answer.message.webhook.as_ref(), &answer.metadata, headers)
}

fn shown(status: StatusCode, webhook: Option<&Webhook>, metadata: &HeaderMap, request: &HeaderMap) -> Answered {
    let shown = webhook.and_then(wire::webhook).ok_or_else(|| incomplete(request))?;
    Ok(headers::json(status, headers::PRIVATE, &shown, metadata))
}

fn incomplete(request: &HeaderMap) -> Failure {
    Failure::internal("the core told an incomplete webhook", call::request_id(request))
}
