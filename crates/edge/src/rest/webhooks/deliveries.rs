//! What was sent to an endpoint, and what is asked to be sent.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_proto::v1::webhook_service_client::WebhookServiceClient;
use grabd_proto::v1::{Delivery, ListDeliveriesRequest, RedeliverWebhookRequest, TestWebhookRequest};
use http::header::LINK;
use http::{HeaderMap, HeaderValue, StatusCode};
use url::form_urlencoded;

use super::super::error::Failure;
use super::super::query::Query;
use super::super::{Edge, call, headers, id};
use super::wire;

type Answered = Result<Response, Failure>;

/// `GET /v1/webhooks/{id}/deliveries`.
pub(in super::super) async fn deliveries(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answered {
    let (parts, _) = request.into_parts();
    let id = id(path);
    let query = Query::of(&parts.uri);
    let mut unparsed = Vec::new();
    let limit = query.parsed("limit", &mut unparsed, |text| text.parse().ok());
    let starting_after = query.once("starting_after", &mut unparsed).map(str::to_owned);
    let message = ListDeliveriesRequest { id: id.clone(), limit, starting_after, unparsed };
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::PROMPT);
    let answer = call::answer(&parts.headers, call::PROMPT, core.list_deliveries(sent)).await?;
    let deliveries = &answer.message.deliveries;
    let data = deliveries.iter().map(wire::delivery).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let page = wire::DeliveryList { data, has_more: answer.message.has_more };
    let mut response = headers::json(StatusCode::OK, headers::PRIVATE, &page, &answer.metadata);
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

/// `POST /v1/webhooks/{id}/test`. A body is not read.
pub(in super::super) async fn test(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answered {
    let headers = request.headers();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, TestWebhookRequest { id: id(path) }, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.test_webhook(sent)).await?;
    due(answer.message.delivery.as_ref(), &answer.metadata, headers)
}

/// `POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver`. A body is not read.
pub(in super::super) async fn redeliver(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Answered {
    let headers = request.headers();
    // Ids that are no text at all go on as none, so that the core's order of judgement holds.
    let (id, delivery_id) = path.map(|Path(ids)| ids).unwrap_or_default();
    let mut core = WebhookServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, RedeliverWebhookRequest { id, delivery_id }, call::PROMPT);
    let answer = call::answer(headers, call::PROMPT, core.redeliver_webhook(sent)).await?;
    due(answer.message.delivery.as_ref(), &answer.metadata, headers)
}

fn due(delivery: Option<&Delivery>, metadata: &HeaderMap, request: &HeaderMap) -> Answered {
    let shown = delivery.and_then(wire::delivery).ok_or_else(|| incomplete(request))?;
    Ok(headers::json(StatusCode::ACCEPTED, headers::PRIVATE, &shown, metadata))
}

fn incomplete(request: &HeaderMap) -> Failure {
    Failure::internal("the core told an incomplete delivery", call::request_id(request))
}
