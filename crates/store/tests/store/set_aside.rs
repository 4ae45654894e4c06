//! Bad rows: background work leaves them out and continues with those of other teams.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Class, ImageKey, Status};
use grabd_domain::ids::{DeliveryId, EndpointId, TeamId};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{Creator, Events, MAX_SENDS, Registration};
use grabd_store::Kind;
use grabd_store::grabs::LostLeases;
use grabd_store::webhooks::{
    AfterDelivery, DeliveryAttempt, DeliveryAttemptResult, EndpointRef, NewEndpoint, ResendOutcome,
};

use crate::harness::{NOW, TestDb, completion, on_both};

const SET_ASIDE: Duration = Duration::from_secs(10 * 60);

impl TestDb {
    async fn corrupt(&self, sql: &str) {
        assert_eq!(self.execute_raw(sql).await.unwrap(), 1, "{sql}");
    }

    fn rows_set_aside(&self, work: &str) -> u64 {
        self.store.rows_set_aside().get(work).copied().unwrap_or(0)
    }

    /// A team with an endpoint and one due delivery.
    async fn due_delivery(&self) -> (EndpointRef, DeliveryId) {
        let team = self.team(0).await;
        let id = EndpointId(self.id());
        let url = TargetUrl::restore("https://example.com/hook").unwrap();
        let registration = Registration { url, events: Events::all(), description: String::new() };
        let environment = Environment::Live;
        let new = NewEndpoint {
            id,
            team,
            environment,
            registration,
            secret: vec![1; 73],
            creator: Creator::Key,
            by: None,
            now: NOW,
        };
        self.store.webhooks().register_endpoint(new).await.unwrap();
        let target = EndpointRef { team, environment, grant: None, endpoint: id };
        let delivery = DeliveryId(self.id());
        assert!(matches!(
            self.store.webhooks().test_endpoint(target, delivery, NOW).await.unwrap(),
            ResendOutcome::Due(_)
        ));
        (target, delivery)
    }
}

async fn lease_due(db: &TestDb, now: Timestamp) -> Vec<DeliveryAttempt> {
    db.lease_due(now, 9, |_| "{}".to_owned()).await
}

async fn record(db: &TestDb, attempt: &DeliveryAttempt, now: Timestamp) {
    let DeliveryAttempt { delivery, endpoint, number, .. } = *attempt;
    let after = AfterDelivery::Delivered;
    let result = DeliveryAttemptResult { delivery, endpoint, number, at: now, now, answer: Ok(200), after };
    db.store.webhooks().record_attempt(result).await.unwrap();
}

async fn lease_all(db: &TestDb, slots: usize, now: Timestamp) -> Vec<TeamId> {
    let leased = db.store.grabs().lease(db.lease_request(Class::Sync, slots, now)).await.unwrap();
    leased.iter().map(|job| job.team).collect()
}

