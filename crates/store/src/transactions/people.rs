//! People come and go, and sign in and out.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, TryInsertResult,
};

use crate::codes::{self, ACTIVE};
use crate::database::{Transaction, Tx};
use crate::entities::{member, session, team, user};
use crate::transactions::accounts::NewTeam;
use crate::transactions::create::lock_team;
use crate::{Result, Store};

/// A person to create. The password itself is never seen here.
#[derive(Clone)]
pub struct NewPerson {
    /// Their id.
    pub id: UserId,
    /// How they sign in.
    pub email: Email,
    /// What their password is checked against.
    pub password_hash: String,
    /// Which team they begin in.
    pub place: Place,
    /// When.
    pub now: Timestamp,
}

/// The team somebody begins in: as its owner where nobody is in it yet, as a member otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A new one.
    New(TeamId, String),
    /// One that is there.
    In(TeamId),
    /// The only one that nobody is in, if there is exactly one, or else a new one.
    OrphanOrNew(TeamId, String),
}

/// What creating a person came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Welcomed {
    /// They can sign in.
    Yes {
        /// To work in this team
        team: TeamId,
        /// as this.
        role: Role,
    },
    /// Nothing was created: somebody has that address.
    EmailTaken,
    /// Nothing was created: there is no such team, or it may not act.
    TeamInactive,
}

/// A session to open. The token itself is never seen here.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// Whose it is.
    pub user: UserId,
    /// When.
    pub now: Timestamp,
    /// Until when, unless it is used.
    pub expires_at: Timestamp,
}

struct Extension {
    hash: [u8; 32],
    now: Timestamp,
    expires_at: Timestamp,
}

struct SignOut([u8; 32]);

struct Leave(TeamId, UserId);

struct Removal(UserId);

struct Purge {
    now: Timestamp,
    limit: u32,
}

impl Store {
    /// Creates a person, with a team where they need one.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn create_person(&self, person: NewPerson) -> Result<Welcomed> {
        self.database.write(person).await
    }

    /// Ends a membership, and with it every app that the person let act for the team; `false` when there was none.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn remove_member(&self, team: TeamId, user: UserId) -> Result<bool> {
        self.database.write(Leave(team, user)).await
    }

    /// Removes a person with their sessions, memberships and apps; `false` when there was none. Teams stay.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn remove_person(&self, user: UserId) -> Result<bool> {
        self.database.write(Removal(user)).await
    }

    /// Opens a session.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when there is no such person.
    pub async fn open_session(&self, session: NewSession) -> Result<()> {
        self.database.write(session).await
    }

    /// Writes a use of a session down. One that was closed meanwhile stays closed.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn extend_session(&self, hash: [u8; 32], now: Timestamp, expires_at: Timestamp) -> Result<()> {
        self.database.write(Extension { hash, now, expires_at }).await
    }

    /// Closes a session for good.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn close_session(&self, hash: [u8; 32]) -> Result<()> {
        self.database.write(SignOut(hash)).await
    }

    /// Forgets at most `limit` sessions that are over; how many it forgot.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn purge_sessions(&self, now: Timestamp, limit: u32) -> Result<u64> {
        self.database.write(Purge { now, limit }).await
    }
}

impl Transaction for NewPerson {
    type Outcome = Welcomed;

    async fn apply(&self, tx: &Tx) -> Result<Welcomed> {
        let row = user::ActiveModel {
            id: Set(self.id.0),
            email: Set(self.email.to_string()),
            password_hash: Set(self.password_hash.clone()),
            created_at: Set(self.now.as_ms()),
            operator: Set(false),
        };
        // Judged first, since nothing else can be taken back without undoing the whole change.
        let Some(team) = self.team(tx).await? else { return Ok(Welcomed::TeamInactive) };
        let inserted = user::Entity::insert(row)
            .on_conflict_do_nothing_on([user::Column::Email])
            .exec_without_returning(tx)
            .await?;
        let TryInsertResult::Inserted(1..) = inserted else { return Ok(Welcomed::EmailTaken) };
        if let Team::New(id, name) = &team {
            NewTeam { id: *id, name: name.clone(), now: self.now }.apply(tx).await?;
        }
        let team = team.id();
        let is_first = member::Entity::find().filter(member::Column::TeamId.eq(team.0)).count(tx).await? == 0;
        let role = if is_first { Role::Owner } else { Role::Member };
        let row = member::ActiveModel {
            team_id: Set(team.0),
            user_id: Set(self.id.0),
            role: Set(codes::role(role)),
            created_at: Set(self.now.as_ms()),
        };
        member::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(Welcomed::Yes { team, role })
    }
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

impl NewPerson {
    /// Where they go. A team that is there is locked, so that of two who come at once one is its owner.
    async fn team(&self, tx: &Tx) -> Result<Option<Team>> {
        let known = match &self.place {
            Place::New(id, name) => return Ok(Some(Team::New(*id, name.clone()))),
            Place::In(id) => *id,
            Place::OrphanOrNew(id, name) => match orphans(tx).await?.as_slice() {
                [only] => TeamId(only.id),
                _ => return Ok(Some(Team::New(*id, name.clone()))),
            },
        };
        Ok(lock_team(tx, known).await?.map(|team| Team::Known(TeamId(team.id))))
    }
}

/// Two of the active teams that nobody is in, or as many as there are.
async fn orphans(tx: &Tx) -> Result<Vec<team::Model>> {
    let members = Query::select()
        .expr(Expr::val(1))
        .from(member::Entity)
        .and_where(Expr::col((member::Entity, member::Column::TeamId)).equals((team::Entity, team::Column::Id)))
        .take();
    let orphans =
        team::Entity::find().filter(team::Column::Status.eq(ACTIVE)).filter(Expr::exists(members).not()).limit(2);
    Ok(orphans.all(tx).await?)
}

impl Transaction for NewSession {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = session::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_id: Set(self.user.0),
            created_at: Set(self.now.as_ms()),
            seen_at: Set(self.now.as_ms()),
            expires_at: Set(self.expires_at.as_ms()),
            agent: Set(None),
        };
        session::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for Extension {
    type Outcome = ();

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

impl Transaction for SignOut {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        session::Entity::delete_many().filter(session::Column::Hash.eq(self.0.to_vec())).exec(tx).await?;
        Ok(())
    }
}

impl Transaction for Leave {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let deleted = member::Entity::delete_by_id((self.0.0, self.1.0)).exec(tx).await?;
        Ok(deleted.rows_affected > 0)
    }
}

impl Transaction for Removal {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        Ok(user::Entity::delete_by_id(self.0.0).exec(tx).await?.rows_affected > 0)
    }
}

impl Transaction for Purge {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let over = session::Entity::find()
            .select_only()
            .column(session::Column::Hash)
            .filter(session::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(session::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let deleted = session::Entity::delete_many().filter(session::Column::Hash.in_subquery(over)).exec(tx).await?;
        Ok(deleted.rows_affected)
    }
}
