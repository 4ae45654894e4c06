//! Handling of incoming Stripe events. It is idempotent: the payment id is the reference of the granted lot, and
//! references are unique.

use grabd_domain::Fault;
use grabd_domain::credits::{DisputeState, LotKind};
use grabd_domain::faults::Field;
use grabd_store::credits::{Clawback, ClawbackOutcome, Grant, GrantOutcome, Receipt, Share};

use super::event::{Charge, Dispute, Event, EventObject, Purchase, Session, SessionOutcome};
use super::{Stripe, signature};
use crate::error::Error;
use crate::service::Core;

/// The header with an event's signature, and the field name of the error when it does not verify.
pub const SIGNATURE_HEADER: &str = "stripe-signature";
/// Maximum size of an event in bytes. Events about sessions and charges have a tenth of it.
pub const MAX_EVENT_BYTES: usize = 64 << 10;

/// The outcome of an event. Each one is final: Stripe need not send the event again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Credits were granted.
    Granted,
    /// The credits had been granted before.
    Repeated,
    /// The payment is still pending.
    Unpaid,
    /// The sale was not made by this service.
    Foreign,
    /// The payment does not match the purchase. Nothing was granted; the operator has to investigate.
    Unexpected,
    /// The team does not exist. Nothing was granted; the operator has to investigate.
    UnknownTeam,
    /// A payment was refunded, and the remaining credits were taken back.
    Refunded,
    /// A payment is or stays disputed, and the remaining credits were taken back.
    Disputed,
    /// A dispute was won, and the credits were given back.
    DisputeWon,
    /// A refund or a dispute of a payment that has not granted anything. It is applied when it does; the sale may also
    /// not have been made by this service.
    Remembered,
    /// The receipt of a payment was stored. The sale may also not have been made by this service.
    Receipt,
    /// The event type is not handled.
    Ignored,
}

impl Outcome {
    /// Value of the metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Repeated => "repeated",
            Self::Unpaid => "unpaid",
            Self::Foreign => "foreign",
            Self::Unexpected => "unexpected",
            Self::UnknownTeam => "unknown_team",
            Self::Refunded => "refunded",
            Self::Disputed => "disputed",
            Self::DisputeWon => "dispute_won",
            Self::Remembered => "remembered",
            Self::Receipt => "receipt",
            Self::Ignored => "ignored",
        }
    }
}

/// Handles an event, given the value of its `Stripe-Signature` header and the raw body.
///
/// # Errors
/// [`Fault::BadRequest`] when the signature is not valid and recent, or the event cannot be parsed;
/// [`Fault::NotFound`] when purchases are not configured. When the event could not be processed and has to be sent again.
#[tracing::instrument(name = "stripe.receive", skip_all)]
pub async fn receive(core: &Core, signature: Option<&str>, body: &[u8]) -> Result<Outcome, Error> {
    let stripe = core.billing.stripe.as_ref().ok_or(Fault::NotFound { what: "account" })?;
    let outcome = handle(core, stripe, signature, body).await;
    core.metrics.payment_event(match &outcome {
        Ok(outcome) => outcome.as_str(),
        Err(Error::Fault(Fault::BadRequest(_))) => "refused",
        Err(_) => "failed",
    });
    outcome
}

async fn handle(core: &Core, stripe: &Stripe, signature: Option<&str>, body: &[u8]) -> Result<Outcome, Error> {
    // Anybody can send an unsigned event, so it is counted and not logged.
    signature::verify(signature, body, &stripe.webhook_secrets, core.clock.now())
        .map_err(|error| bad(SIGNATURE_HEADER, &error.to_string(), "Stripe's own, made within the last 5 minutes"))?;
    let unreadable = |error: serde_json::Error| {
        tracing::error!(%error, "a signed Stripe event cannot be parsed; check its API version");
        bad("body", "", "an event of a version that is understood here")
    };
    let event = Event::read(body).map_err(unreadable)?;
    let id = event.id.clone();
    match event.into_object().map_err(unreadable)? {
        EventObject::Session(session) => grant_purchase(core, &id, &session).await,
        EventObject::Charge(charge) => {
            Ok(if store_receipt(core, &charge).await? { Outcome::Receipt } else { Outcome::Ignored })
        }
        EventObject::Refund(charge) => refund(core, &id, &charge).await,
        EventObject::Dispute(disputed) => dispute(core, &id, &disputed).await,
        EventObject::Other => Ok(Outcome::Ignored),
    }
}

