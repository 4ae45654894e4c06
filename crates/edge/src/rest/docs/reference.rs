//! The API reference, rendered once.

use axum::body::{Body, Bytes};
use axum::response::Response;
use grabd_http::{etag_of_bytes, with_etag};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use utoipa::openapi::OpenApi;

use super::page;

/// Both representations, rendered once.
pub(in super::super) struct Reference {
    pub(super) document: CachedDocument,
    pub(super) page: CachedDocument,
}

/// A text and its tag.
pub(super) struct CachedDocument {
    bytes: Bytes,
    tag: HeaderValue,
}

impl Reference {
    /// Renders the reference from the document.
    pub(in super::super) fn render(document: &OpenApi) -> Self {
        let json = serde_json::to_value(document).expect("an OpenAPI document has string keys");
        let page = page::render(&json);
        Self { document: CachedDocument::new(json.to_string()), page: CachedDocument::new(page) }
    }
}

impl CachedDocument {
    fn new(text: String) -> Self {
        Self { tag: etag_of_bytes(text.as_bytes()), bytes: text.into() }
    }

    /// The response with the text, or that the caller has it.
    pub(super) fn response(&self, content_type: &'static str, request: &HeaderMap) -> Response {
        let mut response = Response::new(Body::from(self.bytes.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        with_etag(response, self.tag.clone(), request)
    }
}
