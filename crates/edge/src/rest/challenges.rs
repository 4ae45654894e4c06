//! Values of `WWW-Authenticate`.

use axum::response::Response;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};

use super::error::{INVALID_TOKEN, MISSING_TOKEN};

/// Values of `WWW-Authenticate`, which name the protected resource metadata (RFC 9728 section 5.1).
pub(super) struct Challenges {
    missing: HeaderValue,
    invalid: HeaderValue,
}

impl Challenges {
    pub(super) fn new(origin: &str) -> Self {
        let challenge = |error: &str| {
            let text = format!("Bearer {error}resource_metadata=\"{origin}/.well-known/oauth-protected-resource\"");
            HeaderValue::from_str(&text).expect("an origin is visible ASCII")
        };
        Self { missing: challenge(""), invalid: challenge("error=\"invalid_token\", ") }
    }

    /// Adds the metadata to the challenge of a response.
    pub(super) fn complete(&self, response: &mut Response) {
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
