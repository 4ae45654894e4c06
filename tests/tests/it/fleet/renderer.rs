//! Renderers without a browser, over the real protocol.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use grabd_domain::grabs::RenderMetadata;
use grabd_domain::ids::GrabId;
use grabd_domain::render::{Capture, RenderError, RenderTask, Renderer, RendererStatus};
use grabd_proto::internal::v1::attach_request::Message as Request;
use grabd_proto::internal::v1::attach_response::Message as Response;
use grabd_proto::internal::v1::finish_picture_request::Message as Part;
use grabd_proto::internal::v1::renderer_service_client::RendererServiceClient;
use grabd_proto::internal::v1::{
    Assignment, AttachRequest, AttachResponse, FinishPictureRequest, Hello, PictureHeader,
};
use grabd_rpc::renderer_pool::{AttachedCores, RendererPool};
use image::{ImageFormat, Rgb, RgbImage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use super::processes::poll;

/// A renderer that is attached to cores until it is dropped.
pub(super) struct ScriptedRenderer {
    /// The grabs whose renders began.
    pub(super) begun: mpsc::UnboundedReceiver<GrabId>,
    attached: AttachedCores,
    stop: DropGuard,
}

struct Script {
    begun: mpsc::UnboundedSender<GrabId>,
    image: Bytes,
    /// The first render never ends.
    hangs: bool,
    count: Arc<std::sync::atomic::AtomicUsize>,
}

impl Renderer for Script {
    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        // The test may have ended.
        let _ = self.begun.send(task.id);
        let number = self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if self.hangs && number == 0 {
            std::future::pending::<()>().await;
        }
        let metadata = RenderMetadata { image_width: Some(8), image_height: Some(8), ..RenderMetadata::default() };
        Ok(Capture {
            image: self.image.clone(),
            metadata,
            execution_ms: 1,
            files: Vec::new(),
            slices: Vec::new(),
            viewports: Vec::new(),
        })
    }

    fn status(&self) -> RendererStatus {
        RendererStatus::default()
    }
}

impl ScriptedRenderer {
    /// Attaches to these cores. If it `hangs`, its first render never ends.
    pub(super) fn attach(cores: &[SocketAddr], slots: usize, colour: [u8; 3], hangs: bool) -> Self {
        let endpoint = |core| Endpoint::from_shared(format!("http://{core}")).map_err(|error| error.to_string());
        let pool = RendererPool::new(cores.iter().map(ToString::to_string).collect(), slots, endpoint);
        let attached = pool.attached();
        let (sender, begun) = mpsc::unbounded_channel();
        let script = Script { begun: sender, image: picture(colour), hangs, count: Arc::default() };
        let stop = CancellationToken::new();
        // Ends with the test's runtime at the latest.
        TaskTracker::new().spawn(pool.run(script, stop.clone()));
        Self { begun, attached, stop: stop.drop_guard() }
    }

    /// Stops it. When this returns, it offers no slots any more; its renders continue.
    pub(super) async fn stop(self) -> Result<()> {
        self.stop.disarm().cancel();
        poll("the end of its offers", async || Ok((self.attached.count() == 0).then_some(()))).await
    }

    /// The next grab whose render begins.
    pub(super) async fn next(&mut self) -> Result<GrabId> {
        let limit = std::time::Duration::from_secs(60);
        tokio::time::timeout(limit, self.begun.recv()).await.context("no render began")?.context("it was stopped")
    }
}

/// An image of one colour.
pub(super) fn picture(colour: [u8; 3]) -> Bytes {
    let mut file = Cursor::new(Vec::new());
    RgbImage::from_pixel(8, 8, Rgb(colour)).write_to(&mut file, ImageFormat::Png).expect("a PNG in memory");
    file.into_inner().into()
}

/// A session that takes one assignment and does nothing with it.
pub(super) struct HeldSession {
    _outbox: mpsc::Sender<AttachRequest>,
    messages: Streaming<AttachResponse>,
}

impl HeldSession {
    /// Attaches to a core with one slot.
    pub(super) async fn attach(channel: Channel) -> Result<Self, Status> {
        let (outbox, requests) = mpsc::channel(1);
        let hello = Hello { slots: 1, protocol: 1, version: "test".into(), cores: 0 };
        let hello = AttachRequest { message: Some(Request::Hello(hello)) };
        outbox.send(hello).await.map_err(|_| Status::internal("closed"))?;
        let attached = RendererServiceClient::new(channel).attach(ReceiverStream::new(requests)).await?;
        Ok(Self { _outbox: outbox, messages: attached.into_inner() })
    }

    /// Waits for the assignment.
    pub(super) async fn assignment(&mut self) -> Result<Assignment> {
        let message = self.messages.message().await?.and_then(|message| message.message);
        match message.context("the session ended")? {
            Response::Assignment(assignment) => Ok(*assignment),
            Response::Cancel(_) | Response::Returned(_) => anyhow::bail!("not an assignment"),
        }
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
    };
    let parts = [Part::Header(Box::new(header)), Part::Part(image)];
    let parts = parts.map(|part| FinishPictureRequest { message: Some(part) });
    let response = RendererServiceClient::new(channel).finish_picture(tokio_stream::iter(parts)).await?;
    Ok(response.into_inner().accepted)
}
