//! Payments through Stripe: a purchase begins as a Checkout session that we ask for, and ends as an event that Stripe
//! signs and we are sent.
//!
//! Nothing is kept between the two. What was bought, by whom and for how much travels as the session's metadata, which
//! nobody between us and Stripe can change: we set it with the secret key, and the event's signature covers it.

pub(super) mod checkout;
mod event;
mod receive;
mod signature;

use std::fmt;

use grabd_domain::target::TargetUrl;

pub use receive::{MAX_EVENT_BYTES, Outcome, SIGNATURE, receive};

/// The currency of the price list, as Stripe writes it.
const CURRENCY: &str = "usd";

/// An account with Stripe.
pub struct Stripe {
    /// Where sessions are asked for.
    sessions: TargetUrl,
    secret_key: String,
    /// Each of them may have signed an event: while one is rotated there are two.
    webhook_secrets: Vec<String>,
}

impl Stripe {
    /// The account of a secret key, whose events are signed with one of these secrets. `None` when `api_base` is no
    /// origin such as `https://api.stripe.com`.
    pub fn new(api_base: &str, secret_key: &str, webhook_secrets: Vec<String>) -> Option<Self> {
        let sessions = TargetUrl::restore(&format!("{}/v1/checkout/sessions", api_base.trim_end_matches('/')))?;
        Some(Self { sessions, secret_key: secret_key.to_owned(), webhook_secrets })
    }
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stripe at {}", self.sessions)
    }
}

/// What the reference of a lot begins with that was paid for here.
const PAID_HERE: &str = "stripe:";

/// The payment or session behind a lot, as the lot has it.
fn source_ref(id: &str) -> String {
    format!("{PAID_HERE}{id}")
}

/// Is it a payment that stands behind a lot or an entry with this reference?
pub fn is_payment(reference: &str) -> bool {
    reference.starts_with(PAID_HERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let stripe = Stripe::new("https://api.stripe.com/", "sk_live_hunter2", vec!["whsec_hunter3".into()]).unwrap();
        assert_eq!(format!("{stripe:?}"), "Stripe at https://api.stripe.com/v1/checkout/sessions");
        assert!(Stripe::new("api.stripe.com", "", Vec::new()).is_none());
    }
}
