//! `GET /v1/pricing`. It needs no credential, and pages of any origin may read it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_http::{etag_of_bytes, with_etag};
use grabd_proto::v1::GetPricingRequest;
use grabd_proto::v1::pricing_service_client::PricingServiceClient;
use http::StatusCode;

use super::error::ApiError;
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
    let mut core = PricingServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.get_pricing(sent)).await?;
    let packet = reply
        .message
        .packet
        .ok_or_else(|| ApiError::internal("the core returned no pricing", call::request_id(&parts.headers)))?;
    let body = headers::to_json(&wire::PricingPacket(&packet));
    let tag = etag_of_bytes(&body);
    let response = headers::response(StatusCode::OK, "public, max-age=300", Body::from(body), &reply.metadata);
    Ok(with_etag(response, tag, &parts.headers))
}
