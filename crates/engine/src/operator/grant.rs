//! An operator grants credits by hand.

use std::ops::RangeInclusive;

use grabd_domain::Fault;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::TeamId;
use grabd_store::{Grant, OperatorGrant, OperatorGranted};

use super::Operator;
use crate::core::{Core, inside};

/// Credits that one form grants.
pub const CREDITS: RangeInclusive<u32> = 1..=1_000_000;
/// Characters of a reason.
pub const REASON_CHARS: RangeInclusive<usize> = 3..=200;
/// Characters of what makes a form be carried out once: 256 random bits.
const ONCE_CHARS: usize = 43;

/// Credits to grant, as a form has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    credits: u32,
    reason: String,
    once: String,
}

/// What is wrong with a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Not so many credits.
    Credits,
    /// No such reason.
    Reason,
    /// It does not say which form it is.
    Once,
}

impl NewGrant {
    /// The grant of a form.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(credits: &str, reason: &str, once: &str) -> Result<Self, Vec<Mistake>> {
        let credits = credits.trim().parse().ok().filter(|credits| CREDITS.contains(credits));
        let reason = reason.trim();
        let is_reason = REASON_CHARS.contains(&reason.chars().count()) && !reason.chars().any(char::is_control);
        let is_once =
            once.len() == ONCE_CHARS && once.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let mistakes =
            [(Mistake::Credits, credits.is_none()), (Mistake::Reason, !is_reason), (Mistake::Once, !is_once)];
        let mistakes: Vec<Mistake> = mistakes.into_iter().filter(|(_, is)| *is).map(|(mistake, _)| mistake).collect();
        match credits {
            Some(credits) if mistakes.is_empty() => {
                Ok(Self { credits, reason: reason.to_owned(), once: once.to_owned() })
            }
            Some(_) | None => Err(mistakes),
        }
    }
}

/// Grants a prepaid lot, once for each form. The team reads the reason in its ledger; who granted it is in the log, and
/// by their id in the lot's own reference. `None` when there is no such team.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be written.
pub async fn grant(
    core: &Core,
    operator: &Operator,
    team: TeamId,
    new: &NewGrant,
) -> Result<Option<OperatorGranted>, Fault> {
    let step = "operator.grant";
    if core.store.find_team(team).await.map_err(inside(step))?.is_none() {
        return Ok(None);
    }
    let (Operator(person), NewGrant { credits, reason, once }) = (operator, new);
    let grant = Grant {
        team,
        kind: LotKind::Prepaid,
        credits: *credits,
        expires_at: None,
        source_ref: format!("hand:operator:{}:{once}", person.id),
        now: core.clock.now(),
    };
    let grant = OperatorGrant { grant, reason: format!("ref:{reason}") };
    let granted = core.store.grant_by_operator(grant).await.map_err(inside(step))?;
    match granted {
        OperatorGranted::New(lot) => tracing::info!(
            operator.id = %person.id, operator.email = %person.email, team.id = %team, lot.id = lot.0, credits, reason,
            "an operator granted credits"
        ),
        OperatorGranted::Repeated(_) | OperatorGranted::Otherwise => tracing::info!(
            operator.id = %person.id, operator.email = %person.email, team.id = %team, credits, reason,
            "an operator sent a form again; nothing was granted"
        ),
    }
    Ok(Some(granted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_of_a_form_are_told() {
        let once = "a".repeat(43);
        let good = NewGrant::parse(" 25 ", " a good reason ", &once).unwrap();
        assert_eq!(good, NewGrant { credits: 25, reason: "a good reason".to_owned(), once: once.clone() });
        let long = "é".repeat(200);
        assert!(NewGrant::parse("1000000", &long, &once).is_ok());
        for (credits, reason, form, mistakes) in [
            ("0", "reason", &*once, &[Mistake::Credits][..]),
            ("1000001", "reason", &once, &[Mistake::Credits]),
            ("-5", "reason", &once, &[Mistake::Credits]),
            ("1e3", "reason", &once, &[Mistake::Credits]),
            ("5", "no", &once, &[Mistake::Reason]),
            ("5", &format!("{long}é"), &once, &[Mistake::Reason]),
            ("5", "two\nlines", &once, &[Mistake::Reason]),
            ("5", "reason", "short", &[Mistake::Once]),
            ("", "", "", &[Mistake::Credits, Mistake::Reason, Mistake::Once]),
        ] {
            assert_eq!(NewGrant::parse(credits, reason, form).unwrap_err(), mistakes, "{credits} {reason} {form}");
        }
    }
}
