//! Paginated lists of a caller's grabs, newest or oldest first.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Status};
use grabd_domain::ids::{GrabId, KeyId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, Condition, Order, QueryFilter, QueryOrder, QuerySelect, Select};

use crate::Result;
use crate::areas::Grabs;
use crate::codes::{DONE, FAILED, OPEN};
use crate::entities::grab::{self, WithJob};
use crate::entities::job;

/// A request for a page of grabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Maximum number of grabs.
    pub limit: u32,
    /// Only grabs with this status.
    pub status: Option<Status>,
    /// Only grabs that this API key has created.
    pub key: Option<KeyId>,
    /// Where the page begins; without it, at the first grab of the list.
    pub cursor: Option<Cursor>,
    /// Only grabs created at or after this time.
    pub from: Option<Timestamp>,
    /// Only grabs created before this time.
    pub before: Option<Timestamp>,
    /// Whether the list begins with the oldest grab.
    pub oldest_first: bool,
}

/// A position in the list, given by a grab of the same caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// Grabs after it in the list: older ones, unless those come first.
    After(GrabId),
    /// Grabs just before it in the list.
    Before(GrabId),
}

/// One page of grabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrabList {
    /// In the order of the list.
    pub grabs: Vec<Grab>,
    /// Whether there are more in the requested direction.
    pub has_more: bool,
}

impl Grabs<'_> {
    /// Lists a page of a caller's grabs. `None` when the cursor is not a grab of this caller.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_grabs(
        self,
        team: TeamId,
        environment: Environment,
        page: PageRequest,
    ) -> Result<Option<GrabList>> {
        let position = match page.cursor {
            None => None,
            Some(cursor) => match self.position(team, environment, cursor).await? {
                None => return Ok(None),
                position => position,
            },
        };
        let query = query(grab::scoped(team, environment), page, position);
        let rows = query.into_model::<WithJob>().all(self.store.database.reader()).await?;
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let mut grabs: Vec<Grab> = rows.into_iter().take(limit).map(WithJob::read).collect::<Result<_>>()?;
        // What is just before the cursor is read backwards.
        if matches!(page.cursor, Some(Cursor::Before(_))) {
            grabs.reverse();
        }
        Ok(Some(GrabList { grabs, has_more }))
    }

    async fn position(self, team: TeamId, environment: Environment, cursor: Cursor) -> Result<Option<Position>> {
        let (Cursor::After(id) | Cursor::Before(id)) = cursor;
        let created_at: Option<i64> = grab::scoped(team, environment)
            .select_only()
            .column(grab::Column::CreatedAt)
            .filter(grab::Column::Id.eq(id.0))
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(created_at.map(|at| (at, id)))
    }
}

/// Creation time and id of the cursor's grab.
type Position = (i64, GrabId);

/// Sorts in the order of the indexes `grab_list`, `grab_list_status` and `grab_key`. The last one lacks the id, by which the few
/// grabs of one millisecond are sorted.
fn query(scoped: Select<grab::Entity>, page: PageRequest, position: Option<Position>) -> Select<grab::Entity> {
    let mut query = grab::with_job(scoped);
    if let Some(status) = page.status {
        query = query.filter(status_condition(status));
    }
    if let Some(key) = page.key {
        query = query.filter(grab::Column::KeyId.eq(key.0));
    }
    if let Some(from) = page.from {
        query = query.filter(grab::Column::CreatedAt.gte(from.as_ms()));
    }
    if let Some(before) = page.before {
        query = query.filter(grab::Column::CreatedAt.lt(before.as_ms()));
    }
    let order = direction(page);
    if let Some((at, id)) = position {
        let position = Expr::tuple([Expr::value(at), Expr::value(id.0)]);
        query = query.filter(if order == Order::Desc { sort_key().lt(position) } else { sort_key().gt(position) });
    }
    query
        .order_by(grab::Column::CreatedAt, order.clone())
        .order_by(grab::Column::Id, order)
        // One extra row tells whether there are more.
        .limit(u64::from(page.limit) + 1)
}

