//! Finds the team that an argument names.

use anyhow::bail;
use grabd_domain::ids::TeamId;
use grabd_store::Store;
use grabd_store::accounts::Team;

/// The team with this id, or with this name if the name is unique.
pub(super) async fn find_team(store: &Store, given: &str) -> anyhow::Result<TeamId> {
    let teams = store.accounts().list_teams().await?;
    // Deleted teams have no name of their own.
    let has_name = |team: &&Team| team.deleted_at.is_none() && team.name == given;
    let mut found = teams.iter().filter(|team| team.id.to_string() == given || has_name(team));
    match (found.next(), found.next()) {
        (Some(team), None) => Ok(team.id),
        (Some(_), Some(_)) => bail!("several teams are named {given}; use the id (`grabd admin team list`)"),
        (None, _) => bail!("there is no team {given}; `grabd admin team list` shows them"),
    }
}
