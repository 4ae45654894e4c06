//! Samples of durations.

use std::time::Duration;

/// Durations of one kind of operation.
#[derive(Default)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// The quantile in milliseconds.
    pub(crate) fn quantile(&mut self, quantile: f64) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index inside the sample")]
        let index = (quantile * last as f64).round() as usize;
        self.0.get(index).map_or(f64::NAN, |took| took.as_secs_f64() * 1000.0)
    }
}
