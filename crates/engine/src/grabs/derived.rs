//! What is derived from stored images: differences, marks, hashes, thumbnails and evidence. Why it may fail, and the limits of the work.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::capture::{FileKind, Format};
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::limits::{COMPARE_LIMIT, EVIDENCE_LIMIT, MARKS_LIMIT, PHASH_LIMIT, THUMBNAIL_LIMIT};
use grabd_images::LocalCopy;
use grabd_memory::{MemoryBudget, MemoryError};
use grabd_pixels::{EncodingError, PictureError};
use image::ImageError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::not_completed::NotCompleted;
use crate::evidence::KeyError;
use crate::placeholder;

/// A stored image.
pub(crate) struct Picture {
    pub(crate) source: Source,
    pub(crate) format: Format,
}

/// Where an image is.
pub(crate) enum Source {
    File(LocalCopy),
    Memory(Bytes),
}

impl Picture {
    /// The same, as work on pixels takes it.
    pub(crate) fn view(&self) -> grabd_pixels::Picture<'_> {
        let source = match &self.source {
            Source::File(file) => grabd_pixels::Source::File(file.path()),
            Source::Memory(bytes) => grabd_pixels::Source::Memory(bytes),
        };
        grabd_pixels::Picture { source, format: placeholder::pixel_format(self.format) }
    }
}

/// What a grab asks for, derived from its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derived {
    /// The difference from an earlier image.
    Difference,
    /// The image with marks.
    Marks,
    /// The perceptual hash.
    Hash,
    /// The smaller copy.
    Thumbnail,
    /// The signed package.
    Evidence,
}

