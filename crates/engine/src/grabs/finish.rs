//! Records the result of an attempt, as reported by the renderer. Only the holder of the lease can, and only once.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::capture::FileKind;
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{
    Failure, FileKey, GrabFile, GrabSlice, GrabStepImage, GrabViewport, ImageKey, RenderMetadata, SlicePlace,
    StepImage, ViewportSize,
};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_domain::limits::COMPARE_LIMIT;
use grabd_images::Upload;
use grabd_store::grabs::{Completion, EndedGrab, FailGrab, FailureSource};

use super::evidence::OnlyPacked;
use super::not_completed::NotCompleted;
use super::run_final_steps;
use crate::admission::{self, SlotUse};
use crate::failpoints::{self, Step};
use crate::image_digest::ImageDigest;
use crate::metrics::ImageWay;
use crate::proxies;
use crate::queue::{self, EvidenceStep, sweep};
use crate::random;
use crate::service::Core;

/// The result of an attempt.
pub enum AttemptResult {
    /// The page was rendered. The files are those that were asked for.
    Image {
        /// The image.
        image: ReceivedImage,
        /// The attachments.
        files: ReceivedFiles,
        /// How long the render took.
        execution_ms: u32,
        /// What the renderer reports about the page.
        metadata: RenderMetadata,
    },
    /// The page caused the failure. Final.
    Failure {
        /// The failure.
        failure: Failure,
        /// What the renderer reports about the page.
        metadata: RenderMetadata,
    },
    /// The renderer caused the failure. The job is released and rendered again.
    Released {
        /// For the log.
        cause: String,
    },
}

/// The image of an attempt.
pub enum ReceivedImage {
    /// In memory.
    Whole(Bytes),
    /// Received in parts, which are on disk already.
    Parts(Box<Upload>, ImageDigest),
    /// Uploaded to the object store by the renderer, as it reports.
    Uploaded {
        /// The size in bytes.
        size_bytes: u64,
        /// The SHA-256 in lower-case hexadecimal digits.
        sha256: String,
    },
}

/// The attachments of an attempt, which are on disk already.
#[derive(Default)]
pub struct ReceivedFiles {
    pub(crate) also: Vec<ReceivedFile>,
    /// From top to bottom.
    pub(crate) slices: Vec<ReceivedSlice>,
    /// In the order of the request.
    pub(crate) viewports: Vec<ReceivedViewport>,
    /// In the order of the steps.
    pub(crate) step_images: Vec<ReceivedStepImage>,
}

/// A file of the page: one that `also` asked for, or one for the evidence.
pub(crate) struct ReceivedFile {
    pub(crate) kind: FileKind,
    pub(crate) upload: Upload,
}

/// A slice of the image.
pub(crate) struct ReceivedSlice {
    pub(crate) place: SlicePlace,
    pub(crate) upload: Upload,
}

/// The image in a further viewport.
pub(crate) struct ReceivedViewport {
    pub(crate) size: ViewportSize,
    pub(crate) upload: Upload,
}

/// An image that a step took.
pub(crate) struct ReceivedStepImage {
    pub(crate) image: StepImage,
    pub(crate) upload: Upload,
}

impl ReceivedImage {
    fn size_bytes(&self) -> u64 {
        match self {
            Self::Whole(image) => u64::try_from(image.len()).unwrap_or(0),
            Self::Parts(upload, _) => upload.bytes(),
            Self::Uploaded { size_bytes, .. } => *size_bytes,
        }
    }

    /// How the image came to where it is stored.
    const fn way(&self) -> ImageWay {
        match self {
            Self::Whole(_) | Self::Parts(..) => ImageWay::Core,
            Self::Uploaded { .. } => ImageWay::Direct,
        }
    }
}

/// Takes out the files that are not stored beside the image, but only in its evidence.
async fn take_packed(
    files: &mut ReceivedFiles,
    evidence: Option<&EvidenceStep>,
) -> Result<OnlyPacked, grabd_images::Error> {
    let Some(EvidenceStep { only_packed }) = evidence else { return Ok(OnlyPacked::new()) };
    let (packed, stored): (Vec<ReceivedFile>, Vec<ReceivedFile>) =
        std::mem::take(&mut files.also).into_iter().partition(|file| only_packed.contains(&file.kind));
    files.also = stored;
    let mut taken = OnlyPacked::new();
    for ReceivedFile { kind, upload } in packed {
        taken.push((kind, upload.into_temporary().await?));
    }
    Ok(taken)
}

