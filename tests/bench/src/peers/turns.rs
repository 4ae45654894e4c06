//! The order in which contenders take turns.

/// All indexes, beginning with another one in each turn, so that no contender is always measured after the same one.
pub(super) fn in_turn(turn: u32, count: usize) -> impl Iterator<Item = usize> {
    let first = turn as usize % count.max(1);
    (first..count).chain(0..first)
}
