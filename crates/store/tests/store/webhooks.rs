//! What is owed to endpoints, and how it is taken and settled.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Class;
use grabd_domain::ids::{DeliveryId, EndpointId, TeamId};
use grabd_domain::limits::SYNC_DEADLINE;
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{
    Change, Delivery, DeliveryStatus, Disabled, Event, Events, FAILING_LIMIT, LOG_LIFE, NoAnswer, Registration,
};
use grabd_store::{Attempt, Attempted, By, Mine, NewEndpoint, Owed, Registered, Resent, Room, Then};

use crate::harness::{NOW, World, completion, failing, on_both};

const LEASE: Duration = Duration::from_secs(30);
/// What each attempt takes.
const TOOK: Duration = Duration::from_millis(43);

fn new_endpoint(world: &World, team: TeamId, environment: Environment, events: &[&str]) -> NewEndpoint {
    NewEndpoint {
        id: EndpointId(world.id()),
        team,
        environment,
        registration: Registration {
            url: TargetUrl::restore("https://example.com/hook").unwrap(),
            events: Events::parse(events).unwrap(),
            description: "A hook".into(),
        },
        secret: vec![1; 73],
        now: NOW,
    }
}

async fn endpoint(world: &World, team: TeamId, events: &[&str]) -> Mine {
    let new = new_endpoint(world, team, Environment::Live, events);
    let mine = Mine { team, environment: Environment::Live, endpoint: new.id };
    assert!(matches!(world.store.register_endpoint(new).await.unwrap(), Registered::Yes(_)));
    mine
}

/// An asynchronous grab that has just ended with a picture.
async fn done(world: &World, team: TeamId, class: Class) {
    world.store.create(world.new_grab(team, class)).await.unwrap();
    let leased = world.store.lease(world.ask(class, 1, NOW)).await.unwrap().pop().unwrap();
    assert!(world.store.complete(completion(&leased)).await.unwrap().is_some());
}

fn room(total: usize) -> Room {
    Room { total, per_endpoint: 4, busy: HashMap::new() }
}

fn compose(owed: &Owed) -> String {
    format!("{} {} {}", owed.event.as_str(), owed.environment.as_str(), owed.grab.as_ref().map_or("-", |_| "grab"))
}

async fn take(world: &World, now: Timestamp, room: Room) -> Vec<Attempt> {
    world.store.take_due(now, now + LEASE, room, compose).await.unwrap()
}

fn later(seconds: u64) -> Timestamp {
    NOW + Duration::from_secs(seconds)
}

async fn settle(world: &World, attempt: &Attempt, now: Timestamp, code: Option<u16>, then: Then) -> Option<Disabled> {
    let Attempt { delivery, endpoint, number, .. } = *attempt;
    let answer = code.ok_or(NoAnswer::TimedOut);
    let attempted = Attempted { delivery, endpoint, number, at: now - TOOK, now, answer, then };
    world.store.settle(attempted).await.unwrap()
}

async fn deliveries(world: &World, endpoint: EndpointId, now: Timestamp) -> Vec<Delivery> {
    world.store.list_deliveries(endpoint, None, 100, now).await.unwrap().unwrap().deliveries
}

