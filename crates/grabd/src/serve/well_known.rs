//! `/.well-known/security.txt` (RFC 9116): the contact for reporting vulnerabilities.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use grabd_domain::Timestamp;
use grabd_edge::allow_methods;
use grabd_engine::clock::Clock;
use grabd_http::allow_any_origin;

/// Validity of the file. RFC 9116 recommends less than a year.
const VALID: Duration = Duration::from_secs(180 * 24 * 60 * 60);
const PATH: &str = "/.well-known/security.txt";

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
