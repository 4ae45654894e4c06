//! Reasons for which a grab does not become done although its image is stored.

use grabd_domain::grabs::Failure;

/// A reason for which a grab does not become done although its image is stored.
pub(super) enum NotCompleted {
    /// The grab fails.
    Failed(Failure),
    /// An attachment could not be stored.
    NotStored(grabd_images::Error),
    /// The database is unavailable.
    Database(grabd_store::Error),
}
