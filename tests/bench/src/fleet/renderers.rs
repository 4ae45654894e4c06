//! Renderers that return a small image after some time, over the real protocol.

use std::io::Cursor;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::grabs::RenderMetadata;
use grabd_domain::render::{Capture, RenderError, RenderTask, Renderer, RendererStatus};
use grabd_rpc::renderer_pool::RendererPool;
use image::{ImageFormat, RgbImage};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Endpoint;

use super::callers::Begun;

/// Renderers with these slots together.
pub(super) struct Renderers {
    rendered: Arc<AtomicU64>,
    tasks: TaskTracker,
}

struct Script {
    image: Bytes,
    milliseconds: Range<u64>,
    begun: Begun,
    rendered: Arc<AtomicU64>,
}

impl Renderer for Script {
    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        self.begun.note(task.id);
        // Ids have random bits.
        let Range { start, end } = self.milliseconds;
        let random = u64::try_from(task.id.0.as_u128() & u128::from(u64::MAX)).unwrap_or_default();
        let milliseconds = start + random % (end - start);
        if milliseconds > 0 {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        self.rendered.fetch_add(1, Ordering::Relaxed);
        let metadata = RenderMetadata { image_width: Some(8), image_height: Some(8), ..RenderMetadata::default() };
        let execution_ms = u32::try_from(milliseconds).unwrap_or(u32::MAX);
        let (files, slices, viewports, step_images) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Capture { image: self.image.clone(), metadata, execution_ms, files, slices, viewports, step_images })
    }

    fn status(&self) -> RendererStatus {
        RendererStatus::default()
    }
}

impl Renderers {
    pub(super) fn attach(
        cores: &[SocketAddr],
        slots: usize,
        slots_each: usize,
        milliseconds: Range<u64>,
        begun: &Begun,
        stop: &CancellationToken,
    ) -> Self {
        let mut file = Cursor::new(Vec::new());
        RgbImage::new(8, 8).write_to(&mut file, ImageFormat::Png).expect("a PNG in memory");
        let image: Bytes = file.into_inner().into();
        let (rendered, tasks) = (Arc::<AtomicU64>::default(), TaskTracker::new());
        let mut left = slots;
        while left > 0 {
            let own = left.min(slots_each);
            left -= own;
            let endpoint = |core| Endpoint::from_shared(format!("http://{core}")).map_err(|error| error.to_string());
            let pool = RendererPool::new(cores.iter().map(ToString::to_string).collect(), own, endpoint);
            let script = Script {
                image: image.clone(),
                milliseconds: milliseconds.clone(),
                begun: begun.clone(),
                rendered: Arc::clone(&rendered),
            };
            tasks.spawn(pool.run(script, stop.clone()));
        }
        tasks.close();
        Self { rendered, tasks }
    }

    /// The number of finished renders.
    pub(super) fn count(&self) -> u64 {
        self.rendered.load(Ordering::Relaxed)
    }

    /// Waits until all have stopped.
    pub(super) async fn finish(self) {
        self.tasks.wait().await;
    }
}
