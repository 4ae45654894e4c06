//! Captures at a fixed concurrency, and what they cost.

use std::time::{Duration, Instant};

use grabd_tests::process_tree::ProcessTree;

use super::contender::Contender;
use super::page::Page;
use crate::measure::seconds_of_others;

/// Pause between two readings of the memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(400);
/// A worker stops after this many failures in one round, so that a tool that fails at once does not fill the round.
const MAX_FAILURES: u32 = 10;

/// Totals over all rounds of one contender, page and concurrency.
#[derive(Default)]
pub(super) struct Load {
    pub(super) captures: u32,
    pub(super) failures: u32,
    /// The first failure.
    pub(super) error: Option<String>,
    wall: Duration,
    /// Processor seconds.
    cpu: f64,
    /// Most memory of the processes, in MiB (PSS).
    pub(super) peak_mib: f64,
}

impl Load {
    /// Captures a page repeatedly, this many times concurrently. Captures that have begun when the time is over end.
    pub(super) async fn add(
        &mut self,
        contender: &Contender,
        page: Page,
        url: &str,
        concurrency: usize,
        length: Duration,
    ) -> anyhow::Result<()> {
        let tree = contender.tree();
        let cpu = seconds_of_others();
        let began = Instant::now();
        let workers = (0..concurrency).map(|_| async {
            let mut part = Self::default();
            while began.elapsed() < length && part.failures < MAX_FAILURES {
                match contender.capture(url, page).await {
                    Ok(_) => part.captures += 1,
                    Err(error) => {
                        part.failures += 1;
                        part.error.get_or_insert(format!("{error:#}"));
                    }
                }
            }
            part
        });
        let workers = futures::future::join_all(workers);
        let (parts, peak_mib) = while_measuring(tree, workers).await?;
        self.wall += began.elapsed();
        self.cpu += seconds_of_others() - cpu;
        self.peak_mib = self.peak_mib.max(peak_mib);
        for part in parts {
            self.captures += part.captures;
            self.failures += part.failures;
            self.error = self.error.take().or(part.error);
        }
        Ok(())
    }

    pub(super) fn per_second(&self) -> f64 {
        f64::from(self.captures) / self.wall.as_secs_f64()
    }

    /// Processor time of one capture in seconds, that of failed ones included.
    pub(super) fn cpu_each(&self) -> f64 {
        self.cpu / f64::from(self.captures)
    }
}

/// Waits for the work, and reads the memory meanwhile. Returns the work's result and the peak.
async fn while_measuring<W: Future>(tree: ProcessTree, work: W) -> anyhow::Result<(W::Output, f64)> {
    let mut peak = 0.0_f64;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return Ok((result, peak)),
            () = tokio::time::sleep(MEMORY_INTERVAL) => {
                let mib = tokio::task::spawn_blocking(move || tree.pss_mib());
                // The work goes on while the memory is read.
                tokio::select! {
                    result = &mut work => return Ok((result, peak)),
                    mib = mib => peak = peak.max(mib?),
                }
            }
        }
    }
}
