//! Teams, as an operator makes them.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{ApiKey, Environment};
use grabd_domain::credits::LotKind;
use grabd_domain::ids::TeamId;
use grabd_store::{Grant, Granted, NewTeam, Store};

use super::issue_key;
use crate::chance;

/// A new team's id and the only sight of its first keys.
#[derive(Debug)]
pub struct NewTeamKeys {
    /// The team.
    pub team: TeamId,
    /// Its live key.
    pub live: ApiKey,
    /// Its test key.
    pub test: ApiKey,
}

/// Makes a team with one key per environment and, when `credits` is not zero, a prepaid lot.
///
/// # Errors
/// What the store says. A team that was made before the failure stays; it has no key anybody knows.
pub async fn create_team(
    store: &Store,
    name: &str,
    credits: u32,
    now: Timestamp,
) -> Result<NewTeamKeys, grabd_store::Error> {
    let team = chance::team_id(now);
    store.create_team(NewTeam { id: team, name: name.to_owned(), now }).await?;
    if credits > 0 {
        grant_prepaid(store, team, credits, &format!("team:{team}"), now).await?;
    }
    let (_, live) = issue_key(store, team, Environment::Live, "first live key", now).await?;
    let (_, test) = issue_key(store, team, Environment::Test, "first test key", now).await?;
    Ok(NewTeamKeys { team, live, test })
}

/// Grants a prepaid lot. The same `source_ref` grants once, however often it is asked.
///
/// # Errors
/// What the store says.
pub async fn grant_prepaid(
    store: &Store,
    team: TeamId,
    credits: u32,
    source_ref: &str,
    now: Timestamp,
) -> Result<Granted, grabd_store::Error> {
    let source_ref = source_ref.to_owned();
    store.grant(Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now }).await
}

/// Grants the credits of a subscription's term, whose rest lapses at `ends`. The same `source_ref` grants once.
///
/// # Errors
/// What the store says.
pub async fn start_subscription(
    store: &Store,
    team: TeamId,
    credits: u32,
    ends: Timestamp,
    source_ref: &str,
    now: Timestamp,
) -> Result<Granted, grabd_store::Error> {
    let (source_ref, expires_at) = (source_ref.to_owned(), Some(ends));
    store.grant(Grant { team, kind: LotKind::Subscription, credits, expires_at, source_ref, now }).await
}
