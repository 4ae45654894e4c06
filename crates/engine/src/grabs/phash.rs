//! Computes the perceptual hash of an image (`phash`).
//!
//! The image is averaged to 32 by 32 gray cells, which are transformed by a discrete cosine transform (DCT-II). Each bit of
//! the hash says whether one of the 64 lowest frequencies is above their median, from the lowest frequency, in rows. All
//! is computed with integers, so that equal pixels have equal hashes on every machine.

use std::io;
use std::ops::ControlFlow;

use bytes::Bytes;
use grabd_domain::capture::Format;
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Failure, FailureReason, ImageKey, PerceptualHash};
use grabd_domain::limits::PHASH_LIMIT;
use grabd_memory::{MemoryBudget, MemoryError};
use image::ImageError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::compare::measure::{Picture, Source};
use super::not_completed::NotCompleted;
use super::pixels::{Layout, decoding_bytes, dimensions, read_rows, rgba};
use crate::core::Core;

/// Cells in each direction that the image is averaged to.
const SIDE: usize = 32;
/// The same, as the unit of rows and columns.
const SIDE_UNITS: u64 = 32;
/// Frequencies in each direction.
const FREQUENCIES: usize = 8;
/// The value of a white cell.
const WHITE: u64 = 255_000;
/// Memory for rows and the decoder of PNG.
const ROWS_BYTES: u64 = 1 << 20;

/// `16384 * cos(n * π / 64)`, rounded. A table, because the last digit of a cosine depends on the machine.
const COSINES: [i64; 33] = [
    16384, 16364, 16305, 16207, 16069, 15893, 15679, 15426, 15137, 14811, 14449, 14053, 13623, 13160, 12665, 12140,
    11585, 11003, 10394, 9760, 9102, 8423, 7723, 7005, 6270, 5520, 4756, 3981, 3196, 2404, 1606, 804, 0,
];

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the image was deleted")]
    Deleted,
    #[error("other images took the memory or the time")]
    Busy,
    #[error("the image is too large for the memory of images")]
    TooLarge,
    #[error("the image cannot be decoded")]
    Undecodable(#[from] ImageError),
    #[error("the image cannot be read")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Storage(#[from] grabd_store::images::Error),
    #[error("the task ended early")]
    Task(#[from] tokio::task::JoinError),
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Busy => Self::Busy,
            MemoryError::TooLarge => Self::TooLarge,
        }
    }
}

impl Error {
    /// The failure of a grab whose image has no hash. Errors of the service itself are logged.
    pub(super) fn to_failure(&self) -> Failure {
        let failed = |message: String| Failure::new(FailureReason::RenderFailed, message);
        match self {
            Self::TooLarge => failed(
                "The image is too large for a perceptual hash. Use a lower scale, a smaller viewport, or max_height."
                    .to_owned(),
            ),
            Self::Busy => {
                let limit = PHASH_LIMIT.as_secs();
                failed(format!("The perceptual hash could not be computed within {limit} s."))
                    .caused_by(ErrorCause::Service)
            }
            Self::Deleted | Self::Undecodable(_) | Self::Unreadable(_) | Self::Storage(_) | Self::Task(_) => {
                tracing::error!(error = %self, source = ?std::error::Error::source(self), "an image was not hashed");
                failed("The perceptual hash could not be computed, because of an error of the service.".to_owned())
                    .caused_by(ErrorCause::Service)
            }
        }
    }
}

impl From<Error> for NotCompleted {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_failure())
    }
}

/// The hash of a stored image.
///
/// # Errors
/// See [`Error`].
pub(super) async fn of_stored(core: &Core, key: &ImageKey) -> Result<PerceptualHash, Error> {
    let work = async {
        let copy = core.grabs.images.image(key).local_copy().await?.ok_or(Error::Deleted)?;
        let picture = Picture { source: Source::File(copy), format: key.format() };
        hash(&core.tasks, &core.grabs.memory, picture).await
    };
    timeout(PHASH_LIMIT, work).await.map_err(|_| Error::Busy)?
}

/// The hash of an image in memory.
///
/// # Errors
/// See [`Error`].
pub(super) async fn of_bytes(core: &Core, image: Bytes, format: Format) -> Result<PerceptualHash, Error> {
    hash(&core.tasks, &core.grabs.memory, Picture { source: Source::Memory(image), format }).await
}

