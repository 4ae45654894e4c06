//! The use-cases of grabs, one file per verb.

mod archive;
mod batch;
mod cached;
mod cancel;
mod capture;
pub(crate) mod compare;
pub(crate) mod create;
mod creator;
mod delete;
pub(crate) mod derived;
mod evidence;
pub(crate) mod file_pair;
pub(crate) mod finish;
mod get;
mod idempotency;
mod image;
mod list;
mod loaded;
mod marks;
mod not_completed;
mod phash;
mod placeholder_create;
mod preview;
mod request;
mod run_final_steps;
mod search;
mod several;
mod smaller_copy;
mod thumbnail;
mod upload;
mod watch;

use grabd_domain::ids::PayerId;
use grabd_images::Images;
use grabd_limiters::Turns;
use grabd_memory::MemoryBudget;

use self::compare::comparisons::Comparisons;
use self::compare::placeholders::Differences;
use crate::domains::DomainPolicy;
use crate::placeholder::Placeholder;
pub use crate::queue::watchers::GrabUpdate;
use crate::storage::{Budgets, Storage};

pub use archive::{ArchiveError, ArchivedImage, MAX_ARCHIVE_BYTES, archive};
pub(crate) use archive::{ArchivedFile, archive_with};
pub use batch::{Batch, CreateError, MAX_BATCH, create_batch};
pub(crate) use cached::fingerprint_of;
pub use capture::{CaptureState, CaptureStream, capture};
pub use compare::existing::{CompareError, compare_existing};
pub use compare::texts::{TextComparison, compare_texts};
pub use create::create;
pub(crate) use create::{perform, validate};
pub use creator::creator;
pub use delete::delete;
pub use get::get;
pub use grabd_store::grabs::{GrabCreator, GrabList};
pub use image::{Attachment, Image, ImageError};
pub use list::{ListRequest, ListedGrabs, list};
pub use preview::{Preview, preview};
pub(crate) use request::Validated;
pub use request::{CreateRequest, CreateResult};
pub use search::{SearchRequest, SearchResult, search};
pub use several::{get_several, parse_ids, watch_several};
pub(crate) use thumbnail::Thumbnails;
pub use thumbnail::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH, thumbnail};
pub use watch::{Follow, WatchInterrupted, stages, watch};

/// Exports of teams that are made at the same time.
const MAX_EXPORTS: usize = 8;

/// The state of the use-cases of grabs.
pub(crate) struct Grabs {
    pub(crate) images: Images,
    /// The memory for images, shared with the rest of the process.
    pub(crate) memory: MemoryBudget,
    pub(crate) placeholder: Placeholder,
    /// Placeholders and differences that are shown to anybody, apart from those of creates.
    pub(crate) shown: ShownPlaceholders,
    pub(crate) thumbnails: Thumbnails,
    pub(crate) domains: DomainPolicy,
    pub(crate) storage: Storage,
    pub(crate) budgets: Budgets,
    pub(crate) differences: Differences,
    /// Comparisons of grabs that exist.
    pub(crate) comparisons: Comparisons,
    /// The archives of images that may still be made at the same time.
    pub(crate) archives: Turns<PayerId>,
    /// The exports of teams that may still be made at the same time. Each has a part of its rows in memory.
    pub(crate) exports: Turns<PayerId>,
}

/// Placeholders, and differences between them, as anybody may request them: they are not stored, but made again.
pub(crate) struct ShownPlaceholders {
    pub(crate) images: Placeholder,
    pub(crate) differences: Differences,
}

impl ShownPlaceholders {
    fn new(images: Placeholder, memory: &MemoryBudget) -> Self {
        let differences = Differences::new(images.clone(), memory.clone());
        Self { images, differences }
    }
}

impl Grabs {
    pub(crate) fn new(images: Images, memory: MemoryBudget, placeholder: Placeholder, domains: DomainPolicy) -> Self {
        let (thumbnails, storage) = (Thumbnails::default(), Storage::default());
        let differences = Differences::new(placeholder.clone(), memory.clone());
        let shown = ShownPlaceholders::new(placeholder.for_visitors(), &memory);
        let archives = Turns::new(archive::MAX_ARCHIVES, archive::MAX_OF_ACCOUNT);
        let exports = Turns::new(MAX_EXPORTS, archive::MAX_OF_ACCOUNT);
        Self {
            images,
            memory,
            placeholder,
            shown,
            thumbnails,
            domains,
            storage,
            budgets: Budgets::default(),
            differences,
            comparisons: Comparisons::default(),
            archives,
            exports,
        }
    }
}
