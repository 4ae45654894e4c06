//! A renderer without a browser: a test decides what it returns.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::RenderMetadata;
use grabd_engine::Core;
use grabd_engine::renderers::{
    self, AttemptResult, ImageReceiver, Lease, RendererSession, SessionMessage, SessionSlots,
};
use tokio::sync::mpsc;

/// A renderer with one slot, attached to the core of a service.
pub struct ScriptedRenderer {
    core: Core,
    session: RendererSession,
    messages: mpsc::Receiver<SessionMessage>,
}

impl ScriptedRenderer {
    /// Attaches a renderer.
    ///
    /// # Errors
    /// If the core takes no work.
    pub async fn attach(core: &Core) -> Result<Self> {
        let (session, messages) = RendererSession::attach(core, SessionSlots::Own(1)).await?;
        Ok(Self { core: core.clone(), session, messages })
    }

    /// The next lease.
    ///
    /// # Errors
    /// If the service has ended, or cancels a lease.
    pub async fn next_lease(&mut self) -> Result<Lease> {
        match self.messages.recv().await.context("the session has ended")? {
            SessionMessage::Assign(lease) => Ok(*lease),
            SessionMessage::Cancel(_) => bail!("a lease was cancelled"),
            SessionMessage::Return(_) => bail!("slots were returned"),
        }
    }

    /// Returns an image and attachments, in parts, and makes the slot idle. Returns whether the result was
    /// accepted.
    ///
    /// # Errors
    /// If the core does not receive them.
    pub async fn finish(&self, lease: &Lease, image: &Bytes, files: &[(FileKind, Bytes)]) -> Result<bool> {
        let size = |content: &Bytes| u64::try_from(content.len()).unwrap_or(u64::MAX);
        let receiver = ImageReceiver::begin(&self.core, lease.token, size(image)).await?;
        let mut receiver = receiver.context("no session holds the lease")?;
        receiver.write(image.clone()).await?;
        for (kind, content) in files {
            receiver.next_file(kind.as_str(), size(content)).await?;
            receiver.write(content.clone()).await?;
        }
        let (image, files) = receiver.finish(None).await?;
        let result = AttemptResult::Image { image, files, execution_ms: 1, metadata: RenderMetadata::default() };
        let accepted = renderers::record(&self.core, lease.grab, lease.token, result).await?;
        self.session.ready(1);
        Ok(accepted)
    }

    /// Takes the next lease, and finishes it.
    ///
    /// # Errors
    /// As [`ScriptedRenderer::next_lease`] and [`ScriptedRenderer::finish`].
    pub async fn render(&mut self, image: &Bytes, files: &[(FileKind, Bytes)]) -> Result<bool> {
        let lease = self.next_lease().await?;
        self.finish(&lease, image, files).await
    }
}
