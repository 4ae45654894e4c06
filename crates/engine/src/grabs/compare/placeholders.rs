//! Differences between placeholders. They are not stored, but made again when they are requested, as placeholders are.

use std::io::{self, Write};

use bytes::Bytes;
use grabd_domain::capture::{CaptureSpec, FileKind};
use grabd_domain::limits::COMPARE_LIMIT;
use grabd_memory::MemoryBudget;
use grabd_store::Store;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::measure::{Changed, measure};
use crate::grabs::derived::{Error, Picture, Source};
use crate::placeholder::Placeholder;
use crate::tolerance;

/// Comparisons of placeholders at the same time. They must not take the processors from captures.
const MAX_CONCURRENT: usize = 1;

/// Compares placeholders.
pub(crate) struct Differences {
    placeholder: Placeholder,
    memory: MemoryBudget,
    turns: Semaphore,
}

impl Differences {
    pub(crate) fn new(placeholder: Placeholder, memory: MemoryBudget) -> Self {
        Self { placeholder, memory, turns: Semaphore::new(MAX_CONCURRENT) }
    }

    /// What changed between the placeholders of two specs, and the size of the image of the difference.
    pub(super) async fn measure(
        &self,
        tasks: &TaskTracker,
        earlier: &CaptureSpec,
        later: &CaptureSpec,
    ) -> Result<(Changed, u64), Error> {
        let (changed, Counted(bytes)) = self.write(tasks, earlier, later, Counted(0)).await?;
        Ok((changed, bytes))
    }

    /// The image of the difference that the placeholder of this spec has. `None` when the earlier grab is no longer known.
    ///
    /// # Errors
    /// See [`Error`].
    pub(crate) async fn image(
        &self,
        store: &Store,
        tasks: &TaskTracker,
        spec: &CaptureSpec,
    ) -> Result<Option<Bytes>, Error> {
        let Some(earlier) = spec.compare_to else { return Ok(None) };
        let Some(earlier) = store.grabs().find_grabs(&[earlier]).await?.pop() else { return Ok(None) };
        let mut memory = self.memory.reserve_at_most(FileKind::Difference.max_bytes(), COMPARE_LIMIT).await?;
        let (_, image) = self.write(tasks, &earlier.spec, spec, Vec::new()).await?;
        memory.shrink_to(u64::try_from(image.len()).unwrap_or(u64::MAX));
        Ok(Some(memory.attach(image)))
    }

    async fn write<W: Write + Send + 'static>(
        &self,
        tasks: &TaskTracker,
        earlier: &CaptureSpec,
        later: &CaptureSpec,
        to: W,
    ) -> Result<(Changed, W), Error> {
        let turn = timeout(COMPARE_LIMIT, self.turns.acquire()).await;
        // The semaphore is never closed.
        let _turn = turn.map_err(|_| Error::Busy)?.map_err(|_| Error::Busy)?;
        let picture = async |spec: &CaptureSpec| {
            let source = Source::Memory(self.placeholder.draw(spec).await?);
            Ok::<_, Error>(Picture { source, format: spec.format })
        };
        let pictures = (picture(earlier).await?, picture(later).await?);
        measure(tasks, &self.memory, pictures, tolerance::of(later), to).await
    }
}

/// Counts what is written.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0 += u64::try_from(part.len()).unwrap_or(u64::MAX);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
