//! The first start creates a team, so that the service can be used immediately. Its keys are written only then, and
//! printed only if the output is not a journal.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::Store;
use grabd_store::accounts::Key;
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// Credits of the first team.
const CREDITS: u32 = 1_000;
/// Name of the first team.
pub(super) const NAME: &str = "default";

/// The first team's keys, stored in the data directory for the operator.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Keys {
    /// The first team's id.
    team_id: String,
    /// Its live key.
    pub(super) live_key: String,
    /// Its test key.
    pub(super) test_key: String,
}

/// What is known about the first team at a start.
#[derive(Debug)]
pub(super) enum FirstTeam {
    /// It was made at this start.
    Made(Keys),
    /// It was made at an earlier start.
    Earlier {
        /// Its name, or its id if the name is not unique or not fit for a command line.
        team: String,
        /// Its active keys, without their secrets.
        keys: Vec<Key>,
        /// Its live key, for a capture at start. It is not printed.
        live_key: String,
    },
    /// The teams were created by an operator.
    None,
}

/// Creates the first team if there is no team, or else finds the one of an earlier start.
pub(super) async fn first_team(config: &Config, store: &Store) -> anyhow::Result<FirstTeam> {
    if config.cluster.enabled {
        // Several processes would each create one.
        return Ok(FirstTeam::None);
    }
    let path = path(config);
    let teams = store.accounts().list_teams().await.context("the teams cannot be read")?;
    if teams.is_empty() {
        // The file may exist if the database was deleted.
        return create(store, &path).await.map(FirstTeam::Made);
    }
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(FirstTeam::None) };
    let file: Keys =
        serde_json::from_str(&text).with_context(|| format!("{} is damaged; remove it", path.display()))?;
    let Some(team) = teams.iter().find(|team| team.id.to_string() == file.team_id) else { return Ok(FirstTeam::None) };
    let is_unique = teams.iter().filter(|other| other.name == team.name).count() == 1;
    // Owners choose the name, and operators copy the command.
    let is_plain = team.name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let keys = active_keys(store, team.id).await?;
    let team = if is_unique && is_plain { team.name.clone() } else { file.team_id };
    Ok(FirstTeam::Earlier { team, keys, live_key: file.live_key })
}

async fn active_keys(store: &Store, team: TeamId) -> anyhow::Result<Vec<Key>> {
    let mut keys = store.accounts().list_keys(team).await.context("the keys cannot be read")?;
    keys.retain(|key| key.revoked_at.is_none());
    Ok(keys)
}

impl FirstTeam {
    /// A live key of the team.
    pub(super) fn live_key(&self) -> Option<&str> {
        match self {
            Self::Made(keys) => Some(&keys.live_key),
            Self::Earlier { live_key, .. } => Some(live_key),
            Self::None => None,
        }
    }
}

/// The oldest key of an environment, as text without its secret.
pub(super) fn describe(keys: &[Key], environment: Environment) -> String {
    match keys.iter().find(|key| key.environment == environment) {
        Some(key) => format!("“{}” ({}…{})", key.name, environment.key_prefix(), key.last4),
        None => "none".to_owned(),
    }
}

async fn create(store: &Store, path: &Path) -> anyhow::Result<Keys> {
    let created = accounts::create_team(store, NAME, CREDITS, Clock::system().now())
        .await
        .context("the first team cannot be created")?;
    let keys = Keys {
        team_id: created.team.to_string(),
        live_key: created.live.expose().to_owned(),
        test_key: created.test.expose().to_owned(),
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(path).with_context(|| format!("{} cannot be written", path.display()))?;
    serde_json::to_writer_pretty(file, &keys)?;
    Ok(keys)
}

/// The file with the keys.
pub(super) fn path(config: &Config) -> PathBuf {
    config.data_dir.join("keys.json")
}
