//! Images of at most 256 colours.

use std::ops::ControlFlow;

use super::chunks::File;
use super::limits::Limits;
use crate::deflate::Deflater;

const MOST_COLOURS: usize = 256;

/// Places for colours, by their hash: four times as many as colours.
const TABLE_BITS: u32 = 10;

/// Red, green, blue and alpha.
type Colour = [u8; 4];

/// The pixels of an image as numbers of its colours.
pub(super) struct Indexed {
    width: usize,
    channels: usize,
    colours: Vec<Colour>,
    /// The number of a colour plus 1, or 0.
    table: Vec<u16>,
    numbers: Vec<u8>,
    last_row: Vec<u8>,
}

impl Indexed {
    /// For at most `height` rows of `width` pixels, with 3 or 4 channels.
    pub(super) fn new((width, height): (usize, usize), channels: usize) -> Self {
        Self {
            width,
            channels,
            colours: Vec::with_capacity(MOST_COLOURS),
            table: vec![0; 1 << TABLE_BITS],
            // One byte for each pixel, and not more: a buffer that grows has up to three times as many.
            numbers: Vec::with_capacity(width.saturating_mul(height)),
            last_row: Vec::new(),
        }
    }

    /// Adds a row. Returns false if it has too many colours, and is not added.
    pub(super) fn add(&mut self, row: &[u8]) -> bool {
        let begin = self.numbers.len();
        if self.last_row == row {
            // Most rows of most pages.
            self.numbers.extend_from_within(begin.saturating_sub(self.width)..);
            return true;
        }
        let mut last: Option<(Colour, u8)> = None;
        for pixel in row.chunks_exact(self.channels) {
            let colour = colour(pixel);
            let number = match last {
                Some((same, number)) if same == colour => Some(number),
                _ => self.number(colour),
            };
            let Some(number) = number else {
                self.numbers.truncate(begin);
                return false;
            };
            last = Some((colour, number));
            self.numbers.push(number);
        }
        self.last_row.clear();
        self.last_row.extend_from_slice(row);
        true
    }

