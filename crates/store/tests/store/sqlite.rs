//! What only SQLite has: one file, one writer, other processes beside it.

use std::os::unix::fs::PermissionsExt;

use futures::future::join_all;
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::Class;
use grabd_domain::ids::TeamId;
use grabd_store::{Created, Error, Grant, Granted, Kind, Store};
use sea_orm::{ConnectionTrait, TransactionTrait};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, World};

fn grant(team: TeamId, source_ref: String) -> Grant {
    Grant { team, kind: LotKind::Prepaid, credits: 1, expires_at: None, source_ref, now: NOW }
}

#[tokio::test]
async fn the_file_is_its_owners_only() {
    let world = World::sqlite().await;
    world.team(1).await;
    let mut files = 0;
    for file in std::fs::read_dir(world.directory()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        files += 1;
    }
    assert_eq!(files, 3, "the database, its log and its index");
    world.end().await;
}

#[tokio::test]
async fn a_database_in_memory_works_like_one_on_disk() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    assert_eq!(store.kind(), Kind::Sqlite);
    assert!(!store.schema_is_current().await.unwrap());
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    assert!(store.schema_is_current().await.unwrap());
    store.ping().await.unwrap();
    assert_eq!(store.list_teams().await.unwrap(), []);
    assert_eq!(store.verify_ledger().await.unwrap(), []);
    store.close().await;
}

#[tokio::test]
async fn what_is_not_migrated_says_so() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    assert!(matches!(store.list_teams().await, Err(Error::Schema(_))));
    assert!(matches!(Store::open("mysql://localhost/x").await, Err(Error::Url)));
    assert!(matches!(Store::open("sqlite:///nowhere/at/all.sqlite").await, Err(Error::Unavailable(_))));
    store.close().await;
}

/// An operator's command writes while the service does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_may_write_at_the_same_time() {
    let world = World::sqlite().await;
    let team = world.team(0).await;
    let beside = Store::open(&world.url).await.unwrap();
    let grants = (0..200).map(|n| {
        let store = if n % 2 == 0 { &world.store } else { &beside };
        store.grant(grant(team, format!("order {n}")))
    });
    for granted in join_all(grants).await {
        assert!(matches!(granted, Ok(Granted::New(_))), "{granted:?}");
    }
    assert_eq!(world.store.lots(team).await.unwrap().len(), 200);
    beside.close().await;
    world.end().await;
}

/// Another process holds the write lock: ours waits for it instead of failing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_waits_for_another_ones_transaction() {
    let world = World::sqlite().await;
    let team = world.team(0).await;
    let raw = world.raw().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let waiting = TaskTracker::new().spawn({
        let store = world.store.clone();
        async move { store.grant(grant(team, "order".into())).await }
    });
    // Reads go on, of what was there before.
    assert_eq!(world.store.find_team(team).await.unwrap().unwrap().name, "A team");
    assert!(!waiting.is_finished());
    other.commit().await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Ok(Granted::New(_))));
    assert_eq!(world.store.find_team(team).await.unwrap().unwrap().name, "renamed");
    raw.close().await.unwrap();
    world.end().await;
}

/// Changes that share a commit do not share a fate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_fails_undoes_only_itself() {
    let world = World::sqlite().await;
    let team = world.team(0).await;
    // While another process holds the lock, all of them queue up and so share one commit.
    let raw = world.raw().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let grants = (0..20).map(|n| {
        let credits = if n % 5 == 0 { 0 } else { 1 };
        world.store.grant(Grant { credits, ..grant(team, format!("order {n}")) })
    });
    let (granted, committed) = tokio::join!(join_all(grants), other.commit());
    committed.unwrap();
    for (n, granted) in granted.into_iter().enumerate() {
        match n % 5 {
            0 => assert!(matches!(granted, Err(Error::Constraint(_))), "{granted:?}"),
            _ => assert!(matches!(granted, Ok(Granted::New(_))), "{granted:?}"),
        }
    }
    assert_eq!(world.store.lots(team).await.unwrap().len(), 16);
    raw.close().await.unwrap();
    world.end().await;
}

/// SQLite may end the whole transaction by itself, as it does when the disk is full. Everybody in it is told, nothing of
/// it is there, and the next change finds a connection that is not confused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_transaction_that_ended_by_itself_the_next_one_works() {
    let world = World::sqlite().await;
    let team = world.team(0).await;
    world
        .meddle(
            "CREATE TRIGGER full BEFORE INSERT ON credit_lot WHEN NEW.source_ref = 'too much' \
             BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
        )
        .await
        .unwrap();
    let raw = world.raw().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let refs = ["alone", "before", "too much", "after"];
    let grants = refs.map(|source_ref| world.store.grant(grant(team, source_ref.into())));
    let (granted, committed) = tokio::join!(join_all(grants), other.commit());
    committed.unwrap();
    let told = granted.iter().filter(|granted| granted.is_ok()).count();
    assert!(granted[2].is_err());
    assert_eq!(world.store.lots(team).await.unwrap().len(), told, "{granted:?}");
    for round in 0..3 {
        let next = world.store.grant(grant(team, format!("next {round}"))).await;
        assert!(matches!(next, Ok(Granted::New(_))), "{next:?}");
    }
    assert_eq!(world.store.lots(team).await.unwrap().len(), told + 3);
    // The next one is not a transaction that cannot be written: another process can write at once.
    world.meddle("UPDATE team SET name = 'again'").await.unwrap();
    raw.close().await.unwrap();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_writes_what_waits_and_refuses_the_rest() {
    let world = World::sqlite().await;
    let team = world.team(100).await;
    let mut creates: Vec<_> =
        (0..100).map(|_| Box::pin(world.store.create(world.new_grab(team, Class::Sync)))).collect();
    // Polled once, each of them is in the queue.
    for create in &mut creates {
        assert!(futures::poll!(create).is_pending());
    }
    let (created, ()) = tokio::join!(join_all(creates), world.store.clone().close());
    assert!(created.into_iter().all(|created| matches!(created, Ok(Created::Pending))));
    let late = world.store.create(world.new_grab(team, Class::Sync)).await;
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
    let read = world.store.lots(team).await;
    assert!(matches!(read, Err(Error::Closed)), "{read:?}");
    let reopened = Store::open(&world.url).await.unwrap();
    assert_eq!(reopened.lots(team).await.unwrap()[0].held, 100);
    assert_eq!(reopened.verify_ledger().await.unwrap(), []);
    reopened.close().await;
}
