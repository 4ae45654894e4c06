//! Leasing of jobs.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::grabs::{Class, State};
use grabd_domain::limits::{LEASE_FLOOR, LEASE_MARGIN, RENDER_BUDGET};
use grabd_store::grabs::{LostLeases, NewGrab, ReleaseOutcome};

use crate::harness::{NOW, completion, on_both, spec};

on_both! {
    async fn lease_takes_the_head_of_the_requested_queue(db) {
        let team = db.team(10).await;
        let first = db.pending(team).await;
        let asynchronous = db.new_grab(team, Class::Async);
        let async_grab = asynchronous.id;
        db.store.grabs().create(asynchronous).await.unwrap();
        let second = db.pending(team).await;
        db.pending(team).await;

        let request = db.lease_request(Class::Sync, 2, NOW);
        let leased = db.store.grabs().lease(request.clone()).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [first, second]);
        assert_eq!(leased.iter().map(|job| job.token).collect::<Vec<_>>(), [request.slots[0].0, request.slots[1].0]);
        let head = &leased[0];
        assert_eq!((head.team, head.class, head.attempt, &head.spec), (team, Class::Sync, 1, &spec()));
        assert_ne!(leased[0].upload_key, leased[1].upload_key);
        let grab = db.grab(team, first).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Processing, 1, 2));

        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 5, NOW)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [async_grab]);
        assert_eq!(db.store.grabs().lease(db.lease_request(Class::Async, 5, NOW)).await.unwrap(), []);
        assert_eq!(db.store.grabs().lease(db.lease_request(Class::Sync, 0, NOW)).await.unwrap(), []);
    }

    async fn secrets_come_with_the_lease_and_are_deleted_when_the_grab_ends(db) {
        let team = db.team(2).await;
        let secrets = Some(b"encrypted".to_vec());
        db.store.grabs().create(NewGrab { secrets: secrets.clone(), ..db.new_grab(team, Class::Sync) }).await.unwrap();
        let job = db.lease_one().await;
        assert_eq!(job.secrets, secrets);
        let stored = "UPDATE job SET secrets = secrets WHERE secrets IS NOT NULL";
        assert_eq!(db.execute_raw(stored).await.unwrap(), 1);
        db.store.grabs().complete(completion(&job)).await.unwrap().unwrap();
        assert_eq!(db.execute_raw(stored).await.unwrap(), 0);
    }

    async fn lease_skips_grabs_too_close_to_their_deadline(db) {
        let team = db.team(2).await;
        let new = db.new_grab(team, Class::Sync);
        let deadline = new.deadline_at;
        db.store.grabs().create(new).await.unwrap();
        assert_eq!(db.store.grabs().lease(db.lease_request(Class::Sync, 1, deadline - LEASE_FLOOR)).await.unwrap(), []);
        let just_in_time = deadline - LEASE_FLOOR - Duration::from_millis(1);
        assert_eq!(db.store.grabs().lease(db.lease_request(Class::Sync, 1, just_in_time)).await.unwrap().len(), 1);
    }

    async fn lease_expires_after_the_render_budget_and_margin(db) {
        let team = db.team(2).await;
        // One grab with spare time, one whose deadline shortens the render.
        let spare = NewGrab { deadline_at: NOW + RENDER_BUDGET * 4, ..db.new_grab(team, Class::Sync) };
        let short = NewGrab { deadline_at: NOW + RENDER_BUDGET / 2, ..db.new_grab(team, Class::Sync) };
        let ends = [NOW + RENDER_BUDGET + LEASE_MARGIN, NOW + RENDER_BUDGET / 2 + LEASE_MARGIN];
        for (new, end) in [spare, short].into_iter().zip(ends) {
            let id = new.id;
            db.store.grabs().create(new).await.unwrap();
            assert_eq!(db.lease_one().await.grab, id);
            let before = end - Duration::from_millis(1);
            assert_eq!(db.store.grabs().reclaim_leases(LostLeases::Expired, before, 9).await.unwrap(), []);
            assert_eq!(
                db.store.grabs().reclaim_leases(LostLeases::Expired, end, 9).await.unwrap(),
                [(id, ReleaseOutcome::Requeued(1))]
            );
            let again = db.store.grabs().lease(db.lease_request(Class::Sync, 1, end)).await.unwrap();
            if let Some(again) = again.first() {
                assert_eq!(again.attempt, 2);
            }
        }
    }

    async fn concurrent_leases_never_share_a_job(db) {
        let team = db.team(60).await;
        for _ in 0..60 {
            db.pending(team).await;
        }
        let leases = (0..16).map(|_| db.store.grabs().lease(db.lease_request(Class::Sync, 5, NOW)));
        let mut grabs = Vec::new();
        for leased in join_all(leases).await {
            grabs.extend(leased.unwrap().into_iter().map(|job| job.grab));
        }
        // Requests that found all jobs locked got fewer; the rest can be leased now.
        while let Some(job) = db.store.grabs().lease(db.lease_request(Class::Sync, 1, NOW)).await.unwrap().pop() {
            grabs.push(job.grab);
        }
        grabs.sort_unstable();
        grabs.dedup();
        assert_eq!(grabs.len(), 60);
    }
}
