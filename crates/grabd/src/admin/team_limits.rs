//! `grabd admin team limits`.

use anyhow::{bail, ensure};
use grabd_domain::team_limits::LimitChange;
use grabd_engine::clock::Clock;
use grabd_engine::operator::{LimitRow, limit_rows};
use grabd_store::Store;
use grabd_store::limits::{ChangeLimitsOutcome, MAX_TEAM_LIMITS};
use serde_json::{Value, json};

use super::find_team::find_team;
use super::output::CommandOutput;
use crate::config::Config;

/// Changes limits of a team, if any are given, and shows all of them.
pub(super) async fn run(
    config: &Config,
    store: &Store,
    team: &str,
    set: Vec<LimitChange>,
    reset: Vec<LimitChange>,
) -> anyhow::Result<CommandOutput> {
    let team = find_team(store, team).await?;
    let changes = [set, reset].concat();
    for (at, change) in changes.iter().enumerate() {
        let is_repeated = changes.iter().skip(at + 1).any(|other| other.limit == change.limit);
        ensure!(!is_repeated, "`{}` is given more than once; nothing was changed", change.limit);
    }
    if !changes.is_empty() {
        match store.limits().change_team_limits(team, changes, Clock::system().now()).await? {
            ChangeLimitsOutcome::Changed | ChangeLimitsOutcome::Unchanged => {}
            ChangeLimitsOutcome::UnknownTeam => bail!("team {team} is deleted"),
            ChangeLimitsOutcome::TooMany => {
                bail!(
                    "all teams together have {MAX_TEAM_LIMITS} limits of their own already; reset some, or use settings"
                )
            }
        }
    }
    let rows = limit_rows(store, team, &config.limit_settings()).await?;
    let lines: Vec<String> = rows.iter().map(line).collect();
    let heading = format!("{:26}{:>12}{:>12}  ", "LIMIT", "VALUE", "SETTING");
    Ok(CommandOutput::ok(
        format!("{}\n{}", heading.trim_end(), lines.join("\n")),
        json!({ "team_id": team.to_string(), "limits": rows.iter().map(object).collect::<Vec<_>>() }),
    ))
}

fn line(row: &LimitRow) -> String {
    let LimitRow { limit, value, setting, is_overridden } = row;
    let overridden = if *is_overridden { "overridden  " } else { "" };
    format!("{:26}{value:>12}{setting:>12}  {overridden}{}", limit.as_str(), limit.about())
}

fn object(row: &LimitRow) -> Value {
    let LimitRow { limit, value, setting, is_overridden } = row;
    json!({
        "name": limit.as_str(), "value": value, "setting": setting, "overridden": is_overridden, "about": limit.about(),
    })
}
