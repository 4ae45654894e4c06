//! `GET /v1/grabs`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_api::GrabList;
use grabd_api::words;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{ErrorCode, ListGrabsRequest};
use http::header::LINK;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use url::form_urlencoded;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};

use super::error::ApiError;
use super::openapi::examples::done;
use super::openapi::parts::{authenticated, integer, json_content, parameter, success_response, text};
use super::openapi::tags;
use super::prefer::Prefer;
use super::query::Query;
use super::state::Edge;
use super::{call, headers, several, wire};

/// The parameters that select a page.
const PAGE_PARAMETERS: [&str; 7] = ["limit", "status", "starting_after", "ending_before", "url", "from", "until"];

/// Lists the caller's grabs, newest first, or reads those with the ids of the query.
pub(super) async fn list(State(edge): State<Arc<Edge>>, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let query = Query::from_uri(&parts.uri);
    let mut unparsed = Vec::new();
    let ids: Vec<String> = query.list("ids");
    // The core refuses the other parameters.
    let is_alone = PAGE_PARAMETERS.iter().all(|name| query.last(name).is_none());
    let can_wait = is_alone && !ids.is_empty();
    let wait_s = Prefer::from_headers(&parts.headers).wait_s.filter(|seconds| *seconds > 0 && can_wait);
    if let Some(seconds) = wait_s {
        return several::wait(&edge, &parts.headers, ids, seconds).await;
    }
    let limit = query.parse("limit", &mut unparsed, |text| text.parse().ok());
    let status = query.parse("status", &mut unparsed, wire::parse_status);
    let starting_after = query.single("starting_after", &mut unparsed).map(str::to_owned);
    let ending_before = query.single("ending_before", &mut unparsed).map(str::to_owned);
    let backwards = ending_before.is_some();
    let [url, from, until] = ["url", "from", "until"].map(|name| query.single(name, &mut unparsed).map(str::to_owned));
    let message = ListGrabsRequest {
        limit,
        status: status.unwrap_or_default().into(),
        starting_after,
        ending_before,
        url,
        from,
        until,
        ids,
        unparsed,
    };

    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(&parts.headers, message, call::QUERY_DEADLINE);
    let reply = call::send(&parts.headers, call::QUERY_DEADLINE, core.list_grabs(sent)).await?;
    let grabs = &reply.message.grabs;
    let data =
        grabs.iter().map(wire::grab).collect::<Option<Vec<_>>>().ok_or_else(|| {
            ApiError::internal("the core returned an incomplete grab", call::request_id(&parts.headers))
        })?;
    let next = reply.message.next.as_deref().map(Into::into);
    let page = GrabList { data, has_more: reply.message.has_more, next };
    let mut response = headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &page, &reply.metadata);
    if page.has_more {
        let cursor = match (backwards, &reply.message.next) {
            (false, Some(next)) => Some(("starting_after", next, "next")),
            (false, None) => grabs.last().map(|oldest| ("starting_after", &oldest.id, "next")),
            (true, _) => grabs.first().map(|newest| ("ending_before", &newest.id, "prev")),
        };
        let link = cursor.map(|(name, id, relation)| link(&edge.origin, &query, name, id, relation));
        if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
            response.headers_mut().insert(LINK, link);
        }
    }
    Ok(response)
}

/// The `Link` to the following page in the requested direction, with the same parameters.
fn link(origin: &str, query: &Query<'_>, cursor: &str, id: &str, relation: &str) -> String {
    let mut next = form_urlencoded::Serializer::new(String::new());
    for name in ["limit", "status", "url", "from", "until"] {
        if let Some(value) = query.last(name) {
            next.append_pair(name, value);
        }
    }
    next.append_pair(cursor, id);
    format!("<{origin}/v1/grabs?{}>; rel=\"{relation}\"", next.finish())
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "The grabs of the key's team and environment, newest first. For the next page, send the id of the last grab \
                 as `starting_after`, or `next` if it is there, or follow the `Link` with `rel=\"next\"`. `starting_after` \
                 and `ending_before` exclude each other. With `ids`, the grabs with these ids instead, in this order and \
                 without those that do not exist; then `Prefer: wait=N` delays the response until all of them have ended, \
                 at most N seconds and at most 25.";
    let cursor = || text().format(Some(utoipa::openapi::SchemaFormat::Custom("uuid".to_owned())));
    let day = || text().format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Date)));
    let page = success_response("One page of grabs.", &["Link", "Preference-Applied"])
        .content("application/json", json_content("GrabList", json!({ "data": [done()], "has_more": true })).build());
    authenticated(tags::GRABS, "listGrabs", "List grabs", about, &[ErrorCode::BadRequest])
        .parameter(parameter(
            ParameterIn::Query,
            "limit",
            "Maximum number of grabs on the page.",
            integer(1, 100).default(Some(json!(25))),
            None,
        ))
        .parameter(parameter(ParameterIn::Query, "status", "Only grabs in this state.", words::status_schema(), None))
        .parameter(parameter(ParameterIn::Query, "starting_after", "Only grabs older than this one.", cursor(), None))
        .parameter(parameter(ParameterIn::Query, "ending_before", "Only grabs newer than this one.", cursor(), None))
        .parameter(parameter(
            ParameterIn::Query,
            "url",
            "Only grabs whose requested URL contains this text, in any case. A page with fewer grabs than `limit` need not be \
             the last one: go on with `next`.",
            text().min_length(Some(1)).max_length(Some(200)),
            None,
        ))
        .parameter(parameter(ParameterIn::Query, "from", "Only grabs of this UTC day and later ones.", day(), None))
        .parameter(parameter(ParameterIn::Query, "until", "Only grabs of this UTC day and earlier ones.", day(), None))
        .parameter(parameter(
            ParameterIn::Query,
            "ids",
            "The grabs with these ids, 1 to 100, separated by commas. Excludes the other parameters.",
            text().max_length(Some(3699)),
            None,
        ))
        .parameter(parameter(
            ParameterIn::Header,
            "Prefer",
            "With `ids`: `wait=N` delays the response until all of these grabs have ended, at most N seconds.",
            text(),
            None,
        ))
        .response("200", page)
}
