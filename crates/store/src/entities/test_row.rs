//! Inserts test grabs, of teams that store less than they may.

use std::collections::HashSet;

use grabd_domain::ids::TeamId;
use grabd_domain::storage::Counted;
use sea_orm::sea_query::{Expr, ExprTrait, IntoIden, Query, TableRef, ValueTuple};
use sea_orm::{ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, Iterable, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::entities::grab;
use crate::entities::team_storage::{self, counted};
use crate::{Error, Result};

/// A row of a test grab, and the bytes of test keys with which its team may create no more.
#[derive(Clone, Debug)]
pub(crate) struct TestRow {
    pub(crate) row: grab::ActiveModel,
    pub(crate) team: TeamId,
    /// `None`: the team may store any number.
    pub(crate) ceiling: Option<i64>,
}

impl TestRow {
    /// The id of the grab.
    pub(crate) fn id(&self) -> Option<Uuid> {
        self.row.id.try_as_ref().copied()
    }
}

/// The new rows in the statement, and their columns, as both databases call them.
const NEW: &str = "added";

/// Inserts the rows of teams that have not reached their ceilings, with one statement. All rows set the same columns. Returns
/// the ids of the others. A row that reaches the ceiling is inserted.
pub(crate) async fn insert_test_rows<C: ConnectionTrait>(db: &C, rows: &[TestRow]) -> Result<HashSet<Uuid>> {
    let Some(first) = rows.first() else { return Ok(HashSet::new()) };
    let columns: Vec<_> = grab::Column::iter().filter(|column| first.row.get(*column).is_set()).collect();
    let mut values = Vec::with_capacity(rows.len());
    for TestRow { row, team, ceiling } in rows {
        let set = columns.iter().map(|column| row.get(*column).into_value());
        let mut set = set.collect::<Option<Vec<_>>>().ok_or(Error::Inconsistent("rows that set other columns"))?;
        set.extend([team.0.into(), ceiling.unwrap_or(i64::MAX).into()]);
        values.push(ValueTuple::Many(set));
    }
    let value = |number: usize| Expr::col((NEW, format!("column{number}")));
    let full = Query::select()
        .expr(Expr::value(1))
        .from(team_storage::Entity)
        .and_where(Expr::col((team_storage::Entity, team_storage::Column::TeamId)).eq(value(columns.len() + 1)))
        .and_where(counted(Counted::Test).gte(value(columns.len() + 2)))
        .take();
    let mut select = Query::select();
    select.exprs((1..=columns.len()).map(value)).and_where(Expr::exists(full).not());
    select.from(TableRef::ValuesList(values, NEW.into_iden()));
    let mut insert = Query::insert();
    insert.into_table(grab::Entity).columns(columns);
    insert.select_from(select).map_err(|_| Error::Inconsistent("as many values as columns"))?;
    let inserted = db.execute(&insert).await?.rows_affected();
    if usize::try_from(inserted) == Ok(rows.len()) {
        return Ok(HashSet::new());
    }
    let mut ids = HashSet::with_capacity(rows.len());
    for row in rows {
        ids.insert(row.id().ok_or(Error::Inconsistent("a row without an id"))?);
    }
    let found: Vec<Uuid> = grab::Entity::find()
        .select_only()
        .column(grab::Column::Id)
        .filter(grab::Column::Id.is_in(ids.iter().copied()))
        .into_tuple()
        .all(db)
        .await?;
    for id in found {
        ids.remove(&id);
    }
    Ok(ids)
}
