//! Reproducible random numbers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result};

/// A seeded random number generator (SplitMix64).
pub(crate) struct Rng(u64);

impl Rng {
    /// Seeded from `GRABD_TEST_SEED`, or randomly. Prints the seed, so that a failed run can be repeated.
    pub(crate) fn from_env() -> Result<Self> {
        let seed = match std::env::var_os("GRABD_TEST_SEED") {
            Some(seed) => seed.to_string_lossy().parse().context("GRABD_TEST_SEED")?,
            None => RandomState::new().build_hasher().finish(),
        };
        println!("to repeat: GRABD_TEST_SEED={seed}");
        Ok(Self(seed))
    }

    /// Derives another generator from this one.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// True with a probability of 1 in `many`.
    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.next().is_multiple_of(many)
    }

    pub(crate) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.next() % (range.end - range.start))
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.next() % u64::try_from(from.len()).unwrap_or(1);
        &from[usize::try_from(index).unwrap_or(0)]
    }
}
