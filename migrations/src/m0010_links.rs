//! Earlier images as answers, and signed links: fingerprints of what grabs show, idempotency keys that were answered
//! with an earlier grab, and the secrets of links.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SHA-256 of the options that determine the image. NULL: written by an earlier version, or with secret options.
        let fingerprint = ColumnDef::new("fingerprint").var_binary(32).take();
        // Whether the key's request was answered with a grab that existed before.
        let cached = boolean("cached").default(false).take();
        // Encrypted. NULL: nobody asked for it yet.
        let secret = ColumnDef::new("link_secret").blob().take();
        for (table, column) in [("grab", fingerprint), ("idem", cached), ("api_key", secret)] {
            manager.alter_table(Table::alter().table(table).add_column(column).take()).await?;
        }
        let latest = Index::create()
            .name("grab_fingerprint")
            .table("grab")
            .col("team_id")
            .col("env")
            .col("fingerprint")
            .col("finished_at")
            .and_where(Expr::cust("fingerprint IS NOT NULL"))
            .and_where(Expr::cust("image_key IS NOT NULL"))
            .take();
        manager.create_index(latest).await?;
        // A grab may answer requests with several keys.
        manager.drop_index(Index::drop().name("idem_grab").table("idem").to_owned()).await?;
        manager.create_index(Index::create().name("idem_grab").table("idem").col("grab_id").take()).await
    }
}
