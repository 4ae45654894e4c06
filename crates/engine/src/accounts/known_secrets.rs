//! The secrets of a team that stay in use when somebody leaves it: API keys, the secrets of links, and those of webhooks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_store::Store;
use grabd_store::accounts::{KnownSecret, TeamSecret};

use super::membership::{TeamError, list_members};
use crate::error::Error;
use crate::service::Core;

/// A secret that is in use, and somebody who knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainingSecret {
    /// The secret.
    pub secret: TeamSecret,
    /// Its environment.
    pub environment: Environment,
    /// Name of the key, or URL of the webhook.
    pub name: String,
    /// Who has seen it; `None` if the account was deleted, or that was not recorded.
    pub known_to: Option<Email>,
    /// When they saw it last. `None`: that was not recorded, so they may know it.
    pub seen_at: Option<Timestamp>,
}

/// The secrets in use that this user has seen, and those of which is not known who has seen them.
///
/// # Errors
/// Database errors only.
pub async fn list_secrets_known_to(
    store: &Store,
    team: TeamId,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<RemainingSecret>, grabd_store::Error> {
    let known = store.accounts().list_known_secrets(team, now).await?;
    let email = store.accounts().find_user_by_id(user).await?.map(|user| user.email);
    let is_seen = |secret| known.iter().any(|known| known.secret == secret && known.user == Some(user));
    let theirs = known.iter().filter(|known| match known.user {
        Some(seen_by) => seen_by == user,
        None => !is_seen(known.secret),
    });
    Ok(theirs.map(|known| remaining(known, email.clone())).collect())
}

/// The same for a page.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.list_member_secrets", skip_all)]
pub async fn list_member_secrets(core: &Core, team: TeamId, user: UserId) -> Result<Vec<RemainingSecret>, Error> {
    let listed = list_secrets_known_to(&core.store, team, user, core.clock.now()).await;
    Ok(listed?)
}

/// The secrets in use that users have seen who are no members any more, or whose role has no access to secrets now, on behalf of
/// a member.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team.
#[tracing::instrument(name = "accounts.list_secrets_of_former_members", skip_all)]
pub async fn list_secrets_of_former_members(
    core: &Core,
    user: UserId,
    team: TeamId,
) -> Result<Vec<RemainingSecret>, TeamError> {
    let members = list_members(core, user, team).await?;
    let known = core.store.accounts().list_known_secrets(team, core.clock.now()).await?;
    let (mut emails, mut secrets) = (HashMap::new(), Vec::new());
    for known in &known {
        let has_access =
            |user: UserId| members.iter().any(|of| of.user == user && of.role.allows(Permission::ManageKeys));
        let Some(seen_by) = known.user.filter(|seen_by| !has_access(*seen_by)) else { continue };
        let email = match emails.entry(seen_by) {
            Entry::Occupied(email) => email.into_mut(),
            Entry::Vacant(vacant) => {
                let user = core.store.accounts().find_user_by_id(seen_by).await?;
                vacant.insert(user.map(|user| user.email))
            }
        };
        secrets.push(remaining(known, email.clone()));
    }
    Ok(secrets)
}

fn remaining(known: &KnownSecret, known_to: Option<Email>) -> RemainingSecret {
    let KnownSecret { secret, environment, name, user, seen_at } = known.clone();
    let is_recorded = user.is_some();
    RemainingSecret {
        secret,
        environment,
        name,
        known_to: known_to.filter(|_| is_recorded),
        seen_at: is_recorded.then_some(seen_at),
    }
}
