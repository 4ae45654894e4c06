//! Proxies: create, list, read, update, delete.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::ProxyList;
use grabd_proto::v1::proxy_service_client::ProxyServiceClient;
use grabd_proto::v1::{
    CreateProxyRequest, DeleteProxyRequest, GetProxyRequest, ListProxiesRequest, Proxy, UpdateProxyRequest,
};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::error::ApiError;
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
use super::request::ProxyMembers;
use super::wire;

type HandlerResult = Result<Response, ApiError>;
type Id = Result<Path<String>, PathRejection>;

/// `POST /v1/proxies`.
pub(in super::super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let ProxyMembers { name, url, username, password, unparsed } = ProxyMembers::read(headers, body).await;
    let message = CreateProxyRequest { name, url, username, password, unparsed };
    let mut core = ProxyServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.create_proxy(sent)).await?;
    let proxy = reply.message.proxy;
    let location = proxy.as_ref().map(|proxy| format!("/v1/proxies/{}", proxy.id));
    let location = location.and_then(|location| HeaderValue::from_str(&location).ok());
    let mut response = proxy_response(StatusCode::CREATED, proxy.as_ref(), &reply.metadata, headers)?;
    response.headers_mut().insert(LOCATION, location.ok_or_else(|| incomplete(headers))?);
    Ok(response)
}

/// `GET /v1/proxies`.
pub(in super::super) async fn list(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = ProxyServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, ListProxiesRequest {}, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.list_proxies(sent)).await?;
    let data = reply.message.proxies.iter().map(wire::proxy).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(headers))?;
    let page = ProxyList { data, has_more: reply.message.has_more };
    Ok(headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &page, &reply.metadata))
}

/// `GET /v1/proxies/{id}`.
pub(in super::super) async fn fetch(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = ProxyServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetProxyRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.get_proxy(sent)).await?;
    proxy_response(StatusCode::OK, reply.message.proxy.as_ref(), &reply.metadata, headers)
}

/// `PATCH /v1/proxies/{id}`.
pub(in super::super) async fn update(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let ProxyMembers { name, url, username, password, unparsed } = ProxyMembers::read(headers, body).await;
    let message = UpdateProxyRequest { id: id(path), name, url, username, password, unparsed };
    let mut core = ProxyServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.update_proxy(sent)).await?;
    proxy_response(StatusCode::OK, reply.message.proxy.as_ref(), &reply.metadata, headers)
}

/// `DELETE /v1/proxies/{id}`. The request body is ignored.
pub(in super::super) async fn delete(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = ProxyServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, DeleteProxyRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.delete_proxy(sent)).await?;
    let mut response =
        headers::response(StatusCode::NO_CONTENT, headers::PRIVATE_NO_STORE, Body::empty(), &reply.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}

fn proxy_response(
    status: StatusCode,
    proxy: Option<&Proxy>,
    metadata: &HeaderMap,
    request: &HeaderMap,
) -> HandlerResult {
    let shown = proxy.and_then(wire::proxy).ok_or_else(|| incomplete(request))?;
    Ok(headers::json_response(status, headers::PRIVATE_NO_STORE, &shown, metadata))
}

fn incomplete(request: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete proxy", call::request_id(request))
}
