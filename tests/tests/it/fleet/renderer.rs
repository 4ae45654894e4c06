//! Renderers without a browser, over the real protocol.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::RenderMetadata;
use grabd_domain::ids::GrabId;
use grabd_domain::render::{Capture, CapturedFile, RenderError, RenderTask, Renderer, RendererStatus};
use grabd_engine::renderers::UploadTarget;
use grabd_proto::internal::v1::attach_request::Message as Request;
use grabd_proto::internal::v1::attach_response::Message as Response;
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    Assignment, AttachRequest, AttachResponse, FinishPictureRequest, Hello, PictureHeader, Ready,
};
use grabd_rpc::direct_uploads::DirectUploads;
use grabd_rpc::renderer_pool::{AttachedCores, RendererPool};
use image::{ImageFormat, Rgb, RgbImage};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use super::processes::poll;

/// Time limit for everything that is awaited. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A renderer that is attached to cores until it is dropped.
pub(super) struct ScriptedRenderer {
    /// The grabs whose renders began.
    pub(super) begun: mpsc::UnboundedReceiver<GrabId>,
    attached: AttachedCores,
    stop: DropGuard,
}

/// How the renders of a renderer go.
struct Renders {
    image: Bytes,
    /// The first render never ends.
    hangs: bool,
    /// How long each render takes.
    takes: Duration,
}

struct Script {
    begun: mpsc::UnboundedSender<GrabId>,
    renders: Renders,
    count: Arc<std::sync::atomic::AtomicUsize>,
}

impl Renderer for Script {
    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        // The test may have ended.
        let _ = self.begun.send(task.id);
        let number = self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if self.renders.hangs && number == 0 {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(self.renders.takes).await;
        // With the text of each page that is asked for.
        let files = task.spec.also.iter().map(|kind| CapturedFile { kind: *kind, content: TEXT });
        let metadata = RenderMetadata { image_width: Some(8), image_height: Some(8), ..RenderMetadata::default() };
        Ok(Capture {
            image: self.renders.image.clone(),
            metadata,
            execution_ms: 1,
            files: files.filter(|file| file.kind == FileKind::Text).collect(),
            slices: Vec::new(),
            viewports: Vec::new(),
            step_images: Vec::new(),
        })
    }

    fn status(&self) -> RendererStatus {
        RendererStatus::default()
    }
}

impl ScriptedRenderer {
    /// Attaches to these cores. If it `hangs`, its first render never ends.
    pub(super) fn attach(cores: &[SocketAddr], slots: usize, colour: [u8; 3], hangs: bool) -> Self {
        Self::attach_with(cores, slots, Renders { image: picture(colour), hangs, takes: Duration::ZERO }, None)
    }

    /// Attaches to these cores. Each render takes this long.
    pub(super) fn attach_taking(cores: &[SocketAddr], slots: usize, takes: Duration) -> Self {
        Self::attach_with(cores, slots, Renders { image: picture([0, 0, 0]), hangs: false, takes }, None)
    }

    /// Attaches to these cores with one slot, and uploads this image where they allow that.
    pub(super) fn attach_uploading(cores: &[SocketAddr], image: Bytes, uploads: Arc<DirectUploads>) -> Self {
        Self::attach_with(cores, 1, Renders { image, hangs: false, takes: Duration::ZERO }, Some(uploads))
    }

    fn attach_with(cores: &[SocketAddr], slots: usize, renders: Renders, uploads: Option<Arc<DirectUploads>>) -> Self {
        let endpoint = |core| Endpoint::from_shared(format!("http://{core}")).map_err(|error| error.to_string());
        let mut pool = RendererPool::new(cores.iter().map(ToString::to_string).collect(), slots, endpoint);
        if let Some(uploads) = uploads {
            pool = pool.with_uploads(uploads);
        }
        let attached = pool.attached();
        let (sender, begun) = mpsc::unbounded_channel();
        let script = Script { begun: sender, renders, count: Arc::default() };
        let stop = CancellationToken::new();
        // Ends with the test's runtime at the latest.
        TaskTracker::new().spawn(pool.run(script, stop.clone()));
        Self { begun, attached, stop: stop.drop_guard() }
    }

    /// Waits until it is attached to this number of cores.
    pub(super) async fn wait_until_attached(&self, cores: usize) -> Result<()> {
        poll("sessions with all cores", async || Ok((self.attached.count() == cores).then_some(()))).await
    }

    /// Stops it. When this returns, it offers no slots any more; its renders continue.
    pub(super) async fn stop(self) -> Result<()> {
        self.stop.disarm().cancel();
        poll("the end of its offers", async || Ok((self.attached.count() == 0).then_some(()))).await
    }

    /// The next grab whose render begins.
    pub(super) async fn next(&mut self) -> Result<GrabId> {
        timeout(WAIT_LIMIT, self.begun.recv()).await.context("no render began")?.context("it was stopped")
    }
}

