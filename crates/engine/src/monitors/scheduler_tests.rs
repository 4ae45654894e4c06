//! The scheduler over a real database: due times, crashes at each step, and two processes. Monitors of test keys need no renderer.
//! The loop of each core does rounds as well.

use futures::future::join;
use grabd_domain::Timestamp;
use grabd_domain::address::Policy;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::idempotency::LIFE;
use grabd_domain::ids::{KeyId, MonitorId, TeamId};
use grabd_domain::monitor::{Monitor, MonitorRequest, Run, RunOutcome};
use grabd_egress::Guard;
use grabd_images::Images;
use grabd_memory::MemoryBudget;
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use tokio::time::timeout;
use uuid::Uuid;

use super::*;
use crate::clock::Clock;
use crate::grabs::{self, ListRequest};
use crate::monitors::{self, MonitorLimits};
use crate::oauth;
use crate::outgoing::OutgoingClient;
use crate::placeholder::Placeholder;
use crate::pricing::Pricing;
use crate::vault::Vault;
use crate::webhooks::Webhooks;
use crate::{Failpoints, Operations, Parts, Retention, Settings};

const TEAM: TeamId = TeamId(Uuid::from_u128(1));
const CALLER: Caller =
    Caller { team: TEAM, environment: Environment::Test, principal: Principal::Key(KeyId(Uuid::from_u128(2))) };
const HOUR: Duration = Duration::from_secs(60 * 60);
/// The longest delay of a run of an hourly monitor.
const DELAY: Duration = Duration::from_secs(5 * 60);

struct TestCore {
    core: Core,
    clock: Clock,
    _images: tempfile::TempDir,
}

async fn store() -> Store {
    let store = Store::open("sqlite::memory:").await.unwrap();
    store.migrate().await.unwrap();
    store
        .accounts()
        .create_team(NewTeam { id: TEAM, name: "A team".into(), now: Timestamp::from_ms(0) })
        .await
        .unwrap();
    store
}

/// A core on this database, with these failpoints.
async fn start(store: &Store, clock: &Clock, failpoints: &str) -> TestCore {
    let images = tempfile::tempdir().unwrap();
    let parts = Parts {
        store: store.clone(),
        images: Images::local(images.path().to_owned()).unwrap(),
        memory: MemoryBudget::new(64 << 20),
        guard: Guard::new(grabd_egress::Options { policy: Policy::default(), ..Default::default() }).unwrap(),
        outgoing: OutgoingClient::new(b"").unwrap(),
        mail: None,
        clock: clock.clone(),
        pricing: Pricing::embedded(),
        placeholder: Placeholder::new(1 << 20, MemoryBudget::new(64 << 20)),
        vault: Vault::new([7; 32]),
        webhooks: Webhooks::new(false),
        stripe: None,
        settings: settings(),
        cluster: None,
        failpoints: Failpoints::parse(failpoints).unwrap(),
    };
    TestCore { core: Core::start(parts).await.unwrap(), clock: clock.clone(), _images: images }
}

fn settings() -> Settings {
    Settings {
        public_url: "https://grabd.example".into(),
        requests_per_minute: 60,
        async_queue: 50,
        abuse: crate::admission::Settings {
            has_strangers: true,
            failed_seconds_per_minute: 60,
            failed_seconds_per_minute_unpaid: 20,
            paid_slots_percent: 25,
        },
        image_max_bytes: 32 << 20,
        direct_uploads: false,
        operations: Operations {
            monitors: MonitorLimits { per_team: 3, ..MonitorLimits::default() },
            ..Operations::default()
        },
        top_up: String::new(),
        sign_up: false,
        trial_credits: 0,
        oauth: oauth::Settings {
            issuer: "https://grabd.example".into(),
            origin: String::new(),
            mcp_url: "https://grabd.example/mcp".into(),
            base_url: "https://grabd.example/v1".into(),
            web_base_url: "https://grabd.example/v1".into(),
            refresh_reuse_grace_s: 30,
            registrations_per_hour: 20,
            unused_clients: 1000,
        },
        retention: Retention::default(),
    }
}

fn clock() -> Clock {
    Clock::manual(Timestamp::from_ms(1_800_000_000_000))
}

/// An address that needs no name to be resolved.
fn request() -> MonitorRequest {
    let capture = CaptureRequest { url: Some("https://93.184.215.14/".into()), ..CaptureRequest::default() };
    MonitorRequest { capture: Some(capture), every: Some("1h".into()), ..MonitorRequest::default() }
}

impl TestCore {
    async fn create(&self) -> Monitor {
        monitors::create(&self.core, CALLER, &request()).await.unwrap()
    }

    /// Oldest first.
    async fn runs(&self, monitor: MonitorId) -> Vec<Run> {
        let page = monitors::list_runs(&self.core, CALLER, monitor, &monitors::ListRequest::default()).await.unwrap();
        page.runs.into_iter().rev().collect()
    }

    async fn outcomes(&self, monitor: MonitorId) -> Vec<RunOutcome> {
        self.runs(monitor).await.iter().map(|run| run.outcome).collect()
    }

    async fn grabs(&self) -> usize {
        grabs::list(&self.core, CALLER, &ListRequest::default()).await.unwrap().grabs.len()
    }
}