on_both! {
    async fn job_that_cannot_be_read_does_not_block_the_queue(db) {
        let (bad_team, team) = (db.team(1).await, db.team(1).await);
        let bad = db.pending(bad_team).await;
        db.pending(team).await;
        let id = db.literal(bad.0);
        db.corrupt(&format!("UPDATE grab SET request = '{{' WHERE id = {id}")).await;
        assert_eq!(lease_all(db, 1, NOW).await, [], "the bad job is at the head of the queue");
        assert_eq!(lease_all(db, 1, NOW).await, [team]);
        assert_eq!(db.rows_set_aside("queue"), 1);
        // Its deadline ends it, although it cannot be read.
        assert_eq!(db.credits(bad_team).await, (1, 1));
        let deadline = NOW + SYNC_DEADLINE;
        let ended: Vec<_> = db.store.grabs().expire_jobs(deadline, 9).await.unwrap().iter().map(|grab| grab.team).collect();
        assert_eq!(ended, [team]);
        assert_eq!((db.credits(bad_team).await, db.credits(team).await), ((1, 0), (1, 0)));
    }

    async fn unreadable_columns_of_a_job_do_not_block_the_queue(db) {
        // PostgreSQL has no such values.
        if db.store.kind() == Kind::Sqlite {
            let (bad_team, team) = (db.team(1).await, db.team(1).await);
            let bad = db.pending(bad_team).await;
            db.pending(team).await;
            let id = db.literal(bad.0);
            db.corrupt(&format!("UPDATE job SET attempt = 'x' WHERE grab_id = {id}")).await;
            assert_eq!(lease_all(db, 2, NOW).await, [team]);
            assert_eq!(db.rows_set_aside("queue"), 1);
        }
    }

    async fn job_that_cannot_be_ended_does_not_delay_other_deadlines(db) {
        let (bad_team, team) = (db.team(1).await, db.team(1).await);
        let bad = db.pending(bad_team).await;
        let good = db.pending(team).await;
        let id = db.literal(bad.0);
        db.corrupt(&format!("UPDATE job SET lot_id = lot_id + 1000, deadline_at = 1 WHERE grab_id = {id}")).await;
        let now = NOW + SYNC_DEADLINE;
        assert_eq!(db.store.grabs().expire_jobs(now, 1).await.unwrap(), [], "the bad job is the first one");
        assert_eq!(db.store.grabs().expire_jobs(now, 1).await.unwrap()[0].id, good);
        assert_eq!(db.rows_set_aside("deadlines"), 1);
        db.corrupt(&format!("UPDATE job SET lot_id = lot_id - 1000 WHERE grab_id = {id}")).await;
        assert_eq!(db.store.grabs().expire_jobs(now, 9).await.unwrap(), [], "it is left out for a while");
        assert_eq!(db.store.grabs().expire_jobs(now + SET_ASIDE, 9).await.unwrap()[0].id, bad);
    }

    async fn lease_that_cannot_be_released_does_not_delay_others(db) {
        let team = db.team(2).await;
        let (bad, good) = (db.leased(team).await, db.leased(team).await);
        let id = db.literal(bad.grab.0);
        db.corrupt(&format!("UPDATE job SET upload_key = 'x', lease_until = 1 WHERE grab_id = {id}")).await;
        let reclaim = || db.store.grabs().reclaim_leases(LostLeases::All, NOW, 1);
        assert_eq!(reclaim().await.unwrap(), [], "the bad lease is the first one");
        assert_eq!(reclaim().await.unwrap()[0].0, good.grab);
        assert_eq!(reclaim().await.unwrap(), []);
        assert_eq!(db.rows_set_aside("leases"), 1);
    }

    async fn lot_that_cannot_be_expired_does_not_delay_others(db) {
        let (bad_team, team) = (db.team(0).await, db.team(0).await);
        for (seconds, team) in [(1, bad_team), (2, team)] {
            db.grant(team, LotKind::Subscription, 5, Some(NOW + Duration::from_secs(seconds))).await;
        }
        let bad = db.lot(bad_team).await.id.0;
        match db.store.kind() {
            Kind::Sqlite => db.corrupt(&format!("UPDATE credit_lot SET cancelled = 'x' WHERE id = {bad}")).await,
            Kind::Postgres => {
                let check = format!("ALTER TABLE credit_lot ADD CHECK (id <> {bad} OR remaining > 0)");
                db.execute_raw(&check).await.unwrap();
            }
        }
        let now = NOW + Duration::from_secs(9);
        assert_eq!(db.store.credits().expire_lots(now, 1).await.unwrap(), 0, "the bad lot is the first one");
        assert_eq!(db.store.credits().expire_lots(now, 1).await.unwrap(), 1);
        assert_eq!(db.credits(team).await, (0, 0));
        assert_eq!(db.rows_set_aside("lots"), 1);
    }

    async fn image_that_cannot_be_deleted_does_not_delay_others(db) {
        let (undeletable, good) = (ImageKey::new(1, "png"), ImageKey::new(2, "png"));
        for (not_before, key) in ["../x", undeletable.as_str(), good.as_str()].into_iter().enumerate() {
            db.corrupt(&format!("INSERT INTO image_gc (key, not_before) VALUES ('{key}', {not_before})")).await;
        }
        assert_eq!(db.store.grabs().due_images(NOW, 1).await.unwrap(), std::slice::from_ref(&undeletable));
        db.store.grabs().set_image_aside(&undeletable, NOW);
        assert_eq!(db.store.grabs().due_images(NOW, 1).await.unwrap(), [good]);
        assert_eq!(db.rows_set_aside("images"), 2);
        assert_eq!(db.store.grabs().due_images(NOW + SET_ASIDE, 1).await.unwrap(), [undeletable]);
    }

    async fn grab_that_cannot_be_read_does_not_hide_others_from_watchers(db) {
        let team = db.team(2).await;
        let (bad, good) = (db.pending(team).await, db.pending(team).await);
        let id = db.literal(bad.0);
        db.corrupt(&format!("UPDATE grab SET request = '{{' WHERE id = {id}")).await;
        let found: Vec<_> = db.store.grabs().find_grabs(&[bad, good]).await.unwrap().iter().map(|grab| grab.id).collect();
        assert_eq!(found, [good]);
    }

    async fn endpoint_that_cannot_be_read_stops_only_its_own_webhooks(db) {
        let (bad, _) = db.due_delivery().await;
        let (good, _) = db.due_delivery().await;
        let id = db.literal(bad.endpoint.0);
        db.corrupt(&format!("UPDATE webhook_endpoint SET url = 'x' WHERE id = {id}")).await;
        let leased = |attempts: &[DeliveryAttempt]| attempts.iter().map(|of| of.endpoint).collect::<Vec<_>>();
        assert_eq!(leased(&lease_due(db, NOW).await), [good.endpoint]);
        assert_eq!(db.rows_set_aside("deliveries"), 1);
        assert!(!db.has_due(NOW).await, "it is left out for a while");
        db.corrupt(&format!("UPDATE webhook_endpoint SET url = 'https://example.com/' WHERE id = {id}")).await;
        assert!(leased(&lease_due(db, NOW + SET_ASIDE).await).contains(&bad.endpoint));
    }

    async fn unreadable_columns_stop_only_their_own_webhooks(db) {
        if db.store.kind() == Kind::Sqlite {
            for (table, column, work) in [
                ("delivery", "attempt", "deliveries"),
                ("delivery", "state", "deliveries"),
                ("webhook_endpoint", "disabled", "endpoints"),
            ] {
                let before = db.rows_set_aside(work);
                let (bad, delivery) = db.due_delivery().await;
                let (good, _) = db.due_delivery().await;
                let id = db.literal(if table == "delivery" { delivery.0 } else { bad.endpoint.0 });
                let checks = "PRAGMA ignore_check_constraints = ON";
                db.execute_raw(&format!("{checks}; UPDATE {table} SET {column} = 'x' WHERE id = {id}")).await.unwrap();
                let attempts = lease_due(db, NOW).await;
                assert_eq!(attempts.iter().map(|of| of.endpoint).collect::<Vec<_>>(), [good.endpoint], "{table}");
                assert_eq!(db.rows_set_aside(work), before + 1);
                assert_eq!(lease_due(db, NOW).await, [], "it is left out for a while");
            }
        }
    }

    async fn endpoint_that_cannot_be_read_does_not_keep_grabs_from_ending(db) {
        let (target, _) = db.due_delivery().await;
        db.grant(target.team, LotKind::Prepaid, 1, None).await;
        let id = db.literal(target.endpoint.0);
        db.corrupt(&format!("UPDATE webhook_endpoint SET events = 'x' WHERE id = {id}")).await;
        db.store.grabs().create(db.new_grab(target.team, Class::Async)).await.unwrap();
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        let ended = db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(ended.grab.status(), Status::Done);
    }

    async fn attempts_of_a_message_saturate(db) {
        let (target, delivery) = db.due_delivery().await;
        let (other, _) = db.due_delivery().await;
        let id = db.literal(delivery.0);
        db.corrupt(&format!("UPDATE delivery SET attempt = 32767 WHERE id = {id}")).await;
        let mut attempts = lease_due(db, NOW).await;
        attempts.sort_by_key(|attempt| attempt.number);
        let seen: Vec<_> = attempts.iter().map(|attempt| (attempt.endpoint, attempt.number)).collect();
        assert_eq!(seen, [(other.endpoint, 1), (target.endpoint, 32_767)]);
        record(db, &attempts[1], NOW).await;
        let page = db.store.webhooks().list_deliveries(target.endpoint, None, 9, NOW).await.unwrap().unwrap();
        assert_eq!(page.deliveries[0].status_code, Some(200));
    }

    async fn redeliveries_of_a_message_are_bounded(db) {
        let (target, delivery) = db.due_delivery().await;
        for sent in 1..=MAX_SENDS {
            let attempts = lease_due(db, NOW).await;
            assert_eq!(attempts[0].number, sent);
            record(db, &attempts[0], NOW).await;
            let again = db.store.webhooks().redeliver(target, delivery, NOW).await.unwrap();
            match sent < MAX_SENDS {
                true => assert!(matches!(again, ResendOutcome::Due(_)), "{sent}"),
                false => assert_eq!(again, ResendOutcome::TooManyAttempts(MAX_SENDS)),
            }
        }
        assert!(!db.has_due(NOW).await);
    }
}
