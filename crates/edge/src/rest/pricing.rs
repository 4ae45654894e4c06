//! `GET /v1/pricing`, the one endpoint that needs no credential and that pages of other origins may read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_proto::v1::GetPricingRequest;
use grabd_proto::v1::pricing_service_client::PricingServiceClient;
use http::StatusCode;

use super::error::Failure;
use super::query::Query;
use super::{Edge, call, etag, headers, wire};

/// Where it is served.
pub(super) const PATH: &str = "/v1/pricing";

/// The packet, as much of it as the query asks for.
pub(super) async fn pricing(State(edge): State<Arc<Edge>>, request: Request) -> Result<Response, Failure> {
    let (parts, _) = request.into_parts();
    let query = Query::of(&parts.uri);
    let message = GetPricingRequest {
        provider: query.last("provider").map(str::to_owned),
        detail: query.last("detail").map(str::to_owned),
    };
    let mut core = PricingServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::PROMPT);
    let answer = call::answer(&parts.headers, call::PROMPT, core.get_pricing(sent)).await?;
    let packet = answer
        .message
        .packet
        .ok_or_else(|| Failure::internal("the core told no pricing", call::request_id(&parts.headers)))?;
    let body = headers::to_json(&wire::Packet(&packet));
    let tag = etag::of_bytes(&body);
    let response = headers::answer(StatusCode::OK, "public, max-age=300", Body::from(body), &answer.metadata);
    Ok(etag::tagged(response, tag, &parts.headers))
}
