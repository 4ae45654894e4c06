//! The OpenAPI document, written once.

use axum::body::{Body, Bytes};
use axum::response::Response;
use grabd_http::{etag_of_bytes, with_etag};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use utoipa::openapi::OpenApi;

/// A text and its tag.
pub(in super::super) struct CachedDocument {
    bytes: Bytes,
    tag: HeaderValue,
}

impl CachedDocument {
    /// The document as JSON.
    pub(in super::super) fn new(document: &OpenApi) -> Self {
        let text = serde_json::to_string(document).expect("an OpenAPI document has string keys");
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
