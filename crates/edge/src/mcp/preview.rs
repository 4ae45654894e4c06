//! The image inside a tool result: the file itself if it is small, else a scaled preview.
//!
//! The file is read through the router of the public image URLs, in this process. Therefore a result can only contain
//! images that its caller could fetch, and no deleted ones.

use std::io::Cursor;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use grabd_limiters::Turns;
use grabd_memory::{MemoryBudget, MemoryError, Reservation};
use grabd_pixels::{MAX_SIDE, Timed, check_jpeg, check_size, encode_jpeg, image_on_white};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::parts::{self, Part, WantedParts};

/// Files up to this size and side length are sent unchanged.
const MAX_INLINE_BYTES: usize = 600_000;
const MAX_INLINE_SIDE_PX: u32 = 1568;
/// Long sides in pixels and JPEG qualities of previews, tried in this order until one is small enough. Only noise needs
/// the last ones.
const PREVIEW_SIZES: [(u32, u8); 6] = [(1280, 85), (1280, 70), (960, 70), (640, 70), (480, 60), (320, 50)];
pub(super) const MAX_PREVIEW_SIDE_PX: u32 = 1280;

/// Largest file to preview. Larger ones are only linked.
const MAX_FILE_BYTES: usize = 48 << 20;
/// Bytes of a file that are read to learn the size of the image.
const HEAD_BYTES: usize = 64 << 10;
/// Width and height that are assumed when the size is not in the head: those of the largest image.
const LARGEST_PX: (u32, u32) = (1920, 16_384);
/// The memory limit of the decoder.
const MAX_DECODED_BYTES: u64 = 256 << 20;
/// Maximum number of concurrent scalings, and how long one waits for its turn and for memory before the result is sent
/// without an image.
const MAX_CONCURRENT_SCALINGS: usize = 2;
const SCALING_WAIT: Duration = Duration::from_secs(10);
/// How long the next part of a file may take.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Loads and scales images for tool results.
pub(super) struct Previews {
    images: Router,
    memory: MemoryBudget,
    /// By the hash of the credential.
    scaling: Turns<[u8; 32]>,
    tasks: TaskTracker,
}

/// An image for a result. Its memory is reserved until it is dropped.
#[derive(Debug)]
pub(super) struct Preview {
    pub(super) bytes: Bytes,
    pub(super) media_type: String,
    _memory: Reservation,
}

/// Parts of an image for a result. Their memory is reserved until they are dropped.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    _memory: Reservation,
}

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
pub(super) enum PreviewError {
    #[error("the image request returned {0}")]
    Status(StatusCode),
    #[error("the file is larger than {MAX_FILE_BYTES} bytes, needs too much memory, or was cut off")]
    TooLarge,
    #[error("too many images are being scaled")]
    Busy,
    #[error("the file cannot be decoded: {0}")]
    Undecodable(#[from] image::ImageError),
    #[error("the scaling task was cancelled")]
    Cancelled,
    #[error("the smallest preview is too large")]
    Incompressible,
}

impl From<MemoryError> for PreviewError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Busy => Self::Busy,
            MemoryError::TooLarge => Self::TooLarge,
        }
    }
}

impl PreviewError {
    /// What a result says instead of its image.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            Self::Busy | Self::Cancelled => {
                "rate_limit_exceeded: the preview is left out, because too many images are being processed. Fetch \
                 image_url for the image, or call get_grab again in a few seconds."
            }
            Self::Status(_) | Self::TooLarge | Self::Undecodable(_) | Self::Incompressible => {
                "There is no preview of this image. Fetch image_url for the image."
            }
        }
    }
}

/// An image file whose first parts were read.
struct ImageFile {
    /// Whose turn it is processed in.
    owner: [u8; 32],
    media_type: String,
    size: usize,
    parts: Vec<Bytes>,
    rest: Body,
}

impl Previews {
    pub(super) fn new(images: Router, memory: MemoryBudget, tasks: TaskTracker) -> Self {
        Self { images, memory, scaling: Turns::new(MAX_CONCURRENT_SCALINGS, 1), tasks }
    }

