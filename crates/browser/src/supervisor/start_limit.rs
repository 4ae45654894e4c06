//! Limits how many captures of an account start at the same time.
//!
//! There are more slots than processors, because captures of slow sites mostly wait. But if the processors are busy, more
//! captures at a time only take longer each: with an article four at a time on two processors, all of them started at once took
//! 8 % more processor time and twice the memory. Captures of other accounts are not delayed: they could be much shorter.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use grabd_domain::ids::AccountId;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

/// A capture counts as starting for at most this long. A capture that takes longer delays others no more: a page that keeps
/// a processor busy, for example.
const START_TIME: Duration = Duration::from_millis(500);

/// The time in which a processor must have been idle for another capture to start.
const INTERVAL: Duration = Duration::from_millis(50);

/// Measurements are compared with one of at most this age.
const MAX_AGE: Duration = Duration::from_secs(1);

/// At most one capture of an account for each processor is starting, unless a processor is idle.
pub(super) struct StartLimit {
    processors: usize,
    /// A permit for each capture that may start. Accounts without captures have no entry.
    accounts: std::sync::Mutex<HashMap<AccountId, Arc<Semaphore>>>,
    idle: Mutex<Idle>,
    read: fn() -> Option<Usage>,
}

/// Which processors are idle.
struct Idle {
    /// The last measurement, and the processors that were idle before it, and that no capture was started for.
    measured: Option<(Instant, Usage)>,
    processors: usize,
}

/// The processor time since the system started, in any unit.
#[derive(Clone, Copy)]
struct Usage {
    idle: u64,
    total: u64,
}

/// A capture that may start.
pub(super) struct Start {
    /// `None`: a processor was idle, or there is no limit.
    permit: Option<OwnedSemaphorePermit>,
}

impl StartLimit {
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with(processors, read_usage)
    }

    fn with(processors: usize, read: fn() -> Option<Usage>) -> Self {
        let idle = Mutex::new(Idle { measured: None, processors: 0 });
        Self { processors, accounts: std::sync::Mutex::default(), idle, read }
    }

    /// Waits until a capture of this account may start. With as many slots as there are by default, this takes at most [`START_TIME`]: there are
    /// two slots for each processor. Cancel-safe.
    pub(super) async fn wait(&self, account: Option<AccountId>) -> Start {
        let Some(account) = account else { return Start { permit: None } };
        let starting = self.starting(account);
        if let Ok(permit) = starting.clone().try_acquire_owned() {
            // For the next capture, so that it may start at once if processors have been idle since now.
            if let Ok(mut idle) = self.idle.try_lock() {
                *idle = Idle { measured: self.measure(), processors: 0 };
            }
            return Start { permit: Some(permit) };
        }
        tokio::select! {
            biased;
            permit = starting.acquire_owned() => Start { permit: permit.ok() },
            () = self.idle_processor() => Start { permit: None },
        }
    }

    fn starting(&self, account: AccountId) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|_, starting| Arc::strong_count(starting) > 1);
        accounts.entry(account).or_insert_with(|| Arc::new(Semaphore::new(self.processors))).clone()
    }

    /// Resolves when a processor is idle. Captures wait for their turn, so that each finds one of its own.
    async fn idle_processor(&self) {
        let mut idle = self.idle.lock().await;
        loop {
            let current = idle.measured.filter(|(at, _)| at.elapsed() < MAX_AGE);
            let Some((since, before)) = current.or_else(|| self.measure()) else { return };
            if idle.processors > 0 && since.elapsed() < INTERVAL {
                idle.processors -= 1;
                return;
            }
            idle.measured = Some((since, before));
            sleep_until(since + INTERVAL).await;
            let Some((at, now)) = self.measure() else { return };
            *idle = Idle { measured: Some((at, now)), processors: now.idle_processors(before, self.processors) };
        }
    }

    fn measure(&self) -> Option<(Instant, Usage)> {
        Some((Instant::now(), (self.read)()?))
    }
}

impl Start {
    /// Runs a capture, which counts as starting until it ends, but no longer than [`START_TIME`].
    pub(super) async fn run<T>(self, capture: impl Future<Output = T>) -> T {
        let mut capture = std::pin::pin!(capture);
        let ended = timeout(START_TIME, &mut capture).await;
        drop(self.permit);
        match ended {
            Ok(result) => result,
            Err(_) => capture.await,
        }
    }
}

impl Usage {
    /// The number of processors that were idle since `before`, rounded. All processors are assumed to be alike: in a container
    /// that may use some of them only, those of the machine count.
    fn idle_processors(self, before: Self, processors: usize) -> usize {
        let (idle, total) = (self.idle.saturating_sub(before.idle), self.total.saturating_sub(before.total));
        let processors = u64::try_from(processors).unwrap_or(u64::MAX);
        let rounded = idle.saturating_mul(2 * processors).saturating_add(total).checked_div(2 * total);
        usize::try_from(rounded.unwrap_or(0)).unwrap_or(usize::MAX)
    }
}

