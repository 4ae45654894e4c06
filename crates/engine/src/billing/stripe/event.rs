//! What Stripe tells: the few members of its events that matter here.

use std::collections::BTreeMap;

use grabd_domain::ids::TeamId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CURRENCY, source_ref};

/// Something that happened at Stripe.
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

/// An event as far as it matters here.
#[derive(Debug)]
pub(super) enum Told {
    /// A Checkout session was completed, or its payment came later.
    Session(Session),
    /// A payment was paid back, in part or in full.
    Refund(Charge),
    /// Anything else.
    Other,
}

/// A Checkout session.
#[derive(Debug, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    /// Stripe makes the payment before it completes the session, so each event about a paid one names the same.
    payment_intent: Option<String>,
    payment_status: String,
    amount_total: Option<u64>,
    currency: Option<String>,
    client_reference_id: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
}

/// A payment that went through.
#[derive(Debug, Deserialize)]
pub(super) struct Charge {
    payment_intent: Option<String>,
    pub(super) amount: u64,
    pub(super) amount_refunded: u64,
}

/// What a session comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A package was paid, by whom and in full.
    Paid(Purchase),
    /// The money is still under way; another event tells when it came.
    Unpaid,
    /// Nothing that was sold here: an account may sell other things as well.
    Foreign,
    /// It says that it was sold here and does not add up, because of this.
    Unexpected(&'static str),
}

/// A package that was paid.
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

    pub(super) fn told(self) -> Result<Told, serde_json::Error> {
        fn read<T: DeserializeOwned>(event: Event, told: fn(T) -> Told) -> Result<Told, serde_json::Error> {
            serde_json::from_value(event.data.object).map(told)
        }
        match self.kind.as_str() {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => read(self, Told::Session),
            "charge.refunded" => read(self, Told::Refund),
            _ => Ok(Told::Other),
        }
    }
}

impl Session {
    /// Judges a session by what it was asked for with: its metadata says what was bought and what that cost then, whatever
    /// the price list says now.
    pub(super) fn judge(&self) -> Verdict {
        let Some(metadata) = self.metadata.as_ref().filter(|metadata| metadata.contains_key("team")) else {
            return Verdict::Foreign;
        };
        if self.payment_status != "paid" {
            return Verdict::Unpaid;
        }
        let of = |name: &str| metadata.get(name).map(String::as_str);
        let Some(team) = of("team").and_then(|team| team.parse::<TeamId>().ok()) else {
            return Verdict::Unexpected("the team is no id");
        };
        if self.client_reference_id.as_deref() != of("team") {
            return Verdict::Unexpected("client_reference_id is another team");
        }
        let Some(credits) = of("credits").and_then(|credits| credits.parse().ok()).filter(|credits| *credits > 0)
        else {
            return Verdict::Unexpected("the credits are no number");
        };
        let Some(price) = of("price_cents").and_then(|price| price.parse::<u64>().ok()).filter(|price| *price > 0)
        else {
            return Verdict::Unexpected("the price is no number");
        };
        if self.currency.as_deref() != Some(CURRENCY) {
            return Verdict::Unexpected("it was paid in another currency");
        }
        if self.amount_total != Some(price) {
            return Verdict::Unexpected("the amount is not what the package cost");
        }
        let source_ref = source_ref(self.payment_intent.as_deref().unwrap_or(&self.id));
        Verdict::Paid(Purchase { team, credits, source_ref })
    }

    /// For the log.
    pub(super) fn amount(&self) -> (Option<u64>, Option<&str>) {
        (self.amount_total, self.currency.as_deref())
    }
}

impl Charge {
    /// The payment behind it, as its lot has it.
    pub(super) fn source_ref(&self) -> Option<String> {
        self.payment_intent.as_deref().map(source_ref)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEAM: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn session(change: impl FnOnce(&mut Value)) -> Verdict {
        let mut object = json!({
            "id": "cs_test_1", "object": "checkout.session", "mode": "payment", "payment_intent": "pi_1",
            "payment_status": "paid", "amount_total": 5000, "currency": "usd", "client_reference_id": TEAM,
            "metadata": {"team": TEAM, "package": "25k", "credits": "25000", "price_cents": "5000"},
        });
        change(&mut object);
        let event = json!({"id": "evt_1", "type": "checkout.session.completed", "data": {"object": object}});
        match Event::read(event.to_string().as_bytes()).unwrap().told().unwrap() {
            Told::Session(session) => session.judge(),
            told @ (Told::Refund(_) | Told::Other) => panic!("{told:?}"),
        }
    }

    #[test]
    fn a_paid_package_is_a_purchase() {
        let team = TEAM.parse().unwrap();
        let bought =
            |reference: &str| Verdict::Paid(Purchase { team, credits: 25_000, source_ref: reference.to_owned() });
        assert_eq!(session(|_| {}), bought("stripe:pi_1"));
        assert_eq!(session(|s| s["payment_intent"] = Value::Null), bought("stripe:cs_test_1"));
        assert_eq!(session(|s| s["payment_status"] = json!("unpaid")), Verdict::Unpaid);
        assert_eq!(session(|s| s["payment_status"] = json!("no_payment_required")), Verdict::Unpaid);
        for foreign in [Value::Null, json!({}), json!({"order": "7"})] {
            assert_eq!(session(|s| s["metadata"] = foreign), Verdict::Foreign);
        }
    }

    #[test]
    fn what_does_not_add_up_is_no_purchase() {
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
            let verdict = session(|s| *s.pointer_mut(pointer).unwrap() = value.clone());
            assert!(matches!(verdict, Verdict::Unexpected(_)), "{pointer} {value}: {verdict:?}");
        }
        // Free of charge is no price, even where nothing was paid.
        let free = session(|s| {
            s["amount_total"] = json!(0);
            s["metadata"]["price_cents"] = json!("0");
        });
        assert!(matches!(free, Verdict::Unexpected(_)), "{free:?}");
        let without = session(|s| s["metadata"] = json!({"team": TEAM, "package": "25k"}));
        assert!(matches!(without, Verdict::Unexpected(_)), "{without:?}");
    }

    #[test]
    fn other_events_are_not_read_further() {
        for (kind, object) in [("customer.created", json!(7)), ("checkout.session.expired", json!({}))] {
            let event = json!({"id": "evt_1", "type": kind, "data": {"object": object}});
            let told = Event::read(event.to_string().as_bytes()).unwrap().told();
            assert!(matches!(told, Ok(Told::Other)), "{told:?}");
        }
        for broken in ["", "[]", "{}", r#"{"id":"evt_1","type":"charge.refunded"}"#] {
            assert!(Event::read(broken.as_bytes()).is_err(), "{broken}");
        }
        let event = json!({"id": "evt_1", "type": "charge.refunded", "data": {"object": {"amount": "much"}}});
        assert!(Event::read(event.to_string().as_bytes()).unwrap().told().is_err());
    }
}