/// Stores the image and the attachments within a time, and adds them to the metadata. An image that the renderer has
/// uploaded must be there with the reported size. Files that are left behind by an error are deleted with the image, whose
/// key is then scheduled for deletion.
async fn store_files(
    core: &Core,
    key: &ImageKey,
    image: ReceivedImage,
    ReceivedFiles { also, slices, viewports, step_images }: ReceivedFiles,
    metadata: &mut RenderMetadata,
    limit: Duration,
) -> Result<(), grabd_images::Error> {
    metadata.difference = None;
    let new_key = || FileKey::new(random::random());
    let files = also.iter();
    metadata.files =
        files.map(|file| GrabFile { kind: file.kind, key: new_key(), bytes: file.upload.bytes() }).collect();
    let stored = |ReceivedSlice { place, upload }: &ReceivedSlice| GrabSlice {
        key: new_key(),
        bytes: upload.bytes(),
        place: place.clone(),
    };
    metadata.slices = slices.iter().map(stored).collect();
    let image_in = |ReceivedViewport { size, upload }: &ReceivedViewport| GrabViewport {
        key: new_key(),
        bytes: upload.bytes(),
        size: *size,
    };
    metadata.viewports = viewports.iter().map(image_in).collect();
    let image_of = |ReceivedStepImage { image, upload }: &ReceivedStepImage| GrabStepImage {
        key: new_key(),
        bytes: upload.bytes(),
        image: image.clone(),
    };
    metadata.step_images = step_images.iter().map(image_of).collect();
    let beside = also.into_iter().map(|file| file.upload).chain(slices.into_iter().map(|slice| slice.upload));
    let beside = beside.chain(viewports.into_iter().map(|image| image.upload));
    let beside = beside.chain(step_images.into_iter().map(|taken| taken.upload));
    metadata.image_sha256 = Some(match image {
        ReceivedImage::Whole(image) => {
            let sha256 = ImageDigest::of(&image);
            core.grabs.images.put(key, image, limit).await?;
            Upload::finish_all(beside.collect(), limit).await?;
            sha256
        }
        ReceivedImage::Parts(upload, digest) => {
            Upload::finish_all(std::iter::once(*upload).chain(beside).collect(), limit).await?;
            digest.into_hex()
        }
        ReceivedImage::Uploaded { size_bytes, sha256 } => {
            core.grabs.images.check_uploaded(key, size_bytes, limit).await?;
            Upload::finish_all(beside.collect(), limit).await?;
            sha256
        }
    });
    Ok(())
}

