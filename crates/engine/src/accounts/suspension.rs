//! Suspension of teams by operators.

use std::ops::RangeInclusive;

use grabd_domain::Timestamp;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::Store;
use grabd_store::accounts::SuspendOutcome;

use crate::error::Error;
use crate::queue::end_open_grabs;
use crate::service::Core;

/// Length of the reason of a suspension in characters. It is shown to operators only.
pub const SUSPENSION_REASON_CHARS: RangeInclusive<usize> = 3..=200;

/// The reason without surrounding spaces; `None` when its length is not in [`SUSPENSION_REASON_CHARS`] or it has
/// control characters.
pub fn suspension_reason(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_valid = SUSPENSION_REASON_CHARS.contains(&text.chars().count()) && !text.chars().any(char::is_control);
    is_valid.then_some(text)
}

/// Suspends a team, and ends its open grabs without charging for them. Returns them with their ends. A repeated call
/// ends those that an interrupted one left.
///
/// Nothing is cached: the team's keys, tokens and pages are refused from the next request on.
///
/// # Errors
/// Store errors. The team may be suspended then, with grabs still open, which end as usual.
pub async fn suspend_team(
    store: &Store,
    team: TeamId,
    reason: &str,
    now: Timestamp,
) -> Result<(SuspendOutcome, Vec<Grab>), grabd_store::Error> {
    let outcome = store.accounts().suspend_team(team, reason, now).await?;
    if outcome == SuspendOutcome::UnknownTeam {
        return Ok((outcome, Vec::new()));
    }
    let message = "The team was suspended before this page was captured; nothing was charged.";
    Ok((outcome, end_open_grabs(store, team, message, now).await?))
}

/// The suspended teams of a user with their names, in the order they joined.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.list_suspended_teams", skip_all)]
pub async fn list_suspended_teams(core: &Core, user: UserId) -> Result<Vec<(TeamId, String)>, Error> {
    Ok(core.store.accounts().list_suspended_teams(user).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_has_a_length_and_no_control_characters() {
        assert_eq!(suspension_reason(" phishing "), Some("phishing"));
        assert!(suspension_reason(&"é".repeat(200)).is_some());
        for invalid in ["", " a ", "two\nlines", &"x".repeat(201)] {
            assert_eq!(suspension_reason(invalid), None, "{invalid:?}");
        }
    }
}
