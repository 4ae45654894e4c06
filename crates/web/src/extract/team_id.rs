//! The team that a path names.

use std::collections::HashMap;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

/// The parameter `{team}` of the path, which need not be an id.
///
/// # Errors
/// When the path is not UTF-8.
pub(super) async fn team_id(parts: &mut Parts) -> Result<String, PathRejection> {
    let Path(mut parameters) = Path::<HashMap<String, String>>::from_request_parts(parts, &()).await?;
    Ok(parameters.remove("team").unwrap_or_default())
}
