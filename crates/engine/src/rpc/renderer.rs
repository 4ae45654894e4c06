//! `grabd.internal.v1.RendererService`: the core's side of a renderer session.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::limits::shortened;
use grabd_domain::render::RendererStatus;
use grabd_proto::internal::v1::attach_request::Message;
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::finish_request::Result as FinishResult;
use grabd_proto::internal::v1::renderer_service_server::RendererService;
use grabd_proto::internal::v1::{
    AttachRequest, AttachResponse, Condition as WireCondition, FileHeader, FinishPictureRequest, FinishPictureResponse,
    FinishRequest, FinishResponse, PageFailure, Picture, PictureHeader, Released,
};
use grabd_store::Upload;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::core::Core;
use crate::grabs::finish::{AttemptResult, ImageDigest, ReceivedFile, ReceivedImage, finish, not_stored};
use crate::queue::sweep;
use crate::random;
use crate::render_metadata;
use crate::rpc::status::cause_from_proto;

/// The service over a core.
#[derive(Clone)]
pub struct RendererSessions(pub(crate) Core);

/// Maximum number of slots of one renderer.
const MAX_SLOTS: i32 = 256;
/// How long the next part of an image may take. The renderer has all of them in memory.
const PART_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of each text in a renderer's status, and of the cause of a given-back render, in bytes.
const STATUS_BYTES: usize = 1024;
/// Maximum number of reasons for which a renderer reports browser restarts.
const MAX_REASONS: usize = 32;

#[tonic::async_trait]
impl RendererService for RendererSessions {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<AttachResponse, Status>> + Send>>;

    async fn attach(&self, request: Request<Streaming<AttachRequest>>) -> Result<Response<Self::AttachStream>, Status> {
        let mut inbound = request.into_inner();
        let slots = match inbound.message().await? {
            Some(AttachRequest { message: Some(Message::Hello(hello)) }) => slots(hello.slots)?,
            Some(_) | None => return Err(Status::invalid_argument("the first message must be hello")),
        };
        let id = random::session_id();
        let messages = self.0.queue.dispatcher.attach(id, slots, self.0.clock.now());
        let core = self.0.clone();
        self.0.spawn(async move {
            receive_messages(&core, id, &mut inbound).await;
            sweep::session_lost(&core, id).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(messages).map(Ok))))
    }

    async fn finish(&self, request: Request<FinishRequest>) -> Result<Response<FinishResponse>, Status> {
        let FinishRequest { grab_id, lease_token, result } = request.into_inner();
        let grab = grab_id.parse().map_err(|_| Status::invalid_argument("grab_id"))?;
        let token: LeaseToken = lease_token.parse().map_err(|_| Status::invalid_argument("lease_token"))?;
        let max_bytes = self.0.settings.image_max_bytes;
        let result = result.ok_or_else(|| Status::invalid_argument("result"));
        let result = result.and_then(|result| parse(result, max_bytes))?;
        if matches!(result, AttemptResult::Image { .. }) && !self.0.queue.dispatcher.also(token).is_empty() {
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
        let PictureHeader { grab_id, lease_token, size_bytes, execution_ms, metadata } = *header;
        let grab = grab_id.parse().map_err(|_| Status::invalid_argument("grab_id"))?;
        let token: LeaseToken = lease_token.parse().map_err(|_| Status::invalid_argument("lease_token"))?;
        let metadata = render_metadata::from_wire(metadata.unwrap_or_default());
        let result = match too_large(size_bytes, self.0.settings.image_max_bytes) {
            Some(failure) => AttemptResult::Failure { failure, metadata },
            None => match self.receive(token, size_bytes, &mut parts).await {
                Ok(Some((image, files))) => {
                    let execution_ms = u32::try_from(execution_ms).unwrap_or(0);
                    AttemptResult::Image { image, files, execution_ms, metadata }
                }
                Ok(None) => return Ok(Response::new(FinishPictureResponse { accepted: false })),
                Err(ReceiveError::Storage(error)) => {
                    let accepted = not_stored(&self.0, grab, token, &error).await;
                    return Ok(Response::new(FinishPictureResponse { accepted }));
                }
                Err(ReceiveError::Renderer(status)) => return Err(status),
            },
        };
        let accepted = self.record(grab, token, result).await?;
        Ok(Response::new(FinishPictureResponse { accepted }))
    }
}

/// Why an image was not received.
enum ReceiveError {
    /// The renderer sent something else, or nothing.
    Renderer(Status),
    /// The image could not be stored.
    Storage(grabd_store::images::Error),
}