/// Does rounds, some of which may fail, until each of the monitors has run and is not due. The clock moves by less than the
/// shortest interval.
async fn settle(cores: &[&TestCore], monitors: &[MonitorId]) {
    for core in cores.iter().cycle().take(8) {
        // An injected error.
        let _ = round(&core.core).await;
        core.clock.advance(START_LEASE + Duration::from_secs(1));
    }
    // The loop of a core may have begun a run.
    let settled = async {
        for core in cores.iter().cycle() {
            let _ = round(&core.core).await;
            let mut is_open = false;
            for monitor in monitors {
                let shown = monitors::get(&core.core, CALLER, *monitor).await.unwrap();
                let is_due = shown.next_run_at.is_none_or(|at| at <= core.clock.now());
                is_open |= is_due || shown.last_run.is_none_or(|run| run.outcome == RunOutcome::Running);
            }
            if !is_open {
                break;
            }
            core.clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), settled).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn monitor_runs_at_its_due_times() {
    let (store, clock) = (store().await, clock());
    let test = start(&store, &clock, "").await;
    let monitor = test.create().await;
    settle(&[&test], &[monitor.id]).await;
    assert_eq!(test.outcomes(monitor.id).await, [RunOutcome::First]);
    clock.advance(HOUR + DELAY);
    settle(&[&test], &[monitor.id]).await;
    // Placeholders of equal requests are equal.
    assert_eq!(test.outcomes(monitor.id).await, [RunOutcome::First, RunOutcome::Same]);
    let runs = test.runs(monitor.id).await;
    assert_eq!((runs[1].compared_to, runs[1].difference_ppm), (runs[0].grab, Some(0)));
    let later = runs[1].due_at.since(runs[0].due_at + HOUR);
    assert!(runs[1].due_at >= runs[0].due_at + HOUR && later <= DELAY, "{later:?}");
    // Three due times have passed, of which one is recorded.
    clock.advance(HOUR * 3);
    settle(&[&test], &[monitor.id]).await;
    assert_eq!(test.outcomes(monitor.id).await, [RunOutcome::First, RunOutcome::Same, RunOutcome::Missed]);
    assert_eq!(test.grabs().await, 2);
    let shown = monitors::get(&test.core, CALLER, monitor.id).await.unwrap();
    assert!(shown.next_run_at.unwrap() > clock.now());
    assert_eq!(shown.last_run.unwrap().outcome, RunOutcome::Missed);
    test.core.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_at_any_step_makes_one_run_with_one_grab() {
    for step in ["run_claimed", "run_created", "run_ended", "run_finished"] {
        let (store, clock) = (store().await, clock());
        let test = start(&store, &clock, &format!("{step}=error")).await;
        let monitor = test.create().await;
        settle(&[&test], &[monitor.id]).await;
        assert_eq!(test.outcomes(monitor.id).await, [RunOutcome::First], "{step}");
        assert_eq!(test.grabs().await, 1, "{step}");
        let shown = monitors::get(&test.core, CALLER, monitor.id).await.unwrap();
        assert_eq!(shown.baseline, test.runs(monitor.id).await[0].grab, "{step}");
        test.core.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn start_that_is_repeated_after_its_idempotency_key_has_expired_makes_no_second_grab() {
    let (store, clock) = (store().await, clock());
    let test = start(&store, &clock, "run_created=error").await;
    let monitor = test.create().await;
    let begun = async {
        while test.grabs().await == 0 {
            let _ = round(&test.core).await;
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), begun).await.unwrap();
    clock.advance(LIFE + HOUR);
    let ended = async {
        loop {
            let _ = round(&test.core).await;
            let outcomes = test.outcomes(monitor.id).await;
            if outcomes.len() > 1 && !outcomes.contains(&RunOutcome::Running) {
                break outcomes;
            }
            tokio::task::yield_now().await;
        }
    };
    let outcomes = timeout(Duration::from_secs(30), ended).await.unwrap();
    assert_eq!(outcomes, [RunOutcome::Failed, RunOutcome::Missed]);
    assert_eq!(test.grabs().await, 1);
    test.core.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_make_one_run_for_each_due_time() {
    let (store, clock) = (store().await, clock());
    let (one, other) = (start(&store, &clock, "").await, start(&store, &clock, "").await);
    let mut created = Vec::new();
    for _ in 0..3 {
        created.push(one.create().await.id);
    }
    for hours in 0..3 {
        let (first, second) = join(round(&one.core), round(&other.core)).await;
        first.unwrap();
        second.unwrap();
        settle(&[&one, &other], &created).await;
        for monitor in &created {
            assert_eq!(one.runs(*monitor).await.len(), hours + 1);
        }
        clock.advance(HOUR + DELAY);
    }
    assert_eq!(one.grabs().await, 9);
    one.core.stop().await;
    other.core.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn team_has_at_most_the_configured_number_and_monitors_of_others_are_not_found() {
    let (store, clock) = (store().await, clock());
    let test = start(&store, &clock, "").await;
    let monitor = test.create().await;
    for _ in 0..2 {
        test.create().await;
    }
    let refused = monitors::create(&test.core, CALLER, &request()).await.unwrap_err().into_fault().to_string();
    assert!(refused.starts_with("`monitors` must be at most 3 for the team"), "{refused}");
    let other = Caller { environment: Environment::Live, ..CALLER };
    let missing = monitors::get(&test.core, other, monitor.id).await.unwrap_err().into_fault().to_string();
    assert!(missing.contains("No monitor with that id"), "{missing}");
    monitors::remove(&test.core, CALLER, monitor.id).await.unwrap();
    test.create().await;
    test.core.stop().await;
}
