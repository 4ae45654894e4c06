use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use grabd_domain::accounts::Email;
use grabd_domain::address::Policy;
use grabd_domain::admission::Payer;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, Failure, FailureReason, ImageKey, RenderMetadata, State};
use grabd_domain::ids::{GrabId, LeaseToken, TeamId, UserId};
use grabd_domain::limits::{ASYNC_DEADLINE, LEASE_MARGIN};
use grabd_domain::team_limits::LimitChange;
use grabd_egress::Guard;
use grabd_images::Images;
use grabd_memory::MemoryBudget;
use grabd_store::Store;
use grabd_store::accounts::{InitialTeam, NewTeam, NewUser};
use grabd_store::credits::Grant;
use grabd_store::grabs::{Completion, Created, FailGrab, FailureSource, NewGrab, NewPlaceholder};
use uuid::Uuid;

use super::*;
use crate::clock::Clock;
use crate::mail::{Server, Smtp};
use crate::oauth;
use crate::outgoing::OutgoingClient;
use crate::placeholder::Placeholder;
use crate::pricing::Pricing;
use crate::vault::Vault;
use crate::webhooks::Webhooks;
use crate::{Failpoints, Parts, Retention, Settings};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time limit of storing an image.
const LIMIT: Duration = Duration::from_secs(10);
const TEAM: TeamId = TeamId(Uuid::from_u128(1));

struct TestCore {
    core: Core,
    clock: Clock,
    images: tempfile::TempDir,
}

/// A core whose clock is `behind` that of the database, with a team.
async fn start(behind: Duration, retention: Retention) -> TestCore {
    start_with(behind, retention, None).await
}

/// The same with a mail server, or without.
async fn start_with(behind: Duration, retention: Retention, mail: Option<Smtp>) -> TestCore {
    let store = Store::open("sqlite::memory:").await.unwrap();
    store.migrate().await.unwrap();
    let clock = Clock::manual(store.retention().database_time().await.unwrap() - behind);
    let images = tempfile::tempdir().unwrap();
    let parts = Parts {
        store: store.clone(),
        images: Images::local(images.path().to_owned()).unwrap(),
        memory: MemoryBudget::new(64 << 20),
        guard: Guard::new(grabd_egress::Options { policy: Policy::default(), ..Default::default() }).unwrap(),
        outgoing: OutgoingClient::new(b"").unwrap(),
        mail,
        clock: clock.clone(),
        pricing: Pricing::embedded(),
        placeholder: Placeholder::new(1 << 20, MemoryBudget::new(64 << 20)),
        vault: Vault::new([7; 32]),
        webhooks: Webhooks::new(false),
        stripe: None,
        settings: Settings {
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
            operations: crate::Operations::default(),
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
            retention,
        },
        cluster: None,
        failpoints: Failpoints::default(),
    };
    let core = Core::start(parts).await.unwrap();
    store.accounts().create_team(NewTeam { id: TEAM, name: "A team".into(), now: clock.now() }).await.unwrap();
    TestCore { core, clock, images }
}

impl TestCore {
    async fn end(self) {
        self.core.stop().await;
    }

    /// Grants credits that expire at a time.
    async fn subscribe(&self, expires_at: Timestamp) {
        let (kind, now) = (LotKind::Subscription, self.clock.now());
        let source_ref = "a payment".to_owned();
        let grant = Grant { team: TEAM, kind, credits: 5, expires_at: Some(expires_at), source_ref, now };
        self.core.store.credits().grant(grant).await.unwrap();
    }

    async fn remaining(&self) -> u32 {
        self.core.store.credits().lots(TEAM).await.unwrap().iter().map(|lot| lot.remaining).sum()
    }

    /// Creates this many test grabs that end now.
    async fn create_test_grabs(&self, count: u128) {
        self.create_test_grabs_of(TEAM, 0..count).await;
    }

    /// The same for a team, with these ids.
    async fn create_test_grabs_of(&self, team: TeamId, ids: Range<u128>) {
        let spec = spec(None);
        for number in ids {
            let id = GrabId(Uuid::from_u128(number));
            let now = self.clock.now();
            let image = Some(ImageKey::new(number, "png"));
            let metadata = RenderMetadata::default();
            let outcome = State::Done { finished_at: now, image, size_bytes: 1, execution_ms: 1, metadata };
            let new = NewPlaceholder {
                id,
                team,
                creator: None,
                spec: spec.clone(),
                now,
                outcome,
                idempotency: None,
                fingerprint: None,
                ceiling: None,
            };
            self.core.store.grabs().create_placeholder(new).await.unwrap();
        }
    }

