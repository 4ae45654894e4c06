//! `create_grab`: captures a page, and waits for it unless told not to.

use std::time::Duration;

use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CaptureGrabRequest, CreateGrabRequest, CreateMode, Grab, GrabStatus};
use http::HeaderMap;
use tokio::time::{Instant, timeout};

use super::super::progress::Progress;
use super::{Desk, Outcome, shown};
use crate::rest::call::{self, Answer};
use crate::rest::create;
use crate::rest::error::{Failure, INTERNAL};
use crate::rest::fields::Fields;
use crate::rest::json;

/// How often somebody who wants to hear of it is told that a page is still being rendered.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// The core's name of the key.
const KEY: &str = "Idempotency-Key";

#[derive(Debug)]
pub(in super::super) struct Asked {
    message: CreateGrabRequest,
    include_image: bool,
}

pub(super) fn read(fields: &mut Fields<'_>) -> super::Asked {
    let include_image = match super::get_grab::switch(fields, "include_image", true) {
        Ok(include_image) => include_image,
        Err(message) => return super::Asked::Unacceptable(message),
    };
    let mut message = create::captured(fields);
    message.idempotency_key = fields.read("idempotency_key", json::string);
    message.set_mode(match fields.read("async", json::boolean) {
        Some(true) => CreateMode::Async,
        Some(false) | None => CreateMode::Sync,
    });
    message.unparsed = std::mem::take(&mut fields.unparsed);
    for unparsed in message.unparsed.iter_mut().filter(|unparsed| unparsed.field == "idempotency_key") {
        unparsed.field = KEY.to_owned();
    }
    super::Asked::CreateGrab(Box::new(Asked { message, include_image }))
}

pub(super) async fn run(desk: &Desk, asked: Asked, progress: Progress) -> Outcome {
    let Asked { message, include_image } = asked;
    match message.mode() {
        CreateMode::Async => later(desk, message, include_image).await,
        CreateMode::Sync | CreateMode::Unspecified => now(desk, message, include_image, progress).await,
    }
}

/// Leaves the grab with the core. A placeholder is there at once all the same.
async fn later(desk: &Desk, message: CreateGrabRequest, include_image: bool) -> Outcome {
    let mut core = GrabServiceClient::new(desk.mcp.transport.clone());
    let sent = call::request(&desk.headers, message, call::CREATE);
    let Answer { message, metadata } = call::answer(&desk.headers, call::CREATE, core.create_grab(sent)).await?;
    let grab = message.grab.ok_or_else(|| desk.internal("the core created no grab"))?;
    match grab.status() {
        GrabStatus::Failed => Err(failure(grab, &metadata)),
        GrabStatus::Done | GrabStatus::Pending | GrabStatus::Processing | GrabStatus::Unspecified => {
            shown::grab(desk, grab, include_image, metadata).await
        }
    }
}

/// Holds the grab until its end. Dropping this takes the request back.
async fn now(desk: &Desk, create: CreateGrabRequest, include_image: bool, mut progress: Progress) -> Outcome {
    let deadline = Instant::now() + call::CREATE;
    let mut core = GrabServiceClient::new(desk.mcp.transport.clone());
    let sent = call::request(&desk.headers, CaptureGrabRequest { create: Some(create) }, call::CREATE);
    let Answer { message: mut states, metadata } =
        call::answer(&desk.headers, call::CREATE, core.capture_grab(sent)).await?;
    let mut standing = "Waiting for a browser.";
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(TELL_EVERY.min(left), states.message()).await {
            Err(_) if left.is_zero() => return Err(desk.internal("a held grab did not end in time")),
            Err(_) => progress.report(standing, None),
            Ok(Err(status)) => return Err(Failure::of_status(&status, &desk.headers)),
            Ok(Ok(None)) => return Err(desk.internal("a held grab has no end")),
            Ok(Ok(Some(state))) => {
                let grab = state.grab.ok_or_else(|| desk.internal("a held grab is missing"))?;
                match grab.status() {
                    GrabStatus::Done => return shown::grab(desk, grab, include_image, metadata).await,
                    GrabStatus::Failed => return Err(failure(grab, &metadata)),
                    GrabStatus::Pending | GrabStatus::Unspecified => standing = "Waiting for a browser.",
                    GrabStatus::Processing => standing = "The page is being rendered.",
                }
                progress.report(standing, Some(&metadata));
            }
        }
    }
}

/// A capture that failed, told as the tool's failure.
fn failure(grab: Grab, metadata: &HeaderMap) -> Failure {
    let code = grab.failure_reason();
    let mut failure = Failure::new(code, grab.error_message.unwrap_or_else(|| INTERNAL.to_owned()));
    crate::rest::limits::copy(metadata, &mut failure.headers);
    failure
}
