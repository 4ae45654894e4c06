//! `grabd admin credits …`.

use clap::Subcommand;
use grabd_domain::credits::Balance;
use grabd_engine::clock::Clock;
use grabd_engine::{accounts, chance};
use grabd_store::{Granted, Store};
use serde_json::json;

use super::{Answer, find_team};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Grant a prepaid lot.
    Grant {
        /// The team's id or name.
        team: String,
        /// How many.
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        credits: u32,
        /// What it is for, such as an invoice number. The same reference grants once.
        #[arg(long)]
        reference: Option<String>,
    },
    /// Show what a team can spend.
    Show {
        /// The team's id or name.
        team: String,
    },
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<Answer> {
    let now = Clock::system().now();
    match command {
        Command::Grant { team, credits, reference } => {
            let team = find_team(store, &team).await?;
            let reference = reference.map_or_else(|| format!("hand:{:032x}", chance::random()), |r| format!("ref:{r}"));
            let granted = accounts::grant_prepaid(store, team, credits, &reference, now).await?;
            let (lot, new) = match granted {
                Granted::New(lot) => (lot, true),
                Granted::Repeated(lot) => (lot, false),
            };
            let text = match new {
                true => format!("Granted {credits} credits (lot {}).", lot.0),
                false => format!("Nothing granted: this reference has been granted before (lot {}).", lot.0),
            };
            Ok(Answer::good(
                text,
                json!({ "team_id": team.to_string(), "lot_id": lot.0, "granted": if new { credits } else { 0 } }),
            ))
        }
        Command::Show { team } => {
            let team = find_team(store, &team).await?;
            let Balance { subscription, prepaid, held } = Balance::of(&store.lots(team).await?, now);
            Ok(Answer::good(
                format!("subscription {subscription}, prepaid {prepaid}, held {held}"),
                json!({
                    "team_id": team.to_string(), "subscription": subscription, "prepaid": prepaid, "held": held,
                }),
            ))
        }
    }
}
