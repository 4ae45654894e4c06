//! `GET /v1/monitors/{id}/runs`.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::MonitorRunList;
use grabd_proto::v1::ListMonitorRunsRequest;
use grabd_proto::v1::monitor_service_client::MonitorServiceClient;
use http::StatusCode;

use super::super::error::ApiError;
use super::super::page::{self, PageQuery};
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
use super::endpoints::incomplete;
use super::wire;

/// Lists the runs of a monitor, newest first.
pub(in super::super) async fn runs(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let id = id(path);
    let PageQuery { limit, starting_after, unparsed } = PageQuery::from_uri(&parts.uri);
    let message = ListMonitorRunsRequest { id: id.clone(), limit, starting_after, unparsed };
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_monitor_runs(sent)).await?;
    let runs = &reply.message.runs;
    let data = runs.iter().map(wire::run).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let shown = MonitorRunList { data, has_more: reply.message.has_more };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &shown, &reply.metadata);
    if let (true, Some(oldest)) = (shown.has_more, runs.last()) {
        page::add_next(&mut response, &format!("{}/v1/monitors/{id}/runs", edge.origin), limit, &oldest.id);
    }
    Ok(response)
}
