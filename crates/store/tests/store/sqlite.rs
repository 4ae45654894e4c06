//! What only SQLite has: one file, one writer, other processes beside it.

use std::os::unix::fs::PermissionsExt;

use futures::future::join_all;
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, ImageKey, Status};
use grabd_domain::ids::TeamId;
use grabd_store::{Created, Error, Grant, Granted, Kind, Store};
use sea_orm::{ConnectionTrait, TransactionTrait};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, World, completion};

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

/// An operator's command writes while the service does. Creates read before they write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_may_write_at_the_same_time() {
    let world = World::sqlite().await;
    let team = world.team(200).await;
    let beside = Store::open(&world.url).await.unwrap();
    let creates = (0..200).map(|n| {
        let store = if n % 2 == 0 { &world.store } else { &beside };
        store.create(world.new_grab(team, Class::Sync))
    });
    for created in join_all(creates).await {
        assert!(matches!(created, Ok(Created::Pending)), "{created:?}");
    }
    assert_eq!(world.credits(team).await, (200, 200));
    beside.close().await;
    world.end().await;
}

/// Another process holds the write lock: ours waits for it before it reads anything, and then sees what it wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_waits_for_another_ones_transaction() {
    let world = World::sqlite().await;
    let team = world.team(1).await;
    wait_for_another_writer(&world, team).await;
    world.end().await;
}

async fn wait_for_another_writer(world: &World, team: TeamId) {
    let raw = world.raw().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let waiting = TaskTracker::new().spawn({
        let store = world.store.clone();
        let new = world.new_grab(team, Class::Sync);
        async move { store.create(new).await }
    });
    // Reads go on meanwhile, of what was there before: enough of them for the create to have come as far as it can.
    for _ in 0..100 {
        assert_eq!(world.store.find_team(team).await.unwrap().unwrap().name, "A team");
    }
    assert!(!waiting.is_finished());
    other.commit().await.unwrap();
    let created = waiting.await.unwrap();
    assert!(matches!(created, Ok(Created::Pending)), "{created:?}");
    assert_eq!(world.store.find_team(team).await.unwrap().unwrap().name, "renamed");
    raw.close().await.unwrap();
}

/// Changes that share a commit do not share a fate, and one that fails late takes back what it had already written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_fails_undoes_only_itself() {
    let world = World::sqlite().await;
    let team = world.team(20).await;
    let mut leased = Vec::new();
    for _ in 0..20 {
        leased.push(world.leased(team).await);
    }
    // While another process holds the lock, all of them queue up and so share one commit.
    let raw = world.raw().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("UPDATE team SET name = 'renamed'").await.unwrap();
    let completes = leased.iter().enumerate().map(|(n, leased)| {
        let mut done = completion(leased);
        if n % 5 == 0 {
            // Found out only after the job was deleted.
            done.upload_key = ImageKey::new(99, "png");
        }
        world.store.complete(done)
    });
    let (ended, committed) = tokio::join!(join_all(completes), other.commit());
    committed.unwrap();
    for (n, (ended, leased)) in ended.into_iter().zip(&leased).enumerate() {
        let status = world.grab(team, leased.grab).await.status();
        match n % 5 {
            0 => assert!(matches!(ended, Err(Error::Inconsistent(_))) && status == Status::Processing, "{ended:?}"),
            _ => assert!(matches!(ended, Ok(Some(_))) && status == Status::Done, "{ended:?}"),
        }
    }
    assert_eq!(world.credits(team).await, (4, 4));
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
    // And its transactions are still such as wait for another writer before they read.
    world.meddle("UPDATE team SET name = 'A team'").await.unwrap();
    wait_for_another_writer(&world, team).await;
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
