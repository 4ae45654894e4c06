//! What the owners of a team see of the audit trail: the entries of their team, without the identity of operators, without
//! network addresses, and without what operators write for each other.

use std::collections::BTreeSet;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use grabd_domain::audit::{AuditAction, AuditVisibility, COMMAND_ACTOR, USER_ACTOR};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_domain::{Day, Fault};
use grabd_store::audit::{AuditFilter, NamedEntry};

use super::export::chunks;
use super::page::{TrailPage, page};
use crate::accounts::{Member, TeamError, list_members};
use crate::error::Error;
use crate::service::Core;

/// The actor of an entry of an operator, as owners see it.
pub const OPERATOR_ACTOR: &str = "operator";
/// Beginning of the target of a grant by an operator on a page. The operator's id follows.
const OPERATOR_GRANT: &str = "hand:";

/// Which entries are wanted. Each condition applies if it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeamTrailSearch {
    /// The member who made the change. Others match nothing.
    pub member: Option<UserId>,
    /// The action.
    pub action: Option<AuditAction>,
    /// The day in UTC.
    pub day: Option<Day>,
}

/// A page of the trail of a team for one of its owners, newest first, optionally only the entries before a cursor.
///
/// # Errors
/// [`TeamError::NotMember`] and [`TeamError::NotOwner`].
#[tracing::instrument(name = "trail.list_team_trail", skip_all)]
pub async fn list_team_trail(
    core: &Core,
    owner: UserId,
    team: TeamId,
    search: &TeamTrailSearch,
    before: Option<i64>,
) -> Result<TrailPage, TeamError> {
    let (members, filter) = authorize(core, owner, team, search).await?;
    let TrailPage { entries, next } = page(&core.store, &filter, before).await.map_err(TeamError::Internal)?;
    Ok(TrailPage { entries: entries.into_iter().map(|entry| for_owners(entry, &members)).collect(), next })
}

/// The newest [`MAX_EXPORTED`](super::MAX_EXPORTED) entries of the team that match, in chunks, newest first.
///
/// # Errors
/// [`TeamError::NotMember`] and [`TeamError::NotOwner`]. The stream ends with an error when the database cannot be read; a file
/// must not look complete then.
#[tracing::instrument(name = "trail.export_team_trail", skip_all)]
pub async fn export_team_trail(
    core: &Core,
    owner: UserId,
    team: TeamId,
    search: &TeamTrailSearch,
) -> Result<BoxStream<'static, Result<Vec<NamedEntry>, Fault>>, TeamError> {
    let (members, filter) = authorize(core, owner, team, search).await?;
    let shown = move |entries: Vec<NamedEntry>| entries.into_iter().map(|entry| for_owners(entry, &members)).collect();
    Ok(chunks(core.store.clone(), filter).map_ok(shown).map_err(Error::into_fault).boxed())
}

/// Checks that the user owns the team. Returns its members, and the filter for what owners see.
async fn authorize(
    core: &Core,
    owner: UserId,
    team: TeamId,
    search: &TeamTrailSearch,
) -> Result<(BTreeSet<UserId>, AuditFilter), TeamError> {
    let members = list_members(core, owner, team).await?;
    let is_permitted = |member: &Member| member.user == owner && member.role.allows(Permission::ManageTeam);
    if !members.iter().any(is_permitted) {
        return Err(TeamError::NotOwner);
    }
    let members = members.into_iter().map(|member| member.user).collect();
    let filter = filter(team, search, &members);
    Ok((members, filter))
}

fn filter(team: TeamId, search: &TeamTrailSearch, members: &BTreeSet<UserId>) -> AuditFilter {
    let TeamTrailSearch { member, action, day } = *search;
    // A search for a member must not show which of them is the operator.
    let is_shown = |of: &AuditAction| match of.visibility {
        AuditVisibility::Operators => false,
        AuditVisibility::Owners => true,
        AuditVisibility::OwnersWithoutOperator => member.is_none(),
    };
    let actions = AuditAction::ALL.into_iter().filter(is_shown);
    let actions = actions.filter(|of| action.is_none_or(|action| action.name == of.name)).map(|of| of.name).collect();
    let is_member = member.is_none_or(|member| members.contains(&member));
    AuditFilter {
        teams: Some(if is_member { vec![team] } else { Vec::new() }),
        actor: member.map(|member| format!("{USER_ACTOR}{member}")),
        actions: Some(actions),
        since: day.map(Day::start),
        until: day.map(|day| day.next().start()),
    }
}

