//! Grants of credits by an operator.

use std::ops::RangeInclusive;

use grabd_domain::credits::LotKind;
use grabd_domain::ids::TeamId;
use grabd_store::credits::Grant;
use grabd_store::credits::{OperatorGrant, OperatorGrantOutcome};

use super::Operator;
use crate::error::Error;
use crate::service::Core;

/// Credits of one grant.
pub const CREDITS: RangeInclusive<u32> = 1..=1_000_000;
/// Length of a reason in characters.
pub const REASON_CHARS: RangeInclusive<usize> = 3..=200;
/// Length of a form id in characters: 256 random bits. It makes the grant idempotent.
const FORM_ID_CHARS: usize = 43;

/// The validated input of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    credits: u32,
    reason: String,
    form_id: String,
}

/// An invalid field of the grant form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantFormError {
    /// The number of credits is outside [`CREDITS`].
    Credits,
    /// The reason is too short, too long or has control characters.
    Reason,
    /// The form id is missing or malformed.
    FormId,
}

impl NewGrant {
    /// Validates the fields of the form.
    ///
    /// # Errors
    /// All invalid fields.
    pub fn parse(credits: &str, reason: &str, form_id: &str) -> Result<Self, Vec<GrantFormError>> {
        let credits = credits.trim().parse().ok().filter(|credits| CREDITS.contains(credits));
        let reason = reason.trim();
        let is_reason = REASON_CHARS.contains(&reason.chars().count()) && !reason.chars().any(char::is_control);
        let is_form_id = form_id.len() == FORM_ID_CHARS
            && form_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let fields = [
            (GrantFormError::Credits, credits.is_none()),
            (GrantFormError::Reason, !is_reason),
            (GrantFormError::FormId, !is_form_id),
        ];
        let errors: Vec<GrantFormError> =
            fields.into_iter().filter(|(_, is_invalid)| *is_invalid).map(|(error, _)| error).collect();
        match credits {
            Some(credits) if errors.is_empty() => {
                Ok(Self { credits, reason: reason.to_owned(), form_id: form_id.to_owned() })
            }
            Some(_) | None => Err(errors),
        }
    }
}

/// Grants a prepaid lot, once for each form id. The reason is shown in the team's ledger. The operator is recorded in
/// the log, and by id in the lot's reference. `None` when the team does not exist.
///
/// # Errors
/// When the database cannot be written.
#[tracing::instrument(name = "operator.grant", skip_all)]
pub async fn grant(
    core: &Core,
    operator: &Operator,
    team: TeamId,
    new: &NewGrant,
) -> Result<Option<OperatorGrantOutcome>, Error> {
    let found = core.store.accounts().find_team(team).await?;
    if found.is_none_or(|found| found.deleted_at.is_some()) {
        return Ok(None);
    }
    let (Operator(user), NewGrant { credits, reason, form_id }) = (operator, new);
    let grant = Grant {
        team,
        kind: LotKind::Prepaid,
        credits: *credits,
        expires_at: None,
        source_ref: format!("hand:operator:{}:{form_id}", user.id),
        now: core.clock.now(),
    };
    let grant = OperatorGrant { grant, reason: format!("ref:{reason}") };
    let granted = core.store_as(user.id).credits().grant_by_operator(grant).await?;
    match granted {
        OperatorGrantOutcome::New(lot) => tracing::info!(
            operator.id = %user.id, operator.email = %user.email, team.id = %team, lot.id = lot.0, credits, reason,
            "an operator granted credits"
        ),
        OperatorGrantOutcome::Repeated(_) | OperatorGrantOutcome::Conflict => tracing::info!(
            operator.id = %user.id, operator.email = %user.email, team.id = %team, credits, reason,
            "an operator submitted a grant form again; nothing was granted"
        ),
    }
    Ok(Some(granted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reports_all_invalid_fields() {
        let form_id = "a".repeat(43);
        let good = NewGrant::parse(" 25 ", " a good reason ", &form_id).unwrap();
        assert_eq!(good, NewGrant { credits: 25, reason: "a good reason".to_owned(), form_id: form_id.clone() });
        let long = "é".repeat(200);
        assert!(NewGrant::parse("1000000", &long, &form_id).is_ok());
        for (credits, reason, form_id, errors) in [
            ("0", "reason", &*form_id, &[GrantFormError::Credits][..]),
            ("1000001", "reason", &form_id, &[GrantFormError::Credits]),
            ("-5", "reason", &form_id, &[GrantFormError::Credits]),
            ("1e3", "reason", &form_id, &[GrantFormError::Credits]),
            ("5", "no", &form_id, &[GrantFormError::Reason]),
            ("5", &format!("{long}é"), &form_id, &[GrantFormError::Reason]),
            ("5", "two\nlines", &form_id, &[GrantFormError::Reason]),
            ("5", "reason", "short", &[GrantFormError::FormId]),
            ("", "", "", &[GrantFormError::Credits, GrantFormError::Reason, GrantFormError::FormId]),
        ] {
            assert_eq!(NewGrant::parse(credits, reason, form_id).unwrap_err(), errors, "{credits} {reason} {form_id}");
        }
    }
}
