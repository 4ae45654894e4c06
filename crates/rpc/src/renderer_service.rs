//! `grabd.internal.v1.RendererService`: the core's side of a renderer session.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use grabd_domain::capture::CaptureRequest;
use grabd_domain::domains::{DomainRule, DomainRules};
use grabd_domain::grabs::{Failure, FailureReason, SlicePlace, StepImage, ViewportSize};
use grabd_domain::identity::{AgentForm, SigningIdentity};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::limits::shortened;
use grabd_domain::proxies::ProxyRoute;
use grabd_domain::render::RendererStatus;
use grabd_engine::Core;
use grabd_engine::renderers::{
    self, AttemptResult, ImageReceiver, OutcomeUnknown, ReceiveError, ReceivedFiles, ReceivedImage, RendererSession,
    SessionMessage, SessionSlots, UploadTarget, UploadedImage,
};
use grabd_proto::internal::v1::attach_request::Message;
use grabd_proto::internal::v1::attach_response::Message as Outgoing;
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::finish_request::Result as FinishResult;
use grabd_proto::internal::v1::renderer_service_server::RendererService;
use grabd_proto::internal::v1::{
    Assignment, AssignmentStage, AttachRequest, AttachResponse, Cancel, Condition as WireCondition,
    DomainRules as WireRules, FileHeader, FinishPictureRequest, FinishPictureResponse, FinishRequest, FinishResponse,
    Hello, PageFailure, Picture, PictureHeader, ProxyRoute as WireRoute, Released, Returned,
    SigningIdentity as WireIdentity, SliceHeader, StepImageHeader, UploadHeader, UploadTarget as WireTarget,
    ViewportHeader,
};
use grabd_proto::options;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::convert::stage_from_proto;
use crate::render_metadata;
use crate::status::cause_from_proto;

/// The service over a core.
#[derive(Clone)]
pub struct RendererSessions(pub(crate) Core);

/// The version of the protocol between cores and renderers.
pub(crate) const PROTOCOL: i32 = 1;
/// The version of assignments. It is raised when a renderer that ignores a new field would make a wrong capture. This is not
/// [`PROTOCOL`], because renderers are replaced before cores, and cores of the version before must accept the new renderers.
pub(crate) const ASSIGNMENT_VERSION: i32 = 1;
/// How long a slot that a renderer offers to several cores may stay idle before it is returned: this long, and less
/// than twice.
const RETURN_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of slots of one renderer.
const MAX_SLOTS: i32 = 256;
/// How long the first message of a session may take.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long the next part of an image may take. The renderer has all of them in memory.
const PART_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of each text in a renderer's status, and of the reason for which a lease was released, in bytes.
const STATUS_BYTES: usize = 1024;
/// Maximum number of reasons for which a renderer reports browser restarts.
const MAX_REASONS: usize = 32;

#[tonic::async_trait]
impl RendererService for RendererSessions {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<AttachResponse, Status>> + Send>>;

    async fn attach(&self, request: Request<Streaming<AttachRequest>>) -> Result<Response<Self::AttachStream>, Status> {
        let mut inbound = request.into_inner();
        let slots = match timeout(HELLO_LIMIT, inbound.message()).await {
            Ok(Ok(Some(AttachRequest { message: Some(Message::Hello(hello)) }))) => session_slots(&hello)?,
            Ok(Ok(_)) => return Err(Status::invalid_argument("the first message must be hello")),
            Ok(Err(status)) => return Err(status),
            Err(_) => return Err(Status::deadline_exceeded("hello")),
        };
        let attached = RendererSession::attach(&self.0, slots).await;
        let (session, messages) = attached.map_err(|error| Status::unavailable(error.to_string()))?;
        let (core, id) = (self.0.clone(), session.id());
        self.0.spawn(async move {
            tokio::select! {
                () = receive_messages(&session, &mut inbound) => {}
                () = core.stopped() => {}
            }
            session.end().await;
        });
        // A renderer with one core is part of its process.
        let is_remote = matches!(slots, SessionSlots::Offered { .. });
        let core = self.0.clone();
        let mut sent = SentSettings::default();
        let responses = ReceiverStream::new(messages).then(move |message| {
            let core = core.clone();
            let update = match &message {
                SessionMessage::Assign(_) => sent.update(&core),
                SessionMessage::Cancel(_) | SessionMessage::Return(_) => SettingsUpdate::default(),
            };
            async move { Ok(to_response(&core, id, is_remote, message, update).await) }
        });
        Ok(Response::new(Box::pin(responses)))
    }

