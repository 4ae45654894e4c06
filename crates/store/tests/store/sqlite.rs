//! SQLite only: file permissions, the single writer, and concurrent processes.

use std::os::unix::fs::PermissionsExt;

use futures::future::{join_all, maybe_done};
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, ImageKey, Status};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::credits::{Grant, GrantOutcome};
use grabd_store::grabs::{Created, PlaceholderOutcome};
use grabd_store::{Error, Kind, Store};
use sea_orm::{ConnectionTrait, TransactionTrait};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, TestDb, completion};
use crate::placeholder::{done, placeholder};

fn grant(team: TeamId, source_ref: String) -> Grant {
    Grant { team, kind: LotKind::Prepaid, credits: 1, expires_at: None, source_ref, now: NOW }
}

#[tokio::test]
async fn database_files_are_private_to_the_owner() {
    let db = TestDb::sqlite().await;
    db.team(1).await;
    let mut files = 0;
    for file in std::fs::read_dir(db.directory()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        files += 1;
    }
    assert_eq!(files, 3, "the database, the WAL and the shared memory file");
    db.finish().await;
}

#[tokio::test]
async fn in_memory_database_works() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    assert_eq!(store.kind(), Kind::Sqlite);
    assert!(!store.schema_is_current().await.unwrap());
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    assert!(store.schema_is_current().await.unwrap());
    store.ping().await.unwrap();
    assert_eq!(store.accounts().list_teams().await.unwrap(), []);
    assert_eq!(store.credits().verify_ledger().await.unwrap(), []);
    store.close().await;
}

#[tokio::test]
async fn opening_errors_are_classified() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    assert!(matches!(store.accounts().list_teams().await, Err(Error::Schema(_))));
    assert!(matches!(Store::open("mysql://localhost/x").await, Err(Error::Url)));
    assert!(matches!(Store::open("sqlite:///nowhere/at/all.sqlite").await, Err(Error::Unavailable(_))));
    store.close().await;
}

/// Two processes write concurrently. Creates read before they write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_can_write_concurrently() {
    let db = TestDb::sqlite().await;
    let team = db.team(200).await;
    let other_process = Store::open(&db.url).await.unwrap();
    let creates = (0..200).map(|n| {
        let store = if n % 2 == 0 { &db.store } else { &other_process };
        store.grabs().create(db.new_grab(team, Class::Sync))
    });
    for created in join_all(creates).await {
        assert!(matches!(created, Ok(Created::Pending)), "{created:?}");
    }
    assert_eq!(db.credits(team).await, (200, 200));
    other_process.close().await;
    db.finish().await;
}

/// While another process holds the write lock, a change waits before its first read and then sees the other's writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer_waits_for_another_processs_transaction() {
    let db = TestDb::sqlite().await;
    let team = db.team(1).await;
    wait_for_another_writer(&db, team, create(&db, team)).await;
    // Its only statement has no transaction around it.
    db.execute_raw("UPDATE team SET name = 'A team'").await.unwrap();
    let (store, new) = (db.store.clone(), placeholder(GrabId(db.id()), team, done(Some(ImageKey::new(1, "png")))));
    wait_for_another_writer(&db, team, async move {
        assert_eq!(store.grabs().create_placeholder(new).await.unwrap(), PlaceholderOutcome::Stored);
    })
    .await;
    db.finish().await;
}

fn create(db: &TestDb, team: TeamId) -> impl Future<Output = ()> + Send + use<> {
    let (store, new) = (db.store.clone(), db.new_grab(team, Class::Sync));
    async move {
        let created = store.grabs().create(new).await;
        assert!(matches!(created, Ok(Created::Pending)), "{created:?}");
    }
}

async fn wait_for_another_writer(db: &TestDb, team: TeamId, change: impl Future<Output = ()> + Send + 'static) {
    let raw = db.raw_connection().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let waiting = TaskTracker::new().spawn(change);
    // Reads continue with the old data. They take long enough for the change to reach the lock.
    for _ in 0..100 {
        assert_eq!(db.store.accounts().find_team(team).await.unwrap().unwrap().name, "A team");
    }
    assert!(!waiting.is_finished());
    other.commit().await.unwrap();
    waiting.await.unwrap();
    assert_eq!(db.store.accounts().find_team(team).await.unwrap().unwrap().name, "renamed");
    raw.close().await.unwrap();
}

