//! `POST` and `DELETE /v1/monitors/{id}/feed`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::MonitorFeed;
use grabd_proto::v1::monitor_service_client::MonitorServiceClient;
use grabd_proto::v1::{CreateMonitorFeedRequest, CreateMonitorFeedResponse, DeleteMonitorFeedRequest};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::super::error::ApiError;
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};

/// Gives the feed and the badge new addresses. The request body is ignored.
pub(in super::super) async fn open_feed(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let received = request.headers();
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(received, CreateMonitorFeedRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(received, call::QUERY_DEADLINE, core.create_monitor_feed(sent)).await?;
    let CreateMonitorFeedResponse { feed_url, badge_url } = reply.message;
    let shown = MonitorFeed { feed_url: feed_url.into(), badge_url: badge_url.into() };
    Ok(headers::json_response(StatusCode::CREATED, headers::PRIVATE_NO_STORE, &shown, &reply.metadata))
}

/// Removes the addresses. The request body is ignored.
pub(in super::super) async fn close_feed(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let received = request.headers();
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(received, DeleteMonitorFeedRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(received, call::QUERY_DEADLINE, core.delete_monitor_feed(sent)).await?;
    let mut response =
        headers::response(StatusCode::NO_CONTENT, headers::PRIVATE_NO_STORE, Body::empty(), &reply.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}
