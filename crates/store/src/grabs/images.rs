//! The list of images to delete. After the file is deleted, its entry is removed.

use grabd_domain::Timestamp;
use grabd_domain::grabs::ImageKey;
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::Result;
use crate::areas::Grabs;
use crate::database::{Transaction, Tx};
use crate::entities::image_gc;

struct UnscheduleDeletion {
    key: ImageKey,
}

impl Grabs<'_> {
    /// Removes an image from the deletion list after its file was deleted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn unschedule_deletion(self, key: &ImageKey) -> Result<()> {
        self.store.database.write(UnscheduleDeletion { key: key.clone() }).await
    }
}

impl Transaction for UnscheduleDeletion {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        image_gc::Entity::delete_by_id(self.key.as_str()).exec(tx).await?;
        Ok(())
    }
}

/// The entry of an image that is deleted together with many others.
pub(crate) fn bulk_deletion(key: String, not_before: Timestamp) -> image_gc::ActiveModel {
    image_gc::ActiveModel { key: Set(key), not_before: Set(not_before.as_ms()), bulk: Set(1) }
}

/// Adds an image to the deletion list. An existing entry is kept unchanged.
pub(super) async fn schedule_deletion(tx: &Tx, key: &str, not_before: Timestamp) -> Result<()> {
    let row = image_gc::ActiveModel { key: Set(key.to_owned()), not_before: Set(not_before.as_ms()), bulk: Set(0) };
    image_gc::Entity::insert(row).on_conflict_do_nothing_on([image_gc::Column::Key]).exec_without_returning(tx).await?;
    Ok(())
}
