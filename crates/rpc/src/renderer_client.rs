//! The renderer's side of a session: receives assignments from a core, one per free slot, and reports their results.
//!
//! It is a client of [`grabd_proto::internal`] without access to the database or to keys. It only holds leases.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{SlicePlace, ViewportSize};
use grabd_domain::limits::LEASE_MARGIN;
use grabd_domain::render::{
    Capture, CapturedFile, CapturedSlice, CapturedViewport, RenderError, RenderTask, Renderer, RendererStatus,
};
use grabd_engine::renderers::HEARTBEAT_INTERVAL;
use grabd_proto::internal::v1::attach_request::Message as Request;
use grabd_proto::internal::v1::attach_response::Message as Response;
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::finish_request::Result as FinishResult;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    Assignment, AttachRequest, Condition as WireCondition, FileHeader, FinishPictureRequest, FinishRequest, Hello,
    PageFailure, PictureHeader, Ready, Released, SliceHeader, ViewportHeader,
};
use grabd_proto::options;
use grabd_proto::v1::CaptureOptions;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Body as HttpBody, Bytes, StdError};

use crate::render_metadata;
use crate::status::cause_to_proto;

/// Delay between attempts to connect to a core.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// Initial delay between attempts to report a result, doubled after each.
const REPORT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum size of a message to or from a core. The largest ones contain a part of an image.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Size of the parts in which an image is sent.
const PART_BYTES: usize = 256 << 10;

/// Renders for a core until `stop` is cancelled, then finishes the renders in progress and returns.
pub async fn run<T, R>(core: T, renderer: R, slots: usize, stop: CancellationToken)
where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    let core = RendererServiceClient::new(core)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let renderer = Arc::new(renderer);
    // Outlives sessions: a result can still be reported after the stream of its assignment broke.
    let renders = TaskTracker::new();
    while !stop.is_cancelled() {
        if let Err(status) = session(core.clone(), &renderer, slots, &renders, &stop).await {
            tracing::warn!(%status, "the session with the core broke; reconnecting");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            // Wait before reconnecting: a core that is down does not notify when it is back.
            () = tokio::time::sleep(RECONNECT_DELAY) => {}
        }
    }
    renders.close();
    renders.wait().await;
}

/// Runs one session until it breaks or `stop` is cancelled. Renders of a broken session are dropped, since their leases
/// are released.
async fn session<T, R>(
    mut core: RendererServiceClient<T>,
    renderer: &Arc<R>,
    slots: usize,
    renders: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), Status>
where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    // Capacity for the hello, a condition, and a ready message per slot.
    let (outbox, requests) = mpsc::channel(slots + 2);
    let slots = i32::try_from(slots).unwrap_or(i32::MAX);
    let hello = AttachRequest { message: Some(Request::Hello(Hello { slots })) };
    outbox.send(hello).await.map_err(|_| Status::internal("the outgoing channel is closed"))?;
    let mut responses = core.attach(ReceiverStream::new(requests)).await?.into_inner();

    let broken = CancellationToken::new();
    let _cancel_on_exit = broken.clone().drop_guard();
    let mut running: HashMap<String, CancellationToken> = HashMap::new();
    let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = responses.message() => message?,
            _ = heartbeat.tick() => {
                let condition = Request::Condition(condition(&**renderer));
                // The channel is full only when the core does not receive; the heartbeat would be lost anyway.
                let _ = outbox.try_send(AttachRequest { message: Some(condition) });
                continue;
            }
            () = stop.cancelled() => break,
        };
        running.retain(|_, cancel| !cancel.is_cancelled());
        match message.and_then(|response| response.message) {
            Some(Response::Assignment(assignment)) => {
                // Cancelled by the core, by the end of the session, or when the render has ended.
                let cancel = broken.child_token();
                running.insert(assignment.lease_token.clone(), cancel.clone());
                let (core, renderer, outbox) = (core.clone(), Arc::clone(renderer), outbox.clone());
                renders.spawn(async move {
                    run_assignment(core, &*renderer, *assignment, &cancel).await;
                    cancel.cancel();
                    // Fails only when the session has ended; it needs no slots then.
                    let _ = outbox.send(AttachRequest { message: Some(Request::Ready(Ready { slots: 1 })) }).await;
                });
            }
            Some(Response::Cancel(cancel)) => {
                if let Some(render) = running.remove(&cancel.lease_token) {
                    render.cancel();
                }
            }
            None => return Err(Status::unavailable("the core closed the session")),
        }
    }
    // Keep the stream open until all renders are reported; the core releases their leases when it closes.
    renders.close();
    renders.wait().await;
    Ok(())
}

fn condition<R: Renderer>(renderer: &R) -> WireCondition {
    let RendererStatus { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test } = renderer.status();
    let restarts = restarts.into_iter().collect();
    WireCondition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test }
}

