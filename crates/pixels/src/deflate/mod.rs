//! Compresses the rows of an image into a zlib stream (RFC 1950, RFC 1951).
//!
//! The general compressors that were measured either find no repetitions of three bytes, the size of a pixel, or take several
//! times as long. This one is for rows of pixels: it looks at the row above, and does not look for a better repetition where one is
//! long. See docs/decisions/0018-smaller-png-files.md.

mod bits;
mod block;
mod huffman;

use bits::BitWriter;
use block::Block;
use simd_adler32::Adler32;

/// How far back a repetition may reach.
const WINDOW: usize = 32 << 10;

const LEAST_LENGTH: usize = 3;
const MOST_LENGTH: usize = 258;

/// Bytes that are collected before the oldest are forgotten.
const BUFFER_BYTES: usize = 128 << 10;

/// Tokens in a block. Each block has codes of its own.
const BLOCK_TOKENS: usize = 24 << 10;

const HASH_BITS: u32 = 15;

/// Earlier places that are compared with.
const MOST_PLACES: u32 = 16;

/// A repetition of this length is taken, and a longer one is not looked for.
const GOOD_LENGTH: usize = 48;

/// The bytes in the middle of a longer repetition are not remembered as places.
const REMEMBERED_LENGTH: usize = 32;

/// A repetition: its length and its distance.
type Repetition = (usize, usize);

/// Compresses what is pushed.
pub(crate) struct Deflater {
    /// The window, and what is not compressed yet.
    data: Vec<u8>,
    /// The position of `data` among all bytes. Positions begin at [`WINDOW`] + 1, so that 0 is out of reach.
    base: usize,
    /// The next byte of `data` to be compressed.
    next: usize,
    /// The bytes from a row to the next one.
    stride: usize,
    /// The last position of each hash of three bytes, and for each position in the window the one before.
    heads: Vec<u32>,
    places: Vec<u32>,
    block: Block,
    checksum: Adler32,
    out: BitWriter,
}

impl Deflater {
    /// For rows of `stride` bytes.
    pub(crate) fn new(stride: usize) -> Self {
        let mut out = BitWriter::default();
        // A window of 32 KiB, and a quick compression.
        out.put(0x5e78, 16);
        Self {
            data: Vec::with_capacity(BUFFER_BYTES + WINDOW),
            base: WINDOW + 1,
            next: 0,
            stride,
            heads: vec![0; 1 << HASH_BITS],
            places: vec![0; WINDOW],
            block: Block::with_capacity(BLOCK_TOKENS),
            checksum: Adler32::new(),
            out,
        }
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.checksum.write(bytes);
        self.data.extend_from_slice(bytes);
        if self.data.len() >= BUFFER_BYTES {
            // The longest repetition from the last of these bytes is known.
            self.compress(self.data.len().saturating_sub(MOST_LENGTH));
            let forgotten = self.next.saturating_sub(WINDOW);
            self.data.drain(..forgotten);
            self.base += forgotten;
            self.next -= forgotten;
        }
    }

    /// The bytes that are written so far.
    pub(crate) fn written(&self) -> usize {
        self.out.bytes.len()
    }

