//! T1: what a create needs, and what it leaves.

use std::time::Duration;

use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, State};
use grabd_domain::ids::TeamId;
use grabd_store::{Created, NewGrab};

use crate::harness::{LIMIT, NOW, on_both, spec};

on_both! {
    async fn a_new_grab_waits_with_one_credit_held(world) {
        let team = world.team(3).await;
        let id = world.pending(team).await;
        let grab = world.grab(team, id).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Pending, 0, 1));
        assert_eq!((grab.created_at, grab.class, grab.spec), (NOW, Class::Sync, spec()));
        assert_eq!(world.credits(team).await, (3, 1));
        assert!(world.store.has_waiting(Class::Sync).await.unwrap());
        assert!(!world.store.has_waiting(Class::Async).await.unwrap());
    }

    async fn a_free_slot_takes_it_at_once(world) {
        let team = world.team(3).await;
        let lease = world.new_lease();
        let new = NewGrab { lease: Some(lease.clone()), ..world.new_grab(team, Class::Sync) };
        let id = new.id;
        let Created::Leased { upload_key } = world.store.create(new).await.unwrap() else { panic!("nobody waits") };
        assert!(upload_key.as_str().ends_with(".png"));
        let grab = world.grab(team, id).await;
        assert_eq!((grab.state.clone(), grab.attempts, grab.revision()), (State::Processing, 1, 2));
        assert!(!world.store.has_waiting(Class::Sync).await.unwrap());
        assert!(matches!(
            world.store.release(id, lease.token, NOW).await.unwrap(),
            grabd_store::Released::Again(1)
        ));
    }

    async fn a_free_slot_does_not_pass_those_who_wait(world) {
        let team = world.team(3).await;
        let first = world.pending(team).await;
        let new = NewGrab { lease: Some(world.new_lease()), ..world.new_grab(team, Class::Sync) };
        let second = new.id;
        assert_eq!(world.store.create(new).await.unwrap(), Created::Pending);
        let leased = world.store.lease(world.ask(Class::Sync, 2, NOW)).await.unwrap();
        assert_eq!(leased.iter().map(|job| job.grab).collect::<Vec<_>>(), [first, second]);
    }

    async fn without_a_free_credit_nothing_is_created(world) {
        let team = world.team(2).await;
        let grabs = [world.pending(team).await, world.pending(team).await];
        let new = world.new_grab(team, Class::Sync);
        let refused = new.id;
        assert_eq!(world.store.create(new).await.unwrap(), Created::CreditsExhausted);
        assert_eq!(world.credits(team).await, (2, 2));
        assert_eq!(world.store.find_grabs(&[grabs[0], refused, grabs[1]]).await.unwrap().len(), 2);
        let poor = world.team(0).await;
        assert_eq!(
            world.store.create(world.new_grab(poor, Class::Sync)).await.unwrap(),
            Created::CreditsExhausted
        );
    }

    async fn only_active_teams_create(world) {
        let team = world.team(2).await;
        let unknown = TeamId(world.id());
        let stray = world.store.create(world.new_grab(unknown, Class::Sync)).await.unwrap();
        assert_eq!(stray, Created::TeamInactive);
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(world.store.create(world.new_grab(team, Class::Sync)).await.unwrap(), Created::TeamInactive);
        assert_eq!(world.credits(team).await, (2, 0));
    }

    async fn subscriptions_are_spent_by_their_end_and_then_the_oldest_prepaid_lot(world) {
        let team = world.team(0).await;
        let ends = |seconds| Some(NOW + Duration::from_secs(seconds));
        world.grant(team, LotKind::Prepaid, 1, None).await;
        world.grant(team, LotKind::Subscription, 1, ends(200)).await;
        world.grant(team, LotKind::Prepaid, 1, None).await;
        world.grant(team, LotKind::Subscription, 1, ends(100)).await;
        world.grant(team, LotKind::Subscription, 5, ends(0)).await;
        // Lots come in the order of spending: the one that has just ended, the two that end later, the prepaid ones.
        let mut order = Vec::new();
        for _ in 0..4 {
            let before = world.store.lots(team).await.unwrap();
            world.pending(team).await;
            let after = world.store.lots(team).await.unwrap();
            order.extend((0..5).filter(|lot| before[*lot].held != after[*lot].held));
        }
        assert_eq!(order, [1, 2, 3, 4]);
        assert_eq!(
            world.store.create(world.new_grab(team, Class::Sync)).await.unwrap(),
            Created::CreditsExhausted
        );
        let prepaid: Vec<_> = world.store.lots(team).await.unwrap().iter().skip(3).map(|lot| lot.id).collect();
        assert!(prepaid.is_sorted());
    }

    async fn the_queue_limit_counts_open_async_grabs_leased_or_not(world) {
        let team = world.team(100).await;
        let mut new = world.new_grab(team, Class::Async);
        new.async_limit_default = 3;
        let again = || NewGrab { id: grabd_domain::ids::GrabId(world.id()), ..new.clone() };
        for _ in 0..3 {
            world.pending(team).await; // Synchronous ones do not count.
            assert_eq!(world.store.create(again()).await.unwrap(), Created::Pending);
        }
        let leased = world.store.lease(world.ask(Class::Async, 2, NOW)).await.unwrap();
        assert_eq!(world.store.create(again()).await.unwrap(), Created::QueueLimit { limit: 3 });
        assert_eq!(world.credits(team).await, (100, 6));
        let other = world.team(1).await;
        assert_eq!(world.store.create(world.new_grab(other, Class::Async)).await.unwrap(), Created::Pending);
        world.store.complete(crate::harness::completion(&leased[0])).await.unwrap().unwrap();
        assert_eq!(world.store.create(again()).await.unwrap(), Created::Pending);
        assert_eq!(world.store.create(again()).await.unwrap(), Created::QueueLimit { limit: 3 });
    }

    async fn a_team_may_have_a_queue_limit_of_its_own(world) {
        let team = world.team(10).await;
        world.meddle("UPDATE team SET async_queue_limit = 1").await.unwrap();
        assert_eq!(world.store.create(world.new_grab(team, Class::Async)).await.unwrap(), Created::Pending);
        assert_eq!(
            world.store.create(world.new_grab(team, Class::Async)).await.unwrap(),
            Created::QueueLimit { limit: 1 }
        );
        world.meddle("UPDATE team SET async_queue_limit = 0").await.unwrap();
        let other = world.team(1).await;
        world.meddle("UPDATE team SET async_queue_limit = 0").await.unwrap();
        assert_eq!(
            world.store.create(world.new_grab(other, Class::Async)).await.unwrap(),
            Created::QueueLimit { limit: 0 }
        );
        assert_eq!(LIMIT, 50);
    }
}
