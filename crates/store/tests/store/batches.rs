//! PostgreSQL only: changes that arrive while others are made are made together.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::future::join_all;
use futures::poll;
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, ImageKey, Status};
use grabd_domain::idempotency::IdempotencyKey;
use grabd_domain::ids::{GrabId, LeaseToken, TeamId};
use grabd_store::grabs::{Completion, Created, EndedGrab, LeasedJob, NewGrab, NewRecord, PlaceholderOutcome, Repeat};
use grabd_store::{Error, Result, Store};
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, Statement, TransactionTrait};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, TestDb, completion};
use crate::placeholder::{done, placeholder};

/// Batches of one kind that are made at the same time.
const CONCURRENT: usize = 2;

/// Makes changes in one batch: they arrive while all batches wait for a lock.
struct Crowd {
    raw: DatabaseConnection,
    lock: DatabaseTransaction,
    blocked: Vec<tokio::task::JoinHandle<()>>,
}

impl Crowd {
    /// Blocks the batches of creates.
    async fn of_creates(db: &TestDb) -> Self {
        let mut news = Vec::new();
        for _ in 0..CONCURRENT {
            news.push(db.new_grab(db.team(1).await, Class::Sync));
        }
        let create = |new| {
            let store = db.store.clone();
            async move { assert_eq!(store.grabs().create(new).await.unwrap(), Created::Pending) }
        };
        Self::block(db, "job", news.into_iter().map(create)).await
    }

    /// Blocks the batches of completions.
    async fn of_completions(db: &TestDb) -> Self {
        let mut jobs = Vec::new();
        for _ in 0..CONCURRENT {
            jobs.push(db.leased(db.team(1).await).await);
        }
        let complete = |job| {
            let store = db.store.clone();
            async move { assert!(store.grabs().complete(completion(&job)).await.unwrap().is_some()) }
        };
        Self::block(db, "job", jobs.into_iter().map(complete)).await
    }

    /// Blocks the batches of test grabs.
    async fn of_placeholders(db: &TestDb) -> Self {
        let team = db.team(0).await;
        let new = |_| placeholder(GrabId(db.id()), team, done(Some(ImageKey::new(db.id().as_u128(), "png"))));
        let create = |new| {
            let store = db.store.clone();
            async move { assert_eq!(store.grabs().create_placeholder(new).await.unwrap(), PlaceholderOutcome::Stored) }
        };
        Self::block(db, "grab", (0..CONCURRENT).map(new).map(create)).await
    }

    /// Begins changes, which wait for a lock of a table.
    async fn block(
        db: &TestDb,
        table: &str,
        changes: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>,
    ) -> Self {
        let raw = db.raw_connection().await;
        let lock = raw.begin().await.unwrap();
        lock.execute_unprepared(&format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
        let mut blocked = Vec::new();
        // One after the other: two that begin at the same moment could be one batch.
        for change in changes {
            blocked.push(TaskTracker::new().spawn(change));
            wait_for_locked(&raw, blocked.len()).await;
        }
        assert_eq!(blocked.len(), CONCURRENT);
        Self { raw, lock, blocked }
    }

    /// Begins the changes, lets the batches go on, and returns the outcomes.
    async fn make<T>(self, changes: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
        let mut waiting: Vec<Pin<Box<_>>> = changes.into_iter().map(Box::pin).collect();
        for change in &mut waiting {
            assert!(poll!(change).is_pending());
        }
        self.lock.commit().await.unwrap();
        let outcomes = join_all(waiting).await;
        for change in self.blocked {
            change.await.unwrap();
        }
        self.raw.close().await.unwrap();
        outcomes
    }
}

/// Waits until this many connections wait for a lock.
async fn wait_for_locked(raw: &DatabaseConnection, number: usize) {
    const LOCKED: &str = "SELECT count(*) AS n FROM pg_stat_activity \
        WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let locked = async {
        while i64::try_from(number) != Ok(self::number(raw, LOCKED).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), locked).await.unwrap();
}

