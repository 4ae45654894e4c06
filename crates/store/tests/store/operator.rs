//! What operators read of the whole service, who is one, and what they grant.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_domain::grabs::{Class, Failure, FailureReason, ImageKey, State};
use grabd_domain::ids::{EndpointId, GrabId, SessionId, TeamId, UserId};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{Events, Registration};
use grabd_store::{
    By, EndedAs, Failed, FailedAt, Failing, Grant, NewEndpoint, NewGrab, NewPerson, NewPlaceholder, NewTeam,
    OperatorGrant, OperatorGranted, Place, Queue, QueueOfTeam, Registered, TeamPlace, TeamSummary, TeamsWanted,
    Undelivered, Waiting,
};

use crate::harness::{NOW, World, completion, facts, failing, on_both, spec};

fn later(seconds: u64) -> Timestamp {
    NOW + Duration::from_secs(seconds)
}

async fn person(world: &World, email: &str, place: Place) -> UserId {
    let (id, email) = (UserId(world.id()), Email::parse(email).unwrap());
    let new = NewPerson { id, email, password_hash: "$argon2id$".into(), place, now: NOW };
    world.store.create_person(new).await.unwrap();
    id
}

/// A live grab that failed at this time; its session.
async fn failed(world: &World, team: TeamId, at: Timestamp) -> (GrabId, SessionId) {
    let grab = world.pending(team).await;
    let ask = world.ask(Class::Sync, 1, NOW);
    let session = ask.session;
    let leased = world.store.lease(ask).await.unwrap().pop().unwrap();
    world.store.fail(failing(grab, By::Lease(leased.token), at)).await.unwrap().unwrap();
    (grab, session)
}

/// A team that was created at this time.
async fn team(world: &World, name: &str, seconds: u64) -> TeamId {
    let id = TeamId(world.id());
    world.store.create_team(NewTeam { id, name: name.into(), now: later(seconds) }).await.unwrap();
    id
}

async fn names(world: &World, wanted: TeamsWanted, after: Option<TeamPlace>, limit: u32) -> Vec<String> {
    let found = world.store.list_summaries(&wanted, after, limit, NOW).await.unwrap();
    found.into_iter().map(|summary| summary.team.name).collect()
}

fn grant(team: TeamId, credits: u32, source_ref: &str) -> OperatorGrant {
    let (kind, source_ref) = (LotKind::Prepaid, source_ref.to_owned());
    let grant = Grant { team, kind, credits, expires_at: None, source_ref, now: NOW };
    OperatorGrant { grant, reason: "operator: sorry".to_owned() }
}

