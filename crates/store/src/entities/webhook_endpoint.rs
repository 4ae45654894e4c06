//! Where a team wants its messages.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, TeamId};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{Disabled, Endpoint, Events};
use sea_orm::entity::prelude::*;

use crate::codes;
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_endpoint")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    pub(crate) url: String,
    /// The words, with commas between.
    pub(crate) events: String,
    pub(crate) description: String,
    /// Why it gets no messages; NULL: it gets them.
    pub(crate) disabled: Option<i16>,
    /// Since when no attempt has succeeded.
    pub(crate) failing_since: Option<i64>,
    /// Encrypted, with a key that is not in the database.
    #[sea_orm(column_type = "VarBinary(StringLen::N(128))")]
    pub(crate) secret: Vec<u8>,
    /// The one before, which signs too for a while.
    #[sea_orm(column_type = "VarBinary(StringLen::N(128))", nullable)]
    pub(crate) previous_secret: Option<Vec<u8>>,
    pub(crate) previous_until: Option<i64>,
    pub(crate) created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The endpoints a caller may know of. Whatever a caller reads or changes begins here.
pub(crate) fn scoped(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(Column::Env.eq(codes::environment(environment)))
}

/// An endpoint from its row, without its secrets.
pub(crate) fn read(row: Model) -> Result<Endpoint> {
    let Model { id, team_id, env, url, events, description, disabled, created_at, .. } = row;
    Ok(Endpoint {
        id: EndpointId(id),
        team: TeamId(team_id),
        environment: codes::read_environment(env)?,
        url: read_url(&url)?,
        events: read_events(&events)?,
        description,
        disabled: disabled.map(read_disabled).transpose()?,
        created_at: Timestamp::from_ms(created_at),
    })
}

pub(crate) fn read_url(text: &str) -> Result<TargetUrl> {
    TargetUrl::restore(text).ok_or(Error::Inconsistent("an endpoint without a URL"))
}

pub(crate) fn write_events(events: &Events) -> String {
    events.words().join(",")
}

pub(crate) fn read_events(text: &str) -> Result<Events> {
    let words: Vec<&str> = text.split(',').collect();
    Events::parse(&words).map_err(|_| Error::Inconsistent("an unknown event"))
}

pub(crate) const fn disabled(why: Disabled) -> i16 {
    match why {
        Disabled::Requested => 0,
        Disabled::Gone => 1,
        Disabled::Failing => 2,
    }
}

fn read_disabled(code: i16) -> Result<Disabled> {
    Disabled::ALL
        .into_iter()
        .find(|why| disabled(*why) == code)
        .ok_or(Error::Inconsistent("an endpoint that is disabled for an unknown reason"))
}
