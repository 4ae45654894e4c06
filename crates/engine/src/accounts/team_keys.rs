//! The keys of a team, in the hands of its people. Members may make and revoke them like owners: a key is what they work
//! with, and it opens nothing that they could not use themselves.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{ApiKey, Environment};
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_domain::teams::Name;
use grabd_store::NewKey;

use super::TeamError;
use super::keys::generate;
use super::membership::{find_team, told};
use crate::chance;
use crate::core::{Core, inside};
use crate::digest;

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamKey {
    /// Its id.
    pub id: KeyId,
    /// Which world it opens.
    pub environment: Environment,
    /// What people call it.
    pub name: String,
    /// Its last four characters.
    pub last4: String,
    /// Since when there is one.
    pub created_at: Timestamp,
    /// When it was last used, to within a few seconds.
    pub last_used_at: Option<Timestamp>,
    /// Since when it opens nothing.
    pub revoked_at: Option<Timestamp>,
}

impl From<grabd_store::Key> for TeamKey {
    fn from(key: grabd_store::Key) -> Self {
        let grabd_store::Key { id, environment, name, last4, created_at, last_used_at, revoked_at } = key;
        Self { id, environment, name, last4, created_at, last_used_at, revoked_at }
    }
}

/// The keys of a team, revoked ones too, the newest first.
///
/// # Errors
/// [`TeamError::NotIn`] for whoever is not in it.
pub async fn list_keys(core: &Core, user: UserId, team: TeamId) -> Result<Vec<TeamKey>, TeamError> {
    find_team(core, user, team).await?;
    let keys = core.store.list_keys(team).await.map_err(inside("accounts.list_keys"))?;
    Ok(keys.into_iter().rev().map(TeamKey::from).collect())
}

/// Makes a key. Its text is in the answer and nowhere else.
///
/// # Errors
/// For a bad name, and beyond as many keys as a team may have.
pub async fn make_key(
    core: &Core,
    user: UserId,
    team: TeamId,
    environment: Environment,
    name: &str,
) -> Result<ApiKey, TeamError> {
    let name = Name::parse(name)?;
    let (key, now) = (generate(environment), core.clock.now());
    let id = chance::key_id(now);
    let new = NewKey {
        id,
        team,
        environment,
        name: name.to_string(),
        hash: digest::of(key.expose()),
        last4: key.last4().to_owned(),
        now,
    };
    told("accounts.make_key", core.store.make_key(new, user).await)?;
    tracing::info!(team.id = %team, key.id = %id, user.id = %user, environment = environment.as_str(), "a key was made");
    Ok(key)
}

/// Revokes a key for good: it opens nothing from the next request on.
///
/// # Errors
/// [`TeamError::Unknown`] when the team has no such key, or it is revoked already.
pub async fn revoke_key(core: &Core, user: UserId, team: TeamId, key: KeyId) -> Result<(), TeamError> {
    told("accounts.revoke_key", core.store.revoke_team_key(team, key, user, core.clock.now()).await)?;
    tracing::info!(team.id = %team, key.id = %key, user.id = %user, "a key was revoked");
    Ok(())
}
