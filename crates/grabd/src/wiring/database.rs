//! Opens the database, and locks it for the service.

use std::time::Duration;

use anyhow::Context;
use grabd_store::{OtherService, ServiceLock, Store};

use crate::config::Config;
use crate::database_url::WithoutPassword;

/// Maximum wait at start for the former service on the same database to exit.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the database.
///
/// # Errors
/// When it cannot be opened. The text tells the operator what to check.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let url = config.database_url();
    if url.starts_with("sqlite:") {
        std::fs::create_dir_all(&config.data_dir).with_context(|| {
            format!("the data directory {} cannot be created; set GRABD_DATA_DIR", config.data_dir.display())
        })?;
    }
    Store::open(&url).await.with_context(|| format!("{} cannot be opened", describe_database(config)))
}

/// Makes this process the only service on its database.
///
/// # Errors
/// When another service uses it, with what to do.
pub async fn lock_service(config: &Config, store: &Store) -> anyhow::Result<ServiceLock> {
    let database = describe_database(config);
    let locked = match config.cluster.enabled {
        true => store.lock_cluster(LOCK_PATIENCE).await,
        false => store.lock_service(LOCK_PATIENCE).await,
    };
    let locked = locked.with_context(|| format!("{database} cannot be locked"))?;
    let without = if config.cluster.enabled { " without GRABD_CLUSTER__ENABLED" } else { "" };
    locked.map_err(|OtherService { address, since }| {
        anyhow::anyhow!(
            "another grabd serves {database} already{without}, from {address}, connected since {since}; stop it, or set \
             GRABD_DATABASE__URL to another database. Several can serve one PostgreSQL database if all of them have \
             GRABD_CLUSTER__ENABLED=true: see docs/FLEET.md"
        )
    })
}

/// The database URL without its password.
pub fn describe_database(config: &Config) -> String {
    WithoutPassword::of(&config.database_url()).described()
}
