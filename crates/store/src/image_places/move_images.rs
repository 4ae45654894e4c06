//! Reads and marks for moving images from one place to another while the service runs.
//!
//! An image is marked before it is copied, and unmarked when it is known whether it was deleted meanwhile. So a copy of
//! a deleted image is found again after a crash, although no grab has it.

use grabd_domain::capture::AttachmentName;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::GrabId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::ImageStore;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, grab_file, image_move};

/// An image in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// Its key.
    pub key: ImageKey,
    /// The attachments.
    pub attachments: Vec<AttachmentName>,
}

/// Some images in the order of their grabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImagePage {
    /// The images.
    pub images: Vec<StoredImage>,
    /// The last grab that was examined. `None`: there are no further ones.
    pub last: Option<GrabId>,
}

struct Mark(Vec<ImageKey>);

struct Unmark(Vec<ImageKey>);

impl ImageStore<'_> {
    /// Up to `limit` images of live grabs, with ids after `after`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn stored_images(self, after: Option<GrabId>, limit: u32) -> Result<StoredImagePage> {
        let mut query = grab::Entity::find()
            .select_only()
            .column(grab::Column::Id)
            .column(grab::Column::ImageKey)
            .filter(grab::is_of(Environment::Live))
            .filter(grab::Column::ImageKey.is_not_null());
        if let Some(after) = after {
            query = query.filter(grab::Column::Id.gt(after.0));
        }
        let query = query.order_by_asc(grab::Column::Id).limit(u64::from(limit));
        let rows: Vec<(Uuid, String)> = query.into_tuple().all(self.store.database.reader()).await?;
        let ids: Vec<Uuid> = rows.iter().map(|(id, _)| *id).collect();
        let files: Vec<(Uuid, i16)> = grab_file::Entity::find()
            .select_only()
            .column(grab_file::Column::GrabId)
            .column(grab_file::Column::Kind)
            .filter(grab_file::Column::GrabId.is_in(ids.clone()))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let mut images = Vec::with_capacity(rows.len());
        for (id, key) in rows {
            let attachments =
                files.iter().filter(|(grab, _)| *grab == id).filter_map(|(_, kind)| grab_file::read_kind(*kind));
            images.push(StoredImage { key: grab::read_key(&key)?, attachments: attachments.collect() });
        }
        Ok(StoredImagePage { images, last: ids.last().copied().map(GrabId) })
    }

    /// The number of images of live grabs.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn count_stored_images(self) -> Result<u64> {
        let live = grab::is_of(Environment::Live);
        let stored = grab::Entity::find().filter(live).filter(grab::Column::ImageKey.is_not_null());
        Ok(stored.count(self.store.database.reader()).await?)
    }

    /// Notes that these images are being copied.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn mark_moving_images(self, keys: Vec<ImageKey>) -> Result<()> {
        self.store.database.write(Mark(keys)).await
    }

    /// Notes that these images are no longer being copied.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn unmark_moving_images(self, keys: Vec<ImageKey>) -> Result<()> {
        self.store.database.write(Unmark(keys)).await
    }

    /// The images that were being copied when the last move was interrupted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn moving_images(self) -> Result<Vec<ImageKey>> {
        let rows = image_move::Entity::find().all(self.store.database.reader()).await?;
        rows.iter().map(|row| grab::read_key(&row.key)).collect()
    }
}

impl Transaction for Mark {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let rows: Vec<_> =
            self.0.iter().map(|key| image_move::ActiveModel { key: Set(key.as_str().to_owned()) }).collect();
        if !rows.is_empty() {
            let insert = image_move::Entity::insert_many(rows);
            insert.on_conflict_do_nothing_on([image_move::Column::Key]).exec_without_returning(tx).await?;
        }
        Ok(())
    }
}

impl Transaction for Unmark {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let keys = self.0.iter().map(ImageKey::as_str);
        image_move::Entity::delete_many().filter(image_move::Column::Key.is_in(keys)).exec(tx).await?;
        Ok(())
    }
}
