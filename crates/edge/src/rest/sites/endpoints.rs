//! Site jobs: create, list, read, cancel, delete.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::SiteList;
use grabd_proto::v1::site_service_client::SiteServiceClient;
use grabd_proto::v1::{CancelSiteRequest, DeleteSiteRequest, GetSiteRequest, ListSitesRequest, Site};
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

/// `POST /v1/sites`.
pub(in super::super) async fn create(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let message = request::read(headers, body).await;
    let mut core = SiteServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, message, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.create_site(sent)).await?;
    let site = reply.message.site;
    let location = site.as_ref().map(|site| format!("/v1/sites/{}", site.id));
    let location = location.and_then(|location| HeaderValue::from_str(&location).ok());
    let mut response = site_response(StatusCode::ACCEPTED, site.as_ref(), &reply.metadata, headers)?;
    response.headers_mut().insert(LOCATION, location.ok_or_else(|| incomplete(headers))?);
    Ok(response)
}

/// `GET /v1/sites`.
pub(in super::super) async fn list(State(edge): State<Arc<Edge>>, request: Request) -> HandlerResult {
    let (parts, _) = request.into_parts();
    let PageQuery { limit, starting_after, unparsed } = PageQuery::from_uri(&parts.uri);
    let message = ListSitesRequest { limit, starting_after, unparsed };
    let mut core = SiteServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_sites(sent)).await?;
    let sites = &reply.message.sites;
    let data = sites.iter().map(wire::site).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let shown = SiteList { data, has_more: reply.message.has_more };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &shown, &reply.metadata);
    if let (true, Some(oldest)) = (shown.has_more, sites.last()) {
        page::add_next(&mut response, &format!("{}/v1/sites", edge.origin), limit, &oldest.id);
    }
    Ok(response)
}

/// `GET /v1/sites/{id}`.
pub(in super::super) async fn fetch(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = SiteServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, GetSiteRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.get_site(sent)).await?;
    site_response(StatusCode::OK, reply.message.site.as_ref(), &reply.metadata, headers)
}

/// `POST /v1/sites/{id}/cancel`. The request body is ignored.
pub(in super::super) async fn cancel(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = SiteServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, CancelSiteRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.cancel_site(sent)).await?;
    site_response(StatusCode::OK, reply.message.site.as_ref(), &reply.metadata, headers)
}

/// `DELETE /v1/sites/{id}`. The request body is ignored.
pub(in super::super) async fn delete(State(edge): State<Arc<Edge>>, path: Id, request: Request) -> HandlerResult {
    let headers = request.headers();
    let mut core = SiteServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, DeleteSiteRequest { id: id(path) }, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.delete_site(sent)).await?;
    let mut response =
        headers::response(StatusCode::NO_CONTENT, headers::PRIVATE_NO_STORE, Body::empty(), &reply.metadata);
    response.headers_mut().remove(CONTENT_TYPE);
    Ok(response)
}

fn site_response(status: StatusCode, site: Option<&Site>, metadata: &HeaderMap, request: &HeaderMap) -> HandlerResult {
    let shown = site.and_then(wire::site).ok_or_else(|| incomplete(request))?;
    Ok(headers::json_response(status, headers::PRIVATE_NO_STORE, &shown, metadata))
}

/// The error of a response of the core that lacks something.
pub(super) fn incomplete(request: &HeaderMap) -> ApiError {
    ApiError::internal("the core returned an incomplete site job", call::request_id(request))
}
