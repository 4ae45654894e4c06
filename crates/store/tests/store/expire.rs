//! Expiry of subscription credits.

use std::time::Duration;

use grabd_domain::credits::{EntryKind, LotKind};
use grabd_store::grabs::{Created, FailureSource};

use crate::harness::{NOW, completion, failing, on_both};

on_both! {
    async fn unused_subscription_credits_expire_at_term_end(db) {
        let team = db.team(0).await;
        let end = NOW + Duration::from_secs(10);
        db.grant(team, LotKind::Subscription, 8, Some(end)).await;
        assert_eq!(db.store.credits().expire_lots(end - Duration::from_millis(1), 9).await.unwrap(), 0);
        assert_eq!(db.store.credits().expire_lots(end, 9).await.unwrap(), 1);
        assert_eq!(db.credits(team).await, (0, 0));
        let entry = &db.store.credits().ledger(team, None, 1).await.unwrap()[0];
        assert_eq!((entry.kind, entry.amount, entry.at), (EntryKind::Expire, -8, end));
        assert_eq!(db.store.credits().expire_lots(end, 9).await.unwrap(), 0);
        assert_eq!(db.store.credits().ledger(team, None, 9).await.unwrap().len(), 2);
    }

    async fn held_credits_expire_after_their_grab_ends(db) {
        let team = db.team(0).await;
        let end = NOW + Duration::from_secs(1);
        db.grant(team, LotKind::Subscription, 5, Some(end)).await;
        let paid = db.leased(team).await;
        let unpaid = db.leased(team).await;
        assert_eq!(db.store.credits().expire_lots(end, 9).await.unwrap(), 1);
        assert_eq!(db.credits(team).await, (2, 2));
        let mut late = db.new_grab(team, grabd_domain::grabs::Class::Sync);
        late.now = end;
        assert_eq!(db.store.grabs().create(late).await.unwrap(), Created::CreditsExhausted);

        db.store.grabs().complete(completion(&paid)).await.unwrap().unwrap();
        db.store.grabs().fail(failing(unpaid.grab, FailureSource::Lease(unpaid.token), end)).await.unwrap().unwrap();
        assert_eq!(db.credits(team).await, (1, 0));
        assert_eq!(db.store.credits().expire_lots(end, 9).await.unwrap(), 1);
        assert_eq!(db.credits(team).await, (0, 0));
        let amounts: Vec<_> = db.store.credits().ledger(team, None, 9).await.unwrap().iter().map(|e| e.amount).collect();
        assert_eq!(amounts, [-1, -1, -3, 5]);
    }

    async fn prepaid_credits_do_not_expire(db) {
        let team = db.team(4).await;
        assert_eq!(db.store.credits().expire_lots(NOW + Duration::from_secs(1 << 40), 9).await.unwrap(), 0);
        assert_eq!(db.credits(team).await, (4, 0));
    }

    async fn expire_lots_respects_the_limit(db) {
        for _ in 0..3 {
            let team = db.team(0).await;
            db.grant(team, LotKind::Subscription, 2, Some(NOW)).await;
        }
        assert_eq!(db.store.credits().expire_lots(NOW, 2).await.unwrap(), 2);
        assert_eq!(db.store.credits().expire_lots(NOW, 2).await.unwrap(), 1);
    }
}
