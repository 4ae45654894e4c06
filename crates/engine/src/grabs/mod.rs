//! The use-cases of grabs, one file per verb.

mod archive;
mod batch;
mod cached;
mod cancel;
mod capture;
pub(crate) mod compare;
pub(crate) mod create;
mod delete;
mod drawing;
mod final_steps;
pub(crate) mod finish;
mod get;
mod idempotency;
mod list;
mod marks;
mod not_completed;
mod phash;
mod pixels;
mod preview;
mod record_end;
mod request;
mod search;
pub(crate) mod secrets;
mod test_create;
mod thumbnail;
mod upload;
mod watch;

use std::sync::Arc;

use grabd_memory::MemoryBudget;
use grabd_store::Images;
use tokio::sync::Semaphore;

use self::compare::placeholders::Differences;
use crate::domains::DomainPolicy;
use crate::links::LinksInFlight;
use crate::placeholder::Placeholder;
pub use crate::queue::watchers::GrabUpdate;
use crate::storage::Storage;

pub use archive::{ArchivedImage, MAX_ARCHIVE_BYTES, archive};
pub use batch::{Batch, CreateError, MAX_BATCH, create_batch};
pub(crate) use cached::fingerprint_of;
pub use capture::{CaptureState, CaptureStream, capture};
pub use create::create;
pub use delete::delete;
pub use get::get;
pub use grabd_store::grabs::GrabList;
pub use list::{ListRequest, list};
pub use preview::{Preview, preview};
pub(crate) use record_end::record_end;
pub use request::{CreateRequest, CreateResult};
pub use search::{SearchRequest, SearchResult, search};
pub(crate) use thumbnail::Thumbnails;
pub use thumbnail::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH, thumbnail};
pub use watch::{Follow, WatchInterrupted, stages, watch};

/// The state of the use-cases of grabs.
pub(crate) struct Grabs {
    pub(crate) images: Images,
    /// The memory for images, shared with the rest of the process.
    pub(crate) memory: MemoryBudget,
    pub(crate) placeholder: Placeholder,
    pub(crate) thumbnails: Thumbnails,
    pub(crate) domains: DomainPolicy,
    pub(crate) storage: Storage,
    pub(crate) links: LinksInFlight,
    pub(crate) differences: Differences,
    /// The archives of images that may still be made at the same time.
    pub(crate) archives: Arc<Semaphore>,
}

impl Grabs {
    pub(crate) fn new(images: Images, memory: MemoryBudget, placeholder: Placeholder, domains: DomainPolicy) -> Self {
        let (thumbnails, storage, links) = (Thumbnails::default(), Storage::default(), LinksInFlight::default());
        let differences = Differences::new(placeholder.clone(), memory.clone());
        let archives = Arc::new(Semaphore::new(archive::MAX_ARCHIVES));
        Self { images, memory, placeholder, thumbnails, domains, storage, links, differences, archives }
    }
}
