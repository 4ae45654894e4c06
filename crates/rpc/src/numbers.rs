//! Numbers of the domain as numbers of messages.

/// As the integers of messages. Larger values become the largest.
pub(crate) fn to_i32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
