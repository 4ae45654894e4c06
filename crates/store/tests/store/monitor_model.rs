//! Property test of the scheduler's transactions: after random clock jumps, crashes between any two of them, pauses, and rounds
//! of two processes at the same time, no due time has two runs, none is lost, and each run has at most one grab.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join;
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrabId, MonitorId, RunId, TeamId};
use grabd_domain::monitor::{FileResults, MonitorChange, MonitorState, Run, RunError, RunOutcome};
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use grabd_store::monitors::{
    ChangeOutcome, Claimed, CreateMonitorOutcome, Leased, MonitorRef, MonitorUpdate, RunResult, StartRun,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::harness::{NOW, TestDb};
use crate::monitors::{new_monitor, spec, text};

const STEPS: usize = 60;
const LEASE: Duration = Duration::from_secs(30);
const HOUR_MS: i64 = 60 * 60 * 1000;
/// More rows than a case ever has.
const MAX_ROWS: u32 = 100;

/// Where a process ends before its round is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    No,
    AfterClaim,
    AfterCreate,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One or two processes do what is due.
    Round { crash: Crash, processes: usize },
    /// Open runs end: with their grabs, or without one.
    End { fails: bool },
    /// Somebody pauses the monitor, or continues it.
    Switch,
    /// Move the clock.
    Jump { ms: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let crash = prop_oneof![3 => Just(Crash::No), 1 => Just(Crash::AfterClaim), 1 => Just(Crash::AfterCreate)];
    let jump = prop_oneof![
        4 => 0..HOUR_MS,
        3 => Just(HOUR_MS),
        1 => 0..5 * HOUR_MS,
        1 => -2 * HOUR_MS..0,
        2 => Just(31_000_i64),
    ];
    let step = prop_oneof![
        6 => (crash, 1..3_usize).prop_map(|(crash, processes)| Step::Round { crash, processes }),
        3 => any::<bool>().prop_map(|fails| Step::End { fails }),
        1 => Just(Step::Switch),
        5 => jump.prop_map(|ms| Step::Jump { ms }),
    ];
    vec(step, 1..=STEPS)
}

/// A monitor, and what is known of its runs.
struct Model<'a> {
    store: &'a Store,
    target: MonitorRef,
    now: Timestamp,
    /// The latest time that the clock has shown.
    latest: Timestamp,
    /// The grab of each run that was started: an idempotency key makes it the same at each start.
    grabs: HashMap<RunId, GrabId>,
    /// How often the monitor had been continued when a run was claimed.
    epochs: HashMap<RunId, usize>,
    epoch: usize,
}

