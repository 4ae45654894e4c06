//! What grabs of a team captured.

use std::collections::HashMap;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Grabs;
use crate::entities::grab;
use crate::padded::padded;

impl Grabs<'_> {
    /// The specs of grabs of a team, in both environments. Deleted grabs, and those that cannot be read, are left out.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn specs(self, team: TeamId, ids: &[GrabId]) -> Result<HashMap<GrabId, CaptureSpec>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let ids = padded(ids.iter().map(|id| id.0));
        let rows: Vec<(Uuid, String)> = grab::Entity::find()
            .select_only()
            .columns([grab::Column::Id, grab::Column::Request])
            .filter(grab::Column::TeamId.eq(team.0))
            .filter(grab::Column::Id.is_in(ids))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let spec = |(id, request): (Uuid, String)| Some((GrabId(id), grab::read_spec(&request).ok()?));
        Ok(rows.into_iter().filter_map(spec).collect())
    }
}
