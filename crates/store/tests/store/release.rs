//! Release of lost attempts.

use std::time::Duration;

use grabd_domain::grabs::{Class, FailureReason, State};
use grabd_domain::ids::{LeaseToken, SessionId};
use grabd_domain::limits::{LEASE_MARGIN, MAX_ATTEMPTS, RENDER_BUDGET};
use grabd_store::grabs::{BACK_OFF, LostLeases, ReleaseOutcome};

use crate::harness::{NOW, completion, on_both};

on_both! {
    async fn released_grab_returns_to_its_queue_position_after_a_backoff(db) {
        let team = db.team(5).await;
        let lost = db.leased(team).await;
        let next = db.pending(team).await;
        assert_eq!(db.store.grabs().release(lost.grab, LeaseToken(db.id()), NOW).await.unwrap(), ReleaseOutcome::Stale);
        assert_eq!(db.store.grabs().release(lost.grab, lost.token, NOW).await.unwrap(), ReleaseOutcome::Requeued(1));
        assert_eq!(db.store.grabs().release(lost.grab, lost.token, NOW).await.unwrap(), ReleaseOutcome::Stale);
        let grab = db.grab(team, lost.grab).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Pending, 1, 3));
        assert_eq!(db.credits(team).await, (5, 2));

        let paused = db.lease_request(Class::Sync, 2, NOW + BACK_OFF - Duration::from_millis(1));
        let leased = db.store.grabs().lease(paused).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [next]);
        db.store.grabs().release(next, leased[0].token, NOW - BACK_OFF).await.unwrap();
        let leased = db.store.grabs().lease(db.lease_request(Class::Sync, 2, NOW + BACK_OFF)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [lost.grab, next]);
        // The images of both lost attempts are scheduled for deletion.
        assert_eq!(db.store.grabs().due_images(NOW + Duration::from_secs(999), 9).await.unwrap().len(), 2);
    }

    async fn release_after_the_last_attempt_fails_the_grab_without_spending(db) {
        let team = db.team(1).await;
        let id = db.pending(team).await;
        for attempt in 1..=MAX_ATTEMPTS {
            let now = NOW + Duration::from_secs(u64::from(attempt));
            let leased = db.store.grabs().lease(db.lease_request(Class::Sync, 1, now)).await.unwrap().pop().unwrap();
            assert_eq!((leased.grab, leased.attempt), (id, attempt));
            let released = db.store.grabs().release(id, leased.token, now).await.unwrap();
            if attempt < MAX_ATTEMPTS {
                assert_eq!(released, ReleaseOutcome::Requeued(attempt));
                continue;
            }
            let ReleaseOutcome::GivenUp(grab) = released else { panic!("expected a failed grab: {released:?}") };
            assert_eq!(grab, db.grab(team, id).await);
            let State::Failed { failure, .. } = grab.state else { panic!("expected a failed grab") };
            assert_eq!((failure.reason, grab.attempts), (FailureReason::InternalError, MAX_ATTEMPTS));
        }
        assert_eq!(db.credits(team).await, (1, 0));
    }

    async fn reclaim_releases_the_leases_of_a_lost_session(db) {
        let team = db.team(9).await;
        for _ in 0..5 {
            db.pending(team).await;
        }
        let lost_session = db.lease_request(Class::Sync, 2, NOW);
        let lost = db.store.grabs().lease(lost_session.clone()).await.unwrap();
        let held = db.store.grabs().lease(db.lease_request(Class::Sync, 2, NOW)).await.unwrap();
        assert_eq!(db.store.grabs().reclaim_leases(LostLeases::Session(SessionId(db.id())), NOW, 9).await.unwrap(), []);
        let mut released = db.store.grabs().reclaim_leases(LostLeases::Session(lost_session.session), NOW, 9).await.unwrap();
        released.sort_unstable_by_key(|(grab, _)| *grab);
        let expected: Vec<_> = lost.iter().map(|job| (job.grab, ReleaseOutcome::Requeued(1))).collect();
        assert_eq!(released, expected);
        for job in &held {
            assert!(db.store.grabs().complete(completion(job)).await.unwrap().is_some());
        }
    }

    async fn reclaim_releases_expired_leases_up_to_the_limit(db) {
        let team = db.team(9).await;
        for _ in 0..3 {
            db.leased(team).await;
        }
        let end = NOW + RENDER_BUDGET + LEASE_MARGIN;
        assert_eq!(db.store.grabs().reclaim_leases(LostLeases::Expired, end - Duration::from_millis(1), 9).await.unwrap(), []);
        assert_eq!(db.store.grabs().reclaim_leases(LostLeases::Expired, end, 2).await.unwrap().len(), 2);
        assert_eq!(db.store.grabs().reclaim_leases(LostLeases::Expired, end, 2).await.unwrap().len(), 1);
        assert_eq!(db.store.grabs().reclaim_leases(LostLeases::Expired, end, 2).await.unwrap(), []);
    }

    async fn reclaim_all_releases_every_lease_after_a_restart(db) {
        let team = db.team(9).await;
        let lost = db.leased(team).await;
        let waiting = db.pending(team).await;
        let restarted = grabd_store::Store::open(&db.url).await.unwrap();
        let released = restarted.grabs().reclaim_leases(LostLeases::All, NOW, 9).await.unwrap();
        assert_eq!(released, [(lost.grab, ReleaseOutcome::Requeued(1))]);
        assert_eq!(restarted.grabs().complete(completion(&lost)).await.unwrap(), None);
        let leased = restarted.grabs().lease(db.lease_request(Class::Sync, 9, NOW + BACK_OFF)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [lost.grab, waiting]);
        restarted.close().await;
    }
}
