//! Monitors: create one or several, list, read, update, accept a baseline, delete.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::{MonitorBatch, MonitorList};
use grabd_proto::v1::monitor_service_client::MonitorServiceClient;
use grabd_proto::v1::{
    CreateMonitorRequest, DeleteMonitorRequest, GetMonitorRequest, ListMonitorsRequest, Monitor, UpdateMonitorRequest,
};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::error::ApiError;
use super::super::page::{self, PageQuery};
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
use super::{request, wire};

type HandlerResult = Result<Response, ApiError>;
type Id = Result<Path<String>, PathRejection>;

/// `POST /v1/monitors`.
pub(in super::super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let message = CreateMonitorRequest { monitor: Some(request::read(headers, body).await) };
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.create_monitor(sent)).await?;
    let monitor = reply.message.monitor;
    let location = monitor.as_ref().map(|monitor| format!("/v1/monitors/{}", monitor.id));
    let location = location.and_then(|location| HeaderValue::from_str(&location).ok());
    let mut response = monitor_response(StatusCode::CREATED, monitor.as_ref(), &reply.metadata, headers)?;
    response.headers_mut().insert(LOCATION, location.ok_or_else(|| incomplete(headers))?);
    Ok(response)
}

/// `POST /v1/monitors/batch`. Hosts of all pages are looked up, which may take longer than a query.
pub(in super::super) async fn create_batch(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let message = request::read_batch(&parts.headers, body).await;
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::CREATE_DEADLINE);
    let reply = call::send(&parts.headers, call::CREATE_DEADLINE, core.batch_create_monitors(sent)).await?;
    let monitors = reply.message.monitors.iter().map(wire::monitor).collect::<Option<Vec<_>>>();
    let shown = MonitorBatch { monitors: monitors.ok_or_else(|| incomplete(&parts.headers))? };
    Ok(headers::json_response(StatusCode::CREATED, headers::PRIVATE_NO_STORE, &shown, &reply.metadata))
}

/// `GET /v1/monitors`.
pub(in super::super) async fn list(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, _) = request.into_parts();
    let PageQuery { limit, starting_after, unparsed } = PageQuery::from_uri(&parts.uri);
    let message = ListMonitorsRequest { limit, starting_after, unparsed };
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_monitors(sent)).await?;
    let monitors = &reply.message.monitors;
    let data = monitors.iter().map(wire::monitor).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let shown = MonitorList { data, has_more: reply.message.has_more };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &shown, &reply.metadata);
    if let (true, Some(oldest)) = (shown.has_more, monitors.last()) {
        page::add_next(&mut response, &format!("{}/v1/monitors", edge.origin), limit, &oldest.id);
    }
    Ok(response)
}

/// `GET /v1/monitors/{id}`.
pub(in super::super) async fn fetch(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetMonitorRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.get_monitor(sent)).await?;
    monitor_response(StatusCode::OK, reply.message.monitor.as_ref(), &reply.metadata, headers)
}

/// `PATCH /v1/monitors/{id}`.
pub(in super::super) async fn update(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let message = UpdateMonitorRequest { id: id(path), monitor: Some(request::read(headers, body).await) };
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.update_monitor(sent)).await?;
    monitor_response(StatusCode::OK, reply.message.monitor.as_ref(), &reply.metadata, headers)
}

/// `POST /v1/monitors/{id}/accept`. The request body may be left out.
pub(in super::super) async fn accept(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let message = request::read_accept(id(path), headers, body).await;
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.accept_baseline(sent)).await?;
    monitor_response(StatusCode::OK, reply.message.monitor.as_ref(), &reply.metadata, headers)
}

/// `DELETE /v1/monitors/{id}`. The request body is ignored.
pub(in super::super) async fn delete(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = MonitorServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, DeleteMonitorRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.delete_monitor(sent)).await?;
    let mut response =
        headers::response(StatusCode::NO_CONTENT, headers::PRIVATE_NO_STORE, Body::empty(), &reply.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}

fn monitor_response(
    status: StatusCode,
    monitor: Option<&Monitor>,
    metadata: &HeaderMap,
    request: &HeaderMap,
) -> HandlerResult {
    let shown = monitor.and_then(wire::monitor).ok_or_else(|| incomplete(request))?;
    Ok(headers::json_response(status, headers::PRIVATE_NO_STORE, &shown, metadata))
}

/// The error of a response of the core that lacks something.
pub(super) fn incomplete(request: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete monitor", call::request_id(request))
}
