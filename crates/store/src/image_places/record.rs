//! The places where images are. Each start of the service records them, so that no place is left out by mistake while
//! it has images.

use std::collections::BTreeMap;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::Result;
use crate::areas::ImageStore;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::image_place;

/// The recorded places, as URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePlaces {
    /// Where new images are stored. `None` before the first start.
    pub first: Option<String>,
    /// Where others may be.
    pub others: Vec<String>,
}

struct RecordPlaces(ImagePlaces);

struct ForgetPlace(String);

impl ImageStore<'_> {
    /// The places that the service has used since its last start.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn image_places(self) -> Result<ImagePlaces> {
        let rows = image_place::Entity::find()
            .order_by_asc(image_place::Column::Url)
            .all(self.store.database.reader())
            .await?;
        let (first, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_first);
        let url = |row: image_place::Model| row.url;
        Ok(ImagePlaces { first: first.into_iter().map(url).next(), others: others.into_iter().map(url).collect() })
    }

    /// Replaces the recorded places. The service does so when it starts.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn record_image_places(self, places: ImagePlaces) -> Result<()> {
        self.store.database.write(RecordPlaces(places)).await
    }

    /// Removes a place that has no images any more. `false` when it is not recorded.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn forget_image_place(self, url: &str) -> Result<bool> {
        let event = AuditEvent::new("images.forget", &url, None);
        self.store.write_audited(ForgetPlace(url.to_owned()), event, |removed| *removed).await
    }
}

impl Transaction for RecordPlaces {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let ImagePlaces { first, others } = &self.0;
        let places = first.iter().map(|url| (url, true)).chain(others.iter().map(|url| (url, false)));
        // Processes of a cluster start at the same time. They record the same places, in the same order.
        let places: BTreeMap<&String, bool> = places.collect();
        let rows = places
            .iter()
            .map(|(url, is_first)| image_place::ActiveModel { url: Set((*url).clone()), is_first: Set(*is_first) });
        if !places.is_empty() {
            let replace =
                OnConflict::column(image_place::Column::Url).update_column(image_place::Column::IsFirst).to_owned();
            image_place::Entity::insert_many(rows).on_conflict(replace).exec_without_returning(tx).await?;
        }
        let is_former = image_place::Column::Url.is_not_in(places.into_keys().cloned());
        image_place::Entity::delete_many().filter(is_former).exec(tx).await?;
        Ok(())
    }
}

impl Transaction for ForgetPlace {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        Ok(image_place::Entity::delete_by_id(self.0.as_str()).exec(tx).await?.rows_affected > 0)
    }
}
