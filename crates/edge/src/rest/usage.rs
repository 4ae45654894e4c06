//! `GET /v1/usage`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use http::StatusCode;

use super::error::ApiError;
use super::state::Edge;
use super::{call, headers, wire};

/// Returns the balance, plan and 30-day counts of the caller's team.
pub(super) async fn usage(State(edge): State<Arc<Edge>>, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let mut core = UsageServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, GetUsageRequest {}, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.get_usage(sent)).await?;
    let usage = wire::usage(&reply.message)
        .ok_or_else(|| ApiError::internal("the core returned an incomplete usage", call::request_id(&parts.headers)))?;
    Ok(headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &usage, &reply.metadata))
}
