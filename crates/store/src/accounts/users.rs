//! Creates and removes users, memberships and sessions.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role, SESSIONS};
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{
    ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, TryInsertResult,
};

use crate::accounts::second_factor::factor;
use crate::accounts::teams_and_keys::NewTeam;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{member, session, user};
use crate::team_lock::lock_team;
use crate::{Result, codes};

/// A user to create. Contains only a hash of the password.
#[derive(Clone)]
pub struct NewUser {
    /// The user's id.
    pub id: UserId,
    /// The address they sign in with.
    pub email: Email,
    /// Hash of the password.
    pub password_hash: String,
    /// The team to join.
    pub initial_team: InitialTeam,
    /// Whether the address needs no verification.
    pub verified: bool,
    /// Current time.
    pub now: Timestamp,
}

/// The first team of a new user. The user becomes its owner if it has no members, otherwise a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialTeam {
    /// A new team.
    New(TeamId, String),
    /// An existing team.
    Existing(TeamId),
}

/// Outcome of creating a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateUserOutcome {
    /// The user was created.
    Created {
        /// The team joined.
        team: TeamId,
        /// The role in it.
        role: Role,
    },
    /// Nothing was created: the address is in use.
    EmailTaken,
    /// Nothing was created: the team does not exist or is inactive.
    TeamInactive,
}

/// A session to create. Contains only a hash of the token.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// The user.
    pub user: UserId,
    /// Current time.
    pub now: Timestamp,
    /// Expiry unless the session is used.
    pub expires_at: Timestamp,
}

struct ExtendSession {
    hash: [u8; 32],
    now: Timestamp,
    expires_at: Timestamp,
}

struct CloseSession([u8; 32]);

struct AddMember {
    team: TeamId,
    user: UserId,
    now: Timestamp,
}

struct RemoveMember(TeamId, UserId);

struct RemoveUser(UserId);

struct PurgeSessions {
    now: Timestamp,
    limit: u32,
}

impl Accounts<'_> {
    /// Creates a user and, if needed, a team.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create_user(self, user: NewUser) -> Result<CreateUserOutcome> {
        let event = AuditEvent::new("user.create", &user.email, None);
        self.store.write_audited(user, event, |outcome| matches!(outcome, CreateUserOutcome::Created { .. })).await
    }

    /// Adds a user to a team on behalf of an operator and returns their role: owner of a team without members,
    /// otherwise member, or the role they have already. `None` when the team does not exist or is inactive.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn add_member(self, team: TeamId, user: UserId, now: Timestamp) -> Result<Option<Role>> {
        self.store.database.write(AddMember { team, user, now }).await
    }

    /// Ends a membership and the user's OAuth grants for the team. `false` when there was no membership.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_member(self, team: TeamId, user: UserId) -> Result<bool> {
        let event = AuditEvent::new("member.remove", &user, Some(team));
        self.store.write_audited(RemoveMember(team, user), event, |removed| *removed).await
    }

    /// Deletes a user with all sessions, memberships and grants. Teams stay. `false` when the user does not exist.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_user(self, user: UserId) -> Result<bool> {
        let event = AuditEvent::new("user.remove", &user, None);
        self.store.write_audited(RemoveUser(user), event, |removed| *removed).await
    }

    /// Creates a session of a user without a second factor. `false`, without any change, when the user has one.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn open_session(self, session: NewSession) -> Result<bool> {
        self.store.database.write(session).await
    }

    /// Records a use of a session. A session closed concurrently stays closed.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn extend_session(self, hash: [u8; 32], now: Timestamp, expires_at: Timestamp) -> Result<()> {
        self.store.database.write(ExtendSession { hash, now, expires_at }).await
    }

    /// Deletes a session.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn close_session(self, hash: [u8; 32]) -> Result<()> {
        self.store.database.write(CloseSession(hash)).await
    }

    /// Deletes up to `limit` expired sessions and returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_sessions(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeSessions { now, limit }).await
    }
}

impl Transaction for NewUser {
    type Outcome = CreateUserOutcome;

    async fn apply(&self, tx: &Tx) -> Result<CreateUserOutcome> {
        let row = user::ActiveModel {
            id: Set(self.id.0),
            email: Set(self.email.to_string()),
            password_hash: Set(self.password_hash.clone()),
            created_at: Set(self.now.as_ms()),
            operator: Set(false),
            verified_at: Set(self.verified.then_some(self.now.as_ms())),
            suspended_at: Set(None),
            suspended_reason: Set(None),
        };
        // Checked before any insert, because a rejection must not leave rows behind.
        let Some(team) = self.team(tx).await? else { return Ok(CreateUserOutcome::TeamInactive) };
        let inserted = user::Entity::insert(row)
            .on_conflict_do_nothing_on([user::Column::Email])
            .exec_without_returning(tx)
            .await?;
        let TryInsertResult::Inserted(1..) = inserted else { return Ok(CreateUserOutcome::EmailTaken) };
        if let Team::New(id, name) = &team {
            NewTeam { id: *id, name: name.clone(), now: self.now }.apply(tx).await?;
        }
        let team = team.id();
        let role = add_member(tx, team, self.id, self.now).await?;
        Ok(CreateUserOutcome::Created { team, role })
    }
}

