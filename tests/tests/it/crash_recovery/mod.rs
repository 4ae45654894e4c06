//! Crash recovery: no acknowledged grab is lost and no credit is spent twice, whenever the service is killed.
//!
//! Customers keep creating grabs while the service is restarted. `customer` checks every response, `ledger` checks the
//! credits and `database` single rows all the time, and `final_check` and `messages` check everything at the end. The
//! real binary is killed at random, or at one of the `failpoints`. It is `target/debug/grabd`, which `cargo build -p
//! grabd` and every build of the workspace produce.
//!
//! Random decisions depend on a seed that each run prints. `GRABD_TEST_SEED` repeats them, as far as timing allows.
//! Runs in the test suite are short. `GRABD_TEST_LIVES` sets the number of restarts of each of the two random tests for
//! a longer run, which exceeds the time limit of the suite's runner:
//!
//! ```text
//! GRABD_TEST_LIVES=100 cargo test -p grabd-tests --test it -- --nocapture crash_recovery
//! ```

mod crash_test;
mod customer;
mod database;
mod failpoints;
mod final_check;
mod ledger;
mod messages;
mod random;
pub(crate) mod service;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crash_test::CrashTest;
use customer::Page;
use database::TestDatabase;
use failpoints::{FAILPOINTS, pairs, run_until_failpoint};
use random::Rng;
use service::{ServiceProcess, StartResult, fired};

/// Time limit of a run, and the addition to it per restart beyond [`RESTARTS`].
const LIMIT: Duration = Duration::from_secs(115);
const PER_FURTHER_RESTART: Duration = Duration::from_secs(12);
/// Restarts of a random run, unless `GRABD_TEST_LIVES` is set.
const RESTARTS: u32 = 5;
/// Time share of each restart. On a slow machine, the remaining restarts are skipped.
const SHARE: Duration = Duration::from_secs(4);
/// Time after which a service is killed even if too few grabs have ended.
const KILL_AFTER: Duration = Duration::from_secs(3);
/// Concurrent customers and captures, and the number of open grabs before the service is killed.
const CUSTOMERS: usize = 20;
const SLOTS: u32 = 4;
const IN_FLIGHT: i64 = 16;
/// Customers and captures in tests in which the failpoint matters and not the load. Each slot has a browser, which takes
/// longer to start than the service.
const FEW: usize = 4;
const FEW_SLOTS: u32 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn grabs_survive_kills_at_random_moments() -> Result<()> {
    let length = RunLength::from_env()?;
    let mut rng = Rng::from_env()?;
    // Three teams that can pay for everything, and three whose credits run out.
    let rich = 2000 + 200 * length.restarts;
    let test = CrashTest::new(&[rich, rich, rich, 150, 40, 5], SLOTS).await?;
    let mut moments = rng.fork();
    let restarts = async |test: &CrashTest| {
        for number in 0..length.restarts {
            if length.is_over(test, number) {
                break;
            }
            let service = test.start("").await?;
            in_flight(test).await?;
            let ends = usize::try_from(moments.next() % 20)?;
            // A timeout is fine on a slow machine: the moment is random anyway.
            let _ = timeout(KILL_AFTER, test.wait_for_ended_grabs(ends)).await;
            // Kill at a random moment.
            sleep(moments.ms(0..200)).await;
            test.kill(service).await?;
        }
        Ok(())
    };
    run(&test, length.limit, CUSTOMERS, rng, restarts).await?;
    // Every lost attempt was in progress when the service was killed, or was released.
    let database = TestDatabase::open(&test.dirs).await?;
    let lost = database.lost_attempts().await?;
    let most = i64::from(length.restarts * SLOTS)
        + i64::try_from(test.count_log_lines("a grab was requeued because its attempt did not finish"))?;
    println!("{lost} attempts were lost");
    ensure!(lost <= most, "{lost} attempts were lost, at most {most} may have been");
    database.close().await
}

/// The length of a random run.
struct RunLength {
    restarts: u32,
    limit: Duration,
}

impl RunLength {
    fn from_env() -> Result<Self> {
        let restarts = match std::env::var_os("GRABD_TEST_LIVES") {
            Some(restarts) => restarts.to_string_lossy().parse().context("GRABD_TEST_LIVES")?,
            None => RESTARTS,
        };
        Ok(Self { restarts, limit: LIMIT + PER_FURTHER_RESTART * restarts.saturating_sub(RESTARTS) })
    }

    /// Whether there is no time for another restart.
    fn is_over(&self, test: &CrashTest, number: u32) -> bool {
        let is_over = test.age() > SHARE * self.restarts;
        if is_over {
            println!("{} {number} restarts instead of {}", test.clock(), self.restarts);
        }
        is_over
    }
}

/// Waits until [`IN_FLIGHT`] grabs are open.
async fn in_flight(test: &CrashTest) -> Result<()> {
    let database = TestDatabase::open(&test.dirs).await?;
    let enough = async {
        let mut look = interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let open = database.open_grabs().await?;
            if open >= IN_FLIGHT {
                return Ok::<_, anyhow::Error>(open);
            }
        }
    };
    let open = timeout(LIMIT, enough).await.context("too few grabs are in flight")??;
    println!("{} {open} grabs are in flight", test.clock());
    database.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn grabs_survive_each_failpoint() -> Result<()> {
    let test = CrashTest::new(&[5000, 5000], FEW_SLOTS).await?;
    let restarts = async |test: &CrashTest| {
        for step in FAILPOINTS {
            run_until_failpoint(test, step).await.with_context(|| step)?;
        }
        Ok(())
    };
    run(&test, LIMIT, FEW, Rng::from_env()?, restarts).await
}

