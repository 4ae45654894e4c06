//! `GET /v1/monitors/{id}/history.zip`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use grabd_proto::v1::GetMonitorHistoryRequest;
use grabd_proto::v1::monitor_service_client::MonitorServiceClient;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::super::error::ApiError;
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};

/// Longest duration of a download. The core ends it after 15 minutes.
const MAX_DURATION: Duration = Duration::from_secs(16 * 60);

/// Streams the archive. If it is incomplete, the response is aborted.
pub(in super::super) async fn history(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let received = request.headers();
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(received, GetMonitorHistoryRequest { id: id(path) }, MAX_DURATION);
    let reply = call::send(received, call::QUERY_DEADLINE, core.get_monitor_history(sent)).await?;
    let parts = reply.message.map(|part| match part {
        Ok(part) => Ok(Bytes::from(part.content)),
        Err(status) => Err(io::Error::other(status.message().to_owned())),
    });
    let body = Body::from_stream(parts);
    let mut response = headers::response(StatusCode::OK, headers::PRIVATE_NO_STORE, body, &reply.metadata);
    let file = HeaderValue::from_static("attachment; filename=\"monitor-history.zip\"");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    response.headers_mut().insert(CONTENT_DISPOSITION, file);
    Ok(response)
}
