//! The id in a path.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;

/// The `{id}` of the path. One that is not UTF-8 is forwarded as an empty id, so that the core checks the credential
/// and the limits first.
pub(super) fn id(path: Result<Path<String>, PathRejection>) -> String {
    path.map(|Path(id)| id).unwrap_or_default()
}
