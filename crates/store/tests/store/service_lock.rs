//! One service for each database.

use std::time::Duration;

use grabd_store::{OtherService, Store};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use tokio_util::task::TaskTracker;

use crate::harness::TestDb;

/// The key of the lock, with the condition that finds its holders and waiters.
const LOCK: i64 = 0x6772_6162_6422;
const OF_THE_LOCK: &str = "locktype = 'advisory' AND objsubid = 1 \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_service_on_a_database_is_refused_until_the_first_exits() {
    let db = TestDb::postgres().await;
    let held = db.store.lock_service(Duration::ZERO).await.unwrap().unwrap();
    let second = Store::open(&db.url).await.unwrap();
    let OtherService { address, since } = second.lock_service(Duration::ZERO).await.unwrap().unwrap_err();
    assert!(!address.is_empty() && since.starts_with("20"), "{address} {since}");
    // Commands need no lock.
    second.migrate().await.unwrap();
    assert_eq!(second.accounts().list_teams().await.unwrap(), []);
    // A lock of another database is not affected.
    let elsewhere = TestDb::postgres().await;
    elsewhere.store.lock_service(Duration::ZERO).await.unwrap().unwrap().release().await;
    let (taken, ()) = tokio::join!(second.lock_service(LIMIT), held.release());
    let taken = taken.unwrap().unwrap();
    db.store.lock_service(Duration::ZERO).await.unwrap().unwrap_err();
    taken.release().await;
    db.store.lock_service(Duration::ZERO).await.unwrap().unwrap().release().await;
    second.close().await;
    elsewhere.finish().await;
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_is_not_needed_for_sqlite_and_released_at_once() {
    let db = TestDb::sqlite().await;
    let held = db.store.lock_service(Duration::ZERO).await.unwrap().unwrap();
    tokio::time::timeout(LIMIT, held.release()).await.unwrap();
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_lock_is_taken_again() {
    let db = TestDb::postgres().await;
    let held = db.store.lock_service(Duration::ZERO).await.unwrap().unwrap();
    let other = Database::connect(&db.url).await.unwrap();
    let first = wait_for(&other, "granted").await;
    end(&other, first).await;
    let again = tokio::time::timeout(LIMIT, async {
        loop {
            match wait_for(&other, "granted").await {
                pid if pid == first => {}
                pid => return pid,
            }
        }
    });
    assert_ne!(again.await.unwrap(), first);
    held.release().await;
    other.close().await.unwrap();
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_that_another_service_took_is_lost() {
    let db = TestDb::postgres().await;
    let held = db.store.lock_service(Duration::ZERO).await.unwrap().unwrap();
    let other = Database::connect(&db.url).await.unwrap();
    let first = wait_for(&other, "granted").await;
    // The server gives the lock to the one that waits for it.
    let (url, tasks) = (db.url.clone(), TaskTracker::new());
    let waiting = tasks.spawn(async move {
        let second = Database::connect(url).await.unwrap();
        second.execute_unprepared(&format!("SELECT pg_advisory_lock({LOCK})")).await.unwrap();
        second
    });
    wait_for(&other, "NOT granted").await;
    end(&other, first).await;
    let second = tokio::time::timeout(LIMIT, waiting).await.unwrap().unwrap();
    tokio::time::timeout(LIMIT, held.lost()).await.unwrap();
    tokio::time::timeout(LIMIT, held.release()).await.unwrap();
    for connection in [other, second] {
        connection.close().await.unwrap();
    }
    db.finish().await;
}

/// The process id of the session that holds the lock or waits for it, as soon as there is one.
async fn wait_for(connection: &DatabaseConnection, condition: &str) -> i32 {
    let query = format!("SELECT pid FROM pg_locks WHERE {OF_THE_LOCK} AND {condition}");
    let wait = async {
        loop {
            let query = Statement::from_string(connection.get_database_backend(), query.clone());
            if let Some(row) = connection.query_one_raw(query).await.unwrap() {
                return row.try_get("", "pid").unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.unwrap()
}

async fn end(connection: &DatabaseConnection, pid: i32) {
    connection.execute_unprepared(&format!("SELECT pg_terminate_backend({pid})")).await.unwrap();
}
