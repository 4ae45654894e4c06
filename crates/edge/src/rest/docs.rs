//! Where the reference is.

/// The page for people.
pub(super) const PATH: &str = "/docs";
/// The document for programs.
pub(super) const DOCUMENT: &str = "/v1/openapi.json";
