//! T3: the fence, and what is spent behind it.

use std::time::Duration;

use grabd_domain::credits::EntryKind;
use grabd_domain::grabs::{ImageKey, State};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_store::{Completion, Error};

use crate::harness::{NOW, completion, facts, on_both};

on_both! {
    async fn a_picture_ends_the_grab_and_spends_its_credit(world) {
        let team = world.team(3).await;
        let leased = world.leased(team).await;
        let done = completion(&leased);
        let ended = world.store.complete(done.clone()).await.unwrap().unwrap();
        let state = State::Done {
            finished_at: done.now,
            image: Some(leased.upload_key.clone()),
            size_bytes: done.size_bytes,
            execution_ms: done.execution_ms,
            facts: facts(),
        };
        assert_eq!((&ended.grab.state, ended.grab.attempts, ended.grab.revision()), (&state, 1, 4));
        assert_eq!(world.grab(team, leased.grab).await, ended.grab);
        assert_eq!(world.credits(team).await, (2, 0));
        let spent = &world.store.ledger(team, None, 10).await.unwrap()[0];
        assert_eq!((spent.kind, spent.amount, spent.grab), (EntryKind::Spend, -1, Some(leased.grab)));
        assert_eq!(spent.at, done.now);
    }

    async fn a_repeated_complete_changes_nothing(world) {
        let team = world.team(3).await;
        let leased = world.leased(team).await;
        let ended = world.store.complete(completion(&leased)).await.unwrap().unwrap();
        for _ in 0..2 {
            assert_eq!(world.store.complete(completion(&leased)).await.unwrap(), None);
        }
        assert_eq!(world.grab(team, leased.grab).await, ended.grab);
        assert_eq!(world.credits(team).await, (2, 0));
        // Not even on the list: what is due of it is asked elsewhere once more, but that is the second belt.
        assert_eq!(world.meddle("DELETE FROM image_gc").await.unwrap(), 0);
    }

    async fn without_the_lease_there_is_no_end_and_the_picture_goes(world) {
        let team = world.team(3).await;
        let leased = world.leased(team).await;
        let late = ImageKey::new(99, "png");
        let strays = [
            Completion { token: LeaseToken(world.id()), upload_key: late.clone(), ..completion(&leased) },
            Completion { grab: GrabId(world.id()), upload_key: late.clone(), ..completion(&leased) },
        ];
        for stray in strays {
            let now = stray.now;
            assert_eq!(world.store.complete(stray).await.unwrap(), None);
            assert_eq!(world.store.due_images(now, 9).await.unwrap(), std::slice::from_ref(&late));
        }
        assert_eq!(world.grab(team, leased.grab).await.state, State::Processing);
        assert_eq!(world.credits(team).await, (3, 1));
        assert!(world.store.complete(completion(&leased)).await.unwrap().is_some());
    }

    async fn a_lost_attempt_cannot_end_the_next_one(world) {
        let team = world.team(3).await;
        let lost = world.leased(team).await;
        world.store.release(lost.grab, lost.token, NOW).await.unwrap();
        let ask = world.ask(grabd_domain::grabs::Class::Sync, 1, NOW + Duration::from_secs(1));
        let next = world.store.lease(ask).await.unwrap().pop().unwrap();
        assert_eq!((next.grab, next.attempt), (lost.grab, 2));
        assert_ne!(next.upload_key, lost.upload_key);
        assert_eq!(world.store.complete(completion(&lost)).await.unwrap(), None);
        let ended = world.store.complete(completion(&next)).await.unwrap().unwrap();
        let State::Done { image, .. } = ended.grab.state else { panic!("it is done") };
        assert_eq!(image.as_ref(), Some(&next.upload_key));
        assert_eq!(world.credits(team).await, (2, 0));
        // The lost attempt's picture goes, the delivered one stays.
        let due = world.store.due_images(NOW + Duration::from_secs(999), 9).await.unwrap();
        assert_eq!(due, [lost.upload_key]);
    }

    async fn a_picture_under_another_key_is_refused(world) {
        let team = world.team(1).await;
        let leased = world.leased(team).await;
        let wrong = Completion { upload_key: ImageKey::new(99, "png"), ..completion(&leased) };
        let refused = world.store.complete(wrong).await;
        assert!(matches!(refused, Err(Error::Inconsistent(_))), "{refused:?}");
        assert_eq!(world.grab(team, leased.grab).await.state, State::Processing);
        assert!(world.store.complete(completion(&leased)).await.unwrap().is_some());
    }
}
