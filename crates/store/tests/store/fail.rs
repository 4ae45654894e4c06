//! Failure by lease, deadline and cancellation.

use std::time::Duration;

use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Class, State};
use grabd_domain::ids::LeaseToken;
use grabd_domain::limits::{LEASE_MARGIN, LOST_IMAGE_DELAY, RENDER_BUDGET, SYNC_DEADLINE};
use grabd_store::grabs::{FailureSource, timeout_failure};

use crate::harness::{NOW, blocked, completion, facts, failing, on_both};

on_both! {
    async fn fail_by_lease_ends_the_grab_and_releases_the_credit(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        let other_lease = FailureSource::Lease(LeaseToken(db.id()));
        assert_eq!(db.store.grabs().fail(failing(leased.grab, other_lease, NOW)).await.unwrap(), None);
        let ended =
            db.store.grabs().fail(failing(leased.grab, FailureSource::Lease(leased.token), NOW)).await.unwrap().unwrap();
        assert_eq!(ended.grab.state, State::Failed { finished_at: NOW, failure: blocked(), metadata: facts() });
        assert_eq!((ended.grab.attempts, ended.grab.revision()), (1, 4));
        assert_eq!(db.grab(team, leased.grab).await, ended.grab);
        assert_eq!(db.credits(team).await, (1, 0));
        assert_eq!(db.store.grabs().fail(failing(leased.grab, FailureSource::Lease(leased.token), NOW)).await.unwrap(), None);
        assert_eq!(db.store.grabs().complete(completion(&leased)).await.unwrap(), None);
        assert_eq!(db.credits(team).await, (1, 0));
        db.pending(team).await;
    }

    async fn failed_grabs_image_is_due_when_no_upload_can_be_in_progress(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        db.store.grabs().fail(failing(leased.grab, FailureSource::Lease(leased.token), NOW)).await.unwrap().unwrap();
        let lease_ends = NOW + RENDER_BUDGET + LEASE_MARGIN;
        let due_at = lease_ends + LOST_IMAGE_DELAY;
        assert_eq!(db.store.grabs().due_images(due_at - Duration::from_millis(1), 9).await.unwrap(), []);
        let due = db.store.grabs().due_images(due_at, 9).await.unwrap();
        assert_eq!(due, std::slice::from_ref(&leased.upload_key));
        db.store.grabs().unschedule_deletion(&leased.upload_key).await.unwrap();
        assert_eq!(db.store.grabs().due_images(due_at, 9).await.unwrap(), []);
    }

    async fn fail_by_deadline_ends_pending_and_leased_grabs_but_not_early(db) {
        let team = db.team(2).await;
        let leased = db.leased(team).await;
        let waiting = db.pending(team).await;
        let deadline = NOW + SYNC_DEADLINE;
        for id in [leased.grab, waiting] {
            let early = failing(id, FailureSource::Deadline, deadline - Duration::from_millis(1));
            assert_eq!(db.store.grabs().fail(early).await.unwrap(), None);
            let ended = db.store.grabs().fail(failing(id, FailureSource::Deadline, deadline)).await.unwrap().unwrap();
            assert!(ended.grab.status().is_terminal());
        }
        assert_eq!(db.credits(team).await, (2, 0));
        assert_eq!(db.store.grabs().complete(completion(&leased)).await.unwrap(), None);
        assert_eq!(db.credits(team).await, (2, 0));
    }

    async fn expire_jobs_fails_overdue_grabs(db) {
        let team = db.team(3).await;
        let leased = db.leased(team).await;
        let waiting = db.pending(team).await;
        let mut asynchronous = db.new_grab(team, Class::Async);
        asynchronous.deadline_at = NOW + SYNC_DEADLINE * 2;
        let later = asynchronous.id;
        db.store.grabs().create(asynchronous).await.unwrap();
        let deadline = NOW + SYNC_DEADLINE;
        assert_eq!(db.store.grabs().expire_jobs(deadline - Duration::from_millis(1), 9).await.unwrap(), []);
        let mut ended = Vec::new();
        for _ in 0..3 {
            ended.extend(db.store.grabs().expire_jobs(deadline, 1).await.unwrap());
        }
        let mut ids: Vec<_> = ended.iter().map(|grab| grab.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [leased.grab, waiting]);
        for grab in ended {
            let State::Failed { failure, .. } = grab.state else { panic!("expected a failed grab") };
            // A grab without a lease waited for a slot.
            let cause = if grab.id == leased.grab { ErrorCause::Target } else { ErrorCause::Service };
            assert_eq!(failure, timeout_failure(Class::Sync).caused_by(cause));
        }
        let ended = db.store.grabs().expire_jobs(NOW + SYNC_DEADLINE * 2, 9).await.unwrap();
        assert_eq!(ended.iter().map(|grab| grab.id).collect::<Vec<_>>(), [later]);
        assert_eq!(db.credits(team).await, (3, 0));
    }

    async fn cancel_ends_pending_and_leased_grabs(db) {
        let team = db.team(2).await;
        let leased = db.leased(team).await;
        let waiting = db.pending(team).await;
        for id in [leased.grab, waiting] {
            let ended = db.store.grabs().fail(failing(id, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
            assert!(ended.grab.status().is_terminal());
            assert_eq!(db.store.grabs().fail(failing(id, FailureSource::Cancel, NOW)).await.unwrap(), None);
        }
        assert_eq!(db.store.grabs().lease(db.lease_request(Class::Sync, 9, NOW)).await.unwrap(), []);
        assert_eq!(db.store.grabs().complete(completion(&leased)).await.unwrap(), None);
        assert_eq!(db.credits(team).await, (2, 0));
        // An image that the renderer may still upload is deleted when it cannot any more.
        let due = db.store.grabs().due_images(NOW + RENDER_BUDGET + LEASE_MARGIN + LOST_IMAGE_DELAY, 9).await.unwrap();
        assert_eq!(due, [leased.upload_key]);
    }

    async fn concurrent_complete_and_cancel_have_one_winner(db) {
        const RACES: u32 = 20;
        let team = db.team(RACES).await;
        let mut spent = 0;
        for race in 0..RACES {
            let leased = db.leased(team).await;
            let (complete, cancel) = (
                db.store.grabs().complete(completion(&leased)),
                db.store.grabs().fail(failing(leased.grab, FailureSource::Cancel, NOW)),
            );
            // The future polled first has an advantage, so the order alternates.
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
            let winner = done.or(cancelled).expect("one winner");
            assert_eq!(db.grab(team, leased.grab).await, winner.grab);
        }
        assert_eq!(db.credits(team).await, (RACES - spent, 0));
    }
}
