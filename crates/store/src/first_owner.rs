//! The account of a team: its first owner, or the team itself if nobody owns it. All teams with the same first owner are one
//! account.

use grabd_domain::accounts::Role;
use sea_orm::ColumnTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Order, Query, SelectStatement};

use crate::codes;
use crate::entities::member;

/// The first owner of a team, as a part of another statement.
pub(crate) fn first_owner(team: Expr) -> SelectStatement {
    let column = |column| (member::Entity, column);
    Query::select()
        .column(column(member::Column::UserId))
        .from(member::Entity)
        .and_where(Expr::col(column(member::Column::TeamId)).eq(team))
        .and_where(member::Column::Role.eq(codes::role(Role::Owner)))
        .order_by_columns([
            (column(member::Column::CreatedAt), Order::Asc),
            (column(member::Column::UserId), Order::Asc),
        ])
        .limit(1)
        .take()
}