    /// Ends the stream.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.compress(self.data.len());
        self.block.write(true, &mut self.out);
        self.out.align();
        self.out.bytes.extend(self.checksum.finish().to_be_bytes());
        self.out.bytes
    }

    /// Compresses the bytes before `end`, and some after it if they are part of a repetition. A repetition is taken where it
    /// is found: one that begins a byte later and is longer does not make the file smaller, since it cuts pixels.
    fn compress(&mut self, end: usize) {
        while self.next < end {
            let at = self.next;
            let found = self.longest(at);
            self.remember(at);
            match found {
                None => {
                    self.block.add_literal(self.data[at]);
                    self.next += 1;
                }
                Some((length, distance)) => {
                    self.block.add_repetition(length, distance);
                    self.remember_repetition(at, length);
                    self.next += length;
                }
            }
            if self.block.len() >= BLOCK_TOKENS {
                self.block.write(false, &mut self.out);
            }
        }
    }

    /// The longest repetition at this place.
    fn longest(&self, at: usize) -> Option<Repetition> {
        let most = (self.data.len() - at).min(MOST_LENGTH);
        if most < LEAST_LENGTH {
            return None;
        }
        let here = &self.data[at..at + most];
        let (reach, good) = (at.min(WINDOW), GOOD_LENGTH.min(most));
        let (position, mut place) = (self.base + at, self.heads[hash(here)]);
        let mut best = (LEAST_LENGTH - 1, 0);
        // The nearest place first, since its distance takes the fewest bits.
        let nearest = position - place as usize;
        if nearest <= reach {
            best = self.better(best, here, at - nearest, nearest);
            place = self.places[place as usize % WINDOW];
        }
        if best.0 < good && self.stride <= reach {
            best = self.better(best, here, at - self.stride, self.stride);
        }
        for _ in 1..MOST_PLACES {
            let distance = position - place as usize;
            if best.0 >= good || distance > reach {
                break;
            }
            best = self.better(best, here, at - distance, distance);
            place = self.places[place as usize % WINDOW];
        }
        (best.1 > 0).then_some(best)
    }

    /// The repetition of the bytes `here` from an earlier place, if it is longer than `best`.
    #[inline]
    fn better(&self, best: Repetition, here: &[u8], earlier: usize, distance: usize) -> Repetition {
        let there = &self.data[earlier..earlier + here.len()];
        if best.0 >= here.len() || there[best.0] != here[best.0] {
            return best;
        }
        let length = common(there, here);
        if length > best.0 { (length, distance) } else { best }
    }

    /// Makes it possible to find the bytes at this place.
    #[inline]
    fn remember(&mut self, at: usize) {
        if let Some(three) = self.data.get(at..at + LEAST_LENGTH) {
            let (head, position) = (&mut self.heads[hash(three)], self.base + at);
            self.places[position % WINDOW] = *head;
            *head = position as u32;
        }
    }

    /// The same for the bytes of a repetition after its first.
    fn remember_repetition(&mut self, at: usize, length: usize) {
        let end = at + length;
        match length > REMEMBERED_LENGTH {
            true => (end - LEAST_LENGTH..end).for_each(|at| self.remember(at)),
            false => (at + 1..end).for_each(|at| self.remember(at)),
        }
    }
}

#[inline]
fn hash(bytes: &[u8]) -> usize {
    let three = match *bytes {
        [a, b, c, ..] => u32::from_le_bytes([a, b, c, 0]),
        _ => 0,
    };
    (three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// The number of equal bytes at the beginning.
#[inline]
fn common(one: &[u8], other: &[u8]) -> usize {
    let ((ones, _), (others, _)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let mut length = 0;
    for (one, other) in ones.iter().zip(others) {
        let differing = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return length + (differing.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let rest = one[length..].iter().zip(&other[length..]);
    length + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compressed(bytes: &[u8], stride: usize, part: usize) -> Vec<u8> {
        let mut deflater = Deflater::new(stride);
        bytes.chunks(part).for_each(|part| deflater.push(part));
        deflater.finish()
    }

    #[track_caller]
    fn check(bytes: &[u8], stride: usize, part: usize) -> usize {
        let compressed = compressed(bytes, stride, part);
        let read = fdeflate::decompress_to_vec(&compressed).unwrap();
        assert!(read == bytes, "{} bytes, {stride}, {part}", bytes.len());
        compressed.len()
    }

    fn noise(length: usize) -> Vec<u8> {
        let bytes = (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 ^ (at >> 9) as u8);
        bytes.collect()
    }

    #[test]
    fn short_and_uniform_data_are_read_again() {
        for length in [0, 1, 2, 3, 4, 7, 8, 9, 257, 258, 259, 260, 261, 516, 517, 70_000] {
            for stride in [1, 4, 300, 40_000] {
                check(&vec![7; length], stride, 1000);
                check(&noise(length), stride, 999);
            }
        }
        assert!(check(&vec![0; 4 << 20], 3841, 3841) < 5000);
    }

    #[test]
    fn rows_that_repeat_earlier_ones_are_small() {
        let row = noise(3841);
        let rows: Vec<u8> = (0..200).flat_map(|_| row.clone()).collect();
        assert!(check(&rows, 3841, 3841) < 3841 + 200 * 40);
        // A row that is longer than the window.
        let row = noise(50_000);
        let rows: Vec<u8> = (0..20).flat_map(|_| row.clone()).collect();
        check(&rows, 50_000, 50_000);
    }

    #[test]
    fn noise_is_hardly_larger() {
        let bytes: Vec<u8> =
            noise(1 << 20).iter().zip(noise(1 << 19).iter().cycle().skip(77)).map(|(a, b)| a ^ b).collect();
        assert!(check(&bytes, 3841, 100_000) < (1 << 20) + (1 << 13));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn all_data_are_read_again(
            parts in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..40), 1_usize..900), 0..60),
            stride in 1_usize..500,
            part in 1_usize..5000,
        ) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(bytes, times)| bytes.repeat(*times)).collect();
            check(&bytes, stride, part);
        }
    }
}
