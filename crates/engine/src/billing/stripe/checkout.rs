//! A purchase begins: a Checkout session, on whose page the person pays.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::faults::Field;
use grabd_domain::ids::TeamId;
use grabd_domain::target::TargetUrl;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Collected, Limited};
use serde_json::Value;
use url::form_urlencoded;

use super::{CURRENCY, Stripe};
use crate::billing::Package;
use crate::chance;
use crate::core::Core;
use crate::outgoing::Unanswered;

/// The version that the form below is written in: the first one in which the local currency can be declined.
const VERSION: &str = "2024-11-20.acacia";
/// How long one attempt may take; somebody looks at an empty page meanwhile.
const LIMIT: Duration = Duration::from_secs(8);
/// Most bytes of an answer. A session has some 3 KB.
const ANSWER_BYTES: usize = 64 << 10;
/// The first attempt, and another when nobody knows what came of it.
const ATTEMPTS: usize = 2;

/// Begins the purchase of a package for a team, and answers where the person pays. They come back to `success_url` when
/// they did, which says nothing yet: credits come with Stripe's event; or to `cancel_url`.
///
/// # Errors
/// [`Fault::BadRequest`] about `package` when there is no such one, or none can be bought here;
/// [`Fault::InternalError`] when Stripe gave no session, whose cause is logged.
pub async fn start_checkout(
    core: &Core,
    team: TeamId,
    person_email: &str,
    package: &str,
    success_url: &str,
    cancel_url: &str,
) -> Result<String, Fault> {
    let refused = |allowed| Fault::BadRequest(Field::new("package", package, allowed));
    let Some(stripe) = &core.stripe else { return Err(refused("asked of whoever runs this service")) };
    // A name that stands for two would sell one for the other.
    let mut named = core.pricing.packages().iter().filter(|listed| listed.name == package);
    let (Some(listed), None) = (named.next(), named.next()) else {
        return Err(refused("the name of a package of the price list"));
    };
    let form = form(team, person_email, listed, success_url, cancel_url);
    session(core, stripe, form).await.map_err(|error| {
        error.log(team);
        Fault::InternalError
    })
}

/// Every number in it is of our own price list.
fn form(team: TeamId, person_email: &str, package: &Package, success_url: &str, cancel_url: &str) -> String {
    let Package { name, credits, price_cents } = package;
    let (team, credits, price_cents) = (team.to_string(), credits.to_string(), price_cents.to_string());
    let product = format!("{credits} credits");
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs([
        ("mode", "payment"),
        ("client_reference_id", &team),
        ("customer_email", person_email),
        ("success_url", success_url),
        ("cancel_url", cancel_url),
        ("line_items[0][quantity]", "1"),
        ("line_items[0][price_data][currency]", CURRENCY),
        ("line_items[0][price_data][unit_amount]", &price_cents),
        ("line_items[0][price_data][product_data][name]", &product),
        // In a local currency the amount would be one that nobody here has set.
        ("adaptive_pricing[enabled]", "false"),
        ("metadata[team]", &team),
        ("metadata[package]", name),
        ("metadata[credits]", &credits),
        ("metadata[price_cents]", &price_cents),
    ]);
    form.finish()
}

/// Asks for a session, and once more with the same `Idempotency-Key` when it is not known whether there is one.
async fn session(core: &Core, stripe: &Stripe, form: String) -> Result<String, Unstarted> {
    let key = format!("grabd-{:032x}", chance::random());
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", stripe.secret_key)).map_err(|_| Unstarted::Key)?;
    bearer.set_sensitive(true);
    let form = Bytes::from(form);
    let mut outcome = Err(Unstarted::Key);
    for _ in 0..ATTEMPTS {
        let request = Request::post("/")
            .header(AUTHORIZATION, &bearer)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("Idempotency-Key", &key)
            .header("Stripe-Version", VERSION);
        let asked =
            core.outgoing.ask(&core.guard, &stripe.sessions, request, form.clone(), LIMIT, |head, body| async move {
                let body = Limited::new(body, ANSWER_BYTES).collect().await.map(Collected::to_bytes);
                (head.status, body.unwrap_or_default())
            });
        outcome = match asked.await {
            Ok((status, body)) => address(status, &body),
            Err(unanswered) => Err(Unstarted::Unanswered(unanswered)),
        };
        if !matches!(&outcome, Err(error) if error.may_pass()) {
            break;
        }
    }
    outcome
}

/// Where the person pays, out of an answer.
fn address(status: StatusCode, body: &[u8]) -> Result<String, Unstarted> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    if !status.is_success() {
        // Its message may repeat what was sent, so it stays there.
        let word = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
        return Err(Unstarted::Refused { status, kind: word("type"), code: word("code"), parameter: word("param") });
    }
    let url = answer["url"].as_str().and_then(TargetUrl::restore);
    url.map(|url| url.as_str().to_owned()).ok_or(Unstarted::Unreadable)
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
enum Unstarted {
    #[error("the secret key cannot be sent")]
    Key,
    #[error(transparent)]
    Unanswered(Unanswered),
    #[error("status {status}, type {kind:?}, code {code:?}, parameter {parameter:?}")]
    Refused { status: StatusCode, kind: String, code: String, parameter: String },
    #[error("an answer without the address of a session")]
    Unreadable,
}

impl Unstarted {
    /// May the same request fare better at once? A refused connection or one that nobody may make will not.
    fn may_pass(&self) -> bool {
        match self {
            Self::Unanswered(Unanswered::Http(_) | Unanswered::TimedOut(_)) => true,
            Self::Refused { status, .. } => status.is_server_error(),
            Self::Unanswered(Unanswered::Connection(_) | Unanswered::Tls(_) | Unanswered::Request(_))
            | Self::Key
            | Self::Unreadable => false,
        }
    }

    fn log(&self, team: TeamId) {
        tracing::error!(error = %self, team.id = %team, "no purchase could be begun at Stripe");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_address_or_a_cause_without_secrets() {
        let at = |status, body: &str| address(status, body.as_bytes()).map_err(|error| error.to_string());
        let url = "https://checkout.stripe.com/c/pay/cs_test_1#fid";
        assert_eq!(at(StatusCode::OK, &format!(r#"{{"url":"{url}"}}"#)), Ok(url.to_owned()));
        for body in ["", "[]", r#"{"url":null}"#, r#"{"url":"javascript:alert(1)"}"#, r#"{"url":"/c/pay"}"#] {
            let told = at(StatusCode::OK, body).unwrap_err();
            assert_eq!(told, "an answer without the address of a session", "{body}");
        }
        let body =
            r#"{"error":{"type":"invalid_request_error","code":"c","param":"p","message":"key sk_live_hunter2"}}"#;
        let told = at(StatusCode::UNAUTHORIZED, body).unwrap_err();
        assert_eq!(told, "status 401 Unauthorized, type \"invalid_request_error\", code \"c\", parameter \"p\"");
        assert_eq!(
            at(StatusCode::BAD_GATEWAY, "<html>").unwrap_err(),
            "status 502 Bad Gateway, type \"\", code \"\", parameter \"\""
        );
    }

    #[test]
    fn a_form_carries_what_a_person_wrote_as_one_value() {
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
