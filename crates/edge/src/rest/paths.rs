//! Paths that several files name.

/// The first page of the API reference, which the web app serves.
pub(super) const API_REFERENCE: &str = "/docs/api";
/// The OpenAPI document.
pub(super) const OPENAPI: &str = "/v1/openapi.json";
/// The price list. It needs no credential.
pub(super) const PRICING: &str = "/v1/pricing";
/// Signed links. Requests to them have their credential in the query.
pub(super) const LINKS: &str = "/v1/shot";
