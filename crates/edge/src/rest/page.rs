//! Lists that are read page by page, newest first.

use axum::response::Response;
use grabd_proto::v1::Unparsed;
use http::header::LINK;
use http::{HeaderValue, Uri};
use serde_json::json;
use url::form_urlencoded;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};

use super::openapi::parts::{integer, parameter, text};
use super::query::Query;

/// The parameters that select a page.
pub(super) struct PageQuery {
    /// Maximum number of entries on the page.
    pub(super) limit: Option<i32>,
    /// Only entries older than the one with this id.
    pub(super) starting_after: Option<String>,
    /// Parameters of the wrong type.
    pub(super) unparsed: Vec<Unparsed>,
}

impl PageQuery {
    pub(super) fn from_uri(uri: &Uri) -> Self {
        let query = Query::from_uri(uri);
        let mut unparsed = Vec::new();
        let limit = query.parse("limit", &mut unparsed, |text| text.parse().ok());
        let starting_after = query.single("starting_after", &mut unparsed).map(str::to_owned);
        Self { limit, starting_after, unparsed }
    }
}

/// Adds the `Link` to the page after the one that ends with the entry `oldest`. `list` is the URL of the list.
pub(super) fn add_next(response: &mut Response, list: &str, limit: Option<i32>, oldest: &str) {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(limit) = limit {
        query.append_pair("limit", &limit.to_string());
    }
    query.append_pair("starting_after", oldest);
    let link = format!("<{list}?{}>; rel=\"next\"", query.finish());
    if let Ok(link) = HeaderValue::from_str(&link) {
        response.headers_mut().insert(LINK, link);
    }
}

/// The operation with the parameters that select a page, in the OpenAPI document. `many` and `one` are what the entries are
/// called.
pub(super) fn paged(operation: OperationBuilder, many: &str, one: &str) -> OperationBuilder {
    let limit = integer(1, 100).default(Some(json!(25)));
    let cursor = text().format(Some(SchemaFormat::Custom("uuid".to_owned())));
    let about_limit = format!("Maximum number of {many} on the page.");
    let about_cursor = format!("Only {many} older than the {one} with this id.");
    operation.parameter(parameter(ParameterIn::Query, "limit", &about_limit, limit, None)).parameter(parameter(
        ParameterIn::Query,
        "starting_after",
        &about_cursor,
        cursor,
        None,
    ))
}