    async fn finish(&self, request: Request<FinishRequest>) -> Result<Response<FinishResponse>, Status> {
        let FinishRequest { grab_id, lease_token, result } = request.into_inner();
        let grab = grab_id.parse().map_err(|_| Status::invalid_argument("grab_id"))?;
        let token: LeaseToken = lease_token.parse().map_err(|_| Status::invalid_argument("lease_token"))?;
        let max_bytes = self.0.image_max_bytes();
        let result = result.ok_or_else(|| Status::invalid_argument("result"));
        let result = result.and_then(|result| parse(result, max_bytes))?;
        if matches!(result, AttemptResult::Image { .. }) && renderers::needs_files(&self.0, token) {
            return Err(Status::invalid_argument("an image with files is sent in parts"));
        }
        let accepted = self.record(grab, token, result).await?;
        Ok(Response::new(FinishResponse { accepted }))
    }

    async fn finish_picture(
        &self,
        request: Request<Streaming<FinishPictureRequest>>,
    ) -> Result<Response<FinishPictureResponse>, Status> {
        let mut parts = request.into_inner();
        let Some(Part::Header(header)) = next_part(&mut parts).await? else {
            return Err(Status::invalid_argument("the first message must be the header"));
        };
        let PictureHeader { grab_id, lease_token, size_bytes, execution_ms, metadata, uploaded_sha256 } = *header;
        let grab = grab_id.parse().map_err(|_| Status::invalid_argument("grab_id"))?;
        let token: LeaseToken = lease_token.parse().map_err(|_| Status::invalid_argument("lease_token"))?;
        let metadata = render_metadata::from_wire(metadata.unwrap_or_default());
        let announced = match uploaded_sha256 {
            None => Announced::InParts { size_bytes },
            Some(sha256) => Announced::Uploaded(
                UploadedImage::new(size_bytes, &sha256).ok_or_else(|| Status::invalid_argument("uploaded_sha256"))?,
            ),
        };
        let result = match too_large(size_bytes, self.0.image_max_bytes()) {
            Some(failure) => AttemptResult::Failure { failure, metadata },
            None => match self.receive(token, announced, metadata.image_height, &mut parts).await {
                Ok(Some((image, files))) => {
                    let execution_ms = u32::try_from(execution_ms).unwrap_or(0);
                    AttemptResult::Image { image, files, execution_ms, metadata }
                }
                Ok(None) => return Ok(Response::new(FinishPictureResponse { accepted: false })),
                Err(Interrupted::Receive(ReceiveError::NotStored(error))) => {
                    let accepted = renderers::image_not_stored(&self.0, grab, token, &error).await;
                    return Ok(Response::new(FinishPictureResponse { accepted }));
                }
                Err(Interrupted::Receive(ReceiveError::Invalid(message))) => {
                    return Err(Status::invalid_argument(message));
                }
                Err(Interrupted::Status(status)) => return Err(status),
            },
        };
        let accepted = self.record(grab, token, result).await?;
        Ok(Response::new(FinishPictureResponse { accepted }))
    }
}

impl RendererSessions {
    /// Receives the parts of an image unless it was uploaded, and of the attachments. `None` when no session holds the lease.
    async fn receive(
        &self,
        token: LeaseToken,
        announced: Announced,
        image_height: Option<u32>,
        parts: &mut Streaming<FinishPictureRequest>,
    ) -> Result<Option<(ReceivedImage, ReceivedFiles)>, Interrupted> {
        let receiver = match announced {
            Announced::InParts { size_bytes } => ImageReceiver::begin(&self.0, token, size_bytes).await?,
            Announced::Uploaded(image) => ImageReceiver::begin_uploaded(&self.0, token, image),
        };
        let Some(mut receiver) = receiver else { return Ok(None) };
        while let Some(part) = next_part(parts).await.map_err(Interrupted::Status)? {
            match part {
                Part::Part(part) => receiver.write(part).await?,
                Part::File(FileHeader { kind, size_bytes }) => receiver.next_file(&kind, size_bytes).await?,
                Part::Slice(SliceHeader { size_bytes, y, height, heading }) => {
                    receiver.next_slice(SlicePlace::new(y, height, heading.as_deref()), size_bytes).await?;
                }
                Part::Viewport(ViewportHeader { size_bytes, viewport_width, viewport_height, width, height }) => {
                    let size = ViewportSize { viewport_width, viewport_height, width, height };
                    receiver.next_viewport(size, size_bytes).await?;
                }
                Part::StepImage(StepImageHeader { size_bytes, name, width, height }) => {
                    receiver.next_step_image(StepImage { name, width, height }, size_bytes).await?;
                }
                Part::Header(_) => return Err(ReceiveError::Invalid("a second header").into()),
            }
        }
        Ok(Some(receiver.finish(image_height).await?))
    }

