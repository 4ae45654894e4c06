//! How many captures a team made each day, and how they ended.

use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Select};

use crate::codes::{self, DONE, FAILED};
use crate::entities::grab;
use crate::{Result, Store};

/// Grabs of one day and environment that ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedOnDay {
    /// The day they were created on.
    pub day: Day,
    /// In which environment.
    pub environment: Environment,
    /// Done, or failed?
    pub done: bool,
    /// How many; never none.
    pub grabs: u64,
}

impl Store {
    /// Counts a team's ended grabs by the day they were created on, from `first` to `last`, in no order.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn count_ended_by_day(&self, team: TeamId, first: Day, last: Day) -> Result<Vec<EndedOnDay>> {
        let counted: Vec<(i16, i16, i64, i64)> =
            query(team, first, last).into_tuple().all(self.database.reader()).await?;
        let read = |(environment, status, day, grabs): (i16, i16, i64, i64)| {
            Ok(EndedOnDay {
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
    // Both are named because the index has the environment and the status before the time.
    let environments = [Environment::Live, Environment::Test].map(codes::environment);
    // A constant and no argument: PostgreSQL would take two arguments of equal value for two expressions.
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
        .filter(grab::Column::CreatedAt.gte(first.begins().as_ms()))
        .filter(grab::Column::CreatedAt.lt(last.next().begins().as_ms()))
        .group_by(grab::Column::Env)
        .group_by(grab::Column::Status)
        .group_by(day())
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, DbBackend, QueryTrait, Statement};
    use uuid::Uuid;

    use super::*;
    use crate::database::Database;

    /// Nothing but the index is read, and of it only the team's days.
    #[tokio::test]
    async fn the_days_are_counted_off_an_index() {
        let database = Database::open("sqlite::memory:").await.expect("a database");
        database.migrate().await.expect("the schema");
        let today = Day::from_number(20_000);
        let query = query(TeamId(Uuid::nil()), today.before(29), today).build(DbBackend::Sqlite);
        let values = query.values.unwrap_or_else(|| sea_orm::Values(Vec::new()));
        let explain = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let plan = Statement::from_sql_and_values(DbBackend::Sqlite, explain, values);
        let rows = database.reader().query_all_raw(plan).await.expect("a plan");
        let steps: Vec<String> = rows.iter().map(|row| row.try_get("", "detail").expect("a step")).collect();
        let index = "SEARCH grab USING COVERING INDEX grab_list_status \
                     (team_id=? AND env=? AND status=? AND created_at>? AND created_at<?)";
        assert!(steps.iter().any(|step| step == index), "{steps:?}");
        database.close().await;
    }
}
