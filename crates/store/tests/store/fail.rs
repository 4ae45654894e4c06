//! T4, T6 and T7: the three rights to end a grab without a picture.

use std::time::Duration;

use grabd_domain::grabs::{Class, State};
use grabd_domain::ids::LeaseToken;
use grabd_domain::limits::{LEASE_MARGIN, RENDER_BUDGET, SYNC_DEADLINE};
use grabd_store::{By, timed_out};

use crate::harness::{NOW, blocked, completion, facts, failing, on_both};

on_both! {
    async fn the_lease_holder_fails_it_and_the_credit_is_free(world) {
        let team = world.team(1).await;
        let leased = world.leased(team).await;
        let stranger = By::Lease(LeaseToken(world.id()));
        assert_eq!(world.store.fail(failing(leased.grab, stranger, NOW)).await.unwrap(), None);
        let ended = world.store.fail(failing(leased.grab, By::Lease(leased.token), NOW)).await.unwrap().unwrap();
        assert_eq!(ended.grab.state, State::Failed { finished_at: NOW, failure: blocked(), facts: facts() });
        assert_eq!((ended.grab.attempts, ended.grab.revision()), (1, 4));
        assert_eq!(world.grab(team, leased.grab).await, ended.grab);
        assert_eq!(world.credits(team).await, (1, 0));
        assert_eq!(world.store.fail(failing(leased.grab, By::Lease(leased.token), NOW)).await.unwrap(), None);
        assert_eq!(world.store.complete(completion(&leased)).await.unwrap(), None);
        assert_eq!(world.credits(team).await, (1, 0));
        world.pending(team).await;
    }

    async fn its_picture_goes_when_it_can_no_longer_be_on_the_way(world) {
        let team = world.team(1).await;
        let leased = world.leased(team).await;
        world.store.fail(failing(leased.grab, By::Lease(leased.token), NOW)).await.unwrap().unwrap();
        let lease_ends = NOW + RENDER_BUDGET + LEASE_MARGIN;
        assert_eq!(world.store.due_images(lease_ends, 9).await.unwrap(), []);
        let due = world.store.due_images(lease_ends + LEASE_MARGIN, 9).await.unwrap();
        assert_eq!(due, std::slice::from_ref(&leased.upload_key));
        world.store.forget_image(&leased.upload_key).await.unwrap();
        assert_eq!(world.store.due_images(lease_ends + LEASE_MARGIN, 9).await.unwrap(), []);
    }

    async fn the_deadline_ends_it_leased_or_not_but_never_early(world) {
        let team = world.team(2).await;
        let leased = world.leased(team).await;
        let waiting = world.pending(team).await;
        let deadline = NOW + SYNC_DEADLINE;
        for id in [leased.grab, waiting] {
            let early = failing(id, By::Deadline, deadline - Duration::from_millis(1));
            assert_eq!(world.store.fail(early).await.unwrap(), None);
            let ended = world.store.fail(failing(id, By::Deadline, deadline)).await.unwrap().unwrap();
            assert!(ended.grab.status().is_terminal());
        }
        assert_eq!(world.credits(team).await, (2, 0));
        assert_eq!(world.store.complete(completion(&leased)).await.unwrap(), None);
        assert_eq!(world.credits(team).await, (2, 0));
    }

    async fn overdue_grabs_are_swept(world) {
        let team = world.team(3).await;
        let leased = world.leased(team).await;
        let waiting = world.pending(team).await;
        let mut asynchronous = world.new_grab(team, Class::Async);
        asynchronous.deadline_at = NOW + SYNC_DEADLINE * 2;
        let later = asynchronous.id;
        world.store.create(asynchronous).await.unwrap();
        let deadline = NOW + SYNC_DEADLINE;
        assert_eq!(world.store.expire_jobs(deadline - Duration::from_millis(1), 9).await.unwrap(), []);
        let mut ended = Vec::new();
        for _ in 0..3 {
            ended.extend(world.store.expire_jobs(deadline, 1).await.unwrap());
        }
        let mut ids: Vec<_> = ended.iter().map(|grab| grab.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [leased.grab, waiting]);
        for grab in ended {
            let State::Failed { failure, .. } = grab.state else { panic!("it has failed") };
            assert_eq!(failure, timed_out(Class::Sync));
        }
        let ended = world.store.expire_jobs(NOW + SYNC_DEADLINE * 2, 9).await.unwrap();
        assert_eq!(ended.iter().map(|grab| grab.id).collect::<Vec<_>>(), [later]);
        assert_eq!(world.credits(team).await, (3, 0));
    }

    async fn its_caller_takes_it_back_leased_or_not(world) {
        let team = world.team(2).await;
        let leased = world.leased(team).await;
        let waiting = world.pending(team).await;
        for id in [leased.grab, waiting] {
            let ended = world.store.fail(failing(id, By::Cancel, NOW)).await.unwrap().unwrap();
            assert!(ended.grab.status().is_terminal());
            assert_eq!(world.store.fail(failing(id, By::Cancel, NOW)).await.unwrap(), None);
        }
        assert_eq!(world.store.lease(world.ask(Class::Sync, 9, NOW)).await.unwrap(), []);
        assert_eq!(world.store.complete(completion(&leased)).await.unwrap(), None);
        assert_eq!(world.credits(team).await, (2, 0));
        // What the renderer may still have put there goes when it can no longer be on the way.
        let due = world.store.due_images(NOW + RENDER_BUDGET + LEASE_MARGIN * 2, 9).await.unwrap();
        assert_eq!(due, [leased.upload_key]);
    }

    async fn a_picture_and_its_callers_change_of_mind_never_both_win(world) {
        const RACES: u32 = 20;
        let team = world.team(RACES).await;
        let mut spent = 0;
        for race in 0..RACES {
            let leased = world.leased(team).await;
            let (complete, cancel) =
                (world.store.complete(completion(&leased)), world.store.fail(failing(leased.grab, By::Cancel, NOW)));
            // Whoever is polled first is a little faster, so they take turns.
            let (done, cancelled) = match race % 2 {
                0 => tokio::join!(complete, cancel),
                _ => {
                    let (cancelled, done) = tokio::join!(cancel, complete);
                    (done, cancelled)
                }
            };
            let (done, cancelled) = (done.unwrap(), cancelled.unwrap());
            assert_ne!(done.is_some(), cancelled.is_some(), "race {race}");
            spent += u32::from(done.is_some());
            let winner = done.or(cancelled).expect("one of them won");
            assert_eq!(world.grab(team, leased.grab).await, winner.grab);
        }
        assert_eq!(world.credits(team).await, (RACES - spent, 0));
    }
}
