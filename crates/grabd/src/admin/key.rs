//! `grabd admin key …`.

use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use grabd_domain::credentials::Environment;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::{Key, Store};
use serde_json::json;

use super::{Answer, find_team};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a key. It is shown this once.
    Create {
        /// The team's id or name.
        team: String,
        /// Which environment it opens.
        #[arg(long, value_enum, default_value = "live")]
        environment: World,
        /// What to call it.
        #[arg(long, default_value = "made by an operator")]
        name: String,
    },
    /// Show a team's keys, without their secrets.
    List {
        /// The team's id or name.
        team: String,
    },
    /// End a key at once.
    Revoke {
        /// The key's id.
        key: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum World {
    Live,
    Test,
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<Answer> {
    let now = Clock::system().now();
    match command {
        Command::Create { team, environment, name } => {
            let team = find_team(store, &team).await?;
            let environment = match environment {
                World::Live => Environment::Live,
                World::Test => Environment::Test,
            };
            let (id, key) = accounts::issue_key(store, team, environment, &name, now).await?;
            let key = key.expose();
            Ok(Answer::good(
                format!("key id  {id}\nkey     {key}\nThe key is not shown again."),
                json!({
                    "key_id": id.to_string(), "key": key, "team_id": team.to_string(), "environment": environment.as_str(),
                }),
            ))
        }
        Command::List { team } => {
            let team = find_team(store, &team).await?;
            let keys = store.list_keys(team).await?;
            let lines: Vec<String> = keys.iter().map(line).collect();
            let rows: Vec<_> = keys
                .iter()
                .map(|key| {
                    json!({
                        "key_id": key.id.to_string(),
                        "environment": key.environment.as_str(),
                        "name": key.name,
                        "last4": key.last4,
                        "created_at": key.created_at.to_string(),
                        "last_used_at": key.last_used_at.map(|at| at.to_string()),
                        "revoked_at": key.revoked_at.map(|at| at.to_string()),
                    })
                })
                .collect();
            Ok(Answer::good(lines.join("\n"), json!({ "data": rows })))
        }
        Command::Revoke { key } => {
            let Ok(id) = key.parse() else { bail!("`{key}` is no key id; `grabd admin key list TEAM` shows them") };
            if !store.revoke_key(id, now).await? {
                bail!("there is no key {id}; `grabd admin key list TEAM` shows them");
            }
            Ok(Answer::good(
                format!("Key {id} opens nothing any more."),
                json!({ "key_id": id.to_string(), "revoked": true }),
            ))
        }
    }
}

fn line(key: &Key) -> String {
    let prefix = key.environment.key_prefix();
    let used = key.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
    let revoked = key.revoked_at.map_or_else(String::new, |at| format!("  REVOKED {at}"));
    format!("{}  {prefix}…{}  {used}  {}{revoked}", key.id, key.last4, key.name)
}
