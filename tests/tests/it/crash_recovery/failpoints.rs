//! Failpoints at which a capture is to fail, and a service run in which they fire.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_tests::leftovers::processes_in;
use tokio::time::timeout;

use super::crash_test::CrashTest;
use super::random::Rng;
use super::service::{StartResult, fired, kill_all};

/// One failpoint per service run. Each run takes over the grabs that the one before left.
pub(super) const FAILPOINTS: [&str; 11] = [
    "created=abort@3",
    "created=error@3",
    "assigned=abort@3",
    "rendered=abort@2",
    "rendered=lose@2",
    "stored=abort@2",
    "taking_over=abort",
    "stored=lose@2",
    "completed=abort@2",
    "completed=error@2",
    "releasing=abort",
];

/// A fault, and a second one that meets the same grab.
pub(super) const PAIRS: [&str; 19] = [
    // No renderer has the created job, then:
    "created=lose>stored=abort",
    // The assignment was sent and its lease is lost, so the grab is rendered twice.
    "assigned=lose>rendered=abort",
    "assigned=lose>stored=lose",
    "assigned=lose>stored=1500",
    // The assignment was not sent, and releasing it fails or happens twice.
    "assigned=error>releasing=error",
    "assigned=error>releasing=lose",
    // The image arrives under a lost lease, while the job waits or under the next lease.
    "rendered=error>rendered=lose",
    "rendered=lose>stored=error",
    "rendered=lose>stored=abort",
    "rendered=lose>stored=1500",
    "stored=error>stored=lose",
    "stored=error>completed=error",
    "stored=lose>stored=abort",
    "stored=lose>completed=error",
    "stored=lose>completed=abort",
    // The grab is done and is reported again.
    "completed=error>rendered=lose",
    "completed=error>stored=abort",
    "completed=error>completed=error",
    "completed=error>completed=abort",
];

/// The pairs in random order, with random hit counts.
pub(super) fn pairs(rng: &mut Rng) -> Vec<String> {
    let turned = |pair: &str| (rng.next(), pair.replacen('>', &format!("@{}>", 1 + rng.next() % 3), 1));
    let mut pairs: Vec<_> = PAIRS.into_iter().map(turned).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

/// Runs the service until all failpoints have fired.
pub(super) async fn run_until_failpoint(test: &CrashTest, failpoint: &str) -> Result<()> {
    let armed = failpoint.split([',', '>']).count();
    let mut service = match test.try_start(failpoint).await? {
        StartResult::Running(service) => *service,
        StartResult::Exited(log) => {
            // Grabs of an earlier process are taken over before the service reports that it is up.
            ensure!(failpoint.contains("abort") && fired(&log) == armed, "the service did not start: {log:?}");
            return Ok(());
        }
    };
    if failpoint.starts_with("releasing") {
        test.browsers_die.store(true, Ordering::SeqCst);
        // A renderer releases its job when the browser dies. It has nothing to release if it has just finished.
        while !service.has_fired(armed) {
            test.wait_for_next_request().await?;
            kill_all(&processes_in(&test.dirs.run_dir()));
            let _ = timeout(Duration::from_secs(2), service.wait_for_failpoints(armed)).await;
        }
    }
    service.wait_for_failpoints(armed).await?;
    if failpoint.contains("abort") {
        test.wait_for_abort(service).await
    } else {
        // Failed grabs continue and must end before the next run.
        test.wait_for_ended_grabs(2).await.with_context(|| failpoint.to_owned())?;
        test.kill(service).await
    }
}
