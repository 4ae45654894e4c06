//! The operator's commands. They may be used while the service runs.

mod audit;
mod backup;
mod credits;
mod domain;
mod key;
mod ledger;
mod secrets;
mod subscription;
mod team;
mod user;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args as ClapArgs, Subcommand};
use grabd_domain::ids::TeamId;
use grabd_engine::clock::Clock;
use grabd_store::{Actor, Store, Team};
use serde_json::Value;

use crate::config::Config;
use crate::wiring;

/// `grabd admin …`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    resource: Resource,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Resource {
    /// Manage teams.
    #[command(subcommand)]
    Team(team::Command),
    /// Manage API keys.
    #[command(subcommand)]
    Key(key::Command),
    /// Manage prepaid credits.
    #[command(subcommand)]
    Credits(credits::Command),
    /// Manage subscriptions: credits for a term.
    #[command(subcommand)]
    Subscription(subscription::Command),
    /// Manage people who sign in.
    #[command(subcommand)]
    User(user::Command),
    /// Inspect the ledger of credits.
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Manage the domains that are captured or not.
    #[command(subcommand)]
    Domain(domain::Command),
    /// List the audit trail: who changed what, from where and when.
    Audit(audit::Command),
    /// Manage the key that encrypts stored secrets.
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Back up the database, the images and the keys, while the service runs.
    Backup {
        /// A new or empty directory.
        directory: PathBuf,
    },
    /// Restore a backup into the configured data directory and database, which must be empty.
    Restore {
        /// The directory of the backup.
        directory: PathBuf,
    },
}

/// The output of a command, as text and as JSON.
struct CommandOutput {
    text: String,
    json: Value,
    /// Whether the exit code is zero.
    success: bool,
}

impl CommandOutput {
    fn ok(text: String, json: Value) -> Self {
        Self { text, json, success: true }
    }

    /// The output of a command that has printed its result itself.
    fn silent() -> Self {
        Self { text: String::new(), json: Value::Null, success: true }
    }
}

/// Runs one command. Returns `false` if it found a problem.
///
/// # Errors
/// When the command cannot be carried out.
pub async fn run(config: &Config, args: Args) -> anyhow::Result<bool> {
    if let Resource::Restore { directory } = &args.resource {
        return backup::restore(config, directory).await.map(|output| print(output, args.json));
    }
    let store = wiring::open_store(config).await?;
    store.migrate().await.context("the database schema cannot be brought up to date")?;
    let store = store.acting_as(actor());
    let output = match args.resource {
        Resource::Team(command) => team::run(config, &store, command).await,
        Resource::Key(command) => key::run(config, &store, command).await,
        Resource::Credits(command) => credits::run(&store, command).await,
        Resource::Subscription(command) => subscription::run(&store, command).await,
        Resource::User(command) => user::run(&store, command).await,
        Resource::Ledger(command) => ledger::run(&store, command).await,
        Resource::Domain(command) => domain::run(&store, command).await,
        Resource::Audit(command) => audit::run(&store, &command).await,
        Resource::Secrets(command) => secrets::run(config, &store, &command).await,
        Resource::Backup { directory } => backup::create(config, &store, &directory).await,
        // Done above, since it needs an empty database.
        Resource::Restore { .. } => Ok(CommandOutput::ok(String::new(), Value::Null)),
    };
    store.close().await;
    Ok(print(output?, args.json))
}

/// Prints the output, and returns whether the command found no problem.
fn print(output: CommandOutput, as_json: bool) -> bool {
    let CommandOutput { text, json, success } = output;
    if text.is_empty() && json.is_null() {
        return success;
    }
    match as_json {
        true => println!("{json}"),
        false => println!("{text}"),
    }
    success
}

/// Who runs the command, for the audit trail.
fn actor() -> Actor {
    let name = format!("command:uid {}", rustix::process::getuid().as_raw());
    Actor { name, address: None, now: Clock::system().now() }
}

/// The team with this id, or with this name if the name is unique.
async fn find_team(store: &Store, given: &str) -> anyhow::Result<TeamId> {
    let teams = store.list_teams().await?;
    // Deleted teams have no name of their own.
    let has_name = |team: &&Team| team.deleted_at.is_none() && team.name == given;
    let mut found = teams.iter().filter(|team| team.id.to_string() == given || has_name(team));
    match (found.next(), found.next()) {
        (Some(team), None) => Ok(team.id),
        (Some(_), Some(_)) => bail!("several teams are named {given}; use the id (`grabd admin team list`)"),
        (None, _) => bail!("there is no team {given}; `grabd admin team list` shows them"),
    }
}
