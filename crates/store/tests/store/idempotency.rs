//! A key makes one grab, and what it is answered is read off that grab.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::{Class, ImageKey, State};
use grabd_domain::idempotency::{IdempotencyKey, LIFE};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::{By, Created, NewGrab, NewPlaceholder, NewRecord, Repeat};

use crate::harness::{NOW, World, blocked, completion, facts, failing, on_both, spec};

fn record(key: &str, fingerprint: u8) -> NewRecord {
    NewRecord { key: IdempotencyKey::parse(key).unwrap(), fingerprint: [fingerprint; 32] }
}

fn keyed(world: &World, team: TeamId, class: Class, key: &str, fingerprint: u8) -> NewGrab {
    NewGrab { idempotency: Some(record(key, fingerprint)), ..world.new_grab(team, class) }
}

fn placeholder(world: &World, team: TeamId, key: &str, takes: Duration) -> NewPlaceholder {
    let id = GrabId(world.id());
    let image = Some(ImageKey::new(id.0.as_u128(), "png"));
    let outcome = State::Done { finished_at: NOW + takes, image, size_bytes: 1, execution_ms: 1, facts: facts() };
    NewPlaceholder { id, team, spec: spec(), now: NOW, outcome, idempotency: Some(record(key, 1)) }
}

/// What a look and a create come to, which must be the same.
async fn repeat(world: &World, new: &NewGrab) -> Option<Repeat> {
    let asked = new.idempotency.as_ref().unwrap();
    let found = world.store.find_repeat(new.team, Live, asked, new.now).await.unwrap();
    let created = match world.store.create(new.clone()).await.unwrap() {
        Created::Repeated(repeat) => Some(repeat),
        Created::Pending | Created::Leased { .. } => None,
        refused @ (Created::QueueLimit { .. } | Created::CreditsExhausted | Created::TeamInactive) => {
            panic!("{refused:?}")
        }
    };
    assert_eq!(found, created);
    created
}

