//! Key management for owners and members, who see and create keys alike: a key grants nothing that they cannot use directly.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::{ApiKey, Environment, Scopes};
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_domain::teams::Name;
use grabd_store::accounts::{Key, KeyUsage, NewKey};

use super::TeamError;
use super::keys::{KeyLimits, generate};
use super::membership::{find_permitted_team, require_verified};
use crate::digest;
use crate::error::Error;
use crate::random;
use crate::service::Core;

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamKey {
    /// Key id.
    pub id: KeyId,
    /// Environment of the key.
    pub environment: Environment,
    /// Name of the key.
    pub name: String,
    /// Its last four characters.
    pub last4: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, accurate to an hour.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// What it may be used for.
    pub scopes: Scopes,
    /// When it stops working; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// The user who created it, if they are still a member.
    pub created_by: Option<Email>,
    /// What it was used for in the last 30 days.
    pub usage: KeyUsage,
}

/// How long the usage of keys looks back.
pub const KEY_USAGE_PERIOD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The ids and names of the keys of a team in an environment, oldest first, without revoked ones.
///
/// # Errors
/// Database errors only.
#[tracing::instrument(name = "accounts.key_names", skip_all)]
pub async fn key_names(core: &Core, team: TeamId, environment: Environment) -> Result<Vec<(KeyId, String)>, Error> {
    let keys = core.store.accounts().list_keys(team).await?;
    let keys = keys.into_iter().filter(|key| key.environment == environment && key.revoked_at.is_none());
    Ok(keys.map(|key| (key.id, key.name)).collect())
}

/// The keys of a team, newest first, including revoked ones.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team, and [`TeamError::NotAllowed`] when their role has no access to keys.
#[tracing::instrument(name = "accounts.list_keys", skip_all)]
pub async fn list_keys(core: &Core, user: UserId, team: TeamId) -> Result<Vec<TeamKey>, TeamError> {
    find_permitted_team(core, user, team, Permission::ManageKeys).await?;
    let keys = core.store.accounts().list_keys(team).await?;
    let members = core.store.accounts().list_members(team).await?;
    let usage = core.store.accounts().key_usage(team, core.clock.now() - KEY_USAGE_PERIOD).await?;
    let read = |key: Key| {
        let Key { id, environment, name, last4, created_at, last_used_at, revoked_at, scopes, expires_at, created_by } =
            key;
        let creator = members.iter().find(|member| Some(member.user) == created_by);
        TeamKey {
            id,
            environment,
            name,
            last4,
            created_at,
            last_used_at,
            revoked_at,
            scopes,
            expires_at,
            created_by: creator.map(|member| member.email.clone()),
            usage: usage.get(&id).copied().unwrap_or_default(),
        }
    };
    Ok(keys.into_iter().rev().map(read).collect())
}

/// Creates a key. Its text is only in the return value.
///
/// # Errors
/// For an invalid name, for a live key of an unverified user, for a role without access to keys, and when the team has the
/// maximum number of keys.
#[tracing::instrument(name = "accounts.create_key", skip_all)]
pub async fn create_key(
    core: &Core,
    user: UserId,
    team: TeamId,
    environment: Environment,
    name: &str,
    limits: KeyLimits,
) -> Result<ApiKey, TeamError> {
    let name = Name::parse(name)?;
    if environment == Environment::Live {
        require_verified(core, user).await?;
    }
    let (key, now) = (generate(environment), core.clock.now());
    let id = random::key_id(now);
    let new = NewKey {
        id,
        team,
        environment,
        name: name.to_string(),
        hash: digest::of(key.expose()),
        last4: key.last4().to_owned(),
        scopes: limits.scopes,
        expires_at: limits.life.map(|life| now + life),
        created_by: Some(user),
        now,
    };
    core.store_as(user).accounts().create_team_key(new, user).await??;
    tracing::info!(team.id = %team, key.id = %id, user.id = %user, environment = environment.as_str(), "key created");
    Ok(key)
}

/// Revokes a key permanently, effective from the next request.
///
/// # Errors
/// [`TeamError::NotFound`] when the team has no such key, or it is already revoked.
#[tracing::instrument(name = "accounts.revoke_key", skip_all)]
pub async fn revoke_key(core: &Core, user: UserId, team: TeamId, key: KeyId) -> Result<(), TeamError> {
    core.store_as(user).accounts().revoke_team_key(team, key, user, core.clock.now()).await??;
    tracing::info!(team.id = %team, key.id = %key, user.id = %user, "key revoked");
    Ok(())
}
