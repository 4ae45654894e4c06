//! Finds the rows that two images have in common, so that what is inserted at the top of a page does not change all below
//! it.
//!
//! This is the patience algorithm: rows that are unique in both images are matched first, in the longest sequence that
//! has the same order in both; what is between them is matched in the same way.

use std::collections::HashMap;
use std::ops::Range;

/// How often the rows between matched ones are searched for further unique rows. Each time takes linear time, and pages
/// need few.
const MAX_DEPTH: usize = 16;

/// Rows of the earlier and the later image, between two matches.
struct Gap {
    earlier: Range<usize>,
    later: Range<usize>,
    depth: usize,
}

/// Pairs of equal rows of the earlier and the later image, ascending in both.
pub(super) fn align(earlier: &[u64], later: &[u64]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut gaps = vec![Gap { earlier: 0..earlier.len(), later: 0..later.len(), depth: 0 }];
    while let Some(gap) = gaps.pop() {
        let Some(Gap { earlier: old, later: new, depth }) = strip(earlier, later, gap, &mut pairs) else { continue };
        if depth == MAX_DEPTH {
            continue;
        }
        let anchors = ascending(&unique(earlier, later, old.clone(), new.clone()));
        if anchors.is_empty() {
            continue;
        }
        let (mut old_start, mut new_start) = (old.start, new.start);
        for (at_old, at_new) in anchors.iter().copied().chain([(old.end, new.end)]) {
            gaps.push(Gap { earlier: old_start..at_old, later: new_start..at_new, depth: depth + 1 });
            (old_start, new_start) = (at_old + 1, at_new + 1);
        }
        pairs.extend(anchors);
    }
    pairs.sort_unstable();
    pairs
}

/// Matches equal rows at the beginning and the end of a gap. `None` if nothing is left to match.
fn strip(earlier: &[u64], later: &[u64], gap: Gap, pairs: &mut Vec<(usize, usize)>) -> Option<Gap> {
    let Gap { earlier: mut old, later: mut new, depth } = gap;
    while !old.is_empty() && !new.is_empty() && earlier.get(old.start) == later.get(new.start) {
        pairs.push((old.start, new.start));
        (old.start, new.start) = (old.start + 1, new.start + 1);
    }
    while !old.is_empty() && !new.is_empty() && earlier.get(old.end - 1) == later.get(new.end - 1) {
        (old.end, new.end) = (old.end - 1, new.end - 1);
        pairs.push((old.end, new.end));
    }
    (!old.is_empty() && !new.is_empty()).then_some(Gap { earlier: old, later: new, depth })
}

/// The rows that each of the two ranges has exactly once, in the order of the later image.
fn unique(earlier: &[u64], later: &[u64], old: Range<usize>, new: Range<usize>) -> Vec<(usize, usize)> {
    #[derive(Default)]
    struct Seen {
        old: usize,
        new: usize,
        at: usize,
    }
    let mut seen: HashMap<u64, Seen> = HashMap::new();
    for (at, row) in old.clone().zip(earlier.get(old).unwrap_or_default()) {
        let seen = seen.entry(*row).or_default();
        (seen.old, seen.at) = (seen.old + 1, at);
    }
    let later = later.get(new.clone()).unwrap_or_default();
    for row in later {
        seen.entry(*row).or_default().new += 1;
    }
    let found = new.zip(later).filter_map(|(at, row)| match seen.get(row) {
        Some(Seen { old: 1, new: 1, at: at_old }) => Some((*at_old, at)),
        Some(_) | None => None,
    });
    found.collect()
}

/// The longest subsequence whose first numbers ascend, of pairs whose second numbers do.
fn ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length: the pair with the smallest end of a subsequence of that length. For each pair: the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let first = |at: usize| pairs.get(at).map_or(0, |pair| pair.0);
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| first(*end) < pair.0);
        before.push(length.checked_sub(1).and_then(|length| ends.get(length).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut longest = Vec::with_capacity(ends.len());
    let mut last = ends.last().copied();
    while let Some(at) = last {
        longest.extend(pairs.get(at));
        last = before.get(at).copied().flatten();
    }
    longest.reverse();
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many rows of the later image are matched.
    fn matched(earlier: &[u64], later: &[u64]) -> usize {
        align(earlier, later).len()
    }

    #[test]
    fn rows_below_an_insertion_are_matched() {
        let earlier: Vec<u64> = (0..1000).collect();
        let later: Vec<u64> = (5000..5037).chain(0..1000).collect();
        assert_eq!(align(&earlier, &later), (0..1000).map(|row| (row, row + 37)).collect::<Vec<_>>());
        assert_eq!(align(&later, &earlier), (0..1000).map(|row| (row + 37, row)).collect::<Vec<_>>());
    }

    #[test]
    fn blank_rows_between_unique_ones_are_matched() {
        // Text lines with blank rows between them, and a banner that is inserted.
        let earlier: Vec<u64> = (0..50).flat_map(|line| [0, 0, 100 + line, 0]).collect();
        let banner = [0, 7, 7, 7, 0];
        let later: Vec<u64> = earlier[..20].iter().chain(&banner).chain(&earlier[20..]).copied().collect();
        assert_eq!(matched(&earlier, &later), earlier.len());
    }

    #[test]
    fn moved_rows_are_matched_once_and_in_order() {
        let earlier = [1, 2, 3, 4, 5, 6];
        assert_eq!(align(&earlier, &[4, 5, 6, 1, 2, 3]).len(), 3);
        assert_eq!(align(&[], &earlier), []);
        assert_eq!(align(&earlier, &[]), []);
        assert_eq!(align(&[7; 5], &[7; 3]), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(align(&[1, 2], &[3, 4, 5]), []);
    }

    proptest! {
        #[test]
        fn pairs_are_equal_rows_and_ascend(
            earlier in prop::collection::vec(0_u64..12, 0..60),
            later in prop::collection::vec(0_u64..12, 0..60),
        ) {
            let pairs = align(&earlier, &later);
            for (old, new) in &pairs {
                prop_assert_eq!(earlier[*old], later[*new]);
            }
            prop_assert!(pairs.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1));
            prop_assert_eq!(align(&earlier, &earlier).len(), earlier.len());
        }
    }
}
