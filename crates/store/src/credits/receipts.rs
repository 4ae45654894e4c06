//! The receipts of payments: pages of the payment provider.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::Result;
use crate::areas::Credits;
use crate::database::{Transaction, Tx};
use crate::entities::{lot, payment_receipt, team};
use crate::padded::padded;

/// The receipt of a payment.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Reference of the payment, as that of its lot.
    pub source_ref: String,
    /// The page with the receipt.
    pub url: String,
    /// Current time.
    pub now: Timestamp,
}

impl Credits<'_> {
    /// Stores the receipt of a payment, in place of an earlier one. The payment need not have granted credits yet.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn store_receipt(self, receipt: Receipt) -> Result<()> {
        self.store.database.write(receipt).await
    }

    /// The pages with the receipts of these payments. Payments without a receipt are left out.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn receipts(self, source_refs: &[String]) -> Result<HashMap<String, String>> {
        if source_refs.is_empty() {
            return Ok(HashMap::new());
        }
        let source_refs = padded(source_refs.iter().map(String::as_str));
        let rows: Vec<(String, String)> = payment_receipt::Entity::find()
            .select_only()
            .columns([payment_receipt::Column::SourceRef, payment_receipt::Column::Url])
            .filter(payment_receipt::Column::SourceRef.is_in(source_refs))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().collect())
    }

    /// Deletes up to `limit` receipts that were reported before a time and have no lot of an existing team, such as those
    /// of sales by other services. Returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_receipts(self, before: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeReceipts { before, limit: limit.into() }).await
    }
}

impl Transaction for Receipt {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let Self { source_ref, url, now } = self;
        let row = payment_receipt::ActiveModel {
            source_ref: Set(source_ref.clone()),
            url: Set(url.clone()),
            created_at: Set(now.as_ms()),
        };
        let on_conflict = OnConflict::column(payment_receipt::Column::SourceRef)
            .update_column(payment_receipt::Column::Url)
            .to_owned();
        payment_receipt::Entity::insert(row).on_conflict(on_conflict).exec_without_returning(tx).await?;
        Ok(())
    }
}

struct PurgeReceipts {
    before: Timestamp,
    limit: u64,
}

impl Transaction for PurgeReceipts {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        // By the index of lots by their payment, whatever the number of lots.
        let lots = Query::select()
            .expr(Expr::val(1))
            .from(lot::Entity)
            .inner_join(
                team::Entity,
                Expr::col((team::Entity, team::Column::Id)).equals((lot::Entity, lot::Column::TeamId)),
            )
            .and_where(
                Expr::col((lot::Entity, lot::Column::SourceRef))
                    .equals((payment_receipt::Entity, payment_receipt::Column::SourceRef)),
            )
            .and_where(Expr::col((team::Entity, team::Column::DeletedAt)).is_null())
            .take();
        let old: Vec<String> = payment_receipt::Entity::find()
            .select_only()
            .column(payment_receipt::Column::SourceRef)
            .filter(payment_receipt::Column::CreatedAt.lt(self.before.as_ms()))
            .filter(Expr::exists(lots).not())
            .limit(self.limit)
            .into_tuple()
            .all(tx)
            .await?;
        if old.is_empty() {
            return Ok(0);
        }
        let deleted = payment_receipt::Entity::delete_many()
            .filter(payment_receipt::Column::SourceRef.is_in(padded(old.iter().map(String::as_str))))
            .exec(tx)
            .await?;
        Ok(deleted.rows_affected)
    }
}
