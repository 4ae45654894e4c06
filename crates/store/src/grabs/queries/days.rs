//! Captures of a team per day and result.

use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Select};

use crate::Result;
use crate::areas::Grabs;
use crate::codes::{self, DONE, FAILED};
use crate::entities::{grab, grab_tally};

/// Number of grabs of one day and environment with the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyOutcomeCount {
    /// The day of creation.
    pub day: Day,
    /// The environment.
    pub environment: Environment,
    /// `true`: done, `false`: failed.
    pub done: bool,
    /// Number of grabs, at least one.
    pub grabs: u64,
}

impl Grabs<'_> {
    /// Counts a team's ended grabs by day of creation from `first` to `last`, purged ones included, unordered.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn count_ended_by_day(self, team: TeamId, first: Day, last: Day) -> Result<Vec<DailyOutcomeCount>> {
        let mut counted: Vec<(i16, i16, i64, i64)> =
            query(team, first, last).into_tuple().all(self.store.database.reader()).await?;
        let purged: Vec<(i16, i16, i64, i64)> =
            purged(team, first, last).into_tuple().all(self.store.database.reader()).await?;
        for (environment, status, day, grabs) in purged {
            let same = counted.iter_mut().find(|(env, of, on, _)| (*env, *of, *on) == (environment, status, day));
            match same {
                Some((.., count)) => *count += grabs,
                None => counted.push((environment, status, day, grabs)),
            }
        }
        let read = |(environment, status, day, grabs): (i16, i16, i64, i64)| {
            Ok(DailyOutcomeCount {
                day: Day::from_number(day),
                environment: codes::read_environment(environment)?,
                done: status == DONE,
                grabs: u64::try_from(grabs).unwrap_or(0),
            })
        };
        counted.into_iter().map(read).collect()
    }
}

fn query(team: TeamId, first: Day, last: Day) -> Select<grab::Entity> {
    // Both environments are listed because the environment and the status precede the time in the index.
    let environments = [Environment::Live, Environment::Test].map(codes::environment);
    // A constant instead of a parameter: PostgreSQL would treat two parameters of equal value as different expressions.
    let day = || Expr::cust("created_at / 86400000");
    grab::Entity::find()
        .select_only()
        .column(grab::Column::Env)
        .column(grab::Column::Status)
        .expr_as(day(), "day")
        .column_as(grab::Column::Id.count(), "grabs")
        .filter(grab::Column::TeamId.eq(team.0))
        .filter(grab::Column::Env.is_in(environments))
        .filter(grab::Column::Status.is_in([DONE, FAILED]))
        .filter(grab::Column::CreatedAt.gte(first.start().as_ms()))
        .filter(grab::Column::CreatedAt.lt(last.next().start().as_ms()))
        .group_by(grab::Column::Env)
        .group_by(grab::Column::Status)
        .group_by(day())
}

fn purged(team: TeamId, first: Day, last: Day) -> Select<grab_tally::Entity> {
    grab_tally::Entity::find()
        .select_only()
        .columns([
            grab_tally::Column::Env,
            grab_tally::Column::Status,
            grab_tally::Column::Day,
            grab_tally::Column::Grabs,
        ])
        .filter(grab_tally::Column::TeamId.eq(team.0))
        .filter(grab_tally::Column::Day.between(first.number(), last.number()))
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, DbBackend, QueryTrait, Statement};
    use uuid::Uuid;

    use super::*;
    use crate::database::Database;

    /// The query reads only the index, and only the team's days in it.
    #[tokio::test]
    async fn daily_counts_use_a_covering_index() {
        let database = Database::open("sqlite::memory:").await.expect("open the database");
        database.migrate().await.expect("migrate");
        let today = Day::from_number(20_000);
        let query = query(TeamId(Uuid::nil()), today.before(29), today).build(DbBackend::Sqlite);
        let values = query.values.unwrap_or_else(|| sea_orm::Values(Vec::new()));
        let explain = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let plan = Statement::from_sql_and_values(DbBackend::Sqlite, explain, values);
        let rows = database.reader().query_all_raw(plan).await.expect("query plan");
        let steps: Vec<String> = rows.iter().map(|row| row.try_get("", "detail").expect("plan step")).collect();
        let index = "SEARCH grab USING COVERING INDEX grab_list_status \
                     (team_id=? AND env=? AND status=? AND created_at>? AND created_at<?)";
        assert!(steps.iter().any(|step| step == index), "{steps:?}");
        database.close().await;
    }
}
