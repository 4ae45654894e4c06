//! Idempotency keys.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::{Class, ImageKey, State};
use grabd_domain::idempotency::{IdempotencyKey, LIFE};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::grabs::{Created, FailureSource, NewGrab, NewPlaceholder, NewRecord, PlaceholderOutcome, Repeat};

use crate::harness::{NOW, TestDb, blocked, completion, facts, failing, on_both, spec};

fn record(key: &str, fingerprint: u8) -> NewRecord {
    NewRecord { key: IdempotencyKey::parse(key).unwrap(), fingerprint: [fingerprint; 32], only_of: None }
}

fn keyed(db: &TestDb, team: TeamId, class: Class, key: &str, fingerprint: u8) -> NewGrab {
    NewGrab { idempotency: Some(record(key, fingerprint)), ..db.new_grab(team, class) }
}

fn placeholder(db: &TestDb, team: TeamId, key: &str, delay: Duration) -> NewPlaceholder {
    let id = GrabId(db.id());
    let image = Some(ImageKey::new(id.0.as_u128(), "png"));
    let outcome = State::Done { finished_at: NOW + delay, image, size_bytes: 1, execution_ms: 1, metadata: facts() };
    NewPlaceholder {
        id,
        team,
        creator: None,
        spec: spec(),
        now: NOW,
        outcome,
        idempotency: Some(record(key, 1)),
        fingerprint: None,
        ceiling: None,
    }
}

/// Checks that `find_repeat` and `create` return the same outcome, and returns it.
async fn repeat(db: &TestDb, new: &NewGrab) -> Option<Repeat> {
    let asked = new.idempotency.as_ref().unwrap();
    let found = db.store.grabs().find_repeat(new.team, Live, asked, new.now).await.unwrap();
    let created = match db.store.grabs().create(new.clone()).await.unwrap() {
        Created::Repeated(repeat) => Some(repeat),
        Created::Pending | Created::Leased { .. } => None,
        refused @ (Created::QueueLimit { .. }
        | Created::WaitTooLong { .. }
        | Created::StorageFull
        | Created::CreditsExhausted
        | Created::TeamInactive) => {
            panic!("{refused:?}")
        }
    };
    assert_eq!(found, created);
    created
}

