//! `grabd admin team …`.

use std::io::{self, Write as _};

use anyhow::{Context, bail};
use clap::Subcommand;
use futures::TryStreamExt;
use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::LimitChange;
use grabd_engine::accounts::{self, NewTeamKeys};
use grabd_engine::clock::Clock;
use grabd_engine::export::team_export_of;
use grabd_store::Store;
use grabd_store::accounts::SuspendOutcome;
use serde_json::json;

use super::find_team::find_team;
use super::key::link_credentials;
use super::output::CommandOutput;
use super::team_limits;
use crate::config::Config;
use crate::wiring;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a team with one live and one test key. The keys are shown only once. The link key and secret sign links;
    /// `grabd admin key link` shows them again.
    Create {
        /// The team's name.
        name: String,
        /// Initial prepaid credits.
        #[arg(long, default_value_t = 0)]
        credits: u32,
    },
    /// List all teams.
    List,
    /// Suspend a team: its keys, apps and pages stop working at once, and its open grabs end uncharged. Its images
    /// stay.
    Suspend {
        /// The team's id or name.
        team: String,
        /// The reason, for operators.
        #[arg(long)]
        reason: String,
    },
    /// Restore a suspended team.
    Restore {
        /// The team's id or name.
        team: String,
    },
    /// Delete a team: its keys, apps and pages stop working at once, its open grabs end uncharged, and the running
    /// service erases its grabs, images and webhooks. Its ledger stays, without a name.
    Delete {
        /// The team's id or name.
        team: String,
        /// The team's name again, as a confirmation.
        #[arg(long, value_name = "NAME")]
        confirm: String,
    },
    /// Show the limits of a team, or override some of them for this team. The running service applies a change within a
    /// second.
    Limits {
        /// The team's id or name.
        team: String,
        /// Override a limit, as in `requests_per_minute=600`.
        #[arg(long, value_name = "NAME=VALUE", num_args = 1.., value_parser = LimitChange::parse)]
        set: Vec<LimitChange>,
        /// Remove an override, so that the setting applies again.
        #[arg(long, value_name = "NAME", num_args = 1.., value_parser = LimitChange::reset)]
        reset: Vec<LimitChange>,
    },
    /// Print all data of a team as JSON lines: team, members, keys without secrets, webhooks, grabs and ledger.
    Export {
        /// The team's id or name.
        team: String,
    },
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        match self {
            Self::List | Self::Export { .. } => true,
            Self::Limits { set, reset, .. } => set.is_empty() && reset.is_empty(),
            Self::Create { .. } | Self::Suspend { .. } | Self::Restore { .. } | Self::Delete { .. } => false,
        }
    }
}

