//! `/v1/oauth/register`: dynamic client registration (RFC 7591).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::oauth;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::response::{OauthError, uncached};
use crate::client_ip::ClientIp;
use crate::form;
use crate::state::Web;

/// Registers a client.
pub(super) async fn register(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, OauthError> {
    web.limits.registrations.take(client.0)?;
    let (head, body) = request.into_parts();
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media_type.split(';').next().is_some_and(|own| own.trim().eq_ignore_ascii_case("application/json")) {
        return Err(OauthError::bad_request("invalid_client_metadata", "The body must be application/json."));
    }
    let body = form::read(body).await;
    let body = body.map_err(|error| OauthError::bad_request("invalid_client_metadata", error.to_string()))?;
    Ok(uncached(StatusCode::CREATED, &oauth::register(&web.core, &body).await?))
}