on_both! {
    async fn sync_key_is_in_flight_until_the_grab_ends_then_replays_it(db) {
        let team = db.team(3).await;
        let first = keyed(db, team, Class::Sync, "k", 1);
        assert_eq!(repeat(db, &first).await, None);
        let again = || keyed(db, team, Class::Sync, "k", 1);
        assert_eq!(repeat(db, &again()).await, Some(Repeat::InFlight));
        let leased = db.lease_one().await;
        assert_eq!(repeat(db, &again()).await, Some(Repeat::InFlight));
        let ended = db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap().grab;
        assert_eq!(repeat(db, &again()).await, Some(Repeat::Replay(Box::new(ended))));
        assert_eq!(db.credits(team).await, (2, 0));
    }

    async fn failed_grab_is_replayed(db) {
        let team = db.team(1).await;
        for (key, by) in [("lease", None), ("deadline", Some(FailureSource::Deadline))] {
            assert_eq!(repeat(db, &keyed(db, team, Class::Sync, key, 1)).await, None);
            let leased = db.lease_one().await;
            let by = by.unwrap_or(FailureSource::Lease(leased.token));
            let failed = failing(leased.grab, by, NOW + Duration::from_secs(60));
            let ended = db.store.grabs().fail(failed).await.unwrap().unwrap().grab;
            let asked = record(key, 1);
            let later = NOW + Duration::from_secs(60);
            let found = db.store.grabs().find_repeat(team, Live, &asked, later).await.unwrap();
            assert_eq!(found, Some(Repeat::Replay(Box::new(ended))));
        }
        assert_eq!(db.credits(team).await, (1, 0));
    }

    async fn async_grab_is_replayed_as_created(db) {
        let team = db.team(3).await;
        let first = keyed(db, team, Class::Async, "k", 1);
        let id = first.id;
        assert_eq!(repeat(db, &first).await, None);
        let begun = db.grab(team, id).await;
        let again = || keyed(db, team, Class::Async, "k", 1);
        let replay = Some(Repeat::Replay(Box::new(begun)));
        assert_eq!(repeat(db, &again()).await, replay);
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        assert_eq!(repeat(db, &again()).await, replay);
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(repeat(db, &again()).await, replay);
        // Also when the queue is full, because nothing is enqueued.
        let full = NewGrab { async_limit: 0, ..again() };
        assert_eq!(repeat(db, &full).await, replay);
    }

    async fn key_with_a_different_request_is_a_mismatch(db) {
        let team = db.team(3).await;
        assert_eq!(repeat(db, &keyed(db, team, Class::Sync, "k", 1)).await, None);
        // A mismatch takes precedence, whether the grab is open or ended.
        let other = || keyed(db, team, Class::Sync, "k", 2);
        assert_eq!(repeat(db, &other()).await, Some(Repeat::Mismatch));
        let leased = db.lease_one().await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(repeat(db, &other()).await, Some(Repeat::Mismatch));
        assert_eq!(repeat(db, &keyed(db, team, Class::Sync, "K", 2)).await, None);
    }

    async fn keys_are_scoped_to_team_and_environment(db) {
        let (team, other) = (db.team(3).await, db.team(3).await);
        assert_eq!(repeat(db, &keyed(db, team, Class::Sync, "k", 1)).await, None);
        assert_eq!(repeat(db, &keyed(db, other, Class::Sync, "k", 2)).await, None);
        assert_eq!(db.store.grabs().find_repeat(team, Test, &record("k", 1), NOW).await.unwrap(), None);
        let test = NewPlaceholder { idempotency: Some(record("k", 3)), ..placeholder(db, team, "k", Duration::ZERO) };
        assert_eq!(db.store.grabs().create_placeholder(test).await.unwrap(), PlaceholderOutcome::Stored);
        assert_eq!(db.store.grabs().find_repeat(team, Test, &record("k", 1), NOW).await.unwrap(), Some(Repeat::Mismatch));
    }

    async fn rejected_create_stores_no_key(db) {
        let team = db.team(0).await;
        let refused = db.store.grabs().create(keyed(db, team, Class::Async, "k", 1)).await.unwrap();
        assert_eq!(refused, Created::CreditsExhausted);
        db.grant(team, grabd_domain::credits::LotKind::Prepaid, 1, None).await;
        let full = NewGrab { async_limit: 0, ..keyed(db, team, Class::Async, "k", 1) };
        assert_eq!(db.store.grabs().create(full).await.unwrap(), Created::QueueLimit { limit: 0 });
        assert_eq!(db.store.grabs().find_repeat(team, Live, &record("k", 2), NOW).await.unwrap(), None);
        assert_eq!(repeat(db, &keyed(db, team, Class::Async, "k", 2)).await, None);
    }

    async fn key_expires_after_a_day_unless_its_grab_is_open(db) {
        let team = db.team(5).await;
        let day = NOW + LIFE;
        let just_before = day - Duration::from_millis(1);
        let at = |now, fingerprint| NewGrab { now, ..keyed(db, team, Class::Sync, "k", fingerprint) };
        assert_eq!(repeat(db, &at(NOW, 1)).await, None);
        // The key of an open grab neither expires nor is purged.
        assert_eq!(repeat(db, &at(day, 1)).await, Some(Repeat::InFlight));
        assert_eq!(db.store.grabs().purge_keys(day, 9).await.unwrap(), 0);
        let leased = db.lease_one().await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(db.store.grabs().purge_keys(just_before, 9).await.unwrap(), 0);
        assert!(matches!(repeat(db, &at(just_before, 1)).await, Some(Repeat::Replay(_))));
        // An expired key can be used for another request.
        let next = at(day, 2);
        let id = next.id;
        assert_eq!(repeat(db, &next).await, None);
        assert_eq!(repeat(db, &at(day, 1)).await, Some(Repeat::Mismatch));
        assert_eq!(repeat(db, &at(day, 2)).await, Some(Repeat::InFlight));
        assert_ne!(id, leased.grab);
    }

    async fn purge_keys_deletes_the_oldest_first(db) {
        let team = db.team(9).await;
        for (at, key) in [(2, "c"), (0, "a"), (1, "b")] {
            let now = NOW + Duration::from_secs(at);
            let new = NewGrab { now, ..keyed(db, team, Class::Sync, key, 1) };
            assert_eq!(repeat(db, &new).await, None);
        }
        for leased in db.store.grabs().lease(db.lease_request(Class::Sync, 9, NOW + Duration::from_secs(2))).await.unwrap() {
            db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        }
        let over = NOW + LIFE + Duration::from_secs(1);
        assert_eq!(db.store.grabs().purge_keys(over, 1).await.unwrap(), 1);
        let stored = |key: &'static str| async move {
            let found = db.store.grabs().find_repeat(team, Live, &record(key, 1), NOW + Duration::from_secs(2)).await;
            found.unwrap().is_some()
        };
        assert_eq!([stored("a").await, stored("b").await, stored("c").await], [false, true, true]);
        assert_eq!(db.store.grabs().purge_keys(over, 9).await.unwrap(), 1);
        assert_eq!([stored("a").await, stored("b").await, stored("c").await], [false, false, true]);
    }

    async fn deleted_or_cancelled_grab_releases_its_key(db) {
        let team = db.team(5).await;
        let first = keyed(db, team, Class::Sync, "k", 1);
        assert_eq!(repeat(db, &first).await, None);
        let leased = db.lease_one().await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        // Other keys stay.
        assert_eq!(repeat(db, &keyed(db, team, Class::Sync, "other", 1)).await, None);
        assert!(db.store.grabs().delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        let second = keyed(db, team, Class::Sync, "k", 2);
        assert_eq!(repeat(db, &second).await, None);
        assert!(db.store.grabs().fail(failing(second.id, FailureSource::Cancel, NOW)).await.unwrap().is_some());
        assert_eq!(repeat(db, &keyed(db, team, Class::Sync, "k", 3)).await, None);
        assert_eq!(repeat(db, &keyed(db, team, Class::Sync, "other", 1)).await, Some(Repeat::InFlight));
    }

    async fn concurrent_creates_with_one_key_make_one_grab(db) {
        let team = db.team(20).await;
        for class in Class::ALL {
            let key = format!("{class:?}");
            let news: Vec<_> = (0..20).map(|_| keyed(db, team, class, &key, 1)).collect();
            let created = join_all(news.into_iter().map(|new| db.store.grabs().create(new))).await;
            let (mut made, mut repeated) = (0, 0);
            for created in created {
                let created = created.unwrap();
                let expected = match (&created, class) {
                    (Created::Repeated(Repeat::InFlight), Class::Sync) => true,
                    (Created::Repeated(Repeat::Replay(_)), Class::Async) => true,
                    _ => created == Created::Pending,
                };
                assert!(expected, "{created:?}");
                *if created == Created::Pending { &mut made } else { &mut repeated } += 1;
            }
            assert_eq!((made, repeated), (1, 19));
        }
        assert_eq!(db.credits(team).await, (20, 2));
    }

    async fn concurrent_placeholders_with_one_key_make_one_grab(db) {
        let team = db.team(0).await;
        let news: Vec<_> = (0..20).map(|_| placeholder(db, team, "k", Duration::ZERO)).collect();
        let stored = join_all(news.into_iter().map(|new| db.store.grabs().create_placeholder(new))).await;
        let (mut made, mut replayed) = (0, Vec::new());
        for stored in stored {
            match stored.unwrap() {
                PlaceholderOutcome::Stored => made += 1,
                PlaceholderOutcome::Repeated(Repeat::Replay(grab)) => replayed.push(grab),
                PlaceholderOutcome::Repeated(other) => panic!("{other:?}"),
                PlaceholderOutcome::StorageFull => panic!("no ceiling was given"),
            }
        }
        assert_eq!((made, replayed.len()), (1, 19));
        assert!(replayed.iter().all(|grab| *grab == replayed[0]));
        let grab = db.store.grabs().find_grab(team, Test, replayed[0].id).await.unwrap().unwrap();
        assert_eq!(*replayed[0], grab);
    }

    async fn delayed_placeholder_is_in_flight_until_its_end(db) {
        let team = db.team(0).await;
        let delay = Duration::from_secs(3);
        assert_eq!(db.store.grabs().create_placeholder(placeholder(db, team, "k", delay)).await.unwrap(), PlaceholderOutcome::Stored);
        let again = placeholder(db, team, "k", delay);
        assert_eq!(db.store.grabs().create_placeholder(again).await.unwrap(), PlaceholderOutcome::Repeated(Repeat::InFlight));
        let asked = record("k", 1);
        let before = db.store.grabs().find_repeat(team, Test, &asked, NOW + delay - Duration::from_millis(1)).await.unwrap();
        assert_eq!(before, Some(Repeat::InFlight));
        let ended = db.store.grabs().find_repeat(team, Test, &asked, NOW + delay).await.unwrap();
        assert!(matches!(ended, Some(Repeat::Replay(_))), "{ended:?}");
        // A failed placeholder has ended when it is stored.
        let outcome = State::Failed { finished_at: NOW, failure: blocked(), metadata: facts() };
        let failed = NewPlaceholder { outcome, ..placeholder(db, team, "failed", delay) };
        assert_eq!(db.store.grabs().create_placeholder(failed.clone()).await.unwrap(), PlaceholderOutcome::Stored);
        let repeated = db.store.grabs().create_placeholder(failed).await.unwrap();
        assert!(matches!(repeated, PlaceholderOutcome::Repeated(Repeat::Replay(_))));
    }
}