impl RendererSessions {
    /// Writes the parts of an image and of the files beside it to disk as they arrive. Returns `None` when no session
    /// holds the lease.
    async fn receive(
        &self,
        token: LeaseToken,
        size_bytes: u64,
        parts: &mut Streaming<FinishPictureRequest>,
    ) -> Result<Option<(ReceivedImage, Vec<ReceivedFile>)>, ReceiveError> {
        let invalid = |message: &str| ReceiveError::Renderer(Status::invalid_argument(message));
        let Some(key) = self.0.queue.dispatcher.upload_key(token) else { return Ok(None) };
        let mut missing = self.0.queue.dispatcher.also(token);
        let mut files = Vec::new();
        let (mut digest, image) = (ImageDigest::default(), self.0.grabs.images.begin(&key).await);
        let image = image.map_err(ReceiveError::Storage)?;
        let (image, mut next) = receive_file(image, size_bytes, parts, |part| digest.update(part)).await?;
        while let Some(FileHeader { kind, size_bytes }) = next {
            let kind = FileKind::parse(&kind).ok_or_else(|| invalid("kind"))?;
            let asked = missing.iter().position(|of| *of == kind).ok_or_else(|| invalid("a file nobody asked for"))?;
            missing.remove(asked);
            if size_bytes > kind.max_bytes() {
                return Err(invalid("a file that is too large"));
            }
            let upload = self.0.grabs.images.begin_file(&key, kind).await.map_err(ReceiveError::Storage)?;
            let (upload, after) = receive_file(upload, size_bytes, parts, |_| ()).await?;
            files.push(ReceivedFile { kind, upload });
            next = after;
        }
        match missing.is_empty() {
            true => Ok(Some((ReceivedImage::Parts(image, digest), files))),
            false => Err(invalid("a file is missing")),
        }
    }

    /// Records a result, in a task of its own, so that a disconnecting renderer does not interrupt it.
    async fn record(&self, grab: GrabId, token: LeaseToken, result: AttemptResult) -> Result<bool, Status> {
        let core = self.0.clone();
        let task = self.0.spawn(async move { finish(&core, grab, token, result).await });
        match task.await {
            Ok(Ok(accepted)) => Ok(accepted),
            Ok(Err(error)) => {
                tracing::error!(%error, grab.id = %grab, "the result of an attempt could not be recorded");
                Err(Status::unavailable("the outcome is not known; repeat"))
            }
            Err(error) => {
                tracing::error!(%error, grab.id = %grab, "recording the result of an attempt panicked");
                Err(Status::internal("the outcome is not known"))
            }
        }
    }
}

/// Writes the parts of one file. Returns the header of the next file, if there is one.
async fn receive_file(
    mut upload: Upload,
    size_bytes: u64,
    parts: &mut Streaming<FinishPictureRequest>,
    mut each: impl FnMut(&[u8]),
) -> Result<(Upload, Option<FileHeader>), ReceiveError> {
    let invalid = |message: &str| ReceiveError::Renderer(Status::invalid_argument(message));
    let next = loop {
        match next_part(parts).await.map_err(ReceiveError::Renderer)? {
            Some(Part::Part(part)) => {
                let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
                if upload.bytes().saturating_add(length) > size_bytes {
                    return Err(invalid("more bytes than the header says"));
                }
                each(&part);
                upload.write(part).await.map_err(ReceiveError::Storage)?;
            }
            Some(Part::File(header)) => break Some(header),
            Some(Part::Header(_)) => return Err(invalid("a second header")),
            None => break None,
        }
    };
    match upload.bytes() == size_bytes {
        true => Ok((upload, next)),
        false => Err(invalid("fewer bytes than the header says")),
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

/// Handles messages of the renderer until the session ends.
async fn receive_messages(core: &Core, id: SessionId, inbound: &mut Streaming<AttachRequest>) {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = core.stop.cancelled() => return,
        };
        match message {
            Ok(Some(AttachRequest { message: Some(Message::Ready(ready)) })) => match slots(ready.slots) {
                Ok(slots) => core.queue.dispatcher.ready(id, slots),
                Err(_) => return,
            },
            Ok(Some(AttachRequest { message: Some(Message::Condition(reported)) })) => {
                core.queue.dispatcher.record_heartbeat(id, condition(reported), core.clock.now());
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

fn condition(reported: WireCondition) -> RendererStatus {
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
                    let (image, files) = (ReceivedImage::Whole(image), Vec::new());
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
    use super::*;

    #[test]
    fn received_image_above_the_size_limit_is_a_failure() {
        let picture = || FinishResult::Picture(Picture { image: vec![0; 2 << 20].into(), ..Picture::default() });
        assert!(matches!(parse(picture(), 2 << 20), Ok(AttemptResult::Image { .. })));
        let Ok(AttemptResult::Failure { failure, .. }) = parse(picture(), 1 << 20) else { panic!("an image") };
        assert!(failure.message.contains("2 MB; at most 1 MB are allowed"), "{failure:?}");
        assert_eq!(failure.reason, FailureReason::RenderFailed);
    }
}
