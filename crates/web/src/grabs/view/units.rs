//! Durations and sizes for people.

use std::time::Duration;

/// A duration in a suitable unit.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// A size of a file in a suitable unit.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}