/// The outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeUnknown {
    /// The database is unavailable. The renderer should retry.
    #[error(transparent)]
    Database(#[from] grabd_store::Error),
    /// A defect of the service.
    #[error("recording the result panicked")]
    Panicked(#[source] tokio::task::JoinError),
}

/// Ends the attempt. Returns `false` and changes nothing when the lease is no longer held.
///
/// # Errors
/// [`OutcomeUnknown`] when the database fails. Retrying is safe.
pub(crate) async fn finish(
    core: &Core,
    grab: GrabId,
    token: LeaseToken,
    result: AttemptResult,
) -> Result<bool, OutcomeUnknown> {
    let lease = Some((grab, token));
    core.queue.dispatcher.note_report(token);
    failpoints::reach(core, Step::Rendered, lease).await?;
    let mut used = SlotUse::Fine;
    let result = match result {
        AttemptResult::Image { metadata, image, files, execution_ms } => {
            match core.grabs.domains.check_document(metadata.final_url.as_deref()) {
                Ok(()) => AttemptResult::Image { image, files, execution_ms, metadata },
                Err(failure) => AttemptResult::Failure { failure, metadata },
            }
        }
        result @ (AttemptResult::Failure { .. } | AttemptResult::Released { .. }) => result,
    };
    let ended = match result {
        AttemptResult::Image { image, mut files, execution_ms, mut metadata } => {
            let Some(key) = core.queue.dispatcher.upload_key(token) else { return Ok(false) };
            let (size_bytes, way) = (image.size_bytes(), image.way());
            let received_at = core.clock.now();
            let limit = core.queue.dispatcher.storing_time(token, received_at);
            let steps = core.queue.dispatcher.final_steps(token);
            let only_packed = match take_packed(&mut files, steps.evidence.as_ref()).await {
                Ok(only_packed) => only_packed,
                Err(error) => return Ok(not_stored(core, grab, token, &error).await),
            };
            if let Err(error) = store_files(core, &key, image, files, &mut metadata, limit).await {
                return Ok(not_stored(core, grab, token, &error).await);
            }
            failpoints::reach(core, Step::Stored, lease).await?;
            // The comparison has its own part of the lease.
            let limit = core.queue.dispatcher.storing_time(token, core.clock.now()) + COMPARE_LIMIT;
            let stored = (&key, only_packed);
            let finished = run_final_steps::run(core, &steps, (grab, received_at), stored, &mut metadata, limit).await;
            let now = core.clock.now();
            match finished {
                Ok(()) => {
                    let upload_key = key;
                    let completion = Completion { grab, token, upload_key, size_bytes, execution_ms, metadata, now };
                    core.store.grabs().complete(completion).await?.inspect(|_| core.metrics.image_stored(way))
                }
                Err(NotCompleted::Failed(failure)) => {
                    used = if failure.cause == ErrorCause::Service { SlotUse::Fine } else { SlotUse::Failed };
                    // The image and its files are deleted.
                    let metadata = RenderMetadata {
                        image_sha256: None,
                        files: Vec::new(),
                        slices: Vec::new(),
                        viewports: Vec::new(),
                        step_images: Vec::new(),
                        difference: None,
                        phash: None,
                        ..metadata
                    };
                    let source = FailureSource::Lease(token);
                    core.store.grabs().fail(FailGrab { grab, source, failure, metadata, now }).await?
                }
                Err(NotCompleted::NotStored(error)) => return Ok(not_stored(core, grab, token, &error).await),
                Err(NotCompleted::Database(error)) => return Err(error.into()),
            }
        }
        AttemptResult::Failure { failure, metadata } => {
            let now = core.clock.now();
            // Also when a page had little time because its grab had waited: the page used the slot.
            used = SlotUse::Failed;
            if let Some(proxy) = core.queue.dispatcher.proxy(token) {
                // Before anybody can see that the grab failed.
                proxies::record_failure(core, proxy, &failure).await;
            }
            core.store
                .grabs()
                .fail(FailGrab { grab, source: FailureSource::Lease(token), failure, metadata, now })
                .await?
        }
        AttemptResult::Released { cause } => {
            let lost = core.queue.dispatcher.forget(token);
            let accepted = sweep::release(core, grab, token, &cause).await;
            match lost.filter(|_| accepted) {
                // Every attempt but the first has its own browser, so a page whose browser ends is probably the cause.
                Some(lost) if lost.attempt > 1 => admission::slot_used(core, lost, SlotUse::Failed).await,
                Some(lost) => core.queue.dispatcher.note_lost(grab, lost, core.clock.now()),
                None => {}
            }
            return Ok(accepted);
        }
    };
    failpoints::reach(core, Step::Completed, lease).await?;
    let lease = core.queue.dispatcher.forget(token);
    let Some(EndedGrab { grab }) = ended else { return Ok(false) };
    // Before the caller gets the result: the next create must find the reduced budget.
    if let Some(lease) = lease {
        admission::slot_used(core, lease, used).await;
    }
    queue::record_end(core, grab);
    Ok(true)
}

/// Releases the lease of an attempt whose image could not be stored. Returns whether the lease was still held.
pub(crate) async fn not_stored(core: &Core, grab: GrabId, token: LeaseToken, error: &grabd_images::Error) -> bool {
    tracing::error!(%error, grab.id = %grab, "an image could not be stored");
    sweep::release(core, grab, token, "its image could not be stored").await
}
