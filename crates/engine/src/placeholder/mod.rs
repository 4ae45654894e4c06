//! Placeholders: the images of test keys, drawn in the requested size and format without visiting the page.
//!
//! `drawing` has the design, `encode` the encoders, `simulated` the reserved host names that simulate failures. The
//! fonts are embedded and system fonts are not used, so that the same request gives the same bytes on every machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use grabd_domain::capture::{AttachmentName, CaptureSpec, FileKind, Format, Viewport};
use grabd_domain::grabs::{RenderMetadata, SettledBy, StepImage, ViewportSize};
use grabd_domain::render::{
    Capture, CapturedFile, CapturedSlice, CapturedStepImage, CapturedViewport, RenderError, RenderTask, Renderer,
    RendererStatus,
};
use grabd_memory::{MemoryBudget, Reservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use self::drawing::{Drawing, Painter};
pub(crate) use self::slices::pixel_format;
pub(crate) use self::thumbnail::pixel_target;
use crate::cache::Cache;
use crate::error::IMAGES_BUSY;
use crate::image_digest::ImageDigest;

mod drawing;
mod encode;
mod files;
mod simulated;
mod slices;
mod thumbnail;

use self::files::file;
pub use self::simulated::{SimulatedOutcome, simulated_outcome};

/// Placeholders drawn concurrently. Drawing is CPU-bound, so more would only slow down each other and other tasks.
const MAX_CONCURRENT: usize = 2;
/// The same for images that anybody may request.
const MAX_CONCURRENT_OF_VISITORS: usize = 1;

/// How long a drawing may wait for the ones before it and for the memory of other images.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// Why a placeholder could not be drawn. Never caused by the caller: size and format come from a valid spec.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The SVG could not be parsed or painted.
    #[error("the placeholder could not be drawn")]
    Draw(#[from] resvg::usvg::Error),
    /// The pixels could not be encoded.
    #[error("the placeholder could not be encoded")]
    Encode(#[from] image::ImageError),
    /// The image could not be cut into slices.
    #[error("the placeholder could not be cut")]
    Cut(#[from] grabd_pixels::Error),
    /// The image could not be made smaller.
    #[error("the placeholder could not be made smaller")]
    Shrink(#[from] grabd_pixels::PictureError),
    /// Other images took the memory, or other placeholders were drawn, for too long.
    #[error("too many images are being processed")]
    Busy,
    /// The blocking task panicked or was cancelled.
    #[error("the placeholder task ended early")]
    Task(#[from] tokio::task::JoinError),
}

impl From<Error> for crate::Error {
    #[track_caller]
    fn from(error: Error) -> Self {
        match error {
            Error::Busy => IMAGES_BUSY.into(),
            Error::Draw(_) | Error::Encode(_) | Error::Cut(_) | Error::Shrink(_) | Error::Task(_) => Self::other(error),
        }
    }
}

/// Draws placeholders. Cheap to clone; clones share one cache and, apart from those for visitors, the turns to draw.
#[derive(Clone)]
pub struct Placeholder {
    renderer: Arc<PlaceholderRenderer>,
    permits: Arc<Semaphore>,
}

struct PlaceholderRenderer {
    painter: Painter,
    cache: Cache<Key, Drawn>,
    memory: MemoryBudget,
}

/// All inputs that determine the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    drawing: Drawing,
    format: Format,
}

/// A drawn placeholder.
#[derive(Clone)]
struct Drawn {
    file: Bytes,
    /// In lower-case hexadecimal digits. Kept with the file, since every create with a test key needs it.
    sha256: String,
}

impl AsRef<[u8]> for Drawn {
    fn as_ref(&self) -> &[u8] {
        &self.file
    }
}

impl Placeholder {
    /// Creates a renderer that caches at most `cache_bytes` of encoded images, and draws in `memory`.
    pub fn new(cache_bytes: usize, memory: MemoryBudget) -> Self {
        let (painter, cache) = (Painter::new(), Cache::new(cache_bytes));
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
        Self { renderer: Arc::new(PlaceholderRenderer { painter, cache, memory }), permits }
    }

    /// The same for images that anybody may request as often as they like: with turns of their own, so that creates with
    /// test keys do not wait for them.
    pub(crate) fn for_visitors(&self) -> Self {
        Self { renderer: Arc::clone(&self.renderer), permits: Arc::new(Semaphore::new(MAX_CONCURRENT_OF_VISITORS)) }
    }

    /// The encoded image for a spec: the viewport's size, or the viewport's width and the documented height for a full
    /// page. Takes microseconds from the cache, otherwise some milliseconds on a blocking thread.
    ///
    /// # Errors
    /// [`Error::Busy`]. Else a bug in the drawing, or a runtime that is shutting down; no spec can cause one.
    pub async fn draw(&self, spec: &CaptureSpec) -> Result<Bytes, Error> {
        Ok(self.drawn(spec).await?.file)
    }

    async fn drawn(&self, spec: &CaptureSpec) -> Result<Drawn, Error> {
        let key = Key::of(spec);
        if let Some(drawn) = self.renderer.cache.get(&key) {
            return Ok(drawn);
        }
        let renderer = Arc::clone(&self.renderer);
        let turn = self.turn(key.drawing_bytes()).await?;
        // The task owns the permit and the memory, since it continues when the caller disconnects.
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            renderer.draw(key)
        })
        .await?
    }
}

impl Placeholder {
    /// An attachment for a spec. None if that has no such slice or viewport.
    ///
    /// # Errors
    /// As [`Placeholder::draw`].
    pub(crate) async fn file(&self, spec: &CaptureSpec, name: AttachmentName) -> Result<Option<Bytes>, Error> {
        match name {
            // It has no elements, so there is nothing to mark.
            AttachmentName::Also(FileKind::Marks) => self.draw(&without_marks(spec)).await.map(Some),
            AttachmentName::Also(FileKind::Thumbnail) => self.thumbnail(spec).await,
            AttachmentName::Also(kind) => Ok(file(spec, kind)),
            AttachmentName::Slice(number) => {
                let slice = self.slices(spec).await?.into_iter().nth(usize::from(number.get()) - 1);
                Ok(slice.map(|slice| slice.content))
            }
            AttachmentName::Viewport(number) => match spec.viewports.get(usize::from(number.get()) - 1) {
                Some(viewport) => self.draw(&in_viewport(spec, *viewport)).await.map(Some),
                None => Ok(None),
            },
            // No step is done, so that they show what the image shows.
            AttachmentName::Step(_) => self.draw(spec).await.map(Some),
        }
    }

    /// The slices of the image for a spec, from top to bottom. None unless it asks for them.
    async fn slices(&self, spec: &CaptureSpec) -> Result<Vec<CapturedSlice>, Error> {
        let Some(slice_height) = spec.slice_height else { return Ok(Vec::new()) };
        let (image, format) = (self.draw(spec).await?, spec.format);
        let bytes = slices::memory_bytes(Drawing::of(spec).image_size(), slice_height, format, &image);
        let turn = self.turn(bytes).await?;
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Ok(slices::cut(&image, slice_height, format)?)
        })
        .await?
    }

    /// The smaller copy of the image for a spec. None unless it asks for one.
    async fn thumbnail(&self, spec: &CaptureSpec) -> Result<Option<Bytes>, Error> {
        let Some(target) = spec.thumbnail.map(pixel_target) else { return Ok(None) };
        let (image, format) = (self.draw(spec).await?, spec.format);
        let turn = self.turn(thumbnail::memory_bytes(&image, format, target)?).await?;
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Ok(Some(thumbnail::make(&image, format, target)?))
        })
        .await?
    }

    /// The image with the metadata of a page that responded with 200 and settled at once. Steps would take images with these
    /// names.
    ///
    /// # Errors
    /// As [`Placeholder::draw`].
    pub(crate) async fn capture(&self, spec: &CaptureSpec, image_names: Vec<String>) -> Result<Capture, Error> {
        let started = Instant::now();
        let (image_width, image_height) = Drawing::of(spec).image_size();
        let Drawn { file: image, sha256 } = self.drawn(spec).await?;
        let execution_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        let metadata = RenderMetadata {
            final_url: Some(spec.url.as_str().to_owned()),
            http_status: Some(200),
            settled_by: Some(SettledBy::Quiet),
            image_width: Some(image_width),
            image_height: Some(image_height),
            image_sha256: Some(sha256),
            ..RenderMetadata::default()
        };
        let mut files = Vec::new();
        for kind in &spec.also {
            if let Some(content) = self.file(spec, AttachmentName::Also(*kind)).await? {
                files.push(CapturedFile { kind: *kind, content });
            }
        }
        if let Some(content) = self.thumbnail(spec).await? {
            files.push(CapturedFile { kind: FileKind::Thumbnail, content });
        }
        let slices = self.slices(spec).await?;
        let mut viewports = Vec::new();
        for viewport in &spec.viewports {
            let spec = in_viewport(spec, *viewport);
            let (width, height) = Drawing::of(&spec).image_size();
            let (viewport_width, viewport_height) = (viewport.width(), viewport.height());
            let size = ViewportSize { viewport_width, viewport_height, width, height };
            viewports.push(CapturedViewport { size, content: self.draw(&spec).await? });
        }
        let step_image = |name: String| CapturedStepImage {
            image: StepImage { name, width: image_width, height: image_height },
            content: image.clone(),
        };
        let step_images = image_names.into_iter().map(step_image).collect();
        Ok(Capture { image, metadata, execution_ms, files, slices, viewports, step_images })
    }
}

