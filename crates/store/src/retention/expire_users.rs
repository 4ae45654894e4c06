//! Deletes accounts whose e-mail address was never verified, and with which nothing was ever done.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::erase::{DeleteUser, DeleteUserOutcome};
use crate::actor::Actor;
use crate::areas::Retention;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{
    api_key, email_verification, grab, grab_tally, invitation, ledger, lot, member, oauth_grant, password_reset, proxy,
    session, team, team_limit, user, webhook_endpoint,
};
use crate::{Result, codes};

const WORK: &str = "unverified";
/// Who deletes the accounts, in the audit trail.
const ACTOR: &str = grabd_domain::audit::SERVICE_ACTOR;

/// Creation time and id of an account: accounts are examined in this order.
pub type UnverifiedCursor = (Timestamp, UserId);

/// The accounts that were deleted, and where the next ones are examined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpiredUsers {
    /// Deleted accounts, and the teams that were deleted with them.
    pub expired: Vec<(UserId, Vec<TeamId>)>,
    /// `None`: all were examined.
    pub next: Option<UnverifiedCursor>,
}

struct ExpireUser {
    user: UserId,
    created_before: Timestamp,
    now: Timestamp,
}

impl Retention<'_> {
    /// Examines up to `limit` accounts that were created before a time and whose address was never verified, after a
    /// position, and deletes at most `room` of them, as their users could. An account is deleted only if nothing would
    /// be lost with it:
    ///
    /// - it is neither suspended nor an operator's, and has no session, connected app, unused link for a password or a
    ///   verification, or invitation to another team that is still valid;
    /// - of every team of which it is a member it is the only member, and an owner;
    /// - none of these teams ever had a credit or a grab that is still counted, or has a live key, a test key that was
    ///   created or used after `created_before`, a webhook, invitation, connected app, limit of its own or suspension.
    ///
    /// Each deletion is recorded in the audit trail, as made by the service. Rows that cannot be processed are set
    /// aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn expire_unverified(
        self,
        created_before: Timestamp,
        after: Option<UnverifiedCursor>,
        now: Timestamp,
        limit: u32,
        room: usize,
    ) -> Result<ExpiredUsers> {
        let set_aside: Vec<Uuid> = self.store.set_aside.keys(WORK, now);
        let mut query = user::Entity::find()
            .select_only()
            .columns([user::Column::Id, user::Column::CreatedAt])
            // Literally the predicate of the partial index.
            .filter(user::Column::VerifiedAt.is_null())
            .filter(user::Column::CreatedAt.lt(created_before.as_ms()));
        if let Some((at, id)) = after {
            let key = Expr::tuple([Expr::col(user::Column::CreatedAt), Expr::col(user::Column::Id)]);
            query = query.filter(key.gt(Expr::tuple([Expr::value(at.as_ms()), Expr::value(id.0)])));
        }
        let users: Vec<(Uuid, i64)> = query
            .order_by_asc(user::Column::CreatedAt)
            .order_by_asc(user::Column::Id)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let is_full = users.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let service = self.store.acting_as(Actor { name: ACTOR.to_owned(), address: None, now });
        let (mut expired, mut examined) = (Vec::new(), after);
        for (id, created_at) in users {
            if expired.len() >= room {
                return Ok(ExpiredUsers { expired, next: examined });
            }
            let user = UserId(id);
            examined = Some((Timestamp::from_ms(created_at), user));
            if set_aside.contains(&id) {
                continue;
            }
            let deleted = service.retention().expire_user(ExpireUser { user, created_before, now }).await;
            if let Some(teams) = self.store.set_aside.unless_row_fails(WORK, &id, now, deleted)?.flatten() {
                expired.push((user, teams));
            }
        }
        Ok(ExpiredUsers { expired, next: examined.filter(|_| is_full) })
    }

    /// The teams that were deleted with the account; `None` if it was not deleted.
    async fn expire_user(self, expire: ExpireUser) -> Result<Option<Vec<TeamId>>> {
        // Without locks first: most accounts that are examined stay.
        if !expire.is_unused(self.store.database.reader()).await? {
            return Ok(None);
        }
        let event = AuditEvent::new("user.expire", &expire.user, None).with(&"never verified, and not used");
        self.store.write_audited(expire, event, Option::is_some).await
    }
}

impl Transaction for ExpireUser {
    type Outcome = Option<Vec<TeamId>>;

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        // Teams are locked before users, and in one order: see `DeleteUser`.
        for (team, _) in self.teams(tx).await? {
            team::Entity::find_by_id(team).lock(LockType::NoKeyUpdate).one(tx).await?;
        }
        user::Entity::find_by_id(self.user.0).lock(LockType::Update).one(tx).await?;
        if !self.is_unused(tx).await? {
            return Ok(None);
        }
        match (DeleteUser { user: self.user, now: self.now }).apply(tx).await? {
            DeleteUserOutcome::Deleted { teams } => Ok(Some(teams)),
            DeleteUserOutcome::OnlyOwner { .. } | DeleteUserOutcome::UnknownUser => Ok(None),
        }
    }
}

