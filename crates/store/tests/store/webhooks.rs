//! Webhook endpoints and deliveries.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Difference};
use grabd_domain::ids::{DeliveryId, EndpointId, PayerId, TeamId};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{
    Creator, DELIVERY_RETENTION, Delivery, DeliveryError, DeliveryStatus, DisabledReason, EndpointUpdate, Event,
    Events, FAILING_LIMIT, Registration,
};
use grabd_store::grabs::FailureSource;
use grabd_store::webhooks::{
    AfterDelivery, DeliveryAttempt, DeliveryAttemptResult, EndpointRef, MessageContent, NewEndpoint, NewEndpointSecret,
    RegisterOutcome, ResendOutcome,
};

use crate::harness::{NOW, TestDb, completion, failing, on_both};

const LEASE: Duration = Duration::from_secs(30);
/// Duration of each attempt.
const TOOK: Duration = Duration::from_millis(43);

fn new_endpoint(db: &TestDb, team: TeamId, environment: Environment, events: &[&str]) -> NewEndpoint {
    NewEndpoint {
        id: EndpointId(db.id()),
        team,
        environment,
        registration: Registration {
            url: TargetUrl::restore("https://example.com/hook").unwrap(),
            events: Events::parse(events).unwrap(),
            description: "A hook".into(),
        },
        secret: vec![1; 73],
        creator: Creator::Key,
        by: None,
        now: NOW,
    }
}

/// A new secret of an endpoint.
fn rotated(target: EndpointRef, secret: Vec<u8>, previous_until: Timestamp) -> NewEndpointSecret {
    NewEndpointSecret { target, secret, by: None, now: NOW, previous_until }
}

pub(crate) async fn endpoint(db: &TestDb, team: TeamId, events: &[&str]) -> EndpointRef {
    let new = new_endpoint(db, team, Environment::Live, events);
    let target = EndpointRef { team, environment: Environment::Live, grant: None, endpoint: new.id };
    assert!(matches!(db.store.webhooks().register_endpoint(new).await.unwrap(), RegisterOutcome::Registered(_)));
    target
}

/// Creates and completes a grab.
async fn done(db: &TestDb, team: TeamId, class: Class) {
    db.store.grabs().create(db.new_grab(team, class)).await.unwrap();
    let leased = db.store.grabs().lease(db.lease_request(class, 1, NOW)).await.unwrap().pop().unwrap();
    assert!(db.store.grabs().complete(completion(&leased)).await.unwrap().is_some());
}

fn compose(content: &MessageContent) -> String {
    format!(
        "{} {} {}",
        content.event.as_str(),
        content.environment.as_str(),
        content.grab.as_ref().map_or("-", |_| "grab")
    )
}

async fn lease_due(db: &TestDb, now: Timestamp, limit: u32) -> Vec<DeliveryAttempt> {
    db.lease_due(now, limit, compose).await
}

fn later(seconds: u64) -> Timestamp {
    NOW + Duration::from_secs(seconds)
}

async fn record(
    db: &TestDb,
    attempt: &DeliveryAttempt,
    now: Timestamp,
    code: Option<u16>,
    after: AfterDelivery,
) -> Option<DisabledReason> {
    let DeliveryAttempt { delivery, endpoint, number, .. } = *attempt;
    let answer = code.ok_or(DeliveryError::TimedOut);
    let attempted = DeliveryAttemptResult { delivery, endpoint, number, at: now - TOOK, now, answer, after };
    db.store.webhooks().record_attempt(attempted).await.unwrap()
}

async fn deliveries(db: &TestDb, endpoint: EndpointId, now: Timestamp) -> Vec<Delivery> {
    db.store.webhooks().list_deliveries(endpoint, None, 100, now).await.unwrap().unwrap().deliveries
}