    async fn record(&self, grab: GrabId, token: LeaseToken, result: AttemptResult) -> Result<bool, Status> {
        renderers::record(&self.0, grab, token, result).await.map_err(|error| match error {
            OutcomeUnknown::Database(_) => Status::unavailable("the outcome is not known; repeat"),
            OutcomeUnknown::Panicked(_) => Status::internal("the outcome is not known"),
        })
    }
}

/// The image that the header of its report announces.
enum Announced {
    /// Its parts follow.
    InParts {
        /// The size of all of them.
        size_bytes: u64,
    },
    /// The renderer has uploaded it.
    Uploaded(UploadedImage),
}

/// Why an image was not received.
enum Interrupted {
    /// The stream broke.
    Status(Status),
    /// What arrived was not accepted.
    Receive(ReceiveError),
}

impl From<ReceiveError> for Interrupted {
    fn from(error: ReceiveError) -> Self {
        Self::Receive(error)
    }
}

/// The next part of an image. `None` at the end.
async fn next_part(parts: &mut Streaming<FinishPictureRequest>) -> Result<Option<Part>, Status> {
    let message = timeout(PART_LIMIT, parts.message()).await;
    let message = message.map_err(|_| Status::deadline_exceeded("the next part of the image"))??;
    match message {
        None => Ok(None),
        Some(FinishPictureRequest { message: Some(part) }) => Ok(Some(part)),
        Some(FinishPictureRequest { message: None }) => Err(Status::invalid_argument("an empty message")),
    }
}

/// The settings that a session has been sent with earlier assignments. They are not sent again.
#[derive(Default)]
struct SentSettings {
    rules: Arc<DomainRules>,
    identity: Option<Arc<SigningIdentity>>,
}

/// The settings that a session is sent with an assignment, because they have changed.
#[derive(Default)]
struct SettingsUpdate {
    rules: Option<WireRules>,
    identity: Option<WireIdentity>,
}

impl SentSettings {
    /// What has changed since the last call.
    fn update(&mut self, core: &Core) -> SettingsUpdate {
        SettingsUpdate { rules: self.new_rules(core), identity: self.new_identity(core.signing_identity()) }
    }

    fn new_rules(&mut self, core: &Core) -> Option<WireRules> {
        let rules = renderers::domain_rules(core);
        if *rules == *self.rules {
            return None;
        }
        self.rules = rules.clone();
        Some(WireRules { deny: rules.domains(DomainRule::Deny), allow: rules.domains(DomainRule::Allow) })
    }

    fn new_identity(&mut self, current: Option<Arc<SigningIdentity>>) -> Option<WireIdentity> {
        let current = current?;
        if self.identity.as_ref().is_some_and(|sent| sent.key.id() == current.key.id()) {
            return None;
        }
        let (agent, seed) = (current.agent.as_str().to_owned(), current.key.seed().to_vec());
        let is_text = current.agent.form() == AgentForm::Text;
        self.identity = Some(current);
        Some(WireIdentity { agent, seed: seed.into(), is_text })
    }
}

/// A message for a renderer, which may upload images itself if it is remote.
async fn to_response(
    core: &Core,
    session: SessionId,
    is_remote: bool,
    message: SessionMessage,
    update: SettingsUpdate,
) -> AttachResponse {
    let message = match message {
        SessionMessage::Assign(lease) => {
            let upload = if is_remote { renderers::upload_target(core, &lease).await } else { None };
            // The core uploads the image. A renderer, which runs pages, gets no secret that it does not need.
            let request = CaptureRequest { upload_url: None, ..lease.spec.to_request() };
            let (options, _) = options::encode(&request);
            Outgoing::Assignment(Box::new(Assignment {
                grab_id: lease.grab.to_string(),
                lease_token: lease.token.to_string(),
                options: Some(options),
                budget: prost_types::Duration::try_from(lease.budget).ok(),
                alone: lease.attempt > 1,
                margin: prost_types::Duration::try_from(lease.spec.lease_margin()).ok(),
                upload: upload.map(|target| wire_target(target, core.image_max_bytes())),
                session_id: session.to_string(),
                domain_rules: update.rules,
                signing_identity: update.identity,
                proxy: lease.proxy.as_deref().map(wire_route),
            }))
        }
        SessionMessage::Cancel(token) => Outgoing::Cancel(Cancel { lease_token: token.to_string() }),
        SessionMessage::Return(slots) => {
            Outgoing::Returned(Returned { slots: i32::try_from(slots).unwrap_or(i32::MAX) })
        }
    };
    AttachResponse { message: Some(message) }
}