async fn run_assignment<T, R>(
    core: RendererServiceClient<T>,
    renderer: &R,
    assignment: Assignment,
    cancel: &CancellationToken,
) where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    let Assignment { grab_id, lease_token, options, budget, alone, margin } = assignment;
    let budget = budget.and_then(|budget| Duration::try_from(budget).ok()).unwrap_or_default();
    let task = task(&grab_id, options, budget, alone);
    let margin = margin.and_then(|margin| Duration::try_from(margin).ok()).unwrap_or(LEASE_MARGIN);
    let lease_ends = Instant::now() + budget + margin;
    let result = match task {
        Some(task) => tokio::select! {
            outcome = renderer.render(task) => to_wire(outcome),
            () = cancel.cancelled() => return,
        },
        None => AttemptReport::Other(FinishResult::Released(Released {
            cause: "the assignment could not be read".to_owned(),
        })),
    };
    report(core, grab_id, lease_token, result, lease_ends).await;
}

fn task(grab_id: &str, options: Option<CaptureOptions>, budget: Duration, alone: bool) -> Option<RenderTask> {
    let spec = CaptureSpec::restore(&options::decode(options?, Vec::new()))?;
    Some(RenderTask { id: grab_id.parse().ok()?, spec, budget, alone })
}

/// The result of an attempt, as it is sent.
enum AttemptReport {
    /// An image, sent in parts.
    Picture(Capture),
    /// Any other result, sent as one message.
    Other(FinishResult),
}

fn to_wire(outcome: Result<Capture, RenderError>) -> AttemptReport {
    AttemptReport::Other(match outcome {
        Ok(capture) => return AttemptReport::Picture(capture),
        Err(RenderError::Page { failure, metadata }) => FinishResult::Failure(PageFailure {
            code: failure.reason.code().as_str().to_owned(),
            message: failure.message,
            cause: cause_to_proto(failure.cause).into(),
            metadata: Some(render_metadata::to_wire(&metadata)),
        }),
        Err(RenderError::Lost(cause)) => FinishResult::Released(Released { cause }),
    })
}

/// The messages for an image and the files beside it. They share their memory.
fn parts(
    grab_id: &str,
    lease_token: &str,
    capture: &Capture,
) -> impl Iterator<Item = FinishPictureRequest> + Send + use<> {
    let Capture { image, metadata, execution_ms, files, slices, viewports } = capture;
    let size = |content: &Bytes| u64::try_from(content.len()).unwrap_or(u64::MAX);
    let header = PictureHeader {
        grab_id: grab_id.to_owned(),
        lease_token: lease_token.to_owned(),
        size_bytes: size(image),
        execution_ms: i32::try_from(*execution_ms).unwrap_or(i32::MAX),
        metadata: Some(render_metadata::to_wire(metadata)),
    };
    let files = files.iter().map(|CapturedFile { kind, content }| {
        let header = FileHeader { kind: kind.as_str().to_owned(), size_bytes: size(content) };
        (Part::File(header), content.clone())
    });
    let slices = slices.iter().map(|CapturedSlice { place, content }| {
        let SlicePlace { y, height, heading } = place.clone();
        (Part::Slice(SliceHeader { size_bytes: size(content), y, height, heading }), content.clone())
    });
    let viewports = viewports.iter().map(|CapturedViewport { size: of, content }| {
        let ViewportSize { viewport_width, viewport_height, width, height } = *of;
        let header = ViewportHeader { size_bytes: size(content), viewport_width, viewport_height, width, height };
        (Part::Viewport(header), content.clone())
    });
    let headers: Vec<_> = files.chain(slices).chain(viewports).collect();
    std::iter::once((Part::Header(Box::new(header)), image.clone()))
        .chain(headers)
        .flat_map(|(header, content)| std::iter::once(header).chain(content_parts(content)))
        .map(|message| FinishPictureRequest { message: Some(message) })
}

fn content_parts(content: Bytes) -> impl Iterator<Item = Part> + Send {
    let starts = (0..content.len()).step_by(PART_BYTES);
    starts.map(move |start| Part::Part(content.slice(start..content.len().min(start + PART_BYTES))))
}

/// Reports a result, with retries until the core has recorded it or the lease has ended. A shutdown waits no longer
/// than that either, since a grab without a reported result is rendered again.
async fn report<T>(
    mut core: RendererServiceClient<T>,
    grab_id: String,
    lease_token: String,
    result: AttemptReport,
    lease_ends: Instant,
) where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let grab = grab_id.clone();
    let with_retries = async {
        let mut wait = REPORT_RETRY_DELAY;
        loop {
            let accepted = match &result {
                AttemptReport::Picture(capture) => {
                    let parts = tokio_stream::iter(parts(&grab_id, &lease_token, capture));
                    core.finish_picture(parts).await.map(|response| response.into_inner().accepted)
                }
                AttemptReport::Other(result) => {
                    let (grab_id, lease_token) = (grab_id.clone(), lease_token.clone());
                    let request = FinishRequest { grab_id, lease_token, result: Some(result.clone()) };
                    core.finish(request).await.map(|response| response.into_inner().accepted)
                }
            };
            match accepted {
                Ok(accepted) => return accepted,
                Err(status) => tracing::warn!(%status, grab.id = grab, "a result could not be reported; trying again"),
            }
            // Backoff before the next report.
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
    };
    match tokio::time::timeout_at(lease_ends, with_retries).await {
        Ok(true) => {}
        Ok(false) => tracing::info!(grab.id = grab, "a result was rejected: its lease had ended"),
        Err(_) => tracing::warn!(grab.id = grab, "a result could not be reported before its lease ended"),
    }
}
