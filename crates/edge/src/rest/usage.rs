//! `GET /v1/usage`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use http::StatusCode;
use serde_json::json;
use utoipa::openapi::path::OperationBuilder;

use super::error::ApiError;
use super::openapi::parts::{authenticated, json_content, success_response};
use super::openapi::tags;
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

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "Remaining credits, the plan, and how many grabs the team made in the last 30 days.";
    let example = json!({
        "credits": { "subscription": 24_100, "prepaid": 5_000, "total": 29_100, "held": 1 },
        "plan": { "name": "annual", "status": "active", "expires_at": "2027-03-01T00:00:00.000Z" },
        "usage": { "grabs_last_30d": 960, "live_grabs_last_30d": 900 },
        "environment": "live",
        "top_up": "https://grabd.example"
    });
    authenticated(tags::ACCOUNT, "getUsage", "Read balance and usage", about, &[]).response(
        "200",
        success_response("Balance and usage.", &[]).content("application/json", json_content("Usage", example).build()),
    )
}
