//! `grabd admin credits …`.

use clap::Subcommand;
use grabd_domain::credits::Balance;
use grabd_engine::clock::Clock;
use grabd_engine::{accounts, random};
use grabd_store::Store;
use grabd_store::credits::GrantOutcome;
use serde_json::json;

use super::find_team::find_team;
use super::output::CommandOutput;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Grant a prepaid lot.
    Grant {
        /// The team's id or name.
        team: String,
        /// Number of credits.
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        credits: u32,
        /// An external reference, such as an invoice number. Each reference grants once.
        #[arg(long)]
        reference: Option<String>,
    },
    /// Show the credits of a team.
    Show {
        /// The team's id or name.
        team: String,
    },
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        matches!(self, Self::Show { .. })
    }
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    let now = Clock::system().now();
    match command {
        Command::Grant { team, credits, reference } => {
            let team = find_team(store, &team).await?;
            let reference = reference.map_or_else(|| format!("hand:{:032x}", random::random()), |r| format!("ref:{r}"));
            let granted = accounts::grant_prepaid(store, team, credits, &reference, now).await?;
            let (lot, new) = match granted {
                GrantOutcome::New(lot) => (lot, true),
                GrantOutcome::Repeated(lot) => (lot, false),
            };
            let text = match new {
                true => format!("Granted {credits} credits (lot {}).", lot.0),
                false => format!("Nothing granted: this reference was granted before (lot {}).", lot.0),
            };
            Ok(CommandOutput::ok(
                text,
                json!({ "team_id": team.to_string(), "lot_id": lot.0, "granted": if new { credits } else { 0 } }),
            ))
        }
        Command::Show { team } => {
            let team = find_team(store, &team).await?;
            let Balance { subscription, prepaid, held } = Balance::of(&store.credits().lots(team).await?, now);
            Ok(CommandOutput::ok(
                format!("subscription {subscription}, prepaid {prepaid}, held {held}"),
                json!({
                    "team_id": team.to_string(), "subscription": subscription, "prepaid": prepaid, "held": held,
                }),
            ))
        }
    }
}
