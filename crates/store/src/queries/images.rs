//! Images that are to be deleted now.

use grabd_domain::Timestamp;
use grabd_domain::grabs::ImageKey;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::entities::{grab, image_gc};
use crate::{Result, Store};

impl Store {
    /// At most `limit` images whose files are to be deleted, never one that a grab still shows.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn due_images(&self, now: Timestamp, limit: u32) -> Result<Vec<ImageKey>> {
        let shown = grab::Entity::find()
            .select_only()
            .column(grab::Column::Id)
            .filter(Expr::col((grab::Entity, grab::Column::ImageKey)).equals((image_gc::Entity, image_gc::Column::Key)))
            .into_query();
        let keys: Vec<String> = image_gc::Entity::find()
            .select_only()
            .column(image_gc::Column::Key)
            .filter(image_gc::Column::NotBefore.lte(now.as_ms()))
            .filter(Expr::exists(shown).not())
            .order_by_asc(image_gc::Column::NotBefore)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.database.reader())
            .await?;
        keys.iter().map(|key| grab::read_key(key)).collect()
    }
}
