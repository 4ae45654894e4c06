//! Completion under a lease.

use std::time::Duration;

use grabd_domain::credits::EntryKind;
use grabd_domain::grabs::{ImageKey, State};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_store::Error;
use grabd_store::grabs::Completion;

use crate::harness::{NOW, completion, facts, on_both};

on_both! {
    async fn complete_ends_the_grab_and_spends_its_credit(db) {
        let team = db.team(3).await;
        let leased = db.leased(team).await;
        let done = completion(&leased);
        let ended = db.store.grabs().complete(done.clone()).await.unwrap().unwrap();
        let state = State::Done {
            finished_at: done.now,
            image: Some(leased.upload_key.clone()),
            size_bytes: done.size_bytes,
            execution_ms: done.execution_ms,
            metadata: facts(),
        };
        assert_eq!((&ended.grab.state, ended.grab.attempts, ended.grab.revision()), (&state, 1, 4));
        assert_eq!(db.grab(team, leased.grab).await, ended.grab);
        assert_eq!(db.credits(team).await, (2, 0));
        let spent = &db.store.credits().ledger(team, None, 10).await.unwrap()[0];
        assert_eq!((spent.kind, spent.amount, spent.grab), (EntryKind::Spend, -1, Some(leased.grab)));
        assert_eq!(spent.at, done.now);
    }

    async fn repeated_complete_changes_nothing(db) {
        let team = db.team(3).await;
        let leased = db.leased(team).await;
        let ended = db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        for _ in 0..2 {
            assert_eq!(db.store.grabs().complete(completion(&leased)).await.unwrap(), None);
        }
        assert_eq!(db.grab(team, leased.grab).await, ended.grab);
        assert_eq!(db.credits(team).await, (2, 0));
        // The image is not even scheduled for deletion.
        assert_eq!(db.execute_raw("DELETE FROM image_gc").await.unwrap(), 0);
    }

    async fn complete_without_the_lease_is_rejected_and_deletes_the_image(db) {
        let team = db.team(3).await;
        let leased = db.leased(team).await;
        let late = ImageKey::new(99, "png");
        let rejected = [
            Completion { token: LeaseToken(db.id()), upload_key: late.clone(), ..completion(&leased) },
            Completion { grab: GrabId(db.id()), upload_key: late.clone(), ..completion(&leased) },
        ];
        for completion in rejected {
            let now = completion.now;
            assert_eq!(db.store.grabs().complete(completion).await.unwrap(), None);
            assert_eq!(db.store.grabs().due_images(now, 9).await.unwrap(), std::slice::from_ref(&late));
        }
        assert_eq!(db.grab(team, leased.grab).await.state, State::Processing);
        assert_eq!(db.credits(team).await, (3, 1));
        assert!(db.store.grabs().complete(completion(&leased)).await.unwrap().is_some());
    }

    async fn lost_attempt_cannot_complete_after_the_next_lease(db) {
        let team = db.team(3).await;
        let lost = db.leased(team).await;
        db.store.grabs().release(lost.grab, lost.token, NOW).await.unwrap();
        let ask = db.lease_request(grabd_domain::grabs::Class::Sync, 1, NOW + Duration::from_secs(1));
        let next = db.store.grabs().lease(ask).await.unwrap().pop().unwrap();
        assert_eq!((next.grab, next.attempt), (lost.grab, 2));
        assert_ne!(next.upload_key, lost.upload_key);
        assert_eq!(db.store.grabs().complete(completion(&lost)).await.unwrap(), None);
        let ended = db.store.grabs().complete(completion(&next)).await.unwrap().unwrap();
        let State::Done { image, .. } = ended.grab.state else { panic!("expected a done grab") };
        assert_eq!(image.as_ref(), Some(&next.upload_key));
        assert_eq!(db.credits(team).await, (2, 0));
        // The lost attempt's image is deleted, the completed one stays.
        let due = db.store.grabs().due_images(NOW + Duration::from_secs(999), 9).await.unwrap();
        assert_eq!(due, [lost.upload_key]);
    }

    async fn complete_rejects_another_image_key(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        let wrong = Completion { upload_key: ImageKey::new(99, "png"), ..completion(&leased) };
        let refused = db.store.grabs().complete(wrong).await;
        assert!(matches!(refused, Err(Error::Inconsistent(_))), "{refused:?}");
        assert_eq!(db.grab(team, leased.grab).await.state, State::Processing);
        assert!(db.store.grabs().complete(completion(&leased)).await.unwrap().is_some());
    }
}
