//! `grabd admin move`: moves from SQLite to PostgreSQL.

use std::time::Duration;

use anyhow::{Context, bail};
use grabd_store::{CopiedTable, Kind, Store};
use serde_json::{Value, json};

use super::output::CommandOutput;
use crate::config::Config;
use crate::data_dir_lock;
use crate::database_url::WithoutPassword;

/// Maximum wait for a service on the target to exit.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Copies the configured SQLite database to an empty PostgreSQL database, and checks the ledger of both.
///
/// # Errors
/// When a service uses one of them, when the target is not empty, and when the ledger of the copy is not right. The source is
/// never changed, and the target only if everything was copied.
pub(super) async fn run(config: &Config, store: &Store, to: &str) -> anyhow::Result<CommandOutput> {
    if store.kind() != Kind::Sqlite {
        bail!("the configured database is not SQLite: only SQLite databases are moved");
    }
    let locked = data_dir_lock::lock(&config.data_dir).context("stop the service before its database is moved")?;
    let described = WithoutPassword::of(to).described();
    let target = Store::open(to).await.with_context(|| format!("{described} cannot be opened"))?;
    let moved = copy(store, &target, &described).await;
    target.close().await;
    drop(locked);
    let tables = moved?;
    let rows: u64 = tables.iter().map(|table| table.rows).sum();
    let places =
        format!("{} rows of {} tables were copied to {described}, and its ledger is right.", rows, tables.len());
    let next = "Now set GRABD_DATABASE__URL to that database, keep everything else as it is, and start the service. The images, \
                `secrets.key` and the SQLite file stay where they are; the file is not used any more.";
    let copied: Vec<Value> =
        tables.iter().map(|CopiedTable { name, rows }| json!({ "table": name, "rows": rows })).collect();
    Ok(CommandOutput::ok(format!("{places}\n{next}"), json!({ "rows": rows, "tables": copied })))
}

async fn copy(store: &Store, target: &Store, described: &str) -> anyhow::Result<Vec<CopiedTable>> {
    let drift = store.credits().verify_ledger().await?;
    if !drift.is_empty() {
        bail!("the ledger of the SQLite database is not right; `grabd admin ledger verify` says what is wrong");
    }
    target.migrate().await.with_context(|| format!("the tables of {described} cannot be created"))?;
    let locked = target.lock_service(LOCK_WAIT).await.with_context(|| format!("{described} cannot be locked"))?;
    let Ok(locked) = locked else { bail!("a service uses {described}; stop it first") };
    let tables = store.copy_rows_to(target).await.with_context(|| format!("nothing was copied to {described}"))?;
    let drift = target.credits().verify_ledger().await?;
    drop(locked);
    if !drift.is_empty() {
        bail!("the ledger of {described} is not right after the copy: do not use it. The SQLite database is unchanged");
    }
    Ok(tables)
}
