//! Values of `WWW-Authenticate`.

use axum::response::Response;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};

use super::error::{INSUFFICIENT_SCOPE, INVALID_TOKEN, MISSING_TOKEN};

/// The scope that apps are to ask for at first. They ask for further ones when they need them.
pub(crate) const FIRST_SCOPE: &str = "grabs";

/// Values of `WWW-Authenticate`, which name the protected resource metadata (RFC 9728 section 5.1).
pub(super) struct Challenges {
    metadata: String,
    missing: HeaderValue,
    invalid: HeaderValue,
}

impl Challenges {
    pub(super) fn new(origin: &str) -> Self {
        let metadata = format!("resource_metadata=\"{origin}/.well-known/oauth-protected-resource\"");
        let challenge = |error: &str| {
            let text = format!("Bearer {error}{metadata}, scope=\"{FIRST_SCOPE}\"");
            HeaderValue::from_str(&text).expect("an origin is visible ASCII")
        };
        Self { missing: challenge(""), invalid: challenge("error=\"invalid_token\", "), metadata }
    }

    /// Adds the metadata to the challenge of a response.
    pub(super) fn complete(&self, response: &mut Response) {
        if response.status() == StatusCode::FORBIDDEN {
            return add_metadata(response, &self.metadata);
        }
        if response.status() != StatusCode::UNAUTHORIZED {
            return;
        }
        let challenge = match response.headers().get(WWW_AUTHENTICATE) {
            Some(challenge) if challenge == MISSING_TOKEN => &self.missing,
            Some(challenge) if challenge == INVALID_TOKEN => &self.invalid,
            Some(_) | None => return,
        };
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge.clone());
    }
}

/// Adds the parameter `resource_metadata` to the challenge of a credential that lacks a scope.
pub(crate) fn add_metadata(response: &mut Response, metadata: &str) {
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|challenge| challenge.to_str().ok());
    let Some(challenge) = challenge.filter(|challenge| challenge.starts_with(INSUFFICIENT_SCOPE)) else { return };
    if let Ok(challenge) = HeaderValue::try_from(format!("{challenge}, {metadata}")) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
}
