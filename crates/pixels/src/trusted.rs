//! What is refused of an image before it is decoded.
//!
//! Images come from renderers, which run pages. A file of some kilobytes can claim any size, and a decoder takes the memory and
//! the time for it.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use image::error::{DecodingError, ImageFormatHint, LimitError, LimitErrorKind};
use image::{ImageError, ImageFormat};

/// The longest side of an image in pixels. Browsers draw no longer ones.
pub const MAX_SIDE: u32 = 16_384;

/// The most pixels of an image: more than a full page of the widest viewport, and than a placeholder at the largest scale.
pub const MAX_PIXELS: u64 = 64 << 20;

/// How long the file of an image may be read while it is decoded. The largest one takes a second.
pub const DECODE_LIMIT: Duration = Duration::from_secs(10);

/// The first byte of a marker in a JPEG, and the markers that are looked for.
const MARKER: u8 = 0xff;
const START_OF_IMAGE: u8 = 0xd8;
const START_OF_SCAN: u8 = 0xda;
const BASELINE_FRAME: u8 = 0xc0;

/// Refuses a size that no capture has.
///
/// # Errors
/// [`ImageError::Limits`].
pub fn check_size(width: u32, height: u32) -> Result<(), ImageError> {
    let pixels = u64::from(width) * u64::from(height);
    match width.max(height) <= MAX_SIDE && pixels <= MAX_PIXELS {
        true => Ok(()),
        false => Err(ImageError::Limits(LimitError::from_kind(LimitErrorKind::DimensionError))),
    }
}

/// Refuses a JPEG in another mode than captures have. Each of the many scans of a progressive one takes the time of a whole
/// image.
///
/// # Errors
/// When the file cannot be read, or is no baseline JPEG.
pub fn check_jpeg(file: &mut impl Read) -> Result<(), ImageError> {
    let refused =
        |why: &'static str| ImageError::Decoding(DecodingError::new(ImageFormatHint::Exact(ImageFormat::Jpeg), why));
    let mut start = [0; 2];
    file.read_exact(&mut start).map_err(ImageError::IoError)?;
    if start != [MARKER, START_OF_IMAGE] {
        return Err(refused("the file is no JPEG"));
    }
    loop {
        let mut segment = [0; 4];
        file.read_exact(&mut segment).map_err(ImageError::IoError)?;
        let [first, marker, high, low] = segment;
        match marker {
            _ if first != MARKER => return Err(refused("a marker is missing")),
            BASELINE_FRAME => return Ok(()),
            // The other frames: progressive, lossless, arithmetic. 0xc4, 0xc8 and 0xcc are tables and an extension.
            0xc1..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => return Err(refused("captures are baseline JPEGs")),
            START_OF_SCAN => return Err(refused("the frame is missing")),
            _ => {}
        }
        let length = u64::from(u16::from_be_bytes([high, low]));
        let rest = length.checked_sub(2).ok_or_else(|| refused("a segment is too short"))?;
        let skipped = io::copy(&mut file.by_ref().take(rest), &mut io::sink()).map_err(ImageError::IoError)?;
        if skipped < rest {
            return Err(refused("the file is cut"));
        }
    }
}

/// A file that cannot be read any more after a time, which ends the decoder that reads it.
pub struct Timed<R> {
    file: R,
    until: Instant,
}

impl<R> Timed<R> {
    /// The file, for [`DECODE_LIMIT`].
    pub fn new(file: R) -> Self {
        Self::until(file, Instant::now() + DECODE_LIMIT)
    }

    fn until(file: R, until: Instant) -> Self {
        Self { file, until }
    }

    fn check(&self) -> io::Result<()> {
        match Instant::now() < self.until {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::TimedOut, "the image takes too long to decode")),
        }
    }
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.file.read(bytes)
    }
}

impl<R: BufRead> BufRead for Timed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        self.file.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.file.consume(bytes);
    }
}

impl<R: Seek> Seek for Timed<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.check()?;
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::RgbImage;
    use image::codecs::jpeg::JpegEncoder;

    #[test]
    fn sizes_that_no_capture_has_are_refused() {
        for (width, height, is_fine) in [
            (1, 1, true),
            (1920, 16_384, true),
            (16_384, 1920, true),
            // A placeholder at the largest scale.
            (5760, 9720, true),
            (16_385, 1, false),
            (1, 16_385, false),
            (16_384, 16_384, false),
            (60_000_000, 1, false),
            (u32::MAX, u32::MAX, false),
        ] {
            assert_eq!(check_size(width, height).is_ok(), is_fine, "{width} x {height}");
        }
    }

    #[test]
    fn only_baseline_jpegs_are_decoded() {
        let mut file = Vec::new();
        JpegEncoder::new(&mut file).encode_image(&RgbImage::new(8, 8)).unwrap();
        assert!(check_jpeg(&mut file.as_slice()).is_ok());
        let frame = file.windows(2).position(|two| two == [MARKER, BASELINE_FRAME]).unwrap();
        for marker in [0xc1, 0xc2, 0xc3, 0xc9, 0xcf, START_OF_SCAN] {
            let mut other = file.clone();
            other[frame + 1] = marker;
            assert!(check_jpeg(&mut other.as_slice()).is_err(), "{marker:x}");
        }
        for cut in [0, 1, 2, 4, 12, frame + 1] {
            assert!(check_jpeg(&mut &file[..cut]).is_err(), "{cut} bytes");
        }
        assert!(check_jpeg(&mut &b"\x89PNG\r\n\x1a\n"[..]).is_err());
        // A segment that is shorter than its own length.
        assert!(check_jpeg(&mut &[0xff, 0xd8, 0xff, 0xe0, 0, 1, 0, 0][..]).is_err());
    }

    #[test]
    fn file_is_not_read_after_its_time() {
        let mut file = Timed::new(io::Cursor::new([1, 2, 3]));
        assert_eq!(file.fill_buf().unwrap(), [1, 2, 3]);
        let mut late = Timed::until(io::Cursor::new([1, 2, 3]), Instant::now());
        assert_eq!(late.fill_buf().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(late.read(&mut [0; 2]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