#[tokio::test(flavor = "multi_thread")]
async fn grabs_survive_two_faults() -> Result<()> {
    let length = RunLength::from_env()?;
    let mut rng = Rng::from_env()?;
    let pairs = pairs(&mut rng);
    let test = CrashTest::new(&[5000, 5000], FEW_SLOTS).await?;
    // A grab that has met the first fault must also reach the failpoint of the second.
    test.pages_refuse.store(false, Ordering::SeqCst);
    let restarts = async |test: &CrashTest| {
        for (number, pair) in (0..length.restarts).zip(pairs.iter().cycle()) {
            if length.is_over(test, number) {
                break;
            }
            run_until_failpoint(test, pair).await.with_context(|| pair.clone())?;
            // Grabs left over from earlier restarts have few attempts left, and the first fault of the next pair could
            // use up the last one. Then the grab would never reach the second failpoint.
            let service = test.start("").await?;
            test.wait_for_ended_grabs(FEW).await?;
            test.stop(service).await?;
        }
        Ok(())
    };
    run(&test, length.limit, FEW, rng, restarts).await
}

#[tokio::test(flavor = "multi_thread")]
async fn grab_fails_uncharged_when_every_attempt_crashes() -> Result<()> {
    let test = CrashTest::new(&[1], FEW_SLOTS).await?;
    let (team, page) = (&test.teams[0], Page::Colour([1, 2, 3], 0));
    let service = test.start("stored=abort").await?;
    let id = test.asynchronous(team, &page, "given-up").await?;
    test.wait_for_abort(service).await?;
    for _ in 0..2 {
        match test.try_start("stored=abort").await? {
            StartResult::Running(service) => test.wait_for_abort(*service).await?,
            StartResult::Exited(log) => ensure!(fired(&log) == 1, "the service did not start: {log:?}"),
        }
    }
    // Three images are stored, none of which belongs to a grab.
    let service = test.start("").await?;
    timeout(LIMIT, test.follow(team, &id, &page)).await.context("the grab did not end")??;
    ensure!(test.credits(team).await? == (1, 0), "a lost attempt was charged: {:?}", test.credits(team).await?);
    test.check_final_state(service).await
}

#[tokio::test(flavor = "multi_thread")]
async fn image_stored_after_collection_is_deleted() -> Result<()> {
    // The lease is lost before the page is rendered, and the report is delayed until the images of the lost attempt
    // have been collected. The image that it then stores must be collected too.
    let test = CrashTest::new(&[1], FEW_SLOTS).await?;
    let service = test.start("assigned=lose>rendered=14000").await?;
    let (team, page) = (&test.teams[0], Page::Colour([1, 2, 3], 0));
    let id = test.asynchronous(team, &page, "late").await?;
    let collected = async {
        test.follow(team, &id, &page).await?;
        let database = TestDatabase::open(&test.dirs).await?;
        database.make_everything_due().await?;
        database.wait_for_scheduled_work().await?;
        database.close().await
    };
    let late = async { tokio::try_join!(collected, test.wait_for_stored_images(2)) };
    timeout(LIMIT, late).await.context("the image was not stored")??;
    test.check_final_state(service).await
}

#[tokio::test(flavor = "multi_thread")]
async fn report_after_lease_expiry_is_ignored() -> Result<()> {
    // The first attempt is refused by the page. Its report is delayed until the sweep has expired the lease and the
    // second attempt has begun. The report must be ignored, or the grab would fail.
    let test = CrashTest::new(&[1], FEW_SLOTS).await?;
    let service = test.start("rendered=36500").await?;
    let team = &test.teams[0];
    let outlived = async {
        let id = test.asynchronous(team, &Page::RefusesOnce("late".into()), "late").await?;
        test.follow(team, &id, &Page::RefusesOnce("late".into())).await
    };
    timeout(LIMIT, outlived).await.context("the grab did not end")??;
    test.check_final_state(service).await
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_reported_under_a_lost_lease_is_ignored() -> Result<()> {
    let test = CrashTest::new(&[1], FEW_SLOTS).await?;
    let service = test.start("rendered=lose").await?;
    let team = &test.teams[0];
    let page = Page::RefusesOnce("lost".into());
    let id = test.asynchronous(team, &page, "lost").await?;
    timeout(LIMIT, test.follow(team, &id, &page)).await.context("the grab did not end")??;
    test.check_final_state(service).await
}

/// Customers create grabs during the restarts. Then the service is started once more, finishes all grabs, and
/// everything is checked.
async fn run(
    test: &CrashTest,
    limit: Duration,
    customers: usize,
    mut rng: Rng,
    restarts: impl AsyncFnOnce(&CrashTest) -> Result<()>,
) -> Result<()> {
    let stop = CancellationToken::new();
    let customers = (0..customers).map(|_| test.customer(rng.fork(), &stop)).collect::<Vec<_>>();
    let asking = async {
        tokio::select! {
            finished = try_join_all(customers) => finished.map(drop),
            broken = test.watch_ledger() => broken,
            broken = test.watch_database() => broken,
        }
    };
    let restarting = async {
        restarts(test).await?;
        let last = test.start("").await?;
        stop.cancel();
        Ok::<ServiceProcess, anyhow::Error>(last)
    };
    let whole = async {
        let ((), last) = tokio::try_join!(asking, restarting)?;
        println!("{} all customers have finished", test.clock());
        test.check_final_state(last).await
    };
    let outcome = timeout(limit, whole).await.context("the run did not end in time").flatten();
    if outcome.is_err() {
        test.print_logs();
    }
    outcome
}