on_both! {
    async fn the_queue_is_told_by_class_and_team(world) {
        assert_eq!(world.store.queue(10).await.unwrap(), Queue::default());
        let (few, many) = (world.team(9).await, world.team(9).await);
        world.leased(few).await;
        for seconds in [5, 7, 9] {
            let new = NewGrab { now: later(seconds), ..world.new_grab(many, Class::Async) };
            world.store.create(new).await.unwrap();
        }
        world.store.create(NewGrab { now: later(8), ..world.new_grab(many, Class::Sync) }).await.unwrap();
        world.meddle(&format!("UPDATE team SET async_queue_limit = 7 WHERE id = {}", world.literal(few.0))).await.unwrap();
        let of = |team, waiting, rendering, asynchronous, limit| {
            QueueOfTeam { team, name: "A team".to_owned(), waiting, rendering, asynchronous, limit }
        };
        let mut queue = world.store.queue(10).await.unwrap();
        queue.classes.sort_by_key(|of| of.waiting);
        let classes = [
            Waiting { class: Class::Sync, waiting: 1, rendering: 1 },
            Waiting { class: Class::Async, waiting: 3, rendering: 0 },
        ];
        assert_eq!(queue.classes, classes);
        // What a renderer has waits no longer.
        assert_eq!(queue.oldest, Some(later(5)));
        assert_eq!(queue.teams, [of(many, 4, 0, 3, None), of(few, 0, 1, 0, Some(7))]);
        assert_eq!(world.store.queue(1).await.unwrap().teams, [of(many, 4, 0, 3, None)]);
    }

    async fn ends_are_counted_by_how_and_from_when_on(world) {
        let team = world.team(9).await;
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap();
        failed(world, team, later(10)).await;
        failed(world, team, later(20)).await;
        world.pending(team).await;
        let outcome = State::Done {
            finished_at: later(20), image: Some(ImageKey::new(7, "png")), size_bytes: 1, execution_ms: 1, facts: facts(),
        };
        let drawn = NewPlaceholder { id: GrabId(world.id()), team, spec: spec(), now: NOW, outcome, idempotency: None };
        world.store.create_placeholder(drawn).await.unwrap();
        let count = async |since| {
            let mut ended = world.store.count_ended(since).await.unwrap();
            ended.sort_by_key(|of| (of.environment == Test, of.failure.is_some()));
            ended
        };
        let blocked = Some(FailureReason::RenderBlocked);
        let of = |environment, failure, grabs| EndedAs { environment, failure, grabs };
        assert_eq!(count(NOW).await, [of(Live, None, 1), of(Live, blocked, 2), of(Test, None, 1)]);
        assert_eq!(count(later(20)).await, [of(Live, blocked, 1), of(Test, None, 1)]);
        assert_eq!(count(later(21)).await, []);
    }

    async fn failures_are_listed_with_their_host_and_who_had_them(world) {
        let (team, other) = (world.team(9).await, world.team(9).await);
        let mut all = Vec::new();
        for (team, seconds) in [(team, 10), (other, 20), (team, 20), (other, 30)] {
            all.push((team, later(seconds), failed(world, team, later(seconds)).await));
        }
        // Nobody had this one, and its page's address has more to it than a host.
        let address = TargetUrl::restore("https://user.example/private?token=1").unwrap();
        let mut new = world.new_grab(other, Class::Sync);
        new.spec.url = address;
        let waited = new.id;
        world.store.create(new).await.unwrap();
        let failure = Failure::new(FailureReason::RenderFailed, "It took too long.");
        let deadline = Failing { grab: waited, by: By::Deadline, failure, facts: facts(), now: later(40) };
        world.store.fail(deadline).await.unwrap().unwrap();

        let listed = world.store.list_failed(None, 9).await.unwrap();
        let (latest, rest) = listed.split_first().unwrap();
        let expected = Failed {
            grab: waited,
            team: other,
            team_name: "A team".to_owned(),
            reason: FailureReason::RenderFailed,
            host: TargetUrl::restore("https://user.example/").unwrap().host(),
            session: None,
            attempts: 0,
            finished_at: later(40),
        };
        assert_eq!(*latest, expected);
        assert!(!format!("{listed:?}").contains("private"), "{listed:?}");
        let seen: Vec<_> = rest.iter().map(|of| (of.team, of.finished_at, of.grab, of.session.unwrap())).collect();
        all.reverse();
        let told: Vec<_> = all.iter().map(|(team, at, (grab, session))| (*team, *at, *grab, *session)).collect();
        assert_eq!(seen, told);
        assert!(rest.iter().all(|of| of.attempts == 1 && of.reason == FailureReason::RenderBlocked));

        // Page by page, also between two that failed at the same time.
        let mut place = None;
        let mut paged = Vec::new();
        while let [failed] = &world.store.list_failed(place, 1).await.unwrap()[..] {
            place = Some(FailedAt { at: failed.finished_at, grab: failed.grab });
            paged.push(failed.clone());
        }
        assert_eq!(paged, listed);
        let own = world.store.list_failed_of(team, 9).await.unwrap();
        assert!(own.len() == 2 && own.iter().all(|of| of.team == team), "{own:?}");
    }

    async fn failures_of_test_grabs_are_nobodys_business(world) {
        let team = world.team(0).await;
        let failure = Failure::new(FailureReason::RenderFailed, "As asked for.");
        let outcome = State::Failed { finished_at: NOW, failure, facts: facts() };
        let drawn = NewPlaceholder { id: GrabId(world.id()), team, spec: spec(), now: NOW, outcome, idempotency: None };
        world.store.create_placeholder(drawn).await.unwrap();
        assert_eq!(world.store.list_failed(None, 9).await.unwrap(), []);
        assert_eq!(world.store.list_failed_of(team, 9).await.unwrap(), []);
    }

    async fn teams_are_found_by_name_id_and_member_and_paged(world) {
        let acme = team(world, "Acme 100% Ltd", 1).await;
        let beta = team(world, "beta_acme", 2).await;
        let gamma = team(world, "Gamma", 2).await;
        person(world, "ada@example.com", Place::In(gamma)).await;
        let all = ["Gamma", "beta_acme", "Acme 100% Ltd"];
        assert_eq!(names(world, TeamsWanted::All, None, 9).await, all);
        let mut after = None;
        let mut paged = Vec::new();
        while let [one] = &world.store.list_summaries(&TeamsWanted::All, after, 1, NOW).await.unwrap()[..] {
            after = Some(TeamPlace { created_at: one.team.created_at, team: one.team.id });
            paged.push(one.team.name.clone());
        }
        assert_eq!(paged, all);
        for (wanted, expected) in [
            (TeamsWanted::Named("ACME".into()), &["beta_acme", "Acme 100% Ltd"][..]),
            (TeamsWanted::Named("0% l".into()), &["Acme 100% Ltd"]),
            (TeamsWanted::Named("a_a".into()), &["beta_acme"]),
            (TeamsWanted::Named("\\".into()), &[]),
            (TeamsWanted::Named("nobody".into()), &[]),
            (TeamsWanted::Id(beta), &["beta_acme"]),
            (TeamsWanted::Id(TeamId(world.id())), &[]),
            (TeamsWanted::Of(Email::parse("ada@example.com").unwrap()), &["Gamma"]),
            (TeamsWanted::Of(Email::parse("eve@example.com").unwrap()), &[]),
        ] {
            assert_eq!(names(world, wanted.clone(), None, 9).await, expected, "{wanted:?}");
        }
        let place = TeamPlace { created_at: later(2), team: beta };
        assert_eq!(names(world, TeamsWanted::Named("acme".into()), Some(place), 9).await, ["Acme 100% Ltd"]);
        let _ = acme;
    }

    async fn a_team_is_summed_up(world) {
        let (rich, poor) = (world.team(5).await, world.team(0).await);
        world.grant(rich, LotKind::Subscription, 3, Some(later(60))).await;
        person(world, "ada@example.com", Place::In(rich)).await;
        person(world, "bob@example.com", Place::In(rich)).await;
        let leased = world.leased(rich).await;
        world.store.complete(completion(&leased)).await.unwrap();
        failed(world, rich, NOW).await;
        world.pending(rich).await;
        let summary = async |since| {
            let all = world.store.list_summaries(&TeamsWanted::All, None, 9, since).await.unwrap();
            let of = |team| all.iter().find(|summary| summary.team.id == team).cloned().unwrap();
            (of(rich), of(poor))
        };
        let (of_rich, of_poor) = summary(NOW).await;
        let TeamSummary { members, lots, captures, .. } = of_rich;
        let left: Vec<_> = lots.iter().map(|lot| (lot.remaining, lot.held)).collect();
        assert_eq!((members, captures, left.len()), (2, 1, 2));
        assert!(left.contains(&(2, 1)) && left.contains(&(5, 0)), "{left:?}");
        assert_eq!((of_poor.members, of_poor.lots.len(), of_poor.captures), (0, 0, 0));
        assert_eq!(summary(later(1)).await.0.captures, 0);
    }

    async fn what_endpoints_have_not_got_is_counted(world) {
        assert_eq!(world.store.undelivered().await.unwrap(), Undelivered::default());
        let team = world.team(9).await;
        let mut endpoints = Vec::new();
        for _ in 0..4 {
            let registration = Registration {
                url: TargetUrl::restore("https://example.com/hook").unwrap(),
                events: Events::all(),
                description: String::new(),
            };
            let id = EndpointId(world.id());
            let new = NewEndpoint { id, team, environment: Live, registration, secret: vec![1; 73], now: NOW };
            assert!(matches!(world.store.register_endpoint(new).await.unwrap(), Registered::Yes(_)));
            endpoints.push(world.literal(id.0));
        }
        // One that fails, one that failed for too long, and one whose team has switched it off after it failed.
        for (endpoint, change) in endpoints.iter().zip([
            "failing_since = 1",
            "failing_since = 1, disabled = 2",
            "failing_since = 1, disabled = 0",
        ]) {
            world.meddle(&format!("UPDATE webhook_endpoint SET {change} WHERE id = {endpoint}")).await.unwrap();
        }
        let states = [(0, "1"), (0, "1"), (0, "2"), (2, "9"), (1, "NULL"), (3, "NULL")];
        for (state, next_at) in states {
            let (id, grab, endpoint) = (world.literal(world.id()), world.literal(world.id()), &endpoints[3]);
            let row = format!(
                "INSERT INTO delivery (id, endpoint_id, grab_id, event, state, attempt, next_at, created_at) \
                 VALUES ({id}, {endpoint}, {grab}, 0, {state}, 1, {next_at}, 1)"
            );
            world.meddle(&row).await.unwrap();
        }
        let owed = Undelivered { waiting: 3, retried: 1, failing: 1, disabled: 1 };
        assert_eq!(world.store.undelivered().await.unwrap(), owed);
        assert!(world.store.size_bytes().await.unwrap() > 100_000);
    }

    async fn an_operator_is_made_and_unmade(world) {
        let team = world.team(0).await;
        let ada = person(world, "ada@example.com", Place::In(team)).await;
        person(world, "bob@example.com", Place::In(team)).await;
        let operators = async || {
            let people = world.store.list_people().await.unwrap();
            people.into_iter().filter(|person| person.operator).map(|person| person.id).collect::<Vec<_>>()
        };
        assert_eq!(operators().await, []);
        assert!(world.store.set_operator(ada, true).await.unwrap());
        assert!(world.store.set_operator(ada, true).await.unwrap());
        assert_eq!(operators().await, [ada]);
        assert!(world.store.set_operator(ada, false).await.unwrap());
        assert_eq!(operators().await, []);
        assert!(!world.store.set_operator(UserId(world.id()), true).await.unwrap());
    }

    async fn an_operators_grant_arrives_once_and_its_reason_is_in_the_ledger(world) {
        let (team, other) = (world.team(0).await, world.team(0).await);
        let OperatorGranted::New(lot) = world.store.grant_by_operator(grant(team, 25, "operator:a:1")).await.unwrap() else { panic!("new") };
        assert_eq!(world.store.grant_by_operator(grant(team, 25, "operator:a:1")).await.unwrap(), OperatorGranted::Repeated(lot));
        assert_eq!(world.store.grant_by_operator(grant(team, 26, "operator:a:1")).await.unwrap(), OperatorGranted::Otherwise);
        assert_eq!(world.store.grant_by_operator(grant(other, 25, "operator:a:1")).await.unwrap(), OperatorGranted::Otherwise);
        let entries = world.store.ledger(team, None, 9).await.unwrap();
        let told: Vec<_> = entries.iter().map(|of| (of.kind, of.amount, of.reference.as_deref())).collect();
        assert_eq!(told, [(EntryKind::Grant, 25, Some("operator: sorry"))]);
        assert_eq!(world.store.holdings(team, 9).await.unwrap()[0].source_ref, "operator:a:1");
        assert_eq!(world.store.ledger(other, None, 9).await.unwrap(), []);
        let grants = (0..8).map(|_| world.store.grant_by_operator(grant(other, 5, "operator:a:2")));
        let granted = futures::future::join_all(grants).await;
        let new = granted.iter().filter(|granted| matches!(granted, Ok(OperatorGranted::New(_)))).count();
        assert!(new == 1 && granted.iter().all(Result::is_ok), "{granted:?}");
    }
}
