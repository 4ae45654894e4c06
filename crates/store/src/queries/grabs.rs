//! Grabs as they stand.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Grab, ImageKey};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::padded;
use crate::codes;
use crate::entities::{grab, job};
use crate::{Result, Store};

/// Ids in one statement: both databases take more, but nobody watches more from one process.
const MANY: usize = 4096;

impl Store {
    /// A caller's grab.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_grab(&self, team: TeamId, environment: Environment, id: GrabId) -> Result<Option<Grab>> {
        let found = grab::scoped(team, environment)
            .filter(grab::Column::Id.eq(id.0))
            .find_also_related(job::Entity)
            .one(self.database.reader())
            .await?;
        found.map(|(row, job)| grab::read(row, job.as_ref())).transpose()
    }

    /// These grabs, whosever they are, in any order: for those who watch them. Unknown ids are left out.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_grabs(&self, ids: &[GrabId]) -> Result<Vec<Grab>> {
        let mut grabs = Vec::with_capacity(ids.len());
        for ids in ids.chunks(MANY) {
            let found = grab::Entity::find()
                .filter(grab::Column::Id.is_in(padded(ids.iter().map(|id| id.0))))
                .find_also_related(job::Entity)
                .all(self.database.reader())
                .await?;
            for (row, job) in found {
                grabs.push(grab::read(row, job.as_ref())?);
            }
        }
        Ok(grabs)
    }

    /// What to draw at a placeholder's address, unless it was deleted.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_placeholder(&self, key: &ImageKey) -> Result<Option<CaptureSpec>> {
        let request: Option<String> = grab::Entity::find()
            .select_only()
            .column(grab::Column::Request)
            .filter(grab::Column::ImageKey.eq(key.as_str()))
            .filter(grab::Column::Env.eq(codes::environment(Environment::Test)))
            .into_tuple()
            .one(self.database.reader())
            .await?;
        request.as_deref().map(grab::read_spec).transpose()
    }

    /// How many grabs of this class wait for a slot.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn count_waiting(&self, class: Class) -> Result<u64> {
        Ok(job::Entity::find().filter(job::is_waiting(class)).count(self.database.reader()).await?)
    }

    /// Does any grab of this class wait for a slot? One look at an index.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn has_waiting(&self, class: Class) -> Result<bool> {
        let first: Option<Uuid> = job::Entity::find()
            .select_only()
            .column(job::Column::GrabId)
            .filter(job::is_waiting(class))
            // The order is the index's: without it the table itself may be searched for one that waits.
            .order_by_asc(job::Column::Vt)
            .order_by_asc(job::Column::GrabId)
            .limit(1)
            .into_tuple()
            .one(self.database.reader())
            .await?;
        Ok(first.is_some())
    }
}