on_both! {
    async fn each_end_is_owed_once_to_those_who_want_it(world) {
        let team = world.team(9).await;
        let all = endpoint(world, team, &["*"]).await;
        let failures = endpoint(world, team, &["grab.failed"]).await;
        let disabled = endpoint(world, team, &[]).await;
        let off = Change { enabled: Some(false), ..Change::default() };
        world.store.change_endpoint(disabled, off).await.unwrap().unwrap();
        let test = new_endpoint(world, team, Environment::Test, &[]);
        let test_id = test.id;
        world.store.register_endpoint(test).await.unwrap();
        let stranger = endpoint(world, world.team(0).await, &[]).await;

        done(world, team, Class::Async).await;
        let mut failed = world.new_grab(team, Class::Async);
        failed.deadline_at = NOW + Duration::from_secs(9);
        let failed_id = failed.id;
        world.store.create(failed).await.unwrap();
        assert!(world.store.fail(failing(failed_id, By::Cancel, NOW)).await.unwrap().is_some());
        let mut overdue = world.new_grab(team, Class::Async);
        overdue.deadline_at = NOW + Duration::from_secs(9);
        world.store.create(overdue).await.unwrap();
        assert_eq!(world.store.expire_jobs(later(9), 9).await.unwrap().len(), 1);
        // Given up after the last attempt.
        world.store.create(world.new_grab(team, Class::Async)).await.unwrap();
        for attempt in 1..=3 {
            let now = later(attempt);
            let leased = world.store.lease(world.ask(Class::Async, 1, now)).await.unwrap().pop().unwrap();
            world.store.release(leased.grab, leased.token, now).await.unwrap();
        }
        // Those who hold the line hear the end there.
        done(world, team, Class::Sync).await;

        let mut seen: Vec<_> = take(world, later(60), room(50)).await;
        seen.sort_by_key(|attempt| (attempt.endpoint, attempt.body.clone()));
        let seen: Vec<_> = seen.iter().map(|attempt| (attempt.endpoint, attempt.body.as_str(), attempt.number)).collect();
        let (ok, bad) = ("grab.done live grab", "grab.failed live grab");
        let expected = [(all, ok), (all, bad), (all, bad), (all, bad), (failures, bad), (failures, bad), (failures, bad)];
        assert_eq!(seen, expected.map(|(mine, body)| (mine.endpoint, body, 1)));
        for endpoint in [disabled.endpoint, test_id, stranger.endpoint] {
            assert_eq!(deliveries(world, endpoint, NOW).await, []);
        }
    }

    async fn what_does_not_commit_is_not_owed(world) {
        let team = world.team(2).await;
        let mine = endpoint(world, team, &[]).await;
        world.store.create(world.new_grab(team, Class::Async)).await.unwrap();
        let leased = world.store.lease(world.ask(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        // The message cannot be written: then the grab does not end either, and its credit stays held.
        world.meddle("ALTER TABLE delivery RENAME TO elsewhere").await.unwrap();
        assert!(world.store.complete(completion(&leased)).await.is_err());
        world.meddle("ALTER TABLE elsewhere RENAME TO delivery").await.unwrap();
        assert!(!world.grab(team, leased.grab).await.status().is_terminal());
        assert_eq!(world.credits(team).await, (2, 1));
        assert_eq!(deliveries(world, mine.endpoint, NOW).await, []);
        assert!(world.store.complete(completion(&leased)).await.unwrap().is_some());
        assert_eq!(deliveries(world, mine.endpoint, NOW).await.len(), 1);
    }

    async fn one_sender_has_it_and_its_bytes_stay(world) {
        let team = world.team(1).await;
        let mine = endpoint(world, team, &[]).await;
        assert!(!world.store.has_due(later(9)).await.unwrap());
        done(world, team, Class::Async).await;
        assert!(world.store.has_due(later(9)).await.unwrap());
        let taken = join_all((0..4).map(|_| take(world, later(9), room(9)))).await;
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(taken.len(), 1);
        assert!(!world.store.has_due(later(9) + LEASE - Duration::from_millis(1)).await.unwrap());
        // Whoever has it dies: it is due again, and nothing is composed anew.
        let again = |owed: &Owed| panic!("composed twice: {owed:?}");
        let after = later(9) + LEASE;
        let second = world.store.take_due(after, after + LEASE, room(9), again).await.unwrap().pop().unwrap();
        assert_eq!((second.number, &second.body), (2, &taken[0].body));
        // The first one comes back late: the second has the word.
        settle(world, &taken[0], after, Some(500), Then::Exhausted).await;
        assert_eq!(deliveries(world, mine.endpoint, NOW).await[0].status, DeliveryStatus::Pending);
        settle(world, &second, after, Some(204), Then::Delivered).await;
        let delivery = deliveries(world, mine.endpoint, NOW).await.remove(0);
        assert_eq!((delivery.status, delivery.attempt, delivery.status_code), (DeliveryStatus::Delivered, 2, Some(204)));
        assert_eq!((delivery.attempted_at, delivery.next_attempt_at), (Some(after - TOOK), None));
        assert_eq!((delivery.event, delivery.id), (Event::GrabDone, second.delivery));
    }

    async fn a_slow_endpoint_leaves_room_for_others(world) {
        let team = world.team(9).await;
        let slow = endpoint(world, team, &["grab.done"]).await;
        for _ in 0..6 {
            done(world, team, Class::Async).await;
        }
        let other = endpoint(world, team, &["grab.done"]).await;
        done(world, team, Class::Async).await;
        let room = Room { total: 5, per_endpoint: 2, busy: HashMap::from([(other.endpoint, 1)]) };
        let taken: Vec<_> = take(world, later(9), room).await.iter().map(|attempt| attempt.endpoint).collect();
        assert_eq!(taken.iter().filter(|endpoint| **endpoint == slow.endpoint).count(), 2);
        assert_eq!(taken.iter().filter(|endpoint| **endpoint == other.endpoint).count(), 1);
        let room = Room { total: 1, per_endpoint: 2, busy: HashMap::from([(slow.endpoint, 2)]) };
        assert_eq!(take(world, later(9), room).await, []);
    }

    async fn failing_for_five_days_disables_and_success_forgives(world) {
        let team = world.team(9).await;
        let mine = endpoint(world, team, &[]).await;
        let at = |elapsed: Duration| later(9) + elapsed;
        let almost = FAILING_LIMIT - Duration::from_secs(1);
        done(world, team, Class::Async).await;
        done(world, team, Class::Async).await;
        let attempts = take(world, at(Duration::ZERO), room(9)).await;
        let retry = Then::Again(at(almost));
        assert_eq!(settle(world, &attempts[0], at(Duration::ZERO), Some(500), retry).await, None);
        assert_eq!(deliveries(world, mine.endpoint, NOW).await.iter().filter(|d| d.status == DeliveryStatus::Failed).count(), 1);
        // A second before the end something arrives, and the five days begin anew.
        let second = take(world, at(almost), room(9)).await;
        assert_eq!(settle(world, &second[0], at(almost), Some(500), Then::Again(at(almost))).await, None);
        assert_eq!(settle(world, &second[1], at(almost), Some(200), Then::Delivered).await, None);
        let third = take(world, at(almost), room(9)).await;
        let restart = at(almost);
        let retry = Then::Again(restart + FAILING_LIMIT);
        assert_eq!(settle(world, &third[0], restart, None, retry).await, None);
        let fourth = take(world, restart + FAILING_LIMIT, room(9)).await;
        let again = Then::Again(restart + FAILING_LIMIT * 2);
        let ended = settle(world, &fourth[0], restart + FAILING_LIMIT, None, again).await;
        assert_eq!(ended, Some(Disabled::Failing));
        let found = world.store.find_endpoint(team, Environment::Live, mine.endpoint).await.unwrap().unwrap();
        assert_eq!(found.disabled, Some(Disabled::Failing));
        // Its next attempt is cancelled with it, and nothing new is owed.
        assert!(!world.store.has_due(restart + FAILING_LIMIT * 9).await.unwrap());
        done(world, team, Class::Async).await;
        assert!(!world.store.has_due(restart + FAILING_LIMIT * 9).await.unwrap());
        // Enabling it forgives everything.
        let on = Change { enabled: Some(true), ..Change::default() };
        assert_eq!(world.store.change_endpoint(mine, on).await.unwrap().unwrap().disabled, None);
        done(world, team, Class::Async).await;
        let fifth = take(world, restart + FAILING_LIMIT, room(9)).await;
        assert_eq!(settle(world, &fifth[0], restart + FAILING_LIMIT, None, again).await, None);
    }

    async fn gone_is_gone(world) {
        let team = world.team(9).await;
        let mine = endpoint(world, team, &[]).await;
        done(world, team, Class::Async).await;
        done(world, team, Class::Async).await;
        let attempts = take(world, later(9), room(1)).await;
        assert_eq!(settle(world, &attempts[0], later(9), Some(410), Then::Gone).await, Some(Disabled::Gone));
        let statuses: Vec<_> = deliveries(world, mine.endpoint, NOW).await.iter().map(|delivery| delivery.status).collect();
        assert_eq!(statuses, [DeliveryStatus::Exhausted; 2]);
        let refused = world.store.test_endpoint(mine, DeliveryId(world.id()), NOW).await.unwrap();
        assert_eq!(refused, Resent::Disabled);
        assert_eq!(world.store.redeliver(mine, attempts[0].delivery, NOW).await.unwrap(), Resent::Disabled);
    }

    async fn removing_and_disabling_cancel(world) {
        let team = world.team(9).await;
        for remove in [true, false] {
            let mine = endpoint(world, team, &[]).await;
            done(world, team, Class::Async).await;
            done(world, team, Class::Async).await;
            let under_way = take(world, later(9), room(1)).await.remove(0);
            if remove {
                assert!(world.store.remove_endpoint(mine).await.unwrap());
                assert!(!world.store.remove_endpoint(mine).await.unwrap());
            } else {
                let off = Change { enabled: Some(false), ..Change::default() };
                let changed = world.store.change_endpoint(mine, off).await.unwrap().unwrap();
                assert_eq!(changed.disabled, Some(Disabled::Requested));
            }
            // What was under way is not taken up again, whatever came of it.
            settle(world, &under_way, later(9), Some(500), Then::Again(later(10))).await;
            assert!(!world.store.has_due(later(9999)).await.unwrap());
        }
    }

    async fn ten_endpoints_whoever_comes_at_once(world) {
        let team = world.team(0).await;
        let new = || new_endpoint(world, team, Environment::Live, &[]);
        let outcomes = join_all((0..14).map(|_| world.store.register_endpoint(new()))).await;
        let registered = outcomes.into_iter().filter(|outcome| matches!(outcome, Ok(Registered::Yes(_)))).count();
        assert_eq!(registered, 10);
        assert_eq!(world.store.list_endpoints(team, Environment::Live).await.unwrap().len(), 10);
        assert_eq!(world.store.register_endpoint(new()).await.unwrap(), Registered::TooMany);
        let test = new_endpoint(world, team, Environment::Test, &[]);
        assert!(matches!(world.store.register_endpoint(test).await.unwrap(), Registered::Yes(_)));
        let nobody = new_endpoint(world, TeamId(world.id()), Environment::Live, &[]);
        assert_eq!(world.store.register_endpoint(nobody).await.unwrap(), Registered::TeamInactive);
    }

    async fn endpoints_belong_to_a_team_and_environment(world) {
        let (team, other) = (world.team(0).await, world.team(0).await);
        let mine = endpoint(world, team, &["grab.done"]).await;
        let theirs = [Mine { team: other, ..mine }, Mine { environment: Environment::Test, ..mine }];
        let id = DeliveryId(world.id());
        for theirs in theirs {
            assert_eq!(world.store.find_endpoint(theirs.team, theirs.environment, mine.endpoint).await.unwrap(), None);
            assert_eq!(world.store.list_endpoints(theirs.team, theirs.environment).await.unwrap(), []);
            assert_eq!(world.store.change_endpoint(theirs, Change::default()).await.unwrap(), None);
            assert_eq!(world.store.rotate_secret(theirs, vec![2], NOW).await.unwrap(), None);
            assert_eq!(world.store.test_endpoint(theirs, id, NOW).await.unwrap(), Resent::NoEndpoint);
            assert_eq!(world.store.redeliver(theirs, id, NOW).await.unwrap(), Resent::NoEndpoint);
            assert!(!world.store.remove_endpoint(theirs).await.unwrap());
        }
        let change = Change {
            url: TargetUrl::restore("https://example.org/"),
            events: Some(Events::all()),
            description: Some("Another".into()),
            enabled: None,
        };
        let changed = world.store.change_endpoint(mine, change).await.unwrap().unwrap();
        assert_eq!((changed.url.as_str(), changed.description.as_str()), ("https://example.org/", "Another"));
        let found = world.store.find_endpoint(team, Environment::Live, mine.endpoint).await.unwrap().unwrap();
        assert_eq!((&found, found.events.words()), (&changed, vec!["*"]));
        assert_eq!(world.store.list_endpoints(team, Environment::Live).await.unwrap(), [found]);
    }

    async fn a_rotated_secret_signs_for_a_while(world) {
        let team = world.team(0).await;
        let mine = endpoint(world, team, &[]).await;
        assert!(world.store.rotate_secret(mine, vec![2], later(100)).await.unwrap().is_some());
        for (now, secrets) in [(later(99), vec![vec![2], vec![1; 73]]), (later(100), vec![vec![2]])] {
            let id = DeliveryId(world.id());
            let Resent::Due(test) = world.store.test_endpoint(mine, id, now).await.unwrap() else { panic!("it is due") };
            assert_eq!((test.event, test.status, test.attempt), (Event::Test, DeliveryStatus::Pending, 0));
            let taken = take(world, now, room(9)).await.remove(0);
            assert_eq!((taken.secrets.clone(), taken.body.as_str()), (secrets, "webhook.test live -"));
            settle(world, &taken, now, Some(200), Then::Delivered).await;
        }
        world.store.rotate_secret(mine, vec![3], later(300)).await.unwrap();
        world.store.test_endpoint(mine, DeliveryId(world.id()), later(200)).await.unwrap();
        assert_eq!(take(world, later(200), room(9)).await[0].secrets, [vec![3], vec![2]]);
    }

    async fn a_message_is_sent_again_on_request(world) {
        let team = world.team(1).await;
        let mine = endpoint(world, team, &[]).await;
        done(world, team, Class::Async).await;
        let first = take(world, later(9), room(9)).await.remove(0);
        settle(world, &first, later(9), Some(200), Then::Delivered).await;
        let nothing = world.store.redeliver(mine, DeliveryId(world.id()), later(20)).await.unwrap();
        assert_eq!(nothing, Resent::NoDelivery);
        let other = endpoint(world, team, &[]).await;
        assert_eq!(world.store.redeliver(other, first.delivery, later(20)).await.unwrap(), Resent::NoDelivery);
        let Resent::Due(due) = world.store.redeliver(mine, first.delivery, later(20)).await.unwrap() else {
            panic!("it is due");
        };
        assert_eq!((due.id, due.status, due.next_attempt_at), (first.delivery, DeliveryStatus::Pending, Some(later(20))));
        let second = take(world, later(20), room(9)).await.remove(0);
        assert_eq!((second.delivery, &second.body, second.number), (first.delivery, &first.body, 2));
    }

    async fn a_delivery_is_found_with_its_message_and_how_its_last_attempt_went(world) {
        let team = world.team(9).await;
        let mine = endpoint(world, team, &["*"]).await;
        let other = endpoint(world, team, &[]).await;
        done(world, team, Class::Async).await;
        let owed = deliveries(world, mine.endpoint, NOW).await.pop().unwrap();
        let find = async |endpoint, now| world.store.find_delivery(endpoint, owed.id, now).await.unwrap();
        let message = find(mine.endpoint, NOW).await.unwrap();
        assert_eq!((&message.delivery, message.body), (&owed, None));
        assert!(message.grab.is_some());
        assert_eq!((owed.took, owed.no_answer), (None, None));

        let attempts = take(world, later(20), room(9)).await;
        let attempt = attempts.iter().find(|attempt| attempt.endpoint == mine.endpoint).unwrap();
        settle(world, attempt, later(20), None, Then::Again(later(25))).await;
        let message = find(mine.endpoint, NOW).await.unwrap();
        assert_eq!(message.body.as_ref(), Some(&attempt.body));
        assert_eq!((message.delivery.took, message.delivery.no_answer), (Some(TOOK), Some(NoAnswer::TimedOut)));
        let again = take(world, later(25), room(9)).await.pop().unwrap();
        settle(world, &again, later(25), Some(204), Then::Delivered).await;
        let delivery = find(mine.endpoint, NOW).await.unwrap().delivery;
        assert_eq!((delivery.took, delivery.no_answer, delivery.status_code), (Some(TOOK), None, Some(204)));

        // Only below its own endpoint, and only for a month.
        assert_eq!(find(other.endpoint, NOW).await, None, "another endpoint has it");
        let last = owed.created_at + LOG_LIFE;
        assert!(find(mine.endpoint, last).await.is_some());
        assert_eq!(find(mine.endpoint, last + TOOK).await, None);
    }

    async fn deliveries_are_paged_for_a_month(world) {
        let team = world.team(0).await;
        let mine = endpoint(world, team, &[]).await;
        let mut expected = Vec::new();
        for second in 0..5 {
            let id = DeliveryId(world.id());
            // Two of them at the same moment.
            world.store.test_endpoint(mine, id, later(second / 2)).await.unwrap();
            expected.insert(0, id);
        }
        let mut seen = Vec::new();
        loop {
            let page = world.store.list_deliveries(mine.endpoint, seen.last().copied(), 2, later(9)).await.unwrap().unwrap();
            seen.extend(page.deliveries.iter().map(|delivery| delivery.id));
            assert_eq!(page.has_more, seen.len() < 5);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(seen, expected);
        let nowhere = world.store.list_deliveries(mine.endpoint, Some(DeliveryId(world.id())), 2, NOW).await.unwrap();
        assert_eq!(nowhere, None);

        let month = NOW + LOG_LIFE;
        assert_eq!(deliveries(world, mine.endpoint, month + Duration::from_millis(1)).await.len(), 3);
        assert_eq!(world.store.purge_deliveries(month, 9).await.unwrap(), 0);
        assert_eq!(world.store.purge_deliveries(month + Duration::from_millis(1), 1).await.unwrap(), 1);
        assert_eq!(world.store.purge_deliveries(month + SYNC_DEADLINE, 9).await.unwrap(), 4);
        assert_eq!(deliveries(world, mine.endpoint, NOW).await, []);
    }
}
