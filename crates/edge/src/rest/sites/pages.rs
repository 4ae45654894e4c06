//! `GET /v1/sites/{id}/pages`.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::SitePageList;
use grabd_proto::v1::ListSitePagesRequest;
use grabd_proto::v1::site_service_client::SiteServiceClient;
use http::StatusCode;

use super::super::error::ApiError;
use super::super::page::{self, PageQuery};
use super::super::path_id::id;
use super::super::state::Edge;
use super::super::{call, headers};
use super::endpoints::incomplete;
use super::wire;

/// Lists the pages of a site job, in the order of discovery.
pub(in super::super) async fn pages(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let id = id(path);
    let PageQuery { limit, starting_after, unparsed } = PageQuery::from_uri(&parts.uri);
    let message = ListSitePagesRequest { id: id.clone(), limit, starting_after, unparsed };
    let mut core = SiteServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_site_pages(sent)).await?;
    let (pages, is_live) = (&reply.message.pages, reply.message.live);
    let data = pages.iter().map(|page| wire::page(page, is_live)).collect::<Option<Vec<_>>>();
    let data = data.ok_or_else(|| incomplete(&parts.headers))?;
    let shown = SitePageList { data, has_more: reply.message.has_more };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &shown, &reply.metadata);
    if let (true, Some(last)) = (shown.has_more, pages.last()) {
        page::add_next(&mut response, &format!("{}/v1/sites/{id}/pages", edge.origin), limit, &last.number.to_string());
    }
    Ok(response)
}
