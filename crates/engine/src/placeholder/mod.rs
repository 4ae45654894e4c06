//! The picture that test keys get: drawn on the spot, of the asked size and format, and never of anybody's page.
//!
//! `drawing` says what it looks like, `encode` makes the file, `switches` lists the names that ask for a failure
//! instead. The font is embedded and no other is looked for, so that the same request
//! gives the same bytes on every machine.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use grabd_domain::capture::{CaptureSpec, Format};
use grabd_domain::grabs::{Facts, SettledBy};
use grabd_domain::render::{Capture, Condition, RenderError, RenderTask, Renderer};
use tokio::sync::Semaphore;

use self::drawing::{Drawing, Pencils};
use crate::cache::Cache;

mod drawing;
mod encode;
mod switches;

pub use self::switches::{Switch, switch};

/// Placeholders drawn at once. Drawing is pure computing, so more would only slow each other, and every other task, down.
const AT_ONCE: usize = 2;

/// Why there is no placeholder. Never the caller's doing: the size and format come from a checked spec.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The drawing is not one that can be painted.
    #[error("the placeholder could not be drawn")]
    Draw(#[from] resvg::usvg::Error),
    /// The painted picture does not fit its format.
    #[error("the placeholder could not be encoded")]
    Encode(#[from] image::ImageError),
    /// The drawing's thread ended before it was done.
    #[error("the placeholder's thread ended")]
    Lost(#[from] tokio::task::JoinError),
}

/// Draws placeholders. Cheap to clone; clones share one cache.
#[derive(Clone)]
pub struct Placeholder(Arc<Studio>);

struct Studio {
    pencils: Pencils,
    cache: Cache<Key, Bytes>,
    desks: Semaphore,
}

/// Everything the bytes depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    drawing: Drawing,
    format: Format,
}

impl Placeholder {
    /// A studio that keeps at most `cache_bytes` of encoded pictures.
    pub fn new(cache_bytes: usize) -> Self {
        let (pencils, cache, desks) = (Pencils::new(), Cache::new(cache_bytes), Semaphore::new(AT_ONCE));
        Self(Arc::new(Studio { pencils, cache, desks }))
    }

    /// The encoded picture for a spec: the viewport's size, or the viewport's width and the contract's height for a full
    /// page. Microseconds when the cache has it, else some milliseconds on a thread that may be kept busy.
    ///
    /// # Errors
    /// A mistake of ours in the drawing, or a run time that is shutting down; no spec can cause one.
    pub async fn draw(&self, spec: &CaptureSpec) -> Result<Bytes, Error> {
        let key = Key::of(spec);
        if let Some(file) = self.0.cache.get(&key) {
            return Ok(file);
        }
        let _desk = self.0.desks.acquire().await.expect("the desks are never closed");
        let studio = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || studio.draw(key)).await?
    }
}

impl Studio {
    fn draw(&self, key: Key) -> Result<Bytes, Error> {
        let file = Bytes::from(encode::encode(self.pencils.paint(&key.drawing)?, key.format)?);
        self.cache.put(key, &file);
        Ok(file)
    }
}

impl Key {
    fn of(spec: &CaptureSpec) -> Self {
        Self { drawing: Drawing::of(spec), format: spec.format }
    }
}

/// The facts are those of a page that answered at once and came to rest. Dropping the future gives up the wait; a
/// drawing that has begun ends by itself within milliseconds.
impl Renderer for Placeholder {
    fn condition(&self) -> Condition {
        let nothing = "nothing is visited".to_owned();
        Condition {
            browser: "placeholders".to_owned(),
            jail: nothing.clone(),
            self_test: nothing,
            ..Condition::default()
        }
    }

    async fn render(&self, task: RenderTask) -> Result<Capture, RenderError> {
        let begun = Instant::now();
        let RenderTask { spec, .. } = task;
        let (image_width, image_height) = (spec.viewport.width(), spec.reported_height());
        let facts = Facts {
            final_url: Some(spec.url.as_str().to_owned()),
            http_status: Some(200),
            settled_by: Some(SettledBy::Quiet),
            blocked_requests: 0,
            image_width: Some(image_width),
            image_height: Some(image_height),
            truncated: false,
        };
        let file = self.draw(&spec).await.map_err(|error| RenderError::Lost(error.to_string()))?;
        let execution_ms = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
        Ok(Capture { image: file.to_vec(), facts, execution_ms })
    }
}

#[cfg(test)]
mod tests;
