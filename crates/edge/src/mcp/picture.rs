//! The picture that travels inside of a result: the file itself when it is small, else a preview of it.
//!
//! The bytes come from where everybody gets them: the image's public, unguessable address, asked in this process. So this
//! face can see no picture that its caller could not fetch, and a deleted one is gone here too.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageReader, Limits, RgbImage};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// A file up to this size and these pixels a side goes as it is.
const PLAIN_BYTES: usize = 600_000;
const PLAIN_SIDE_PX: u32 = 1568;
/// Long sides and qualities of previews, tried in this order until one is small enough. Noise needs the last ones.
const PREVIEWS: [(u32, u8); 6] = [(1280, 85), (1280, 70), (960, 70), (640, 70), (480, 60), (320, 50)];

/// The largest file that is looked at; a larger one has its address only.
const MAX_FILE_BYTES: usize = 48 << 20;
/// Longest side of a picture that is decoded, and the memory that this may take. Full pages end at 16384 pixels.
const MAX_SIDE_PX: u32 = 20_000;
const MAX_DECODED_BYTES: u64 = 256 << 20;
/// Pictures that are scaled at a time, and how long one waits for its turn before the result goes without it.
const AT_A_TIME: usize = 2;
const PATIENCE: Duration = Duration::from_secs(10);

/// Where pictures come from, and who scales them.
pub(super) struct Pictures {
    images: Router,
    scaling: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// A picture for a result.
#[derive(Debug)]
pub(super) struct Preview {
    pub(super) bytes: Bytes,
    pub(super) media_type: String,
}

/// Why a result goes without its picture.
#[derive(Debug, thiserror::Error)]
enum Missing {
    #[error("it was answered with {0}")]
    Status(StatusCode),
    #[error("it is larger than {MAX_FILE_BYTES} bytes, or broke off")]
    TooLarge,
    #[error("others are being scaled")]
    Busy,
    #[error("it cannot be decoded: {0}")]
    Undecodable(#[from] image::ImageError),
    #[error("the one who scaled it is gone")]
    Gone,
    #[error("even its smallest preview is too large")]
    Noise,
}

impl Pictures {
    pub(super) fn new(images: Router, tasks: TaskTracker) -> Self {
        Self { images, scaling: Arc::new(Semaphore::new(AT_A_TIME)), tasks }
    }

    /// The picture at a path, small enough for a result. None is no failure: its address is in the result anyway.
    pub(super) async fn preview(&self, path: &str) -> Option<Preview> {
        match self.make(path).await {
            Ok(preview) => Some(preview),
            Err(missing) => {
                tracing::info!("a result goes without its picture: {missing}");
                None
            }
        }
    }

    async fn make(&self, path: &str) -> Result<Preview, Missing> {
        let (file, media_type) = self.fetch(path).await?;
        let (width, height) = ImageReader::new(Cursor::new(&file))
            .with_guessed_format()
            .map_err(image::ImageError::from)?
            .into_dimensions()?;
        if file.len() <= PLAIN_BYTES && width.max(height) <= PLAIN_SIDE_PX {
            return Ok(Preview { bytes: file, media_type });
        }
        let turn = timeout(PATIENCE, Arc::clone(&self.scaling).acquire_owned()).await;
        let turn = turn.map_err(|_| Missing::Busy)?.map_err(|_| Missing::Gone)?;
        let scaled = self.tasks.spawn_blocking(move || {
            let scaled = scale(&file);
            drop(turn);
            scaled
        });
        let bytes = scaled.await.map_err(|_| Missing::Gone)??;
        Ok(Preview { bytes: bytes.into(), media_type: "image/jpeg".to_owned() })
    }

    async fn fetch(&self, path: &str) -> Result<(Bytes, String), Missing> {
        let request = Request::get(path).body(Body::empty()).map_err(|_| Missing::Status(StatusCode::NOT_FOUND))?;
        let Ok(response) = self.images.clone().oneshot(request).await;
        if response.status() != StatusCode::OK {
            return Err(Missing::Status(response.status()));
        }
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), MAX_FILE_BYTES).collect().await;
        Ok((body.map_err(|_| Missing::TooLarge)?.to_bytes(), media_type))
    }
}

