//! Deletes teams and accounts.
//!
//! The first transaction ends all access. What may be many rows is erased later, in batches: a row of `erasure` remembers
//! it until nothing is left, so that it continues after a crash. Ledger and audit trail stay, without personal data.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::webhooks::DisabledReason;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockBehavior, LockType};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::accounts::team::{TeamResult, TeamRuleError};
use crate::areas::Retention;
use crate::audit::AuditEvent;
use crate::codes::{self, OPEN, SUSPENDED};
use crate::database::{Transaction, Tx};
use crate::entities::{
    api_key, api_request, audit, delivery, erasure, grab, grab_tally, idem, image_gc, invitation, lot, member, proxy,
    team, team_limit, team_storage, user, webhook_endpoint,
};
use crate::grabs::images::bulk_deletion;
use crate::monitors::{erase_monitors, stop_monitors};
use crate::open_sites::cancel_sites;
use crate::padded::padded;
use crate::sites::erase_sites;
use crate::webhooks::disable;

/// The name of a deleted team, in the ledger's pages of operators.
const DELETED_TEAM: &str = "Deleted team";
/// What replaces personal data in the audit trail. A trigger allows no other change.
const ERASED: &str = "(erased)";
/// Entries of the audit trail that have the name of a team, a monitor or a site job in their details.
const NAMING: [&str; 5] = ["team.create", "team.rename", "team.suspend", "monitor.create", "site.create"];
/// Deleted teams and users whose erasure is continued at a time.
const ERASURES: u64 = 10;

/// What is still to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasure {
    /// Grabs, webhooks, monitors, site jobs and names of a deleted team.
    Team(TeamId),
    /// Traces of a deleted user in the audit trail.
    User(UserId),
}

/// Outcome of deleting an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteUserOutcome {
    /// The account was deleted, with the teams whose only member the user was.
    Deleted {
        /// These teams.
        teams: Vec<TeamId>,
    },
    /// Nothing was deleted: other members of these teams would be left without an owner.
    OnlyOwner {
        /// The names of the teams.
        teams: Vec<String>,
    },
    /// There is no such user.
    UnknownUser,
}

struct DeleteTeam {
    team: TeamId,
    /// `None`: an operator.
    by: Option<UserId>,
    now: Timestamp,
}

pub(crate) struct DeleteUser {
    pub(crate) user: UserId,
    pub(crate) now: Timestamp,
}

struct EraseTeam {
    team: TeamId,
    now: Timestamp,
    limit: u32,
}

struct EraseAudit {
    erasure: Erasure,
    limit: u32,
}

impl Retention<'_> {
    /// Deletes a team on behalf of one of its owners, or of an operator if `by` is `None`. All its keys, apps and pages
    /// stop working when this returns, and no grab can be created. End its open grabs with [`Accounts::open_grabs_of`](crate::areas::Accounts::open_grabs_of),
    /// and erase the rest with [`Retention::erase_team`](crate::areas::Retention::erase_team).
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn delete_team(self, team: TeamId, by: Option<UserId>, now: Timestamp) -> Result<TeamResult> {
        let event = AuditEvent::new("team.delete", &team, Some(team));
        self.store.write_audited(DeleteTeam { team, by, now }, event, TeamResult::is_ok).await
    }

    /// Deletes a user with all sessions, memberships and grants, and the teams whose only member they are. Refused if
    /// other members of a team would be left without an owner.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn delete_user(self, user: UserId, now: Timestamp) -> Result<DeleteUserOutcome> {
        let event = AuditEvent::new("user.delete", &user, None);
        let deleted = |outcome: &DeleteUserOutcome| matches!(outcome, DeleteUserOutcome::Deleted { .. });
        self.store.write_audited(DeleteUser { user, now }, event, deleted).await
    }

    /// Some of what is still to be erased, oldest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_erasures(self) -> Result<Vec<Erasure>> {
        let oldest = erasure::Entity::find()
            .order_by_asc(erasure::Column::CreatedAt)
            .order_by_asc(erasure::Column::Id)
            .limit(ERASURES)
            .all(self.store.database.reader())
            .await?;
        Ok(oldest.into_iter().map(|row| Erasure::of(&row)).collect())
    }

    /// Some of what is still to be erased, those after this one first, so that one of them that takes days does not delay the
    /// others.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn next_erasures(self, after: Option<Erasure>) -> Result<Vec<Erasure>> {
        let after = after.map_or(Uuid::nil(), Erasure::id);
        let in_order = || erasure::Entity::find().order_by_asc(erasure::Column::Id).limit(ERASURES);
        let mut rows = in_order().filter(erasure::Column::Id.gt(after)).all(self.store.database.reader()).await?;
        let left = ERASURES.saturating_sub(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        if left > 0 {
            let first = in_order().filter(erasure::Column::Id.lte(after)).limit(left);
            rows.extend(first.all(self.store.database.reader()).await?);
        }
        Ok(rows.iter().map(Erasure::of).collect())
    }

    /// Deletes up to `limit` ended grabs of a deleted team, schedules their images for deletion, and deletes up to
    /// `limit` webhook deliveries and runs of monitors, and some site jobs. Returns whether something is left.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn erase_team(self, team: TeamId, now: Timestamp, limit: u32) -> Result<bool> {
        self.store.database.write(EraseTeam { team, now, limit }).await
    }

    /// Erases personal data from up to `limit` further entries of the audit trail. When none is left, the erasure is
    /// complete and is forgotten. Returns whether something is left. Call it after [`Retention::erase_team`](crate::areas::Retention::erase_team) for a team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn erase_audit(self, erasure: Erasure, limit: u32) -> Result<bool> {
        self.store.database.write(EraseAudit { erasure, limit }).await
    }
}

