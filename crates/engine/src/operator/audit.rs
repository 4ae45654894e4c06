//! The audit trail, filtered.

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use grabd_domain::accounts::Email;
use grabd_domain::audit::{AuditAction, USER_ACTOR};
use grabd_domain::ids::UserId;
use grabd_domain::{Day, Fault};
use grabd_store::audit::{AuditFilter, NamedEntry};

use super::Operator;
use super::filters::{MatchedTeams, bounds};
use crate::error::Error;
use crate::service::Core;
use crate::trail::{self, TrailPage};

/// Which entries are wanted. Each condition applies if it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSearch {
    /// The id of a team, or a part of the name. May be empty.
    pub team: String,
    /// Who made the change: an e-mail address, the id of a user, or the name of another actor. May be empty.
    pub actor: String,
    /// The action.
    pub action: Option<AuditAction>,
    /// The day in UTC.
    pub day: Option<Day>,
}

/// Entries in chunks. An error ends the stream.
pub type EntryChunks = BoxStream<'static, Result<Vec<NamedEntry>, Fault>>;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditSearchOutcome<T> {
    /// What was found.
    Found(T),
    /// No user has this e-mail address.
    UnknownActor,
    /// The text for the team matches more than [`MAX_FILTER_TEAMS`](super::MAX_FILTER_TEAMS).
    TooManyTeams,
}

/// A page of the entries that match, newest first, optionally only those before a cursor.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_audit", skip_all)]
pub async fn list_audit(
    core: &Core,
    _: &Operator,
    search: &AuditSearch,
    before: Option<i64>,
) -> Result<AuditSearchOutcome<TrailPage>, Error> {
    Ok(match parse(core, search).await? {
        AuditSearchOutcome::Found(filter) => {
            AuditSearchOutcome::Found(trail::page(&core.store, &filter, before).await?)
        }
        AuditSearchOutcome::UnknownActor => AuditSearchOutcome::UnknownActor,
        AuditSearchOutcome::TooManyTeams => AuditSearchOutcome::TooManyTeams,
    })
}

/// The newest [`MAX_EXPORTED`](crate::trail::MAX_EXPORTED) entries that match, in chunks, newest first.
///
/// # Errors
/// When the database cannot be read. The stream ends with an error for the same reason; a file must not look complete then.
#[tracing::instrument(name = "operator.export_audit", skip_all)]
pub async fn export_audit(
    core: &Core,
    _: &Operator,
    search: &AuditSearch,
) -> Result<AuditSearchOutcome<EntryChunks>, Error> {
    Ok(match parse(core, search).await? {
        AuditSearchOutcome::Found(filter) => {
            AuditSearchOutcome::Found(trail::chunks(core.store.clone(), filter).map_err(Error::into_fault).boxed())
        }
        AuditSearchOutcome::UnknownActor => AuditSearchOutcome::UnknownActor,
        AuditSearchOutcome::TooManyTeams => AuditSearchOutcome::TooManyTeams,
    })
}

async fn parse(core: &Core, search: &AuditSearch) -> Result<AuditSearchOutcome<AuditFilter>, Error> {
    let AuditSearch { team, actor, action, day } = search;
    let teams = match MatchedTeams::find(core, team).await? {
        MatchedTeams::All => None,
        MatchedTeams::Some(teams) => Some(teams),
        MatchedTeams::TooMany => return Ok(AuditSearchOutcome::TooManyTeams),
    };
    let actor = match parse_actor(actor) {
        ActorFilter::All => None,
        ActorFilter::Name(name) => Some(name),
        ActorFilter::Email(email) => match core.store.accounts().find_user(&email).await? {
            Some(user) => Some(format!("{USER_ACTOR}{}", user.id)),
            None => return Ok(AuditSearchOutcome::UnknownActor),
        },
    };
    let (since, until) = bounds(*day);
    let actions = action.map(|action| vec![action.name]);
    Ok(AuditSearchOutcome::Found(AuditFilter { teams, actor, actions, since, until }))
}

/// A filter by who made the change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ActorFilter {
    All,
    Email(Email),
    Name(String),
}

fn parse_actor(text: &str) -> ActorFilter {
    let text = text.trim();
    match (text.parse::<UserId>(), Email::parse(text)) {
        _ if text.is_empty() => ActorFilter::All,
        (Ok(id), _) => ActorFilter::Name(format!("{USER_ACTOR}{id}")),
        (Err(_), Ok(email)) => ActorFilter::Email(email),
        (Err(_), Err(_)) => ActorFilter::Name(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actor_is_an_address_an_id_or_a_name() {
        let id = "01993e1c-7b1a-7000-8000-0123456789ab";
        for (text, expected) in [
            (" ", ActorFilter::All),
            (" Ada@Example.com", ActorFilter::Email(Email::parse("ada@example.com").unwrap())),
            (id, ActorFilter::Name(format!("user:{id}"))),
            ("stripe", ActorFilter::Name("stripe".to_owned())),
            ("command:uid 0", ActorFilter::Name("command:uid 0".to_owned())),
        ] {
            assert_eq!(parse_actor(text), expected, "{text:?}");
        }
    }
}
