//! Paginated list of all users with their teams and how they sign in.

use std::collections::{BTreeMap, BTreeSet};

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, Func, LikeExpr, Query};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::teams::containing;
use crate::accounts::User;
use crate::accounts::queries::users::read;
use crate::areas::Operators;
use crate::codes;
use crate::entities::{device, member, second_factor, session, team, user};
use crate::padded::padded;
use crate::{Error, Result};

/// A filter for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserFilter {
    /// All users.
    All,
    /// The user with this id.
    Id(UserId),
    /// Users whose e-mail address, or the name of one of whose teams, contains this text, ignoring case.
    Contains(String),
}

/// A position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCursor {
    /// Creation time of the user.
    pub created_at: Timestamp,
    /// The user.
    pub user: UserId,
}

/// A user with their teams and how they sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSummary {
    /// The user.
    pub user: User,
    /// Their teams, in the order they joined.
    pub teams: Vec<UserSummaryTeam>,
    /// The last sign-in that is still recorded.
    pub last_sign_in: Option<Timestamp>,
    /// Whether sign-in needs a second factor.
    pub has_second_factor: bool,
}

/// A team of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSummaryTeam {
    /// The team.
    pub team: TeamId,
    /// Its name.
    pub name: String,
    /// The user's role.
    pub role: Role,
    /// Whether the team is suspended.
    pub is_suspended: bool,
}

impl Operators<'_> {
    /// Up to `limit` users, newest first, optionally only those after a position.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_user_summaries(
        self,
        filter: &UserFilter,
        after: Option<UserCursor>,
        limit: u32,
    ) -> Result<Vec<UserSummary>> {
        let reader = self.store.database.reader();
        let users = users(filter, after, limit).all(reader).await?;
        let ids = padded(users.iter().map(|user| user.id));
        let memberships = member::Entity::find()
            .find_also_related(team::Entity)
            .filter(member::Column::UserId.is_in(ids.clone()))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::TeamId)
            .all(reader)
            .await?;
        let factors: Vec<Uuid> = second_factor::Entity::find()
            .select_only()
            .column(second_factor::Column::UserId)
            .filter(second_factor::Column::UserId.is_in(ids.clone()))
            .into_tuple()
            .all(reader)
            .await?;
        let on_devices: Vec<(Uuid, Option<i64>)> = device::Entity::find()
            .select_only()
            .column(device::Column::UserId)
            .column_as(device::Column::SeenAt.max(), "at")
            .filter(device::Column::UserId.is_in(ids.clone()))
            .group_by(device::Column::UserId)
            .into_tuple()
            .all(reader)
            .await?;
        let in_sessions: Vec<(Uuid, Option<i64>)> = session::Entity::find()
            .select_only()
            .column(session::Column::UserId)
            .column_as(session::Column::CreatedAt.max(), "at")
            .filter(session::Column::UserId.is_in(ids))
            .group_by(session::Column::UserId)
            .into_tuple()
            .all(reader)
            .await?;
        let factors: BTreeSet<Uuid> = factors.into_iter().collect();
        let mut sign_ins: BTreeMap<Uuid, i64> = BTreeMap::new();
        for (user, at) in on_devices.into_iter().chain(in_sessions) {
            let last = sign_ins.entry(user).or_insert(i64::MIN);
            *last = Ord::max(*last, at.unwrap_or(i64::MIN));
        }
        let mut teams: BTreeMap<Uuid, Vec<UserSummaryTeam>> = BTreeMap::new();
        for (row, team) in memberships {
            let team = team.ok_or(Error::Inconsistent("membership without a team"))?;
            teams.entry(row.user_id).or_default().push(UserSummaryTeam {
                team: TeamId(team.id),
                name: team.name,
                role: codes::read_role(row.role)?,
                is_suspended: team.status == codes::SUSPENDED,
            });
        }
        let summary = |row: user::Model| {
            let id = row.id;
            Ok(UserSummary {
                user: read(row)?,
                teams: teams.remove(&id).unwrap_or_default(),
                last_sign_in: sign_ins.get(&id).filter(|at| **at > i64::MIN).copied().map(Timestamp::from_ms),
                has_second_factor: factors.contains(&id),
            })
        };
        users.into_iter().map(summary).collect()
    }
}

pub(super) fn users(filter: &UserFilter, after: Option<UserCursor>, limit: u32) -> Select<user::Entity> {
    let mut query = user::Entity::find();
    match filter {
        UserFilter::All => {}
        UserFilter::Id(id) => query = query.filter(user::Column::Id.eq(id.0)),
        UserFilter::Contains(part) => {
            let contains = |column: Expr| column.like(LikeExpr::new(containing(part)).escape('\\'));
            let name = Expr::expr(Func::lower(Expr::col((team::Entity, team::Column::Name))));
            let of_teams = Query::select()
                .column((member::Entity, member::Column::UserId))
                .from(member::Entity)
                .inner_join(
                    team::Entity,
                    Expr::col((team::Entity, team::Column::Id)).equals((member::Entity, member::Column::TeamId)),
                )
                .and_where(contains(name))
                .take();
            // Addresses are in lower case.
            let found = Condition::any()
                .add(contains(Expr::col((user::Entity, user::Column::Email))))
                .add(user::Column::Id.in_subquery(of_teams));
            query = query.filter(found);
        }
    }
    if let Some(UserCursor { created_at, user: id }) = after {
        let sort_key = Expr::tuple([Expr::col(user::Column::CreatedAt), Expr::col(user::Column::Id)]);
        query = query.filter(sort_key.lt(Expr::tuple([Expr::value(created_at.as_ms()), Expr::value(id.0)])));
    }
    query.order_by_desc(user::Column::CreatedAt).order_by_desc(user::Column::Id).limit(u64::from(limit))
}
