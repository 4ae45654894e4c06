//! Huffman codes of a limited length.

/// The codes of an alphabet: the length in bits of each symbol's code, 0 if it has none, and the code.
pub(super) struct Codes<const N: usize> {
    pub(super) lengths: [u8; N],
    /// With the first bit of a code as its lowest bit, as it is written.
    pub(super) bits: [u16; N],
}

impl<const N: usize> Codes<N> {
    /// The codes of symbols that occur this often, none longer than `most` bits.
    pub(super) fn of(counts: &[u32; N], most: u8) -> Self {
        let lengths = lengths(counts, most);
        Self { bits: bits(&lengths), lengths }
    }

    /// The code of a symbol and its length.
    pub(super) fn code(&self, symbol: usize) -> (u32, u32) {
        (u32::from(self.bits[symbol]), u32::from(self.lengths[symbol]))
    }

    /// The number of symbols up to the last one that has a code, at least `least`.
    pub(super) fn used(&self, least: usize) -> usize {
        self.lengths.iter().rposition(|length| *length > 0).map_or(0, |last| last + 1).max(least)
    }
}

/// The length of each symbol's code.
fn lengths<const N: usize>(counts: &[u32; N], most: u8) -> [u8; N] {
    let mut used: Vec<(u32, usize)> = (0..N).map(|symbol| (counts[symbol], symbol)).collect();
    used.retain(|(count, _)| *count > 0);
    used.sort_unstable();
    let mut lengths = [0; N];
    match *used.as_slice() {
        [] => {}
        [(_, symbol)] => lengths[symbol] = 1,
        _ => {
            let mut depths = depths(&used.iter().map(|(count, _)| *count).collect::<Vec<_>>());
            limit(&mut depths, most);
            for ((_, symbol), depth) in used.iter().zip(&depths) {
                lengths[*symbol] = *depth;
            }
        }
    }
    lengths
}

/// The depths of the leaves of the best tree, where `counts` ascend: two queues, of leaves and of inner nodes.
fn depths(counts: &[u32]) -> Vec<u8> {
    let leaves = counts.len();
    let mut sums: Vec<u64> = Vec::with_capacity(leaves);
    // Leaves have the numbers below `leaves`, inner nodes those above.
    let mut parents = vec![0; 2 * leaves - 1];
    let (mut leaf, mut inner) = (0, 0);
    for made in 0..leaves - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let is_leaf = leaf < leaves && (inner >= made || u64::from(counts[leaf]) <= sums[inner]);
            let child = match is_leaf {
                true => leaf,
                false => leaves + inner,
            };
            parents[child] = leaves + made;
            if is_leaf {
                sum += u64::from(counts[leaf]);
                leaf += 1;
            } else {
                sum += sums[inner];
                inner += 1;
            }
        }
        sums.push(sum);
    }
    let mut depths = vec![0_u8; 2 * leaves - 1];
    for node in (0..2 * leaves - 2).rev() {
        depths[node] = depths[parents[node]].saturating_add(1);
    }
    depths.truncate(leaves);
    depths
}

/// Shortens the codes that are too long, and makes others longer, so that the code stays complete. `depths` descend.
fn limit(depths: &mut [u8], most: u8) {
    let places = 1_u64 << most;
    let taken = |depth: u8| 1_u64 << (most - depth);
    depths.iter_mut().for_each(|depth| *depth = (*depth).min(most));
    let mut sum: u64 = depths.iter().map(|depth| taken(*depth)).sum();
    while sum > places {
        // The rarest symbol whose code can be longer.
        let Some(depth) = depths.iter_mut().find(|depth| **depth < most) else { break };
        sum -= taken(*depth) / 2;
        *depth += 1;
    }
    // What is free now is for the most frequent symbols.
    for depth in depths.iter_mut().rev() {
        while *depth > 1 && sum + taken(*depth) <= places {
            sum += taken(*depth);
            *depth -= 1;
        }
    }
}

/// The canonical codes of these lengths.
fn bits<const N: usize>(lengths: &[u8; N]) -> [u16; N] {
    let mut counts = [0_u16; 16];
    for length in lengths.iter().filter(|length| **length > 0) {
        counts[usize::from(*length)] += 1;
    }
    let mut next = [0_u16; 16];
    for length in 1..16 {
        next[length] = (next[length - 1] + counts[length - 1]) << 1;
    }
    let mut bits = [0; N];
    for (code, length) in bits.iter_mut().zip(lengths) {
        if *length > 0 {
            let next = &mut next[usize::from(*length)];
            *code = next.reverse_bits() >> (16 - u32::from(*length));
            *next += 1;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How much of all codes of 15 bits these take: 1 << 15 if the code is complete.
    fn taken(lengths: &[u8]) -> u32 {
        lengths.iter().filter(|length| **length > 0).map(|length| 1 << (15 - length)).sum()
    }

    #[test]
    fn frequent_symbols_have_short_codes() {
        let codes = Codes::of(&[8, 1, 0, 4, 2, 1], 15);
        assert_eq!(codes.lengths, [1, 4, 0, 2, 3, 4]);
        assert_eq!(codes.bits, [0, 0b0111, 0, 0b01, 0b011, 0b1111]);
        assert_eq!((codes.used(2), Codes::of(&[0; 5], 7).used(2)), (6, 2));
        assert_eq!(Codes::of(&[0, 9, 0], 15).lengths, [0, 1, 0]);
    }

    #[test]
    fn codes_are_never_longer_than_allowed() {
        // Each symbol as frequent as all before together: without a limit, codes of 28 bits.
        let counts: [u32; 29] = std::array::from_fn(|symbol| 1 << symbol.saturating_sub(1));
        for most in [5, 7, 15] {
            let codes = Codes::of(&counts, most);
            assert_eq!(codes.lengths.iter().max(), Some(&most));
            assert_eq!(taken(&codes.lengths), 1 << 15);
        }
    }

    proptest! {
        #[test]
        fn codes_are_complete(counts in proptest::array::uniform32(0_u32..1000)) {
            let codes = Codes::of(&counts, 7);
            let used = counts.iter().filter(|count| **count > 0).count();
            prop_assert_eq!(codes.lengths.iter().filter(|length| **length > 0).count(), used);
            prop_assert!(codes.lengths.iter().all(|length| *length <= 7));
            if used > 1 {
                prop_assert_eq!(taken(&codes.lengths), 1 << 15);
            }
        }
    }
}
