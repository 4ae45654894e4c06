use grabd_domain::Timestamp;

use super::*;
use crate::random;

async fn store() -> Store {
    let store = Store::open("sqlite::memory:").await.unwrap();
    store.migrate().await.unwrap();
    store
}

fn key() -> Key {
    (random::team_id(Timestamp::from_ms(0)), Environment::Live)
}

const fn per_minute(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

#[tokio::test]
async fn two_processes_together_admit_the_limit() {
    let (store, key, limit) = (store().await, key(), per_minute(60));
    let processes = [SharedLimits::default(), SharedLimits::default()];
    let start = Instant::now();
    let mut admitted = 0;
    let mut refused = [false; 2];
    while refused != [true; 2] {
        for (process, refused) in processes.iter().zip(&mut refused) {
            match process.take(&store, key, limit).await.unwrap() {
                Ok(_) => admitted += 1,
                Err(wait) => {
                    assert!(wait <= Duration::from_secs(1), "{wait:?}");
                    *refused = true;
                }
            }
        }
    }
    // One more for each second that passed.
    let refilled = 1 + start.elapsed().as_secs();
    assert!((60..=60 + refilled).contains(&admitted), "{admitted}");
    let other = (key.0, Environment::Test);
    assert!(processes[0].take(&store, other, limit).await.unwrap().is_ok(), "another environment has its own limit");
    // It refills in ten milliseconds then, which may have passed; otherwise it is asked about again a little later. The limit
    // before would be used up for most of a second.
    let changed = processes[0].take(&store, key, per_minute(6000)).await.unwrap();
    let is_soon = |wait: Duration| wait <= RETRY_AFTER;
    assert!(changed.is_ok() || changed.is_err_and(is_soon), "a changed limit is in effect at once: {changed:?}");
    store.close().await;
}

#[tokio::test]
async fn several_requests_are_admitted_at_once_or_none() {
    let (store, key, limit) = (store().await, key(), per_minute(60));
    let processes = [SharedLimits::default(), SharedLimits::default()];
    let take = |process: usize, count| processes[process].take_several(&store, key, limit, per_minute(count));
    assert_eq!(take(0, 49).await, Ok(Ok(11)));
    let wait = take(1, 49).await.unwrap().unwrap_err();
    assert!((30..=38).contains(&wait.as_secs()), "one each second: {wait:?}");
    assert!(processes[1].take(&store, key, limit).await.unwrap().is_ok(), "single requests are not held back");
    // One more for each second that passed.
    let left = take(0, 8).await.unwrap().unwrap();
    assert!((2..=11).contains(&left), "the refused ones were not taken: {left}");
    let other = (random::team_id(Timestamp::from_ms(0)), Environment::Live);
    let most = processes[0].take_several(&store, other, per_minute(20), per_minute(49)).await;
    assert_eq!(most, Ok(Ok(0)), "at most the whole limit");
    store.close().await;
}

#[test]
fn busy_process_asks_rarely_and_an_idle_one_holds_nothing_back() {
    let (start, limit) = (Instant::now(), per_minute(600));
    let mut lease = Lease::none(limit, start);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        let wanted = lease.next_size(start);
        sizes.push(wanted.get());
        lease.renew(wanted, RateLease { granted: wanted.get(), remaining: 7, wait: Duration::ZERO }, start);
    }
    assert_eq!(sizes, [10, 20, 40, 60, 60]);
    assert_eq!(lease.next_size(start + ASK_EVERY).get(), 30);
    assert_eq!(lease.take(start), Some(Ok(66)), "59 are left of the lease");
    assert_eq!(lease.take(start + LEASE_FOR), None, "the lease is too old");
    // A used-up limit is not asked about again at once, although the next request may be admitted soon.
    let wait = Duration::from_millis(10);
    lease.renew(limit, RateLease { granted: 1, remaining: 0, wait }, start);
    assert_eq!(lease.take(start), Some(Ok(0)));
    assert_eq!(lease.take(start), Some(Err(RETRY_AFTER)));
    assert_eq!(lease.take(start + RETRY_AFTER), None);
}

#[tokio::test]
async fn process_counts_for_itself_when_the_database_fails() {
    let (store, key, limit) = (store().await, key(), per_minute(60));
    let shared = SharedLimits::default();
    assert!(shared.take(&store, key, limit).await.unwrap().is_ok());
    store.clone().close().await;
    assert_eq!(shared.take(&store, key, limit).await, Err(Unknown));
    assert!(shared.is_away(Instant::now()), "it is not asked for each request");
}

#[tokio::test]
async fn number_of_remembered_leases_is_bounded() {
    let (store, limit) = (store().await, per_minute(60));
    let shared = SharedLimits::default();
    let now = Instant::now();
    for _ in 0..MAX_CELLS {
        let mut lease = Lease::none(limit, now);
        lease.used_up_until = Some(now + Duration::from_secs(600));
        lock(&shared.cells).insert(key(), Arc::new(Cell::new(lease)));
    }
    assert_eq!(shared.take(&store, key(), limit).await, Err(Unknown));
    forget_unused(&mut lock(&shared.cells), now + Duration::from_secs(600));
    assert!(lock(&shared.cells).is_empty());
    assert!(shared.take(&store, key(), limit).await.unwrap().is_ok());
    store.close().await;
}