    /// A preview of the image at a path with at most this many bytes, for the holder of a credential with this hash. A result
    /// without one still has the URL of the image.
    pub(super) async fn preview(&self, path: &str, owner: [u8; 32], max_bytes: usize) -> Result<Preview, PreviewError> {
        let preview = self.make(path, owner, max_bytes.min(MAX_INLINE_BYTES)).await;
        if let Err(error) = &preview {
            tracing::info!("a tool result is sent without its image: {error}");
        }
        preview
    }

    async fn make(&self, path: &str, owner: [u8; 32], max_bytes: usize) -> Result<Preview, PreviewError> {
        let file = self.open(path, owner).await?;
        let size = u64::try_from(file.size).unwrap_or(u64::MAX);
        let (width, height) = file.dimensions()?;
        if file.size <= max_bytes && width.max(height) <= MAX_INLINE_SIDE_PX {
            // The file and its text in base64.
            let memory = self.memory.reserve(size * 3, SCALING_WAIT).await?;
            let media_type = file.media_type.clone();
            return Ok(Preview { bytes: file.read().await?.into(), media_type, _memory: memory });
        }
        let (bytes, memory) = self
            .process(file, scaling_bytes(width, height, size), move |file| {
                let bytes = scale(file, max_bytes)?;
                let kept = bytes.len();
                Ok((bytes, kept))
            })
            .await?;
        Ok(Preview { bytes: bytes.into(), media_type: "image/jpeg".to_owned(), _memory: memory })
    }

    /// The first of the wanted parts of the image at a path, with at most this many bytes together. None if the image ends
    /// before.
    pub(super) async fn parts(
        &self,
        path: &str,
        wanted: WantedParts,
        owner: [u8; 32],
        max_bytes: usize,
    ) -> Result<Parts, PreviewError> {
        let parts = self.make_parts(path, wanted, owner, max_bytes).await;
        if let Err(error) = &parts {
            tracing::info!("a tool result is sent without the parts of its image: {error}");
        }
        parts
    }

    async fn make_parts(
        &self,
        path: &str,
        wanted: WantedParts,
        owner: [u8; 32],
        max_bytes: usize,
    ) -> Result<Parts, PreviewError> {
        let file = self.open(path, owner).await?;
        let (width, height) = file.dimensions()?;
        // The file is dropped before the parts are made.
        let beside = u64::try_from(file.size).unwrap_or(u64::MAX).max(parts::memory_bytes(width, &wanted).div_ceil(2));
        let (parts, memory) = self
            .process(file, scaling_bytes(width, height, beside), move |file| {
                let parts = parts::cut(&decode(file)?, &wanted, max_bytes)?;
                let kept = parts.iter().map(|part| part.file.len()).sum();
                Ok((parts, kept))
            })
            .await?;
        Ok(Parts { parts, _memory: memory })
    }

    /// Waits for its turn and for this much memory, then reads and processes a file. Memory is kept for three times the
    /// bytes that `work` says: they and their text in base64.
    async fn process<T: Send + 'static>(
        &self,
        file: ImageFile,
        bytes: u64,
        work: impl FnOnce(Vec<u8>) -> Result<(T, usize), PreviewError> + Send + 'static,
    ) -> Result<(T, Reservation), PreviewError> {
        let waits_until = Instant::now() + SCALING_WAIT;
        let turn = timeout_at(waits_until, self.scaling.take(&file.owner)).await.map_err(|_| PreviewError::Busy)?;
        let left = waits_until.saturating_duration_since(Instant::now());
        let mut memory = self.memory.reserve(bytes, left).await?;
        let file = file.read().await?;
        let processed = self.tasks.spawn_blocking(move || {
            let (made, kept) = work(file)?;
            drop(turn);
            memory.shrink_to(u64::try_from(kept).unwrap_or(u64::MAX).saturating_mul(3));
            Ok::<_, PreviewError>((made, memory))
        });
        processed.await.map_err(|_| PreviewError::Cancelled)?
    }

    /// Requests a file and reads its head.
    async fn open(&self, path: &str, owner: [u8; 32]) -> Result<ImageFile, PreviewError> {
        let request =
            Request::get(path).body(Body::empty()).map_err(|_| PreviewError::Status(StatusCode::NOT_FOUND))?;
        let Ok(response) = self.images.clone().oneshot(request).await;
        let (media_type, size) = media_type_and_size(&response)?;
        let mut file = ImageFile { owner, media_type, size, parts: Vec::new(), rest: response.into_body() };
        let mut read = 0;
        while read < HEAD_BYTES
            && let Some(part) = file.next_part().await?
        {
            read += part.len();
            file.parts.push(part);
        }
        Ok(file)
    }
}