impl Erasure {
    fn of(row: &erasure::Model) -> Self {
        match row.kind {
            erasure::USER => Self::User(UserId(row.id)),
            _ => Self::Team(TeamId(row.id)),
        }
    }

    const fn id(self) -> Uuid {
        match self {
            Self::Team(team) => team.0,
            Self::User(user) => user.0,
        }
    }
}

impl Transaction for DeleteTeam {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        // Serializes with creates and with changes by members, which lock the active team.
        let row = team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        let Some(row) = row.filter(|row| row.deleted_at.is_none()) else { return Ok(Err(TeamRuleError::NotMember)) };
        if let Some(by) = self.by {
            let member = member::Entity::find_by_id((self.team.0, by.0)).one(tx).await?;
            match member.map(|member| codes::read_role(member.role)).transpose()? {
                None => return Ok(Err(TeamRuleError::NotMember)),
                // A suspended team's members can change nothing.
                Some(_) if row.status == SUSPENDED => return Ok(Err(TeamRuleError::NotMember)),
                Some(Role::Member | Role::Viewer | Role::Billing) => return Ok(Err(TeamRuleError::NotOwner)),
                Some(Role::Owner) => {}
            }
        }
        delete_team(tx, self.team.0, self.now).await?;
        Ok(Ok(()))
    }
}

/// Ends all access to a locked team.
async fn delete_team(tx: &Tx, team: Uuid, now: Timestamp) -> Result<()> {
    team::Entity::update_many()
        .col_expr(team::Column::Name, Expr::value(DELETED_TEAM))
        .col_expr(team::Column::Status, Expr::value(SUSPENDED))
        .col_expr(team::Column::SuspendedAt, Expr::value(Option::<i64>::None))
        .col_expr(team::Column::SuspendedReason, Expr::value(Option::<String>::None))
        .col_expr(team::Column::DeletedAt, Expr::value(now.as_ms()))
        .filter(team::Column::Id.eq(team))
        .exec(tx)
        .await?;
    api_key::Entity::delete_many().filter(api_key::Column::TeamId.eq(team)).exec(tx).await?;
    team_limit::Entity::delete_many().filter(team_limit::Column::TeamId.eq(team)).exec(tx).await?;
    proxy::Entity::delete_many().filter(proxy::Column::TeamId.eq(team)).exec(tx).await?;
    // Invitations, and grants with their codes and tokens, are deleted by cascade.
    member::Entity::delete_many().filter(member::Column::TeamId.eq(team)).exec(tx).await?;
    // Monitors are locked before endpoints, as when a run is finished.
    stop_monitors(tx, TeamId(team)).await?;
    cancel_sites(tx, &[team], now).await?;
    let endpoints = webhook_endpoint::Entity::find()
        .filter(webhook_endpoint::Column::TeamId.eq(team))
        .lock(LockType::Update)
        .all(tx)
        .await?;
    for endpoint in endpoints {
        disable(tx, endpoint.id, DisabledReason::Requested).await?;
    }
    remember(tx, team, None, now).await
}

/// Remembers what is still to be erased.
async fn remember(tx: &Tx, id: Uuid, email: Option<String>, now: Timestamp) -> Result<()> {
    let row = erasure::ActiveModel {
        id: Set(id),
        kind: Set(if email.is_some() { erasure::USER } else { erasure::TEAM }),
        email: Set(email),
        audit_id: Set(0),
        created_at: Set(now.as_ms()),
    };
    erasure::Entity::insert(row).exec_without_returning(tx).await?;
    Ok(())
}

impl Transaction for DeleteUser {
    type Outcome = DeleteUserOutcome;

