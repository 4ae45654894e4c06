//! A separate store for each test case, and shorthands for common steps.

mod cluster;
mod migrated_file;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::admission::Payer;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::credits::{Lot, LotKind};
use grabd_domain::grabs::{Class, Failure, FailureReason, Grab, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId, TeamId, UserId};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_store::accounts::{InitialTeam, NewTeam, NewUser};
use grabd_store::credits::{Grant, GrantOutcome};
use grabd_store::grabs::{Completion, Created, FailGrab, FailureSource, LeaseRequest, LeasedJob, NewGrab, NewLease};
use grabd_store::webhooks::{DeliveryAttempt, DueDelivery, MessageContent};
use grabd_store::{Kind, Store};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use uuid::Uuid;

use cluster::PrivateDatabase;

/// Start time of the cases.
pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// Limit of open asynchronous grabs.
pub(crate) const LIMIT: u32 = 50;

/// Generates two tests for each case, one per database.
macro_rules! on_both {
    ($(async fn $name:ident($db:ident) $body:block)*) => {$(
        async fn $name($db: &$crate::harness::TestDb) $body

        mod $name {
            use crate::harness::TestDb;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let db = TestDb::sqlite().await;
                super::$name(&db).await;
                db.finish().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let db = TestDb::postgres().await;
                super::$name(&db).await;
                db.finish().await;
            }
        }
    )*};
}
pub(crate) use on_both;

/// A store and its database.
pub(crate) struct TestDb {
    pub(crate) store: Store,
    pub(crate) url: String,
    backend: Backend,
    next_id: AtomicU64,
}

enum Backend {
    Directory(tempfile::TempDir),
    Database(PrivateDatabase),
}

