//! Sign-in on a machine without a browser: the device authorization grant (RFC 8628).

use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::discovery::{DEVICE_GRANT, Registration, Service};
use super::tokens::{self, TokenAnswer, Tokens};
use crate::failure::Failure;

/// Registered because a client has one. Nothing is redirected.
const UNUSED_REDIRECT: &str = "http://127.0.0.1/callback";

/// The interval of a service that names none (RFC 8628 section 3.2).
const DEFAULT_INTERVAL_S: u64 = 5;
/// Added to the interval when the service asks to slow down (section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// Limits of what a service may ask for.
const MAX_INTERVAL_S: u64 = 60;
const MAX_LIFE_S: u64 = 1800;

/// A device authorization response (RFC 8628 section 3.2).
#[derive(Deserialize)]
struct DeviceAuthorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    expires_in: u64,
    interval: Option<u64>,
}

/// Shows a code, and waits until the user has typed it on another device and allowed this program.
pub(super) async fn sign_in(http: &Client, service: &Service, scope: &str) -> Result<Tokens, Failure> {
    let Some(endpoint) = &service.server.device_authorization_endpoint else {
        return Err(Failure::Login("the service does not support sign-in by a code; use an API key".to_owned()));
    };
    let Registration { client_id } = service.register(http, UNUSED_REDIRECT).await?;
    let form = [("client_id", client_id.as_str()), ("scope", scope), ("resource", &service.resource)];
    let begun: DeviceAuthorization = tokens::post(http, endpoint, &form).await?;
    let DeviceAuthorization { device_code, user_code, verification_uri, expires_in, interval } = begun;
    // It goes to a terminal.
    let shown = |text: &str| text.chars().filter(|letter| !letter.is_control()).take(200).collect::<String>();
    eprintln!(
        "To sign in, open this page in a browser on any device, and enter the code {}:\n\n  {}\n",
        shown(&user_code),
        shown(&verification_uri)
    );
    let end = Instant::now() + Duration::from_secs(expires_in.min(MAX_LIFE_S));
    let mut interval = Duration::from_secs(interval.unwrap_or(DEFAULT_INTERVAL_S).clamp(1, MAX_INTERVAL_S));
    let form = [
        ("grant_type", DEVICE_GRANT),
        ("device_code", device_code.as_str()),
        ("client_id", client_id.as_str()),
        ("resource", &service.resource),
    ];
    loop {
        // The interval of the protocol.
        sleep(interval).await;
        match tokens::ask(http, &service.server.token_endpoint, &form).await {
            Ok(TokenAnswer::Tokens(response)) => return Tokens::new(response, service, client_id),
            Ok(TokenAnswer::Error { error, .. }) if error == "authorization_pending" => {}
            Ok(TokenAnswer::Error { error, .. }) if error == "slow_down" => interval += SLOW_DOWN,
            Ok(TokenAnswer::Error { error, .. }) if error == "access_denied" => {
                return Err(Failure::Login("you did not allow it".to_owned()));
            }
            Ok(TokenAnswer::Error { error, .. }) if error == "expired_token" => break,
            Ok(TokenAnswer::Error { error, description }) => return Err(Failure::Login(description.unwrap_or(error))),
            // The service may be away for a moment, or ask for a pause (RFC 8628 section 3.5).
            Err(Failure::Unreachable { .. } | Failure::UnexpectedResponse { .. }) => interval += SLOW_DOWN,
            Err(failure) => return Err(failure),
        }
        if Instant::now() >= end {
            break;
        }
    }
    Err(Failure::Login("nobody has entered the code in time".to_owned()))
}
