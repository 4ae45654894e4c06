//! Starting a purchase: a Checkout session, on whose page the user pays.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::faults::Field;
use grabd_domain::ids::TeamId;
use grabd_domain::target::TargetUrl;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Collected, Full, Limited};
use serde_json::Value;
use url::form_urlencoded;

use super::{CURRENCY, Stripe};
use crate::billing::Package;
use crate::error::Error;
use crate::outgoing::RequestError;
use crate::random;
use crate::service::Core;

/// The API version of the form below: the first one that can disable local currencies.
const API_VERSION: &str = "2024-11-20.acacia";
/// Time limit of one request. The user waits in front of an empty page meanwhile.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum size of a response in bytes. A session has about 3 KB.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Requests at most: one retry when the outcome of the first is unknown.
const MAX_REQUESTS: usize = 2;

/// Starts the purchase of a package for a team and returns the URL of the payment page. From there the user returns
/// to `success_url` or `cancel_url`. A return to `success_url` proves nothing: credits are granted by Stripe's event.
///
/// # Errors
/// [`Fault::BadRequest`] about `package` when it does not exist or purchases are not configured. When Stripe
/// created no session.
#[tracing::instrument(name = "stripe.start_checkout", skip_all)]
pub async fn start_checkout(
    core: &Core,
    team: TeamId,
    user_email: &str,
    package: &str,
    success_url: &str,
    cancel_url: &str,
) -> Result<String, Error> {
    let refused = |allowed| Fault::BadRequest(Field::new("package", package, allowed));
    let Some(stripe) = &core.billing.stripe else {
        return Err(refused("bought from the administrator of this service").into());
    };
    // An ambiguous name is refused: it could sell the wrong package.
    let mut named = core.billing.pricing.packages().iter().filter(|listed| listed.name == package);
    let (Some(listed), None) = (named.next(), named.next()) else {
        return Err(refused("the name of a package of the price list").into());
    };
    let form = form(team, user_email, listed, success_url, cancel_url);
    Ok(create_session(core, stripe, form).await.map_err(|error| {
        error.log(team);
        Fault::InternalError
    })?)
}

/// The form of the request. All numbers in it come from the price list.
fn form(team: TeamId, user_email: &str, package: &Package, success_url: &str, cancel_url: &str) -> String {
    let Package { name, credits, price_cents } = package;
    let (team, credits, price_cents) = (team.to_string(), credits.to_string(), price_cents.to_string());
    let product = format!("{credits} credits");
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs([
        ("mode", "payment"),
        ("client_reference_id", &team),
        ("customer_email", user_email),
        ("success_url", success_url),
        ("cancel_url", cancel_url),
        ("line_items[0][quantity]", "1"),
        ("line_items[0][price_data][currency]", CURRENCY),
        ("line_items[0][price_data][unit_amount]", &price_cents),
        ("line_items[0][price_data][product_data][name]", &product),
        // In a local currency the amount would differ from the price list.
        ("adaptive_pricing[enabled]", "false"),
        ("metadata[team]", &team),
        ("metadata[package]", name),
        ("metadata[credits]", &credits),
        ("metadata[price_cents]", &price_cents),
    ]);
    form.finish()
}

/// Creates a session. Retries once with the same `Idempotency-Key` when the outcome is unknown.
async fn create_session(core: &Core, stripe: &Stripe, form: String) -> Result<String, CheckoutError> {
    let key = format!("grabd-{:032x}", random::random());
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", stripe.secret_key)).map_err(|_| CheckoutError::Key)?;
    bearer.set_sensitive(true);
    let form = Bytes::from(form);
    let mut outcome = Err(CheckoutError::Key);
    for _ in 0..MAX_REQUESTS {
        let request = Request::post("/")
            .header(AUTHORIZATION, &bearer)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("Idempotency-Key", &key)
            .header("Stripe-Version", API_VERSION);
        let (url, form) = (&stripe.sessions, Full::new(form.clone()));
        let response = core.outgoing.send(&core.guard, url, request, form, REQUEST_TIMEOUT, |head, body| async move {
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map(Collected::to_bytes);
            (head.status, body.unwrap_or_default())
        });
        outcome = match response.await {
            Ok((status, body)) => session_url(status, &body),
            Err(unanswered) => Err(CheckoutError::Unanswered(unanswered)),
        };
        if !matches!(&outcome, Err(error) if error.is_retryable()) {
            break;
        }
    }
    outcome
}

