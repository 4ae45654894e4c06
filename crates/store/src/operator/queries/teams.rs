//! Paginated list of all teams with their lots and captures.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::Lot;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::{Expr, ExprTrait, Func, LikeExpr, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::figures::to_count;
use crate::Result;
use crate::accounts::queries::accounts::Team;
use crate::areas::Operators;
use crate::codes::DONE;
use crate::entities::{grab, lot, member, team, user};
use crate::padded::padded;

/// A filter for teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeamFilter {
    /// All teams.
    All,
    /// Teams whose name contains this text, ignoring case.
    NameContains(String),
    /// The team with this id.
    Id(TeamId),
    /// Teams that the user with this address belongs to.
    MemberEmail(Email),
}

/// A position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamCursor {
    /// Creation time of the team.
    pub created_at: Timestamp,
    /// The team.
    pub team: TeamId,
}

/// A team with its members, lots and captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamSummary {
    /// The team.
    pub team: Team,
    /// Number of members.
    pub members: u64,
    /// Its lots with remaining credits.
    pub lots: Vec<Lot>,
    /// Number of done live grabs created since the given time.
    pub captures: u64,
}

impl Operators<'_> {
    /// Up to `limit` teams, newest first, optionally only those after a position. Captures are counted from `since` on.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_summaries(
        self,
        filter: &TeamFilter,
        after: Option<TeamCursor>,
        limit: u32,
        since: Timestamp,
    ) -> Result<Vec<TeamSummary>> {
        let reader = self.store.database.reader();
        let teams = teams(filter, after, limit).all(reader).await?;
        let ids = padded(teams.iter().map(|team| team.id));
        let members: Vec<(Uuid, i64)> = member::Entity::find()
            .select_only()
            .column(member::Column::TeamId)
            .column_as(member::Column::UserId.count(), "members")
            .filter(member::Column::TeamId.is_in(ids.clone()))
            .group_by(member::Column::TeamId)
            .into_tuple()
            .all(reader)
            .await?;
        let captures: Vec<(Uuid, i64)> = captures(ids.clone(), since).into_tuple().all(reader).await?;
        let unspent = lot::Entity::find().filter(lot::Column::TeamId.is_in(ids)).filter(lot::Column::Remaining.gt(0));
        let lots = unspent.all(reader).await?;
        let count =
            |counts: &[(Uuid, i64)], id| counts.iter().find(|(team, _)| *team == id).map_or(0, |(_, n)| to_count(*n));
        let summary = |row: team::Model| {
            let team_lots = lots.iter().filter(|lot| lot.team_id == row.id).cloned();
            Ok(TeamSummary {
                members: count(&members, row.id),
                lots: team_lots.map(Lot::try_from).collect::<Result<_>>()?,
                captures: count(&captures, row.id),
                team: row.into(),
            })
        };
        teams.into_iter().map(summary).collect()
    }
}

impl Operators<'_> {
    /// Up to `limit` teams, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_team_ids(self, filter: &TeamFilter, limit: u32) -> Result<Vec<TeamId>> {
        let found = teams(filter, None, limit).all(self.store.database.reader()).await?;
        Ok(found.into_iter().map(|team| TeamId(team.id)).collect())
    }
}

pub(super) fn teams(filter: &TeamFilter, after: Option<TeamCursor>, limit: u32) -> Select<team::Entity> {
    let mut query = team::Entity::find();
    match filter {
        TeamFilter::All => {}
        TeamFilter::NameContains(part) => {
            let name = Expr::expr(Func::lower(Expr::col((team::Entity, team::Column::Name))));
            query = query.filter(name.like(LikeExpr::new(containing(part)).escape('\\')));
        }
        TeamFilter::Id(id) => query = query.filter(team::Column::Id.eq(id.0)),
        TeamFilter::MemberEmail(email) => {
            let team_ids = Query::select()
                .column((member::Entity, member::Column::TeamId))
                .from(member::Entity)
                .inner_join(
                    user::Entity,
                    Expr::col((user::Entity, user::Column::Id)).equals((member::Entity, member::Column::UserId)),
                )
                .and_where(Expr::col((user::Entity, user::Column::Email)).eq(email.as_str()))
                .take();
            query = query.filter(team::Column::Id.in_subquery(team_ids));
        }
    }
    if let Some(TeamCursor { created_at, team: id }) = after {
        let sort_key = Expr::tuple([Expr::col(team::Column::CreatedAt), Expr::col(team::Column::Id)]);
        query = query.filter(sort_key.lt(Expr::tuple([Expr::value(created_at.as_ms()), Expr::value(id.0)])));
    }
    query.order_by_desc(team::Column::CreatedAt).order_by_desc(team::Column::Id).limit(u64::from(limit))
}

pub(super) fn captures(teams: Vec<Uuid>, since: Timestamp) -> Select<grab::Entity> {
    grab::Entity::find()
        .select_only()
        .column(grab::Column::TeamId)
        .column_as(grab::Column::Id.count(), "captures")
        .filter(grab::Column::TeamId.is_in(teams))
        .filter(grab::is_of(Environment::Live))
        .filter(grab::has_status(DONE))
        .filter(grab::Column::CreatedAt.gte(since.as_ms()))
        .group_by(grab::Column::TeamId)
}

/// A LIKE pattern that matches text containing `text` literally: wildcards are escaped.
pub(super) fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.to_lowercase().chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}
