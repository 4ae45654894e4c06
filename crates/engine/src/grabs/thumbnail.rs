//! Small copies of pictures, for pages that show many: made when they are asked for, the latest ones kept.

use std::io::{BufRead, BufReader, Cursor, Seek};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::capture::Format;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{ImageKey, State};
use grabd_domain::ids::GrabId;
use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, ImageReader, imageops};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::get;
use crate::cache::Cache;
use crate::core::{Core, Image, inside};

/// Width of a thumbnail in pixels, unless the picture itself is narrower.
pub const THUMBNAIL_WIDTH: u32 = 480;
/// Height of a thumbnail in pixels, unless the picture itself is lower. Of a longer one it shows the top.
pub const THUMBNAIL_HEIGHT: u32 = 270;

/// Memory that thumbnails may take: a thousand and more.
const CACHE_BYTES: usize = 24 << 20;
/// Pictures unpacked at a time. The largest one is 1920x16384 and takes 126 MB while it is.
const AT_ONCE: usize = 1;
/// What unpacking one may take. Beyond it, there is no thumbnail.
const MOST_BYTES: u64 = 192 << 20;
/// How long a thumbnail may wait for those before it.
const PATIENCE: Duration = Duration::from_secs(20);
/// Small pictures of text: below this, they become hard to tell apart.
const JPEG_QUALITY: u8 = 82;

/// The latest thumbnails, and the desk where they are made.
pub(crate) struct Thumbnails {
    cache: Cache<ImageKey, Bytes>,
    desks: Arc<Semaphore>,
}

impl Default for Thumbnails {
    fn default() -> Self {
        Self { cache: Cache::new(CACHE_BYTES), desks: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Thumbnails {
    /// A deleted picture leaves no small one behind.
    pub(super) fn forget(&self, key: &ImageKey) {
        self.cache.remove(key);
    }
}

/// A JPEG file of the grab's picture, at most [`THUMBNAIL_WIDTH`] by [`THUMBNAIL_HEIGHT`].
///
/// # Errors
/// [`Fault::NotFound`] when the caller has no such grab, or it has no picture.
pub async fn thumbnail(core: &Core, caller: Caller, id: GrabId) -> Result<Bytes, Fault> {
    let step = "grabs.thumbnail";
    let State::Done { image: Some(key), .. } = get(core, caller, id).await?.state else {
        return Err(Fault::NotFound { what: "picture" });
    };
    let shop = &core.thumbnails;
    if let Some(kept) = shop.cache.get(&key) {
        return Ok(kept);
    }
    let desk = timeout(PATIENCE, Arc::clone(&shop.desks).acquire_owned()).await.map_err(inside(step))?;
    let desk = desk.map_err(inside(step))?;
    // Somebody else may have wanted the same one.
    if let Some(kept) = shop.cache.get(&key) {
        return Ok(kept);
    }
    let image = core.image(&key).await.map_err(inside(step))?.ok_or(Fault::NotFound { what: "picture" })?;
    let format = key.format();
    // The desk goes with the work, which goes on when whoever wants it has gone.
    let made = core.tasks.spawn_blocking(move || {
        let _desk = desk;
        match image {
            Image::File(path) => shrink(BufReader::new(std::fs::File::open(path)?), format, MOST_BYTES),
            Image::Drawn(bytes) => shrink(Cursor::new(bytes), format, MOST_BYTES),
        }
    });
    let small = Bytes::from(made.await.map_err(inside(step))?.map_err(inside(step))?);
    shop.cache.put(key, &small);
    Ok(small)
}

/// The top of a picture, made small. One that is small already keeps its size.
fn shrink(file: impl BufRead + Seek, format: Format, most_bytes: u64) -> Result<Vec<u8>, image::ImageError> {
    let mut reader = ImageReader::with_format(file, media(format));
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(most_bytes);
    reader.limits(limits);
    let picture = reader.decode()?;
    let width = picture.width();
    let shown = picture.height().min(in_proportion(width, THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH));
    let top = picture.crop_imm(0, 0, width, shown).into_rgb8();
    drop(picture);
    let small = match width > THUMBNAIL_WIDTH {
        true => imageops::thumbnail(&top, THUMBNAIL_WIDTH, in_proportion(shown, THUMBNAIL_WIDTH, width)),
        false => top,
    };
    let mut bytes = Vec::new();
    small.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))?;
    Ok(bytes)
}

/// `length * to / from`, and at least 1.
fn in_proportion(length: u32, to: u32, from: u32) -> u32 {
    let scaled = u64::from(length) * u64::from(to) / u64::from(from.max(1));
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

const fn media(format: Format) -> ImageFormat {
    match format {
        Format::Png => ImageFormat::Png,
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Webp => ImageFormat::WebP,
    }
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    /// Red above, and blue from this line on.
    fn picture(width: u32, height: u32, blue_from: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |_, y| if y < blue_from { Rgb([200, 20, 20]) } else { Rgb([20, 20, 200]) })
    }

    fn small_of(picture: &RgbImage, format: Format) -> RgbImage {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, media(format)).unwrap();
        let small = shrink(Cursor::new(file.into_inner()), format, MOST_BYTES).unwrap();
        image::load_from_memory_with_format(&small, ImageFormat::Jpeg).unwrap().into_rgb8()
    }

    #[test]
    fn a_thumbnail_shows_the_top_of_its_picture() {
        for (width, height, expected) in [
            (1280, 720, (480, 270)),
            (1920, 1080, (480, 270)),
            (1280, 3240, (480, 270)),
            (320, 240, (320, 180)),
            (1000, 80, (480, 38)),
            (1, 1, (1, 1)),
            (1920, 1, (480, 1)),
        ] {
            let small = small_of(&picture(width, height, height), Format::Png);
            assert_eq!(small.dimensions(), expected, "{width}x{height}");
        }
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            assert_eq!(small_of(&picture(640, 480, 0), format).dimensions(), (480, 270), "{format:?}");
        }
        let small = small_of(&picture(1280, 3240, 360), Format::Png);
        assert!(small.get_pixel(240, 100)[0] > 150 && small.get_pixel(240, 170)[2] > 150);
    }

    #[test]
    fn what_is_no_picture_or_takes_too_much_has_no_thumbnail() {
        assert!(shrink(Cursor::new(b"<svg onload=alert(1)>".to_vec()), Format::Png, MOST_BYTES).is_err());
        let mut file = Cursor::new(Vec::new());
        picture(1000, 1000, 0).write_to(&mut file, ImageFormat::Png).unwrap();
        let file = file.into_inner();
        assert!(shrink(Cursor::new(&file), Format::Png, 3_100_000).is_ok());
        assert!(shrink(Cursor::new(&file), Format::Png, 2_900_000).is_err(), "it takes 3 MB");
    }
}
