//! What images that are drawn from captures have in common: the difference of two, and marks on elements.

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};

use png::{BitDepth, ColorType, DeflateCompression, Encoder, EncodingError, Filter, Writer};

/// Begins a PNG of this size, which is not kept in memory.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn begin<W: Write>(width: u32, height: u32, to: W) -> Result<Writer<W>, EncodingError> {
    let mut encoder = Encoder::new(to, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    // Fast, and small for what pages are made of: rows that are mostly like the ones above them.
    encoder.set_deflate_compression(DeflateCompression::Level(2));
    encoder.set_filter(Filter::Up);
    encoder.write_header()
}

/// Columns or rows as a range of indexes.
pub(crate) fn range(start: u32, end: u32) -> std::ops::Range<usize> {
    usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
}

/// Fails after a number of bytes.
pub(crate) struct Limited<'a, W> {
    to: W,
    left: u64,
    /// The encoder does not pass on the kind of an error.
    is_exceeded: &'a Cell<bool>,
}

impl<'a, W: Write> Limited<'a, W> {
    /// Writes to `to`. `is_exceeded` is set when more than `max_bytes` are written.
    pub(crate) const fn new(to: W, max_bytes: u64, is_exceeded: &'a Cell<bool>) -> Self {
        Self { to, left: max_bytes, is_exceeded }
    }
}

impl<W: Write> Write for Limited<'_, W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        let Some(left) = self.left.checked_sub(length) else {
            self.is_exceeded.set(true);
            return Err(ErrorKind::FileTooLarge.into());
        };
        self.left = left;
        self.to.write_all(part)?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_above_the_limit_is_refused() {
        let is_exceeded = Cell::new(false);
        let mut file = Vec::new();
        let mut limited = Limited::new(&mut file, 3, &is_exceeded);
        limited.write_all(b"abc").unwrap();
        assert!(!is_exceeded.get() && limited.write_all(b"d").is_err() && is_exceeded.get());
        assert_eq!(file, b"abc");
    }
}
