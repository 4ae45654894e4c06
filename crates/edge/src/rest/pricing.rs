//! `GET /v1/pricing`. It needs no credential, and pages of any origin may read it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_http::with_etag;
use grabd_proto::v1::pricing_service_client::PricingServiceClient;
use grabd_proto::v1::{ErrorCode, GetPricingRequest};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};

use super::error::ApiError;
use super::openapi::parts::{if_none_match, json_content, not_modified, parameter, public, success_response, text};
use super::openapi::pricing::{PROVIDERS, example};
use super::openapi::tags;
use super::pricing_packets::Packet;
use super::query::Query;
use super::state::Edge;
use super::{call, headers, wire};

/// Returns the pricing packet, filtered by the query.
pub(super) async fn pricing(State(edge): State<Arc<Edge>>, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let query = Query::from_uri(&parts.uri);
    let message = GetPricingRequest {
        provider: query.last("provider").map(str::to_owned),
        detail: query.last("detail").map(str::to_owned),
    };
    let Packet { body, tag } = match edge.pricing.get(&message) {
        Some(packet) => packet,
        None => load(&edge, &parts.headers, message).await?,
    };
    let response = headers::response(StatusCode::OK, "public, max-age=300", Body::from(body), &HeaderMap::new());
    Ok(with_etag(response, tag, &parts.headers))
}

/// Gets a packet from the core, and keeps it.
async fn load(edge: &Edge, received: &HeaderMap, message: GetPricingRequest) -> Result<Packet, ApiError> {
    let mut core = PricingServiceClient::new(edge.transport.clone());
    let sent = call::request(received, message.clone(), call::QUERY_DEADLINE);
    let reply = call::send(received, call::QUERY_DEADLINE, core.get_pricing(sent)).await?;
    let packet = reply
        .message
        .packet
        .ok_or_else(|| ApiError::internal("the core returned no pricing", call::request_id(received)))?;
    let packet = Packet::of(headers::to_json(&wire::PricingPacket(&packet)));
    edge.pricing.insert(message, packet.clone());
    Ok(packet)
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "Price of a grab, and a comparison with other services. Needs no key; pages of any origin may read it.";
    let providers = text().enum_values(Some(PROVIDERS));
    let details = text().enum_values(Some(["summary", "full"])).default(Some(json!("full")));
    public(tags::ACCOUNT, "getPricing", "Read the prices", about, &[ErrorCode::BadRequest])
        .parameter(parameter(
            ParameterIn::Query,
            "provider",
            "Compare with this provider only, for a smaller response.",
            providers,
            None,
        ))
        .parameter(parameter(ParameterIn::Query, "detail", "Level of detail.", details, None))
        .parameter(if_none_match())
        .response(
            "200",
            success_response("The prices.", &["ETag"])
                .content("application/json", json_content("Pricing", example()).build()),
        )
        .response("304", not_modified(&[]))
}
