//! The methods of a path of the API.

use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use grabd_proto::v1::ErrorCode;

use super::error::ApiError;

/// Rejects other methods with 405 and an error of the API, and handles OPTIONS. Both responses have `allowed` as their
/// `Allow` header.
pub fn allow_methods<S>(allowed: &'static str, methods: MethodRouter<S>) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    grabd_http::allow_methods(allowed, methods, refuse)
}

fn refuse(allowed: &'static str) -> Response {
    let message = format!("This path supports only these methods: {allowed}.");
    ApiError::new(ErrorCode::BadRequest, message).into_response()
}