async fn hash(tasks: &TaskTracker, memory: &MemoryBudget, picture: Picture) -> Result<PerceptualHash, Error> {
    let stop = CancellationToken::new();
    // Also when the caller stops waiting.
    let _stop = stop.clone().drop_guard();
    let work = async {
        let look = tasks.spawn_blocking(move || {
            let (width, height) = dimensions(picture.open()?, picture.format)?;
            let bytes = decoding_bytes(width, height, picture.format, picture.file_bytes()?);
            Ok::<_, Error>((picture, bytes))
        });
        let (picture, bytes) = look.await??;
        let memory = memory.reserve(bytes.saturating_add(ROWS_BYTES), PHASH_LIMIT).await?;
        let hashed = tasks.spawn_blocking(move || {
            let _memory = memory;
            read(&picture, &stop)
        });
        hashed.await?
    };
    timeout(PHASH_LIMIT, work).await.map_err(|_| Error::Busy)?
}

fn read(picture: &Picture, stop: &CancellationToken) -> Result<PerceptualHash, Error> {
    let cells = read_rows(picture.open()?, picture.format, Cells::new, |cells, row| {
        cells.push(row);
        if stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if stop.is_cancelled() { Err(Error::Busy) } else { Ok(cells.hash()) }
}

/// The gray cells of an image.
struct Cells {
    layout: Layout,
    /// The row of the image that comes next.
    y: u64,
    /// Brightness times area, where a pixel has 32 by 32 units and a cell as many units as the image has pixels.
    sums: [[u64; SIDE]; SIDE],
}

impl Cells {
    const fn new(layout: Layout) -> Self {
        Self { layout, y: 0, sums: [[0; SIDE]; SIDE] }
    }

    /// Adds the next row of the image.
    fn push(&mut self, row: &[u8]) {
        let mut columns = [0; SIDE];
        for (x, pixel) in (0..).zip(rgba(row, self.layout.channels)) {
            let brightness = brightness(pixel);
            spread(x, self.layout.width.into(), |column, units| columns[column] += brightness * units);
        }
        let sums = &mut self.sums;
        spread(self.y, self.layout.height.into(), |row, units| {
            for (sum, column) in sums[row].iter_mut().zip(&columns) {
                *sum += column * units;
            }
        });
        self.y += 1;
    }

    fn hash(&self) -> PerceptualHash {
        let area = (u64::from(self.layout.width) * u64::from(self.layout.height)).max(1);
        // Never above that of white.
        let cells = self.sums.map(|row| row.map(|sum| i64::try_from(sum / area).unwrap_or(0)));
        let rows = cells.map(|row| transformed(&row));
        let mut frequencies = [0; FREQUENCIES * FREQUENCIES];
        for across in 0..FREQUENCIES {
            let column: [i64; SIDE] = rows.map(|row| row[across]);
            for (down, frequency) in transformed(&column).into_iter().enumerate() {
                frequencies[down * FREQUENCIES + across] = frequency;
            }
        }
        let mut sorted = frequencies;
        sorted.sort_unstable();
        // The median is between the two in the middle.
        let twice_median = sorted[sorted.len() / 2 - 1] + sorted[sorted.len() / 2];
        let bits = frequencies.iter().map(|frequency| u64::from(2 * frequency > twice_median));
        PerceptualHash(bits.fold(0, |hash, bit| hash << 1 | bit))
    }
}

/// The cells that a row or a column of the image is in, and how many of its 32 units are in each of them.
fn spread(at: u64, count: u64, mut add: impl FnMut(usize, u64)) {
    let (mut start, end) = (at * SIDE_UNITS, (at + 1) * SIDE_UNITS);
    while start < end {
        let cell = start / count;
        let part = end.min((cell + 1) * count) - start;
        add(usize::try_from(cell).map_or(SIDE - 1, |cell| cell.min(SIDE - 1)), part);
        start += part;
    }
}

/// The brightness of a pixel on a white page (ITU-R BT.601), in thousandths.
fn brightness([red, green, blue, alpha]: [u8; 4]) -> u64 {
    let [red, green, blue, alpha] = [red, green, blue, alpha].map(u64::from);
    let opaque = 299 * red + 587 * green + 114 * blue;
    (opaque * alpha + WHITE * (255 - alpha)) / 255
}

/// The lowest frequencies of some values (DCT-II, not normalized).
fn transformed(values: &[i64; SIDE]) -> [i64; FREQUENCIES] {
    std::array::from_fn(|frequency| {
        values.iter().enumerate().map(|(at, value)| value * cosine((2 * at + 1) * frequency)).sum()
    })
}

/// The cosine of `n * π / 64`, times 16384.
fn cosine(n: usize) -> i64 {
    let n = n % 128;
    // The second half of the period is the first one in reverse.
    let n = n.min(128 - n);
    if n <= 32 { COSINES[n] } else { -COSINES[64 - n] }
}

#[cfg(test)]
mod tests;
