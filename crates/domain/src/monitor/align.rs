//! Finds what two sequences have in common, in the same order.

use std::collections::HashMap;
use std::hash::Hash;

/// The most cells of the table with which two sequences are aligned exactly.
const MAX_CELLS: usize = 1 << 18;
/// How often longer sequences are divided at elements that are unique in both.
const MAX_DEPTH: u32 = 8;

/// The positions of equal elements of two sequences: both ascend. Long sequences without unique elements in common are taken for
/// different. `None` if it was stopped.
pub(super) fn align<T: Eq + Hash>(
    before: &[T],
    after: &[T],
    is_stopped: &dyn Fn() -> bool,
) -> Option<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    add_pairs(before, after, (0, 0), MAX_DEPTH, &mut pairs, is_stopped)?;
    Some(pairs)
}

/// Adds the pairs of two parts that begin at the positions `start`. `None` if it was stopped.
fn add_pairs<T: Eq + Hash>(
    before: &[T],
    after: &[T],
    start: (usize, usize),
    depth: u32,
    pairs: &mut Vec<(usize, usize)>,
    is_stopped: &dyn Fn() -> bool,
) -> Option<()> {
    if is_stopped() {
        return None;
    }
    let head = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    pairs.extend((0..head).map(|at| (start.0 + at, start.1 + at)));
    let (before, after) = (&before[head..], &after[head..]);
    let start = (start.0 + head, start.1 + head);
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (before.len() - tail, after.len() - tail);
    let (old_part, new_part) = (&before[..old_end], &after[..new_end]);
    if old_part.len().saturating_mul(new_part.len()) <= MAX_CELLS {
        let common = longest_common(old_part, new_part);
        pairs.extend(common.into_iter().map(|(old, new)| (start.0 + old, start.1 + new)));
    } else if depth > 0 {
        let (mut old_from, mut new_from) = (0, 0);
        for (old, new) in unique_in_order(old_part, new_part) {
            let from = (start.0 + old_from, start.1 + new_from);
            add_pairs(&old_part[old_from..old], &new_part[new_from..new], from, depth - 1, pairs, is_stopped)?;
            pairs.push((start.0 + old, start.1 + new));
            (old_from, new_from) = (old + 1, new + 1);
        }
        // Without a unique element, this would be the same part again.
        if old_from > 0 {
            let from = (start.0 + old_from, start.1 + new_from);
            add_pairs(&old_part[old_from..], &new_part[new_from..], from, depth - 1, pairs, is_stopped)?;
        }
    }
    pairs.extend((0..tail).map(|at| (start.0 + old_end + at, start.1 + new_end + at)));
    Some(())
}

/// A longest common subsequence, from a table of the lengths of those of all ends of both sequences.
fn longest_common<T: Eq>(before: &[T], after: &[T]) -> Vec<(usize, usize)> {
    let width = after.len() + 1;
    let mut lengths = vec![0_u32; (before.len() + 1) * width];
    for old in (0..before.len()).rev() {
        for new in (0..after.len()).rev() {
            let cell = old * width + new;
            lengths[cell] = if before[old] == after[new] {
                lengths[cell + width + 1] + 1
            } else {
                lengths[cell + width].max(lengths[cell + 1])
            };
        }
    }
    let (mut old, mut new) = (0, 0);
    let mut pairs = Vec::new();
    while old < before.len() && new < after.len() {
        let cell = old * width + new;
        if before[old] == after[new] {
            pairs.push((old, new));
            (old, new) = (old + 1, new + 1);
        } else if lengths[cell + width] >= lengths[cell + 1] {
            old += 1;
        } else {
            new += 1;
        }
    }
    pairs
}

/// The positions of elements that are unique in both sequences: the most of them that are in the same order.
fn unique_in_order<T: Eq + Hash>(before: &[T], after: &[T]) -> Vec<(usize, usize)> {
    let newer = unique(after);
    let mut both: Vec<(usize, usize)> =
        unique(before).into_iter().filter_map(|(element, old)| newer.get(element).map(|new| (old, *new))).collect();
    both.sort_unstable();
    // For each length, the pair at which an ascending sequence of that length ends at the lowest position.
    let mut ends: Vec<usize> = Vec::new();
    let mut earlier: Vec<Option<usize>> = Vec::with_capacity(both.len());
    for (at, (_, new)) in both.iter().enumerate() {
        let length = ends.partition_point(|end| both[*end].1 < *new);
        earlier.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut last = ends.last().copied();
    while let Some(at) = last {
        found.push(both[at]);
        last = earlier[at];
    }
    found.reverse();
    found
}

/// The elements that occur once, with their positions.
fn unique<T: Eq + Hash>(elements: &[T]) -> HashMap<&T, usize> {
    let mut places: HashMap<&T, (usize, bool)> = HashMap::new();
    for (at, element) in elements.iter().enumerate() {
        places.entry(element).and_modify(|place| place.1 = false).or_insert((at, true));
    }
    places.into_iter().filter(|(_, (_, is_unique))| *is_unique).map(|(element, (at, _))| (element, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(before: &str, after: &str) -> String {
        let (old, new): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        let pairs = align(&old, &new, &|| false).unwrap();
        assert!(pairs.iter().all(|(at, other)| old[*at] == new[*other]), "{pairs:?}");
        pairs.iter().map(|(at, _)| old[*at]).collect()
    }

    #[test]
    fn longest_common_part_is_found() {
        for (before, after, expected) in [
            ("", "", ""),
            ("abc", "", ""),
            ("", "abc", ""),
            ("abc", "abc", "abc"),
            ("abc", "axc", "ac"),
            ("abcd", "bcda", "bcd"),
            ("abab", "baba", "bab"),
            ("xaybzc", "abcq", "abc"),
            ("abc", "xyz", ""),
        ] {
            assert_eq!(common(before, after).chars().count(), expected.chars().count(), "{before} {after}");
        }
        assert_eq!(common("xaybzc", "abcq"), "abc");
    }

    #[test]
    fn long_sequences_are_divided_at_unique_elements() {
        // Different in each place of a thousand, so that the table would be too large.
        let before: Vec<u32> = (0..2000_u32).map(|at| if at.is_multiple_of(2) { at } else { 1_000_000 }).collect();
        let after: Vec<u32> = (0..2000_u32).map(|at| if at.is_multiple_of(2) { at } else { 2_000_000 }).collect();
        let mut moved = after.clone();
        moved.swap(10, 1990);
        let pairs = |after: &[u32]| align(&before, after, &|| false).unwrap();
        assert_eq!(pairs(&after), (0..1000).map(|at| (2 * at, 2 * at)).collect::<Vec<_>>());
        assert_eq!(pairs(&moved).len(), 998);
        assert_eq!(pairs(&[3; 2000]), [], "no element is in both");
    }

    #[test]
    fn long_sequences_without_unique_elements_and_stopped_work_end() {
        let [before, after] = [[1_u32, 2], [2, 3]].map(|of| of.repeat(1000));
        assert_eq!(align(&before, &after, &|| false), Some(Vec::new()));
        assert_eq!(align(&before, &after, &|| true), None);
    }
}
