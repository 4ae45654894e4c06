//! Stripe events, reduced to the members that are used here.

use std::collections::BTreeMap;

use grabd_domain::credits::DisputeState;
use grabd_domain::ids::TeamId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::{CURRENCY, source_ref};

/// Maximum length of an id in bytes. Stripe allows 255.
const MAX_ID_BYTES: usize = 255;

/// Maximum length of the address of a receipt in bytes. Those of Stripe have about 200.
const MAX_RECEIPT_BYTES: usize = 2048;
/// The domain of the pages with receipts, which are at `pay.stripe.com`.
const RECEIPT_HOST: &str = "stripe.com";

/// A Stripe event.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub(super) id: String,
    #[serde(rename = "type")]
    kind: String,
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    object: Value,
}

/// The object of an event.
#[derive(Debug)]
pub(super) enum EventObject {
    /// A Checkout session that was completed, or whose delayed payment succeeded.
    Session(Session),
    /// A charge that succeeded.
    Charge(Charge),
    /// A charge that was refunded, in part or in full.
    Refund(Charge),
    /// A dispute that was opened or closed.
    Dispute(Dispute),
    /// Any other event type.
    Other,
}

/// A Checkout session.
#[derive(Debug, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    /// Stripe creates the payment before it completes the session, so every event about a paid session has the same id.
    payment_intent: Option<String>,
    payment_status: String,
    amount_total: Option<u64>,
    currency: Option<String>,
    client_reference_id: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
}

/// A successful payment.
#[derive(Debug, Deserialize)]
pub(super) struct Charge {
    payment_intent: Option<String>,
    pub(super) amount: u64,
    pub(super) amount_refunded: u64,
    /// A page of Stripe.
    receipt_url: Option<String>,
}

/// A dispute of a payment, also called a chargeback.
#[derive(Debug, Deserialize)]
pub(super) struct Dispute {
    pub(super) id: String,
    payment_intent: Option<String>,
    status: String,
    pub(super) reason: Option<String>,
}

/// The classification of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionOutcome {
    /// A package was paid in full.
    Paid(Purchase),
    /// The payment is pending; another event follows when it succeeds.
    Unpaid,
    /// The sale was not made by this service: the Stripe account may sell other things.
    Foreign,
    /// The session has this service's metadata but is inconsistent; the text is the reason.
    Unexpected(&'static str),
}

/// A paid package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Purchase {
    pub(super) team: TeamId,
    pub(super) credits: u32,
    pub(super) source_ref: String,
}

impl Event {
    pub(super) fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    pub(super) fn into_object(self) -> Result<EventObject, serde_json::Error> {
        fn parse<T: DeserializeOwned>(
            event: Event,
            variant: fn(T) -> EventObject,
        ) -> Result<EventObject, serde_json::Error> {
            serde_json::from_value(event.data.object).map(variant)
        }
        match self.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                parse(self, EventObject::Session)
            }
            "charge.succeeded" => parse(self, EventObject::Charge),
            "charge.refunded" => parse(self, EventObject::Refund),
            "charge.dispute.created" | "charge.dispute.closed" => parse(self, EventObject::Dispute),
            _ => Ok(EventObject::Other),
        }
    }
}

impl Session {
    /// Classifies a session by the metadata it was created with. The price at that time counts, not the current price
    /// list.
    pub(super) fn classify(&self) -> SessionOutcome {
        let Some(metadata) = self.metadata.as_ref().filter(|metadata| metadata.contains_key("team")) else {
            return SessionOutcome::Foreign;
        };
        if self.payment_status != "paid" {
            return SessionOutcome::Unpaid;
        }
        let of = |name: &str| metadata.get(name).map(String::as_str);
        let Some(team) = of("team").and_then(|team| team.parse::<TeamId>().ok()) else {
            return SessionOutcome::Unexpected("the team is not an id");
        };
        if self.client_reference_id.as_deref() != of("team") {
            return SessionOutcome::Unexpected("client_reference_id is not the team");
        }
        let Some(credits) = of("credits").and_then(|credits| credits.parse().ok()).filter(|credits| *credits > 0)
        else {
            return SessionOutcome::Unexpected("the credits are not a positive number");
        };
        let Some(price) = of("price_cents").and_then(|price| price.parse::<u64>().ok()).filter(|price| *price > 0)
        else {
            return SessionOutcome::Unexpected("the price is not a positive number");
        };
        if self.currency.as_deref() != Some(CURRENCY) {
            return SessionOutcome::Unexpected("the currency is not that of the price list");
        }
        if self.amount_total != Some(price) {
            return SessionOutcome::Unexpected("the amount is not the price of the package");
        }
        let source_ref = source_ref(self.payment_intent.as_deref().unwrap_or(&self.id));
        SessionOutcome::Paid(Purchase { team, credits, source_ref })
    }

