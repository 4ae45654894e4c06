//! Images due for deletion.

use grabd_domain::Timestamp;
use grabd_domain::capture::{AttachmentName, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{FileKey, ImageKey};
use grabd_domain::ids::GrabId;
use sea_orm::sea_query::{Expr, ExprTrait, JoinType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::entities::{grab, grab_file, image_gc};
use crate::{Error, Result, codes};

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Which file it is.
    pub name: AttachmentName,
    /// The image that it is beside.
    pub image: ImageKey,
    /// The capture spec of a placeholder, whose files are not stored but made again.
    pub placeholder_of: Option<CaptureSpec>,
    /// The grab.
    pub grab: GrabId,
    /// When the grab was created.
    pub created_at: Timestamp,
}

impl Grabs<'_> {
    /// Up to `limit` images whose files are due for deletion. Excludes images that a grab still shows, and those that
    /// were set aside.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn due_images(self, now: Timestamp, limit: u32) -> Result<Vec<ImageKey>> {
        for _ in 0..MAX_UNREADABLE_BATCHES {
            let keys = self.due_keys(now, limit).await?;
            let read = |key: &String| match grab::read_key(key) {
                Ok(key) => Some(key),
                Err(error) => {
                    self.store.set_aside.add(WORK, key, &error, now);
                    None
                }
            };
            let images: Vec<_> = keys.iter().filter_map(read).collect();
            if keys.is_empty() || !images.is_empty() {
                return Ok(images);
            }
        }
        Ok(Vec::new())
    }

    async fn due_keys(self, now: Timestamp, limit: u32) -> Result<Vec<String>> {
        let shown = grab::Entity::find()
            .select_only()
            .column(grab::Column::Id)
            .filter(Expr::col((grab::Entity, grab::Column::ImageKey)).equals((image_gc::Entity, image_gc::Column::Key)))
            .into_query();
        let due = image_gc::Entity::find()
            .select_only()
            .column(image_gc::Column::Key)
            .filter(image_gc::Column::NotBefore.lte(now.as_ms()))
            .filter(Expr::exists(shown).not())
            .filter(image_gc::Column::Key.is_not_in(self.store.set_aside.keys::<String>(WORK, now)))
            // Deletions on request do not wait for those of a retention.
            .order_by_asc(image_gc::Column::Bulk)
            .order_by_asc(image_gc::Column::NotBefore)
            .limit(u64::from(limit));
        Ok(due.into_tuple().all(self.store.database.reader()).await?)
    }

    /// The file with this key, unless its image was deleted. One index lookup.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_file(self, key: &FileKey) -> Result<Option<StoredFile>> {
        let found = grab_file::Entity::find_by_id(key.as_str())
            .select_only()
            .column(grab_file::Column::Kind)
            .column(grab_file::Column::Env)
            .column(grab::Column::ImageKey)
            .column(grab::Column::Request)
            .column(grab::Column::Id)
            .column(grab::Column::CreatedAt)
            .join(
                JoinType::InnerJoin,
                grab_file::Entity::belongs_to(grab::Entity).from(grab_file::Column::GrabId).to(grab::Column::Id).into(),
            )
            .into_tuple::<(i16, i16, Option<String>, String, Uuid, i64)>()
            .one(self.store.database.reader())
            .await?;
        let Some((kind, env, Some(image), request, id, created_at)) = found else { return Ok(None) };
        let Some(name) = grab_file::read_kind(kind) else { return Ok(None) };
        let placeholder_of = match codes::read_environment(env)? {
            Environment::Test => Some(grab::read_spec(&request)?),
            Environment::Live => None,
        };
        let (grab, created_at) = (GrabId(id), Timestamp::from_ms(created_at));
        Ok(Some(StoredFile { name, image: grab::read_key(&image)?, placeholder_of, grab, created_at }))
    }

    /// Leaves an image whose file could not be deleted out of [`Grabs::due_images`](crate::areas::Grabs::due_images) for ten minutes, so that it does
    /// not delay the others.
    pub fn set_image_aside(self, key: &ImageKey, now: Timestamp) {
        let error = Error::Inconsistent("the file of an image cannot be deleted");
        self.store.set_aside.add(WORK, &key.as_str(), &error, now);
    }
}

const WORK: &str = "images";
/// How many batches without a readable key are skipped at a time.
const MAX_UNREADABLE_BATCHES: usize = 8;
