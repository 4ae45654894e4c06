//! `grabd admin identity …`.

use anyhow::{bail, ensure};
use clap::Subcommand;
use grabd_domain::Timestamp;
use grabd_engine::clock::Clock;
use grabd_engine::identity;
use grabd_store::Store;
use grabd_store::identity::{RotateIdentityOutcome, StoredIdentityKey};
use serde_json::{Value, json};

use super::output::CommandOutput;
use crate::config::Config;
use crate::wiring;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the keys with which requests to sites are signed.
    Keys,
    /// Replace the key. The new one is published first and used after two hours, and the former one is published for another
    /// day, so that no site refuses a request.
    Rotate {
        /// Use the new key at once and stop publishing all others, because the former one is known to others. Sites may not
        /// recognize the service until they read the keys again.
        #[arg(long)]
        at_once: bool,
    },
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        matches!(self, Self::Keys)
    }
}

pub(super) async fn run(config: &Config, store: &Store, command: &Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Keys => keys(store, Clock::system().now()).await,
        Command::Rotate { at_once } => rotate(config, store, *at_once).await,
    }
}

async fn keys(store: &Store, now: Timestamp) -> anyhow::Result<CommandOutput> {
    let keys = store.identity().list_keys().await?;
    let keys: Vec<&StoredIdentityKey> = keys.iter().filter(|key| is_published(key, now)).collect();
    let used = keys.iter().rfind(|key| key.used_from <= now).map(|key| key.number);
    let state = |key: &StoredIdentityKey| match used {
        Some(used) if used == key.number => "used",
        Some(used) if used > key.number => "former",
        Some(_) | None => "next",
    };
    let end = |key: &StoredIdentityKey| key.removed_at.map(|at| at.to_string());
    let line = |key: &&StoredIdentityKey| {
        let until = end(key).map(|until| format!(", published until {until}")).unwrap_or_default();
        format!("{}  {:<6}  used from {}{until}", key.key_id, state(key), key.used_from)
    };
    let row = |key: &&StoredIdentityKey| -> Value {
        json!({
            "key_id": key.key_id, "state": state(key), "created_at": key.created_at.to_string(),
            "used_from": key.used_from.to_string(), "published_until": end(key),
        })
    };
    let lines: Vec<String> = keys.iter().map(line).collect();
    let rows: Vec<Value> = keys.iter().map(row).collect();
    let text = match lines.is_empty() {
        true => "There is no key. The first start with browser.identity = \"signed\" makes one.".to_owned(),
        false => lines.join("\n"),
    };
    Ok(CommandOutput::ok(text, json!({ "data": rows })))
}

fn is_published(key: &StoredIdentityKey, now: Timestamp) -> bool {
    key.removed_at.is_none_or(|at| now < at)
}

async fn rotate(config: &Config, store: &Store, at_once: bool) -> anyhow::Result<CommandOutput> {
    // Opening would make another one, with which the service cannot decrypt the keys.
    let key_file = wiring::key_file(config);
    ensure!(key_file.exists(), "{} does not exist: it is made by the first start of the service", key_file.display());
    let vault = wiring::open_vault(config)?;
    match identity::rotate(store, &vault, Clock::system().now(), at_once).await? {
        RotateIdentityOutcome::Rotated { used_from } => {
            let text = match config.agent() {
                Some(_) => format!("The new key is published from now on, and used from {used_from}."),
                None => format!(
                    "The new key is stored. Requests are not signed, and no key is published, because browser.identity is \
                     \"none\". With \"signed\", the new key is used from {used_from}."
                ),
            };
            Ok(CommandOutput::ok(text, json!({ "used_from": used_from.to_string() })))
        }
        RotateIdentityOutcome::UnderWay { until } => {
            bail!(
                "the former key is published until {until}; wait, or use --at-once if the current one is known to others"
            )
        }
        RotateIdentityOutcome::Raced => bail!("another process has replaced the key at the same time"),
    }
}