    /// Creates a live grab that fails now.
    async fn fail_live_grab(&self, team: TeamId, id: GrabId, spec: CaptureSpec) {
        let (store, now) = (&self.core.store, self.clock.now());
        let grant =
            Grant { team, kind: LotKind::Prepaid, credits: 1, expires_at: None, source_ref: format!("for {id}"), now };
        store.credits().grant(grant).await.unwrap();
        let new = NewGrab {
            id,
            team,
            payer: Payer::of_team(team),
            creator: None,
            class: Class::Async,
            spec,
            secrets: None,
            now,
            deadline_at: now + ASYNC_DEADLINE,
            async_limit: 50,
            lease: None,
            wait: None,
            idempotency: None,
            fingerprint: None,
            ceiling: None,
        };
        assert_eq!(store.grabs().create(new).await.unwrap(), Created::Pending);
        let failure = Failure::new(FailureReason::RenderFailed, "A test.");
        let (source, metadata) = (FailureSource::Cancel, RenderMetadata::default());
        store.grabs().fail(FailGrab { grab: id, source, failure, metadata, now }).await.unwrap().unwrap();
    }

    async fn test_grabs(&self) -> usize {
        let ids: Vec<_> = (0..3000).map(|number| GrabId(Uuid::from_u128(number))).collect();
        self.core.store.grabs().find_grabs(&ids).await.unwrap().len()
    }
}

fn spec(script: Option<String>) -> CaptureSpec {
    let request = CaptureRequest { url: Some("https://example.com/".to_owned()), script, ..CaptureRequest::default() };
    CaptureSpec::parse(&request).unwrap()
}

#[tokio::test]
async fn nothing_expires_after_a_jump_that_the_database_does_not_confirm() {
    let test = start(Duration::ZERO, Retention { test_grabs: Some(DAY), ..Retention::default() }).await;
    let mut clock = ClockCheck::new(test.clock.now(), Instant::now());
    clean_up(&test.core, &mut clock).await;
    assert!(clock.is_confirmed());
    test.subscribe(test.clock.now() + DAY).await;
    test.create_test_grabs(1).await;

    test.clock.advance(DAY * 2);
    let jumped = Instant::now();
    assert!(!clock.is_trusted(test.clock.now(), jumped));
    test.clock.advance(LEASE_MARGIN);
    assert!(clock.is_trusted(test.clock.now(), jumped + LEASE_MARGIN));
    clean_up(&test.core, &mut clock).await;
    assert_eq!((test.remaining().await, test.test_grabs().await), (5, 1));
    test.end().await;
}

#[tokio::test]
async fn expiry_continues_after_a_jump_that_the_database_confirms() {
    let test = start(DAY * 2, Retention { test_grabs: Some(DAY), ..Retention::default() }).await;
    test.subscribe(test.clock.now() + DAY).await;
    test.create_test_grabs(1).await;
    let mut clock = ClockCheck::new(test.clock.now(), Instant::now());
    clean_up(&test.core, &mut clock).await;
    assert!(!clock.is_confirmed(), "the clock is wrong at the start");
    assert_eq!((test.remaining().await, test.test_grabs().await), (5, 1));

    test.clock.advance(DAY * 2);
    let jumped = Instant::now();
    assert!(!clock.is_trusted(test.clock.now(), jumped));
    test.clock.advance(LEASE_MARGIN);
    assert!(clock.is_trusted(test.clock.now(), jumped + LEASE_MARGIN));
    clean_up(&test.core, &mut clock).await;
    assert_eq!((test.remaining().await, test.test_grabs().await), (0, 0));
    test.end().await;
}

#[tokio::test]
async fn purge_ends_when_its_time_is_over_and_continues_later() {
    let test = start(Duration::ZERO, Retention { test_grabs: Some(Duration::ZERO), ..Retention::default() }).await;
    test.create_test_grabs(u128::from(retention::GRABS + 3)).await;
    let now = test.clock.now() + Duration::from_secs(1);
    for left in [3, 0] {
        retention::run(&test.core, now, Duration::ZERO).await;
        assert_eq!(test.test_grabs().await, left);
    }
    test.end().await;
}

