//! The operator's commands. They may be used while the service runs.

mod audit;
mod backup;
mod cluster;
mod credits;
mod domain;
mod evidence;
mod find_team;
mod identity;
mod images;
mod key;
mod known_secrets;
mod ledger;
mod move_database;
mod nodes;
mod output;
mod secrets;
mod subscription;
mod team;
mod team_limits;
mod user;
mod webhook;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use grabd_engine::accounts::ACCEPTED_FOR;
use grabd_engine::clock::Clock;
use grabd_store::Actor;
use serde_json::Value;

use crate::commands_store;
use crate::config::Config;
use output::CommandOutput;

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
    /// Manage users who sign in.
    #[command(subcommand)]
    User(user::Command),
    /// Manage webhooks.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Inspect the ledger of credits.
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Manage the domains that are captured or not.
    #[command(subcommand)]
    Domain(domain::Command),
    /// List the audit trail: who changed what, from where and when.
    Audit(audit::Command),
    /// Set up a cluster.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// List the processes of the cluster.
    Nodes,
    /// Manage the key that encrypts stored secrets.
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Manage the keys with which requests to sites are signed.
    #[command(subcommand)]
    Identity(identity::Command),
    /// Manage the keys that sign evidence of captures.
    #[command(subcommand)]
    Evidence(evidence::Command),
    /// Manage the places where images are stored.
    #[command(subcommand)]
    Images(images::Command),
    /// Move from SQLite to PostgreSQL: copy all rows to an empty database, while the service is stopped.
    Move {
        /// The URL of the PostgreSQL database, such as postgres://grabd:PASSWORD@db.example.com/grabd.
        #[arg(long, value_name = "URL")]
        to: String,
    },
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

impl Resource {
    /// Whether the command changes nothing. Then it creates no database either.
    const fn only_reads(&self) -> bool {
        match self {
            Self::Team(command) => command.only_reads(),
            Self::Key(command) => command.only_reads(),
            Self::Credits(command) => command.only_reads(),
            Self::User(command) => command.only_reads(),
            Self::Domain(command) => command.only_reads(),
            Self::Identity(command) => command.only_reads(),
            Self::Evidence(command) => command.only_reads(),
            Self::Ledger(_) | Self::Audit(_) | Self::Nodes | Self::Backup { .. } => true,
            Self::Subscription(_)
            | Self::Webhook(_)
            | Self::Cluster(_)
            | Self::Secrets(_)
            | Self::Images(_)
            | Self::Move { .. }
            | Self::Restore { .. } => false,
        }
    }
}

/// Runs one command. Returns `false` if it found a problem.
///
/// # Errors
/// When the command cannot be carried out.
pub async fn run(config: &Config, args: Args) -> anyhow::Result<bool> {
    if let Resource::Restore { directory } = &args.resource {
        commands_store::check_owner(config)?;
        return backup::restore(config, directory).await.map(|output| output.print(args.json));
    }
    if let Resource::Cluster(command) = &args.resource {
        return cluster::run(command).map(|output| output.print(args.json));
    }
    let store = match args.resource.only_reads() {
        true => commands_store::open_to_read(config).await?,
        false => commands_store::open_to_change(config).await?,
    };
    let store = store.acting_as(actor());
    let output = match args.resource {
        Resource::Team(command) => team::run(config, &store, command).await,
        Resource::Key(command) => key::run(config, &store, command).await,
        Resource::Credits(command) => credits::run(&store, command).await,
        Resource::Subscription(command) => subscription::run(&store, command).await,
        Resource::User(command) => user::run(&store, command).await,
        Resource::Webhook(command) => webhook::run(config, &store, command).await,
        Resource::Ledger(command) => ledger::run(&store, command).await,
        Resource::Domain(command) => domain::run(&store, command).await,
        Resource::Audit(command) => audit::run(&store, &command).await,
        Resource::Nodes => nodes::run(&store).await,
        Resource::Secrets(command) => secrets::run(config, &store, &command).await,
        Resource::Identity(command) => identity::run(config, &store, &command).await,
        Resource::Evidence(command) => evidence::run(config, &store, &command).await,
        Resource::Images(command) => images::run(config, &store, &command).await,
        Resource::Move { to } => move_database::run(config, &store, &to).await,
        Resource::Backup { directory } => backup::create(config, &store, &directory).await,
        // Done above: the first needs an empty database, the second none.
        Resource::Restore { .. } | Resource::Cluster(_) => Ok(CommandOutput::ok(String::new(), Value::Null)),
    };
    if store.access_version() != 0 {
        // When the command returns, the services of this database have noticed, for example, that a key is revoked.
        tokio::time::sleep(ACCEPTED_FOR).await;
    }
    store.close().await;
    Ok(output?.print(args.json))
}

/// Who runs the command, for the audit trail.
fn actor() -> Actor {
    let name = format!("command:uid {}", rustix::process::getuid().as_raw());
    Actor { name, address: None, now: Clock::system().now() }
}
