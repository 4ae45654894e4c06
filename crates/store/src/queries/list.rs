//! A caller's grabs, the newest first, page by page.

use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Status};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, Condition, Order, QueryFilter, QueryOrder, QuerySelect, Select, SelectTwo};

use crate::codes::{DONE, FAILED, OPEN};
use crate::entities::{grab, job};
use crate::{Result, Store};

/// Which grabs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many at most.
    pub limit: u32,
    /// Only those that stand so.
    pub status: Option<Status>,
    /// Where to begin; without it, at the newest.
    pub cursor: Option<Cursor>,
}

/// A place in the list, named by a grab of the same caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// Those that come after it in the list: older ones.
    After(GrabId),
    /// Those that come just before it in the list: newer ones.
    Before(GrabId),
}

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The newest first.
    pub grabs: Vec<Grab>,
    /// Are there more in the direction that was asked for?
    pub has_more: bool,
}

impl Store {
    /// A page of a caller's grabs; `None` when the cursor names no grab of this caller.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_grabs(&self, team: TeamId, environment: Environment, page: Page) -> Result<Option<Listed>> {
        let place = match page.cursor {
            None => None,
            Some(cursor) => match self.place(team, environment, cursor).await? {
                None => return Ok(None),
                place => place,
            },
        };
        let rows = query(grab::scoped(team, environment), page, place).all(self.database.reader()).await?;
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let mut grabs: Vec<Grab> =
            rows.into_iter().take(limit).map(|(row, job)| grab::read(row, job.as_ref())).collect::<Result<_>>()?;
        if direction(page) == Order::Asc {
            grabs.reverse();
        }
        Ok(Some(Listed { grabs, has_more }))
    }

    async fn place(&self, team: TeamId, environment: Environment, cursor: Cursor) -> Result<Option<Place>> {
        let (Cursor::After(id) | Cursor::Before(id)) = cursor;
        let created_at: Option<i64> = grab::scoped(team, environment)
            .select_only()
            .column(grab::Column::CreatedAt)
            .filter(grab::Column::Id.eq(id.0))
            .into_tuple()
            .one(self.database.reader())
            .await?;
        Ok(created_at.map(|at| (at, id)))
    }
}

/// When the cursor's grab was created, and its id.
type Place = (i64, GrabId);

/// Each of the two indexes `grab_list` and `grab_list_status` has its rows in this order.
fn query(scoped: Select<grab::Entity>, page: Page, place: Option<Place>) -> SelectTwo<grab::Entity, job::Entity> {
    let mut query = scoped.find_also_related(job::Entity);
    if let Some(status) = page.status {
        query = query.filter(stands(status));
    }
    let order = direction(page);
    if let Some((at, id)) = place {
        let place = Expr::tuple([Expr::value(at), Expr::value(id.0)]);
        query = query.filter(if order == Order::Desc { here().lt(place) } else { here().gt(place) });
    }
    query
        .order_by(grab::Column::CreatedAt, order.clone())
        .order_by(grab::Column::Id, order)
        // One more than asked for tells whether there are more.
        .limit(u64::from(page.limit) + 1)
}

fn direction(page: Page) -> Order {
    match page.cursor {
        None | Some(Cursor::After(_)) => Order::Desc,
        Some(Cursor::Before(_)) => Order::Asc,
    }
}

fn here() -> Expr {
    Expr::tuple([Expr::col((grab::Entity, grab::Column::CreatedAt)), Expr::col((grab::Entity, grab::Column::Id))])
}

/// An open grab is pending or processing as its job says. That the job is there is said as well, so that the database
/// may begin with the few jobs instead of the long history.
fn stands(status: Status) -> Condition {
    let ended = |code: i16| Condition::all().add(grab::Column::Status.eq(code));
    let open = || ended(OPEN).add(job::Column::GrabId.is_not_null());
    match status {
        Status::Pending => open().add(job::Column::LeaseUntil.is_null()),
        Status::Processing => open().add(job::Column::LeaseUntil.is_not_null()),
        Status::Done => ended(DONE),
        Status::Failed => ended(FAILED),
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, DbBackend, QueryTrait, Statement};
    use uuid::Uuid;

    use super::*;
    use crate::database::Database;

    /// How SQLite would do it, as one text.
    async fn plan(database: &Database, page: Page, place: Option<Place>) -> String {
        let scoped = grab::scoped(TeamId(Uuid::nil()), Environment::Live);
        let statement = query(scoped, page, place).build(DbBackend::Sqlite);
        let (sql, values) = (
            format!("EXPLAIN QUERY PLAN {}", statement.sql),
            statement.values.unwrap_or_else(|| sea_orm::Values(Vec::new())),
        );
        let rows =
            database.reader().query_all_raw(Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)).await;
        let steps: Vec<String> =
            rows.expect("a plan").iter().map(|row| row.try_get("", "detail").expect("a step")).collect();
        steps.join("\n")
    }

    #[tokio::test]
    async fn every_page_is_read_off_an_index_in_its_order() {
        let database = Database::open("sqlite::memory:").await.expect("a database");
        database.migrate().await.expect("the schema");
        // A few thousand of two teams, and what is known about them.
        let grabs = "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at, finished_at, \
             image_key, bytes, execution_ms, error_code) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             SELECT randomblob(16), CASE i % 5 WHEN 0 THEN zeroblob(16) ELSE x'01' END, 0, 0, \
             CASE i % 50 WHEN 0 THEN 3 ELSE 2 END, '{}', 1, i, i, \
             CASE i % 50 WHEN 0 THEN NULL ELSE 'key ' || i END, 1, 1, CASE i % 50 WHEN 0 THEN 'render_failed' END FROM n";
        for statement in [grabs, "ANALYZE"] {
            database.reader().execute_unprepared(statement).await.expect("rows");
        }
        let id = GrabId(Uuid::nil());
        let everyone =
            [None, Some(Status::Done), Some(Status::Failed), Some(Status::Pending), Some(Status::Processing)];
        for status in everyone {
            let index = match status {
                None => "INDEX grab_list (team_id=? AND env=?",
                Some(_) => "INDEX grab_list_status (team_id=? AND env=? AND status=?",
            };
            for (cursor, place, bound) in [
                (None, None, ")"),
                (Some(Cursor::After(id)), Some((2500, id)), " AND (created_at,id)<(?,?))"),
                (Some(Cursor::Before(id)), Some((2500, id)), " AND (created_at,id)>(?,?))"),
            ] {
                let plan = plan(&database, Page { limit: 25, status, cursor }, place).await;
                // An open grab has a job, and those are few: the plan may begin with them.
                let jobs_first =
                    plan.contains("SCAN job") && matches!(status, Some(Status::Pending | Status::Processing));
                assert!(jobs_first || plan.contains(&format!("{index}{bound}")), "{status:?} {cursor:?}:\n{plan}");
                assert!(jobs_first || !plan.contains("B-TREE"), "{status:?} {cursor:?} sorts:\n{plan}");
                assert!(!plan.contains("SCAN grab"), "{status:?} {cursor:?}:\n{plan}");
            }
        }
        database.close().await;
    }
}
