//! All teams, page by page, with what each has and did.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::Lot;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::{Expr, ExprTrait, Func, LikeExpr, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::figures::number;
use crate::codes::{self, DONE};
use crate::entities::{grab, lot, member, team, user};
use crate::queries::accounts::Team;
use crate::queries::padded;
use crate::{Result, Store};

/// Which teams are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeamsWanted {
    /// All.
    All,
    /// Those with this in their name, in whatever case.
    Named(String),
    /// The one with this id.
    Id(TeamId),
    /// Those that somebody is in.
    Of(Email),
}

/// A place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamPlace {
    /// When the team was created.
    pub created_at: Timestamp,
    /// Which one.
    pub team: TeamId,
}

/// A team with what it has and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamSummary {
    /// The team.
    pub team: Team,
    /// How many people are in it.
    pub members: u64,
    /// Its lots that have something left.
    pub lots: Vec<Lot>,
    /// Its live captures that are done, of those asked for since the time that was named.
    pub captures: u64,
}

impl Store {
    /// At most `limit` teams, the newest first: those after a place, when it is given. Captures count from `since` on.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_summaries(
        &self,
        wanted: &TeamsWanted,
        after: Option<TeamPlace>,
        limit: u32,
        since: Timestamp,
    ) -> Result<Vec<TeamSummary>> {
        let reader = self.database.reader();
        let teams = teams(wanted, after, limit).all(reader).await?;
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
        let left = lot::Entity::find().filter(lot::Column::TeamId.is_in(ids)).filter(lot::Column::Remaining.gt(0));
        let lots = left.all(reader).await?;
        let count =
            |counts: &[(Uuid, i64)], id| counts.iter().find(|(team, _)| *team == id).map_or(0, |(_, n)| number(*n));
        let summary = |row: team::Model| {
            let own = lots.iter().filter(|lot| lot.team_id == row.id).cloned();
            Ok(TeamSummary {
                members: count(&members, row.id),
                lots: own.map(Lot::try_from).collect::<Result<_>>()?,
                captures: count(&captures, row.id),
                team: row.into(),
            })
        };
        teams.into_iter().map(summary).collect()
    }
}

pub(super) fn teams(wanted: &TeamsWanted, after: Option<TeamPlace>, limit: u32) -> Select<team::Entity> {
    let mut query = team::Entity::find();
    match wanted {
        TeamsWanted::All => {}
        TeamsWanted::Named(part) => {
            let name = Expr::expr(Func::lower(Expr::col((team::Entity, team::Column::Name))));
            query = query.filter(name.like(LikeExpr::new(containing(part)).escape('\\')));
        }
        TeamsWanted::Id(id) => query = query.filter(team::Column::Id.eq(id.0)),
        TeamsWanted::Of(email) => {
            let theirs = Query::select()
                .column((member::Entity, member::Column::TeamId))
                .from(member::Entity)
                .inner_join(
                    user::Entity,
                    Expr::col((user::Entity, user::Column::Id)).equals((member::Entity, member::Column::UserId)),
                )
                .and_where(Expr::col((user::Entity, user::Column::Email)).eq(email.as_str()))
                .take();
            query = query.filter(team::Column::Id.in_subquery(theirs));
        }
    }
    if let Some(TeamPlace { created_at, team: id }) = after {
        let here = Expr::tuple([Expr::col(team::Column::CreatedAt), Expr::col(team::Column::Id)]);
        query = query.filter(here.lt(Expr::tuple([Expr::value(created_at.as_ms()), Expr::value(id.0)])));
    }
    query.order_by_desc(team::Column::CreatedAt).order_by_desc(team::Column::Id).limit(u64::from(limit))
}

pub(super) fn captures(teams: Vec<Uuid>, since: Timestamp) -> Select<grab::Entity> {
    grab::Entity::find()
        .select_only()
        .column(grab::Column::TeamId)
        .column_as(grab::Column::Id.count(), "captures")
        .filter(grab::Column::TeamId.is_in(teams))
        .filter(grab::Column::Env.eq(codes::environment(Environment::Live)))
        .filter(grab::Column::Status.eq(DONE))
        .filter(grab::Column::CreatedAt.gte(since.as_ms()))
        .group_by(grab::Column::TeamId)
}

/// A pattern for whatever contains the text, in which nothing stands for anything else.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.to_lowercase().chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}
