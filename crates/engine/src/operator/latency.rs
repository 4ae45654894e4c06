//! Percentiles of latencies.

use std::time::Duration;

/// How long captures took, from the request to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Half of the captures took at most this.
    pub p50: Duration,
    /// 95 of 100 captures took at most this.
    pub p95: Duration,
    /// Number of captures that were measured.
    pub captures: usize,
}

impl Latency {
    /// Of these captures. `None` without captures.
    pub(super) fn of(mut latencies: Vec<Duration>) -> Option<Self> {
        latencies.sort_unstable();
        let captures = latencies.len();
        // The nearest rank: the first that at least so many percent do not exceed.
        let percentile = |percent: usize| latencies.get((captures * percent).div_ceil(100).checked_sub(1)?).copied();
        Some(Self { p50: percentile(50)?, p95: percentile(95)?, captures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let of = |latencies: &[u64]| {
            let latency = Latency::of(latencies.iter().copied().map(Duration::from_secs).collect())?;
            Some((latency.p50.as_secs(), latency.p95.as_secs(), latency.captures))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some((7, 7, 1)));
        assert_eq!(of(&[9, 1]), Some((1, 9, 2)));
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(of(&hundred), Some((50, 95, 100)));
        let twenty: Vec<u64> = (1..=20).collect();
        assert_eq!(of(&twenty), Some((10, 19, 20)));
    }
}
