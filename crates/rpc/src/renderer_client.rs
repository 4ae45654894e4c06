//! The renderer's side of a session: receives assignments from a core, one per free slot, and reports their results.
//!
//! It is a client of [`grabd_proto::internal`] without access to the database or to keys. It only holds leases.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::domains::DomainRules;
use grabd_domain::grabs::Stages;
use grabd_domain::identity::{AgentForm, AgentUrl, SigningIdentity, SigningKey};
use grabd_domain::limits::LEASE_MARGIN;
use grabd_domain::proxies::{ProxyLogin, ProxyRoute, ProxyUrl};
use grabd_domain::render::{Capture, RenderTask, Renderer, RendererStatus, RequestSigner, SlotHold, StageReporter};
use grabd_engine::clock::Clock;
use grabd_engine::identity;
use grabd_engine::renderers::{HEARTBEAT_INTERVAL, UploadTarget};
use grabd_proto::internal::v1::attach_request::Message as Request;
use grabd_proto::internal::v1::attach_response::Message as Response;
use grabd_proto::internal::v1::finish_request::Result as FinishResult;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    Assignment, AssignmentStage, AttachRequest, BrokenSession, Condition as WireCondition, DomainRules as WireRules,
    Draining, Hello, ProxyRoute as WireRoute, Ready, Released, SigningIdentity as WireIdentity, SlotFreed,
    UploadHeader, UploadTarget as WireTarget,
};
use grabd_proto::options;
use grabd_proto::v1::CaptureOptions;
use parking_lot::Mutex;
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
use crate::direct_uploads::DirectUploads;
use crate::renderer_report::{AttemptReport, Uploaded, report, to_wire};
use crate::renderer_service::{ASSIGNMENT_VERSION, PROTOCOL};
use crate::slot_offers::{CoreMessage, SlotOffers};

/// Delay between attempts to connect to a core.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// Maximum size of a message to or from a core. The largest ones contain a part of an image.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Time limit for the begin of a session.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);
/// Outgoing messages of a session for each slot: that it is ready, how long it was used after the result, and the stages of
/// its assignment.
const MESSAGES_PER_SLOT: usize = 6;
/// The longest wait for the end of an attempt's processes and for the successor of its browser.
const SLOT_LIMIT: Duration = Duration::from_secs(60);

/// What makes images, and what may upload them.
pub(crate) struct Worker<R> {
    pub(crate) renderer: R,
    /// None: all images are sent to the core.
    pub(crate) uploads: Option<Arc<DirectUploads>>,
}

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
        let (protocol, assignment_version) = (PROTOCOL, ASSIGNMENT_VERSION);
        Hello { slots: count(slots), protocol, version, cores: count(cores), assignment_version }
    }

    const fn slots(&self) -> usize {
        match self {
            Self::Own(slots) | Self::Offered { slots, .. } => *slots,
        }
    }
}

/// The offers to a core during one session. Dropping it withdraws them, and reports the session as broken to other cores.
struct OffersTo<'a> {
    source: &'a SlotSource,
    receiver: Option<mpsc::UnboundedReceiver<CoreMessage>>,
    /// Known from the first assignment on. Before that, the session has no grabs.
    session_id: Option<String>,
}

impl<'a> OffersTo<'a> {
    fn begin(source: &'a SlotSource) -> Self {
        let receiver = match source {
            SlotSource::Own(_) => None,
            SlotSource::Offered { offers, core, .. } => Some(offers.add_core(*core)),
        };
        Self { source, receiver, session_id: None }
    }

