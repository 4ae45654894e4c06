//! `/.well-known/security.txt` (RFC 9116): the contact for reporting vulnerabilities; and the directory of the keys with which
//! requests to sites are signed.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use grabd_domain::Timestamp;
use grabd_domain::identity::DIRECTORY_PATH;
use grabd_edge::allow_methods;
use grabd_engine::Core;
use grabd_engine::clock::Clock;
use grabd_engine::identity::DIRECTORY_MAX_AGE;
use grabd_http::allow_any_origin;

/// Validity of the file. RFC 9116 recommends less than a year.
const VALID: Duration = Duration::from_secs(180 * 24 * 60 * 60);
const PATH: &str = "/.well-known/security.txt";
const DIRECTORY_TYPE: &str = "application/http-message-signatures-directory+json";
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");

#[derive(Clone)]
struct SecurityTxtState {
    contact: String,
    public_url: String,
    clock: Clock,
}

/// Empty without a contact, which the format requires.
pub(super) fn router(contact: &str, public_url: &str) -> Router {
    if contact.is_empty() {
        return Router::new();
    }
    let parts =
        SecurityTxtState { contact: contact.to_owned(), public_url: public_url.to_owned(), clock: Clock::system() };
    Router::new()
        .route(PATH, allow_methods("GET, HEAD, OPTIONS", get(security)))
        .layer(middleware::from_fn(allow_any_origin))
        .with_state(parts)
}

/// Empty if requests to sites are not signed.
pub(super) fn keys(core: Core) -> Router {
    if core.key_directory().is_none() {
        return Router::new();
    }
    Router::new()
        .route(DIRECTORY_PATH, allow_methods("GET, HEAD, OPTIONS", get(directory)))
        .layer(middleware::from_fn(allow_any_origin))
        .with_state(core)
}

async fn directory(State(core): State<Core>) -> Response {
    let Some(directory) = core.key_directory() else { return StatusCode::NOT_FOUND.into_response() };
    let headers = [
        (CONTENT_TYPE, DIRECTORY_TYPE.to_owned()),
        (CACHE_CONTROL, format!("public, max-age={}", DIRECTORY_MAX_AGE.as_secs())),
        (CONTENT_DIGEST, directory.content_digest),
        (SIGNATURE_INPUT, directory.signature_input),
        (SIGNATURE, directory.signature),
    ];
    (headers, directory.body).into_response()
}

async fn security(State(SecurityTxtState { contact, public_url, clock }): State<SecurityTxtState>) -> Response {
    let text = text(&contact, &public_url, clock.now());
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "public, max-age=86400")], text).into_response()
}

fn text(contact: &str, public_url: &str, now: Timestamp) -> String {
    format!("Contact: {contact}\nExpires: {}\nCanonical: {public_url}{PATH}\n", now + VALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_txt_expires_within_a_year() {
        let now = Timestamp::from_ms(1_795_206_774_120);
        assert_eq!(
            text("mailto:security@grabd.example", "https://grabd.example", now),
            "Contact: mailto:security@grabd.example\nExpires: 2027-05-19T20:32:54.120Z\n\
             Canonical: https://grabd.example/.well-known/security.txt\n"
        );
    }
}
