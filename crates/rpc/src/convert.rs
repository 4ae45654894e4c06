//! Conversions between protobuf messages and domain types. They destructure completely, so a new field is a compile
//! error until it is handled.

use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, Format, Tolerance};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{
    Class, Difference, Grab, GrabFile, Region, RenderMetadata, ShownFile, Stage, Stages, State, Status,
};
use grabd_engine::grabs::{CreateError, CreateRequest, CreateResult, ListRequest};
use grabd_proto::{options, v1};

use crate::numbers::to_i32;
use crate::page_info;
use crate::render_metadata::{to_findings, to_settled_by, to_timings};
use crate::status::{cause_to_proto, to_batch_error, to_proto};

/// Converts a create request of a caller that may read grabs or not. Unknown enum values are passed on as numbers, so
/// that validation reports them.
pub(crate) fn create_request(request: v1::CreateGrabRequest, may_read: bool) -> CreateRequest {
    let v1::CreateGrabRequest {
        url,
        width,
        height,
        format,
        full_page,
        delay_ms,
        selector,
        mode,
        idempotency_key,
        options,
        unparsed,
        unknown,
    } = request;
    let class = match v1::CreateMode::try_from(mode) {
        Ok(v1::CreateMode::Async) => Class::Async,
        Ok(v1::CreateMode::Sync | v1::CreateMode::Unspecified) | Err(_) => Class::Sync,
    };
    let format = match v1::ImageFormat::try_from(format) {
        Ok(v1::ImageFormat::Unspecified) => None,
        Ok(v1::ImageFormat::Png) => Some(Format::Png.as_str().to_owned()),
        Ok(v1::ImageFormat::Jpeg) => Some(Format::Jpeg.as_str().to_owned()),
        Ok(v1::ImageFormat::Webp) => Some(Format::Webp.as_str().to_owned()),
        Err(_) => Some(format.to_string()),
    };
    let options = options.unwrap_or_default();
    let options = v1::CaptureOptions {
        url: options.url.or(url),
        width: options.width.or(width),
        height: options.height.or(height),
        format: options.format.or(format),
        full_page: options.full_page.or(full_page),
        delay_ms: options.delay_ms.or(delay_ms),
        selector: options.selector.or(selector),
        ..options
    };
    let capture = CaptureRequest { unknown, ..options::decode(options, unparsed) };
    CreateRequest { capture, tolerance: Tolerance::default(), class, idempotency_key, may_read, is_link: false }
}

/// Converts a request of a batch, which is always asynchronous.
pub(crate) fn queued_request(request: v1::CreateGrabRequest, may_read: bool) -> CreateRequest {
    CreateRequest { class: Class::Async, ..create_request(request, may_read) }
}

/// Converts the result of one capture of a batch.
pub(crate) fn batch_result(result: &Result<CreateResult, CreateError>, public_url: &str) -> v1::BatchResult {
    use v1::batch_result::Result as Wire;
    let (result, replayed) = match result {
        Ok(created) => (Wire::Grab(Box::new(self::created(created, public_url))), created.replayed),
        Err(refusal) => (Wire::Error(to_batch_error(refusal)), false),
    };
    v1::BatchResult { result: Some(result), replayed }
}

/// Converts a list request.
pub(crate) fn list_request(request: v1::ListGrabsRequest) -> ListRequest {
    // The grabs with these ids are read by another use case.
    let v1::ListGrabsRequest { limit, status, starting_after, ending_before, url, from, until, ids: _, unparsed } =
        request;
    let limit = limit.map(i64::from);
    let mut unparsed = unparsed_fields(unparsed);
    let status = match v1::GrabStatus::try_from(status) {
        Ok(v1::GrabStatus::Unspecified) => None,
        Ok(v1::GrabStatus::Pending) => Some(Status::Pending),
        Ok(v1::GrabStatus::Processing) => Some(Status::Processing),
        Ok(v1::GrabStatus::Done) => Some(Status::Done),
        Ok(v1::GrabStatus::Failed) => Some(Status::Failed),
        Err(_) => {
            unparsed.push(("status".to_owned(), status.to_string()));
            None
        }
    };
    // Only pages list the grabs of a key.
    let (key, oldest_first) = (None, false);
    ListRequest { limit, status, key, starting_after, ending_before, oldest_first, url, from, until, unparsed }
}

