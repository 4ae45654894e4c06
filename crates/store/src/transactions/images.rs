//! Images whose time is over: noted here, deleted by whoever keeps the files, then forgotten.

use grabd_domain::Timestamp;
use grabd_domain::grabs::ImageKey;
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::database::{Transaction, Tx};
use crate::entities::image_gc;
use crate::{Result, Store};

struct Forget {
    key: ImageKey,
}

impl Store {
    /// Takes an image off the list of those that are to be deleted, after its file is gone.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn forget_image(&self, key: &ImageKey) -> Result<()> {
        self.database.write(Forget { key: key.clone() }).await
    }
}

impl Transaction for Forget {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        image_gc::Entity::delete_by_id(self.key.as_str()).exec(tx).await?;
        Ok(())
    }
}

/// Puts an image on the list. One that is on it stays as it is.
pub(super) async fn collect(tx: &Tx, key: &str, not_before: Timestamp) -> Result<()> {
    let row = image_gc::ActiveModel { key: Set(key.to_owned()), not_before: Set(not_before.as_ms()) };
    image_gc::Entity::insert(row).on_conflict_do_nothing_on([image_gc::Column::Key]).exec_without_returning(tx).await?;
    Ok(())
}
