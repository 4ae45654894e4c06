//! How many grabs a team made.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::codes;
use crate::entities::grab;
use crate::{Result, Store};

/// Grabs of a team, whatever became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrabCounts {
    /// In both environments.
    pub all: u64,
    /// In the live one.
    pub live: u64,
}

impl Store {
    /// Counts the grabs a team created at `since` or later.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn count_grabs(&self, team: TeamId, since: Timestamp) -> Result<GrabCounts> {
        let both = [Environment::Live, Environment::Test].map(codes::environment);
        let counted: Vec<(i16, i64)> = grab::Entity::find()
            .select_only()
            .column(grab::Column::Env)
            .column_as(grab::Column::Id.count(), "grabs")
            .filter(grab::Column::TeamId.eq(team.0))
            // Both are named because the index has the environment before the time.
            .filter(grab::Column::Env.is_in(both))
            .filter(grab::Column::CreatedAt.gte(since.as_ms()))
            .group_by(grab::Column::Env)
            .into_tuple()
            .all(self.database.reader())
            .await?;
        let of = |environment| {
            let code = codes::environment(environment);
            let count = counted.iter().find(|(env, _)| *env == code).map_or(0, |(_, count)| *count);
            u64::try_from(count).unwrap_or(0)
        };
        let live = of(Environment::Live);
        Ok(GrabCounts { all: live + of(Environment::Test), live })
    }
}
