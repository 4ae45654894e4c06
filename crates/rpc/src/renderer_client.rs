//! The renderer's side of a session: receives assignments from a core, one per free slot, and reports their results.
//!
//! It is a client of [`grabd_proto::internal`] without access to the database or to keys. It only holds leases.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{SlicePlace, Stages, ViewportSize};
use grabd_domain::limits::LEASE_MARGIN;
use grabd_domain::render::{
    Capture, CapturedFile, CapturedSlice, CapturedViewport, RenderError, RenderTask, Renderer, RendererStatus,
    StageReporter,
};
use grabd_engine::renderers::HEARTBEAT_INTERVAL;
use grabd_proto::internal::v1::attach_request::Message as Request;
use grabd_proto::internal::v1::attach_response::Message as Response;
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::finish_request::Result as FinishResult;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    Assignment, AssignmentStage, AttachRequest, Condition as WireCondition, Draining, FileHeader, FinishPictureRequest,
    FinishRequest, Hello, PageFailure, PictureHeader, Ready, Released, SliceHeader, ViewportHeader,
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

use crate::convert::stage_to_proto;
use crate::render_metadata;
use crate::renderer_service::PROTOCOL;
use crate::slot_offers::SlotOffers;
use crate::status::cause_to_proto;

/// Delay between attempts to connect to a core.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// Initial delay between attempts to report a result, doubled after each.
const REPORT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum size of a message to or from a core. The largest ones contain a part of an image.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Time limit for the begin of a session.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);
/// Size of the parts in which an image is sent.
const PART_BYTES: usize = 256 << 10;
/// Outgoing messages of a session for each slot: that it is ready, and the stages of its assignment.
const MESSAGES_PER_SLOT: usize = 5;

/// The slots that a session offers to its core.
pub(crate) enum SlotSource {
    /// All of them, since there is only one core.
    Own(usize),
    /// Those that are offered to this core at the time.
    Offered {
        /// All slots.
        offers: Arc<SlotOffers>,
        /// The core.
        core: SocketAddr,
        /// Number of all slots.
        slots: usize,
        /// Number of cores.
        cores: usize,
    },
}

impl SlotSource {
    fn hello(&self) -> Hello {
        let (slots, cores) = match self {
            Self::Own(slots) => (*slots, 0),
            Self::Offered { slots, cores, .. } => (*slots, *cores),
        };
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Hello { slots: count(slots), protocol: PROTOCOL, version, cores: count(cores) }
    }

    const fn slots(&self) -> usize {
        match self {
            Self::Own(slots) | Self::Offered { slots, .. } => *slots,
        }
    }
}

/// The offers to a core during one session. Dropping it withdraws them.
struct OffersTo<'a> {
    source: &'a SlotSource,
    receiver: Option<mpsc::UnboundedReceiver<usize>>,
}

impl<'a> OffersTo<'a> {
    fn begin(source: &'a SlotSource) -> Self {
        let receiver = match source {
            SlotSource::Own(_) => None,
            SlotSource::Offered { offers, core, .. } => Some(offers.add_core(*core)),
        };
        Self { source, receiver }
    }

    /// The number of further slots to offer. `None` if the session was replaced. Cancel-safe.
    async fn next(&mut self) -> Option<usize> {
        match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the core may use a slot for an assignment.
    fn take(&self) -> bool {
        match self.source {
            SlotSource::Own(_) => true,
            SlotSource::Offered { offers, core, .. } => offers.take(*core),
        }
    }

    fn return_slots(&self, slots: usize) {
        match self.source {
            SlotSource::Own(_) => {}
            SlotSource::Offered { offers, core, .. } => offers.return_from(*core, slots),
        }
    }
}

impl Drop for OffersTo<'_> {
    fn drop(&mut self) {
        match self.source {
            SlotSource::Own(_) => {}
            SlotSource::Offered { offers, core, .. } => offers.remove_core(*core),
        }
    }
}