/// The number `n` that a query returns.
async fn number(raw: &impl ConnectionTrait, sql: &str) -> i64 {
    let row = raw.query_one_raw(Statement::from_string(raw.get_database_backend(), sql)).await.unwrap();
    row.unwrap().try_get("", "n").unwrap()
}

/// The number of transactions that wrote the rows of these grabs last.
async fn transactions(db: &TestDb, grabs: &[GrabId]) -> i64 {
    let raw = db.raw_connection().await;
    let ids: Vec<_> = grabs.iter().map(|grab| db.literal(grab.0)).collect();
    let sql = format!("SELECT count(DISTINCT xmin::text) AS n FROM grab WHERE id IN ({})", ids.join(", "));
    let transactions = number(&raw, &sql).await;
    raw.close().await.unwrap();
    transactions
}

async fn teams(db: &TestDb, number: usize, credits: u32) -> Vec<TeamId> {
    let mut teams = Vec::new();
    for _ in 0..number {
        teams.push(db.team(credits).await);
    }
    teams
}

fn record(key: &str) -> NewRecord {
    NewRecord { key: IdempotencyKey::parse(key).unwrap(), fingerprint: [7; 32], only_of: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_of_different_teams_are_one_transaction() {
    let db = TestDb::postgres().await;
    let teams = teams(&db, 16, 2).await;
    let crowd = Crowd::of_creates(&db).await;
    let news: Vec<_> = teams.iter().rev().map(|team| db.new_grab(*team, Class::Sync)).collect();
    let grabs: Vec<_> = news.iter().map(|new| new.id).collect();
    let created = crowd.make(news.into_iter().map(|new| db.store.grabs().create(new))).await;
    assert!(created.iter().all(|created| matches!(created, Ok(Created::Pending))), "{created:?}");
    assert_eq!(transactions(&db, &grabs).await, 1);
    for (team, grab) in teams.iter().rev().zip(grabs) {
        assert_eq!(db.grab(*team, grab).await.status(), Status::Pending);
        assert_eq!(db.credits(*team).await, (2, 1));
    }
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_create_of_a_batch_has_its_own_outcome() {
    let db = TestDb::postgres().await;
    let [rich, poor, full, repeated, closed, leased, mismatched, keyed] = teams(&db, 8, 3).await[..] else { panic!() };
    db.execute_raw(&format!("UPDATE team SET status = 1 WHERE id = {}", db.literal(closed.0))).await.unwrap();
    let create = async |new: NewGrab| assert_eq!(db.store.grabs().create(new).await.unwrap(), Created::Pending);
    for _ in 0..3 {
        create(db.new_grab(poor, Class::Sync)).await;
    }
    create(db.new_grab(full, Class::Async)).await;
    let with_key = |team, record| NewGrab { idempotency: Some(record), ..db.new_grab(team, Class::Sync) };
    create(with_key(repeated, record("a-key"))).await;
    create(with_key(mismatched, record("a-key"))).await;
    let other = NewRecord { fingerprint: [8; 32], ..record("a-key") };
    // None of the other grabs has the class of this one, so that none waits before it.
    let lease = Some(db.new_lease());
    let crowd = Crowd::of_creates(&db).await;
    let news = [
        db.new_grab(rich, Class::Sync),
        db.new_grab(poor, Class::Sync),
        NewGrab { async_limit: 1, ..db.new_grab(full, Class::Async) },
        with_key(repeated, record("a-key")),
        db.new_grab(closed, Class::Sync),
        NewGrab { lease, ..db.new_grab(leased, Class::Sync) },
        with_key(mismatched, other),
        with_key(keyed, record("a-key")),
    ];
    let created = crowd.make(news.into_iter().map(|new| db.store.grabs().create(new))).await;
    let created: Vec<_> = created.into_iter().map(Result::unwrap).collect();
    let expected = [
        Created::Pending,
        Created::CreditsExhausted,
        Created::QueueLimit { limit: 1 },
        Created::Repeated(Repeat::InFlight),
        Created::TeamInactive,
        Created::Pending,
        Created::Repeated(Repeat::Mismatch),
        Created::Pending,
    ];
    assert_eq!(created, expected);
    let mut held = Vec::new();
    for team in [rich, poor, full, repeated, closed, leased, mismatched, keyed] {
        held.push(db.credits(team).await.1);
    }
    assert_eq!(held, [1, 3, 1, 1, 0, 1, 1, 1]);
    let again = db.store.grabs().create(with_key(keyed, record("a-key"))).await.unwrap();
    assert_eq!(again, Created::Repeated(Repeat::InFlight));
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_of_one_team_reach_its_limits_exactly() {
    let db = TestDb::postgres().await;
    let [limited, poor] = teams(&db, 2, 5).await[..] else { panic!() };
    let crowd = Crowd::of_creates(&db).await;
    let of_limited = |_| NewGrab { async_limit: 3, ..db.new_grab(limited, Class::Async) };
    let news = (0..8).map(of_limited).chain((0..8).map(|_| db.new_grab(poor, Class::Sync)));
    let created = crowd.make(news.map(|new| db.store.grabs().create(new))).await;
    let number = |wanted: Created| created.iter().filter(|created| matches!(created, Ok(of) if *of == wanted)).count();
    assert_eq!(number(Created::QueueLimit { limit: 3 }), 5, "{created:?}");
    assert_eq!(number(Created::CreditsExhausted), 3, "{created:?}");
    assert_eq!(number(Created::Pending), 8, "{created:?}");
    assert_eq!((db.credits(limited).await, db.credits(poor).await), ((5, 3), (5, 5)));
    db.finish().await;
}

/// The credits of one team are of several lots, and each grab is behind the one before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_of_one_team_are_one_transaction_and_stay_in_order() {
    let db = TestDb::postgres().await;
    let [team, other] = teams(&db, 2, 2).await[..] else { panic!() };
    db.grant(team, LotKind::Prepaid, 3, None).await;
    let crowd = Crowd::of_creates(&db).await;
    let news: Vec<_> =
        [team, team, other, team, team, team, team, other].map(|team| db.new_grab(team, Class::Async)).into();
    let grabs: Vec<_> = news.iter().filter(|new| new.team == team).map(|new| new.id).take(5).collect();
    let created = crowd.make(news.into_iter().map(|new| db.store.grabs().create(new))).await;
    let created: Vec<_> = created.into_iter().map(Result::unwrap).collect();
    let mut expected = vec![Created::Pending; 8];
    expected[6] = Created::CreditsExhausted;
    assert_eq!(created, expected);
    assert_eq!(transactions(&db, &grabs).await, 1);
    let lots = db.store.credits().lots(team).await.unwrap();
    assert_eq!(lots.iter().map(|lot| (lot.remaining, lot.held)).collect::<Vec<_>>(), [(2, 2), (3, 3)]);
    let leased = db.store.grabs().lease(db.lease_request(Class::Async, 9, NOW)).await.unwrap();
    let order: Vec<_> = leased.iter().filter(|job| job.team == team).map(|job| job.grab).collect();
    assert_eq!(order, grabs);
    db.finish().await;
}

/// While a team is locked, the creates of others that arrived with its create are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_team_holds_up_no_other() {
    let db = TestDb::postgres().await;
    let [locked, free] = teams(&db, 2, 1).await[..] else { panic!() };
    let raw = db.raw_connection().await;
    let lock = raw.begin().await.unwrap();
    lock.execute_unprepared(&format!("SELECT 1 FROM team WHERE id = {} FOR UPDATE", db.literal(locked.0)))
        .await
        .unwrap();
    let crowd = Crowd::of_creates(&db).await;
    let mut waiting = Box::pin(db.store.grabs().create(db.new_grab(locked, Class::Sync)));
    assert!(poll!(&mut waiting).is_pending());
    let created = crowd.make([db.store.grabs().create(db.new_grab(free, Class::Sync))]).await;
    assert!(matches!(created[..], [Ok(Created::Pending)]), "{created:?}");
    wait_for_locked(&raw, 1).await;
    assert!(poll!(&mut waiting).is_pending());
    lock.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Created::Pending);
    // A batch that waits for a lock is ended at some time, and its changes are made alone.
    let log = db.server_log();
    assert!(!log.contains("canceling statement"), "{log}");
    raw.close().await.unwrap();
    db.finish().await;
}

/// A caller that has gone before its change has begun gets no grab, and no credit of its team is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_of_a_dropped_caller_does_not_begin() {
    let db = TestDb::postgres().await;
    let [gone, stays] = teams(&db, 2, 1).await[..] else { panic!() };
    let crowd = Crowd::of_creates(&db).await;
    let mut dropped = Box::pin(db.store.grabs().create(db.new_grab(gone, Class::Sync)));
    assert!(poll!(&mut dropped).is_pending());
    drop(dropped);
    let created = crowd.make([db.store.grabs().create(db.new_grab(stays, Class::Sync))]).await;
    assert!(matches!(created[..], [Ok(Created::Pending)]), "{created:?}");
    assert_eq!((db.credits(gone).await, db.credits(stays).await), ((1, 0), (1, 1)));
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_are_one_transaction_and_spend_one_credit_each() {
    let db = TestDb::postgres().await;
    // Two lots of one team, and several grabs of one lot.
    let [first, second] = teams(&db, 2, 1).await[..] else { panic!() };
    db.grant(first, LotKind::Prepaid, 5, None).await;
    db.grant(second, LotKind::Prepaid, 5, None).await;
    let mut jobs = Vec::new();
    for team in [first, first, first, first, second, second, second, first] {
        jobs.push((team, db.leased(team).await));
    }
    let crowd = Crowd::of_completions(&db).await;
    let ended = crowd.make(jobs.iter().map(|(_, job)| db.store.grabs().complete(completion(job)))).await;
    let grabs: Vec<_> = jobs.iter().map(|(_, job)| job.grab).collect();
    assert_eq!(transactions(&db, &grabs).await, 1);
    for ((team, job), ended) in jobs.iter().zip(ended) {
        let ended = ended.unwrap().unwrap().grab;
        assert_eq!((ended.id, ended.status()), (job.grab, Status::Done));
        assert_eq!(db.grab(*team, job.grab).await, ended);
    }
    let mut left = Vec::new();
    for team in [first, second] {
        left.push(
            db.store
                .credits()
                .lots(team)
                .await
                .unwrap()
                .iter()
                .map(|lot| (lot.remaining, lot.held))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(left, [[(0, 0), (1, 0)], [(0, 0), (3, 0)]]);
    db.finish().await;
}

/// As a renderer does that got no response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_completion_in_a_batch_spends_one_credit() {
    let db = TestDb::postgres().await;
    let [team, other] = teams(&db, 2, 2).await[..] else { panic!() };
    let (repeated, single) = (db.leased(team).await, db.leased(other).await);
    let crowd = Crowd::of_completions(&db).await;
    let jobs = [&repeated, &repeated, &single, &repeated];
    let ended = crowd.make(jobs.map(|job| db.store.grabs().complete(completion(job)))).await;
    let ended: Vec<_> = ended.into_iter().map(|ended| ended.unwrap().is_some()).collect();
    assert_eq!(ended, [true, false, true, false]);
    assert_eq!(transactions(&db, &[repeated.grab, single.grab]).await, 1);
    assert_eq!((db.credits(team).await, db.credits(other).await), ((1, 0), (1, 0)));
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completion_that_fails_or_is_late_concerns_no_other() {
    let db = TestDb::postgres().await;
    let mut jobs: Vec<LeasedJob> = Vec::new();
    for team in teams(&db, 4, 1).await {
        jobs.push(db.leased(team).await);
    }
    let late = ImageKey::new(98, "png");
    let lost = Completion { token: LeaseToken(db.id()), upload_key: late.clone(), ..completion(&jobs[0]) };
    let wrong = Completion { upload_key: ImageKey::new(99, "png"), ..completion(&jobs[1]) };
    let crowd = Crowd::of_completions(&db).await;
    let now = wrong.now;
    let completions = [lost, wrong, completion(&jobs[2]), completion(&jobs[3])];
    let ended = crowd.make(completions.into_iter().map(|completion| db.store.grabs().complete(completion))).await;
    let is_done =
        |ended: &Result<Option<EndedGrab>>| matches!(ended, Ok(Some(ended)) if ended.grab.status() == Status::Done);
    assert!(matches!(ended[..2], [Ok(None), Err(Error::Inconsistent(_))]), "{ended:?}");
    assert!(ended[2..].iter().all(is_done), "{ended:?}");
    assert_eq!(db.store.grabs().due_images(now, 9).await.unwrap(), [late]);
    let mut left = Vec::new();
    for job in &jobs {
        left.push(db.credits(job.team).await);
    }
    assert_eq!(left, [(1, 1), (1, 1), (0, 0), (0, 0)]);
    for job in &jobs[..2] {
        assert!(db.store.grabs().complete(completion(job)).await.unwrap().is_some());
    }
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_grabs_are_one_transaction() {
    let db = TestDb::postgres().await;
    let team = db.team(0).await;
    let crowd = Crowd::of_placeholders(&db).await;
    let grabs: Vec<_> = (0..8).map(|_| GrabId(db.id())).collect();
    let image = || done(Some(ImageKey::new(db.id().as_u128(), "png")));
    let news = grabs.iter().map(|grab| placeholder(*grab, team, image()));
    let created = crowd.make(news.map(|new| db.store.grabs().create_placeholder(new))).await;
    assert!(created.iter().all(|created| matches!(created, Ok(PlaceholderOutcome::Stored))), "{created:?}");
    assert_eq!(transactions(&db, &grabs).await, 1);
    db.finish().await;
}

/// Creates and completions lock the lots of several teams in the same order, so that they cannot wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lots_are_locked_in_the_order_of_their_teams() {
    let db = TestDb::postgres().await;
    // The ids of the lots have the opposite order.
    let [first, last] = teams(&db, 2, 0).await[..] else { panic!() };
    for team in [last, first] {
        db.grant(team, LotKind::Prepaid, 9, None).await;
    }
    let raw = db.raw_connection().await;
    let lot_of = |team: TeamId| {
        format!(
            "SELECT count(*) AS n FROM (SELECT FROM credit_lot WHERE team_id = {} FOR UPDATE SKIP LOCKED) lot",
            db.literal(team.0)
        )
    };
    let stays = |team: TeamId| format!("SELECT FROM credit_lot WHERE team_id = {} FOR UPDATE", db.literal(team.0));
    let check = async |store: &Store, crowd: Crowd, jobs: [Option<LeasedJob>; 2]| {
        let lock = raw.begin().await.unwrap();
        lock.execute_unprepared(&stays(last)).await.unwrap();
        let changes = jobs.into_iter().zip([last, first]).map(async |(job, team)| match job {
            Some(job) => assert!(store.grabs().complete(completion(&job)).await.unwrap().is_some()),
            None => assert_eq!(store.grabs().create(db.new_grab(team, Class::Sync)).await.unwrap(), Created::Pending),
        });
        let made = crowd.make(changes);
        let released = async {
            let locked = async {
                while number(&raw, &lot_of(first)).await != 0 {
                    tokio::task::yield_now().await;
                }
            };
            let locked = tokio::time::timeout(Duration::from_secs(3), locked).await;
            assert!(locked.is_ok(), "the lot of the first team was not locked first");
            lock.commit().await.unwrap();
        };
        futures::join!(made, released);
    };
    check(&db.store, Crowd::of_creates(&db).await, [None, None]).await;
    // Those that blocked the batches were created before.
    let leased = db.store.grabs().lease(db.lease_request(Class::Sync, 99, NOW)).await.unwrap();
    let job_of = |team| leased.iter().find(|job| job.team == team).cloned();
    let jobs = [job_of(last), job_of(first)];
    assert!(jobs.iter().all(Option::is_some));
    check(&db.store, Crowd::of_completions(&db).await, jobs).await;
    raw.close().await.unwrap();
    db.finish().await;
}
