//! Between the wire's messages and the domain. Free functions with full destructuring: a new field does not compile
//! until it is placed.

use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, Format};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Facts, Grab, SettledBy, State, Status};
use grabd_proto::v1;

use super::status::to_proto;
use crate::grabs::{CreateRequest, ListRequest};

/// A create and how it is waited for. Numbers that name no enum value are passed on as what they are, so that they are
/// refused by name.
pub(crate) fn create_request(request: v1::CreateGrabRequest) -> CreateRequest {
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
        unparsed,
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
    let unparsed = pairs(unparsed);
    let capture = CaptureRequest { url, width, height, format, full_page, delay_ms, selector, unparsed };
    CreateRequest { capture, class, idempotency_key }
}

/// A list request.
pub(crate) fn list_request(request: v1::ListGrabsRequest) -> ListRequest {
    let v1::ListGrabsRequest { limit, status, starting_after, ending_before, unparsed } = request;
    let mut unparsed = pairs(unparsed);
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
    ListRequest { limit, status, starting_after, ending_before, unparsed }
}

/// Fields of the wrong type, by name.
pub(super) fn pairs(unparsed: Vec<v1::Unparsed>) -> Vec<(String, String)> {
    unparsed.into_iter().map(|v1::Unparsed { field, seen }| (field, seen)).collect()
}

/// A grab for its owner's eyes.
pub(crate) fn grab(grab: &Grab, public_url: &str) -> v1::Grab {
    let Grab { id, team: _, environment, class: _, spec, created_at, deleted_at: _, attempts: _, state } = grab;
    let mut wire = v1::Grab {
        id: id.to_string(),
        status: status(grab.status()).into(),
        created_at: Some(timestamp(*created_at)),
        target_url: spec.url.to_string(),
        width: pixels(spec.viewport.width()),
        height: pixels(spec.reported_height()),
        format: format(spec.format).into(),
        revision: i64::try_from(grab.revision()).unwrap_or(i64::MAX),
        live: *environment == Environment::Live,
        ..v1::Grab::default()
    };
    match state {
        State::Pending | State::Processing => {}
        State::Done { finished_at: _, image, size_bytes, execution_ms, facts } => {
            // A placeholder's address is relative to the API's origin, as the contract has it.
            let origin = if wire.live { public_url } else { "" };
            wire.image_url = image.as_ref().map(|key| format!("{origin}/{}", key.path()));
            wire.bytes = i64::try_from(*size_bytes).ok();
            wire.execution_ms = i32::try_from(*execution_ms).ok();
            add_facts(&mut wire, facts);
        }
        State::Failed { finished_at: _, failure, facts } => {
            wire.error_message = Some(failure.message.clone());
            wire.failure_reason = to_proto(failure.reason.code()).into();
            add_facts(&mut wire, facts);
        }
    }
    wire
}

fn add_facts(wire: &mut v1::Grab, facts: &Facts) {
    let Facts { final_url, http_status, settled_by, blocked_requests, image_width, image_height, truncated } = facts;
    wire.final_url = final_url.clone();
    wire.http_status = http_status.map(i32::from);
    wire.settled_by = match settled_by {
        Some(SettledBy::Quiet) => v1::SettledBy::Quiet,
        Some(SettledBy::Deadline) => v1::SettledBy::Deadline,
        None => v1::SettledBy::Unspecified,
    }
    .into();
    wire.blocked_requests = i32::try_from(*blocked_requests).ok();
    wire.image_width = image_width.map(pixels);
    wire.image_height = image_height.map(pixels);
    wire.truncated = Some(*truncated);
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

/// A point in time on the wire.
pub(crate) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    let ms = at.as_ms();
    let nanos = i32::try_from(ms.rem_euclid(1000) * 1_000_000).unwrap_or(0);
    prost_types::Timestamp { seconds: ms.div_euclid(1000), nanos }
}

fn pixels(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}
