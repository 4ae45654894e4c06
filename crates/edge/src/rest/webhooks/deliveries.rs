//! Deliveries of an endpoint: list, test and redeliver.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{Delivery, ErrorCode, ListDeliveriesRequest, RedeliverWebhookRequest, TestWebhookRequest};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{Required, ResponseBuilder, SchemaFormat};

use super::super::error::ApiError;
use super::super::openapi::examples::EXAMPLE_ID;
use super::super::openapi::parts::{self, json_content, managing, success_response, text};
use super::super::openapi::tags;
use super::super::page::{self, PageQuery};
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
use super::examples;
use super::wire;

type HandlerResult = Result<Response, ApiError>;

/// `GET /v1/webhooks/{id}/deliveries`.
pub(in super::super) async fn deliveries(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> HandlerResult {
    let (parts, _) = request.into_parts();
    let id = id(path);
    let PageQuery { limit, starting_after, unparsed } = PageQuery::from_uri(&parts.uri);
    let message = ListDeliveriesRequest { id: id.clone(), limit, starting_after, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_deliveries(sent)).await?;
    let deliveries = &reply.message.deliveries;
    let data = deliveries.iter().map(wire::delivery).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let shown = wire::DeliveryList { data, has_more: reply.message.has_more };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &shown, &reply.metadata);
    if let (true, Some(oldest)) = (shown.has_more, deliveries.last()) {
        page::add_next(&mut response, &format!("{}/v1/webhooks/{id}/deliveries", edge.origin), limit, &oldest.id);
    }
    Ok(response)
}

/// `POST /v1/webhooks/{id}/test`. The request body is ignored.
pub(in super::super) async fn test(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> HandlerResult {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, TestWebhookRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.test_webhook(sent)).await?;
    delivery_response(reply.message.delivery.as_ref(), &reply.metadata, headers)
}

/// `POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver`. The request body is ignored.
pub(in super::super) async fn redeliver(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> HandlerResult {
    let headers = request.headers();
    // Ids that are not UTF-8 are forwarded as empty, so that the core checks the credential and the limits first.
    let (id, delivery_id) = path.map(|Path(ids)| ids).unwrap_or_default();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, RedeliverWebhookRequest { id, delivery_id }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.redeliver_webhook(sent)).await?;
    delivery_response(reply.message.delivery.as_ref(), &reply.metadata, headers)
}

fn delivery_response(delivery: Option<&Delivery>, metadata: &HeaderMap, request: &HeaderMap) -> HandlerResult {
    let shown = delivery.and_then(wire::delivery).ok_or_else(|| incomplete(request))?;
    Ok(headers::json_response(StatusCode::ACCEPTED, headers::PRIVATE_NO_STORE, &shown, metadata))
}

fn incomplete(request: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete delivery", call::request_id(request))
}

/// `GET /v1/webhooks/{id}/deliveries` in the OpenAPI document.
pub(in super::super) fn deliveries_operation() -> OperationBuilder {
    let about = "The deliveries of the last 30 days, newest first. For the next page, send the id of the last delivery as \
                 `starting_after`, or follow the `Link` with `rel=\"next\"`.";
    let all = json!({ "data": [examples::delivery()], "has_more": true });
    let codes = [ErrorCode::NotFound, ErrorCode::BadRequest];
    let operation =
        managing(tags::WEBHOOKS, "listDeliveries", "List deliveries", about, &codes).parameter(parts::id("webhook"));
    page::paged(operation, "deliveries", "delivery").response(
        "200",
        success_response("One page of deliveries.", &["Link"])
            .content("application/json", json_content("DeliveryList", all).build()),
    )
}

/// `POST /v1/webhooks/{id}/test` in the OpenAPI document.
pub(in super::super) fn test_operation() -> OperationBuilder {
    let about = "Sends a `webhook.test` message at once. Test keys can do this too.";
    managing(tags::WEBHOOKS, "testWebhook", "Send a test", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(parts::id("webhook"))
        .response("202", scheduled())
}

/// `POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver` in the OpenAPI document.
pub(in super::super) fn redeliver_operation() -> OperationBuilder {
    let about = "Sends a message again at once: the same bytes with the same `webhook-id`.";
    managing(
        tags::WEBHOOKS,
        "redeliverWebhook",
        "Send a message again",
        about,
        &[ErrorCode::NotFound, ErrorCode::BadRequest],
    )
    .parameter(parts::id("webhook"))
    .parameter(delivery_id())
    .response("202", scheduled())
}

fn scheduled() -> ResponseBuilder {
    success_response("The delivery is scheduled.", &[])
        .content("application/json", json_content("Delivery", examples::delivery()).build())
}

fn delivery_id() -> Parameter {
    ParameterBuilder::new()
        .name("delivery_id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("Id of the delivery."))
        .schema(Some(text().format(Some(SchemaFormat::Custom("uuid".to_owned())))))
        .example(Some(json!(EXAMPLE_ID)))
        .build()
}