    /// Amount and currency, for the log.
    pub(super) fn amount(&self) -> (Option<u64>, Option<&str>) {
        (self.amount_total, self.currency.as_deref())
    }
}

impl Charge {
    /// The reference of the lot that this payment bought.
    pub(super) fn source_ref(&self) -> Option<String> {
        self.payment_intent.as_deref().map(source_ref)
    }

    /// The page with the receipt, if Stripe named one of its own.
    pub(super) fn receipt(&self) -> Option<&str> {
        self.receipt_url.as_deref().filter(|url| is_page_of_stripe(url))
    }
}

/// Whether people can be sent to this address as to a page of Stripe.
fn is_page_of_stripe(address: &str) -> bool {
    if address.len() > MAX_RECEIPT_BYTES {
        return false;
    }
    let Ok(url) = Url::parse(address) else { return false };
    let is_own = |host: &str| host == RECEIPT_HOST || host.ends_with(&format!(".{RECEIPT_HOST}"));
    url.scheme() == "https"
        && url.username().is_empty()
        && url.password().is_none()
        && url.host_str().is_some_and(is_own)
}

impl Dispute {
    /// The reference of the lot that the disputed payment bought.
    pub(super) fn source_ref(&self) -> Option<String> {
        self.payment_intent.as_deref().map(source_ref)
    }

    /// The state of the dispute. An inquiry that was closed without a dispute counts as won.
    pub(super) fn state(&self) -> DisputeState {
        match self.status.as_str() {
            "won" | "warning_closed" => DisputeState::Won,
            "lost" => DisputeState::Lost,
            // Every other status, also one that is unknown here, is that of a dispute without a decision.
            _ => DisputeState::Open,
        }
    }