    /// The next message for the core. `None` if the session was replaced. Cancel-safe.
    async fn next(&mut self) -> Option<CoreMessage> {
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

    /// Withdraws the offers of a session that continues.
    fn withdraw(mut self) {
        self.session_id = None;
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
            SlotSource::Offered { offers, core, .. } => {
                offers.remove_core(*core);
                if let Some(session) = &self.session_id {
                    offers.report_broken(session);
                }
            }
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
    let worker = Arc::new(Worker { renderer, uploads: None });
    let slots = SlotSource::Own(slots);
    let renders = TaskTracker::new();
    while !stop.is_cancelled() {
        if let Err(status) = session(core.clone(), &worker, &slots, &renders, &stop).await {
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

/// Runs one session until it breaks or `stop` is cancelled. Renders and reports of a broken session are dropped, since
/// their leases are released.
pub(crate) async fn session<T, R>(
    mut core: RendererServiceClient<T>,
    worker: &Arc<Worker<R>>,
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
    // Capacity for the hello and a status, too.
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
    let mut settings = SessionSettings::default();
    let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = responses.message() => message?,
            _ = heartbeat.tick() => {
                let status = Request::Condition(to_condition(&worker.renderer));
                // The channel is full only when the core does not receive; the heartbeat would be lost anyway.
                let _ = outbox.try_send(AttachRequest { message: Some(status) });
                continue;
            }
            next = offers.next() => {
                let message = match next {
                    Some(CoreMessage::Offer(slots)) => {
                        Request::Ready(Ready { slots: i32::try_from(slots).unwrap_or(i32::MAX) })
                    }
                    Some(CoreMessage::BrokenSession(session_id)) => {
                        Request::BrokenSession(BrokenSession { session_id })
                    }
                    None => return Err(Status::aborted("another session with this core began")),
                };
                let sent = outbox.send(AttachRequest { message: Some(message) }).await;
                sent.map_err(|_| Status::unavailable("the core closed the session"))?;
                continue;
            }
            () = stop.cancelled() => break,
        };
        running.retain(|_, cancel| !cancel.is_cancelled());
        match message.and_then(|response| response.message) {
            Some(Response::Assignment(mut assignment)) if !offers.take() => {
                settings.apply(&mut assignment);
                let Assignment { grab_id, lease_token, .. } = *assignment;
                let result = released("it was assigned to a slot that was not offered");
                renders.spawn(report(core.clone(), grab_id, lease_token, result, Instant::now() + LEASE_MARGIN));
            }
            Some(Response::Assignment(mut assignment)) => {
                settings.apply(&mut assignment);
                offers.session_id = Some(assignment.session_id.clone());
                // Cancelled by the core, by the end of the session, or when the render has ended.
                let cancel = broken.child_token();
                running.insert(assignment.lease_token.clone(), cancel.clone());
                let (core, worker, outbox) = (core.clone(), Arc::clone(worker), outbox.clone());
                let SessionSettings { domains, signer } = settings.clone();
                let offers = match slots {
                    SlotSource::Own(_) => None,
                    SlotSource::Offered { offers, .. } => Some(Arc::clone(offers)),
                };
                renders.spawn(async move {
                    let lease_token = assignment.lease_token.clone();
                    let stages = stage_reporter(outbox.clone(), lease_token.clone());
                    let slot = UsedSlot::new();
                    let complete = |task| RenderTask { stages, slot: slot.hold.clone(), domains, signer, ..task };
                    run_assignment(core, &worker, *assignment, complete, &cancel).await;
                    cancel.cancel();
                    let ms = u32::try_from(slot.wait().await.as_millis()).unwrap_or(u32::MAX);
                    let freed = Request::SlotFreed(SlotFreed { lease_token, ms });
                    // Fails only when the session has ended, and its leases with it.
                    let _ = outbox.send(AttachRequest { message: Some(freed) }).await;
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
    offers.withdraw();
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
    broken.cancel();
    renders.wait().await;
    Ok(())
}

/// Settings that a core sends with an assignment, for this and all later ones of the session.
#[derive(Clone, Default)]
struct SessionSettings {
    /// The rules for domains.
    domains: Arc<DomainRules>,
    /// Signs requests, if they are.
    signer: RequestSigner,
}

impl SessionSettings {
    /// Takes the settings that an assignment has.
    fn apply(&mut self, assignment: &mut Assignment) {
        if let Some(WireRules { deny, allow }) = assignment.domain_rules.take() {
            self.domains = Arc::new(DomainRules::restore(deny, allow));
        }
        if let Some(WireIdentity { agent, seed, is_text }) = assignment.signing_identity.take() {
            let form = if is_text { AgentForm::Text } else { AgentForm::Member };
            match AgentUrl::parse(&agent).map(|agent| agent.in_form(form)).zip(SigningKey::from_seed(&seed)) {
                Some((agent, key)) => {
                    let identity = Arc::new(SigningIdentity { agent, key: Arc::new(key) });
                    self.signer = identity::signer(Some(identity), Clock::system());
                }
                None => tracing::warn!("the core sent a key for signatures that cannot be used"),
            }
        }
    }
}

/// Gives an attempt back to the core, for another renderer.
fn released(cause: &str) -> AttemptReport {
    AttemptReport::Other(Box::new(FinishResult::Released(Released { cause: cause.to_owned() })))
}

fn to_condition<R: Renderer>(renderer: &R) -> WireCondition {
    let RendererStatus { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test } = renderer.status();
    let restarts = restarts.into_iter().collect();
    WireCondition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test }
}

/// Sends the stages of an assignment that begins now, each once.
fn stage_reporter(outbox: mpsc::Sender<AttachRequest>, lease_token: String) -> StageReporter {
    let (began, reached) = (Instant::now(), Mutex::new(Stages::default()));
    StageReporter::new(move |stage| {
        let ms = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        if reached.lock().reach(stage, ms) {
            let stage = stage_to_proto(stage).into();
            let reported = AssignmentStage { lease_token: lease_token.clone(), stage, ms };
            // The channel is full only when the core does not receive; nobody needs the stage then.
            let _ = outbox.try_send(AttachRequest { message: Some(Request::Stage(reported)) });
        }
    })
}

async fn run_assignment<T, R>(
    core: RendererServiceClient<T>,
    worker: &Worker<R>,
    assignment: Assignment,
    complete: impl FnOnce(RenderTask) -> RenderTask + Send,
    cancel: &CancellationToken,
) where
    T: GrpcService<Body> + Clone + Send + Sync + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    R: Renderer,
{
    let Assignment {
        grab_id,
        lease_token,
        options,
        budget,
        alone,
        margin,
        upload,
        session_id: _,
        domain_rules: _,
        proxy,
        signing_identity: _,
    } = assignment;
    let budget = budget.and_then(|budget| Duration::try_from(budget).ok()).unwrap_or_default();
    let task = task(&grab_id, options, budget, alone).and_then(|task| with_route(task, proxy)).map(complete);
    let margin = margin.and_then(|margin| Duration::try_from(margin).ok()).unwrap_or(LEASE_MARGIN);
    let received = Instant::now();
    let lease_ends = received + budget + margin;
    let work = async {
        let result = match task {
            Some(task) => match worker.renderer.render(task).await {
                Ok(capture) => upload_image(worker, upload, capture, received).await,
                outcome @ Err(_) => to_wire(outcome),
            },
            None => released("the assignment could not be read"),
        };
        report(core, grab_id, lease_token, result, lease_ends).await;
    };
    // Also ends a report: without its session, the lease is released, and the slot must not wait for a core that is gone.
    cancel.run_until_cancelled(work).await;
}

/// A slot that is in use until the renderer has dropped all of its holds.
struct UsedSlot {
    hold: SlotHold,
    is_free: CancellationToken,
}

impl UsedSlot {
    fn new() -> Self {
        let is_free = CancellationToken::new();
        Self { hold: SlotHold::new(is_free.clone().drop_guard()), is_free }
    }

    /// Waits until nothing of an attempt runs any more. Returns how long that took.
    async fn wait(self) -> Duration {
        let Self { hold, is_free } = self;
        drop(hold);
        let since = Instant::now();
        if tokio::time::timeout(SLOT_LIMIT, is_free.cancelled()).await.is_err() {
            tracing::error!("the processes of an attempt do not end; its slot is used again");
        }
        since.elapsed()
    }
}

/// Uploads the image of an assignment that was received at this time, if the core allows that and it is possible.
async fn upload_image<R>(
    worker: &Worker<R>,
    upload: Option<WireTarget>,
    mut capture: Capture,
    received: Instant,
) -> AttemptReport {
    let (Some(uploads), Some(upload)) = (&worker.uploads, upload) else { return to_wire(Ok(capture)) };
    let WireTarget { url, headers, max_bytes, valid_for } = upload;
    let size_bytes = u64::try_from(capture.image.len()).unwrap_or(u64::MAX);
    if size_bytes > max_bytes {
        // The core makes this a failure of the grab.
        return to_wire(Ok(capture));
    }
    let headers = headers.into_iter().map(|UploadHeader { name, value }| (name, value)).collect();
    let valid = valid_for.and_then(|valid| Duration::try_from(valid).ok()).unwrap_or_default();
    let target = UploadTarget { url, headers, valid };
    match uploads.upload(&target, &capture.image, received + valid).await {
        Some(sha256) => {
            // Its memory is free for others from here on.
            capture.image = Bytes::new();
            AttemptReport::Captured(Box::new(capture), Some(Uploaded { size_bytes, sha256 }))
        }
        None => to_wire(Ok(capture)),
    }
}

fn task(grab_id: &str, options: Option<CaptureOptions>, budget: Duration, alone: bool) -> Option<RenderTask> {
    let spec = CaptureSpec::restore(&options::decode(options?, Vec::new()))?;
    let (id, stages, slot) = (grab_id.parse().ok()?, StageReporter::default(), SlotHold::default());
    let (domains, signer) = (Arc::default(), RequestSigner::default());
    Some(RenderTask { id, spec, budget, alone, stages, slot, domains, signer, proxy: None })
}

/// The task with the proxy that its page is loaded through. `None` if its spec names one and it cannot be read: such a
/// page is never loaded directly.
fn with_route(task: RenderTask, route: Option<WireRoute>) -> Option<RenderTask> {
    let route = match route {
        Some(WireRoute { name, url, username, password }) => {
            let login = username.map(|username| ProxyLogin { username, password: password.unwrap_or_default() });
            Some(Arc::new(ProxyRoute { name, url: ProxyUrl::restore(&url)?, login }))
        }
        None => None,
    };
    (task.spec.proxy.is_some() == route.is_some()).then_some(RenderTask { proxy: route, ..task })
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    fn with_key(agent: &str, seed: &'static [u8]) -> Assignment {
        let identity = WireIdentity { agent: agent.to_owned(), seed: Bytes::from_static(seed), is_text: false };
        Assignment { signing_identity: Some(identity), ..Assignment::default() }
    }

    #[test]
    fn requests_are_signed_with_the_last_key_that_the_core_has_sent() {
        let mut settings = SessionSettings::default();
        settings.apply(&mut Assignment::default());
        assert!(!settings.signer.is_active());
        let signed_with = |settings: &SessionSettings, byte: u8| {
            let [_, (_, input), _] = settings.signer.sign("https://example.com/").unwrap();
            input.contains(SigningKey::from_seed(&[byte; 32]).unwrap().id())
        };
        settings.apply(&mut with_key("https://grabs.example.com", &[1; 32]));
        assert!(signed_with(&settings, 1));
        // Later assignments without a key, and those with one that cannot be used, change nothing.
        for mut assignment in [
            Assignment::default(),
            with_key("http://grabs.example.com", &[2; 32]),
            with_key("https://grabs.example.com", &[2; 31]),
        ] {
            settings.apply(&mut assignment);
            assert!(signed_with(&settings, 1));
        }
        settings.apply(&mut with_key("https://grabs.example.com", &[2; 32]));
        assert!(signed_with(&settings, 2));
    }

    #[test]
    fn page_with_a_proxy_is_never_loaded_without_it() {
        let of = |proxy: Option<&str>, route| {
            let url = Some("https://example.com/".to_owned());
            let request = CaptureRequest { url, proxy: proxy.map(str::to_owned), ..CaptureRequest::default() };
            let (options, _) = options::encode(&request);
            let task =
                task("01993e1c-7b1a-7000-8000-0123456789ab", Some(options), Duration::from_secs(1), false).unwrap();
            with_route(task, route)
        };
        let route = |url: &str| {
            let (username, password) = (Some("me".to_owned()), Some("hidden".to_owned()));
            Some(WireRoute { name: "Office".into(), url: url.into(), username, password })
        };
        let id = Some("01993e1c-7b1a-7000-8000-0123456789ab");
        let task = of(id, route("socks5://8.8.8.8:1080")).unwrap();
        assert_eq!(task.proxy.as_ref().unwrap().login.as_ref().unwrap().password, "hidden");
        assert!(!format!("{task:?}").contains("hidden"), "{task:?}");
        assert!(of(id, None).is_none() && of(id, route("socks4://8.8.8.8:1080")).is_none());
        assert!(of(None, None).unwrap().proxy.is_none() && of(None, route("socks5://8.8.8.8:1080")).is_none());
    }
}