    async fn apply(&self, tx: &Tx) -> Result<DeleteUserOutcome> {
        let teams: Vec<Uuid> = member::Entity::find()
            .select_only()
            .column(member::Column::TeamId)
            .filter(member::Column::UserId.eq(self.user.0))
            .order_by_asc(member::Column::TeamId)
            .into_tuple()
            .all(tx)
            .await?;
        let (mut alone, mut blocked) = (Vec::new(), Vec::new());
        for id in teams {
            // Teams are locked before users, and in one order, so that concurrent deletions cannot deadlock.
            let row = team::Entity::find_by_id(id).lock(LockType::NoKeyUpdate).one(tx).await?;
            let Some(row) = row else { continue };
            let members = member::Entity::find().filter(member::Column::TeamId.eq(id)).all(tx).await?;
            let others = || members.iter().filter(|member| member.user_id != self.user.0);
            let owner = codes::role(Role::Owner);
            if others().count() == 0 {
                alone.push(id);
            } else if others().all(|member| member.role != owner) {
                blocked.push(row.name);
            }
        }
        let row = user::Entity::find_by_id(self.user.0).lock(LockType::Update).one(tx).await?;
        let Some(row) = row else { return Ok(DeleteUserOutcome::UnknownUser) };
        if !blocked.is_empty() {
            return Ok(DeleteUserOutcome::OnlyOwner { teams: blocked });
        }
        for team in &alone {
            delete_team(tx, *team, self.now).await?;
        }
        if let Ok(email) = Email::parse(&row.email) {
            invitation::Entity::delete_many().filter(invitation::Column::Email.eq(email.as_str())).exec(tx).await?;
        }
        api_key::Entity::update_many()
            .col_expr(api_key::Column::CreatedBy, Expr::value(Option::<Uuid>::None))
            .filter(api_key::Column::CreatedBy.eq(self.user.0))
            .exec(tx)
            .await?;
        // Sessions, memberships, grants, devices, links and the second factor are deleted by cascade.
        user::Entity::delete_by_id(self.user.0).exec(tx).await?;
        remember(tx, self.user.0, Some(row.email), self.now).await?;
        Ok(DeleteUserOutcome::Deleted { teams: alone.into_iter().map(TeamId).collect() })
    }
}

impl Transaction for EraseTeam {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let deleted = team::Entity::find_by_id(self.team.0).filter(team::Column::DeletedAt.is_not_null()).one(tx);
        if deleted.await?.is_none() {
            return Ok(false);
        }
        self.erase_grabs(tx).await?;
        self.erase_webhooks(tx).await?;
        let has_requests = self.erase_requests(tx).await?;
        let has_monitors = erase_monitors(tx, self.team, self.limit).await?;
        let has_sites = erase_sites(tx, self.team).await?;
        grab_tally::Entity::delete_many().filter(grab_tally::Column::TeamId.eq(self.team.0)).exec(tx).await?;
        let of_team = grab::Column::TeamId.eq(self.team.0);
        let has_grabs = grab::Entity::find().filter(of_team).limit(1).one(tx).await?.is_some();
        let endpoints = webhook_endpoint::Entity::find().filter(webhook_endpoint::Column::TeamId.eq(self.team.0));
        let has_lists = has_requests || has_monitors || has_sites;
        let is_left = has_lists || has_grabs || endpoints.limit(1).one(tx).await?.is_some();
        if !is_left {
            idem::Entity::delete_many().filter(idem::Column::TeamId.eq(self.team.0)).exec(tx).await?;
            team_storage::Entity::delete_many().filter(team_storage::Column::TeamId.eq(self.team.0)).exec(tx).await?;
        }
        Ok(is_left)
    }
}

impl EraseTeam {
    /// Deletes recorded API requests. Returns whether there may be more.
    async fn erase_requests(&self, tx: &Tx) -> Result<bool> {
        let some = api_request::Entity::find()
            .select_only()
            .column(api_request::Column::Id)
            .filter(api_request::Column::TeamId.eq(self.team.0))
            .limit(u64::from(self.limit))
            .into_query();
        let deleted =
            api_request::Entity::delete_many().filter(api_request::Column::Id.in_subquery(some)).exec(tx).await?;
        Ok(deleted.rows_affected >= u64::from(self.limit))
    }

