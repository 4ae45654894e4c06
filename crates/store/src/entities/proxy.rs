//! Proxies of teams.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, ProxyId, TeamId};
use grabd_domain::proxies::{LastError, Proxy, ProxyProblem, ProxyUrl};
use sea_orm::entity::prelude::*;

use crate::codes::{self, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "proxies")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    /// The grant of the app that created the proxy, which is deleted with it.
    pub(crate) grant_id: Option<Uuid>,
    pub(crate) name: String,
    pub(crate) url: String,
    /// User name and password, encrypted with a key that is not in the database.
    pub(crate) login: Option<Vec<u8>>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) last_used_at: Option<i64>,
    /// What was wrong when a capture last failed because of it.
    pub(crate) last_error: Option<String>,
    pub(crate) last_error_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Proxies visible to a caller: all of the team, or those that an app has created with its grant. Every read or change
/// on behalf of a caller starts from this query.
pub(crate) fn scoped(team: TeamId, environment: Environment, grant: Option<GrantId>) -> Select<Entity> {
    let of_team = of_team(team, environment);
    match grant {
        None => of_team,
        Some(grant) => of_team.filter(Column::GrantId.eq(grant.0)),
    }
}

/// All proxies of a team, which share its limit.
pub(crate) fn of_team(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(Column::Env.eq(codes::environment(environment)))
}

/// Reads where a proxy is.
pub(crate) fn read_url(row: &Model) -> Result<ProxyUrl> {
    ProxyUrl::restore(&row.url).ok_or(Error::Inconsistent("proxy without a valid URL"))
}

/// Converts a row, without the login.
pub(crate) fn read(row: &Model) -> Result<Proxy> {
    // A problem of a later version is not shown.
    let problem = row.last_error.as_deref().and_then(ProxyProblem::parse);
    Ok(Proxy {
        id: ProxyId(row.id),
        team: TeamId(row.team_id),
        environment: codes::read_environment(row.env)?,
        name: row.name.clone(),
        url: read_url(row)?,
        has_login: row.login.is_some(),
        created_at: Timestamp::from_ms(row.created_at),
        updated_at: Timestamp::from_ms(row.updated_at),
        last_used_at: read_time(row.last_used_at),
        last_error: problem.zip(read_time(row.last_error_at)).map(|(problem, at)| LastError { problem, at }),
    })
}
