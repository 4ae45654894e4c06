//! Deliveries of an endpoint: list, test and redeliver.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{Delivery, ListDeliveriesRequest, RedeliverWebhookRequest, TestWebhookRequest};
use http::header::LINK;
use http::{HeaderMap, HeaderValue, StatusCode};
use url::form_urlencoded;

use super::super::error::ApiError;
use super::super::path_id::id;
use super::super::query::Query;
use super::super::state::Edge;
use super::super::{call, headers};
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