pub(super) async fn run(config: &Config, store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Create { name, credits } => {
            // Opened before, so that a team is not left without what is printed.
            let vault = wiring::open_vault(config)?;
            let created = accounts::create_team(store, &name, credits, Clock::system().now()).await?;
            let NewTeamKeys { team, live, live_id, test, test_id } = created;
            let live_link = link_credentials(store, &vault, team, live_id).await?;
            let test_link = link_credentials(store, &vault, team, test_id).await?;
            let (live, test) = (live.expose(), test.expose());
            Ok(CommandOutput::ok(
                format!(
                    "team         {team}\nlive key     {live}\ntest key     {test}\nlink key     {}\nlink secret  {}\n\
                     The keys are not shown again. The link key and secret are those of the live key.",
                    live_link.key,
                    live_link.secret.expose(),
                ),
                json!({
                    "team_id": team.to_string(),
                    "live_key": live,
                    "test_key": test,
                    "link_key": live_link.key.to_string(),
                    "link_secret": live_link.secret.expose(),
                    "test_link_key": test_link.key.to_string(),
                    "test_link_secret": test_link.secret.expose(),
                }),
            ))
        }
        Command::List => {
            let teams = store.accounts().list_teams().await?;
            let lines: Vec<String> = teams
                .iter()
                .map(|team| {
                    let suspended = match (team.deleted_at, &team.suspension) {
                        (Some(_), _) => "  DELETED",
                        (None, Some(_)) => "  SUSPENDED",
                        (None, None) => "",
                    };
                    format!("{}  {}  {}{suspended}", team.id, team.created_at, team.name)
                })
                .collect();
            let rows: Vec<_> = teams
                .iter()
                .map(|team| {
                    json!({
                        "team_id": team.id.to_string(), "name": team.name, "created_at": team.created_at.to_string(),
                        "deleted_at": team.deleted_at.map(|at| at.to_string()),
                        "suspended_at": team.suspension.as_ref().map(|suspension| suspension.at.to_string()),
                        "suspended_reason": team.suspension.as_ref().map(|suspension| suspension.reason.as_str()),
                    })
                })
                .collect();
            Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
        }
        Command::Suspend { team, reason } => {
            let team = find_team(store, &team).await?;
            let Some(reason) = accounts::suspension_reason(&reason) else {
                let (min, max) = (accounts::SUSPENSION_REASON_CHARS.start(), accounts::SUSPENSION_REASON_CHARS.end());
                bail!("the reason must have {min} to {max} characters, without line breaks");
            };
            let (outcome, ended) = accounts::suspend_team(store, team, reason, Clock::system().now()).await?;
            let text = match outcome {
                SuspendOutcome::Changed => format!("Team {team} is suspended. Open grabs ended: {}.", ended.len()),
                SuspendOutcome::Unchanged => {
                    format!("Team {team} was suspended before. Open grabs ended: {}.", ended.len())
                }
                SuspendOutcome::UnknownTeam => bail!("team {team} was removed meanwhile"),
            };
            Ok(CommandOutput::ok(
                text,
                json!({ "team_id": team.to_string(), "suspended": true, "ended_grabs": ended.len() }),
            ))
        }
        Command::Delete { team, confirm } => {
            let team = find_team(store, &team).await?;
            let name = store.accounts().find_team(team).await?.map(|found| found.name).unwrap_or_default();
            if confirm != name {
                bail!("the team's name is `{name}`, and --confirm has `{confirm}`; nothing was deleted");
            }
            let deleted = accounts::delete_team_as_operator(store, team, Clock::system().now()).await?;
            let Ok(ended) = deleted else { bail!("team {team} was deleted before") };
            let count = ended.len();
            Ok(CommandOutput::ok(
                format!("Team {team} is deleted. Open grabs ended: {count}. The service erases its grabs and images."),
                json!({ "team_id": team.to_string(), "deleted": true, "ended_grabs": count }),
            ))
        }
        Command::Limits { team, set, reset } => team_limits::run(config, store, &team, set, reset).await,
        Command::Export { team } => {
            let team = find_team(store, &team).await?;
            export(store, team).await?;
            Ok(CommandOutput::silent())
        }
        Command::Restore { team } => {
            let team = find_team(store, &team).await?;
            let text = match store.accounts().restore_team(team, Clock::system().now()).await? {
                SuspendOutcome::Changed => format!("Team {team} is restored."),
                SuspendOutcome::Unchanged => format!("Team {team} was not suspended."),
                SuspendOutcome::UnknownTeam => bail!("team {team} was removed meanwhile"),
            };
            Ok(CommandOutput::ok(text, json!({ "team_id": team.to_string(), "suspended": false })))
        }
    }
}

/// Prints the export in chunks, so that it needs little memory.
async fn export(store: &Store, team: TeamId) -> anyhow::Result<()> {
    let mut chunks = std::pin::pin!(team_export_of(store.clone(), team, Clock::system().now()));
    while let Some(chunk) = chunks.try_next().await? {
        io::stdout().lock().write_all(&chunk).context("the export cannot be written to standard output")?;
    }
    io::stdout().lock().flush().context("the export cannot be written to standard output")
}
