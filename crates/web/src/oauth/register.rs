//! `/v1/oauth/register`: apps introduce themselves (RFC 7591).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::oauth::{self, RegistrationError};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::answer::{Refused, uncached};
use crate::Web;
use crate::form;
use crate::frame::Client;

/// A new app.
pub(super) async fn register(
    State(web): State<Arc<Web>>,
    client: Client,
    request: Request,
) -> Result<Response, Refused> {
    web.limits.registrations.take(client.0)?;
    let (head, body) = request.into_parts();
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media_type.split(';').next().is_some_and(|own| own.trim().eq_ignore_ascii_case("application/json")) {
        return Err(Refused::bad_request("invalid_client_metadata", "The body must be application/json."));
    }
    let read = form::read(body).await;
    let body = read.map_err(|why| Refused::bad_request("invalid_client_metadata", why.to_string()))?;
    Ok(uncached(StatusCode::CREATED, &oauth::register(&web.core, &body).await?))
}

impl From<RegistrationError> for Refused {
    fn from(RegistrationError { status, error, description }: RegistrationError) -> Self {
        Self::of(status, error, description)
    }
}