/// Reads the first line of `/proc/stat` (proc_stat(5)), which takes microseconds. `None` if there is none.
fn read_usage() -> Option<Usage> {
    let mut start = [0; 256];
    let length = File::open("/proc/stat").ok()?.read(&mut start).ok()?;
    parse(str::from_utf8(start.get(..length)?).ok()?)
}

/// `cpu  user nice system idle iowait irq softirq steal guest guest_nice`. Guests are part of the user's time.
fn parse(stat: &str) -> Option<Usage> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
    Some(Usage { idle: times.get(3)? + times.get(4)?, total: times.iter().sum() })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    static READS: AtomicU64 = AtomicU64::new(0);
    /// Two processors that are always busy.
    const BUSY: fn() -> Option<Usage> = || Some(Usage { idle: 0, total: READS.fetch_add(1, Ordering::Relaxed) });
    /// One of two processors is idle, in each test of its own process.
    const HALF: fn() -> Option<Usage> = || {
        let reads = READS.fetch_add(1, Ordering::Relaxed);
        Some(Usage { idle: reads * 5, total: reads * 10 })
    };

    const ACCOUNT: Option<AccountId> = Some(AccountId(uuid::Uuid::from_u128(1)));
    const OTHER: Option<AccountId> = Some(AccountId(uuid::Uuid::from_u128(2)));

    async fn waited(limit: &StartLimit) -> (Start, Duration) {
        let begun = Instant::now();
        let start = limit.wait(ACCOUNT).await;
        (start, begun.elapsed())
    }

    #[tokio::test]
    async fn captures_wait_for_busy_processors() {
        let limit = StartLimit::with(2, BUSY);
        let (first, second) = (limit.wait(ACCOUNT).await, limit.wait(ACCOUNT).await);
        let mut third = pin!(limit.wait(ACCOUNT));
        assert!(timeout(3 * INTERVAL, &mut third).await.is_err());
        // It starts when another one ends.
        first.run(async {}).await;
        let third = third.await;
        // A capture that takes longer does not delay others forever.
        let running = async { tokio::join!(second.run(pending::<()>()), third.run(pending::<()>())) };
        let others = async {
            let (_, waited) = waited(&limit).await;
            assert!(waited >= START_TIME - INTERVAL, "{waited:?}");
            (limit.wait(ACCOUNT).await, limit.wait(ACCOUNT).await)
        };
        tokio::select! { _ = running => unreachable!(), _ = others => {} }
    }

    #[tokio::test]
    async fn captures_do_not_wait_for_those_of_other_accounts() {
        let limit = StartLimit::with(2, BUSY);
        let _running = (limit.wait(ACCOUNT).await, limit.wait(ACCOUNT).await);
        let mut third = pin!(limit.wait(ACCOUNT));
        assert!(timeout(INTERVAL, &mut third).await.is_err());
        drop(limit.wait(OTHER).await);
        drop(limit.wait(None).await);
        assert_eq!(limit.accounts.lock().unwrap().len(), 2);
        limit.starting(AccountId(uuid::Uuid::nil()));
        assert_eq!(limit.accounts.lock().unwrap().len(), 2, "those that have ended are forgotten");
    }

    #[tokio::test]
    async fn captures_start_on_idle_processors() {
        let limit = StartLimit::with(2, HALF);
        let _running = (limit.wait(ACCOUNT).await, limit.wait(ACCOUNT).await);
        // One for each measurement, since each capture may need all of the idle processor.
        let ((_, first), (_, second)) = tokio::join!(waited(&limit), waited(&limit));
        assert!(first >= INTERVAL && second >= 2 * INTERVAL, "{first:?} {second:?}");
        // Without measurements, nothing waits.
        let unknown = StartLimit::with(1, || None);
        let _running = (unknown.wait(ACCOUNT).await, unknown.wait(ACCOUNT).await);
        // If a processor has been idle since the last start, nothing waits either.
        let late = StartLimit::with(1, HALF);
        let _running = late.wait(ACCOUNT).await;
        sleep_until(Instant::now() + INTERVAL).await;
        let (_, waited) = waited(&late).await;
        assert!(waited < INTERVAL, "{waited:?}");
    }

    #[test]
    fn idle_processors_are_those_of_the_system() {
        let usage = parse("cpu  10 2 3 80 5 0 1 4 2 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n").unwrap();
        assert_eq!((usage.idle, usage.total), (85, 105));
        assert!(parse("intr 1").is_none() && parse("cpu  1 2 3").is_none() && parse("").is_none());
        assert!(read_usage().unwrap().total > 0);
        let idle = |idle: u64, total: u64| {
            let (before, now) = (Usage { idle: 100, total: 900 }, Usage { idle: 100 + idle, total: 900 + total });
            now.idle_processors(before, 2)
        };
        assert_eq!([idle(0, 10), idle(2, 10), idle(3, 10), idle(10, 10), idle(0, 0)], [0, 0, 1, 2, 0]);
    }
}
