//! `grabd admin evidence …`.

use anyhow::{bail, ensure};
use clap::Subcommand;
use grabd_engine::clock::Clock;
use grabd_engine::evidence::keys::{self, RotatedKey};
use grabd_store::Store;
use grabd_store::evidence::{EvidenceKey, MAX_EVIDENCE_KEYS};
use serde_json::{Value, json};

use super::output::CommandOutput;
use crate::config::Config;
use crate::wiring;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the keys that sign evidence, newest first. All of them are published at /.well-known/grabd-evidence-keys.
    Keys,
    /// Put a new key in the place of the one that signs evidence, whose private key is deleted. Evidence that it signed stays
    /// valid. The service may run meanwhile.
    Rotate,
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        matches!(self, Self::Keys)
    }
}

pub(super) async fn run(config: &Config, store: &Store, command: &Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Keys => list(store).await,
        Command::Rotate => rotate(config, store).await,
    }
}

async fn list(store: &Store) -> anyhow::Result<CommandOutput> {
    let keys = store.evidence().list_keys().await?;
    let mut lines = vec![format!("{:43}  {:24}  {}", "ID", "CREATED", "RETIRED")];
    lines.extend(keys.iter().map(|key| {
        let EvidenceKey { id, created_at, retired_at, .. } = key;
        let retired_at = retired_at.map_or_else(|| "in use".to_owned(), |at| at.to_string());
        format!("{id:43}  {:24}  {retired_at}", created_at.to_string())
    }));
    if keys.is_empty() {
        lines = vec!["There is no key yet: it is made with the first evidence.".to_owned()];
    }
    let rows: Vec<Value> = keys.iter().map(row).collect();
    Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
}

fn row(key: &EvidenceKey) -> Value {
    let EvidenceKey { id, created_at, retired_at, .. } = key;
    json!({
        "id": id, "created_at": created_at.to_string(), "retired_at": retired_at.map(|at| at.to_string()),
    })
}

async fn rotate(config: &Config, store: &Store) -> anyhow::Result<CommandOutput> {
    // Opening would make another one, with which the service cannot decrypt the key.
    let key_file = wiring::key_file(config);
    ensure!(key_file.exists(), "{} does not exist: it is made by the first start of the service", key_file.display());
    let vault = wiring::open_vault(config)?;
    let Some(RotatedKey { new, former }) = keys::rotate(store, &vault, Clock::system().now()).await? else {
        bail!("the service has had {MAX_EVIDENCE_KEYS} keys, as many as it may have");
    };
    let text = match &former {
        Some(former) => {
            format!("Evidence is signed by the key {new} from now on. The private key of {former} is deleted.")
        }
        None => format!("Evidence is signed by the key {new}, the first one."),
    };
    Ok(CommandOutput::ok(text, json!({ "id": new, "former": former })))
}
