//! Payments through Stripe. A purchase starts with a Checkout session that this service creates, and is completed by a
//! signed webhook event from Stripe.
//!
//! No state is stored in between. The team, package and price are in the session's metadata, which cannot be changed by
//! others: it is set with the secret key and covered by the event's signature.

pub(super) mod checkout;
mod event;
mod receive;
mod signature;

use std::fmt;

use grabd_domain::target::TargetUrl;

pub use receive::{MAX_EVENT_BYTES, Outcome, SIGNATURE_HEADER, receive};

/// The currency of the price list, as a Stripe currency code.
const CURRENCY: &str = "usd";

/// A Stripe account.
pub struct Stripe {
    /// URL at which Checkout sessions are created.
    sessions: TargetUrl,
    secret_key: String,
    /// Webhook signing secrets; two during a rotation.
    webhook_secrets: Vec<String>,
}

impl Stripe {
    /// An account with its secret key and webhook signing secrets. `None` when `api_base` is not an origin such as
    /// `https://api.stripe.com`.
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

/// Prefix of the reference of a lot that was bought through this service.
const PAYMENT_PREFIX: &str = "stripe:";

/// The lot reference of a payment or session id.
fn source_ref(id: &str) -> String {
    format!("{PAYMENT_PREFIX}{id}")
}

/// Whether a lot or entry with this reference was paid for through Stripe.
pub fn is_payment(reference: &str) -> bool {
    reference.starts_with(PAYMENT_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_secrets_and_invalid_origins_are_refused() {
        let stripe = Stripe::new("https://api.stripe.com/", "sk_live_hunter2", vec!["whsec_hunter3".into()]).unwrap();
        assert_eq!(format!("{stripe:?}"), "Stripe at https://api.stripe.com/v1/checkout/sessions");
        assert!(Stripe::new("api.stripe.com", "", Vec::new()).is_none());
    }
}
