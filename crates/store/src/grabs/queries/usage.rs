//! Grab counts of a team.

use std::time::Duration;

use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_domain::{Day, Timestamp};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::Result;
use crate::areas::Grabs;
use crate::codes;
use crate::entities::{grab, grab_tally};

/// Number of grabs of a team, of any status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrabCounts {
    /// In both environments.
    pub all: u64,
    /// In the live environment.
    pub live: u64,
}

impl Grabs<'_> {
    /// Counts the grabs a team created at `since` or later, purged ones included by whole days.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn count_grabs(self, team: TeamId, since: Timestamp) -> Result<GrabCounts> {
        let both = [Environment::Live, Environment::Test].map(codes::environment);
        let counted: Vec<(i16, i64)> = grab::Entity::find()
            .select_only()
            .column(grab::Column::Env)
            .column_as(grab::Column::Id.count(), "grabs")
            .filter(grab::Column::TeamId.eq(team.0))
            // Both environments are listed because the environment precedes the time in the index.
            .filter(grab::Column::Env.is_in(both))
            .filter(grab::Column::CreatedAt.gte(since.as_ms()))
            .group_by(grab::Column::Env)
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        // Of purged grabs, only those of whole days are known.
        let purged: Vec<(i16, i64)> = grab_tally::Entity::find()
            .select_only()
            .columns([grab_tally::Column::Env, grab_tally::Column::Grabs])
            .filter(grab_tally::Column::TeamId.eq(team.0))
            .filter(grab_tally::Column::Env.is_in(both))
            .filter(grab_tally::Column::Day.gt(Day::of(since - Duration::from_millis(1)).number()))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let of = |environment| {
            let code = codes::environment(environment);
            let counts = counted.iter().chain(&purged).filter(|(env, _)| *env == code);
            counts.map(|(_, count)| u64::try_from(*count).unwrap_or(0)).sum()
        };
        let live: u64 = of(Environment::Live);
        Ok(GrabCounts { all: live + of(Environment::Test), live })
    }
}
