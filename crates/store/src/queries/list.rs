//! A caller's grabs, the newest first, page by page.

use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Status};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, Condition, Order, QueryFilter, QueryOrder, QuerySelect};

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
        let mut query = grab::scoped(team, environment).find_also_related(job::Entity);
        if let Some(status) = page.status {
            query = query.filter(stands(status));
        }
        let mut order = Order::Desc;
        if let Some(cursor) = page.cursor {
            let Some(place) = self.place(team, environment, cursor).await? else { return Ok(None) };
            query = query.filter(match cursor {
                Cursor::After(_) => here().lt(place),
                Cursor::Before(_) => here().gt(place),
            });
            order = match cursor {
                Cursor::After(_) => Order::Desc,
                Cursor::Before(_) => Order::Asc,
            };
        }
        let rows = query
            .order_by(grab::Column::CreatedAt, order.clone())
            .order_by(grab::Column::Id, order.clone())
            // One more than asked for tells whether there are more.
            .limit(u64::from(page.limit) + 1)
            .all(self.database.reader())
            .await?;
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let mut grabs: Vec<Grab> =
            rows.into_iter().take(limit).map(|(row, job)| grab::read(row, job.as_ref())).collect::<Result<_>>()?;
        if order == Order::Asc {
            grabs.reverse();
        }
        Ok(Some(Listed { grabs, has_more }))
    }

    async fn place(&self, team: TeamId, environment: Environment, cursor: Cursor) -> Result<Option<Expr>> {
        let (Cursor::After(id) | Cursor::Before(id)) = cursor;
        let created_at: Option<i64> = grab::scoped(team, environment)
            .select_only()
            .column(grab::Column::CreatedAt)
            .filter(grab::Column::Id.eq(id.0))
            .into_tuple()
            .one(self.database.reader())
            .await?;
        Ok(created_at.map(|at| Expr::tuple([Expr::value(at), Expr::value(id.0)])))
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
