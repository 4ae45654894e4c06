//! Writes bits, the lowest of each byte first, as DEFLATE does.

/// Bits that are kept until they are bytes.
#[derive(Default)]
pub(super) struct BitWriter {
    pub(super) bytes: Vec<u8>,
    kept: u64,
    count: u32,
}

impl BitWriter {
    /// Adds the `count` lowest bits of `bits`, at most 32. Higher bits must be zero.
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        self.kept |= u64::from(bits) << self.count;
        self.count += count;
        if self.count >= 32 {
            let [a, b, c, d, ..] = self.kept.to_le_bytes();
            self.bytes.extend_from_slice(&[a, b, c, d]);
            self.kept >>= 32;
            self.count -= 32;
        }
    }

    /// Fills the last byte with zeros.
    pub(super) fn align(&mut self) {
        let bytes = usize::try_from(self.count.div_ceil(8)).unwrap_or(0);
        self.bytes.extend(self.kept.to_le_bytes().iter().take(bytes));
        (self.kept, self.count) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_fill_bytes_from_the_lowest() {
        let mut writer = BitWriter::default();
        writer.put(1, 1);
        writer.put(0b10, 2);
        writer.put(0b11111, 5);
        assert!(writer.bytes.is_empty(), "they are kept until there are 32");
        writer.put(0xffff_0001, 32);
        writer.put(0b1, 3);
        writer.align();
        assert_eq!(writer.bytes, [0b1111_1101, 1, 0, 0xff, 0xff, 1]);
    }
}
