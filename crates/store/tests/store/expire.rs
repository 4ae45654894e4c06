//! Subscriptions end.

use std::time::Duration;

use grabd_domain::credits::{EntryKind, LotKind};
use grabd_store::{By, Created};

use crate::harness::{NOW, completion, failing, on_both};

on_both! {
    async fn the_rest_of_a_subscription_lapses_at_its_end(world) {
        let team = world.team(0).await;
        let end = NOW + Duration::from_secs(10);
        world.grant(team, LotKind::Subscription, 8, Some(end)).await;
        assert_eq!(world.store.expire_lots(end - Duration::from_millis(1), 9).await.unwrap(), 0);
        assert_eq!(world.store.expire_lots(end, 9).await.unwrap(), 1);
        assert_eq!(world.credits(team).await, (0, 0));
        let entry = &world.store.ledger(team, None, 1).await.unwrap()[0];
        assert_eq!((entry.kind, entry.amount, entry.at), (EntryKind::Expire, -8, end));
        assert_eq!(world.store.expire_lots(end, 9).await.unwrap(), 0);
        assert_eq!(world.store.ledger(team, None, 9).await.unwrap().len(), 2);
    }

    async fn what_is_held_outlives_the_end_until_its_grab_ends(world) {
        let team = world.team(0).await;
        let end = NOW + Duration::from_secs(1);
        world.grant(team, LotKind::Subscription, 5, Some(end)).await;
        let paid = world.leased(team).await;
        let unpaid = world.leased(team).await;
        assert_eq!(world.store.expire_lots(end, 9).await.unwrap(), 1);
        assert_eq!(world.credits(team).await, (2, 2));
        let mut late = world.new_grab(team, grabd_domain::grabs::Class::Sync);
        late.now = end;
        assert_eq!(world.store.create(late).await.unwrap(), Created::CreditsExhausted);

        world.store.complete(completion(&paid)).await.unwrap().unwrap();
        world.store.fail(failing(unpaid.grab, By::Lease(unpaid.token), end)).await.unwrap().unwrap();
        assert_eq!(world.credits(team).await, (1, 0));
        assert_eq!(world.store.expire_lots(end, 9).await.unwrap(), 1);
        assert_eq!(world.credits(team).await, (0, 0));
        let amounts: Vec<_> = world.store.ledger(team, None, 9).await.unwrap().iter().map(|e| e.amount).collect();
        assert_eq!(amounts, [-1, -1, -3, 5]);
    }

    async fn prepaid_credits_stay(world) {
        let team = world.team(4).await;
        assert_eq!(world.store.expire_lots(NOW + Duration::from_secs(1 << 40), 9).await.unwrap(), 0);
        assert_eq!(world.credits(team).await, (4, 0));
    }

    async fn at_most_as_many_lots_as_asked_for_lapse(world) {
        for _ in 0..3 {
            let team = world.team(0).await;
            world.grant(team, LotKind::Subscription, 2, Some(NOW)).await;
        }
        assert_eq!(world.store.expire_lots(NOW, 2).await.unwrap(), 2);
        assert_eq!(world.store.expire_lots(NOW, 2).await.unwrap(), 1);
    }
}