#[tokio::test]
async fn purge_repeats_full_batches_until_its_time_is_over() {
    for (time, expected) in [(TIME, 3), (Duration::ZERO, 1)] {
        let batches = AtomicU64::new(0);
        let batch = async || match batches.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Ok(u64::from(PURGE)),
            _ => Ok(0),
        };
        purge(time, batch).await.unwrap();
        assert_eq!(batches.into_inner(), expected);
    }
}

#[tokio::test]
async fn grabs_are_purged_after_the_retention_of_their_team() {
    let test = start(Duration::ZERO, Retention { test_grabs: Some(DAY * 7), ..Retention::default() }).await;
    let teams = [2, 3, 4].map(|id| TeamId(Uuid::from_u128(id)));
    for id in teams {
        let now = test.clock.now();
        test.core.store.accounts().create_team(NewTeam { id, name: "A team".into(), now }).await.unwrap();
    }
    // Two grabs of each team: 10.. of the usual one, 20.. of the one with a day, and so on.
    for (at, team) in [TEAM, teams[0], teams[1], teams[2]].into_iter().enumerate() {
        let first = 10 * (at as u128 + 1);
        test.create_test_grabs_of(team, first..first + 2).await;
    }
    let ended = test.clock.now();
    let set = async |team, change: &str| {
        let change = LimitChange::parse(change).or_else(|_| LimitChange::reset(change)).unwrap();
        test.core.store.limits().change_team_limits(team, vec![change], ended).await.unwrap();
        test.core.limits.refresh(&test.core.store).await.unwrap();
    };
    let left = async |now: Timestamp| {
        retention::run(&test.core, now, TIME).await;
        let ids: Vec<_> = (0..99).map(|number| GrabId(Uuid::from_u128(number))).collect();
        let found = test.core.store.grabs().find_grabs(&ids).await.unwrap();
        let mut numbers: Vec<u128> = found.iter().map(|grab| grab.id.0.as_u128()).collect();
        numbers.sort_unstable();
        numbers
    };
    for (team, change) in teams.into_iter().zip(["test_grabs_days=1", "test_grabs_days=0", "test_grabs_days=20"]) {
        set(team, change).await;
    }
    assert_eq!(left(ended + DAY).await, [10, 11, 20, 21, 30, 31, 40, 41]);
    let moment = Duration::from_millis(1);
    assert_eq!(left(ended + DAY + moment).await, [10, 11, 30, 31, 40, 41]);
    assert_eq!(left(ended + DAY * 7 + moment).await, [30, 31, 40, 41]);
    assert_eq!(left(ended + DAY * 20 + moment).await, [30, 31]);
    // The oldest ones were passed already: a changed limit examines them again.
    set(teams[1], "test_grabs_days=100").await;
    assert_eq!(left(ended + DAY * 21).await, [30, 31]);
    set(teams[1], "test_grabs_days").await;
    assert_eq!(left(ended + DAY * 21).await, [0; 0], "the setting applies again");
    test.end().await;
}

#[tokio::test]
async fn failed_grabs_are_purged_after_the_retention_of_their_team() {
    let test = start(Duration::ZERO, Retention { failed_grabs: Some(DAY * 30), ..Retention::default() }).await;
    let (other, ended) = (TeamId(Uuid::from_u128(2)), test.clock.now());
    test.core.store.accounts().create_team(NewTeam { id: other, name: "A team".into(), now: ended }).await.unwrap();
    let ids = [1, 2].map(|number| GrabId(Uuid::from_u128(number)));
    for (id, team) in ids.into_iter().zip([TEAM, other]) {
        test.fail_live_grab(team, id, spec(None)).await;
    }
    test.create_test_grabs_of(TEAM, 3..4).await;
    let change = LimitChange::parse("failed_grabs_days=0").unwrap();
    test.core.store.limits().change_team_limits(other, vec![change], ended).await.unwrap();
    test.core.limits.refresh(&test.core.store).await.unwrap();
    let left = async |after: Duration| {
        retention::run(&test.core, ended + after, TIME).await;
        test.test_grabs().await
    };
    assert_eq!(left(DAY * 30).await, 3);
    assert_eq!(left(DAY * 30 + Duration::from_millis(1)).await, 2);
    assert_eq!(left(DAY * 300).await, 2);
    assert_eq!(test.core.store.grabs().find_grabs(&ids).await.unwrap()[0].team, other);
    test.end().await;
}

