//! Indexes for the lists of operators: the audit trail by team, person and action, and users. Each list is read in its order, from
//! a position on, whatever the number of rows.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut of_team = index("audit_team", "audit", &["team_id", "id"]);
        of_team.and_where(Expr::cust("team_id IS NOT NULL"));
        for index in [
            of_team,
            index("audit_actor", "audit", &["actor", "id"]),
            index("audit_action", "audit", &["action", "id"]),
            index("user_list", "user", &["created_at", "id"]),
        ] {
            manager.create_index(index).await?;
        }
        Ok(())
    }
}

fn index(name: &'static str, table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().name(name).table(table).take();
    for column in columns {
        index.col(*column);
    }
    index
}
