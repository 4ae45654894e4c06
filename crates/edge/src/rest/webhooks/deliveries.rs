//! Deliveries of an endpoint: list, test and redeliver.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{Delivery, ErrorCode, ListDeliveriesRequest, RedeliverWebhookRequest, TestWebhookRequest};
use http::header::LINK;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;
use url::form_urlencoded;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{Required, ResponseBuilder, SchemaFormat};

use super::super::error::ApiError;
use super::super::openapi::examples::EXAMPLE_ID;
use super::super::openapi::parts::{self, integer, json_content, managing, parameter, success_response, text};
use super::super::openapi::tags;
use super::super::path_id::id;
use super::super::query::Query;
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
    let query = Query::from_uri(&parts.uri);
    let mut unparsed = Vec::new();
    let limit = query.parse("limit", &mut unparsed, |text| text.parse().ok());
    let starting_after = query.single("starting_after", &mut unparsed).map(str::to_owned);
    let message = ListDeliveriesRequest { id: id.clone(), limit, starting_after, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_deliveries(sent)).await?;
    let deliveries = &reply.message.deliveries;
    let data = deliveries.iter().map(wire::delivery).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let page = wire::DeliveryList { data, has_more: reply.message.has_more };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &page, &reply.metadata);
    if let (true, Some(oldest)) = (page.has_more, deliveries.last()) {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(limit) = limit {
            query.append_pair("limit", &limit.to_string());
        }
        query.append_pair("starting_after", &oldest.id);
        let link = format!("<{}/v1/webhooks/{id}/deliveries?{}>; rel=\"next\"", edge.origin, query.finish());
        if let Ok(link) = HeaderValue::from_str(&link) {
            response.headers_mut().insert(LINK, link);
        }
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
    let limit = integer(1, 100).default(Some(json!(25)));
    let cursor = text().format(Some(SchemaFormat::Custom("uuid".to_owned())));
    let page = json!({ "data": [examples::delivery()], "has_more": true });
    managing(tags::WEBHOOKS, "listDeliveries", "List deliveries", about, &[ErrorCode::NotFound, ErrorCode::BadRequest])
        .parameter(parts::id("webhook"))
        .parameter(parameter(ParameterIn::Query, "limit", "Maximum number of deliveries on the page.", limit, None))
        .parameter(parameter(
            ParameterIn::Query,
            "starting_after",
            "Only deliveries older than this one.",
            cursor,
            None,
        ))
        .response(
            "200",
            success_response("One page of deliveries.", &["Link"])
                .content("application/json", json_content("DeliveryList", page).build()),
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