    /// The number of a colour. `None` if there are too many.
    fn number(&mut self, colour: Colour) -> Option<u8> {
        let mut place = u32::from_le_bytes(colour).wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS);
        loop {
            let entry = &mut self.table[place as usize];
            match entry.checked_sub(1) {
                None if self.colours.len() == MOST_COLOURS => return None,
                None => {
                    self.colours.push(colour);
                    *entry = u16::try_from(self.colours.len()).ok()?;
                    return u8::try_from(self.colours.len() - 1).ok();
                }
                Some(number) if self.colours[usize::from(number)] == colour => return u8::try_from(number).ok(),
                Some(_) => place = (place + 1) % (1 << TABLE_BITS),
            }
        }
    }

    /// Passes the rows so far to `each`, as they were added, until it breaks.
    pub(super) fn rows(&self, mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut row = Vec::with_capacity(self.width * self.channels);
        for numbers in self.numbers.chunks_exact(self.width.max(1)) {
            row.clear();
            for number in numbers {
                row.extend(self.colours[usize::from(*number)].iter().take(self.channels));
            }
            each(&row)?;
        }
        ControlFlow::Continue(())
    }

    /// The file of the image, with these chunks: with a palette, or in shades of grey if it has no others. `None` if the limits
    /// are exceeded.
    pub(super) fn write(&self, size: (u32, u32), kept: &[&[u8]], limits: Limits<'_>) -> Option<Vec<u8>> {
        let is_grey =
            self.colours.iter().all(|[red, green, blue, alpha]| red == green && green == blue && *alpha == 255);
        match self.colours.len() {
            ..=2 => self.write_palette(size, 1, kept, limits),
            3..=4 => self.write_palette(size, 2, kept, limits),
            5..=16 => self.write_palette(size, 4, kept, limits),
            _ if is_grey => self.write_grey(size, kept, limits),
            _ => self.write_palette(size, 8, kept, limits),
        }
    }

    fn write_grey(&self, (width, height): (u32, u32), kept: &[&[u8]], limits: Limits<'_>) -> Option<Vec<u8>> {
        let mut file = File::begin(width, height, 8, 0);
        kept.iter().for_each(|chunk| file.add_complete(chunk));
        let shades = |numbers: &[u8], row: &mut Vec<u8>| {
            row.extend(numbers.iter().map(|number| self.colours[usize::from(*number)][0]));
        };
        file.add(b"IDAT", &self.compressed(self.width, shades, limits)?);
        Some(file.finish())
    }

    fn write_palette(
        &self,
        (width, height): (u32, u32),
        bits: u8,
        kept: &[&[u8]],
        limits: Limits<'_>,
    ) -> Option<Vec<u8>> {
        let mut file = File::begin(width, height, bits, 3);
        kept.iter().for_each(|chunk| file.add_complete(chunk));
        let palette: Vec<u8> = self.colours.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect();
        file.add(b"PLTE", &palette);
        if let Some(last) = self.colours.iter().rposition(|[.., alpha]| *alpha < 255) {
            let alphas: Vec<u8> = self.colours.iter().take(last + 1).map(|[.., alpha]| *alpha).collect();
            file.add(b"tRNS", &alphas);
        }
        let in_byte = usize::from(8 / bits);
        let packed = |numbers: &[u8], row: &mut Vec<u8>| match bits {
            8 => row.extend_from_slice(numbers),
            _ => row.extend(numbers.chunks(in_byte).map(|few| pack(few, bits))),
        };
        file.add(b"IDAT", &self.compressed(self.width.div_ceil(in_byte), packed, limits)?);
        Some(file.finish())
    }

    /// The compressed rows, whose `length` bytes `write` makes of the numbers of a row. `None` if the limits are exceeded.
    fn compressed(&self, length: usize, write: impl Fn(&[u8], &mut Vec<u8>), limits: Limits<'_>) -> Option<Vec<u8>> {
        let mut deflater = Deflater::new(length + 1);
        let mut row = Vec::with_capacity(length + 1);
        for numbers in self.numbers.chunks_exact(self.width.max(1)) {
            if limits.are_exceeded(deflater.written()) {
                return None;
            }
            row.clear();
            // No filter: the difference of two numbers means nothing.
            row.push(0);
            write(numbers, &mut row);
            deflater.push(&row);
        }
        Some(deflater.finish())
    }
}

fn colour(pixel: &[u8]) -> Colour {
    match *pixel {
        [red, green, blue] => [red, green, blue, 255],
        [red, green, blue, alpha] => [red, green, blue, alpha],
        _ => [0; 4],
    }
}

/// Some numbers in a byte, the first in its highest bits.
fn pack(numbers: &[u8], bits: u8) -> u8 {
    numbers.iter().zip(1_u32..).fold(0, |byte, (number, place)| byte | number << (8 - place * u32::from(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_from_the_highest_bits() {
        assert_eq!(pack(&[1, 0, 1, 1, 0, 0, 0, 1], 1), 0b1011_0001);
        assert_eq!(pack(&[1, 0, 1], 1), 0b1010_0000);
        assert_eq!(pack(&[3, 0, 2, 1], 2), 0b1100_1001);
        assert_eq!(pack(&[15, 1], 4), 0xf1);
        assert_eq!(pack(&[9], 4), 0x90);
    }

    #[test]
    fn row_with_the_257th_colour_is_not_added() {
        let mut indexed = Indexed::new((2, 200), 3);
        for colour in (0..=255_u8).step_by(2) {
            assert!(indexed.add(&[colour, 1, 2, colour + 1, 1, 2]));
        }
        assert!(indexed.add(&[7, 1, 2, 8, 1, 2]), "it has no new colours");
        assert!(!indexed.add(&[7, 1, 2, 8, 1, 3]));
        let (mut rows, mut last) = (0, Vec::new());
        let all = indexed.rows(|row| {
            (rows, last) = (rows + 1, row.to_vec());
            ControlFlow::Continue(())
        });
        assert_eq!((all, rows, last), (ControlFlow::Continue(()), 129, vec![7, 1, 2, 8, 1, 2]));
        rows = 0;
        let some = indexed.rows(|_| {
            rows += 1;
            if rows == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((some, rows), (ControlFlow::Break(()), 5));
    }
}
