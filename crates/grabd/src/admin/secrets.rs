//! `grabd admin secrets …`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Subcommand;
use grabd_engine::rotation::{Resealed, reseal};
use grabd_engine::vault::{self, Vault};
use grabd_store::Store;
use serde_json::json;

use super::output::CommandOutput;
use crate::config::Config;
use crate::{data_dir_lock, wiring};

/// For how long a running service may still store what it encrypted with the former key: the time of the slowest create
/// and of the slowest write, and more.
const IN_FLIGHT: Duration = Duration::from_secs(60);
/// Maximum number of passes. Each finds only what was stored since the one before.
const MAX_PASSES: u32 = 10;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Replace the key of `secrets.key_file`, and encrypt all stored secrets again with the new one. The service may run
    /// meanwhile. If the command is interrupted, run it again: it continues.
    Rotate,
}

pub(super) async fn run(config: &Config, store: &Store, command: &Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Rotate => rotate(config, store, &wiring::key_file(config)).await,
    }
}

async fn rotate(config: &Config, store: &Store, key_file: &Path) -> anyhow::Result<CommandOutput> {
    ensure!(key_file.exists(), "{} does not exist, so nothing is encrypted yet", key_file.display());
    // Held until the end, so that no service starts meanwhile; a service that runs reads the new file.
    let lock = data_dir_lock::lock(&config.data_dir);
    let is_new = vault::begin_rotation(key_file).context("the key was not replaced")?;
    let vault = Vault::open(key_file).context("secrets.key_file cannot be used")?;
    let Resealed { mut changed, .. } = reseal(store, &vault).await.context(AGAIN)?;
    if lock.is_err() {
        eprintln!("A service is running: waiting {} s for what it is storing.", IN_FLIGHT.as_secs());
        tokio::time::sleep(IN_FLIGHT).await;
    }
    let mut passes = 0;
    let unreadable = loop {
        let pass = reseal(store, &vault).await.context(AGAIN)?;
        changed = changed.saturating_add(pass.changed);
        if pass.changed == 0 {
            break pass.unreadable;
        }
        passes += 1;
        ensure!(passes < MAX_PASSES, "secrets are still stored with the former key; {AGAIN}");
    };
    vault::end_rotation(key_file).context("the former key was not removed; run the command again")?;
    store.audit().record_rotation().await?;
    let how = if is_new { "The key is replaced" } else { "The interrupted replacement of the key is complete" };
    let lost = match unreadable {
        0 => String::new(),
        count => format!(" {count} secrets could not be decrypted with either key, and were left as they are."),
    };
    Ok(CommandOutput::ok(
        format!("{how}; secrets encrypted again: {changed}.{lost} Back up {}.", key_file.display()),
        json!({ "resealed": changed, "unreadable": unreadable, "resumed": !is_new }),
    ))
}

const AGAIN: &str = "the former key was kept in the file, so nothing is lost; run the command again";
