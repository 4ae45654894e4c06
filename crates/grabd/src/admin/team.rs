//! `grabd admin team …`.

use clap::Subcommand;
use grabd_engine::accounts::{self, NewTeamKeys};
use grabd_engine::clock::Clock;
use grabd_store::Store;
use serde_json::json;

use super::Answer;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a team with one live and one test key. The keys are shown this once.
    Create {
        /// The team's name.
        name: String,
        /// Prepaid credits to begin with.
        #[arg(long, default_value_t = 0)]
        credits: u32,
    },
    /// Show every team.
    List,
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<Answer> {
    match command {
        Command::Create { name, credits } => {
            let made = accounts::create_team(store, &name, credits, Clock::system().now()).await?;
            let NewTeamKeys { team, live, test } = made;
            let (live, test) = (live.expose(), test.expose());
            Ok(Answer::good(
                format!("team      {team}\nlive key  {live}\ntest key  {test}\nThe keys are not shown again."),
                json!({ "team_id": team.to_string(), "live_key": live, "test_key": test }),
            ))
        }
        Command::List => {
            let teams = store.list_teams().await?;
            let lines: Vec<String> =
                teams.iter().map(|team| format!("{}  {}  {}", team.id, team.created_at, team.name)).collect();
            let rows: Vec<_> = teams
                .iter()
                .map(|team| {
                    json!({
                        "team_id": team.id.to_string(), "name": team.name, "created_at": team.created_at.to_string(),
                    })
                })
                .collect();
            Ok(Answer::good(lines.join("\n"), json!({ "data": rows })))
        }
    }
}