/// The URL of the payment page in a response.
fn session_url(status: StatusCode, body: &[u8]) -> Result<String, CheckoutError> {
    let response: Value = serde_json::from_slice(body).unwrap_or_default();
    if !status.is_success() {
        // The message may repeat request data, so it is not logged.
        let text = |name: &str| response["error"][name].as_str().unwrap_or_default().to_owned();
        return Err(CheckoutError::Refused {
            status,
            kind: text("type"),
            code: text("code"),
            parameter: text("param"),
        });
    }
    let url = response["url"].as_str().and_then(TargetUrl::restore);
    url.map(|url| url.as_str().to_owned()).ok_or(CheckoutError::Unreadable)
}

/// Why no session was created.
#[derive(Debug, thiserror::Error)]
enum CheckoutError {
    #[error("the secret key cannot be sent")]
    Key,
    #[error(transparent)]
    Unanswered(RequestError),
    #[error("status {status}, type {kind:?}, code {code:?}, parameter {parameter:?}")]
    Refused { status: StatusCode, kind: String, code: String, parameter: String },
    #[error("the response has no session URL")]
    Unreadable,
}

impl CheckoutError {
    /// Whether an immediate retry may succeed. Refused and forbidden connections are not retried.
    fn is_retryable(&self) -> bool {
        match self {
            Self::Unanswered(RequestError::Http(_) | RequestError::TimedOut(_)) => true,
            Self::Refused { status, .. } => status.is_server_error(),
            Self::Unanswered(RequestError::Connection(_) | RequestError::Tls(_) | RequestError::Request(_))
            | Self::Key
            | Self::Unreadable => false,
        }
    }

    fn log(&self, team: TeamId) {
        tracing::error!(error = %self, team.id = %team, "no Checkout session could be created");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_gives_the_session_url_or_an_error_without_secrets() {
        let parse = |status, body: &str| session_url(status, body.as_bytes()).map_err(|error| error.to_string());
        let url = "https://checkout.stripe.com/c/pay/cs_test_1#fid";
        assert_eq!(parse(StatusCode::OK, &format!(r#"{{"url":"{url}"}}"#)), Ok(url.to_owned()));
        for body in ["", "[]", r#"{"url":null}"#, r#"{"url":"javascript:alert(1)"}"#, r#"{"url":"/c/pay"}"#] {
            let error = parse(StatusCode::OK, body).unwrap_err();
            assert_eq!(error, "the response has no session URL", "{body}");
        }
        let body =
            r#"{"error":{"type":"invalid_request_error","code":"c","param":"p","message":"key sk_live_hunter2"}}"#;
        let error = parse(StatusCode::UNAUTHORIZED, body).unwrap_err();
        assert_eq!(error, "status 401 Unauthorized, type \"invalid_request_error\", code \"c\", parameter \"p\"");
        assert_eq!(
            parse(StatusCode::BAD_GATEWAY, "<html>").unwrap_err(),
            "status 502 Bad Gateway, type \"\", code \"\", parameter \"\""
        );
    }

    #[test]
    fn form_encodes_untrusted_text_as_single_values() {
        let package = Package { name: "a&b=c".to_owned(), credits: 7, price_cents: 50 };
        let team = TeamId(uuid::Uuid::nil());
        let email = "a&line_items[0][price_data][unit_amount]=1@example.com";
        let form = form(team, email, &package, "https://a.example/?x=1&y=2", "https://a.example/");
        let pairs: Vec<_> = form_urlencoded::parse(form.as_bytes()).into_owned().collect();
        let of = |name: &str| -> Vec<&str> {
            pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(of("customer_email"), [email]);
        assert_eq!(of("line_items[0][price_data][unit_amount]"), ["50"]);
        assert_eq!(of("metadata[package]"), ["a&b=c"]);
        assert_eq!(of("success_url"), ["https://a.example/?x=1&y=2"]);
    }
}