/// In a shared commit, a failed change rolls back only its own writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_change_in_a_batch_rolls_back_only_itself() {
    let db = TestDb::sqlite().await;
    let team = db.team(20).await;
    let mut leased = Vec::new();
    for _ in 0..20 {
        leased.push(db.leased(team).await);
    }
    // While another process holds the lock, all changes queue up and share one commit.
    let raw = db.raw_connection().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let completes = leased.iter().enumerate().map(|(n, leased)| {
        let mut done = completion(leased);
        if n % 5 == 0 {
            // Detected only after the job was deleted.
            done.upload_key = ImageKey::new(99, "png");
        }
        db.store.grabs().complete(done)
    });
    let (ended, committed) = tokio::join!(join_all(completes), other.commit());
    committed.unwrap();
    for (n, (ended, leased)) in ended.into_iter().zip(&leased).enumerate() {
        let status = db.grab(team, leased.grab).await.status();
        match n % 5 {
            0 => assert!(matches!(ended, Err(Error::Inconsistent(_))) && status == Status::Processing, "{ended:?}"),
            _ => assert!(matches!(ended, Ok(Some(_))) && status == Status::Done, "{ended:?}"),
        }
    }
    assert_eq!(db.credits(team).await, (4, 4));
    raw.close().await.unwrap();
    db.finish().await;
}

/// SQLite may roll back the whole transaction on its own, for example when the disk is full. All its changes then fail,
/// nothing is written, and the next change gets a working connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer_recovers_after_sqlite_rolls_back_the_transaction() {
    let db = TestDb::sqlite().await;
    let team = db.team(0).await;
    db.execute_raw(
        "CREATE TRIGGER full BEFORE INSERT ON credit_lot WHEN NEW.source_ref = 'too much' \
             BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
    )
    .await
    .unwrap();
    let raw = db.raw_connection().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let refs = ["alone", "before", "too much", "after"];
    let grants = refs.map(|source_ref| db.store.credits().grant(grant(team, source_ref.into())));
    let (granted, committed) = tokio::join!(join_all(grants), other.commit());
    committed.unwrap();
    let succeeded = granted.iter().filter(|granted| granted.is_ok()).count();
    assert!(granted[2].is_err());
    assert_eq!(db.store.credits().lots(team).await.unwrap().len(), succeeded, "{granted:?}");
    for round in 0..3 {
        let next = db.store.credits().grant(grant(team, format!("next {round}"))).await;
        assert!(matches!(next, Ok(GrantOutcome::New(_))), "{next:?}");
    }
    assert_eq!(db.store.credits().lots(team).await.unwrap().len(), succeeded + 3);
    // The transactions of the new connection still wait for another writer before they read.
    db.execute_raw("UPDATE team SET name = 'A team'").await.unwrap();
    wait_for_another_writer(&db, team, create(&db, team)).await;
    raw.close().await.unwrap();
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_writes_queued_changes_and_rejects_later_ones() {
    let db = TestDb::sqlite().await;
    let team = db.team(100).await;
    let create = || maybe_done(db.store.grabs().create(db.new_grab(team, Class::Sync)));
    let mut creates: Vec<_> = (0..100).map(|_| Box::pin(create())).collect();
    // After one poll, each change is in the queue, or done already.
    for create in &mut creates {
        let _ = futures::poll!(create.as_mut());
    }
    tokio::join!(join_all(creates.iter_mut().map(|create| create.as_mut())), db.store.clone().close());
    for mut create in creates {
        let created = create.as_mut().take_output();
        assert!(matches!(created, Some(Ok(Created::Pending))), "{created:?}");
    }
    let late = db.store.grabs().create(db.new_grab(team, Class::Sync)).await;
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
    let read = db.store.credits().lots(team).await;
    assert!(matches!(read, Err(Error::Closed)), "{read:?}");
    let reopened = Store::open(&db.url).await.unwrap();
    assert_eq!(reopened.credits().lots(team).await.unwrap()[0].held, 100);
    assert_eq!(reopened.credits().verify_ledger().await.unwrap(), []);
    reopened.close().await;
}