/// Why nothing was derived from an image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The image, or the earlier one of a difference, was deleted.
    #[error("the image was deleted")]
    Deleted,
    /// Other images took the memory.
    #[error("other images take the memory")]
    Busy,
    /// More memory than all images together may take.
    #[error("the image is too large for the memory of images")]
    TooLarge,
    /// The time limit has passed.
    #[error("the work took too long")]
    TooSlow,
    /// What was drawn would be larger than a file may be.
    #[error("the drawn image is too large")]
    DrawingTooLarge,
    /// An image cannot be decoded.
    #[error("an image cannot be decoded")]
    Undecodable(#[source] ImageError),
    /// An image or its elements cannot be read.
    #[error("an image or its elements cannot be read")]
    Unreadable(#[source] io::Error),
    /// The list of elements or the report is not valid.
    #[error("the list of elements or the report is not valid")]
    InvalidElements(#[from] serde_json::Error),
    /// An image cannot be loaded from the storage.
    #[error(transparent)]
    Storage(#[from] grabd_images::Error),
    /// What was drawn cannot be written.
    #[error("the drawn image cannot be written")]
    Unwritable(#[source] io::Error),
    /// A defect of the encoder.
    #[error("the drawn image cannot be encoded")]
    Encoding(#[source] EncodingError),
    /// A placeholder could not be drawn.
    #[error(transparent)]
    Placeholder(#[from] placeholder::Error),
    /// There is no key that signs evidence.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The task panicked, or the service is stopping.
    #[error("the task ended early")]
    Task(#[from] tokio::task::JoinError),
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Busy => Self::Busy,
            MemoryError::TooLarge => Self::TooLarge,
        }
    }
}

impl From<PictureError> for Error {
    fn from(error: PictureError) -> Self {
        match error {
            PictureError::Undecodable(error) => Self::Undecodable(error),
            PictureError::Unreadable(error) => Self::Unreadable(error),
            PictureError::Unwritable(error) => Self::Unwritable(error),
            PictureError::Encoding(error) => Self::Encoding(error),
            PictureError::DrawingTooLarge => Self::DrawingTooLarge,
            PictureError::Stopped => Self::TooSlow,
        }
    }
}

impl Error {
    /// Whether trying again in a few seconds may help.
    pub(crate) const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy | Self::TooSlow | Self::Placeholder(placeholder::Error::Busy))
    }

    /// Why a grab that asks for this is not done.
    pub(super) fn not_completed(self, what: Derived) -> NotCompleted {
        if let Self::Unwritable(error) = self {
            NotCompleted::NotStored(error.into())
        } else if let Self::Key(KeyError::Store(error)) = self {
            NotCompleted::Database(error)
        } else {
            NotCompleted::Failed(self.to_failure(what))
        }
    }

    /// The failure of a grab that asks for this. Errors of the service itself are logged.
    pub(super) fn to_failure(&self, what: Derived) -> Failure {
        let failed = |message: String| Failure::new(FailureReason::RenderFailed, message);
        let by_service = |message: String| failed(message).caused_by(ErrorCause::Service);
        let words = what.words();
        match self {
            Self::Deleted if what == Derived::Difference => {
                let message = "The image of the grab in compare_to was deleted before it was compared.".to_owned();
                failed(message).caused_by(ErrorCause::Request)
            }
            Self::TooLarge => failed(format!("{} {SMALLER}", words.too_large)),
            Self::DrawingTooLarge => {
                let megabytes = words.max_bytes >> 20;
                failed(format!("{} would have more than {megabytes} MB. {SMALLER}", words.file))
            }
            Self::Busy | Self::Placeholder(placeholder::Error::Busy) if what == Derived::Difference => {
                by_service("The images could not be compared, because other images take the memory.".to_owned())
            }
            Self::Busy | Self::TooSlow => by_service(format!("{} within {} s.", words.not_done, words.limit.as_secs())),
            error @ (Self::Deleted
            | Self::Undecodable(_)
            | Self::Unreadable(_)
            | Self::InvalidElements(_)
            | Self::Storage(_)
            | Self::Unwritable(_)
            | Self::Encoding(_)
            | Self::Placeholder(_)
            | Self::Key(_)
            | Self::Store(_)
            | Self::Task(_)) => {
                tracing::error!(
                    error = %error, source = ?std::error::Error::source(error), ?what, "nothing was derived from an image"
                );
                by_service(format!("{}, because of an error of the service.", words.not_done))
            }
        }
    }
}

/// What the caller can do about images that are too large.
const SMALLER: &str = "Use a lower scale, a smaller viewport, or max_height.";

/// How messages name it.
struct Words {
    too_large: &'static str,
    not_done: &'static str,
    /// The subject of a sentence.
    file: &'static str,
    max_bytes: u64,
    limit: Duration,
}

impl Derived {
    const fn words(self) -> Words {
        match self {
            Self::Difference => Words {
                too_large: "The images are too large to be compared.",
                not_done: "The images could not be compared",
                file: "The image of the difference",
                max_bytes: FileKind::Difference.max_bytes(),
                limit: COMPARE_LIMIT,
            },
            Self::Marks => Words {
                too_large: "The image is too large for marks.",
                not_done: "The marks could not be drawn",
                file: "The image with marks",
                max_bytes: FileKind::Marks.max_bytes(),
                limit: MARKS_LIMIT,
            },
            // A hash has no file.
            Self::Hash => Words {
                too_large: "The image is too large for a perceptual hash.",
                not_done: "The perceptual hash could not be computed",
                file: "The perceptual hash",
                max_bytes: 0,
                limit: PHASH_LIMIT,
            },
            Self::Thumbnail => Words {
                too_large: "The image is too large for a thumbnail.",
                not_done: "The thumbnail could not be made",
                file: "The thumbnail",
                max_bytes: FileKind::Thumbnail.max_bytes(),
                limit: THUMBNAIL_LIMIT,
            },
            Self::Evidence => Words {
                too_large: "The capture is too large for evidence.",
                not_done: "The evidence could not be made",
                file: "The evidence",
                max_bytes: FileKind::Evidence.max_bytes(),
                limit: EVIDENCE_LIMIT,
            },
        }
    }
}

/// Runs work on images, each part of it where it does not delay other tasks. `look` returns the memory that `work` takes, in
/// bytes, and what it needs; `work` has its memory, and ends soon after the token is cancelled, also when the caller stops
/// waiting.
///
/// # Errors
/// Those of both, and those of memory for which it waits no longer than `wait`.
pub(super) async fn run<L: Send + 'static, T: Send + 'static>(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    wait: Duration,
    look: impl FnOnce() -> Result<(u64, L), Error> + Send + 'static,
    work: impl FnOnce(L, &CancellationToken) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let (bytes, found) = tasks.spawn_blocking(look).await??;
    let memory = memory.reserve(bytes, wait).await?;
    let done = tasks.spawn_blocking(move || {
        let _memory = memory;
        work(found, &stop)
    });
    done.await?
}

/// The same, all of it within a limit.
///
/// # Errors
/// As [`run`], and [`Error::TooSlow`].
pub(super) async fn run_within<L: Send + 'static, T: Send + 'static>(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    limit: Duration,
    look: impl FnOnce() -> Result<(u64, L), Error> + Send + 'static,
    work: impl FnOnce(L, &CancellationToken) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    timeout(limit, run(tasks, memory, limit, look, work)).await.map_err(|_| Error::TooSlow)?
}
