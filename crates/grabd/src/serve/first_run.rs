//! The first start of an embedded service makes a team, so that a newcomer can call at once.

use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::Context;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::Store;
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// Credits of the first team.
const CREDITS: u32 = 1_000;

/// The first team's keys, kept beside the database for its operator's eyes.
#[derive(Debug, Deserialize, Serialize)]
pub struct Keys {
    /// The first team's id.
    pub team_id: String,
    /// Its live key.
    pub live_key: String,
    /// Its test key.
    pub test_key: String,
}

/// The keys to show: made at the first start, found again later. `None` where an operator made the teams.
pub(super) async fn keys(config: &Config, store: &Store) -> anyhow::Result<Option<Keys>> {
    let path = path(config);
    let is_empty = store.list_teams().await.context("the teams cannot be read")?.is_empty();
    match std::fs::read_to_string(&path) {
        Ok(text) if !is_empty => {
            let keys =
                serde_json::from_str(&text).with_context(|| format!("{} is damaged; remove it", path.display()))?;
            Ok(Some(keys))
        }
        // A kept file without a team belongs to a database that is gone.
        Ok(_) | Err(_) if is_empty => make(store, &path).await.map(Some),
        Ok(_) | Err(_) => Ok(None),
    }
}

async fn make(store: &Store, path: &std::path::Path) -> anyhow::Result<Keys> {
    let made = accounts::create_team(store, "default", CREDITS, Clock::system().now())
        .await
        .context("the first team cannot be made")?;
    let keys = Keys {
        team_id: made.team.to_string(),
        live_key: made.live.expose().to_owned(),
        test_key: made.test.expose().to_owned(),
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(path).with_context(|| format!("{} cannot be written", path.display()))?;
    serde_json::to_writer_pretty(file, &keys)?;
    Ok(keys)
}

/// Where the keys are kept.
pub(super) fn path(config: &Config) -> PathBuf {
    config.data_dir.join("keys.json")
}
