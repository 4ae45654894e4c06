//! Why a grab whose image is stored is not done.

use grabd_domain::grabs::Failure;

/// Why a grab whose image is stored is not done.
pub(super) enum NotCompleted {
    /// The grab fails.
    Failed(Failure),
    /// An attachment could not be stored.
    NotStored(grabd_images::Error),
    /// The database is unavailable.
    Database(grabd_store::Error),
}