/// The entry without what owners do not see.
fn for_owners(named: NamedEntry, members: &BTreeSet<UserId>) -> NamedEntry {
    let NamedEntry { mut entry, team_name, target_name, is_by_operator } = named;
    let visibility = AuditAction::find(&entry.action).map_or(AuditVisibility::Operators, |of| of.visibility);
    let actor: Option<UserId> = entry.actor.strip_prefix(USER_ACTOR).and_then(|id| id.parse().ok());
    let is_member = actor.is_some_and(|actor| members.contains(&actor));
    let is_grant = entry.action == "credits.grant";
    let is_of_operator = match visibility {
        AuditVisibility::Operators => true,
        AuditVisibility::Owners => is_by_operator && !is_member,
        // Trial credits are granted when a user has verified their address.
        AuditVisibility::OwnersWithoutOperator => !is_grant || entry.target.starts_with(OPERATOR_GRANT),
    };
    if is_of_operator || entry.actor.starts_with(COMMAND_ACTOR) {
        (entry.actor, entry.email) = (OPERATOR_ACTOR.to_owned(), None);
    }
    if visibility == AuditVisibility::OwnersWithoutOperator && !is_grant {
        // The reason is for operators.
        entry.detail = None;
    }
    if is_grant || entry.action.starts_with("payment.") {
        // The reference of a grant contains the operator's id.
        entry.target = String::new();
    }
    entry.address = None;
    NamedEntry { entry, team_name, target_name, is_by_operator: false }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_store::audit::AuditEntry;
    use uuid::Uuid;

    use super::*;

    fn user(number: u128) -> UserId {
        UserId(Uuid::from_u128(number))
    }

    fn entry(actor: &str, action: &str, target: &str, is_by_operator: bool) -> NamedEntry {
        let entry = AuditEntry {
            id: 7,
            at: Timestamp::from_ms(1),
            actor: actor.to_owned(),
            email: Some("somebody@example.com".to_owned()),
            action: action.to_owned(),
            target: target.to_owned(),
            team: Some(TeamId(Uuid::nil())),
            address: Some("192.0.2.1".to_owned()),
            detail: Some("a detail".to_owned()),
        };
        NamedEntry { entry, team_name: None, target_name: None, is_by_operator }
    }

    #[test]
    fn owners_see_no_operator_no_address_and_no_reason() {
        let members = BTreeSet::from([user(1), user(2)]);
        let (ada, olga) = (format!("user:{}", user(1)), format!("user:{}", user(9)));
        let grant = format!("hand:operator:{}:form", user(9));
        let trial = format!("trial:{}", user(1));
        for (actor, action, target, is_by_operator, expected_actor, has_detail) in [
            (&*ada, "key.create", "x", false, &*ada, true),
            // An operator who is a member acts as a member.
            (&ada, "key.create", "x", true, &ada, true),
            (&olga, "key.create", "x", false, &olga, true),
            (&olga, "key.create", "x", true, OPERATOR_ACTOR, true),
            (&olga, "team.suspend", "x", true, OPERATOR_ACTOR, false),
            // The role may have been removed since, and the operator may be a member.
            (&olga, "team.suspend", "x", false, OPERATOR_ACTOR, false),
            (&ada, "team.restore", "x", true, OPERATOR_ACTOR, false),
            ("command:uid 0", "key.create", "x", false, OPERATOR_ACTOR, true),
            (&olga, "credits.grant", &grant, true, OPERATOR_ACTOR, true),
            (&ada, "credits.grant", &trial, false, &ada, true),
            ("stripe", "credits.grant", "stripe:pi_1", false, "stripe", true),
            ("stripe", "payment.refunded", "stripe:pi_1", false, "stripe", true),
        ] {
            let shown = for_owners(entry(actor, action, target, is_by_operator), &members).entry;
            assert_eq!((shown.actor.as_str(), shown.address), (expected_actor, None), "{actor} {action}");
            assert_eq!(shown.detail.is_some(), has_detail, "{actor} {action}");
            assert_eq!(shown.email.is_some(), expected_actor != OPERATOR_ACTOR, "{actor} {action}");
            assert!(!shown.target.contains(&user(9).to_string()), "{}", shown.target);
        }
    }

    #[test]
    fn search_is_limited_to_the_team_its_members_and_what_owners_see() {
        let (members, team) = (BTreeSet::from([user(1)]), TeamId(Uuid::from_u128(5)));
        let of = |search: TeamTrailSearch| filter(team, &search, &members);
        let all = of(TeamTrailSearch::default());
        assert_eq!((all.teams, all.actor), (Some(vec![team]), None));
        let actions = all.actions.unwrap();
        assert!(actions.contains(&"team.suspend") && !actions.contains(&"team.limits"), "{actions:?}");
        let of_member = of(TeamTrailSearch { member: Some(user(1)), ..TeamTrailSearch::default() });
        assert_eq!((of_member.teams, of_member.actor), (Some(vec![team]), Some(format!("user:{}", user(1)))));
        assert!(!of_member.actions.unwrap().contains(&"team.suspend"));
        let of_other = of(TeamTrailSearch { member: Some(user(9)), ..TeamTrailSearch::default() });
        assert_eq!(of_other.teams, Some(Vec::new()));
        let internal = TeamTrailSearch { action: AuditAction::find("team.limits"), ..TeamTrailSearch::default() };
        assert_eq!(of(internal).actions, Some(Vec::new()));
    }
}