/// Fields of the wrong type: name and received value.
pub(crate) fn unparsed_fields(unparsed: Vec<v1::Unparsed>) -> Vec<(String, String)> {
    unparsed.into_iter().map(|v1::Unparsed { field, seen }| (field, seen)).collect()
}

/// Converts the grab of a create.
pub(crate) fn created(result: &CreateResult, public_url: &str) -> v1::Grab {
    v1::Grab { cached: result.cached.then_some(true), ..grab(&result.grab, public_url) }
}

/// Converts a grab.
pub(crate) fn grab(grab: &Grab, public_url: &str) -> v1::Grab {
    let Grab { id, team: _, environment, class: _, spec, created_at, deleted_at: _, attempts: _, state } = grab;
    let mut wire = v1::Grab {
        id: id.to_string(),
        status: status(grab.status()).into(),
        created_at: Some(timestamp(*created_at)),
        target_url: spec.url.to_string(),
        width: to_i32(spec.viewport.width()),
        height: to_i32(spec.reported_height()),
        format: format(spec.format).into(),
        revision: i64::try_from(grab.revision()).unwrap_or(i64::MAX),
        live: *environment == Environment::Live,
        metadata: spec.metadata.clone().into_iter().collect(),
        ..v1::Grab::default()
    };
    match state {
        State::Pending | State::Processing => {}
        State::Done { finished_at: _, image, size_bytes, execution_ms, metadata } => {
            // Over REST, those of placeholders are relative. A client of gRPC has no origin to resolve them with.
            let origin = public_url;
            wire.image_url = image.as_ref().map(|key| format!("{origin}/{}", key.path()));
            // The files are deleted with the image.
            let files = metadata.shown_files(spec.format).filter(|_| image.is_some());
            wire.files = files.map(|file| grab_file(&file, origin)).collect();
            let difference_image = metadata.difference_image().filter(|_| image.is_some());
            wire.difference = metadata.difference.as_ref().map(|of| difference(of, difference_image, origin));
            wire.image_sha256 = metadata.image_sha256.clone();
            wire.phash = metadata.phash.map(|hash| hash.to_string());
            wire.bytes = i64::try_from(*size_bytes).ok();
            wire.execution_ms = i32::try_from(*execution_ms).ok();
            add_facts(&mut wire, metadata);
            wire.timings = metadata.timings.map(|timings| to_timings(timings, grab.queued_ms()));
        }
        State::Failed { finished_at: _, failure, metadata } => {
            wire.error_message = Some(failure.message.clone());
            wire.failure_reason = to_proto(failure.reason.code()).into();
            wire.error_cause = cause_to_proto(failure.cause).into();
            add_facts(&mut wire, metadata);
        }
    }
    wire.warnings.extend(spec.unknown_warnings());
    wire
}

/// Converts the stages that a render has reached.
pub(crate) fn stages(stages: &Stages) -> Vec<v1::StageReached> {
    stages.iter().map(|(stage, ms)| v1::StageReached { stage: stage_to_proto(stage).into(), ms }).collect()
}

/// Converts a stage.
pub(crate) const fn stage_to_proto(stage: Stage) -> v1::RenderStage {
    match stage {
        Stage::Navigating => v1::RenderStage::Navigating,
        Stage::Loaded => v1::RenderStage::Loaded,
        Stage::Settling => v1::RenderStage::Settling,
        Stage::Captured => v1::RenderStage::Captured,
    }
}