    /// Whether the id has the length of an id.
    pub(super) fn has_valid_id(&self) -> bool {
        (1..=MAX_ID_BYTES).contains(&self.id.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEAM: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn session(change: impl FnOnce(&mut Value)) -> SessionOutcome {
        let mut object = json!({
            "id": "cs_test_1", "object": "checkout.session", "mode": "payment", "payment_intent": "pi_1",
            "payment_status": "paid", "amount_total": 5000, "currency": "usd", "client_reference_id": TEAM,
            "metadata": {"team": TEAM, "package": "25k", "credits": "25000", "price_cents": "5000"},
        });
        change(&mut object);
        let event = json!({"id": "evt_1", "type": "checkout.session.completed", "data": {"object": object}});
        match Event::read(event.to_string().as_bytes()).unwrap().into_object().unwrap() {
            EventObject::Session(session) => session.classify(),
            object @ (EventObject::Charge(_)
            | EventObject::Refund(_)
            | EventObject::Dispute(_)
            | EventObject::Other) => panic!("{object:?}"),
        }
    }

    #[test]
    fn paid_session_is_a_purchase_and_foreign_metadata_is_ignored() {
        let team = TEAM.parse().unwrap();
        let bought = |reference: &str| {
            SessionOutcome::Paid(Purchase { team, credits: 25_000, source_ref: reference.to_owned() })
        };
        assert_eq!(session(|_| {}), bought("stripe:pi_1"));
        assert_eq!(session(|s| s["payment_intent"] = Value::Null), bought("stripe:cs_test_1"));
        assert_eq!(session(|s| s["payment_status"] = json!("unpaid")), SessionOutcome::Unpaid);
        assert_eq!(session(|s| s["payment_status"] = json!("no_payment_required")), SessionOutcome::Unpaid);
        for foreign in [Value::Null, json!({}), json!({"order": "7"})] {
            assert_eq!(session(|s| s["metadata"] = foreign), SessionOutcome::Foreign);
        }
    }

    #[test]
    fn inconsistent_session_is_unexpected() {
        for (pointer, value) in [
            ("/amount_total", json!(4999)),
            ("/amount_total", json!(5001)),
            ("/amount_total", json!(0)),
            ("/amount_total", Value::Null),
            ("/currency", json!("eur")),
            ("/currency", json!("jpy")),
            ("/currency", Value::Null),
            ("/client_reference_id", json!("01993e1c-7b1a-7000-8000-000000000000")),
            ("/client_reference_id", Value::Null),
            ("/metadata/team", json!("acme")),
            ("/metadata/credits", json!("0")),
            ("/metadata/credits", json!("-1")),
            ("/metadata/credits", json!("many")),
            ("/metadata/credits", json!("4294967296")),
            ("/metadata/price_cents", json!("4999")),
            ("/metadata/price_cents", json!("")),
        ] {
            let outcome = session(|s| *s.pointer_mut(pointer).unwrap() = value.clone());
            assert!(matches!(outcome, SessionOutcome::Unexpected(_)), "{pointer} {value}: {outcome:?}");
        }
        // A price of zero is invalid, even when nothing was paid.
        let free = session(|s| {
            s["amount_total"] = json!(0);
            s["metadata"]["price_cents"] = json!("0");
        });
        assert!(matches!(free, SessionOutcome::Unexpected(_)), "{free:?}");
        let without = session(|s| s["metadata"] = json!({"team": TEAM, "package": "25k"}));
        assert!(matches!(without, SessionOutcome::Unexpected(_)), "{without:?}");
    }

    #[test]
    fn status_of_a_dispute_gives_its_state() {
        for (status, expected) in [
            ("needs_response", DisputeState::Open),
            ("warning_under_review", DisputeState::Open),
            ("a_status_of_the_future", DisputeState::Open),
            ("won", DisputeState::Won),
            ("warning_closed", DisputeState::Won),
            ("lost", DisputeState::Lost),
        ] {
            let object = json!({"id": "du_1", "payment_intent": "pi_1", "status": status, "reason": null});
            let event = json!({"id": "evt_1", "type": "charge.dispute.closed", "data": {"object": object}});
            let object = Event::read(event.to_string().as_bytes()).unwrap().into_object().unwrap();
            let EventObject::Dispute(dispute) = object else { panic!("{object:?}") };
            assert_eq!(dispute.state(), expected, "{status}");
            assert_eq!(dispute.source_ref().as_deref(), Some("stripe:pi_1"));
        }
    }

    #[test]
    fn only_pages_of_stripe_are_receipts() {
        let long = format!("https://pay.stripe.com/receipts/{}", "x".repeat(MAX_RECEIPT_BYTES));
        for (address, expected) in [
            (json!("https://pay.stripe.com/receipts/payment/CAcaFwoVYWNjdF8x?s=ap"), true),
            (json!("https://stripe.com/receipts/1"), true),
            (json!("http://pay.stripe.com/receipts/1"), false),
            (json!("https://pay.stripe.com.evil.example/"), false),
            (json!("https://notstripe.com/"), false),
            (json!("https://pay.stripe.com@evil.example/"), false),
            (json!("javascript:alert(1)"), false),
            (json!(long), false),
            (json!(""), false),
            (Value::Null, false),
        ] {
            let object =
                json!({"payment_intent": "pi_1", "amount": 5000, "amount_refunded": 0, "receipt_url": address});
            let event = json!({"id": "evt_1", "type": "charge.succeeded", "data": {"object": object}});
            let object = Event::read(event.to_string().as_bytes()).unwrap().into_object().unwrap();
            let EventObject::Charge(charge) = object else { panic!("{object:?}") };
            assert_eq!(charge.receipt().is_some(), expected, "{address}");
            assert_eq!(charge.source_ref().as_deref(), Some("stripe:pi_1"));
        }
    }

    #[test]
    fn other_event_types_are_not_parsed_and_malformed_events_fail() {
        for (kind, object) in [("customer.created", json!(7)), ("checkout.session.expired", json!({}))] {
            let event = json!({"id": "evt_1", "type": kind, "data": {"object": object}});
            let object = Event::read(event.to_string().as_bytes()).unwrap().into_object();
            assert!(matches!(object, Ok(EventObject::Other)), "{object:?}");
        }
        for broken in ["", "[]", "{}", r#"{"id":"evt_1","type":"charge.refunded"}"#] {
            assert!(Event::read(broken.as_bytes()).is_err(), "{broken}");
        }
        let event = json!({"id": "evt_1", "type": "charge.refunded", "data": {"object": {"amount": "much"}}});
        assert!(Event::read(event.to_string().as_bytes()).unwrap().into_object().is_err());
    }
}
