//! Creation of live grabs.

use std::time::Duration;

use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, State};
use grabd_domain::ids::TeamId;
use grabd_store::grabs::{Created, NewGrab};

use crate::harness::{NOW, on_both, spec};

on_both! {
    async fn create_holds_one_credit_and_leaves_the_grab_pending(db) {
        let team = db.team(3).await;
        let id = db.pending(team).await;
        let grab = db.grab(team, id).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Pending, 0, 1));
        assert_eq!((grab.created_at, grab.class, grab.spec), (NOW, Class::Sync, spec()));
        assert_eq!(db.credits(team).await, (3, 1));
        assert!(db.store.grabs().has_waiting(Class::Sync).await.unwrap());
        assert!(!db.store.grabs().has_waiting(Class::Async).await.unwrap());
    }

    async fn create_with_a_free_slot_starts_leased(db) {
        let team = db.team(3).await;
        let lease = db.new_lease();
        let new = NewGrab { lease: Some(lease.clone()), ..db.new_grab(team, Class::Sync) };
        let id = new.id;
        let Created::Leased { upload_key } = db.store.grabs().create(new).await.unwrap() else {
            panic!("expected a leased grab")
        };
        assert!(upload_key.as_str().ends_with(".png"));
        let grab = db.grab(team, id).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Processing, 1, 2));
        assert!(!db.store.grabs().has_waiting(Class::Sync).await.unwrap());
        assert!(matches!(
            db.store.grabs().release(id, lease.token, NOW).await.unwrap(),
            grabd_store::grabs::ReleaseOutcome::Requeued(1)
        ));
    }

    async fn create_with_a_free_slot_waits_behind_pending_grabs(db) {
        let team = db.team(3).await;
        let first = db.pending(team).await;
        let new = NewGrab { lease: Some(db.new_lease()), ..db.new_grab(team, Class::Sync) };
        let second = new.id;
        assert_eq!(db.store.grabs().create(new).await.unwrap(), Created::Pending);
        let leased = db.store.grabs().lease(db.lease_request(Class::Sync, 2, NOW)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [first, second]);
    }

    async fn create_without_a_free_credit_is_rejected(db) {
        let team = db.team(2).await;
        let grabs = [db.pending(team).await, db.pending(team).await];
        let new = db.new_grab(team, Class::Sync);
        let refused = new.id;
        assert_eq!(db.store.grabs().create(new).await.unwrap(), Created::CreditsExhausted);
        assert_eq!(db.credits(team).await, (2, 2));
        assert_eq!(db.store.grabs().find_grabs(&[grabs[0], refused, grabs[1]]).await.unwrap().len(), 2);
        let poor = db.team(0).await;
        assert_eq!(db.store.grabs().create(db.new_grab(poor, Class::Sync)).await.unwrap(), Created::CreditsExhausted);
    }

    async fn create_for_an_inactive_team_is_rejected(db) {
        let team = db.team(2).await;
        let unknown = TeamId(db.id());
        let rejected = db.store.grabs().create(db.new_grab(unknown, Class::Sync)).await.unwrap();
        assert_eq!(rejected, Created::TeamInactive);
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(db.store.grabs().create(db.new_grab(team, Class::Sync)).await.unwrap(), Created::TeamInactive);
        assert_eq!(db.credits(team).await, (2, 0));
    }

    async fn credits_are_held_by_subscription_expiry_then_oldest_prepaid_lot(db) {
        let team = db.team(0).await;
        let ends = |seconds| Some(NOW + Duration::from_secs(seconds));
        db.grant(team, LotKind::Prepaid, 1, None).await;
        db.grant(team, LotKind::Subscription, 1, ends(200)).await;
        db.grant(team, LotKind::Prepaid, 1, None).await;
        db.grant(team, LotKind::Subscription, 1, ends(100)).await;
        db.grant(team, LotKind::Subscription, 5, ends(0)).await;
        // Lots in spending order: the one that has just expired, the two that expire later, the prepaid ones.
        let mut order = Vec::new();
        for _ in 0..4 {
            let before = db.store.credits().lots(team).await.unwrap();
            db.pending(team).await;
            let after = db.store.credits().lots(team).await.unwrap();
            order.extend((0..5).filter(|lot| before[*lot].held != after[*lot].held));
        }
        assert_eq!(order, [1, 2, 3, 4]);
        assert_eq!(db.store.grabs().create(db.new_grab(team, Class::Sync)).await.unwrap(), Created::CreditsExhausted);
        let prepaid: Vec<_> = db.store.credits().lots(team).await.unwrap().iter().skip(3).map(|lot| lot.id).collect();
        assert!(prepaid.is_sorted());
    }

    async fn queue_limit_counts_pending_and_leased_async_grabs(db) {
        let team = db.team(100).await;
        let mut new = db.new_grab(team, Class::Async);
        new.async_limit = 3;
        let again = || NewGrab { id: grabd_domain::ids::GrabId(db.id()), ..new.clone() };
        for _ in 0..3 {
            db.pending(team).await; // Synchronous ones do not count.
            assert_eq!(db.store.grabs().create(again()).await.unwrap(), Created::Pending);
        }
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 2, NOW)).await.unwrap();
        assert_eq!(db.store.grabs().create(again()).await.unwrap(), Created::QueueLimit { limit: 3 });
        assert_eq!(db.credits(team).await, (100, 6));
        let other = db.team(1).await;
        assert_eq!(db.store.grabs().create(db.new_grab(other, Class::Async)).await.unwrap(), Created::Pending);
        db.store.grabs().complete(crate::harness::completion(&leased[0])).await.unwrap().unwrap();
        assert_eq!(db.store.grabs().create(again()).await.unwrap(), Created::Pending);
        assert_eq!(db.store.grabs().create(again()).await.unwrap(), Created::QueueLimit { limit: 3 });
    }

    async fn queue_limit_of_zero_refuses_all_async_grabs(db) {
        let team = db.team(10).await;
        let new = |class| NewGrab { async_limit: 0, ..db.new_grab(team, class) };
        assert_eq!(db.store.grabs().create(new(Class::Async)).await.unwrap(), Created::QueueLimit { limit: 0 });
        assert_eq!(db.store.grabs().create(new(Class::Sync)).await.unwrap(), Created::Pending);
    }
}