fn wire_route(ProxyRoute { name, url, login }: &ProxyRoute) -> WireRoute {
    let (username, password) = login.as_ref().map(|login| (login.username.clone(), login.password.clone())).unzip();
    WireRoute { name: name.clone(), url: url.to_string(), username, password }
}

fn wire_target(UploadTarget { url, headers, valid }: UploadTarget, max_bytes: u64) -> WireTarget {
    let headers = headers.into_iter().map(|(name, value)| UploadHeader { name, value }).collect();
    WireTarget { url, headers, max_bytes, valid_for: prost_types::Duration::try_from(valid).ok() }
}

/// Handles messages of the renderer until it closes the session.
async fn receive_messages(session: &RendererSession, inbound: &mut Streaming<AttachRequest>) {
    let mut unused = tokio::time::interval(RETURN_AFTER);
    unused.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            _ = unused.tick() => {
                session.return_unused();
                continue;
            }
        };
        let Ok(Some(AttachRequest { message })) = message else { return };
        match message {
            Some(Message::Ready(ready)) => match slots(ready.slots) {
                Ok(slots) => session.ready(slots),
                Err(_) => return,
            },
            Some(Message::Condition(reported)) => session.record_heartbeat(renderer_status(reported)),
            Some(Message::Stage(reported)) => record_stage(session, &reported),
            Some(Message::Draining(_)) => session.drain(),
            // What cannot be read is ignored: the account then pays less.
            Some(Message::SlotFreed(freed)) => {
                if let Ok(token) = freed.lease_token.parse() {
                    session.record_freed(token, Duration::from_millis(freed.ms.into())).await;
                }
            }
            // What cannot be read is ignored: the other core will be noticed without it.
            Some(Message::BrokenSession(broken)) => {
                if let Ok(broken) = broken.session_id.parse() {
                    session.requeue_broken(broken).await;
                }
            }
            Some(Message::Hello(_)) | None => {}
        }
    }
}

/// Records a stage, for watchers. What cannot be read is ignored: stages may be lost.
fn record_stage(session: &RendererSession, reported: &AssignmentStage) {
    if let (Ok(token), Some(stage)) = (reported.lease_token.parse(), stage_from_proto(reported.stage())) {
        session.record_stage(token, stage, reported.ms);
    }
}

fn renderer_status(reported: WireCondition) -> RendererStatus {
    let WireCondition { browser, restarts, memory_bytes, is_jailed, jail, is_tested, self_test } = reported;
    let short = |text| shortened(text, STATUS_BYTES);
    let restarts = restarts.into_iter().take(MAX_REASONS).map(|(reason, count)| (short(reason), count)).collect();
    RendererStatus {
        browser: short(browser),
        restarts,
        memory_bytes,
        is_jailed,
        jail: short(jail),
        is_tested,
        self_test: short(self_test),
    }
}

/// The slots of a new session.
fn session_slots(hello: &Hello) -> Result<SessionSlots, Status> {
    let Hello { slots: all, protocol, version, cores, assignment_version } = hello;
    let own = env!("CARGO_PKG_VERSION");
    let version = shortened(version.clone(), STATUS_BYTES);
    if *protocol != PROTOCOL {
        return Err(Status::failed_precondition(format!(
            "this core (grabd {own}) speaks version {PROTOCOL} of the renderer protocol, the renderer (grabd {version}) \
             version {protocol}; install the same version of grabd on both"
        )));
    }
    if *assignment_version < ASSIGNMENT_VERSION {
        return Err(Status::failed_precondition(format!(
            "this core (grabd {own}) sends assignments of version {ASSIGNMENT_VERSION}, the renderer (grabd {version}) \
             reads version {assignment_version}; install the same version of grabd on both"
        )));
    }
    let all = slots(*all)?;
    Ok(match usize::try_from(*cores) {
        Ok(0) => SessionSlots::Own(all),
        Ok(cores) => SessionSlots::Offered { all, cores },
        Err(_) => return Err(Status::invalid_argument("cores must not be negative")),
    })
}

fn slots(slots: i32) -> Result<usize, Status> {
    usize::try_from(slots)
        .ok()
        .filter(|_| (1..=MAX_SLOTS).contains(&slots))
        .ok_or_else(|| Status::invalid_argument("slots must be from 1 to 256"))
}

