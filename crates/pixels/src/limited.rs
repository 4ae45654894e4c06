//! A buffer with a largest size.

use std::io::{self, Write};

/// Writes to a buffer of at most `most` bytes.
pub(crate) struct Limited {
    pub(crate) bytes: Vec<u8>,
    pub(crate) most: usize,
    /// Whether something did not fit.
    pub(crate) is_full: bool,
}

impl Write for Limited {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.is_full |= part.len() > self.most.saturating_sub(self.bytes.len());
        if self.is_full {
            return Err(io::Error::other("the buffer is full"));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_never_larger_than_its_limit() {
        let mut limited = Limited { bytes: Vec::new(), most: 4, is_full: false };
        limited.write_all(&[1, 2, 3, 4]).unwrap();
        assert!(!limited.is_full);
        assert!(limited.write_all(&[5]).is_err());
        assert!(limited.is_full);
        assert_eq!(limited.bytes, [1, 2, 3, 4]);
    }
}
