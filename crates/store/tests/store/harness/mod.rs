//! A store of its own for each case, and short words for what cases are made of.

mod cluster;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::credits::{Lot, LotKind};
use grabd_domain::grabs::{Class, Facts, Failure, FailureReason, Grab};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId, TeamId};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_store::{
    Ask, By, Completion, Created, Failing, Grant, Granted, Kind, Leased, NewGrab, NewLease, NewTeam, Store,
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use uuid::Uuid;

use cluster::PrivateDatabase;

/// When cases begin.
pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// The async limit of teams without one of their own.
pub(crate) const LIMIT: u32 = 50;

/// Makes two tests of a case, one for each database.
macro_rules! on_both {
    ($(async fn $name:ident($world:ident) $body:block)*) => {$(
        async fn $name($world: &$crate::harness::World) $body

        mod $name {
            use crate::harness::World;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let world = World::sqlite().await;
                super::$name(&world).await;
                world.end().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let world = World::postgres().await;
                super::$name(&world).await;
                world.end().await;
            }
        }
    )*};
}
pub(crate) use on_both;

/// A migrated store and the place it lives in.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) url: String,
    place: Place,
    drawn: AtomicU64,
}

enum Place {
    Directory(tempfile::TempDir),
    Database(PrivateDatabase),
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", directory.path().join("grabd.sqlite").display());
        Self::at(url, Place::Directory(directory)).await
    }

    pub(crate) async fn postgres() -> Self {
        let database = PrivateDatabase::create().await;
        Self::at(database.url(), Place::Database(database)).await
    }

    async fn at(url: String, place: Place) -> Self {
        let store = Store::open(&url).await.unwrap();
        store.migrate().await.unwrap();
        Self { store, url, place, drawn: AtomicU64::new(1) }
    }

    /// Every case ends here: whatever it did, the sums come out.
    pub(crate) async fn end(self) {
        assert_eq!(self.store.verify_ledger().await.unwrap(), []);
        self.store.close().await;
        if let Place::Database(database) = self.place {
            database.drop_it().await;
        }
    }

    /// For looking and meddling behind the store's back.
    pub(crate) async fn raw(&self) -> DatabaseConnection {
        sea_orm::Database::connect(&self.url).await.unwrap()
    }

    /// Runs one statement behind the store's back.
    pub(crate) async fn meddle(&self, sql: &str) -> Result<u64, sea_orm::DbErr> {
        let raw = self.raw().await;
        let done = raw.execute_unprepared(sql).await.map(|done| done.rows_affected());
        raw.close().await.unwrap();
        done
    }

    /// How an id is written in SQL of this database.
    pub(crate) fn literal(&self, id: Uuid) -> String {
        match self.store.kind() {
            Kind::Sqlite => format!("x'{}'", id.simple()),
            Kind::Postgres => format!("'{id}'"),
        }
    }

    /// What the server has written about this database.
    pub(crate) fn server_log(&self) -> String {
        match &self.place {
            Place::Database(database) => database.log(),
            Place::Directory(_) => String::new(),
        }
    }

    pub(crate) fn directory(&self) -> &std::path::Path {
        match &self.place {
            Place::Directory(directory) => directory.path(),
            Place::Database(_) => panic!("this world lives in a server"),
        }
    }

    /// Ids that never repeat and sort by when they were drawn.
    pub(crate) fn id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.drawn.fetch_add(1, Ordering::Relaxed)) << 64 | 7)
    }

    /// A team with this many prepaid credits.
    pub(crate) async fn team(&self, credits: u32) -> TeamId {
        let team = TeamId(self.id());
        self.store.create_team(NewTeam { id: team, name: "A team".into(), now: NOW }).await.unwrap();
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
    ) -> Granted {
        let source_ref = format!("payment {}", self.id());
        self.store.grant(Grant { team, kind, credits, expires_at, source_ref, now: NOW }).await.unwrap()
    }

    pub(crate) fn new_grab(&self, team: TeamId, class: Class) -> NewGrab {
        NewGrab {
            id: GrabId(self.id()),
            team,
            class,
            spec: spec(),
            now: NOW,
            deadline_at: NOW + SYNC_DEADLINE,
            async_limit_default: LIMIT,
            lease: None,
            idempotency: None,
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

    /// A synchronous grab that waits.
    pub(crate) async fn pending(&self, team: TeamId) -> GrabId {
        let new = self.new_grab(team, Class::Sync);
        let id = new.id;
        assert_eq!(self.store.create(new).await.unwrap(), Created::Pending);
        id
    }

    /// Slots of one session that ask for work.
    pub(crate) fn ask(&self, class: Class, slots: usize, now: Timestamp) -> Ask {
        let slots = (0..slots).map(|_| (LeaseToken(self.id()), self.id().as_u128())).collect();
        Ask { class, session: SessionId(self.id()), now, slots }
    }

    /// The head of the synchronous queue, leased now.
    pub(crate) async fn lease_one(&self) -> Leased {
        let mut leased = self.store.lease(self.ask(Class::Sync, 1, NOW)).await.unwrap();
        leased.pop().expect("a grab waits")
    }

    /// A grab of its own, leased.
    pub(crate) async fn leased(&self, team: TeamId) -> Leased {
        let id = self.pending(team).await;
        let leased = self.lease_one().await;
        assert_eq!(leased.grab, id);
        leased
    }

    /// The only lot of a team.
    pub(crate) async fn lot(&self, team: TeamId) -> Lot {
        let lots = self.store.lots(team).await.unwrap();
        assert_eq!(lots.len(), 1);
        lots[0]
    }

    /// What the only lot of a team has left, and what of it is held.
    pub(crate) async fn credits(&self, team: TeamId) -> (u32, u32) {
        let lot = self.lot(team).await;
        (lot.remaining, lot.held)
    }

    pub(crate) async fn grab(&self, team: TeamId, id: GrabId) -> Grab {
        self.store.find_grab(team, Environment::Live, id).await.unwrap().expect("the grab is there")
    }
}

pub(crate) fn spec() -> CaptureSpec {
    let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
    CaptureSpec::parse(&request).unwrap()
}

pub(crate) fn completion(leased: &Leased) -> Completion {
    Completion {
        grab: leased.grab,
        token: leased.token,
        upload_key: leased.upload_key.clone(),
        size_bytes: 48_213,
        execution_ms: 1_830,
        facts: facts(),
        now: NOW + Duration::from_secs(2),
    }
}

pub(crate) fn facts() -> Facts {
    Facts { final_url: Some("https://example.com/".into()), http_status: Some(200), ..Facts::default() }
}

pub(crate) fn failing(grab: GrabId, by: By, now: Timestamp) -> Failing {
    Failing { grab, by, failure: blocked(), facts: facts(), now }
}

pub(crate) fn blocked() -> Failure {
    Failure::new(FailureReason::RenderBlocked, "The site asked for a password.")
}
