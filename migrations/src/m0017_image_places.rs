//! The places where images are, and the images that are being moved from one to another.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{boolean, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let places = Table::create()
            .table("image_place")
            .col(text("url").primary_key())
            .col(boolean("is_first")) // new images are stored there
            .take();
        manager.create_table(places).await?;
        // An image that was deleted while it was copied may be in this table only.
        let moves = Table::create().table("image_move").col(text("key").primary_key()).take();
        manager.create_table(moves).await
    }
}