/// The first preview that is small enough. Takes up to seconds of a processor.
fn scale(file: &[u8]) -> Result<Vec<u8>, Missing> {
    let mut reader = ImageReader::new(Cursor::new(file)).with_guessed_format().map_err(image::ImageError::from)?;
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(MAX_SIDE_PX);
    limits.max_image_height = Some(MAX_SIDE_PX);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let mut picture = reader.decode()?;
    for (side, quality) in PREVIEWS {
        if picture.width().max(picture.height()) > side {
            picture = picture.resize(side, side, FilterType::Triangle);
        }
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&opaque(&picture))?;
        if bytes.len() <= PLAIN_BYTES {
            return Ok(bytes);
        }
    }
    Err(Missing::Noise)
}

/// On white, since JPEG knows nothing that shines through.
fn opaque(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let picture = picture.to_rgba8();
    RgbImage::from_fn(picture.width(), picture.height(), |x, y| {
        let [red, green, blue, alpha] = picture.get_pixel(x, y).0;
        let on_white = |channel: u8| {
            let mixed = u32::from(channel) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
            u8::try_from(mixed / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([on_white(red), on_white(green), on_white(blue)])
    })
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use image::{ImageFormat, Rgba, RgbaImage};

    use super::*;

    fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn flat(width: u32, height: u32, colour: [u8; 4]) -> DynamicImage {
        RgbaImage::from_pixel(width, height, Rgba(colour)).into()
    }

    /// Nothing compresses it.
    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        RgbImage::from_fn(width, height, |_, _| image::Rgb([next(), next(), next()])).into()
    }

    async fn preview(bytes: Vec<u8>, media_type: &'static str) -> Option<Preview> {
        let bytes = Bytes::from(bytes);
        let images = Router::new().route("/i", get(async move || ([(CONTENT_TYPE, media_type)], bytes)));
        Pictures::new(images, TaskTracker::new()).preview("/i").await
    }

    #[tokio::test]
    async fn small_files_go_as_they_are_in_every_format() {
        let flat = flat(1568, 1, [1, 2, 3, 255]);
        for (picture, format, media_type) in [
            (flat.clone(), ImageFormat::Png, "image/png"),
            (flat.to_rgb8().into(), ImageFormat::Jpeg, "image/jpeg"),
            (flat, ImageFormat::WebP, "image/webp"),
        ] {
            let bytes = file(&picture, format);
            let preview = preview(bytes.clone(), media_type).await.unwrap();
            assert_eq!((preview.bytes, preview.media_type.as_str()), (Bytes::from(bytes), media_type));
        }
    }

    #[tokio::test]
    async fn large_ones_are_scaled_onto_white_and_stay_in_proportion() {
        let cases = [
            (flat(1569, 100, [200, 0, 0, 255]), (1280, 82), [200, 0, 0]),
            (flat(100, 16_384, [0, 0, 0, 0]), (8, 1280), [255, 255, 255]),
            (flat(2560, 1280, [0, 0, 0, 128]), (1280, 640), [127, 127, 127]),
        ];
        for (picture, size, colour) in cases {
            let preview = preview(file(&picture, ImageFormat::Png), "image/png").await.unwrap();
            assert_eq!(preview.media_type, "image/jpeg");
            let shown = image::load_from_memory(&preview.bytes).unwrap().to_rgb8();
            assert_eq!(shown.dimensions(), size);
            let seen = shown.get_pixel(size.0 / 2, size.1 / 2).0;
            assert!(seen.iter().zip(colour).all(|(seen, colour)| seen.abs_diff(colour) < 6), "{seen:?}");
        }
    }

    #[tokio::test]
    async fn noise_is_made_small_enough_and_a_heavy_file_is_scaled_whatever_its_size() {
        let bytes = file(&noise(1280, 1280), ImageFormat::Png);
        assert!(bytes.len() > 4_000_000);
        let preview = preview(bytes, "image/png").await.unwrap();
        assert!(preview.bytes.len() <= PLAIN_BYTES && preview.bytes.len() > 100_000, "{}", preview.bytes.len());
    }

    #[tokio::test]
    async fn bombs_and_what_is_no_picture_are_left_out() {
        // A header that promises 60000 x 60000 pixels.
        let mut bomb = file(&flat(1, 1, [0, 0, 0, 255]), ImageFormat::Png);
        bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
        for bytes in [bomb, b"<html>".to_vec(), Vec::new(), file(&flat(20_001, 1, [0; 4]), ImageFormat::Png)] {
            assert!(preview(bytes, "image/png").await.is_none());
        }
        let nothing = Pictures::new(Router::new(), TaskTracker::new());
        assert!(nothing.preview("/i").await.is_none());
        assert!(nothing.preview("no path").await.is_none());
    }
}
