//! Webhook endpoints.

use std::collections::BTreeSet;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, GrantId, TeamId};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{Creator, DisabledReason, Endpoint, Events};
use sea_orm::entity::prelude::*;

use crate::padded::padded;
use crate::{Error, Result, codes};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_endpoint")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    pub(crate) url: String,
    /// Event names, separated by commas.
    pub(crate) events: String,
    pub(crate) description: String,
    /// Why the endpoint is disabled; NULL if it is enabled.
    pub(crate) disabled: Option<i16>,
    /// Time of the first failed attempt since the last success.
    pub(crate) failing_since: Option<i64>,
    /// Encrypted with a key that is not in the database.
    #[sea_orm(column_type = "VarBinary(StringLen::N(128))")]
    pub(crate) secret: Vec<u8>,
    /// The secret before the last rotation. It also signs until `previous_until`.
    #[sea_orm(column_type = "VarBinary(StringLen::N(128))", nullable)]
    pub(crate) previous_secret: Option<Vec<u8>>,
    pub(crate) previous_until: Option<i64>,
    pub(crate) created_at: i64,
    /// The grant of the app that created the endpoint, which is deleted with it.
    pub(crate) grant_id: Option<Uuid>,
    /// Who created the endpoint; NULL if an earlier version did not record it.
    pub(crate) creator: Option<i16>,
    /// When the secret was made. `None`: by an earlier version.
    pub(crate) secret_at: Option<i64>,
    /// The user to whom it was shown. `None`: an API key or an app got it, or an earlier version made it.
    pub(crate) secret_by: Option<Uuid>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Endpoints visible to a caller: all of the team, or those that an app has created with its grant. Every read or change
/// on behalf of a caller starts from this query.
pub(crate) fn scoped(team: TeamId, environment: Environment, grant: Option<GrantId>) -> Select<Entity> {
    let of_team = of_team(team, environment);
    match grant {
        None => of_team,
        Some(grant) => of_team.filter(Column::GrantId.eq(grant.0)),
    }
}

/// All endpoints of a team, which share its limit.
pub(crate) fn of_team(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(Column::Env.eq(codes::environment(environment)))
}

/// Endpoints of several teams, for work that no caller has asked for.
pub(crate) fn of_teams(teams: &BTreeSet<TeamId>, environment: Environment) -> Select<Entity> {
    let ids = padded(teams.iter().map(|team| team.0));
    Entity::find().filter(Column::TeamId.is_in(ids)).filter(Column::Env.eq(codes::environment(environment)))
}

/// Converts a row, without the secrets.
pub(crate) fn read(row: Model) -> Result<Endpoint> {
    let Model { id, team_id, env, url, events, description, disabled, created_at, grant_id, creator, .. } = row;
    Ok(Endpoint {
        id: EndpointId(id),
        team: TeamId(team_id),
        environment: codes::read_environment(env)?,
        url: read_url(&url)?,
        events: read_events(&events)?,
        description,
        disabled: disabled.map(read_disabled).transpose()?,
        created_at: Timestamp::from_ms(created_at),
        creator: creator.map(|creator| read_creator(creator, grant_id)).transpose()?,
    })
}

pub(crate) fn read_url(text: &str) -> Result<TargetUrl> {
    TargetUrl::restore(text).ok_or(Error::Inconsistent("endpoint without a valid URL"))
}

pub(crate) fn write_events(events: &Events) -> String {
    events.words().join(",")
}

pub(crate) fn read_events(text: &str) -> Result<Events> {
    let words: Vec<&str> = text.split(',').collect();
    Events::parse(&words).map_err(|_| Error::Inconsistent("unknown event name"))
}

/// The values of `creator` and `grant_id`.
pub(crate) const fn creator(creator: Creator) -> (i16, Option<Uuid>) {
    match creator {
        Creator::Key => (0, None),
        Creator::User => (1, None),
        Creator::App(grant) => (2, Some(grant.0)),
    }
}

fn read_creator(code: i16, grant: Option<Uuid>) -> Result<Creator> {
    let known = [Some(Creator::Key), Some(Creator::User), grant.map(|grant| Creator::App(GrantId(grant)))];
    let found = known.into_iter().flatten().find(|known| creator(*known) == (code, grant));
    found.ok_or(Error::Inconsistent("unknown creator code"))
}

pub(crate) const fn disabled(why: DisabledReason) -> i16 {
    match why {
        DisabledReason::Requested => 0,
        DisabledReason::Gone => 1,
        DisabledReason::Failing => 2,
    }
}

fn read_disabled(code: i16) -> Result<DisabledReason> {
    DisabledReason::ALL
        .into_iter()
        .find(|why| disabled(*why) == code)
        .ok_or(Error::Inconsistent("unknown disabled code"))
}