impl ExpireUser {
    /// The teams of the user, and their role in each.
    async fn teams(&self, db: &impl ConnectionTrait) -> Result<Vec<(Uuid, i16)>> {
        let of_user = member::Entity::find()
            .select_only()
            .columns([member::Column::TeamId, member::Column::Role])
            .filter(member::Column::UserId.eq(self.user.0))
            .order_by_asc(member::Column::TeamId);
        Ok(of_user.into_tuple().all(db).await?)
    }

    /// Whether nothing would be lost with the account: see [`Retention::expire_unverified`](crate::areas::Retention::expire_unverified).
    async fn is_unused(&self, db: &impl ConnectionTrait) -> Result<bool> {
        let (user, now) = (self.user.0, self.now.as_ms());
        let Some(row) = user::Entity::find_by_id(user).one(db).await? else { return Ok(false) };
        let is_candidate = row.verified_at.is_none()
            && row.suspended_at.is_none()
            && !row.operator
            && row.created_at < self.created_before.as_ms();
        if !is_candidate {
            return Ok(false);
        }
        let sessions = session::Entity::find().filter(session::Column::UserId.eq(user));
        let links = email_verification::Entity::find().filter(email_verification::Column::UserId.eq(user));
        let resets = password_reset::Entity::find().filter(password_reset::Column::UserId.eq(user));
        let invitations = invitation::Entity::find().filter(invitation::Column::Email.eq(row.email.as_str()));
        let grants = oauth_grant::Entity::find().filter(oauth_grant::Column::UserId.eq(user));
        let keys = self.keys_in_use().filter(api_key::Column::CreatedBy.eq(user));
        let is_used = any(db, sessions.filter(session::Column::ExpiresAt.gt(now))).await?
            || any(db, links.filter(email_verification::Column::ExpiresAt.gt(now))).await?
            || any(db, resets.filter(password_reset::Column::ExpiresAt.gt(now))).await?
            || any(db, invitations.filter(invitation::Column::ExpiresAt.gt(now))).await?
            || any(db, grants).await?
            || any(db, keys).await?;
        if is_used {
            return Ok(false);
        }
        let owner = codes::role(Role::Owner);
        for (team, role) in self.teams(db).await? {
            if role != owner || self.is_team_used(db, team).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a team has more than this one member, or something that would be lost with it.
    async fn is_team_used(&self, db: &impl ConnectionTrait, id: Uuid) -> Result<bool> {
        let others = member::Entity::find().filter(member::Column::UserId.ne(self.user.0));
        let suspended = team::Entity::find_by_id(id).filter(team::Column::SuspendedAt.is_not_null());
        Ok(any(db, others.filter(member::Column::TeamId.eq(id))).await?
            || any(db, suspended).await?
            || any(db, lot::Entity::find().filter(lot::Column::TeamId.eq(id))).await?
            || any(db, ledger::Entity::find().filter(ledger::Column::TeamId.eq(id))).await?
            || any(db, grab::Entity::find().filter(grab::Column::TeamId.eq(id))).await?
            || any(db, grab_tally::Entity::find().filter(grab_tally::Column::TeamId.eq(id))).await?
            || any(db, self.keys_in_use().filter(api_key::Column::TeamId.eq(id))).await?
            || any(db, webhook_endpoint::Entity::find().filter(webhook_endpoint::Column::TeamId.eq(id))).await?
            || any(db, proxy::Entity::find().filter(proxy::Column::TeamId.eq(id))).await?
            || any(db, invitation::Entity::find().filter(invitation::Column::TeamId.eq(id))).await?
            || any(db, oauth_grant::Entity::find().filter(oauth_grant::Column::TeamId.eq(id))).await?
            || any(db, team_limit::Entity::find().filter(team_limit::Column::TeamId.eq(id))).await?)
    }

    /// Live keys, and test keys that were created or used since the time before which unused accounts expire. A test key
    /// costs nothing, so one that is not used would otherwise keep an account for ever.
    fn keys_in_use(&self) -> Select<api_key::Entity> {
        let since = self.created_before.as_ms();
        let in_use = Condition::any()
            .add(api_key::Column::Env.eq(codes::environment(Environment::Live)))
            .add(api_key::Column::CreatedAt.gte(since))
            .add(api_key::Column::LastUsedAt.gte(since));
        api_key::Entity::find().filter(in_use)
    }
}

/// Whether the query has a row.
async fn any<E: EntityTrait>(db: &impl ConnectionTrait, query: Select<E>) -> Result<bool> {
    Ok(query.select_only().expr(Expr::cust("1")).limit(1).into_tuple::<i32>().one(db).await?.is_some())
}
