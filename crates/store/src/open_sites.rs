//! Cancels the open site jobs of teams that lose their access.

use grabd_domain::Timestamp;
use grabd_domain::site::{PageState, SiteState, SkipReason};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::database::Tx;
use crate::entities::{site, site_page};
use crate::padded::padded;

/// Cancels the open jobs of teams. They are due, so that they end after the last of their captures.
pub(crate) async fn cancel_sites(tx: &Tx, teams: &[Uuid], now: Timestamp) -> Result<()> {
    if teams.is_empty() {
        return Ok(());
    }
    let states = [SiteState::Discovering, SiteState::Capturing].map(site::state);
    let open: Vec<Uuid> = site::Entity::find()
        .select_only()
        .column(site::Column::Id)
        .filter(site::Column::TeamId.is_in(teams.iter().copied()))
        .filter(site::Column::State.is_in(states))
        .order_by_asc(site::Column::Id)
        .lock(LockType::Update)
        .into_tuple()
        .all(tx)
        .await?;
    if open.is_empty() {
        return Ok(());
    }
    site_page::Entity::update_many()
        .col_expr(site_page::Column::State, Expr::value(site_page::state(PageState::Skipped)))
        .col_expr(site_page::Column::Skipped, Expr::value(site_page::skipped(SkipReason::Canceled)))
        .filter(site_page::Column::State.eq(site_page::state(PageState::Waiting)))
        .filter(site_page::Column::SiteId.is_in(padded(open.iter().copied())))
        .exec(tx)
        .await?;
    site::Entity::update_many()
        .col_expr(site::Column::State, Expr::value(site::state(SiteState::Canceled)))
        .col_expr(site::Column::ErrorCode, Expr::value(Option::<String>::None))
        .col_expr(site::Column::ErrorMessage, Expr::value(Option::<String>::None))
        .col_expr(site::Column::UpdatedAt, Expr::value(now.as_ms()))
        .col_expr(site::Column::NextAt, Expr::value(now.as_ms()))
        .filter(site::Column::Id.is_in(padded(open)))
        .exec(tx)
        .await?;
    Ok(())
}