/// The spec of the placeholder with marks.
fn without_marks(spec: &CaptureSpec) -> CaptureSpec {
    CaptureSpec { format: Format::Png, ..spec.clone() }
}

/// The same spec in another viewport.
fn in_viewport(spec: &CaptureSpec, viewport: Viewport) -> CaptureSpec {
    CaptureSpec { viewport, ..spec.clone() }
}

impl Placeholder {
    /// Waits for a turn to draw, and for this much memory.
    async fn turn(&self, bytes: u64) -> Result<(OwnedSemaphorePermit, Reservation), Error> {
        let turn = async {
            let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Error::Busy)?;
            let memory = self.renderer.memory.reserve_at_most(bytes, WAIT_LIMIT).await;
            Ok((permit, memory.map_err(|_| Error::Busy)?))
        };
        timeout(WAIT_LIMIT, turn).await.map_err(|_| Error::Busy)?
    }
}

impl PlaceholderRenderer {
    fn draw(&self, key: Key) -> Result<Drawn, Error> {
        let file = Bytes::from(encode::encode(self.painter.paint(&key.drawing)?, key.format)?);
        let drawn = Drawn { sha256: ImageDigest::of(&file), file };
        self.cache.put(key, &drawn);
        Ok(drawn)
    }
}

impl Key {
    fn of(spec: &CaptureSpec) -> Self {
        Self { drawing: Drawing::of(spec), format: spec.format }
    }

    /// The memory that drawing and encoding take: four bytes per pixel, and as many again for the encoder of WebP.
    fn drawing_bytes(&self) -> u64 {
        let (width, height) = self.drawing.image_size();
        let pixels = u64::from(width) * u64::from(height);
        match self.format {
            Format::Png | Format::Jpeg => pixels * 4,
            Format::Webp => pixels * 8,
        }
    }
}

/// Reports the metadata of a page that responded with 200 and settled at once. Dropping the future stops waiting; a
/// drawing in progress ends within milliseconds.
impl Renderer for Placeholder {
    fn status(&self) -> RendererStatus {
        let nothing = "nothing is visited".to_owned();
        RendererStatus {
            browser: "placeholders".to_owned(),
            jail: nothing.clone(),
            self_test: nothing,
            ..RendererStatus::default()
        }
    }

    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        self.capture(&task.spec, task.spec.secrets.image_names())
            .await
            .map_err(|error| RenderError::Lost(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
