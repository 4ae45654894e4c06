//! `GET /v1/usage`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use http::StatusCode;

use super::error::Failure;
use super::{Edge, call, headers, wire};

/// Balance, plan and 30-day counts of the caller's team.
pub(super) async fn usage(State(edge): State<Arc<Edge>>, request: Request) -> Result<Response, Failure> {
    let (parts, _) = request.into_parts();
    let mut core = UsageServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, GetUsageRequest {}, call::PROMPT);
    let answer = call::answer(&parts.headers, call::PROMPT, core.get_usage(sent)).await?;
    let usage = wire::usage(&answer.message)
        .ok_or_else(|| Failure::internal("the core told an incomplete usage", call::request_id(&parts.headers)))?;
    Ok(headers::json(StatusCode::OK, headers::PRIVATE, &usage, &answer.metadata))
}