on_both! {
    async fn a_key_is_in_flight_until_its_grab_has_ended_and_then_answers_with_it(world) {
        let team = world.team(3).await;
        let first = keyed(world, team, Class::Sync, "k", 1);
        assert_eq!(repeat(world, &first).await, None);
        let again = || keyed(world, team, Class::Sync, "k", 1);
        assert_eq!(repeat(world, &again()).await, Some(Repeat::InFlight));
        let leased = world.lease_one().await;
        assert_eq!(repeat(world, &again()).await, Some(Repeat::InFlight));
        let ended = world.store.complete(completion(&leased)).await.unwrap().unwrap().grab;
        assert_eq!(repeat(world, &again()).await, Some(Repeat::Replay(Box::new(ended))));
        assert_eq!(world.credits(team).await, (2, 0));
    }

    async fn a_failed_grab_is_answered_as_it_failed(world) {
        let team = world.team(1).await;
        for (key, by) in [("lease", None), ("deadline", Some(By::Deadline))] {
            assert_eq!(repeat(world, &keyed(world, team, Class::Sync, key, 1)).await, None);
            let leased = world.lease_one().await;
            let by = by.unwrap_or(By::Lease(leased.token));
            let failed = failing(leased.grab, by, NOW + Duration::from_secs(60));
            let ended = world.store.fail(failed).await.unwrap().unwrap().grab;
            let asked = record(key, 1);
            let later = NOW + Duration::from_secs(60);
            let found = world.store.find_repeat(team, Live, &asked, later).await.unwrap();
            assert_eq!(found, Some(Repeat::Replay(Box::new(ended))));
        }
        assert_eq!(world.credits(team).await, (1, 0));
    }

    async fn an_asynchronous_one_is_answered_as_it_began_whatever_became_of_it(world) {
        let team = world.team(3).await;
        let first = keyed(world, team, Class::Async, "k", 1);
        let id = first.id;
        assert_eq!(repeat(world, &first).await, None);
        let begun = world.grab(team, id).await;
        let again = || keyed(world, team, Class::Async, "k", 1);
        let replay = Some(Repeat::Replay(Box::new(begun)));
        assert_eq!(repeat(world, &again()).await, replay);
        let leased = world.store.lease(world.ask(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        assert_eq!(repeat(world, &again()).await, replay);
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(repeat(world, &again()).await, replay);
        // Also when the queue is full: nothing new would queue.
        let full = NewGrab { async_limit_default: 0, ..again() };
        assert_eq!(repeat(world, &full).await, replay);
    }

    async fn a_key_stands_for_one_request(world) {
        let team = world.team(3).await;
        assert_eq!(repeat(world, &keyed(world, team, Class::Sync, "k", 1)).await, None);
        // In flight or ended: the other request is told so first.
        let other = || keyed(world, team, Class::Sync, "k", 2);
        assert_eq!(repeat(world, &other()).await, Some(Repeat::Mismatch));
        let leased = world.lease_one().await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(repeat(world, &other()).await, Some(Repeat::Mismatch));
        assert_eq!(repeat(world, &keyed(world, team, Class::Sync, "K", 2)).await, None);
    }

    async fn keys_are_of_one_team_and_environment(world) {
        let (team, other) = (world.team(3).await, world.team(3).await);
        assert_eq!(repeat(world, &keyed(world, team, Class::Sync, "k", 1)).await, None);
        assert_eq!(repeat(world, &keyed(world, other, Class::Sync, "k", 2)).await, None);
        assert_eq!(world.store.find_repeat(team, Test, &record("k", 1), NOW).await.unwrap(), None);
        let test = NewPlaceholder {
            idempotency: Some(record("k", 3)),
            ..placeholder(world, team, "k", Duration::ZERO)
        };
        assert_eq!(world.store.create_placeholder(test).await.unwrap(), None);
        assert_eq!(world.store.find_repeat(team, Test, &record("k", 1), NOW).await.unwrap(), Some(Repeat::Mismatch));
    }

    async fn what_creates_nothing_keeps_no_key(world) {
        let team = world.team(0).await;
        let refused = world.store.create(keyed(world, team, Class::Async, "k", 1)).await.unwrap();
        assert_eq!(refused, Created::CreditsExhausted);
        world.grant(team, grabd_domain::credits::LotKind::Prepaid, 1, None).await;
        let full = NewGrab { async_limit_default: 0, ..keyed(world, team, Class::Async, "k", 1) };
        assert_eq!(world.store.create(full).await.unwrap(), Created::QueueLimit { limit: 0 });
        assert_eq!(world.store.find_repeat(team, Live, &record("k", 2), NOW).await.unwrap(), None);
        assert_eq!(repeat(world, &keyed(world, team, Class::Async, "k", 2)).await, None);
    }

    async fn a_key_lives_a_day_and_as_long_as_its_grab_is_open(world) {
        let team = world.team(5).await;
        let day = NOW + LIFE;
        let just_before = day - Duration::from_millis(1);
        let at = |now, fingerprint| NewGrab { now, ..keyed(world, team, Class::Sync, "k", fingerprint) };
        assert_eq!(repeat(world, &at(NOW, 1)).await, None);
        // Open: it does not expire, nor is it swept away.
        assert_eq!(repeat(world, &at(day, 1)).await, Some(Repeat::InFlight));
        assert_eq!(world.store.purge_keys(day, 9).await.unwrap(), 0);
        let leased = world.lease_one().await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(world.store.purge_keys(just_before, 9).await.unwrap(), 0);
        assert!(matches!(repeat(world, &at(just_before, 1)).await, Some(Repeat::Replay(_))));
        // Over: another request may have it, and has it from then on.
        let next = at(day, 2);
        let id = next.id;
        assert_eq!(repeat(world, &next).await, None);
        assert_eq!(repeat(world, &at(day, 1)).await, Some(Repeat::Mismatch));
        assert_eq!(repeat(world, &at(day, 2)).await, Some(Repeat::InFlight));
        assert_ne!(id, leased.grab);
    }

    async fn old_keys_are_swept_away_the_oldest_first(world) {
        let team = world.team(9).await;
        for (at, key) in [(2, "c"), (0, "a"), (1, "b")] {
            let now = NOW + Duration::from_secs(at);
            let new = NewGrab { now, ..keyed(world, team, Class::Sync, key, 1) };
            assert_eq!(repeat(world, &new).await, None);
        }
        for leased in world.store.lease(world.ask(Class::Sync, 9, NOW + Duration::from_secs(2))).await.unwrap() {
            world.store.complete(completion(&leased)).await.unwrap().unwrap();
        }
        let over = NOW + LIFE + Duration::from_secs(1);
        assert_eq!(world.store.purge_keys(over, 1).await.unwrap(), 1);
        let kept = |key: &'static str| async move {
            let found = world.store.find_repeat(team, Live, &record(key, 1), NOW + Duration::from_secs(2)).await;
            found.unwrap().is_some()
        };
        assert_eq!([kept("a").await, kept("b").await, kept("c").await], [false, true, true]);
        assert_eq!(world.store.purge_keys(over, 9).await.unwrap(), 1);
        assert_eq!([kept("a").await, kept("b").await, kept("c").await], [false, false, true]);
    }

    async fn a_deleted_or_cancelled_grab_lets_go_of_its_key(world) {
        let team = world.team(5).await;
        let first = keyed(world, team, Class::Sync, "k", 1);
        assert_eq!(repeat(world, &first).await, None);
        let leased = world.lease_one().await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        // Of all keys only this one's.
        assert_eq!(repeat(world, &keyed(world, team, Class::Sync, "other", 1)).await, None);
        assert!(world.store.delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        let second = keyed(world, team, Class::Sync, "k", 2);
        assert_eq!(repeat(world, &second).await, None);
        assert!(world.store.fail(failing(second.id, By::Cancel, NOW)).await.unwrap().is_some());
        assert_eq!(repeat(world, &keyed(world, team, Class::Sync, "k", 3)).await, None);
        assert_eq!(repeat(world, &keyed(world, team, Class::Sync, "other", 1)).await, Some(Repeat::InFlight));
    }

    async fn twenty_at_once_with_one_key_make_one_grab_and_hold_one_credit(world) {
        let team = world.team(20).await;
        for class in Class::ALL {
            let key = format!("{class:?}");
            let news: Vec<_> = (0..20).map(|_| keyed(world, team, class, &key, 1)).collect();
            let created = join_all(news.into_iter().map(|new| world.store.create(new))).await;
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
        assert_eq!(world.credits(team).await, (20, 2));
    }

    async fn twenty_placeholders_at_once_with_one_key_are_one(world) {
        let team = world.team(0).await;
        let news: Vec<_> = (0..20).map(|_| placeholder(world, team, "k", Duration::ZERO)).collect();
        let kept = join_all(news.into_iter().map(|new| world.store.create_placeholder(new))).await;
        let (mut made, mut replayed) = (0, Vec::new());
        for kept in kept {
            match kept.unwrap() {
                None => made += 1,
                Some(Repeat::Replay(grab)) => replayed.push(grab),
                Some(other) => panic!("{other:?}"),
            }
        }
        assert_eq!((made, replayed.len()), (1, 19));
        assert!(replayed.iter().all(|grab| *grab == replayed[0]));
        let grab = world.store.find_grab(team, Test, replayed[0].id).await.unwrap().unwrap();
        assert_eq!(*replayed[0], grab);
    }

    async fn a_placeholder_that_ends_later_is_in_flight_until_then(world) {
        let team = world.team(0).await;
        let takes = Duration::from_secs(3);
        assert_eq!(world.store.create_placeholder(placeholder(world, team, "k", takes)).await.unwrap(), None);
        let again = placeholder(world, team, "k", takes);
        assert_eq!(world.store.create_placeholder(again).await.unwrap(), Some(Repeat::InFlight));
        let asked = record("k", 1);
        let before = world.store.find_repeat(team, Test, &asked, NOW + takes - Duration::from_millis(1)).await.unwrap();
        assert_eq!(before, Some(Repeat::InFlight));
        let ended = world.store.find_repeat(team, Test, &asked, NOW + takes).await.unwrap();
        assert!(matches!(ended, Some(Repeat::Replay(_))), "{ended:?}");
        // A failed one has ended when it is kept.
        let outcome = State::Failed { finished_at: NOW, failure: blocked(), facts: facts() };
        let failed = NewPlaceholder { outcome, ..placeholder(world, team, "failed", takes) };
        assert_eq!(world.store.create_placeholder(failed.clone()).await.unwrap(), None);
        assert!(matches!(world.store.create_placeholder(failed).await.unwrap(), Some(Repeat::Replay(_))));
    }
}