/// The failure of a grab whose image is larger than allowed.
fn too_large(size_bytes: u64, max_bytes: u64) -> Option<Failure> {
    (size_bytes > max_bytes).then(|| Failure::image_too_large(size_bytes, max_bytes))
}

fn parse(result: FinishResult, image_max_bytes: u64) -> Result<AttemptResult, Status> {
    match result {
        FinishResult::Picture(Picture { image, execution_ms, metadata }) => {
            let metadata = render_metadata::from_wire(metadata.unwrap_or_default());
            let execution_ms = u32::try_from(execution_ms).unwrap_or(0);
            let size_bytes = u64::try_from(image.len()).unwrap_or(u64::MAX);
            Ok(match too_large(size_bytes, image_max_bytes) {
                Some(failure) => AttemptResult::Failure { failure, metadata },
                None => {
                    let (image, files) = (ReceivedImage::Whole(image), ReceivedFiles::default());
                    AttemptResult::Image { image, files, execution_ms, metadata }
                }
            })
        }
        FinishResult::Failure(failed) => {
            let cause = cause_from_proto(failed.cause());
            let PageFailure { code, message, metadata, cause: _ } = failed;
            let reason = FailureReason::parse(&code).ok_or_else(|| Status::invalid_argument("code"))?;
            let metadata = render_metadata::from_wire(metadata.unwrap_or_default());
            let failure = Failure::new(reason, message).caused_by(cause.unwrap_or(reason.cause()));
            Ok(AttemptResult::Failure { failure, metadata })
        }
        FinishResult::Released(Released { cause }) => {
            Ok(AttemptResult::Released { cause: shortened(cause, STATUS_BYTES) })
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::identity::{AgentUrl, SigningKey};

    use super::*;

    #[test]
    fn hello_of_another_protocol_or_of_earlier_assignments_is_refused_with_both_versions() {
        let hello = |protocol, cores| {
            let (version, assignment_version) = ("9.8.7".into(), ASSIGNMENT_VERSION);
            Hello { slots: 3, protocol, version, cores, assignment_version }
        };
        assert_eq!(session_slots(&hello(PROTOCOL, 0)).unwrap(), SessionSlots::Own(3));
        assert_eq!(session_slots(&hello(PROTOCOL, 2)).unwrap(), SessionSlots::Offered { all: 3, cores: 2 });
        for protocol in [0, PROTOCOL + 1] {
            let refused = session_slots(&hello(protocol, 0)).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
            let message = refused.message();
            assert!(message.contains("grabd 9.8.7") && message.contains(env!("CARGO_PKG_VERSION")), "{message}");
        }
        assert!(session_slots(&hello(PROTOCOL, -1)).is_err());
        // Renderers are replaced before cores, so later ones are accepted.
        let later = Hello { assignment_version: ASSIGNMENT_VERSION + 1, ..hello(PROTOCOL, 0) };
        assert_eq!(session_slots(&later).unwrap(), SessionSlots::Own(3));
        let earlier = Hello { assignment_version: ASSIGNMENT_VERSION - 1, ..hello(PROTOCOL, 0) };
        let refused = session_slots(&earlier).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
        assert!(refused.message().contains("grabd 9.8.7"), "{}", refused.message());
    }

    #[test]
    fn key_is_sent_once_until_it_changes() {
        let identity = |byte| {
            let key = SigningKey::from_seed(&[byte; 32]).map(Arc::new);
            let agent = AgentUrl::parse("https://grabs.example.com");
            Some(Arc::new(SigningIdentity { agent: agent.unwrap(), key: key.unwrap() }))
        };
        let mut sent = SentSettings::default();
        assert_eq!(sent.new_identity(None), None);
        let first = sent.new_identity(identity(1)).unwrap();
        assert_eq!((&*first.agent, &*first.seed), ("https://grabs.example.com", &[1; 32][..]));
        assert_eq!(sent.new_identity(identity(1)), None);
        assert_eq!(sent.new_identity(identity(2)).map(|sent| sent.seed.to_vec()), Some(vec![2; 32]));
    }

    #[test]
    fn received_image_above_the_size_limit_is_a_failure() {
        let picture = || FinishResult::Picture(Picture { image: vec![0; 2 << 20].into(), ..Picture::default() });
        assert!(matches!(parse(picture(), 2 << 20), Ok(AttemptResult::Image { .. })));
        let Ok(AttemptResult::Failure { failure, .. }) = parse(picture(), 1 << 20) else { panic!("an image") };
        assert!(failure.message.contains("2 MB; at most 1 MB are allowed"), "{failure:?}");
        assert_eq!(failure.reason, FailureReason::RenderFailed);
    }
}
