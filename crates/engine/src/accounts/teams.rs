//! Teams and grants of credits, as created by an operator.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{ApiKey, Environment};
use grabd_domain::credits::LotKind;
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use grabd_store::credits::{Grant, GrantOutcome};

use super::issue_key;
use crate::random;

/// A new team and its first keys, whose text is not available later.
#[derive(Debug)]
pub struct NewTeamKeys {
    /// Team id.
    pub team: TeamId,
    /// Live key.
    pub live: ApiKey,
    /// Id of the live key.
    pub live_id: KeyId,
    /// Test key.
    pub test: ApiKey,
    /// Id of the test key.
    pub test_id: KeyId,
}

/// Creates a team with one key per environment and, when `credits` is not zero, a prepaid lot.
///
/// # Errors
/// Store errors. A team that was created before the failure stays, without a usable key.
pub async fn create_team(
    store: &Store,
    name: &str,
    credits: u32,
    now: Timestamp,
) -> Result<NewTeamKeys, grabd_store::Error> {
    let team = random::team_id(now);
    store.accounts().create_team(NewTeam { id: team, name: name.to_owned(), now }).await?;
    if credits > 0 {
        grant_prepaid(store, team, credits, &format!("team:{team}"), now).await?;
    }
    let (live_id, live) = issue_key(store, team, Environment::Live, "first live key", now).await?;
    let (test_id, test) = issue_key(store, team, Environment::Test, "first test key", now).await?;
    Ok(NewTeamKeys { team, live, live_id, test, test_id })
}

/// Grants a prepaid lot. Idempotent by `source_ref`.
///
/// # Errors
/// Store errors.
pub async fn grant_prepaid(
    store: &Store,
    team: TeamId,
    credits: u32,
    source_ref: &str,
    now: Timestamp,
) -> Result<GrantOutcome, grabd_store::Error> {
    let source_ref = source_ref.to_owned();
    store.credits().grant(Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now }).await
}

/// Grants the credits of a subscription term; unspent credits expire at `ends`. Idempotent by `source_ref`.
///
/// # Errors
/// Store errors.
pub async fn start_subscription(
    store: &Store,
    team: TeamId,
    credits: u32,
    ends: Timestamp,
    source_ref: &str,
    now: Timestamp,
) -> Result<GrantOutcome, grabd_store::Error> {
    let (source_ref, expires_at) = (source_ref.to_owned(), Some(ends));
    store.credits().grant(Grant { team, kind: LotKind::Subscription, credits, expires_at, source_ref, now }).await
}