fn media_type_and_size(response: &Response<Body>) -> Result<(String, usize), PreviewError> {
    match response.status() {
        StatusCode::OK => {}
        StatusCode::TOO_MANY_REQUESTS => return Err(PreviewError::Busy),
        status => return Err(PreviewError::Status(status)),
    }
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let size = header(CONTENT_LENGTH).parse().map_err(|_| PreviewError::TooLarge)?;
    match size > MAX_FILE_BYTES {
        true => Err(PreviewError::TooLarge),
        false => Ok((header(CONTENT_TYPE).to_owned(), size)),
    }
}

impl ImageFile {
    async fn next_part(&mut self) -> Result<Option<Bytes>, PreviewError> {
        match timeout(READ_LIMIT, self.rest.frame()).await {
            Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) | Err(_) => Err(PreviewError::TooLarge),
        }
    }

    /// The first bytes.
    fn head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        for part in &self.parts {
            let missing = HEAD_BYTES.saturating_sub(head.len());
            head.extend_from_slice(part.get(..missing).unwrap_or(part));
        }
        head
    }

    /// Width and height of the image. Assumed to be the largest if they are not in the head.
    fn dimensions(&self) -> Result<(u32, u32), PreviewError> {
        let head = ImageReader::new(Cursor::new(self.head())).with_guessed_format().map_err(image::ImageError::from)?;
        let (width, height) = head.into_dimensions().unwrap_or(LARGEST_PX);
        check_size(width, height)?;
        Ok((width, height))
    }

    /// The whole file.
    async fn read(mut self) -> Result<Vec<u8>, PreviewError> {
        let mut file = Vec::with_capacity(self.size);
        let mut first = std::mem::take(&mut self.parts).into_iter();
        loop {
            let next = match first.next() {
                Some(part) => Some(part),
                None => self.next_part().await?,
            };
            match next {
                Some(part) if file.len() + part.len() <= self.size => file.extend_from_slice(&part),
                Some(_) => return Err(PreviewError::TooLarge),
                None if file.len() == self.size => return Ok(file),
                None => return Err(PreviewError::TooLarge),
            }
        }
    }
}

/// The memory that scaling takes: the file, which some decoders copy, the pixels, and the rows of the largest preview
/// in the full width, as four floating-point numbers for each pixel.
fn scaling_bytes(width: u32, height: u32, file_bytes: u64) -> u64 {
    let (width, height) = (u64::from(width), u64::from(height));
    let longest = width.max(height).max(1);
    let rows = (height.saturating_mul(MAX_PREVIEW_SIDE_PX.into()) / longest).min(height) + 1;
    let pixels = width.saturating_mul(height).saturating_mul(4);
    let sampled = width.saturating_mul(rows).saturating_mul(16);
    file_bytes.saturating_mul(2).saturating_add(pixels).saturating_add(sampled)
}

fn decode(file: Vec<u8>) -> Result<DynamicImage, PreviewError> {
    let open = || {
        let reader = ImageReader::new(Timed::new(Cursor::new(&file)));
        reader.with_guessed_format().map_err(image::ImageError::from)
    };
    let (width, height) = open()?.into_dimensions()?;
    check_size(width, height)?;
    let mut reader = open()?;
    if reader.format() == Some(ImageFormat::Jpeg) {
        check_jpeg(&mut Cursor::new(&file))?;
    }
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let decoded = reader.decode()?;
    drop(file);
    Ok(decoded)
}

