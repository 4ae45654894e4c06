//! Samples of durations, and processor time.

use std::time::Duration;

use grabd_tests::process_tree::ProcessTree;

/// Clock ticks per second, see [`ProcessTree`].
const TICKS: f64 = 100.0;

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

/// The seconds that all processors were busy, and those that passed, from the first line of `/proc/stat`, see proc(5).
pub(crate) fn processor_seconds() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal; what follows is included in user and nice.
    let times: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|time| time.parse().ok()).collect();
    let total: f64 = times.iter().sum();
    let idle: f64 = times.iter().skip(3).take(2).sum();
    ((total - idle) / TICKS, total / TICKS)
}

/// Processor seconds of everything but this process: what is measured, if nothing else runs.
///
/// *Why not the processes of the browser:* pages end while they are captured, and nobody waits for their processes, so that
/// their time is missing from that of their parents.
pub(crate) fn seconds_of_others() -> f64 {
    processor_seconds().0 - ProcessTree(std::process::id()).own_cpu().as_secs_f64()
}