async fn grant_purchase(core: &Core, event: &str, session: &Session) -> Result<Outcome, Error> {
    let purchase = match session.classify() {
        SessionOutcome::Paid(purchase) => purchase,
        SessionOutcome::Unpaid => return Ok(Outcome::Unpaid),
        SessionOutcome::Foreign => return Ok(Outcome::Foreign),
        SessionOutcome::Unexpected(why) => return Ok(unexpected(event, session, why)),
    };
    let Purchase { team, credits, source_ref } = purchase;
    let found = core.store.accounts().find_team(team).await?;
    if found.is_none_or(|found| found.deleted_at.is_some()) {
        tracing::error!(
            stripe.event = event,
            stripe.session = session.id,
            team.id = %team,
            "PAID AND NOT GRANTED: the team does not exist or was deleted. Refund the payment at Stripe, or find out whose it is"
        );
        return Ok(Outcome::UnknownTeam);
    }
    let now = core.clock.now();
    let grant = Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now };
    match core.store.credits().grant_purchase(grabd_store::credits::Purchase(grant)).await {
        Ok((GrantOutcome::New(_), reversed)) => {
            tracing::info!(stripe.session = session.id, team.id = %team, credits, "credits bought");
            if let Some(ClawbackOutcome { lot, taken, .. }) = reversed {
                tracing::warn!(
                    stripe.event = event,
                    team.id = %team,
                    lot = lot.0,
                    taken,
                    "the payment had been refunded or disputed before its credits were granted; they were taken back"
                );
            }
            Ok(Outcome::Granted)
        }
        Ok((GrantOutcome::Repeated(_), _)) => Ok(Outcome::Repeated),
        // Sending the event again would not help.
        Err(grabd_store::Error::Inconsistent(why)) => Ok(unexpected(event, session, why)),
        Err(error) => Err(error.into()),
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
        "PAID AND NOT GRANTED: the payment does not match the purchase. Check the session at Stripe"
    );
    Outcome::Unexpected
}

/// Stores the receipt of a charge. Returns whether it has one.
async fn store_receipt(core: &Core, charge: &Charge) -> Result<bool, Error> {
    let (Some(source_ref), Some(url)) = (charge.source_ref(), charge.receipt()) else { return Ok(false) };
    let receipt = Receipt { source_ref, url: url.to_owned(), now: core.clock.now() };
    core.store.credits().store_receipt(receipt).await?;
    Ok(true)
}

async fn refund(core: &Core, event: &str, charge: &Charge) -> Result<Outcome, Error> {
    let Some(source_ref) = charge.source_ref() else { return Ok(Outcome::Foreign) };
    store_receipt(core, charge).await?;
    let share = Share { parts: charge.amount_refunded, of: charge.amount };
    let reference = format!("refund of {source_ref}");
    let change = Clawback { source_ref, share, reference: reference.clone(), now: core.clock.now() };
    match core.store.credits().claw_back(change).await? {
        Some(back) => {
            log_taken_back(event, &reference, back);
            Ok(Outcome::Refunded)
        }
        None => Ok(remembered(event, &reference)),
    }
}

async fn dispute(core: &Core, event: &str, dispute: &Dispute) -> Result<Outcome, Error> {
    let Some(source_ref) = dispute.source_ref() else { return Ok(Outcome::Foreign) };
    if !dispute.has_valid_id() {
        return Err(bad("id", "", "the id of a dispute").into());
    }
    let (state, reference) = (dispute.state(), format!("dispute {} of {source_ref}", dispute.id));
    let change =
        grabd_store::credits::Dispute { source_ref, reference: reference.clone(), state, now: core.clock.now() };
    let Some(back) = core.store.credits().dispute(change).await? else {
        return Ok(remembered(event, &reference));
    };
    match state {
        DisputeState::Open => {
            let reason = dispute.reason.as_deref().unwrap_or_default();
            tracing::warn!(
                stripe.event = event,
                reference,
                reason,
                "A PAYMENT IS DISPUTED. Answer the dispute at Stripe"
            );
            log_taken_back(event, &reference, back);
            Ok(Outcome::Disputed)
        }
        DisputeState::Lost => {
            tracing::warn!(stripe.event = event, reference, "a dispute was lost");
            log_taken_back(event, &reference, back);
            Ok(Outcome::Disputed)
        }
        DisputeState::Won => {
            let (lot, team, restored) = (back.lot.0, back.team, back.restored);
            tracing::warn!(stripe.event = event, lot, team.id = %team, reference, restored, "a dispute was won");
            Ok(Outcome::DisputeWon)
        }
    }
}

fn log_taken_back(event: &str, reference: &str, back: ClawbackOutcome) {
    let ClawbackOutcome { lot, team, taken, missing, .. } = back;
    tracing::warn!(stripe.event = event, lot = lot.0, team.id = %team, reference, taken, missing, "credits taken back");
}

fn remembered(event: &str, reference: &str) -> Outcome {
    tracing::info!(stripe.event = event, reference, "no credits came from this payment so far");
    Outcome::Remembered
}

fn bad(name: &'static str, seen: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new(name, seen, allowed))
}