/// The first preview that has at most this many bytes. May take seconds of CPU time.
fn scale(file: Vec<u8>, max_bytes: usize) -> Result<Vec<u8>, PreviewError> {
    let mut decoded = decode(file)?;
    for (side, quality) in PREVIEW_SIZES {
        if decoded.width().max(decoded.height()) > side {
            decoded = decoded.resize(side, side, FilterType::Triangle);
        }
        let bytes = encode_jpeg(&image_on_white(&decoded), quality)?;
        if bytes.len() <= max_bytes {
            return Ok(bytes);
        }
    }
    Err(PreviewError::Incompressible)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::routing::get;
    use image::{ImageFormat, RgbImage, Rgba, RgbaImage};

    use super::*;

    fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn flat(width: u32, height: u32, colour: [u8; 4]) -> DynamicImage {
        RgbaImage::from_pixel(width, height, Rgba(colour)).into()
    }

    /// An image that does not compress.
    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        RgbImage::from_fn(width, height, |_, _| image::Rgb([next(), next(), next()])).into()
    }

    fn previews(bytes: Vec<u8>, media_type: &'static str, memory: &MemoryBudget) -> Previews {
        let bytes = Bytes::from(bytes);
        let images = Router::new().route("/i", get(async move || ([(CONTENT_TYPE, media_type)], bytes)));
        Previews::new(images, memory.clone(), TaskTracker::new())
    }

    async fn preview(bytes: Vec<u8>, media_type: &'static str) -> Option<Preview> {
        let memory = MemoryBudget::new(256 << 20);
        let preview = previews(bytes, media_type, &memory).preview("/i", [0; 32], MAX_INLINE_BYTES).await.ok();
        let kept = preview.as_ref().map_or(0, |preview| preview.bytes.len() as u64 * 3);
        assert_eq!(memory.reserved_bytes(), kept.next_multiple_of(1 << 10), "only the result is kept");
        preview
    }

    /// The largest amount of memory that this process has had so far, in bytes.
    fn peak_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn parallel_previews_of_a_large_image_stay_within_the_memory_and_all_answer() {
        let bytes = file(&noise(1600, 1600), ImageFormat::Png);
        let size = bytes.len() as u64;
        let memory = MemoryBudget::new(64 << 20);
        assert!(scaling_bytes(1600, 1600, size) < memory.total_bytes() && 10 * size > memory.total_bytes());
        let previews = Arc::new(previews(bytes, "image/png", &memory));
        let before = peak_bytes();
        let tasks = TaskTracker::new();
        let calls: Vec<_> = (0..24)
            .map(|_| {
                let previews = Arc::clone(&previews);
                tasks.spawn(async move {
                    previews.preview("/i", [0; 32], MAX_INLINE_BYTES).await.map(|preview| preview.bytes.len())
                })
            })
            .collect();
        let mut sent = 0;
        for call in calls {
            match call.await.unwrap() {
                Ok(length) => sent += usize::from(length <= MAX_INLINE_BYTES),
                Err(error) => assert!(matches!(error, PreviewError::Busy), "{error}"),
            }
        }
        assert!(sent > 0, "the first ones get their image");
        assert_eq!(memory.reserved_bytes(), 0);
        let grown = peak_bytes() - before;
        assert!(grown < memory.total_bytes() + (64 << 20), "{grown} bytes; 24 files alone are {}", 24 * size);
    }

    #[tokio::test(start_paused = true)]
    async fn credential_has_one_of_the_turns_to_scale() {
        let memory = MemoryBudget::new(256 << 20);
        let previews = previews(file(&flat(2000, 100, [0; 4]), ImageFormat::Png), "image/png", &memory);
        let held = previews.scaling.take(&[1; 32]).await;
        assert!(matches!(previews.preview("/i", [1; 32], MAX_INLINE_BYTES).await, Err(PreviewError::Busy)));
        assert!(previews.preview("/i", [2; 32], MAX_INLINE_BYTES).await.is_ok());
        drop(held);
        assert!(previews.preview("/i", [1; 32], MAX_INLINE_BYTES).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn preview_is_left_out_when_memory_is_short() {
        let memory = MemoryBudget::new(16 << 20);
        let small = previews(file(&flat(100, 100, [0; 4]), ImageFormat::Png), "image/png", &memory);
        let all = memory.reserve(memory.total_bytes(), SCALING_WAIT).await.unwrap();
        let error = small.preview("/i", [0; 32], MAX_INLINE_BYTES).await.unwrap_err();
        assert!(matches!(error, PreviewError::Busy) && error.advice().contains("image_url"), "{error}");
        drop(all);
        small.preview("/i", [0; 32], MAX_INLINE_BYTES).await.unwrap();
        let large = previews(file(&flat(3000, 3000, [0; 4]), ImageFormat::Png), "image/png", &memory);
        let error = large.preview("/i", [0; 32], MAX_INLINE_BYTES).await.unwrap_err();
        assert!(matches!(error, PreviewError::TooLarge) && error.advice().contains("image_url"), "{error}");
        assert_eq!(memory.reserved_bytes(), 0);
    }

    #[test]
    fn largest_image_fits_the_default_memory() {
        let (width, height) = LARGEST_PX;
        assert!(scaling_bytes(width, height, 32 << 20) < 256 << 20);
        assert!(scaling_bytes(5760, 3240, 32 << 20) < 256 << 20);
    }

    #[tokio::test]
    async fn size_is_found_in_the_head_of_every_format() {
        for (format, media_type) in
            [(ImageFormat::Png, "image/png"), (ImageFormat::Jpeg, "image/jpeg"), (ImageFormat::WebP, "image/webp")]
        {
            let bytes = file(&noise(700, 600), format);
            assert!(bytes.len() > 2 * HEAD_BYTES);
            let head = bytes[..HEAD_BYTES].to_vec();
            let reader = ImageReader::new(Cursor::new(head)).with_guessed_format().unwrap();
            assert_eq!(reader.into_dimensions().unwrap(), (700, 600), "{media_type}");
            assert!(preview(bytes, media_type).await.is_some());
        }
    }

    #[tokio::test]
    async fn small_files_are_sent_unchanged_in_every_format() {
        let flat = flat(1568, 1, [1, 2, 3, 255]);
        for (image, format, media_type) in [
            (flat.clone(), ImageFormat::Png, "image/png"),
            (flat.to_rgb8().into(), ImageFormat::Jpeg, "image/jpeg"),
            (flat, ImageFormat::WebP, "image/webp"),
        ] {
            let bytes = file(&image, format);
            let preview = preview(bytes.clone(), media_type).await.unwrap();
            assert_eq!((preview.bytes, preview.media_type.as_str()), (Bytes::from(bytes), media_type));
        }
    }

    #[tokio::test]
    async fn large_images_are_scaled_in_proportion_on_a_white_background() {
        let cases = [
            (flat(1569, 100, [200, 0, 0, 255]), (1280, 82), [200, 0, 0]),
            (flat(100, 16_384, [0, 0, 0, 0]), (8, 1280), [255, 255, 255]),
            (flat(2560, 1280, [0, 0, 0, 128]), (1280, 640), [127, 127, 127]),
        ];
        for (image, size, colour) in cases {
            let preview = preview(file(&image, ImageFormat::Png), "image/png").await.unwrap();
            assert_eq!(preview.media_type, "image/jpeg");
            let shown = image::load_from_memory(&preview.bytes).unwrap().to_rgb8();
            assert_eq!(shown.dimensions(), size);
            let seen = shown.get_pixel(size.0 / 2, size.1 / 2).0;
            assert!(seen.iter().zip(colour).all(|(seen, colour)| seen.abs_diff(colour) < 6), "{seen:?}");
        }
    }

    #[tokio::test]
    async fn noise_is_scaled_below_the_size_limit() {
        let bytes = file(&noise(1280, 1280), ImageFormat::Png);
        assert!(bytes.len() > 4_000_000);
        let preview = preview(bytes, "image/png").await.unwrap();
        assert!(preview.bytes.len() <= MAX_INLINE_BYTES && preview.bytes.len() > 100_000, "{}", preview.bytes.len());
    }

    #[tokio::test]
    async fn decompression_bombs_and_invalid_files_have_no_preview() {
        // The header declares 60000 x 60000 pixels.
        let mut bomb = file(&flat(1, 1, [0, 0, 0, 255]), ImageFormat::Png);
        bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
        for bytes in [bomb, b"<html>".to_vec(), Vec::new(), file(&flat(20_001, 1, [0; 4]), ImageFormat::Png)] {
            assert!(preview(bytes, "image/png").await.is_none());
        }
        let empty = Previews::new(Router::new(), MemoryBudget::new(1 << 20), TaskTracker::new());
        assert!(empty.preview("/i", [0; 32], MAX_INLINE_BYTES).await.is_err());
        assert!(empty.preview("no path", [0; 32], MAX_INLINE_BYTES).await.is_err());
    }
}
