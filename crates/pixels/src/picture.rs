//! An encoded image that is read row by row, once or several times.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Seek};
use std::ops::ControlFlow;
use std::path::Path;

use image::ImageError;
use png::EncodingError;

use crate::cut::Format;
use crate::rows::{Layout, decoding_bytes, dimensions, read_rows};

/// An encoded image.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// Where it is.
    pub source: Source<'a>,
    /// Its format.
    pub format: Format,
}

/// Where an encoded image is.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// In a file.
    File(&'a Path),
    /// In memory.
    Memory(&'a [u8]),
}

/// The size of an image in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

/// Why work on an image has no result.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The image cannot be decoded.
    #[error("an image cannot be decoded")]
    Undecodable(#[from] ImageError),
    /// The file of the image cannot be read.
    #[error("an image cannot be read")]
    Unreadable(#[source] io::Error),
    /// What was drawn cannot be written.
    #[error("the drawn image cannot be written")]
    Unwritable(#[source] io::Error),
    /// A defect of the encoder.
    #[error("the drawn image cannot be encoded")]
    Encoding(#[source] EncodingError),
    /// What was drawn is larger than it may be.
    #[error("the drawn image is too large")]
    DrawingTooLarge,
    /// The result is no longer needed.
    #[error("the work was stopped")]
    Stopped,
}

impl From<EncodingError> for PictureError {
    fn from(error: EncodingError) -> Self {
        match error {
            EncodingError::IoError(error) => Self::Unwritable(error),
            error @ (EncodingError::Format(_) | EncodingError::Parameter(_) | EncodingError::LimitsExceeded) => {
                Self::Encoding(error)
            }
        }
    }
}

/// A file that is read from its beginning to its end.
trait Readable: BufRead + Seek {}

impl<T: BufRead + Seek> Readable for T {}

impl<'a> Picture<'a> {
    /// Opens it, to be read from its beginning.
    fn open(self) -> Result<Box<dyn Readable + 'a>, PictureError> {
        match self.source {
            Source::File(path) => Ok(Box::new(BufReader::new(File::open(path).map_err(PictureError::Unreadable)?))),
            Source::Memory(bytes) => Ok(Box::new(Cursor::new(bytes))),
        }
    }

    /// The memory that reading the whole file takes, in bytes.
    fn file_bytes(self) -> io::Result<u64> {
        match self.source {
            Source::File(path) => Ok(fs::metadata(path)?.len()),
            // It is there already.
            Source::Memory(_) => Ok(0),
        }
    }

    /// The size in pixels, and the memory that decoding takes, in bytes, besides that for some rows.
    ///
    /// # Errors
    /// When the file cannot be read, is no image of its format, or is larger than any capture.
    pub fn look(self) -> Result<(Size, u64), PictureError> {
        let (width, height) = dimensions(self.open()?, self.format)?;
        let file_bytes = self.file_bytes().map_err(PictureError::Unreadable)?;
        Ok((Size { width, height }, decoding_bytes(width, height, self.format, file_bytes)))
    }

    /// Whether each pixel is as it was captured.
    pub fn is_lossless(self) -> bool {
        match self.format {
            Format::Png => true,
            Format::Jpeg | Format::Webp => false,
        }
    }

    /// Passes the rows of the image to `each`, until it fails or the work is stopped.
    pub(crate) fn rows<T>(
        self,
        is_stopped: &dyn Fn() -> bool,
        begin: impl FnOnce(Layout) -> T,
        mut each: impl FnMut(&mut T, &[u8]) -> Result<(), PictureError>,
    ) -> Result<T, PictureError> {
        let mut failed = None;
        let state = read_rows(self.open()?, self.format, begin, |state, row| {
            let result = if is_stopped() { Err(PictureError::Stopped) } else { each(state, row) };
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(state), Err)
    }

    /// Passes the rows of the image to `each`, until it needs no more.
    pub(crate) fn first_rows<T>(
        self,
        begin: impl FnOnce(Layout) -> T,
        each: impl FnMut(&mut T, &[u8]) -> ControlFlow<()>,
    ) -> Result<T, PictureError> {
        Ok(read_rows(self.open()?, self.format, begin, each)?)
    }
}