/// Converts a stage that a renderer reports. `None` if it is not known here.
pub(crate) const fn stage_from_proto(stage: v1::RenderStage) -> Option<Stage> {
    Some(match stage {
        v1::RenderStage::Navigating => Stage::Navigating,
        v1::RenderStage::Loaded => Stage::Loaded,
        v1::RenderStage::Settling => Stage::Settling,
        v1::RenderStage::Captured => Stage::Captured,
        v1::RenderStage::Unspecified => return None,
    })
}

/// Converts a grab of a list, which has many: without the headings of slices, which may be long.
pub(crate) fn listed(found: &Grab, public_url: &str) -> v1::Grab {
    let mut wire = grab(found, public_url);
    for file in &mut wire.files {
        file.heading = None;
    }
    wire
}

fn grab_file(file: &ShownFile<'_>, origin: &str) -> v1::GrabFile {
    v1::GrabFile {
        kind: file.kind().to_owned(),
        url: format!("{origin}/{}", file.path),
        media_type: file.media_type.to_owned(),
        bytes: i64::try_from(file.bytes).unwrap_or(i64::MAX),
        y: file.place.map(|place| to_i32(place.y)),
        height: file.height().map(to_i32),
        heading: file.place.and_then(|place| place.heading.clone()),
        width: file.width().map(to_i32),
        viewport: file.viewport.map(|size| v1::Viewport {
            width: Some(size.viewport_width.into()),
            height: Some(size.viewport_height.into()),
        }),
        name: file.step_image.map(|image| image.name.clone()),
    }
}

fn difference(difference: &Difference, image: Option<&GrabFile>, origin: &str) -> v1::Difference {
    let region = |Region { x, y, width, height }: &Region| {
        let [x, y, width, height] = [x, y, width, height].map(|pixels| to_i32(*pixels));
        v1::Region { x, y, width, height }
    };
    v1::Difference {
        compared_to: difference.compared_to.to_string(),
        ratio: difference.ratio(),
        regions: difference.regions.iter().map(region).collect(),
        image_url: image.map(|file| format!("{origin}/{}", file.path())),
    }
}

fn add_facts(wire: &mut v1::Grab, metadata: &RenderMetadata) {
    let RenderMetadata {
        final_url,
        http_status,
        settled_by,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        warnings,
        page,
        redirects,
        timings: _,
        image_sha256: _,
        files: _,
        slices: _,
        viewports: _,
        step_images: _,
        findings,
        difference: _,
        phash: _,
    } = metadata;
    wire.final_url = final_url.clone();
    wire.http_status = http_status.map(i32::from);
    wire.settled_by = to_settled_by(*settled_by).into();
    wire.blocked_requests = i32::try_from(*blocked_requests).ok();
    wire.image_width = image_width.map(to_i32);
    wire.image_height = image_height.map(to_i32);
    wire.truncated = Some(*truncated);
    wire.warnings = warnings.iter().map(ToString::to_string).collect();
    page_info::add_to(wire, page);
    wire.redirects = redirects.map(to_i32);
    (wire.challenge, wire.consent, wire.blocked, wire.blank) = to_findings(findings);
}

const fn status(status: Status) -> v1::GrabStatus {
    match status {
        Status::Pending => v1::GrabStatus::Pending,
        Status::Processing => v1::GrabStatus::Processing,
        Status::Done => v1::GrabStatus::Done,
        Status::Failed => v1::GrabStatus::Failed,
    }
}

const fn format(format: Format) -> v1::ImageFormat {
    match format {
        Format::Png => v1::ImageFormat::Png,
        Format::Jpeg => v1::ImageFormat::Jpeg,
        Format::Webp => v1::ImageFormat::Webp,
    }
}

/// Converts a timestamp.
pub(crate) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    let ms = at.as_ms();
    let nanos = i32::try_from(ms.rem_euclid(1000) * 1_000_000).unwrap_or(0);
    prost_types::Timestamp { seconds: ms.div_euclid(1000), nanos }
}