#[tokio::test]
async fn long_options_are_kept_for_a_day_after_the_last_possible_end() {
    let test = start(Duration::ZERO, Retention::default()).await;
    let created = test.clock.now();
    let id = GrabId(Uuid::from_u128(u128::try_from(created.as_ms()).unwrap() << 80));
    test.fail_live_grab(TEAM, id, spec(Some("x".repeat(999)))).await;
    let is_kept = async |after: Duration| {
        shorten::run(&test.core, created + after).await.unwrap();
        test.core.store.grabs().find_grabs(&[id]).await.unwrap()[0].spec.changes.script.is_some()
    };
    assert!(is_kept(DAY + ASYNC_DEADLINE).await);
    assert!(!is_kept(DAY + ASYNC_DEADLINE + Duration::from_secs(61)).await);
    test.end().await;
}

#[tokio::test]
async fn unverified_accounts_expire_only_with_a_mail_server_and_a_retention() {
    let url = "smtp://127.0.0.1:9";
    let smtp = || {
        let server = Server { url, from: "grabd <grabd@example.com>", extra_roots: b"", own_host: "localhost" };
        Smtp::new(server).unwrap()
    };
    let month = Some(DAY * 30);
    for (mail, unverified, expires) in [(Some(smtp()), month, true), (None, month, false), (Some(smtp()), None, false)]
    {
        let retention = Retention { unverified, ..Retention::default() };
        let test = start_with(Duration::ZERO, retention, mail).await;
        let (id, now) = (UserId(Uuid::from_u128(7)), test.clock.now());
        let initial_team = InitialTeam::New(TeamId(Uuid::from_u128(8)), "A team".into());
        let email = Email::parse("eve@example.com").unwrap();
        let user = NewUser { id, email, password_hash: "x".into(), initial_team, verified: false, now };
        test.core.store.accounts().create_user(user).await.unwrap();
        let exists = async || test.core.store.accounts().find_user_by_id(id).await.unwrap().is_some();
        expiry::run(&test.core, now + DAY * 30).await.unwrap();
        assert!(exists().await, "it is not old enough");
        // The next round over all accounts begins an hour later.
        expiry::run(&test.core, now + DAY * 30 + Duration::from_secs(60 * 60)).await.unwrap();
        assert_eq!(exists().await, !expires);
        if expires {
            erasure::run(&test.core).await.unwrap();
            assert_eq!(test.core.store.retention().list_erasures().await.unwrap(), []);
        }
        test.end().await;
    }
}

#[tokio::test]
async fn image_that_cannot_be_deleted_delays_no_other() {
    let test = start(Duration::ZERO, Retention::default()).await;
    // A directory in place of a file cannot be removed as one.
    let (undeletable, file) = (ImageKey::new(1, "png"), ImageKey::new(2, "png"));
    std::fs::create_dir_all(test.images.path().join(undeletable.path())).unwrap();
    test.core.grabs.images.put(&file, Bytes::from_static(b"x"), LIMIT).await.unwrap();
    for key in [&undeletable, &file] {
        // The result of a lost attempt schedules its image for deletion.
        let completion = Completion {
            grab: GrabId(Uuid::from_u128(1)),
            token: LeaseToken(Uuid::from_u128(1)),
            upload_key: key.clone(),
            size_bytes: 1,
            execution_ms: 1,
            metadata: RenderMetadata::default(),
            now: test.clock.now(),
        };
        assert!(test.core.store.grabs().complete(completion).await.unwrap().is_none());
    }
    let mut clock = ClockCheck::new(test.clock.now(), Instant::now());
    clean_up(&test.core, &mut clock).await;
    assert_eq!(test.core.grabs.images.image(&file).size().await.unwrap(), None);
    assert_eq!(test.core.store.rows_set_aside().get("images"), Some(&1));
    test.end().await;
}

#[tokio::test]
async fn failed_step_does_not_prevent_the_next_one() {
    let test = start(Duration::ZERO, Retention::default()).await;
    let mut ran = false;
    step(&test.core, "one", async { Err(Error::Overloaded) }).await;
    step(&test.core, "two", async {
        ran = true;
        Ok(())
    })
    .await;
    assert!(ran);
    let mut registry = prometheus_client::registry::Registry::default();
    test.core.register_metrics(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("sweep_errors_total{step=\"one\"} 1") && !text.contains("step=\"two\""), "{text}");
    test.end().await;
}
