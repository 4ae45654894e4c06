//! An event comes in. Whatever comes of it is said once, and a repetition changes nothing: the payment is the reference of
//! the lot it grants, and no two lots have the same.

use grabd_domain::Fault;
use grabd_domain::faults::Field;
use grabd_store::{Error, Granted, Share, TakeBack};

use super::event::{Charge, Event, Purchase, Session, Told, Verdict};
use super::{Stripe, signature};
use crate::accounts;
use crate::core::{Core, inside};

/// The header with an event's signature, and the field that is refused when it does not fit.
pub const SIGNATURE: &str = "stripe-signature";
/// The largest event in bytes. Those about sessions and charges have a tenth of it.
pub const MAX_EVENT_BYTES: usize = 64 << 10;

/// What came of an event. Each of them is an end: Stripe need not send it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Credits were granted.
    Granted,
    /// They had been granted before.
    Repeated,
    /// The money is still under way.
    Unpaid,
    /// It was not sold here.
    Foreign,
    /// What was paid is not what was to be paid. Nothing was granted, and somebody has to look.
    Unexpected,
    /// The team that it was sold to is gone. Nothing was granted, and somebody has to look.
    UnknownTeam,
    /// A payment was paid back, and what was left of its credits is gone.
    Refunded,
    /// It is about nothing that matters here.
    Ignored,
}

impl Outcome {
    /// The operator's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Repeated => "repeated",
            Self::Unpaid => "unpaid",
            Self::Foreign => "foreign",
            Self::Unexpected => "unexpected",
            Self::UnknownTeam => "unknown_team",
            Self::Refunded => "refunded",
            Self::Ignored => "ignored",
        }
    }
}

/// Takes in an event: the value of its `Stripe-Signature` and its body, byte for byte.
///
/// # Errors
/// [`Fault::BadRequest`] when Stripe did not sign it just now, or it cannot be read; [`Fault::InternalError`] when it
/// could not be carried out, so that it has to come again; [`Fault::NotFound`] when nothing is sold here.
pub async fn receive(core: &Core, signature: Option<&str>, body: &[u8]) -> Result<Outcome, Fault> {
    let stripe = core.stripe.as_ref().ok_or(Fault::NotFound { what: "account" })?;
    let outcome = take(core, stripe, signature, body).await;
    core.metrics.payment_told(match &outcome {
        Ok(outcome) => outcome.as_str(),
        Err(Fault::BadRequest(_)) => "refused",
        Err(_) => "failed",
    });
    outcome
}

async fn take(core: &Core, stripe: &Stripe, signature: Option<&str>, body: &[u8]) -> Result<Outcome, Fault> {
    // Anybody can send what does not verify, so it is counted and not logged.
    signature::verify(signature, body, &stripe.webhook_secrets, core.clock.now())
        .map_err(|seen| bad(SIGNATURE, &seen.to_string(), "Stripe's own, made within the last 5 minutes"))?;
    let unreadable = |error: serde_json::Error| {
        tracing::error!(%error, "an event that Stripe has signed cannot be read; is its API version a newer one?");
        bad("body", "", "an event of a version that is understood here")
    };
    let event = Event::read(body).map_err(unreadable)?;
    let id = event.id.clone();
    match event.told().map_err(unreadable)? {
        Told::Session(session) => settle(core, &id, &session).await,
        Told::Refund(charge) => refund(core, &id, &charge).await,
        Told::Other => Ok(Outcome::Ignored),
    }
}

async fn settle(core: &Core, event: &str, session: &Session) -> Result<Outcome, Fault> {
    let purchase = match session.judge() {
        Verdict::Paid(purchase) => purchase,
        Verdict::Unpaid => return Ok(Outcome::Unpaid),
        Verdict::Foreign => return Ok(Outcome::Foreign),
        Verdict::Unexpected(why) => return Ok(unexpected(event, session, why)),
    };
    let Purchase { team, credits, source_ref } = purchase;
    if core.store.find_team(team).await.map_err(inside("stripe.team"))?.is_none() {
        tracing::error!(
            stripe.event = event,
            stripe.session = session.id,
            team.id = %team,
            "PAID AND NOT GRANTED: there is no such team here. Pay it back at Stripe, or find out whose it is"
        );
        return Ok(Outcome::UnknownTeam);
    }
    match accounts::grant_prepaid(&core.store, team, credits, &source_ref, core.clock.now()).await {
        Ok(Granted::New(_)) => {
            tracing::info!(stripe.session = session.id, team.id = %team, credits, "credits were bought");
            Ok(Outcome::Granted)
        }
        Ok(Granted::Repeated(_)) => Ok(Outcome::Repeated),
        // Sending it again would not help.
        Err(Error::Inconsistent(why)) => Ok(unexpected(event, session, why)),
        Err(error) => Err(inside("stripe.grant")(error)),
    }
}

fn unexpected(event: &str, session: &Session, why: &str) -> Outcome {
    let (amount, currency) = session.amount();
    tracing::error!(
        stripe.event = event,
        stripe.session = session.id,
        amount,
        currency,
        why,
        "PAID AND NOT GRANTED: the payment does not fit what was sold. Look at the session at Stripe"
    );
    Outcome::Unexpected
}

async fn refund(core: &Core, event: &str, charge: &Charge) -> Result<Outcome, Fault> {
    let Some(source_ref) = charge.source_ref() else { return Ok(Outcome::Foreign) };
    let share = Share { parts: charge.amount_refunded, of: charge.amount };
    let reference = format!("refund of {source_ref}");
    let change = TakeBack { source_ref, share, reference: reference.clone(), now: core.clock.now() };
    match core.store.take_back(change).await.map_err(inside("stripe.refund"))? {
        Some(back) => {
            let (taken, missing) = (back.taken, back.missing);
            tracing::warn!(
                stripe.event = event,
                lot = back.lot.0,
                reference,
                taken,
                missing,
                "credits were taken back"
            );
            Ok(Outcome::Refunded)
        }
        None => Ok(Outcome::Foreign),
    }
}

fn bad(name: &'static str, seen: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new(name, seen, allowed))
}
