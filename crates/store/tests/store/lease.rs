//! T2: who takes what, and until when.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::grabs::{Class, State};
use grabd_domain::limits::{LEASE_FLOOR, LEASE_MARGIN, RENDER_BUDGET};
use grabd_store::{Dead, NewGrab, Released};

use crate::harness::{NOW, on_both, spec};

on_both! {
    async fn slots_take_the_head_of_their_own_queue(world) {
        let team = world.team(10).await;
        let first = world.pending(team).await;
        let asynchronous = world.new_grab(team, Class::Async);
        let apart = asynchronous.id;
        world.store.create(asynchronous).await.unwrap();
        let second = world.pending(team).await;
        world.pending(team).await;

        let ask = world.ask(Class::Sync, 2, NOW);
        let leased = world.store.lease(ask.clone()).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [first, second]);
        assert_eq!(leased.iter().map(|job| job.token).collect::<Vec<_>>(), [ask.slots[0].0, ask.slots[1].0]);
        let head = &leased[0];
        assert_eq!((head.team, head.class, head.attempt, &head.spec), (team, Class::Sync, 1, &spec()));
        assert_ne!(leased[0].upload_key, leased[1].upload_key);
        let grab = world.grab(team, first).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Processing, 1, 2));

        let leased = world.store.lease(world.ask(Class::Async, 5, NOW)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [apart]);
        assert_eq!(world.store.lease(world.ask(Class::Async, 5, NOW)).await.unwrap(), []);
        assert_eq!(world.store.lease(world.ask(Class::Sync, 0, NOW)).await.unwrap(), []);
    }

    async fn what_cannot_be_finished_in_time_is_left_alone(world) {
        let team = world.team(2).await;
        let new = world.new_grab(team, Class::Sync);
        let deadline = new.deadline_at;
        world.store.create(new).await.unwrap();
        assert_eq!(world.store.lease(world.ask(Class::Sync, 1, deadline - LEASE_FLOOR)).await.unwrap(), []);
        let just_in_time = deadline - LEASE_FLOOR - Duration::from_millis(1);
        assert_eq!(world.store.lease(world.ask(Class::Sync, 1, just_in_time)).await.unwrap().len(), 1);
    }

    async fn a_lease_outlives_its_render_by_a_margin(world) {
        let team = world.team(2).await;
        // One with time to spare, one whose deadline cuts its render short.
        let spare = NewGrab { deadline_at: NOW + RENDER_BUDGET * 4, ..world.new_grab(team, Class::Sync) };
        let short = NewGrab { deadline_at: NOW + RENDER_BUDGET / 2, ..world.new_grab(team, Class::Sync) };
        let ends = [NOW + RENDER_BUDGET + LEASE_MARGIN, NOW + RENDER_BUDGET / 2 + LEASE_MARGIN];
        for (new, end) in [spare, short].into_iter().zip(ends) {
            let id = new.id;
            world.store.create(new).await.unwrap();
            assert_eq!(world.lease_one().await.grab, id);
            let before = end - Duration::from_millis(1);
            assert_eq!(world.store.rescue(Dead::Overdue, before, 9).await.unwrap(), []);
            assert_eq!(world.store.rescue(Dead::Overdue, end, 9).await.unwrap(), [(id, Released::Again(1))]);
            let again = world.store.lease(world.ask(Class::Sync, 1, end)).await.unwrap();
            if let Some(again) = again.first() {
                assert_eq!(again.attempt, 2);
            }
        }
    }

    async fn no_job_is_leased_twice_at_once(world) {
        let team = world.team(60).await;
        for _ in 0..60 {
            world.pending(team).await;
        }
        let asks = (0..16).map(|_| world.store.lease(world.ask(Class::Sync, 5, NOW)));
        let mut grabs = Vec::new();
        for leased in join_all(asks).await {
            grabs.extend(leased.unwrap().into_iter().map(|job| job.grab));
        }
        // Those who asked while all were locked got fewer; whoever asks now gets the rest.
        while let Some(job) = world.store.lease(world.ask(Class::Sync, 1, NOW)).await.unwrap().pop() {
            grabs.push(job.grab);
        }
        grabs.sort_unstable();
        grabs.dedup();
        assert_eq!(grabs.len(), 60);
    }
}