/// A client with the message sizes of the protocol.
pub(crate) fn client<T>(core: T) -> RendererServiceClient<T>
where
    T: GrpcService<Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    RendererServiceClient::new(core)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

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
    let core = client(core);
    let renderer = Arc::new(renderer);
    let slots = SlotSource::Own(slots);
    // Outlives sessions: a result can still be reported after the stream of its assignment broke.
    let renders = TaskTracker::new();
    while !stop.is_cancelled() {
        if let Err(status) = session(core.clone(), &renderer, &slots, &renders, &stop).await {
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
pub(crate) async fn session<T, R>(
    mut core: RendererServiceClient<T>,
    renderer: &Arc<R>,
    slots: &SlotSource,
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
    // Capacity for the hello and a condition, too.
    let (outbox, requests) = mpsc::channel(slots.slots() * MESSAGES_PER_SLOT + 2);
    let hello = AttachRequest { message: Some(Request::Hello(slots.hello())) };
    outbox.send(hello).await.map_err(|_| Status::internal("the outgoing channel is closed"))?;
    let attached = tokio::time::timeout(ATTACH_LIMIT, core.attach(ReceiverStream::new(requests))).await;
    let attached = attached.map_err(|_| Status::deadline_exceeded("the core did not begin a session in time"))?;
    let mut responses = attached?.into_inner();

    let mut offers = OffersTo::begin(slots);
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
            offered = offers.next() => {
                let Some(slots) = offered else { return Err(Status::aborted("another session with this core began")) };
                let ready = Request::Ready(Ready { slots: i32::try_from(slots).unwrap_or(i32::MAX) });
                let sent = outbox.send(AttachRequest { message: Some(ready) }).await;
                sent.map_err(|_| Status::unavailable("the core closed the session"))?;
                continue;
            }
            () = stop.cancelled() => break,
        };
        running.retain(|_, cancel| !cancel.is_cancelled());
        match message.and_then(|response| response.message) {
            Some(Response::Assignment(assignment)) if !offers.take() => {
                let Assignment { grab_id, lease_token, .. } = *assignment;
                let result = released("it was assigned to a slot that was not offered");
                renders.spawn(report(core.clone(), grab_id, lease_token, result, Instant::now() + LEASE_MARGIN));
            }
            Some(Response::Assignment(assignment)) => {
                // Cancelled by the core, by the end of the session, or when the render has ended.
                let cancel = broken.child_token();
                running.insert(assignment.lease_token.clone(), cancel.clone());
                let (core, renderer, outbox) = (core.clone(), Arc::clone(renderer), outbox.clone());
                let offers = match slots {
                    SlotSource::Own(_) => None,
                    SlotSource::Offered { offers, .. } => Some(Arc::clone(offers)),
                };
                renders.spawn(async move {
                    let stages = stage_reporter(outbox.clone(), assignment.lease_token.clone());
                    run_assignment(core, &*renderer, *assignment, stages, &cancel).await;
                    cancel.cancel();
                    match offers {
                        Some(offers) => offers.free(),
                        // Fails only when the session has ended; it needs no slots then.
                        None => {
                            let ready = Request::Ready(Ready { slots: 1 });
                            let _ = outbox.send(AttachRequest { message: Some(ready) }).await;
                        }
                    }
                });
            }
            Some(Response::Cancel(cancel)) => {
                if let Some(render) = running.remove(&cancel.lease_token) {
                    render.cancel();
                }
            }
            Some(Response::Returned(returned)) => offers.return_slots(usize::try_from(returned.slots).unwrap_or(0)),
            None => return Err(Status::unavailable("the core closed the session")),
        }
    }
    // What is offered to this core may go to others. The channel is full only when the core does not receive; then it
    // learns from the end of the session.
    drop(offers);
    let _ = outbox.try_send(AttachRequest { message: Some(Request::Draining(Draining {})) });
    // Keep the stream open until all renders are reported; the core releases their leases when it closes.
    renders.close();
    loop {
        let message = tokio::select! {
            () = renders.wait() => return Ok(()),
            message = responses.message() => message,
        };
        let Ok(Some(response)) = message else { break };
        match response.message {
            // It was on its way when the renderer stopped. Otherwise its grab would wait for the renders here to end.
            Some(Response::Assignment(assignment)) => {
                let Assignment { grab_id, lease_token, .. } = *assignment;
                let result = released("the renderer is stopping");
                renders.spawn(report(core.clone(), grab_id, lease_token, result, Instant::now() + LEASE_MARGIN));
            }
            Some(Response::Cancel(cancel)) => {
                if let Some(render) = running.remove(&cancel.lease_token) {
                    render.cancel();
                }
            }
            Some(Response::Returned(_)) | None => {}
        }
    }
    // The session broke. The results can still be reported.
    renders.wait().await;
    Ok(())
}

/// Gives an attempt back to the core, for another renderer.
fn released(cause: &str) -> AttemptReport {
    AttemptReport::Other(FinishResult::Released(Released { cause: cause.to_owned() }))
}

fn condition<R: Renderer>(renderer: &R) -> WireCondition {
    let RendererStatus { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test } = renderer.status();
    let restarts = restarts.into_iter().collect();
    WireCondition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test }
}

/// Sends the stages of an assignment that begins now, each once.
fn stage_reporter(outbox: mpsc::Sender<AttachRequest>, lease_token: String) -> StageReporter {
    let (began, reached) = (Instant::now(), Mutex::new(Stages::default()));
    StageReporter::new(move |stage| {
        let ms = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        if reached.lock().unwrap_or_else(PoisonError::into_inner).reach(stage, ms) {
            let stage = stage_to_proto(stage).into();
            let reported = AssignmentStage { lease_token: lease_token.clone(), stage, ms };
            // The channel is full only when the core does not receive; nobody needs the stage then.
            let _ = outbox.try_send(AttachRequest { message: Some(Request::Stage(reported)) });
        }
    })
}

async fn run_assignment<T, R>(
    core: RendererServiceClient<T>,
    renderer: &R,
    assignment: Assignment,
    stages: StageReporter,
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
    let task = task(&grab_id, options, budget, alone, stages);
    let margin = margin.and_then(|margin| Duration::try_from(margin).ok()).unwrap_or(LEASE_MARGIN);
    let lease_ends = Instant::now() + budget + margin;
    let result = match task {
        Some(task) => tokio::select! {
            outcome = renderer.render(task) => to_wire(outcome),
            () = cancel.cancelled() => return,
        },
        None => released("the assignment could not be read"),
    };
    report(core, grab_id, lease_token, result, lease_ends).await;
}

fn task(
    grab_id: &str,
    options: Option<CaptureOptions>,
    budget: Duration,
    alone: bool,
    stages: StageReporter,
) -> Option<RenderTask> {
    let spec = CaptureSpec::restore(&options::decode(options?, Vec::new()))?;
    Some(RenderTask { id: grab_id.parse().ok()?, spec, budget, alone, stages })
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
