//! The name of a team, for mails.

use grabd_domain::ids::TeamId;
use sea_orm::EntityTrait;

use crate::Result;
use crate::database::Tx;
use crate::entities::team;

/// The name of a team. Empty if there is no such team.
pub(crate) async fn team_name(tx: &Tx, team: TeamId) -> Result<String> {
    let found = team::Entity::find_by_id(team.0).one(tx).await?;
    Ok(found.map(|row| row.name).unwrap_or_default())
}