/// The text that a scripted renderer makes of each page.
pub(super) const TEXT: Bytes = Bytes::from_static(b"the text");

/// An image of one colour.
pub(super) fn picture(colour: [u8; 3]) -> Bytes {
    let mut file = Cursor::new(Vec::new());
    RgbImage::from_pixel(8, 8, Rgb(colour)).write_to(&mut file, ImageFormat::Png).expect("a PNG in memory");
    file.into_inner().into()
}

/// A session that takes one assignment and does nothing with it.
pub(super) struct HeldSession {
    outbox: mpsc::Sender<AttachRequest>,
    messages: Streaming<AttachResponse>,
}

impl HeldSession {
    /// Attaches to a core with one slot.
    pub(super) async fn attach(channel: Channel) -> Result<Self, Status> {
        Self::attach_as(channel, 0).await
    }

    /// Attaches to a core with one slot, as a renderer with this number of cores. With 0, it counts as one in the process of
    /// the core.
    pub(super) async fn attach_as(channel: Channel, cores: i32) -> Result<Self, Status> {
        let (outbox, requests) = mpsc::channel(2);
        let hello = Hello { slots: 1, protocol: 1, version: "test".into(), cores, assignment_version: 1 };
        let offer = (cores > 0).then_some(Request::Ready(Ready { slots: 1 }));
        for message in std::iter::once(Request::Hello(hello)).chain(offer) {
            let message = AttachRequest { message: Some(message) };
            outbox.send(message).await.map_err(|_| Status::internal("closed"))?;
        }
        let attached = RendererServiceClient::new(channel).attach(ReceiverStream::new(requests)).await?;
        Ok(Self { outbox, messages: attached.into_inner() })
    }

    /// Waits for the assignment.
    pub(super) async fn assignment(&mut self) -> Result<Assignment> {
        timeout(WAIT_LIMIT, self.next_assignment()).await.context("no assignment in time")?
    }

    async fn next_assignment(&mut self) -> Result<Assignment> {
        loop {
            let message = self.messages.message().await?.and_then(|message| message.message);
            match message.context("the session ended")? {
                Response::Assignment(assignment) => return Ok(*assignment),
                Response::Cancel(_) => anyhow::bail!("a lease was cancelled"),
                Response::Returned(returned) => {
                    // The test has not created its grab yet: the slot is offered again.
                    let ready = Request::Ready(Ready { slots: returned.slots });
                    self.outbox.send(AttachRequest { message: Some(ready) }).await?;
                }
            }
        }
    }

    /// Offers the slot again.
    pub(super) async fn free_slot(&self) -> Result<()> {
        let ready = AttachRequest { message: Some(Request::Ready(Ready { slots: 1 })) };
        Ok(self.outbox.send(ready).await?)
    }

    /// Waits until the core cancels a lease. Returns its token.
    pub(super) async fn cancelled_lease(&mut self) -> Result<String> {
        let message = self.messages.message().await?.and_then(|message| message.message);
        match message.context("the session ended")? {
            Response::Cancel(cancel) => Ok(cancel.lease_token),
            Response::Assignment(_) | Response::Returned(_) => anyhow::bail!("not a cancellation"),
        }
    }
}

/// Reports an image for an assignment. Returns whether the core accepted it.
pub(super) async fn report(channel: Channel, assignment: &Assignment, image: Bytes) -> Result<bool> {
    let header = PictureHeader {
        grab_id: assignment.grab_id.clone(),
        lease_token: assignment.lease_token.clone(),
        size_bytes: image.len() as u64,
        execution_ms: 1,
        metadata: None,
        uploaded_sha256: None,
    };
    let parts = [Part::Header(Box::new(header)), Part::Part(image)];
    let parts = parts.map(|part| FinishPictureRequest { message: Some(part) });
    let response = RendererServiceClient::new(channel).finish_picture(tokio_stream::iter(parts)).await?;
    Ok(response.into_inner().accepted)
}

/// Where the image of an assignment may be uploaded.
pub(super) fn target(assignment: &Assignment) -> Result<UploadTarget> {
    let upload = assignment.upload.clone().context("an upload target")?;
    let headers = upload.headers.into_iter().map(|header| (header.name, header.value)).collect();
    Ok(UploadTarget { url: upload.url, headers, valid: upload.valid_for.context("a time")?.try_into()? })
}

/// Reports an image as uploaded. Returns whether the core accepted it.
pub(super) async fn report_uploaded(channel: Channel, assignment: &Assignment, size_bytes: u64) -> Result<bool> {
    let header = PictureHeader {
        grab_id: assignment.grab_id.clone(),
        lease_token: assignment.lease_token.clone(),
        size_bytes,
        execution_ms: 1,
        metadata: None,
        uploaded_sha256: Some("0".repeat(64)),
    };
    let request = FinishPictureRequest { message: Some(Part::Header(Box::new(header))) };
    let response = RendererServiceClient::new(channel).finish_picture(tokio_stream::iter([request])).await?;
    Ok(response.into_inner().accepted)
}
