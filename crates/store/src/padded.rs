//! Lists of bind parameters, of few lengths.

/// Pads the ids to a power of two by repeating the last one.
///
/// Every number of bind parameters is a different statement to parse, plan and cache, so padding keeps them few.
pub(crate) fn padded<T: Copy>(ids: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.into_iter().collect();
    if let Some(last) = ids.last().copied() {
        ids.resize(ids.len().next_power_of_two(), last);
    }
    ids
}