impl TestDb {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("grabd.sqlite");
        migrated_file::copy_to(&file).await;
        let url = format!("sqlite://{}", file.display());
        Self::at(url, Backend::Directory(directory)).await.migrated().await
    }

    pub(crate) async fn postgres() -> Self {
        let database = PrivateDatabase::create_migrated().await;
        Self::at(database.url(), Backend::Database(database)).await.migrated().await
    }

    /// A database that is not migrated.
    pub(crate) async fn empty_postgres() -> Self {
        let database = PrivateDatabase::create().await;
        Self::at(database.url(), Backend::Database(database)).await
    }

    async fn at(url: String, backend: Backend) -> Self {
        let store = Store::open(&url).await.unwrap();
        Self { store, url, backend, next_id: AtomicU64::new(1) }
    }

    /// A copy of a migrated database only checks its steps.
    async fn migrated(self) -> Self {
        self.store.migrate().await.unwrap();
        self
    }

    /// Checks the invariants and closes the store. Called at the end of every case.
    pub(crate) async fn finish(self) {
        assert_eq!(self.store.credits().verify_ledger().await.unwrap(), []);
        self.store.close().await;
        if let Backend::Database(database) = self.backend {
            database.drop_database().await;
        }
    }

    /// A user, and a team that they own.
    pub(crate) async fn owned_team(&self, email: &str) -> (UserId, TeamId) {
        let (id, team) = (UserId(self.id()), TeamId(self.id()));
        let initial_team = InitialTeam::New(team, "A team".into());
        let email = Email::parse(email).unwrap();
        let user = NewUser { id, email, password_hash: String::new(), initial_team, verified: true, now: NOW };
        self.store.accounts().create_user(user).await.unwrap();
        (id, team)
    }

    /// Leases up to `limit` due deliveries for half a minute, longest overdue first.
    pub(crate) async fn lease_due(
        &self,
        now: Timestamp,
        limit: u32,
        compose: impl Fn(&MessageContent) -> String + Send + Sync + 'static,
    ) -> Vec<DeliveryAttempt> {
        let due = self.due(now, limit).await.into_iter().map(|due| due.id).collect();
        self.store.webhooks().lease_deliveries(due, now, now + Duration::from_secs(30), compose).await.unwrap()
    }

    /// Up to `limit` due deliveries.
    pub(crate) async fn due(&self, now: Timestamp, limit: u32) -> Vec<DueDelivery> {
        self.store.webhooks().due_deliveries(Timestamp::from_ms(0)..=now, now, limit).await.unwrap()
    }

    pub(crate) async fn has_due(&self, now: Timestamp) -> bool {
        !self.due(now, 1).await.is_empty()
    }

    /// Opens a connection that bypasses the store.
    pub(crate) async fn raw_connection(&self) -> DatabaseConnection {
        sea_orm::Database::connect(&self.url).await.unwrap()
    }

    /// Executes one statement, bypassing the store.
    pub(crate) async fn execute_raw(&self, sql: &str) -> Result<u64, sea_orm::DbErr> {
        let raw = self.raw_connection().await;
        let done = raw.execute_unprepared(sql).await.map(|done| done.rows_affected());
        raw.close().await.unwrap();
        done
    }

    /// The id as an SQL literal of this database.
    pub(crate) fn literal(&self, id: Uuid) -> String {
        match self.store.kind() {
            Kind::Sqlite => format!("x'{}'", id.simple()),
            Kind::Postgres => format!("'{id}'"),
        }
    }

    /// The server's log of this database.
    pub(crate) fn server_log(&self) -> String {
        match &self.backend {
            Backend::Database(database) => database.log(),
            Backend::Directory(_) => String::new(),
        }
    }

    pub(crate) fn directory(&self) -> &std::path::Path {
        match &self.backend {
            Backend::Directory(directory) => directory.path(),
            Backend::Database(_) => panic!("not a SQLite database"),
        }
    }

    /// A new unique id. Ids sort in order of generation.
    pub(crate) fn id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.next_id.fetch_add(1, Ordering::Relaxed)) << 64 | 7)
    }

    /// Creates a team with this many prepaid credits.
    pub(crate) async fn team(&self, credits: u32) -> TeamId {
        let team = TeamId(self.id());
        self.store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
        if credits > 0 {
            self.grant(team, LotKind::Prepaid, credits, None).await;
        }
        team
    }

    pub(crate) async fn grant(
        &self,
        team: TeamId,
        kind: LotKind,
        credits: u32,
        expires_at: Option<Timestamp>,
    ) -> GrantOutcome {
        let source_ref = format!("payment {}", self.id());
        self.store.credits().grant(Grant { team, kind, credits, expires_at, source_ref, now: NOW }).await.unwrap()
    }

    pub(crate) fn new_grab(&self, team: TeamId, class: Class) -> NewGrab {
        NewGrab {
            id: GrabId(self.id()),
            team,
            payer: Payer::of_team(team),
            creator: None,
            class,
            spec: spec(),
            secrets: None,
            now: NOW,
            deadline_at: NOW + SYNC_DEADLINE,
            async_limit: LIMIT,
            lease: None,
            wait: None,
            idempotency: None,
            fingerprint: None,
            ceiling: None,
        }
    }

    pub(crate) fn new_lease(&self) -> NewLease {
        NewLease {
            token: LeaseToken(self.id()),
            until: NOW + SYNC_DEADLINE,
            session: SessionId(self.id()),
            random: self.id().as_u128(),
        }
    }

    /// Creates a pending synchronous grab.
    pub(crate) async fn pending(&self, team: TeamId) -> GrabId {
        let new = self.new_grab(team, Class::Sync);
        let id = new.id;
        assert_eq!(self.store.grabs().create(new).await.unwrap(), Created::Pending);
        id
    }

    /// A request for jobs for the slots of one session.
    pub(crate) fn lease_request(&self, class: Class, slots: usize, now: Timestamp) -> LeaseRequest {
        let slots = (0..slots).map(|_| (LeaseToken(self.id()), self.id().as_u128())).collect();
        LeaseRequest { class, session: SessionId(self.id()), now, slots, only_paid: false }
    }

    /// Leases the head of the synchronous queue.
    pub(crate) async fn lease_one(&self) -> LeasedJob {
        let mut leased = self.store.grabs().lease(self.lease_request(Class::Sync, 1, NOW)).await.unwrap();
        leased.pop().expect("a pending grab")
    }

    /// Creates a grab and leases it.
    pub(crate) async fn leased(&self, team: TeamId) -> LeasedJob {
        let id = self.pending(team).await;
        let leased = self.lease_one().await;
        assert_eq!(leased.grab, id);
        leased
    }

    /// The only lot of a team.
    pub(crate) async fn lot(&self, team: TeamId) -> Lot {
        let lots = self.store.credits().lots(team).await.unwrap();
        assert_eq!(lots.len(), 1);
        lots[0]
    }

    /// Remaining and held credits of a team's only lot.
    pub(crate) async fn credits(&self, team: TeamId) -> (u32, u32) {
        let lot = self.lot(team).await;
        (lot.remaining, lot.held)
    }

    pub(crate) async fn grab(&self, team: TeamId, id: GrabId) -> Grab {
        self.store.grabs().find_grab(team, Environment::Live, id).await.unwrap().expect("the grab exists")
    }
}

pub(crate) fn spec() -> CaptureSpec {
    let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
    CaptureSpec::parse(&request).unwrap()
}

pub(crate) fn completion(leased: &LeasedJob) -> Completion {
    Completion {
        grab: leased.grab,
        token: leased.token,
        upload_key: leased.upload_key.clone(),
        size_bytes: 48_213,
        execution_ms: 1_830,
        metadata: facts(),
        now: NOW + Duration::from_secs(2),
    }
}

pub(crate) fn facts() -> RenderMetadata {
    RenderMetadata {
        final_url: Some("https://example.com/".into()),
        http_status: Some(200),
        ..RenderMetadata::default()
    }
}

pub(crate) fn failing(grab: GrabId, source: FailureSource, now: Timestamp) -> FailGrab {
    FailGrab { grab, source, failure: blocked(), metadata: facts(), now }
}

pub(crate) fn blocked() -> Failure {
    Failure::new(FailureReason::RenderBlocked, "The site asked for a password.")
}
