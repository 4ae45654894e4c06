//! Images of many colours.

use super::chunks::File;
use crate::deflate::Deflater;

/// The numbers of two filters: the bytes as they are, and the differences from the pixel before. Text repeats itself as it is,
/// gradients and photographs as differences. With the other filters, the same pixels have different bytes in different rows.
const NONE: u8 = 0;
const SUB: u8 = 1;

/// Compresses rows of pixels.
pub(super) struct Colours {
    /// The bytes of a pixel.
    channels: usize,
    above: Vec<u8>,
    /// The filter of the row above.
    filter: u8,
    /// The row as it is compressed, for both filters.
    plain: Vec<u8>,
    differences: Vec<u8>,
    deflater: Deflater,
}

impl Colours {
    /// For rows of `width` pixels, with 3 or 4 channels.
    pub(super) fn new(width: usize, channels: usize) -> Self {
        let length = width * channels;
        let begun = |filter| {
            let mut row = Vec::with_capacity(length + 1);
            row.push(filter);
            row
        };
        Self {
            channels,
            above: Vec::with_capacity(length),
            filter: NONE,
            plain: begun(NONE),
            differences: begun(SUB),
            deflater: Deflater::new(length + 1),
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &[u8]) {
        if self.above != row {
            self.plain.truncate(1);
            self.plain.extend_from_slice(row);
            let (first, rest) = row.split_at(self.channels.min(row.len()));
            self.differences.truncate(1);
            self.differences.extend_from_slice(first);
            self.differences.extend(rest.iter().zip(row).map(|(byte, before)| byte.wrapping_sub(*before)));
            // The row of fewer different bytes is smaller. Differences must be better by a tenth, since text has repetitions.
            let is_plain = 9 * distinct(&self.plain) <= 10 * distinct(&self.differences);
            self.filter = if is_plain { NONE } else { SUB };
            self.above.clear();
            self.above.extend_from_slice(row);
        }
        // A row that equals the one above is compressed as that one, and so repeats it.
        self.deflater.push(if self.filter == NONE { &self.plain } else { &self.differences });
    }

    /// The bytes that are written so far.
    pub(super) fn written(&self) -> usize {
        self.deflater.written()
    }

    /// The file of the image, with these chunks.
    pub(super) fn write(self, (width, height): (u32, u32), kept: &[&[u8]]) -> Vec<u8> {
        let mut file = File::begin(width, height, 8, if self.channels == 4 { 6 } else { 2 });
        kept.iter().for_each(|chunk| file.add_complete(chunk));
        file.add(b"IDAT", &self.deflater.finish());
        file.finish()
    }
}

/// The number of different bytes.
fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    for byte in bytes {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|is_seen| **is_seen).count()
}
