//! The database for commands. Commands that only read create nothing, and no command makes files that the service could
//! not use because they belong to another user.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use grabd_store::{MigrationPlan, Store};

use crate::config::Config;
use crate::wiring;

/// The file of an SQLite database that does not exist.
///
/// # Errors
/// When the URL of the database is invalid.
pub(crate) fn missing_file(config: &Config) -> anyhow::Result<Option<PathBuf>> {
    let file = Store::file(&config.database_url()).context("database.url")?;
    Ok(file.filter(|file| !file.exists()))
}

/// Opens the database for a command that only reads.
///
/// # Errors
/// When there is none, or when its schema is not that of this program. The text says what to do.
pub(crate) async fn open_to_read(config: &Config) -> anyhow::Result<Store> {
    if let Some(file) = missing_file(config)? {
        bail!(
            "there is no database {}; set GRABD_DATA_DIR or GRABD_DATABASE__URL, or --config, as the service has it. \
             `grabd serve` creates a new one",
            file.display()
        );
    }
    let store = wiring::open_store(config).await?;
    match check_schema(config, &store).await {
        Ok(()) => Ok(store),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
}

async fn check_schema(config: &Config, store: &Store) -> anyhow::Result<()> {
    let MigrationPlan { applied, pending } = store.plan_migration().await?;
    let database = wiring::describe_database(config);
    match (applied, pending.len()) {
        (_, 0) => Ok(()),
        (0, _) => bail!("{database} is empty: `grabd serve` or `grabd migrate` creates its tables"),
        (_, missing) => {
            bail!("{database} lacks {missing} steps of the schema; `grabd serve` or `grabd migrate` applies them")
        }
    }
}

/// Opens the database for a command that changes something, and brings its schema up to date.
///
/// # Errors
/// When that fails, or when new files would belong to root although the service runs as another user.
pub(crate) async fn open_to_change(config: &Config) -> anyhow::Result<Store> {
    check_owner(config)?;
    let store = wiring::open_store(config).await?;
    match store.migrate().await.context("the database schema cannot be brought up to date") {
        Ok(()) => Ok(store),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
}

/// Refuses to make files as root in a data directory of another user, who could not open them.
///
/// # Errors
/// With the command to use instead.
pub(crate) fn check_owner(config: &Config) -> anyhow::Result<()> {
    let Ok(data_dir) = std::fs::metadata(&config.data_dir) else { return Ok(()) };
    let is_incomplete = missing_file(config)?.is_some() || !wiring::key_file(config).exists();
    if is_incomplete && rustix::process::geteuid().is_root() && data_dir.uid() != 0 {
        bail!(
            "the data directory {} belongs to user {uid}, who could not use what root creates in it; run this command \
             as that user: setpriv --reuid {uid} --regid {gid} --clear-groups grabd …",
            config.data_dir.display(),
            uid = data_dir.uid(),
            gid = data_dir.gid()
        );
    }
    Ok(())
}