on_both! {
    async fn each_end_is_enqueued_once_for_subscribed_endpoints(db) {
        let team = db.team(9).await;
        let all = endpoint(db, team, &["*"]).await;
        let failures = endpoint(db, team, &["grab.failed"]).await;
        let disabled = endpoint(db, team, &[]).await;
        let off = EndpointUpdate { enabled: Some(false), ..EndpointUpdate::default() };
        db.store.webhooks().change_endpoint(disabled, off).await.unwrap().unwrap();
        let test = new_endpoint(db, team, Environment::Test, &[]);
        let test_id = test.id;
        db.store.webhooks().register_endpoint(test).await.unwrap();
        let other_team = endpoint(db, db.team(0).await, &[]).await;

        done(db, team, Class::Async).await;
        let mut failed = db.new_grab(team, Class::Async);
        failed.deadline_at = NOW + Duration::from_secs(9);
        let failed_id = failed.id;
        db.store.grabs().create(failed).await.unwrap();
        assert!(db.store.grabs().fail(failing(failed_id, FailureSource::Cancel, NOW)).await.unwrap().is_some());
        let mut overdue = db.new_grab(team, Class::Async);
        overdue.deadline_at = NOW + Duration::from_secs(9);
        db.store.grabs().create(overdue).await.unwrap();
        assert_eq!(db.store.grabs().expire_jobs(later(9), 9).await.unwrap().len(), 1);
        // Fails after the last attempt.
        db.store.grabs().create(db.new_grab(team, Class::Async)).await.unwrap();
        for attempt in 1..=3 {
            let now = later(attempt);
            let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, now)).await.unwrap().pop().unwrap();
            db.store.grabs().release(leased.grab, leased.token, now).await.unwrap();
        }
        // Synchronous grabs send no webhook.
        done(db, team, Class::Sync).await;

        let mut seen: Vec<_> = lease_due(db, later(60), 50).await;
        seen.sort_by_key(|attempt| (attempt.endpoint, attempt.body.clone()));
        let seen: Vec<_> =
            seen.iter().map(|attempt| (attempt.endpoint, attempt.body.as_str(), attempt.number)).collect();
        let (ok, bad) = ("grab.done live grab", "grab.failed live grab");
        let expected =
            [(all, ok), (all, bad), (all, bad), (all, bad), (failures, bad), (failures, bad), (failures, bad)];
        assert_eq!(seen, expected.map(|(target, body)| (target.endpoint, body, 1)));
        for endpoint in [disabled.endpoint, test_id, other_team.endpoint] {
            assert_eq!(deliveries(db, endpoint, NOW).await, []);
        }
    }

    async fn changed_image_is_an_event_of_its_own_beside_the_end(db) {
        let team = db.team(9).await;
        let all = endpoint(db, team, &[]).await;
        let ends = endpoint(db, team, &["grab.done"]).await;
        let changes = endpoint(db, team, &["grab.changed"]).await;
        let compared = async |class, changed_ppm: Option<u32>| {
            db.store.grabs().create(db.new_grab(team, class)).await.unwrap();
            let leased = db.store.grabs().lease(db.lease_request(class, 1, NOW)).await.unwrap().pop().unwrap();
            let mut completed = completion(&leased);
            completed.metadata.difference =
                changed_ppm.map(|changed_ppm| Difference { compared_to: leased.grab, changed_ppm, regions: Vec::new() });
            assert!(db.store.grabs().complete(completed).await.unwrap().is_some());
        };
        let events = async |of: EndpointRef| {
            let found = deliveries(db, of.endpoint, NOW).await;
            let mut events: Vec<_> = found.iter().map(|delivery| delivery.event.as_str()).collect();
            events.sort_unstable();
            events
        };
        // Not compared, the same image, and a synchronous grab.
        compared(Class::Async, None).await;
        compared(Class::Async, Some(0)).await;
        compared(Class::Sync, Some(9)).await;
        assert_eq!((events(all).await.len(), events(ends).await.len()), (2, 2));
        assert_eq!(events(changes).await, [""; 0]);
        compared(Class::Async, Some(1)).await;
        assert_eq!(events(all).await, ["grab.changed", "grab.done", "grab.done", "grab.done"]);
        assert_eq!(events(ends).await, ["grab.done"; 3]);
        assert_eq!(events(changes).await, ["grab.changed"]);
        // Each is sent with its own name.
        let mut sent: Vec<_> = lease_due(db, later(60), 50).await.into_iter().map(|due| due.body).collect();
        sent.sort_unstable();
        sent.dedup();
        assert_eq!(sent, ["grab.changed live grab", "grab.done live grab"]);
    }

    async fn failed_commit_enqueues_no_delivery(db) {
        let team = db.team(2).await;
        let target = endpoint(db, team, &[]).await;
        db.store.grabs().create(db.new_grab(team, Class::Async)).await.unwrap();
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        // If the delivery cannot be written, the grab does not end and its credit stays held.
        db.execute_raw("ALTER TABLE delivery RENAME TO elsewhere").await.unwrap();
        assert!(db.store.grabs().complete(completion(&leased)).await.is_err());
        db.execute_raw("ALTER TABLE elsewhere RENAME TO delivery").await.unwrap();
        assert!(!db.grab(team, leased.grab).await.status().is_terminal());
        assert_eq!(db.credits(team).await, (2, 1));
        assert_eq!(deliveries(db, target.endpoint, NOW).await, []);
        assert!(db.store.grabs().complete(completion(&leased)).await.unwrap().is_some());
        assert_eq!(deliveries(db, target.endpoint, NOW).await.len(), 1);
    }

    async fn delivery_is_leased_by_one_sender_and_keeps_its_body(db) {
        let team = db.team(1).await;
        let target = endpoint(db, team, &[]).await;
        assert!(!db.has_due(later(9)).await);
        done(db, team, Class::Async).await;
        assert!(db.has_due(later(9)).await);
        let taken = join_all((0..4).map(|_| lease_due(db, later(9), 9))).await;
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(taken.len(), 1);
        assert!(!db.has_due(later(9) + LEASE - Duration::from_millis(1)).await);
        // After a sender crash, the delivery is due again and not composed again.
        let again = |content: &MessageContent| panic!("composed twice: {content:?}");
        let after = later(9) + LEASE;
        let second = db.lease_due(after, 9, again).await.pop().unwrap();
        assert_eq!((second.number, &second.body), (2, &taken[0].body));
        // A late result of the first attempt is ignored.
        record(db, &taken[0], after, Some(500), AfterDelivery::Exhausted).await;
        assert_eq!(deliveries(db, target.endpoint, NOW).await[0].status, DeliveryStatus::Pending);
        record(db, &second, after, Some(204), AfterDelivery::Delivered).await;
        let delivery = deliveries(db, target.endpoint, NOW).await.remove(0);
        assert_eq!(
            (delivery.status, delivery.attempt, delivery.status_code),
            (DeliveryStatus::Delivered, 2, Some(204))
        );
        assert_eq!((delivery.attempted_at, delivery.next_attempt_at), (Some(after - TOOK), None));
        assert_eq!((delivery.event, delivery.id), (Event::GrabDone, second.delivery));
    }

    async fn due_deliveries_have_the_payer_of_their_team(db) {
        let (ada, owned) = db.owned_team("ada@example.com").await;
        let target = endpoint(db, owned, &[]).await;
        let unowned = db.team(0).await;
        let other = endpoint(db, unowned, &[]).await;
        let removed = endpoint(db, unowned, &[]).await;
        for (at, target) in [(1, target), (2, other), (3, removed)] {
            db.store.webhooks().test_endpoint(target, DeliveryId(db.id()), later(at)).await.unwrap();
        }
        let id = db.literal(removed.endpoint.0);
        db.execute_raw(&format!("DELETE FROM webhook_endpoint WHERE id = {id}")).await.unwrap();
        let seen: Vec<_> = db.due(later(9), 9).await.iter().map(|due| (due.endpoint, due.payer, due.due_at)).collect();
        let expected = [
            (target.endpoint, PayerId(ada.0), later(1)),
            (other.endpoint, PayerId(unowned.0), later(2)),
            (removed.endpoint, PayerId(removed.endpoint.0), later(3)),
        ];
        assert_eq!(seen, expected);
        let range = async |range, limit| db.store.webhooks().due_deliveries(range, later(9), limit).await.unwrap().len();
        assert_eq!((range(later(2)..=later(9), 9).await, range(later(1)..=later(1), 9).await), (2, 1));
        assert_eq!(range(later(1)..=later(9), 2).await, 2);
        // That of the removed endpoint is no longer due when it is leased.
        assert_eq!(lease_due(db, later(9), 9).await.len(), 2);
        assert!(!db.has_due(later(9)).await);
    }

    async fn due_delivery_remembers_that_its_last_attempt_timed_out(db) {
        let team = db.team(0).await;
        let target = endpoint(db, team, &[]).await;
        db.store.webhooks().test_endpoint(target, DeliveryId(db.id()), NOW).await.unwrap();
        assert!(!db.due(NOW, 1).await[0].has_timed_out);
        for (code, expected) in [(None, true), (Some(500), false)] {
            let attempt = lease_due(db, NOW, 1).await.remove(0);
            record(db, &attempt, NOW, code, AfterDelivery::Retry(NOW)).await;
            assert_eq!(db.due(NOW, 1).await[0].has_timed_out, expected);
        }
    }

    async fn endpoint_is_disabled_after_failing_for_five_days(db) {
        let team = db.team(9).await;
        let target = endpoint(db, team, &[]).await;
        let at = |elapsed: Duration| later(9) + elapsed;
        let almost = FAILING_LIMIT - Duration::from_secs(1);
        done(db, team, Class::Async).await;
        done(db, team, Class::Async).await;
        let attempts = lease_due(db, at(Duration::ZERO), 9).await;
        let retry = AfterDelivery::Retry(at(almost));
        assert_eq!(record(db, &attempts[0], at(Duration::ZERO), Some(500), retry).await, None);
        assert_eq!(
            deliveries(db, target.endpoint, NOW).await.iter().filter(|d| d.status == DeliveryStatus::Failed).count(),
            1
        );
        // A success just before the limit restarts the five days.
        let second = lease_due(db, at(almost), 9).await;
        assert_eq!(record(db, &second[0], at(almost), Some(500), AfterDelivery::Retry(at(almost))).await, None);
        assert_eq!(record(db, &second[1], at(almost), Some(200), AfterDelivery::Delivered).await, None);
        let third = lease_due(db, at(almost), 9).await;
        let restart = at(almost);
        let retry = AfterDelivery::Retry(restart + FAILING_LIMIT);
        assert_eq!(record(db, &third[0], restart, None, retry).await, None);
        let fourth = lease_due(db, restart + FAILING_LIMIT, 9).await;
        let again = AfterDelivery::Retry(restart + FAILING_LIMIT * 2);
        let ended = record(db, &fourth[0], restart + FAILING_LIMIT, None, again).await;
        assert_eq!(ended, Some(DisabledReason::Failing));
        let found = db.store.webhooks().find_endpoint(target).await.unwrap().unwrap();
        assert_eq!(found.disabled, Some(DisabledReason::Failing));
        // Disabling cancels its pending delivery, and nothing new is enqueued.
        assert!(!db.has_due(restart + FAILING_LIMIT * 9).await);
        done(db, team, Class::Async).await;
        assert!(!db.has_due(restart + FAILING_LIMIT * 9).await);
        // Enabling it clears its failures.
        let on = EndpointUpdate { enabled: Some(true), ..EndpointUpdate::default() };
        assert_eq!(db.store.webhooks().change_endpoint(target, on).await.unwrap().unwrap().disabled, None);
        done(db, team, Class::Async).await;
        let fifth = lease_due(db, restart + FAILING_LIMIT, 9).await;
        assert_eq!(record(db, &fifth[0], restart + FAILING_LIMIT, None, again).await, None);
    }

    async fn gone_endpoint_is_disabled(db) {
        let team = db.team(9).await;
        let target = endpoint(db, team, &[]).await;
        done(db, team, Class::Async).await;
        done(db, team, Class::Async).await;
        let attempts = lease_due(db, later(9), 1).await;
        assert_eq!(record(db, &attempts[0], later(9), Some(410), AfterDelivery::Gone).await, Some(DisabledReason::Gone));
        let statuses: Vec<_> =
            deliveries(db, target.endpoint, NOW).await.iter().map(|delivery| delivery.status).collect();
        assert_eq!(statuses, [DeliveryStatus::Exhausted; 2]);
        let refused = db.store.webhooks().test_endpoint(target, DeliveryId(db.id()), NOW).await.unwrap();
        assert_eq!(refused, ResendOutcome::Disabled);
        assert_eq!(db.store.webhooks().redeliver(target, attempts[0].delivery, NOW).await.unwrap(), ResendOutcome::Disabled);
    }

    async fn removing_or_disabling_an_endpoint_cancels_its_deliveries(db) {
        let team = db.team(9).await;
        for remove in [true, false] {
            let target = endpoint(db, team, &[]).await;
            done(db, team, Class::Async).await;
            done(db, team, Class::Async).await;
            let in_progress_attempt = lease_due(db, later(9), 1).await.remove(0);
            if remove {
                assert!(db.store.webhooks().remove_endpoint(target).await.unwrap());
                assert!(!db.store.webhooks().remove_endpoint(target).await.unwrap());
            } else {
                let off = EndpointUpdate { enabled: Some(false), ..EndpointUpdate::default() };
                let changed = db.store.webhooks().change_endpoint(target, off).await.unwrap().unwrap();
                assert_eq!(changed.disabled, Some(DisabledReason::Requested));
            }
            // The attempt in progress is not retried, whatever its result.
            record(db, &in_progress_attempt, later(9), Some(500), AfterDelivery::Retry(later(10))).await;
            assert!(!db.has_due(later(9999)).await);
        }
    }

    async fn concurrent_registrations_respect_the_endpoint_limit(db) {
        let team = db.team(0).await;
        let new = || new_endpoint(db, team, Environment::Live, &[]);
        let outcomes = join_all((0..14).map(|_| db.store.webhooks().register_endpoint(new()))).await;
        let registered =
            outcomes.into_iter().filter(|outcome| matches!(outcome, Ok(RegisterOutcome::Registered(_)))).count();
        assert_eq!(registered, 10);
        assert_eq!(db.store.webhooks().list_endpoints(team, Environment::Live, None).await.unwrap().len(), 10);
        assert_eq!(db.store.webhooks().register_endpoint(new()).await.unwrap(), RegisterOutcome::TooMany { limit: 10 });
        let test = new_endpoint(db, team, Environment::Test, &[]);
        assert!(matches!(db.store.webhooks().register_endpoint(test).await.unwrap(), RegisterOutcome::Registered(_)));
        let unknown_team = new_endpoint(db, TeamId(db.id()), Environment::Live, &[]);
        assert_eq!(db.store.webhooks().register_endpoint(unknown_team).await.unwrap(), RegisterOutcome::TeamInactive);
    }

    async fn endpoints_are_scoped_to_team_and_environment(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let target = endpoint(db, team, &["grab.done"]).await;
        let theirs = [EndpointRef { team: other, ..target }, EndpointRef { environment: Environment::Test, ..target }];
        let id = DeliveryId(db.id());
        for theirs in theirs {
            assert_eq!(db.store.webhooks().find_endpoint(theirs).await.unwrap(), None);
            assert_eq!(db.store.webhooks().list_endpoints(theirs.team, theirs.environment, theirs.grant).await.unwrap(), []);
            assert_eq!(db.store.webhooks().change_endpoint(theirs, EndpointUpdate::default()).await.unwrap(), None);
            assert_eq!(db.store.webhooks().rotate_secret(rotated(theirs, vec![2], NOW)).await.unwrap(), None);
            assert_eq!(db.store.webhooks().test_endpoint(theirs, id, NOW).await.unwrap(), ResendOutcome::NoEndpoint);
            assert_eq!(db.store.webhooks().redeliver(theirs, id, NOW).await.unwrap(), ResendOutcome::NoEndpoint);
            assert!(!db.store.webhooks().remove_endpoint(theirs).await.unwrap());
        }
        let change = EndpointUpdate {
            url: TargetUrl::restore("https://example.org/"),
            events: Some(Events::all()),
            description: Some("Another".into()),
            enabled: None,
        };
        let changed = db.store.webhooks().change_endpoint(target, change).await.unwrap().unwrap();
        assert_eq!((changed.url.as_str(), changed.description.as_str()), ("https://example.org/", "Another"));
        let found = db.store.webhooks().find_endpoint(target).await.unwrap().unwrap();
        assert_eq!((&found, found.events.words()), (&changed, vec!["*"]));
        assert_eq!(db.store.webhooks().list_endpoints(team, Environment::Live, None).await.unwrap(), [found]);
    }

    async fn previous_secret_signs_until_its_expiry(db) {
        let team = db.team(0).await;
        let target = endpoint(db, team, &[]).await;
        assert!(db.store.webhooks().rotate_secret(rotated(target, vec![2], later(100))).await.unwrap().is_some());
        for (now, secrets) in [(later(99), vec![vec![2], vec![1; 73]]), (later(100), vec![vec![2]])] {
            let id = DeliveryId(db.id());
            let ResendOutcome::Due(test) = db.store.webhooks().test_endpoint(target, id, now).await.unwrap() else {
                panic!("expected a due delivery")
            };
            assert_eq!((test.event, test.status, test.attempt), (Event::Test, DeliveryStatus::Pending, 0));
            let taken = lease_due(db, now, 9).await.remove(0);
            assert_eq!((taken.secrets.clone(), taken.body.as_str()), (secrets, "webhook.test live -"));
            record(db, &taken, now, Some(200), AfterDelivery::Delivered).await;
        }
        db.store.webhooks().rotate_secret(rotated(target, vec![3], later(300))).await.unwrap();
        db.store.webhooks().test_endpoint(target, DeliveryId(db.id()), later(200)).await.unwrap();
        assert_eq!(lease_due(db, later(200), 9).await[0].secrets, [vec![3], vec![2]]);
    }

    async fn redeliver_sends_the_same_body_and_id(db) {
        let team = db.team(1).await;
        let target = endpoint(db, team, &[]).await;
        done(db, team, Class::Async).await;
        let first = lease_due(db, later(9), 9).await.remove(0);
        record(db, &first, later(9), Some(200), AfterDelivery::Delivered).await;
        let nothing = db.store.webhooks().redeliver(target, DeliveryId(db.id()), later(20)).await.unwrap();
        assert_eq!(nothing, ResendOutcome::NoDelivery);
        let other = endpoint(db, team, &[]).await;
        assert_eq!(db.store.webhooks().redeliver(other, first.delivery, later(20)).await.unwrap(), ResendOutcome::NoDelivery);
        let ResendOutcome::Due(due) = db.store.webhooks().redeliver(target, first.delivery, later(20)).await.unwrap() else {
            panic!("expected a due delivery");
        };
        assert_eq!(
            (due.id, due.status, due.next_attempt_at),
            (first.delivery, DeliveryStatus::Pending, Some(later(20)))
        );
        let second = lease_due(db, later(20), 9).await.remove(0);
        assert_eq!((second.delivery, &second.body, second.number), (first.delivery, &first.body, 2));
    }

    async fn find_delivery_returns_the_body_and_last_attempt(db) {
        let team = db.team(9).await;
        let target = endpoint(db, team, &["*"]).await;
        let other = endpoint(db, team, &[]).await;
        done(db, team, Class::Async).await;
        let created = deliveries(db, target.endpoint, NOW).await.pop().unwrap();
        let find = async |endpoint, now| db.store.webhooks().find_delivery(endpoint, created.id, now).await.unwrap();
        let message = find(target.endpoint, NOW).await.unwrap();
        assert_eq!((&message.delivery, message.body), (&created, None));
        assert!(message.grab.is_some());
        assert_eq!((created.took, created.error), (None, None));

        let attempts = lease_due(db, later(20), 9).await;
        let attempt = attempts.iter().find(|attempt| attempt.endpoint == target.endpoint).unwrap();
        record(db, attempt, later(20), None, AfterDelivery::Retry(later(25))).await;
        let message = find(target.endpoint, NOW).await.unwrap();
        assert_eq!(message.body.as_ref(), Some(&attempt.body));
        assert_eq!((message.delivery.took, message.delivery.error), (Some(TOOK), Some(DeliveryError::TimedOut)));
        let again = lease_due(db, later(25), 9).await.pop().unwrap();
        record(db, &again, later(25), Some(204), AfterDelivery::Delivered).await;
        let delivery = find(target.endpoint, NOW).await.unwrap().delivery;
        assert_eq!((delivery.took, delivery.error, delivery.status_code), (Some(TOOK), None, Some(204)));

        // Only through its own endpoint, and only for a month.
        assert_eq!(find(other.endpoint, NOW).await, None, "another endpoint's delivery");
        let last = created.created_at + DELIVERY_RETENTION;
        assert!(find(target.endpoint, last).await.is_some());
        assert_eq!(find(target.endpoint, last + TOOK).await, None);
    }

    async fn deliveries_are_paginated_and_kept_for_a_month(db) {
        let team = db.team(0).await;
        let target = endpoint(db, team, &[]).await;
        let mut expected = Vec::new();
        for second in 0..5 {
            let id = DeliveryId(db.id());
            // Two deliveries per second value.
            db.store.webhooks().test_endpoint(target, id, later(second / 2)).await.unwrap();
            expected.insert(0, id);
        }
        let mut seen = Vec::new();
        loop {
            let page =
                db.store.webhooks().list_deliveries(target.endpoint, seen.last().copied(), 2, later(9)).await.unwrap().unwrap();
            seen.extend(page.deliveries.iter().map(|delivery| delivery.id));
            assert_eq!(page.has_more, seen.len() < 5);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(seen, expected);
        let nowhere = db.store.webhooks().list_deliveries(target.endpoint, Some(DeliveryId(db.id())), 2, NOW).await.unwrap();
        assert_eq!(nowhere, None);

        let month = NOW + DELIVERY_RETENTION;
        assert_eq!(deliveries(db, target.endpoint, month + Duration::from_millis(1)).await.len(), 3);
        assert_eq!(db.store.webhooks().purge_deliveries(month, 9).await.unwrap(), 0);
        assert_eq!(db.store.webhooks().purge_deliveries(month + Duration::from_millis(1), 1).await.unwrap(), 1);
        assert_eq!(db.store.webhooks().purge_deliveries(month + SYNC_DEADLINE, 9).await.unwrap(), 4);
        assert_eq!(deliveries(db, target.endpoint, NOW).await, []);
    }
}
