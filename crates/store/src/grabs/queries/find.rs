//! Reads of grabs.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Grab, ImageKey};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::entities::grab::{self, WithJob};
use crate::entities::job;
use crate::padded::padded;
use crate::{Result, codes};

/// Maximum ids per statement. Both databases allow more, but no process watches more grabs.
const IDS_PER_STATEMENT: usize = 4096;

/// An image that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownImage {
    /// The image of a live grab, which is in the image storage.
    Stored,
    /// A placeholder with this capture spec, which is drawn again.
    Placeholder(Box<CaptureSpec>),
}

impl Grabs<'_> {
    /// Finds a grab of a caller by a statement of its own.
    pub(super) async fn find_scoped(self, team: TeamId, environment: Environment, id: GrabId) -> Result<Option<Grab>> {
        let found = grab::with_job(grab::scoped(team, environment).filter(grab::Column::Id.eq(id.0)))
            .into_model::<WithJob>()
            .one(self.store.database.reader())
            .await?;
        found.map(WithJob::read).transpose()
    }

    /// Finds grabs of a caller, in any order. Unknown ids are left out.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_grabs_of(self, team: TeamId, environment: Environment, ids: &[GrabId]) -> Result<Vec<Grab>> {
        let ids = padded(ids.iter().map(|id| id.0));
        let found = grab::with_job(grab::scoped(team, environment).filter(grab::Column::Id.is_in(ids)))
            .into_model::<WithJob>()
            .all(self.store.database.reader())
            .await?;
        found.into_iter().map(WithJob::read).collect()
    }

    /// Finds grabs of all teams, in any order, for watchers. Unknown ids and grabs that cannot be read are omitted.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn find_grabs(self, ids: &[GrabId]) -> Result<Vec<Grab>> {
        let mut grabs = Vec::with_capacity(ids.len());
        for ids in ids.chunks(IDS_PER_STATEMENT) {
            match self.read_grabs(ids).await {
                Err(error) if error.concerns_row() => {
                    // One by one, to find the row.
                    for id in ids {
                        match self.read_grabs(&[*id]).await {
                            Ok(found) => grabs.extend(found),
                            Err(error) if error.concerns_row() => self.store.set_aside.report("watchers", id, &error),
                            Err(error) => return Err(error),
                        }
                    }
                }
                found => grabs.extend(found?),
            }
        }
        Ok(grabs)
    }

    /// Reads grabs of all teams, in any order. Fails if one of them cannot be read.
    pub(super) async fn read_grabs(self, ids: &[GrabId]) -> Result<Vec<Grab>> {
        let ids = padded(ids.iter().map(|id| id.0));
        let found = grab::with_job(grab::Entity::find().filter(grab::Column::Id.is_in(ids)))
            .into_model::<WithJob>()
            .all(self.store.database.reader())
            .await?;
        found.into_iter().map(WithJob::read).collect()
    }

    /// What the image with this key is, unless it was deleted. One index lookup.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_image(self, key: &ImageKey) -> Result<Option<ShownImage>> {
        let found: Option<(i16, String)> = grab::Entity::find()
            .select_only()
            .column(grab::Column::Env)
            .column(grab::Column::Request)
            .filter(grab::Column::ImageKey.eq(key.as_str()))
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let Some((env, request)) = found else { return Ok(None) };
        Ok(Some(match codes::read_environment(env)? {
            Environment::Live => ShownImage::Stored,
            Environment::Test => ShownImage::Placeholder(Box::new(grab::read_spec(&request)?)),
        }))
    }

    /// Counts the grabs of this class that wait for a slot.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn count_waiting(self, class: Class) -> Result<u64> {
        Ok(job::Entity::find().filter(job::is_waiting(class)).count(self.store.database.reader()).await?)
    }

    /// Whether a grab of this class waits for a slot. One index lookup.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn has_waiting(self, class: Class) -> Result<bool> {
        let first: Option<Uuid> = job::Entity::find()
            .select_only()
            .column(job::Column::GrabId)
            .filter(job::is_waiting(class))
            // The index order. Without it, the planner may scan the table for a waiting job.
            .order_by_asc(job::Column::Vt)
            .order_by_asc(job::Column::GrabId)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(first.is_some())
    }
}
