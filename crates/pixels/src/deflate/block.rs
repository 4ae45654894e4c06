//! A block of DEFLATE with codes of its own (RFC 1951): literal bytes, and repetitions of earlier bytes.

use super::bits::BitWriter;
use super::huffman::Codes;

/// Literals, the end of the block, and lengths.
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END: usize = 256;

/// The order in which the lengths of the codes of code lengths are written.
const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Marks a token that is a repetition.
const REPETITION: u32 = 1 << 31;

/// The symbol of each length from 3 on.
const LENGTH_SYMBOLS: [u8; 256] = length_symbols();

/// What a block contains.
pub(super) struct Block {
    /// A byte, or the mark of a repetition, its length less 3 in the second byte and a half, and its distance less 1.
    tokens: Vec<u32>,
    literals: [u32; LITERALS],
    distances: [u32; DISTANCES],
}

impl Block {
    pub(super) fn with_capacity(tokens: usize) -> Self {
        Self { tokens: Vec::with_capacity(tokens), literals: [0; LITERALS], distances: [0; DISTANCES] }
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn add_literal(&mut self, byte: u8) {
        self.literals[usize::from(byte)] += 1;
        self.tokens.push(u32::from(byte));
    }

    /// Adds a repetition of `length` bytes, from 3 to 258, of those `distance` bytes before, at most 32,768.
    pub(super) fn add_repetition(&mut self, length: usize, distance: usize) {
        let (length, distance) = ((length - 3) as u32 & 0xff, (distance - 1) as u32 & 0x7fff);
        self.literals[length_symbol(length)] += 1;
        self.distances[distance_symbol(distance)] += 1;
        self.tokens.push(REPETITION | length << 16 | distance);
    }

    /// Writes the block, and begins an empty one.
    pub(super) fn write(&mut self, is_last: bool, out: &mut BitWriter) {
        self.literals[END] = 1;
        if self.tokens.is_empty() {
            // Some decoders refuse a code with one symbol.
            self.literals[0] = 1;
        }
        let (literals, distances) = (Codes::of(&self.literals, 15), Codes::of(&self.distances, 15));
        // Compressed with codes of its own.
        out.put(u32::from(is_last) | 0b10 << 1, 3);
        write_codes(&literals, &distances, out);
        for token in self.tokens.drain(..) {
            if token & REPETITION == 0 {
                let (code, bits) = literals.code((token & 0xff) as usize);
                out.put(code, bits);
            } else {
                let (length, distance) = (token >> 16 & 0xff, token & 0x7fff);
                let (symbol, far) = (length_symbol(length), distance_symbol(distance));
                let (code, bits) = literals.code(symbol);
                out.put(code, bits);
                let extra = length_extra(symbol);
                out.put(length & ((1 << extra) - 1), extra);
                let (code, bits) = distances.code(far);
                out.put(code, bits);
                let extra = distance_extra(far);
                out.put(distance & ((1 << extra) - 1), extra);
            }
        }
        let (code, bits) = literals.code(END);
        out.put(code, bits);
        (self.literals, self.distances) = ([0; LITERALS], [0; DISTANCES]);
    }
}

const fn length_symbols() -> [u8; 256] {
    let mut symbols = [0; 256];
    let mut length = 0;
    while length < 255 {
        symbols[length] = match length {
            0..8 => length as u8,
            _ => {
                let extra = length.ilog2() - 2;
                (extra * 4) as u8 + (length >> extra) as u8
            }
        };
        length += 1;
    }
    // The longest one has a symbol of its own.
    symbols[255] = 28;
    symbols
}

/// The symbol of a length less 3.
fn length_symbol(length: u32) -> usize {
    END + 1 + usize::from(LENGTH_SYMBOLS[(length & 0xff) as usize])
}

/// The number of bits after the symbol of a length. They are the lowest of the length less 3.
fn length_extra(symbol: usize) -> u32 {
    match symbol - (END + 1) {
        0..8 | 28 => 0,
        symbol => (symbol / 4 - 1) as u32,
    }
}

/// The symbol of a distance less 1.
fn distance_symbol(distance: u32) -> usize {
    match distance {
        0..4 => distance as usize,
        _ => {
            let extra = distance.ilog2() - 1;
            (2 * extra + (distance >> extra)) as usize
        }
    }
}

/// The number of bits after the symbol of a distance. They are the lowest of the distance less 1.
fn distance_extra(symbol: usize) -> u32 {
    (symbol / 2).saturating_sub(1) as u32
}

/// Writes the lengths of the codes, with which a decoder makes the same codes.
fn write_codes(literals: &Codes<LITERALS>, distances: &Codes<DISTANCES>, out: &mut BitWriter) {
    let (literal_count, distance_count) = (literals.used(257), distances.used(1));
    let lengths: Vec<u8> = literals
        .lengths
        .iter()
        .take(literal_count)
        .chain(distances.lengths.iter().take(distance_count))
        .copied()
        .collect();
    let runs = runs(&lengths);
    let mut counts = [0; 19];
    runs.iter().for_each(|run| counts[run.symbol] += 1);
    let codes: Codes<19> = Codes::of(&counts, 7);
    let written =
        LENGTH_ORDER.iter().rposition(|symbol| codes.lengths[*symbol] > 0).map_or(4, |last| (last + 1).max(4));
    out.put((literal_count - 257) as u32, 5);
    out.put((distance_count - 1) as u32, 5);
    out.put((written - 4) as u32, 4);
    for symbol in LENGTH_ORDER.iter().take(written) {
        out.put(u32::from(codes.lengths[*symbol]), 3);
    }
    for run in runs {
        let (code, bits) = codes.code(run.symbol);
        out.put(code, bits);
        out.put(run.extra, run.extra_bits);
    }
}

/// A code length, or a repetition of one.
struct Run {
    symbol: usize,
    extra: u32,
    extra_bits: u32,
}

/// The code lengths with their repetitions.
fn runs(lengths: &[u8]) -> Vec<Run> {
    let mut runs = Vec::new();
    for same in lengths.chunk_by(|one, other| one == other) {
        let length = usize::from(same.first().copied().unwrap_or(0));
        let mut left = same.len();
        if length > 0 {
            runs.push(Run { symbol: length, extra: 0, extra_bits: 0 });
            left -= 1;
        }
        while left > 0 {
            // 16 repeats the last length 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros.
            let (symbol, least, most, extra_bits) = match (length, left) {
                (_, ..3) => (length, 1, 1, 0),
                (0, 3..11) => (17, 3, 10, 3),
                (0, _) => (18, 11, 138, 7),
                (_, _) => (16, 3, 6, 2),
            };
            let count = left.min(most);
            runs.push(Run { symbol, extra: (count - least) as u32, extra_bits });
            left -= count;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths and distances at which symbols begin (RFC 1951, 3.2.5).
    #[test]
    fn symbols_are_those_of_the_standard() {
        let lengths = [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
            227, 258,
        ];
        for length in 3..=258_u32 {
            let expected = lengths.iter().rposition(|first| *first <= length).unwrap();
            let symbol = length_symbol(length - 3);
            assert_eq!(symbol, 257 + expected, "{length}");
            let extra = (length - 3) & ((1 << length_extra(symbol)) - 1);
            assert_eq!(extra, length - lengths[expected], "{length}");
        }
        let distances = [
            1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
            4097, 6145, 8193, 12_289, 16_385, 24_577,
        ];
        for distance in 1..=32_768_u32 {
            let expected = distances.iter().rposition(|first| *first <= distance).unwrap();
            let symbol = distance_symbol(distance - 1);
            assert_eq!(symbol, expected, "{distance}");
            let extra = (distance - 1) & ((1 << distance_extra(symbol)) - 1);
            assert_eq!(extra, distance - distances[expected], "{distance}");
        }
    }

    #[test]
    fn repeated_code_lengths_are_counted() {
        let mut lengths = vec![0; 150];
        lengths.extend([5; 8]);
        lengths.extend([0, 0, 7]);
        let runs: Vec<_> = runs(&lengths).iter().map(|run| (run.symbol, run.extra)).collect();
        assert_eq!(runs, [(18, 127), (18, 1), (5, 0), (16, 3), (5, 0), (0, 0), (0, 0), (7, 0)]);
    }
}
