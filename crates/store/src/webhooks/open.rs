//! The limit of open deliveries: those that wait for an attempt, and those in progress.
//!
//! An account has a share of them for each of its endpoints, so that one that does not respond leaves room for the others. A
//! message beyond it is stored as exhausted, with the reason, and can be sent again on request.

use std::collections::BTreeSet;

use grabd_domain::accounts::Role;
use grabd_domain::ids::EndpointId;
use grabd_domain::webhooks::{MAX_OPEN, MIN_OPEN};
use sea_orm::sea_query::{Alias, Expr, ExprTrait, Func, Query, SelectStatement};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::database::Tx;
use crate::entities::{delivery, member, webhook_endpoint};
use crate::first_owner::first_owner;
use crate::padded::padded;
use crate::{Result, codes};

/// Whether an endpoint of an outer statement may have used up its share. Usually one short index lookup.
pub(super) fn may_be_full() -> Expr {
    Expr::exists(open().limit(1).offset(u64::from(MIN_OPEN - 1)).take())
}

/// The open deliveries to an endpoint of an outer statement.
fn open() -> SelectStatement {
    Query::select()
        .expr(Expr::value(1))
        .from(delivery::Entity)
        .and_where(
            Expr::col((delivery::Entity, delivery::Column::EndpointId))
                .equals((webhook_endpoint::Entity, webhook_endpoint::Column::Id)),
        )
        .and_where(delivery::Column::NextAt.is_not_null())
        .take()
}

/// Those of the endpoints that have used up their share.
pub(super) async fn full(tx: &Tx, endpoints: impl IntoIterator<Item = Uuid>) -> Result<BTreeSet<EndpointId>> {
    let endpoints = padded(endpoints);
    if endpoints.is_empty() {
        return Ok(BTreeSet::new());
    }
    let counted = Query::select()
        .expr(Func::count(Expr::val(1)))
        .from_subquery(open().limit(u64::from(MAX_OPEN)).take(), "open")
        .take();
    let other = Alias::new("other");
    let team = || Expr::col((webhook_endpoint::Entity, webhook_endpoint::Column::TeamId));
    let owned = Query::select()
        .column((member::Entity, member::Column::TeamId))
        .from(member::Entity)
        .and_where(Expr::col((member::Entity, member::Column::UserId)).eq(Expr::from(first_owner(team()))))
        .and_where(member::Column::Role.eq(codes::role(Role::Owner)))
        .take();
    let of_other = Expr::col((other.clone(), webhook_endpoint::Column::TeamId));
    let siblings = Query::select()
        .expr(Func::count(Expr::val(1)))
        .from_as(webhook_endpoint::Entity, other.clone())
        .and_where(Expr::col((other, webhook_endpoint::Column::Disabled)).is_null())
        .and_where(of_other.clone().eq(team()).or(of_other.in_subquery(owned)))
        .take();
    let rows: Vec<(Uuid, i64, i64)> = webhook_endpoint::Entity::find()
        .select_only()
        .column(webhook_endpoint::Column::Id)
        .expr_as(Expr::from(counted), "open")
        .expr_as(Expr::from(siblings), "siblings")
        .filter(webhook_endpoint::Column::Id.is_in(endpoints))
        .into_tuple()
        .all(tx)
        .await?;
    let is_full = |(_, open, siblings): &(Uuid, i64, i64)| *open >= share(*siblings);
    Ok(rows.into_iter().filter(is_full).map(|(id, ..)| EndpointId(id)).collect())
}

/// The open deliveries that an endpoint may have, if its account has this many.
fn share(endpoints: i64) -> i64 {
    let (all, least) = (i64::from(MAX_OPEN), i64::from(MIN_OPEN));
    Ord::max(all / Ord::max(endpoints, 1), least)
}

/// The values of `not_sent`.
pub(super) const TOO_MANY_OPEN: i16 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_an_account_share_its_open_deliveries() {
        for (endpoints, expected) in [(0, 10_000), (1, 10_000), (2, 5000), (30, 333), (400, 25), (1000, 25)] {
            assert_eq!(share(endpoints), expected);
        }
    }
}