    /// Deletes ended grabs. Open ones are left until they have ended.
    async fn erase_grabs(&self, tx: &Tx) -> Result<()> {
        let rows: Vec<(Uuid, i16, Option<String>)> = grab::Entity::find()
            .select_only()
            .columns([grab::Column::Id, grab::Column::Env, grab::Column::ImageKey])
            .filter(grab::Column::TeamId.eq(self.team.0))
            .filter(grab::Column::Status.ne(OPEN))
            .limit(u64::from(self.limit))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .into_tuple()
            .all(tx)
            .await?;
        if rows.is_empty() {
            return Ok(());
        }
        // Placeholders have no files.
        let files = rows.iter().filter(|(_, env, _)| *env == codes::LIVE).filter_map(|(_, _, key)| key.clone());
        let files: Vec<_> = files.map(|key| bulk_deletion(key, self.now)).collect();
        if !files.is_empty() {
            let insert = image_gc::Entity::insert_many(files);
            insert.on_conflict_do_nothing_on([image_gc::Column::Key]).exec_without_returning(tx).await?;
        }
        let ids = padded(rows.iter().map(|(id, _, _)| *id));
        idem::Entity::delete_many().filter(idem::Column::GrabId.is_in(ids.clone())).exec(tx).await?;
        grab::Entity::delete_many().filter(grab::Column::Id.is_in(ids)).exec(tx).await?;
        Ok(())
    }

    /// Deletes deliveries, and the endpoints that have none left.
    async fn erase_webhooks(&self, tx: &Tx) -> Result<()> {
        let endpoints: Vec<Uuid> = webhook_endpoint::Entity::find()
            .select_only()
            .column(webhook_endpoint::Column::Id)
            .filter(webhook_endpoint::Column::TeamId.eq(self.team.0))
            .into_tuple()
            .all(tx)
            .await?;
        for endpoint in endpoints {
            let some = delivery::Entity::find()
                .select_only()
                .column(delivery::Column::Id)
                .filter(delivery::Column::EndpointId.eq(endpoint))
                .limit(u64::from(self.limit))
                .into_query();
            let deleted =
                delivery::Entity::delete_many().filter(delivery::Column::Id.in_subquery(some)).exec(tx).await?;
            if deleted.rows_affected < u64::from(self.limit) {
                webhook_endpoint::Entity::delete_by_id(endpoint).exec(tx).await?;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Deletes the row of an erased team that never had a credit, so that no ledger refers to it. Otherwise teams that are created
/// and deleted again and again would leave a row each.
async fn forget_team(tx: &Tx, team: TeamId) -> Result<()> {
    let lots = lot::Entity::find().select_only().column(lot::Column::TeamId).filter(lot::Column::TeamId.eq(team.0));
    team::Entity::delete_many()
        .filter(team::Column::Id.eq(team.0))
        .filter(team::Column::DeletedAt.is_not_null())
        .filter(team::Column::Id.not_in_subquery(lots.into_query()))
        .exec(tx)
        .await?;
    Ok(())
}

impl Transaction for EraseAudit {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let row = erasure::Entity::find_by_id(self.erasure.id()).lock(LockType::Update).one(tx).await?;
        let Some(row) = row else { return Ok(false) };
        let last: Option<i64> = audit::Entity::find()
            .select_only()
            .column(audit::Column::Id)
            .filter(audit::Column::Id.gt(row.audit_id))
            .order_by_asc(audit::Column::Id)
            .limit(u64::from(self.limit))
            .into_tuple::<i64>()
            .all(tx)
            .await?
            .last()
            .copied();
        let Some(last) = last else {
            erasure::Entity::delete_by_id(row.id).exec(tx).await?;
            if let Erasure::Team(team) = self.erasure {
                forget_team(tx, team).await?;
            }
            return Ok(false);
        };
        let batch = || audit::Column::Id.gt(row.audit_id).and(audit::Column::Id.lte(last));
        match self.erasure {
            Erasure::Team(team) => {
                audit::Entity::update_many()
                    .col_expr(audit::Column::Detail, Expr::value(Option::<String>::None))
                    .filter(batch())
                    .filter(audit::Column::TeamId.eq(team.0))
                    .filter(audit::Column::Action.is_in(NAMING))
                    .exec(tx)
                    .await?;
                let invited = audit::Entity::update_many()
                    .filter(audit::Column::TeamId.eq(team.0))
                    .filter(audit::Column::Target.like("%@%"));
                invited.col_expr(audit::Column::Target, Expr::value(ERASED)).filter(batch()).exec(tx).await?;
            }
            Erasure::User(user) => {
                audit::Entity::update_many()
                    .col_expr(audit::Column::Address, Expr::value(Option::<String>::None))
                    .filter(batch())
                    .filter(Condition::all().add(audit::Column::Actor.eq(format!("user:{user}"))))
                    .exec(tx)
                    .await?;
                if let Some(email) = &row.email {
                    audit::Entity::update_many()
                        .col_expr(audit::Column::Target, Expr::value(ERASED))
                        .filter(batch())
                        .filter(audit::Column::Target.eq(email.as_str()))
                        .exec(tx)
                        .await?;
                }
            }
        }
        erasure::Entity::update_many()
            .col_expr(erasure::Column::AuditId, Expr::value(last))
            .filter(erasure::Column::Id.eq(row.id))
            .exec(tx)
            .await?;
        Ok(true)
    }
}
