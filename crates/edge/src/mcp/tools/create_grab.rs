//! `create_grab`: captures a page, and waits for it unless `async` is set.

use std::time::Duration;

use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CaptureGrabRequest, CreateGrabRequest, CreateMode, Grab, GrabStatus, RenderStage, StageReached};
use http::HeaderMap;
use tokio::time::{Instant, timeout};

use super::super::progress::{CallStage, Progress};
use super::arguments::read_bool;
use super::context::ToolContext;
use super::grab_output::{self, ShowImage, Wanted};
use super::output::ToolResult;
use super::read_files::WantedFiles;
use crate::rest::call::{self, CoreResponse};
use crate::rest::error::{ApiError, INTERNAL_MESSAGE};
use crate::rest::fields::Fields;
use crate::rest::json;
use crate::rest::options;

/// Interval of progress reports while the state does not change.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// The core's name of the field.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

#[derive(Debug)]
pub(in super::super) struct CreateGrabArgs {
    message: CreateGrabRequest,
    wanted: Wanted,
}

/// Reads the arguments.
///
/// # Errors
/// With a message for an argument that is not forwarded to the core.
pub(super) fn read(fields: &mut Fields<'_>) -> Result<CreateGrabArgs, String> {
    let image = match read_bool(fields, "include_image", true)? {
        true => ShowImage::FromRow(0),
        false => ShowImage::No,
    };
    let files = WantedFiles::read(fields)?;
    let mut options = options::read(fields);
    files.request_files(&mut options)?;
    let mut message = CreateGrabRequest { options: Some(options), ..CreateGrabRequest::default() };
    message.idempotency_key = fields.read("idempotency_key", json::string);
    message.set_mode(match fields.read("async", json::boolean) {
        Some(true) => CreateMode::Async,
        Some(false) | None => CreateMode::Sync,
    });
    message.unparsed = std::mem::take(&mut fields.unparsed);
    for unparsed in message.unparsed.iter_mut().filter(|unparsed| unparsed.field == "idempotency_key") {
        unparsed.field = IDEMPOTENCY_KEY.to_owned();
    }
    Ok(CreateGrabArgs { message, wanted: Wanted { image, files } })
}

pub(super) async fn run(context: &ToolContext, args: CreateGrabArgs, progress: Progress) -> ToolResult {
    let CreateGrabArgs { message, wanted } = args;
    match message.mode() {
        CreateMode::Async => create_async(context, message, &wanted).await,
        CreateMode::Sync | CreateMode::Unspecified => capture(context, message, &wanted, progress).await,
    }
}

/// Creates an asynchronous grab. The placeholder of a test key is done at once.
async fn create_async(context: &ToolContext, message: CreateGrabRequest, wanted: &Wanted) -> ToolResult {
    let mut core = GrabServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, message, call::CREATE_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::CREATE_DEADLINE, core.create_grab(sent)).await?;
    let grab = message.grab.ok_or_else(|| context.internal("the core returned no grab"))?;
    match grab.status() {
        GrabStatus::Failed => Err(failure(grab, &metadata)),
        GrabStatus::Done | GrabStatus::Pending | GrabStatus::Processing | GrabStatus::Unspecified => {
            grab_output::tool_output(context, grab, wanted, metadata).await
        }
    }
}

/// Waits until the grab has ended. Dropping this future cancels the capture.
async fn capture(
    context: &ToolContext,
    create: CreateGrabRequest,
    wanted: &Wanted,
    mut progress: Progress,
) -> ToolResult {
    let deadline = Instant::now() + call::CREATE_DEADLINE;
    let mut core = GrabServiceClient::new(context.mcp.transport.clone());
    let capture = CaptureGrabRequest { create: Some(create), with_stages: progress.is_requested() };
    let sent = call::request(&context.headers, capture, call::CREATE_DEADLINE);
    let CoreResponse { message: mut states, metadata } =
        call::send(&context.headers, call::CREATE_DEADLINE, core.capture_grab(sent)).await?;
    let mut stage = WAITING;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(REPORT_INTERVAL.min(left), states.message()).await {
            Err(_) if left.is_zero() => return Err(context.internal("a capture did not end in time")),
            Err(_) => progress.report(stage, None),
            Ok(Err(status)) => return Err(ApiError::from_status(&status, &context.headers)),
            Ok(Ok(None)) => return Err(context.internal("the capture stream ended before the grab")),
            Ok(Ok(Some(state))) => {
                let grab = state.grab.ok_or_else(|| context.internal("a capture event has no grab"))?;
                match grab.status() {
                    GrabStatus::Done => return grab_output::tool_output(context, grab, wanted, metadata).await,
                    GrabStatus::Failed => return Err(failure(grab, &metadata)),
                    GrabStatus::Pending | GrabStatus::Unspecified => stage = WAITING,
                    GrabStatus::Processing => stage = stage_of(&grab),
                }
                progress.report(stage, Some(&metadata));
            }
        }
    }
}

/// A grab that waits for a renderer.
const WAITING: CallStage = CallStage { from: 1.0, until: 15.0, message: "Waiting for a free browser." };

/// The stage of a grab that is being rendered.
fn stage_of(grab: &Grab) -> CallStage {
    let (from, until, message) = match grab.stages.last().map_or(RenderStage::Unspecified, StageReached::stage) {
        RenderStage::Unspecified => (15.0, 20.0, "The page is being rendered."),
        RenderStage::Navigating => (20.0, 45.0, "The page is being opened."),
        RenderStage::Loaded => (45.0, 60.0, "The page has loaded."),
        RenderStage::Settling => (60.0, 90.0, "Waiting for the page to settle."),
        RenderStage::Captured => (90.0, 99.0, "The image was taken."),
    };
    CallStage { from, until, message }
}

/// The error for a failed capture.
fn failure(grab: Grab, metadata: &HeaderMap) -> ApiError {
    let (code, cause) = (grab.failure_reason(), grab.error_cause());
    let message = grab.error_message.unwrap_or_else(|| INTERNAL_MESSAGE.to_owned());
    let mut failure = ApiError::new(code, message).caused_by(cause);
    crate::rest::rate_limit_headers::copy(metadata, &mut failure.headers);
    failure
}