/// The order in which the rows are read.
fn direction(page: PageRequest) -> Order {
    let is_backwards = matches!(page.cursor, Some(Cursor::Before(_)));
    if page.oldest_first == is_backwards { Order::Desc } else { Order::Asc }
}

fn sort_key() -> Expr {
    Expr::tuple([Expr::col((grab::Entity, grab::Column::CreatedAt)), Expr::col((grab::Entity, grab::Column::Id))])
}

/// The job of an open grab tells pending from processing. The condition also states that the job exists, so that the
/// planner can start from the few jobs instead of the long history.
fn status_condition(status: Status) -> Condition {
    let ended = |code: i16| Condition::all().add(grab::has_status(code));
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

    /// SQLite's query plan as text.
    async fn plan(database: &Database, page: PageRequest, position: Option<Position>) -> String {
        let scoped = grab::scoped(TeamId(Uuid::nil()), Environment::Live);
        let statement = query(scoped, page, position).build(DbBackend::Sqlite);
        let (sql, values) = (
            format!("EXPLAIN QUERY PLAN {}", statement.sql),
            statement.values.unwrap_or_else(|| sea_orm::Values(Vec::new())),
        );
        let rows =
            database.reader().query_all_raw(Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)).await;
        let steps: Vec<String> =
            rows.expect("query plan").iter().map(|row| row.try_get("", "detail").expect("plan step")).collect();
        steps.join("\n")
    }

    #[tokio::test]
    async fn list_pages_use_an_index_without_sorting() {
        let database = Database::open("sqlite::memory:").await.expect("open the database");
        database.migrate().await.expect("migrate");
        // A few thousand grabs of two teams, and their statistics.
        let grabs = "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at, finished_at, \
             image_key, bytes, execution_ms, error_code) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             SELECT randomblob(16), CASE i % 5 WHEN 0 THEN zeroblob(16) ELSE x'01' END, 0, 0, \
             CASE i % 50 WHEN 0 THEN 3 ELSE 2 END, '{}', 1, i, i, \
             CASE i % 50 WHEN 0 THEN NULL ELSE 'key ' || i END, 1, 1, CASE i % 50 WHEN 0 THEN 'render_failed' END FROM n";
        for statement in [grabs, "ANALYZE"] {
            database.reader().execute_unprepared(statement).await.expect("insert rows");
        }
        let id = GrabId(Uuid::nil());
        let statuses =
            [None, Some(Status::Done), Some(Status::Failed), Some(Status::Pending), Some(Status::Processing)];
        for status in statuses {
            let index = match status {
                None => "INDEX grab_list (team_id=? AND env=?",
                Some(_) => "INDEX grab_list_status (team_id=? AND env=? AND status=?",
            };
            for (cursor, position, bound) in [
                (None, None, ")"),
                (Some(Cursor::After(id)), Some((2500, id)), " AND (created_at,id)<(?,?))"),
                (Some(Cursor::Before(id)), Some((2500, id)), " AND (created_at,id)>(?,?))"),
            ] {
                let plan =
                    plan(&database, PageRequest { limit: 25, status, cursor, ..PageRequest::default() }, position)
                        .await;
                // There are few jobs, so the plan for open grabs may start from them.
                let jobs_first =
                    plan.contains("SCAN job") && matches!(status, Some(Status::Pending | Status::Processing));
                assert!(jobs_first || plan.contains(&format!("{index}{bound}")), "{status:?} {cursor:?}:\n{plan}");
                assert!(jobs_first || !plan.contains("B-TREE"), "{status:?} {cursor:?} sorts:\n{plan}");
                assert!(!plan.contains("SCAN grab"), "{status:?} {cursor:?}:\n{plan}");
            }
        }
        let key = Some(KeyId(Uuid::nil()));
        let plan = plan(&database, PageRequest { limit: 25, key, ..PageRequest::default() }, None).await;
        assert!(!plan.contains("SCAN grab"), "{plan}");
        database.close().await;
    }
}
