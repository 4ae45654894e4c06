//! `/v1/oauth/token`, `/v1/oauth/device_authorization` and `/v1/oauth/revoke`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_engine::oauth;
use http::header::{AUTHORIZATION, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::response::{OauthError, uncached};
use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::state::Web;

/// Issues tokens for an authorization code, a refresh token or a device code.
pub(super) async fn token(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, OauthError> {
    web.limits.tokens.take(client.0)?;
    let (head, body) = request.into_parts();
    let form = Form::read(&head.headers, body).await?;
    let tokens = oauth::token(&web.core, form.fields(), authorization(&head.headers)?).await?;
    let body = serde_json::to_value(&tokens).expect("a token response serializes");
    Ok(uncached(StatusCode::OK, &body))
}

/// Begins the sign-in of a program without a browser (RFC 8628).
pub(super) async fn authorize_device(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, OauthError> {
    // It leaves a row behind, as a registration does.
    web.limits.device_requests.take(client.0)?;
    let (head, body) = request.into_parts();
    let form = Form::read(&head.headers, body).await?;
    let begun = oauth::authorize_device(&web.core, form.fields(), authorization(&head.headers)?).await?;
    let body = serde_json::to_value(&begun).expect("a device authorization response serializes");
    Ok(uncached(StatusCode::OK, &body))
}

/// Revokes a token. An unknown token counts as revoked.
pub(super) async fn revoke(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, OauthError> {
    web.limits.tokens.take(client.0)?;
    let (head, body) = request.into_parts();
    let form = Form::read(&head.headers, body).await?;
    oauth::revoke(&web.core, form.fields(), authorization(&head.headers)?).await?;
    Ok(([(CACHE_CONTROL, HeaderValue::from_static("no-store"))], StatusCode::OK).into_response())
}

fn authorization(headers: &HeaderMap) -> Result<Option<&str>, OauthError> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) if line.to_str().is_ok() => Ok(line.to_str().ok()),
        (Some(_), _) => Err(OauthError::bad_request("invalid_request", "The Authorization header cannot be read.")),
    }
}