/// Adds a member to a team, as its owner if it has no members.
async fn add_member(tx: &Tx, team: TeamId, user: UserId, now: Timestamp) -> Result<Role> {
    let is_first = member::Entity::find().filter(member::Column::TeamId.eq(team.0)).count(tx).await? == 0;
    let role = if is_first { Role::Owner } else { Role::Member };
    let row = member::ActiveModel {
        team_id: Set(team.0),
        user_id: Set(user.0),
        role: Set(codes::role(role)),
        created_at: Set(now.as_ms()),
        first_steps_hidden_at: Set(None),
        gets_alerts: Set(0),
    };
    member::Entity::insert(row).exec_without_returning(tx).await?;
    Ok(role)
}

enum Team {
    New(TeamId, String),
    Known(TeamId),
}

impl Team {
    const fn id(&self) -> TeamId {
        match self {
            Self::New(id, _) | Self::Known(id) => *id,
        }
    }
}

impl NewUser {
    /// The team to join. An existing team is locked, so that only one of two concurrent joins becomes its owner.
    async fn team(&self, tx: &Tx) -> Result<Option<Team>> {
        let known = match &self.initial_team {
            InitialTeam::New(id, name) => return Ok(Some(Team::New(*id, name.clone()))),
            InitialTeam::Existing(id) => *id,
        };
        Ok(lock_team(tx, known).await?.map(|team| Team::Known(TeamId(team.id))))
    }
}

impl Transaction for NewSession {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        // Serializes with turning on the second factor, which ends the sessions that were opened without it.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if factor::is_on(tx, self.user).await? {
            return Ok(false);
        }
        self.insert(tx).await?;
        Ok(true)
    }
}

impl NewSession {
    /// Inserts the session, and ends the oldest beyond [`SESSIONS`]. The caller has checked what it needs, and has locked
    /// the user, so that the limit is exact.
    pub(super) async fn insert(&self, tx: &Tx) -> Result<()> {
        let row = session::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_id: Set(self.user.0),
            created_at: Set(self.now.as_ms()),
            seen_at: Set(self.now.as_ms()),
            expires_at: Set(self.expires_at.as_ms()),
            agent: Set(None),
        };
        session::Entity::insert(row).exec_without_returning(tx).await?;
        let oldest: Vec<Vec<u8>> = session::Entity::find()
            .select_only()
            .column(session::Column::Hash)
            .filter(session::Column::UserId.eq(self.user.0))
            .order_by_desc(session::Column::SeenAt)
            .order_by_asc(session::Column::Hash)
            .offset(SESSIONS)
            .limit(SESSIONS)
            .into_tuple()
            .all(tx)
            .await?;
        if !oldest.is_empty() {
            session::Entity::delete_many().filter(session::Column::Hash.is_in(oldest)).exec(tx).await?;
        }
        Ok(())
    }
}

impl Transaction for ExtendSession {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        session::Entity::update_many()
            .col_expr(session::Column::SeenAt, Expr::value(self.now.as_ms()))
            .col_expr(session::Column::ExpiresAt, Expr::value(self.expires_at.as_ms()))
            .filter(session::Column::Hash.eq(self.hash.to_vec()))
            .exec(tx)
            .await?;
        Ok(())
    }
}

impl Transaction for CloseSession {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        session::Entity::delete_many().filter(session::Column::Hash.eq(self.0.to_vec())).exec(tx).await?;
        Ok(())
    }
}

impl Transaction for AddMember {
    type Outcome = Option<Role>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Role>> {
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(None);
        }
        if let Some(row) = member::Entity::find_by_id((self.team.0, self.user.0)).one(tx).await? {
            return codes::read_role(row.role).map(Some);
        }
        add_member(tx, self.team, self.user, self.now).await.map(Some)
    }
}

impl Transaction for RemoveMember {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let deleted = member::Entity::delete_by_id((self.0.0, self.1.0)).exec(tx).await?;
        Ok(deleted.rows_affected > 0)
    }
}

impl Transaction for RemoveUser {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        Ok(user::Entity::delete_by_id(self.0.0).exec(tx).await?.rows_affected > 0)
    }
}

impl Transaction for PurgeSessions {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let expired = session::Entity::find()
            .select_only()
            .column(session::Column::Hash)
            .filter(session::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(session::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let deleted =
            session::Entity::delete_many().filter(session::Column::Hash.in_subquery(expired)).exec(tx).await?;
        Ok(deleted.rows_affected)
    }
}
