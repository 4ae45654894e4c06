//! Creates with test keys: the same validation, a placeholder instead of a render, and no credits.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::capture::{CaptureSpec, FileKind};
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{
    Class, Failure, FailureReason, FileKey, Grab, GrabFile, GrabSlice, GrabStepImage, GrabViewport, ImageKey,
    RenderMetadata, State,
};
use grabd_domain::ids::GrabId;
use grabd_domain::render::{Capture, CapturedFile, CapturedSlice, CapturedStepImage, CapturedViewport};
use grabd_domain::storage::{Counted, StorageCeiling};
use grabd_domain::{Fault, Timestamp};
use grabd_store::grabs::{NewPlaceholder, PlaceholderOutcome};

use super::compare::compare_placeholder;
use super::derived::Derived;
use super::request::{CreateResult, ValidCreate};
use super::{evidence, idempotency, phash};
use crate::error::Error;
use crate::placeholder::{SimulatedOutcome, simulated_outcome};
use crate::service::Core;
use crate::{random, storage};

/// Duration of grabs of `slow.test`.
const SLOW_DURATION: Duration = Duration::from_secs(3);

/// Creates a grab with a placeholder, or with the failure that a reserved `.test` name stands for.
pub(crate) async fn create(core: &Core, caller: Caller, create: ValidCreate) -> Result<CreateResult, Error> {
    let ValidCreate { spec, record, fingerprint, .. } = create;
    storage::check_disk(core, storage::Creator::Test)?;
    let ceiling = storage::test_ceiling(core, caller.team).await?;
    // A placeholder does not depend on secrets, apart from the names of the images that steps take.
    let image_names = spec.secrets.image_names();
    let spec = spec.without_secrets();
    let (failure, duration) = requested_outcome(&spec, core.async_queue(caller.team))?;
    let now = core.clock.now();
    let id = random::grab_id(now);
    let state = match failure {
        Some(failure) => State::Failed { finished_at: now, failure, metadata: RenderMetadata::default() },
        None => {
            let image = ImageKey::new(random::random(), spec.format.as_str());
            let Capture { image: file, mut metadata, execution_ms, files, slices, viewports, step_images } =
                core.grabs.placeholder.capture(&spec, image_names).await?;
            metadata.files = files.iter().map(grab_file).collect();
            metadata.slices = slices.into_iter().map(grab_slice).collect();
            metadata.viewports = viewports.into_iter().map(grab_viewport).collect();
            metadata.step_images = step_images.into_iter().map(grab_step_image).collect();
            let size_bytes = u64::try_from(file.len()).unwrap_or(0);
            match final_steps(core, (id, now), &spec, file, &mut metadata).await {
                Ok(()) => {
                    State::Done { finished_at: now + duration, image: Some(image), size_bytes, execution_ms, metadata }
                }
                Err(failure) => State::Failed { finished_at: now, failure, metadata: RenderMetadata::default() },
            }
        }
    };
    let new = NewPlaceholder {
        id,
        team: caller.team,
        creator: Some(caller.principal),
        spec: spec.clone(),
        now,
        outcome: state.clone(),
        idempotency: record,
        fingerprint,
        ceiling,
    };
    match core.store.grabs().create_placeholder(new).await? {
        PlaceholderOutcome::Stored => {}
        PlaceholderOutcome::Repeated(repeat) => return Ok(idempotency::replay(repeat, &spec)?),
        PlaceholderOutcome::StorageFull => {
            let ceiling = StorageCeiling { counted: Counted::Test, bytes: ceiling.unwrap_or(i64::MAX) };
            return Err(storage::refuse(core, caller.team, ceiling).await);
        }
    }
    // The delay of `slow.test`. It ends when the caller disconnects, and a drain waits for it as for every open request. The
    // grab is stored before, so that its idempotency key is in flight during the delay. All others respond at once: a sleep of
    // no time takes a millisecond, since tokio's timers are rounded up to that.
    if !duration.is_zero() {
        tokio::time::sleep((now + duration).since(core.clock.now())).await;
    }
    let grab = Grab {
        id,
        team: caller.team,
        environment: caller.environment,
        class: Class::Sync,
        spec,
        created_at: now,
        deleted_at: None,
        attempts: 0,
        state,
    };
    core.metrics.grab_ended(&grab);
    Ok(CreateResult::first(grab))
}

/// Does what the grab asks for with its placeholder, and adds the results to the metadata.
async fn final_steps(
    core: &Core,
    grab: (GrabId, Timestamp),
    spec: &CaptureSpec,
    file: Bytes,
    metadata: &mut RenderMetadata,
) -> Result<(), Failure> {
    compare_placeholder(core, spec, metadata).await?;
    if spec.phash {
        let hash = phash::of_bytes(core, file, spec.format).await;
        metadata.phash = Some(hash.map_err(|error| error.to_failure(Derived::Hash))?);
    }
    if spec.evidence {
        let made = evidence::of_placeholder(core, &core.grabs.placeholder, grab, spec).await;
        let content = made.map_err(|error| error.to_failure(Derived::Evidence))?;
        metadata.files.push(grab_file(&CapturedFile { kind: FileKind::Evidence, content }));
    }
    Ok(())
}

fn grab_file(CapturedFile { kind, content }: &CapturedFile) -> GrabFile {
    let bytes = u64::try_from(content.len()).unwrap_or(0);
    GrabFile { kind: *kind, key: FileKey::new(random::random()), bytes }
}

fn grab_slice(CapturedSlice { place, content }: CapturedSlice) -> GrabSlice {
    let bytes = u64::try_from(content.len()).unwrap_or(0);
    GrabSlice { key: FileKey::new(random::random()), bytes, place }
}

fn grab_viewport(CapturedViewport { size, content }: CapturedViewport) -> GrabViewport {
    let bytes = u64::try_from(content.len()).unwrap_or(0);
    GrabViewport { key: FileKey::new(random::random()), bytes, size }
}

fn grab_step_image(CapturedStepImage { image, content }: CapturedStepImage) -> GrabStepImage {
    let bytes = u64::try_from(content.len()).unwrap_or(0);
    GrabStepImage { key: FileKey::new(random::random()), bytes, image }
}

/// The outcome that a reserved `.test` name stands for: a failure, and a duration. `async_queue` is the limit of open
/// asynchronous grabs that one of the failures names.
///
/// # Errors
/// The error that the name stands for.
pub(super) fn requested_outcome(spec: &CaptureSpec, async_queue: u32) -> Result<(Option<Failure>, Duration), Fault> {
    let failed = |reason, message| Ok((Some(Failure::new(reason, message)), Duration::ZERO));
    match simulated_outcome(&spec.url.host().to_string()) {
        Some(SimulatedOutcome::Exhausted) => Err(Fault::CreditsExhausted),
        Some(SimulatedOutcome::Busy) => Err(Fault::QueueLimitExceeded { limit: async_queue }),
        Some(SimulatedOutcome::Blocked) => {
            failed(FailureReason::RenderBlocked, "The target site blocked the capture: HTTP 403 (a test).")
        }
        Some(SimulatedOutcome::Broken) => {
            failed(FailureReason::RenderFailed, "The page could not be rendered (a test).")
        }
        Some(SimulatedOutcome::Slow) => Ok((None, SLOW_DURATION)),
        None => Ok((None, Duration::ZERO)),
    }
}
