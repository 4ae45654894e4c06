//! Credit lots with their remaining and held credits.

use grabd_domain::credits::Lot;
use grabd_domain::ids::LotId;
use sea_orm::entity::prelude::*;

use crate::codes::{read_count, read_lot_kind, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "credit_lot")]
pub(crate) struct Model {
    #[sea_orm(primary_key)]
    pub(crate) id: i64,
    pub(crate) team_id: Uuid,
    pub(crate) kind: i16,
    pub(crate) granted: i32,
    pub(crate) remaining: i32,
    pub(crate) held: i32,
    pub(crate) expires_at: Option<i64>,
    pub(crate) source_ref: String,
    pub(crate) cancelled: bool,
    pub(crate) created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Lot {
    type Error = Error;

    fn try_from(lot: Model) -> Result<Self> {
        let Model { id, kind, granted, remaining, held, expires_at, cancelled, .. } = lot;
        Ok(Self {
            id: LotId(id),
            kind: read_lot_kind(kind)?,
            granted: read_count(granted)?,
            remaining: read_count(remaining)?,
            held: read_count(held)?,
            expires_at: read_time(expires_at),
            cancelled,
        })
    }
}