impl Model<'_> {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Round { crash, processes } => self.round(crash, processes).await,
            Step::End { fails } => self.end(fails).await,
            Step::Switch => self.switch().await,
            Step::Jump { ms } => self.now = Timestamp::from_ms(self.now.as_ms() + ms),
        }
        self.latest = self.latest.max(self.now);
        self.check().await;
    }

    /// What the scheduler does in a round, in one or two processes.
    async fn round(&mut self, crash: Crash, processes: usize) {
        let (store, now) = (self.store, self.now);
        let monitors = store.monitors();
        for run in monitors.unstarted_runs(now, MAX_ROWS).await.unwrap() {
            let lease = || monitors.lease_run(run, now, now + LEASE);
            let (one, other) = match processes {
                1 => (lease().await.unwrap(), None),
                _ => {
                    let (one, other) = join(lease(), lease()).await;
                    (one.unwrap(), other.unwrap())
                }
            };
            assert!(one.is_none() || other.is_none(), "two processes start {run}");
            match one.or(other) {
                Some(Leased::Run(start)) => self.start(&start, crash).await,
                // The monitor was paused.
                Some(Leased::Missed(_)) | None => {}
            }
        }
        for monitor in monitors.due(now, MAX_ROWS).await.unwrap() {
            if monitor != self.target.monitor {
                continue;
            }
            let claim = || monitors.claim(monitor, now, now + LEASE);
            let claimed = match processes {
                1 => [claim().await.unwrap(), None],
                _ => {
                    let (one, other) = join(claim(), claim()).await;
                    [one.unwrap(), other.unwrap()]
                }
            };
            assert!(claimed.iter().flatten().count() <= 1, "{claimed:?}");
            for claimed in claimed.into_iter().flatten() {
                match claimed {
                    Claimed::Run(start) => {
                        assert_eq!(self.epochs.insert(start.run, self.epoch), None, "a run is claimed twice");
                        if crash != Crash::AfterClaim {
                            self.start(&start, crash).await;
                        }
                    }
                    Claimed::Missed(run) => {
                        assert_eq!(self.epochs.insert(run, self.epoch), None, "a due time is missed twice");
                    }
                    Claimed::Repeated => {}
                    Claimed::NoAccess => panic!("the team is active"),
                }
            }
        }
        let monitor = monitors.find(self.target).await.unwrap().unwrap();
        if monitor.state == MonitorState::Active {
            assert!(monitor.next_run_at.unwrap() > now, "{monitor:?}");
        }
    }

    /// Creates the grab of a run, or gets it if there is one.
    async fn start(&mut self, start: &StartRun, crash: Crash) {
        let next = GrabId(Uuid::from_u128(start.run.0.as_u128() ^ 1));
        let grab = *self.grabs.entry(start.run).or_insert(next);
        if crash != Crash::AfterCreate {
            assert!(self.store.monitors().attach_grab(start.run, grab, self.now).await.unwrap());
        }
    }

    /// Ends all runs that have a grab, or those that have none, twice at the same time.
    async fn end(&mut self, fails: bool) {
        for run in self.runs().await {
            let result = match (run.grab, fails) {
                // The grabs of this test are not in the table, as if a retention had deleted them.
                (Some(_), false) => RunResult::Grab(FileResults::default()),
                (None, true) => RunResult::Failed(RunError::new("bad_request", &"It was refused.")),
                (Some(_), true) | (None, false) => continue,
            };
            let finish = || self.store.monitors().finish_run(run.id, result.clone(), self.now, text);
            let (one, other) = join(finish(), finish()).await;
            let finished = [one.unwrap(), other.unwrap()].into_iter().flatten().count();
            assert_eq!(finished, usize::from(run.outcome == RunOutcome::Running), "{run:?}");
        }
    }

    async fn switch(&mut self) {
        let monitor = self.store.monitors().find(self.target).await.unwrap().unwrap();
        let is_paused = monitor.state != MonitorState::Paused;
        self.epoch += usize::from(!is_paused);
        let change = MonitorChange { is_paused: Some(is_paused), ..MonitorChange::default() };
        let update = MonitorUpdate { target: self.target, change, secrets: None, kept_limit: 5000, now: self.now };
        let changed = self.store.monitors().change(update).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Changed(_)));
    }

    async fn runs(&self) -> Vec<Run> {
        let page = self.store.monitors().list_runs(self.target.monitor, None, MAX_ROWS).await.unwrap().unwrap();
        assert!(!page.has_more);
        page.runs
    }

    async fn check(&self) {
        let runs = self.runs().await;
        let due: HashSet<_> = runs.iter().map(|run| run.due_at).collect();
        assert_eq!(due.len(), runs.len(), "a due time has two runs");
        assert_eq!(runs.len(), self.epochs.len(), "a run is lost");
        assert!(runs.iter().filter(|run| run.outcome == RunOutcome::Running).count() <= 1, "two runs are open");
        for run in &runs {
            assert!(run.grab.is_none() || run.grab == self.grabs.get(&run.id).copied(), "{run:?}");
        }
        for pair in runs.windows(2) {
            let [newer, older] = pair else { continue };
            let is_together = self.epochs.get(&newer.id) == self.epochs.get(&older.id);
            let distance = newer.due_at.as_ms() - older.due_at.as_ms();
            // Due times are left out only after one that is recorded as missed.
            assert!(
                !is_together || distance == HOUR_MS || older.outcome == RunOutcome::Missed,
                "{newer:?} follows {older:?}"
            );
        }
    }

    /// Lets everything that is open end.
    async fn finish(&mut self) {
        self.now = self.latest + LEASE * 20;
        self.round(Crash::No, 1).await;
        self.end(false).await;
        assert!(self.runs().await.iter().all(|run| run.outcome != RunOutcome::Running));
        assert!(self.store.monitors().remove(self.target).await.unwrap());
    }
}

async fn case(store: &Store, number: u64, steps: &[Step]) {
    let id = |kind: u128| Uuid::from_u128(u128::from(number) << 64 | kind);
    let team = TeamId(id(1));
    store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
    let new = new_monitor(MonitorId(id(2)), team, spec(|spec| spec.keep = 1000));
    let CreateMonitorOutcome::Created(monitor) = store.monitors().create(new).await.unwrap() else {
        panic!("not created")
    };
    let target = MonitorRef { team, environment: Environment::Live, grant: None, monitor: monitor.id };
    let mut model =
        Model { store, target, now: NOW, latest: NOW, grabs: HashMap::new(), epochs: HashMap::new(), epoch: 0 };
    for step in steps {
        model.step(*step).await;
    }
    model.finish().await;
}

fn run(runtime: &Runtime, store: &Store, cases: u32) {
    let numbers = AtomicU64::new(1);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    TestRunner::new(config)
        .run(&steps(), |steps| {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            runtime.block_on(case(store, number, &steps));
            Ok(())
        })
        .unwrap();
}

#[test]
fn runs_match_the_model_on_sqlite() {
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(async {
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        store
    });
    run(&runtime, &store, 60);
    runtime.block_on(store.close());
}

#[test]
fn runs_match_the_model_on_postgres() {
    let runtime = Runtime::new().unwrap();
    let db = runtime.block_on(TestDb::postgres());
    run(&runtime, &db.store, 15);
    runtime.block_on(db.finish());
}
