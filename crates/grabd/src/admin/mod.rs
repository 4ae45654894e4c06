//! The operator's commands, usable beside a running service.

mod credits;
mod key;
mod ledger;
mod subscription;
mod team;
mod user;

use anyhow::{Context, bail};
use clap::{Args as ClapArgs, Subcommand};
use grabd_domain::ids::TeamId;
use grabd_store::Store;
use serde_json::Value;

use crate::config::Config;
use crate::wiring;

/// `grabd admin …`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    noun: Noun,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Noun {
    /// Teams.
    #[command(subcommand)]
    Team(team::Command),
    /// API keys.
    #[command(subcommand)]
    Key(key::Command),
    /// Credits.
    #[command(subcommand)]
    Credits(credits::Command),
    /// Subscriptions: credits for a term.
    #[command(subcommand)]
    Subscription(subscription::Command),
    /// People who sign in.
    #[command(subcommand)]
    User(user::Command),
    /// The ledger of credits.
    #[command(subcommand)]
    Ledger(ledger::Command),
}

/// What a command has to say: to people as text, to programs as JSON.
struct Answer {
    text: String,
    json: Value,
    /// Does the program end well?
    success: bool,
}

impl Answer {
    fn good(text: String, json: Value) -> Self {
        Self { text, json, success: true }
    }
}

/// Carries out one command; `false` when what it had to say is bad news.
///
/// # Errors
/// What keeps it from being carried out.
pub async fn run(config: &Config, args: Args) -> anyhow::Result<bool> {
    let store = wiring::open_store(config).await?;
    store.migrate().await.context("the database's schema cannot be brought up to date")?;
    let answer = match args.noun {
        Noun::Team(command) => team::run(&store, command).await,
        Noun::Key(command) => key::run(&store, command).await,
        Noun::Credits(command) => credits::run(&store, command).await,
        Noun::Subscription(command) => subscription::run(&store, command).await,
        Noun::User(command) => user::run(&store, command).await,
        Noun::Ledger(command) => ledger::run(&store, command).await,
    };
    store.close().await;
    let Answer { text, json, success } = answer?;
    match args.json {
        true => println!("{json}"),
        false => println!("{text}"),
    }
    Ok(success)
}

/// The team with this id or, if only one has it, this name.
async fn find_team(store: &Store, given: &str) -> anyhow::Result<TeamId> {
    let teams = store.list_teams().await?;
    let mut found = teams.iter().filter(|team| team.id.to_string() == given || team.name == given);
    match (found.next(), found.next()) {
        (Some(team), None) => Ok(team.id),
        (Some(_), Some(_)) => bail!("several teams are named {given}; give the id (`grabd admin team list`)"),
        (None, _) => bail!("there is no team {given}; `grabd admin team list` shows them"),
    }
}
