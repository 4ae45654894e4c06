//! The limit of open deliveries, and what is kept of messages about no grab.

use std::time::Duration;

use grabd_domain::grabs::Class;
use grabd_domain::ids::{DeliveryId, EndpointId, TeamId};
use grabd_domain::webhooks::{Delivery, DeliveryError, DeliveryStatus, MAX_OPEN, MIN_OPEN};
use grabd_store::Kind;
use grabd_store::webhooks::{AfterDelivery, DeliveryAttemptResult, EndpointRef, ResendOutcome};

use crate::harness::{NOW, TestDb, completion, on_both};
use crate::webhooks::endpoint;

const LATER: Duration = Duration::from_secs(60);
const KEPT: usize = 25;

/// Gives the team so many other endpoints that each has the smallest share.
async fn crowd(db: &TestDb, team: TeamId) {
    let template = db.literal(endpoint(db, team, &["grab.changed"]).await.endpoint.0);
    let columns = "team_id, env, url, events, description, disabled, failing_since, secret, created_at";
    // Without a type, PostgreSQL takes the ids of several rows for texts.
    let kind = match db.store.kind() {
        Kind::Sqlite => "blob",
        Kind::Postgres => "uuid",
    };
    let one =
        |id: String| format!("SELECT CAST({id} AS {kind}), {columns} FROM webhook_endpoint WHERE id = {template}");
    let all = MAX_OPEN / MIN_OPEN;
    for _ in 0..4 {
        let rows: Vec<_> = (0..all / 4).map(|_| one(db.literal(db.id()))).collect();
        let inserted = format!("INSERT INTO webhook_endpoint (id, {columns}) {}", rows.join(" UNION ALL "));
        db.execute_raw(&inserted).await.unwrap();
    }
}

async fn send(db: &TestDb, target: EndpointRef) -> Delivery {
    let sent = db.store.webhooks().test_endpoint(target, DeliveryId(db.id()), NOW).await.unwrap();
    let ResendOutcome::Due(delivery) = sent else { panic!("not stored: {sent:?}") };
    delivery
}

async fn newest(db: &TestDb, endpoint: EndpointId) -> Delivery {
    db.store.webhooks().list_deliveries(endpoint, None, 1, NOW).await.unwrap().unwrap().deliveries.remove(0)
}

async fn count(db: &TestDb, endpoint: EndpointId) -> usize {
    db.store.webhooks().list_deliveries(endpoint, None, 100, NOW).await.unwrap().unwrap().deliveries.len()
}

/// Delivers what is due, up to `limit` messages. Returns their endpoints.
async fn deliver(db: &TestDb, limit: u32) -> Vec<EndpointId> {
    let now = NOW + LATER;
    let mut delivered = Vec::new();
    for attempt in db.lease_due(now, limit, |_| "{}".into()).await {
        let result = DeliveryAttemptResult {
            delivery: attempt.delivery,
            endpoint: attempt.endpoint,
            number: attempt.number,
            at: now,
            now,
            answer: Ok(200),
            after: AfterDelivery::Delivered,
        };
        db.store.webhooks().record_attempt(result).await.unwrap();
        delivered.push(attempt.endpoint);
    }
    delivered
}

on_both! {
    async fn message_beyond_the_share_of_its_endpoint_is_stored_and_not_sent(db) {
        let team = db.team(9).await;
        let (full, other) = (endpoint(db, team, &["grab.done"]).await, endpoint(db, team, &["grab.done"]).await);
        crowd(db, team).await;
        for _ in 0..MIN_OPEN {
            assert_eq!(send(db, full).await.status, DeliveryStatus::Pending);
        }
        let beyond = send(db, full).await;
        let not_sent = (DeliveryStatus::Exhausted, Some(DeliveryError::TooManyOpen), None);
        let state = |delivery: &Delivery| (delivery.status, delivery.error, delivery.next_attempt_at);
        assert_eq!(state(&beyond), not_sent);
        // Also when a grab ends. Other endpoints get theirs.
        db.store.grabs().create(db.new_grab(team, Class::Async)).await.unwrap();
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().remove(0);
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let of_grab = newest(db, full.endpoint).await;
        assert_eq!(state(&of_grab), not_sent);
        assert_eq!(newest(db, other.endpoint).await.status, DeliveryStatus::Pending);
        // And on request, until there is room.
        let again = db.store.webhooks().redeliver(full, of_grab.id, NOW + LATER).await.unwrap();
        assert_eq!(again, ResendOutcome::TooManyOpen);
        assert_eq!(db.due(NOW + LATER, 99).await.len(), MIN_OPEN as usize + 1);
        assert_eq!(deliver(db, 1).await, [full.endpoint]);
        let ResendOutcome::Due(due) = db.store.webhooks().redeliver(full, of_grab.id, NOW + LATER).await.unwrap() else {
            panic!("not sent again");
        };
        assert_eq!(state(&due), (DeliveryStatus::Pending, None, Some(NOW + LATER)));
        let again = db.store.webhooks().redeliver(full, beyond.id, NOW + LATER).await.unwrap();
        assert_eq!(again, ResendOutcome::TooManyOpen);
        // What is open anyway may be sent at once.
        let again = db.store.webhooks().redeliver(full, of_grab.id, NOW + LATER).await.unwrap();
        assert!(matches!(again, ResendOutcome::Due(_)), "{again:?}");
        assert_eq!(deliver(db, 99).await.len(), MIN_OPEN as usize + 1);
        assert_eq!(newest(db, full.endpoint).await.status, DeliveryStatus::Delivered);
    }

    async fn endpoints_of_other_accounts_do_not_reduce_a_share(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let target = endpoint(db, team, &[]).await;
        crowd(db, other).await;
        for _ in 0..=MIN_OPEN {
            assert_eq!(send(db, target).await.status, DeliveryStatus::Pending);
        }
    }

    async fn endpoints_of_an_account_share_in_all_its_teams(db) {
        let (ada, team) = db.owned_team("ada@example.com").await;
        let second = TeamId(db.id());
        let name = grabd_domain::teams::TeamName::parse("A second team").unwrap();
        db.store.accounts().create_owned_team(second, name, ada, NOW).await.unwrap().unwrap();
        let target = endpoint(db, team, &[]).await;
        crowd(db, second).await;
        for _ in 0..MIN_OPEN {
            assert_eq!(send(db, target).await.status, DeliveryStatus::Pending);
        }
        assert_eq!(send(db, target).await.error, Some(DeliveryError::TooManyOpen));
    }

    async fn of_messages_about_no_grab_the_newest_are_kept(db) {
        let team = db.team(9).await;
        let target = endpoint(db, team, &["grab.done"]).await;
        // Those that are open stay.
        for _ in 0..KEPT + 5 {
            send(db, target).await;
        }
        assert_eq!(count(db, target.endpoint).await, KEPT + 5);
        deliver(db, 99).await;
        let last = send(db, target).await;
        assert_eq!(count(db, target.endpoint).await, KEPT + 1);
        assert_eq!(newest(db, target.endpoint).await.id, last.id);
        // Those about grabs are another matter: each has cost a credit or counts for its account.
        db.store.grabs().create(db.new_grab(team, Class::Async)).await.unwrap();
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().remove(0);
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        deliver(db, 99).await;
        send(db, target).await;
        assert_eq!(count(db, target.endpoint).await, KEPT + 2);
        // With the endpoint they go at once.
        assert!(db.store.webhooks().remove_endpoint(target).await.unwrap());
        assert_eq!(count(db, target.endpoint).await, 1);
    }
}
