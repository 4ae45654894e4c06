//! T5: lost attempts.

use std::time::Duration;

use grabd_domain::grabs::{Class, FailureReason, State};
use grabd_domain::ids::{LeaseToken, SessionId};
use grabd_domain::limits::{LEASE_MARGIN, MAX_ATTEMPTS, RENDER_BUDGET};
use grabd_store::{BACK_OFF, Dead, Released};

use crate::harness::{NOW, completion, on_both};

on_both! {
    async fn a_lost_attempt_goes_back_to_its_old_place_after_a_pause(world) {
        let team = world.team(5).await;
        let lost = world.leased(team).await;
        let next = world.pending(team).await;
        assert_eq!(
            world.store.release(lost.grab, LeaseToken(world.id()), NOW).await.unwrap(),
            Released::Stale
        );
        assert_eq!(world.store.release(lost.grab, lost.token, NOW).await.unwrap(), Released::Again(1));
        assert_eq!(world.store.release(lost.grab, lost.token, NOW).await.unwrap(), Released::Stale);
        let grab = world.grab(team, lost.grab).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Pending, 1, 3));
        assert_eq!(world.credits(team).await, (5, 2));

        let paused = world.ask(Class::Sync, 2, NOW + BACK_OFF - Duration::from_millis(1));
        let leased = world.store.lease(paused).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [next]);
        world.store.release(next, leased[0].token, NOW - BACK_OFF).await.unwrap();
        let leased = world.store.lease(world.ask(Class::Sync, 2, NOW + BACK_OFF)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [lost.grab, next]);
        // Both lost attempts' pictures will go.
        assert_eq!(world.store.due_images(NOW + Duration::from_secs(999), 9).await.unwrap().len(), 2);
    }

    async fn after_the_last_attempt_it_is_given_up_for_free(world) {
        let team = world.team(1).await;
        let id = world.pending(team).await;
        for attempt in 1..=MAX_ATTEMPTS {
            let now = NOW + Duration::from_secs(u64::from(attempt));
            let leased = world.store.lease(world.ask(Class::Sync, 1, now)).await.unwrap().pop().unwrap();
            assert_eq!((leased.grab, leased.attempt), (id, attempt));
            let released = world.store.release(id, leased.token, now).await.unwrap();
            if attempt < MAX_ATTEMPTS {
                assert_eq!(released, Released::Again(attempt));
                continue;
            }
            let Released::GivenUp(grab) = released else { panic!("it is given up: {released:?}") };
            assert_eq!(grab, world.grab(team, id).await);
            let State::Failed { failure, .. } = grab.state else { panic!("it has failed") };
            assert_eq!((failure.reason, grab.attempts), (FailureReason::InternalError, MAX_ATTEMPTS));
        }
        assert_eq!(world.credits(team).await, (1, 0));
    }

    async fn the_leases_of_a_dead_session_are_given_back(world) {
        let team = world.team(9).await;
        for _ in 0..5 {
            world.pending(team).await;
        }
        let dead = world.ask(Class::Sync, 2, NOW);
        let lost = world.store.lease(dead.clone()).await.unwrap();
        let alive = world.store.lease(world.ask(Class::Sync, 2, NOW)).await.unwrap();
        assert_eq!(world.store.rescue(Dead::Session(SessionId(world.id())), NOW, 9).await.unwrap(), []);
        let mut released = world.store.rescue(Dead::Session(dead.session), NOW, 9).await.unwrap();
        released.sort_unstable_by_key(|(grab, _)| *grab);
        let expected: Vec<_> = lost.iter().map(|job| (job.grab, Released::Again(1))).collect();
        assert_eq!(released, expected);
        for job in &alive {
            assert!(world.store.complete(completion(job)).await.unwrap().is_some());
        }
    }

    async fn overdue_leases_are_given_back_a_few_at_a_time(world) {
        let team = world.team(9).await;
        for _ in 0..3 {
            world.leased(team).await;
        }
        let end = NOW + RENDER_BUDGET + LEASE_MARGIN;
        assert_eq!(world.store.rescue(Dead::Overdue, end - Duration::from_millis(1), 9).await.unwrap(), []);
        assert_eq!(world.store.rescue(Dead::Overdue, end, 2).await.unwrap().len(), 2);
        assert_eq!(world.store.rescue(Dead::Overdue, end, 2).await.unwrap().len(), 1);
        assert_eq!(world.store.rescue(Dead::Overdue, end, 2).await.unwrap(), []);
    }

    async fn a_new_life_gives_every_old_lease_back(world) {
        let team = world.team(9).await;
        let lost = world.leased(team).await;
        let waiting = world.pending(team).await;
        let next_life = grabd_store::Store::open(&world.url).await.unwrap();
        let released = next_life.rescue(Dead::All, NOW, 9).await.unwrap();
        assert_eq!(released, [(lost.grab, Released::Again(1))]);
        assert_eq!(next_life.complete(completion(&lost)).await.unwrap(), None);
        let leased = next_life.lease(world.ask(Class::Sync, 9, NOW + BACK_OFF)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [lost.grab, waiting]);
        next_life.close().await;
    }
}
