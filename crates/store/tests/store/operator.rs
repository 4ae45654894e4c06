//! Operator reports, the operator role, and operator grants.

use std::time::Duration;

use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_domain::grabs::{Class, Failure, FailureReason, ImageKey, State};
use grabd_domain::ids::{EndpointId, GrabId, SessionId, TeamId, UserId};
use grabd_domain::target::TargetUrl;
use grabd_domain::team_limits::LimitChange;
use grabd_domain::webhooks::{Creator, Events, Registration};
use grabd_domain::{ErrorCause, Timestamp};
use grabd_store::accounts::{InitialTeam, NewTeam, NewUser};
use grabd_store::credits::{Grant, OperatorGrant, OperatorGrantOutcome};
use grabd_store::grabs::{Completion, FailGrab, FailureSource, NewGrab};
use grabd_store::operator::{
    ClassQueue, DeliveryBacklog, FailedGrab, FailureCursor, FailureFilter, OutcomeCount, Queue, TeamCursor, TeamFilter,
    TeamQueue, TeamSummary, UserCursor, UserFilter,
};
use grabd_store::webhooks::{NewEndpoint, RegisterOutcome};

use crate::harness::{NOW, TestDb, completion, facts, failing, on_both};

fn later(seconds: u64) -> Timestamp {
    NOW + Duration::from_secs(seconds)
}

async fn user(db: &TestDb, email: &str, initial_team: InitialTeam) -> UserId {
    let (id, email) = (UserId(db.id()), Email::parse(email).unwrap());
    let new = NewUser { id, email, password_hash: "$argon2id$".into(), initial_team, verified: true, now: NOW };
    db.store.accounts().create_user(new).await.unwrap();
    id
}

/// Creates a live grab that failed at this time; returns it and the renderer session.
async fn failed(db: &TestDb, team: TeamId, at: Timestamp) -> (GrabId, SessionId) {
    let grab = db.pending(team).await;
    let request = db.lease_request(Class::Sync, 1, NOW);
    let session = request.session;
    let leased = db.store.grabs().lease(request).await.unwrap().pop().unwrap();
    db.store.grabs().fail(failing(grab, FailureSource::Lease(leased.token), at)).await.unwrap().unwrap();
    (grab, session)
}

/// Creates a team at this time.
async fn team(db: &TestDb, name: &str, seconds: u64) -> TeamId {
    let id = TeamId(db.id());
    db.store.accounts().create_team(NewTeam { id, name: name.into(), now: later(seconds) }).await.unwrap();
    id
}

async fn names(db: &TestDb, filter: TeamFilter, after: Option<TeamCursor>, limit: u32) -> Vec<String> {
    let found = db.store.operator().list_summaries(&filter, after, limit, NOW).await.unwrap();
    found.into_iter().map(|summary| summary.team.name).collect()
}

fn grant(team: TeamId, credits: u32, source_ref: &str) -> OperatorGrant {
    let (kind, source_ref) = (LotKind::Prepaid, source_ref.to_owned());
    let grant = Grant { team, kind, credits, expires_at: None, source_ref, now: NOW };
    OperatorGrant { grant, reason: "operator: sorry".to_owned() }
}

on_both! {
    async fn queue_is_summarized_by_class_and_team(db) {
        assert_eq!(db.store.operator().queue(10).await.unwrap(), Queue::default());
        let (few, many) = (db.team(9).await, db.team(9).await);
        db.leased(few).await;
        for seconds in [5, 7, 9] {
            let new = NewGrab { now: later(seconds), ..db.new_grab(many, Class::Async) };
            db.store.grabs().create(new).await.unwrap();
        }
        db.store.grabs().create(NewGrab { now: later(8), ..db.new_grab(many, Class::Sync) }).await.unwrap();
        let limit = LimitChange::parse("async_queue=7").unwrap();
        db.store.limits().change_team_limits(few, vec![limit], NOW).await.unwrap();
        let of = |team, waiting, rendering, asynchronous, limit| TeamQueue {
            team,
            name: "A team".to_owned(),
            waiting,
            rendering,
            asynchronous,
            limit,
        };
        let mut queue = db.store.operator().queue(10).await.unwrap();
        queue.classes.sort_by_key(|of| of.waiting);
        let classes = [
            ClassQueue { class: Class::Sync, waiting: 1, rendering: 1 },
            ClassQueue { class: Class::Async, waiting: 3, rendering: 0 },
        ];
        assert_eq!(queue.classes, classes);
        // Leased grabs do not count as waiting.
        assert_eq!(queue.oldest, Some(later(5)));
        assert_eq!(queue.teams, [of(many, 4, 0, 3, None), of(few, 0, 1, 0, Some(7))]);
        assert_eq!(db.store.operator().queue(1).await.unwrap().teams, [of(many, 4, 0, 3, None)]);
    }

    async fn count_ended_groups_by_result_since_a_time(db) {
        let team = db.team(9).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap();
        failed(db, team, later(10)).await;
        failed(db, team, later(20)).await;
        let outcome = State::Done {
            finished_at: later(20),
            image: Some(ImageKey::new(7, "png")),
            size_bytes: 1,
            execution_ms: 1,
            metadata: facts(),
        };
        let placeholder = crate::placeholder::placeholder(GrabId(db.id()), team, outcome);
        db.store.grabs().create_placeholder(placeholder).await.unwrap();
        let count = async |since| {
            let mut ended = db.store.operator().count_ended(since).await.unwrap();
            ended.sort_by_key(|of| (of.environment == Test, of.failure.is_some()));
            ended
        };
        let blocked = Some(FailureReason::RenderBlocked);
        let of = |environment, failure, grabs| OutcomeCount { hour: 0, environment, failure, grabs };
        assert_eq!(count(NOW).await, [of(Live, None, 1), of(Live, blocked, 2), of(Test, None, 1)]);
        assert_eq!(count(later(20)).await, [of(Live, blocked, 1), of(Test, None, 1)]);
        assert_eq!(count(later(21)).await, []);
        // By hour, from the time since which is counted.
        failed(db, team, later(2 * 3600)).await;
        // Open grabs have not ended.
        db.pending(team).await;
        let hours = async |since| {
            let mut hours: Vec<_> = count(since).await.into_iter().map(|of| (of.hour, of.grabs)).collect();
            hours.sort_unstable();
            hours
        };
        assert_eq!(hours(later(1)).await, [(0, 1), (0, 1), (0, 2), (1, 1)]);
        assert_eq!(hours(NOW).await, [(0, 1), (0, 1), (0, 2), (2, 1)]);
    }

    async fn latencies_are_those_of_the_latest_done_live_grabs(db) {
        let team = db.team(9).await;
        assert_eq!(db.store.operator().image_bytes().await.unwrap(), 0);
        for seconds in [3, 9, 5] {
            let leased = db.leased(team).await;
            db.store.grabs().complete(Completion { now: later(seconds), ..completion(&leased) }).await.unwrap();
        }
        failed(db, team, later(20)).await;
        let seconds = async |since, limit| {
            let found = db.store.operator().latencies(since, limit).await.unwrap();
            found.iter().map(Duration::as_secs).collect::<Vec<_>>()
        };
        assert_eq!(seconds(NOW, 9).await, [9, 5, 3]);
        assert_eq!(seconds(NOW, 2).await, [9, 5]);
        assert_eq!(seconds(later(6), 9).await, [9]);
        assert!(db.store.operator().image_bytes().await.unwrap() > 0);
    }

    async fn failures_are_filtered_by_team_reason_cause_and_time(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        let (blocked, _) = failed(db, team, later(10)).await;
        let (service, _) = failed(db, other, later(20)).await;
        let (old, _) = failed(db, other, later(30)).await;
        let literal = |grab: GrabId| db.literal(grab.0);
        let change = format!("UPDATE grab SET error_code = 'internal_error', error_cause = 2 WHERE id = {}", literal(service));
        db.execute_raw(&change).await.unwrap();
        // Rows of earlier versions have no cause.
        db.execute_raw(&format!("UPDATE grab SET error_cause = NULL WHERE id = {}", literal(old))).await.unwrap();
        let all = FailureFilter::default;
        for (filter, expected) in [
            (all(), &[old, service, blocked][..]),
            (FailureFilter { teams: Some(vec![team]), ..all() }, &[blocked]),
            (FailureFilter { teams: Some(vec![team, other]), ..all() }, &[old, service, blocked]),
            (FailureFilter { teams: Some(vec![]), ..all() }, &[]),
            (FailureFilter { reason: Some(FailureReason::InternalError), ..all() }, &[service]),
            (FailureFilter { reason: Some(FailureReason::RenderFailed), ..all() }, &[]),
            (FailureFilter { cause: Some(ErrorCause::Service), ..all() }, &[service]),
            (FailureFilter { cause: Some(ErrorCause::Target), ..all() }, &[old, blocked]),
            (FailureFilter { cause: Some(ErrorCause::Target), teams: Some(vec![other]), ..all() }, &[old]),
            (FailureFilter { since: Some(later(20)), ..all() }, &[old, service]),
            (FailureFilter { since: Some(later(10)), until: Some(later(20)), ..all() }, &[blocked]),
        ] {
            let found = db.store.operator().list_failed(&filter, None, 9).await.unwrap();
            let ids: Vec<GrabId> = found.failures.iter().map(|failure| failure.grab).collect();
            assert_eq!((ids.as_slice(), found.searched_to), (expected, None), "{filter:?}");
        }
        let by_target = FailureFilter { cause: Some(ErrorCause::Target), ..all() };
        let first = db.store.operator().list_failed(&by_target, None, 1).await.unwrap();
        let [failure] = &first.failures[..] else { panic!("{first:?}") };
        let cursor = FailureCursor { at: failure.finished_at, grab: failure.grab };
        let second = db.store.operator().list_failed(&by_target, Some(cursor), 1).await.unwrap();
        assert_eq!((failure.grab, second.failures[0].grab, second.failures[0].cause), (old, blocked, ErrorCause::Target));
    }

    async fn users_are_listed_with_teams_and_sign_in_and_are_paginated(db) {
        let (acme, beta) = (team(db, "Acme 100%", 1).await, team(db, "beta", 2).await);
        let ada = user(db, "ada@example.com", InitialTeam::Existing(acme)).await;
        let bob = user(db, "bob_b@example.org", InitialTeam::Existing(beta)).await;
        db.store.accounts().suspend_team(beta, "abuse", NOW).await.unwrap();
        let id = db.literal(ada.0);
        let hash = match db.store.kind() {
            grabd_store::Kind::Sqlite => "x'01'",
            grabd_store::Kind::Postgres => "'\\x01'",
        };
        for statement in [
            format!("INSERT INTO second_factor (user_id, secret, last_step, created_at) VALUES ({id}, {hash}, 0, 1)"),
            format!("INSERT INTO device (user_id, hash, network, created_at, seen_at) VALUES ({id}, {hash}, {hash}, 1, 7000)"),
            format!("INSERT INTO session (hash, user_id, created_at, seen_at, expires_at) VALUES ({hash}, {id}, 5000, 9000, 9999)"),
        ] {
            db.execute_raw(&statement).await.unwrap();
        }
        let list = async |filter, after, limit| db.store.operator().list_user_summaries(&filter, after, limit).await.unwrap();
        let all = list(UserFilter::All, None, 9).await;
        let of = |id| all.iter().find(|summary| summary.user.id == id).unwrap();
        let adas = of(ada);
        assert_eq!((adas.has_second_factor, adas.last_sign_in), (true, Some(Timestamp::from_ms(7000))));
        let teams: Vec<_> = adas.teams.iter().map(|of| (of.team, of.name.as_str(), of.is_suspended)).collect();
        assert_eq!(teams, [(acme, "Acme 100%", false)]);
        assert_eq!((of(bob).has_second_factor, of(bob).last_sign_in, of(bob).teams[0].is_suspended), (false, None, true));
        // Both were created at the same time.
        let mut after = None;
        let mut paged = Vec::new();
        while let [one] = &list(UserFilter::All, after, 1).await[..] {
            after = Some(UserCursor { created_at: one.user.created_at, user: one.user.id });
            paged.push(one.clone());
        }
        assert_eq!(paged, all);
        for (search, expected) in
            [("EXAMPLE.com", &[ada][..]), ("b_b", &[bob]), ("0%", &[ada]), ("Beta", &[bob]), ("%", &[ada]), ("nobody", &[])]
        {
            let found = list(UserFilter::Contains(search.into()), None, 9).await;
            assert_eq!(found.iter().map(|of| of.user.id).collect::<Vec<_>>(), expected, "{search}");
        }
        assert_eq!(list(UserFilter::Id(bob), None, 9).await.len(), 1);
        assert_eq!(db.store.operator().list_team_ids(&TeamFilter::NameContains("ACME".into()), 9).await.unwrap(), [acme]);
    }

    async fn failures_are_listed_with_host_and_session(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        let mut all = Vec::new();
        for (team, seconds) in [(team, 10), (other, 20), (team, 20), (other, 30)] {
            all.push((team, later(seconds), failed(db, team, later(seconds)).await));
        }
        // A grab that was never leased, with a URL that contains more than a host.
        let address = TargetUrl::restore("https://user.example/private?token=1").unwrap();
        let mut new = db.new_grab(other, Class::Sync);
        new.spec.url = address;
        let waited = new.id;
        db.store.grabs().create(new).await.unwrap();
        let failure = Failure::new(FailureReason::RenderFailed, "It took too long.");
        let deadline =
            FailGrab { grab: waited, source: FailureSource::Deadline, failure, metadata: facts(), now: later(40) };
        db.store.grabs().fail(deadline).await.unwrap().unwrap();

        let all_failures = FailureFilter::default();
        let listed = db.store.operator().list_failed(&all_failures, None, 9).await.unwrap().failures;
        let (latest, rest) = listed.split_first().unwrap();
        let expected = FailedGrab {
            grab: waited,
            team: other,
            team_name: "A team".to_owned(),
            reason: FailureReason::RenderFailed,
            cause: ErrorCause::Target,
            host: TargetUrl::restore("https://user.example/").unwrap().host(),
            session: None,
            attempts: 0,
            finished_at: later(40),
        };
        assert_eq!(*latest, expected);
        assert!(!format!("{listed:?}").contains("private"), "{listed:?}");
        let seen: Vec<_> = rest.iter().map(|of| (of.team, of.finished_at, of.grab, of.session.unwrap())).collect();
        all.reverse();
        let expected_rows: Vec<_> =
            all.iter().map(|(team, at, (grab, session))| (*team, *at, *grab, *session)).collect();
        assert_eq!(seen, expected_rows);
        assert!(rest.iter().all(|of| of.attempts == 1 && of.reason == FailureReason::RenderBlocked));

        // Paging also splits grabs that failed at the same time.
        let mut cursor = None;
        let mut paged = Vec::new();
        while let [failed] = &db.store.operator().list_failed(&all_failures, cursor, 1).await.unwrap().failures[..] {
            cursor = Some(FailureCursor { at: failed.finished_at, grab: failed.grab });
            paged.push(failed.clone());
        }
        assert_eq!(paged, listed);
        let own = db.store.operator().list_failed_of_team(team, 9).await.unwrap();
        assert!(own.len() == 2 && own.iter().all(|of| of.team == team), "{own:?}");
    }

    async fn failures_of_test_grabs_are_not_listed(db) {
        let team = db.team(0).await;
        let failure = Failure::new(FailureReason::RenderFailed, "As asked for.");
        let outcome = State::Failed { finished_at: NOW, failure, metadata: facts() };
        let placeholder = crate::placeholder::placeholder(GrabId(db.id()), team, outcome);
        db.store.grabs().create_placeholder(placeholder).await.unwrap();
        let found = db.store.operator().list_failed(&FailureFilter::default(), None, 9).await.unwrap();
        assert_eq!(found.failures, []);
        assert_eq!(db.store.operator().list_failed_of_team(team, 9).await.unwrap(), []);
    }

    async fn teams_are_filtered_by_name_id_and_member_and_paginated(db) {
        let acme = team(db, "Acme 100% Ltd", 1).await;
        let beta = team(db, "beta_acme", 2).await;
        let gamma = team(db, "Gamma", 2).await;
        user(db, "ada@example.com", InitialTeam::Existing(gamma)).await;
        let all = ["Gamma", "beta_acme", "Acme 100% Ltd"];
        assert_eq!(names(db, TeamFilter::All, None, 9).await, all);
        let mut after = None;
        let mut paged = Vec::new();
        while let [one] = &db.store.operator().list_summaries(&TeamFilter::All, after, 1, NOW).await.unwrap()[..] {
            after = Some(TeamCursor { created_at: one.team.created_at, team: one.team.id });
            paged.push(one.team.name.clone());
        }
        assert_eq!(paged, all);
        for (filter, expected) in [
            (TeamFilter::NameContains("ACME".into()), &["beta_acme", "Acme 100% Ltd"][..]),
            (TeamFilter::NameContains("0% l".into()), &["Acme 100% Ltd"]),
            (TeamFilter::NameContains("a_a".into()), &["beta_acme"]),
            (TeamFilter::NameContains("\\".into()), &[]),
            (TeamFilter::NameContains("nobody".into()), &[]),
            (TeamFilter::Id(beta), &["beta_acme"]),
            (TeamFilter::Id(TeamId(db.id())), &[]),
            (TeamFilter::MemberEmail(Email::parse("ada@example.com").unwrap()), &["Gamma"]),
            (TeamFilter::MemberEmail(Email::parse("eve@example.com").unwrap()), &[]),
        ] {
            assert_eq!(names(db, filter.clone(), None, 9).await, expected, "{filter:?}");
        }
        let cursor = TeamCursor { created_at: later(2), team: beta };
        assert_eq!(names(db, TeamFilter::NameContains("acme".into()), Some(cursor), 9).await, ["Acme 100% Ltd"]);
        let _ = acme;
    }

    async fn team_summary_counts_members_lots_and_captures(db) {
        let (rich, poor) = (db.team(5).await, db.team(0).await);
        db.grant(rich, LotKind::Subscription, 3, Some(later(60))).await;
        user(db, "ada@example.com", InitialTeam::Existing(rich)).await;
        user(db, "bob@example.com", InitialTeam::Existing(rich)).await;
        let leased = db.leased(rich).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap();
        failed(db, rich, NOW).await;
        db.pending(rich).await;
        let summary = async |since| {
            let all = db.store.operator().list_summaries(&TeamFilter::All, None, 9, since).await.unwrap();
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

    async fn delivery_backlog_counts_deliveries_and_endpoints(db) {
        assert_eq!(db.store.operator().delivery_backlog().await.unwrap(), DeliveryBacklog::default());
        let team = db.team(9).await;
        let mut endpoints = Vec::new();
        for _ in 0..4 {
            let registration = Registration {
                url: TargetUrl::restore("https://example.com/hook").unwrap(),
                events: Events::all(),
                description: String::new(),
            };
            let id = EndpointId(db.id());
            let new = NewEndpoint { id, team, environment: Live, registration, secret: vec![1; 73], creator: Creator::Key, by: None, now: NOW };
            assert!(matches!(db.store.webhooks().register_endpoint(new).await.unwrap(), RegisterOutcome::Registered(_)));
            endpoints.push(db.literal(id.0));
        }
        // One failing endpoint, one disabled for failing, and one disabled by its team while failing.
        for (endpoint, change) in endpoints.iter().zip([
            "failing_since = 1",
            "failing_since = 1, disabled = 2",
            "failing_since = 1, disabled = 0",
        ]) {
            db.execute_raw(&format!("UPDATE webhook_endpoint SET {change} WHERE id = {endpoint}")).await.unwrap();
        }
        let states = [(0, "1"), (0, "1"), (0, "2"), (2, "9"), (1, "NULL"), (3, "NULL")];
        for (state, next_at) in states {
            let (id, grab, endpoint) = (db.literal(db.id()), db.literal(db.id()), &endpoints[3]);
            let row = format!(
                "INSERT INTO delivery (id, endpoint_id, grab_id, event, state, attempt, next_at, created_at) \
                 VALUES ({id}, {endpoint}, {grab}, 0, {state}, 1, {next_at}, 1)"
            );
            db.execute_raw(&row).await.unwrap();
        }
        let backlog = DeliveryBacklog { waiting: 3, retried: 1, failing: 1, disabled: 1 };
        assert_eq!(db.store.operator().delivery_backlog().await.unwrap(), backlog);
        assert!(db.store.operator().size_bytes().await.unwrap() > 100_000);
    }

    async fn set_operator_grants_and_removes_the_role(db) {
        let team = db.team(0).await;
        let ada = user(db, "ada@example.com", InitialTeam::Existing(team)).await;
        user(db, "bob@example.com", InitialTeam::Existing(team)).await;
        let operators = async || {
            let users = db.store.accounts().list_users().await.unwrap();
            users.into_iter().filter(|user| user.operator).map(|user| user.id).collect::<Vec<_>>()
        };
        assert_eq!(operators().await, []);
        assert!(db.store.accounts().set_operator(ada, true).await.unwrap());
        assert!(db.store.accounts().set_operator(ada, true).await.unwrap());
        assert_eq!(operators().await, [ada]);
        assert!(db.store.accounts().set_operator(ada, false).await.unwrap());
        assert_eq!(operators().await, []);
        assert!(!db.store.accounts().set_operator(UserId(db.id()), true).await.unwrap());
    }

    async fn operator_grant_is_idempotent_and_records_its_reason(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let OperatorGrantOutcome::New(lot) = db.store.credits().grant_by_operator(grant(team, 25, "operator:a:1")).await.unwrap()
        else {
            panic!("expected a new lot")
        };
        assert_eq!(
            db.store.credits().grant_by_operator(grant(team, 25, "operator:a:1")).await.unwrap(),
            OperatorGrantOutcome::Repeated(lot)
        );
        assert_eq!(
            db.store.credits().grant_by_operator(grant(team, 26, "operator:a:1")).await.unwrap(),
            OperatorGrantOutcome::Conflict
        );
        assert_eq!(
            db.store.credits().grant_by_operator(grant(other, 25, "operator:a:1")).await.unwrap(),
            OperatorGrantOutcome::Conflict
        );
        let entries = db.store.credits().ledger(team, None, 9).await.unwrap();
        let expected_rows: Vec<_> = entries.iter().map(|of| (of.kind, of.amount, of.reference.as_deref())).collect();
        assert_eq!(expected_rows, [(EntryKind::Grant, 25, Some("operator: sorry"))]);
        assert_eq!(db.store.credits().holdings(team, 9).await.unwrap()[0].source_ref, "operator:a:1");
        assert_eq!(db.store.credits().ledger(other, None, 9).await.unwrap(), []);
        let grants = (0..8).map(|_| db.store.credits().grant_by_operator(grant(other, 5, "operator:a:2")));
        let granted = futures::future::join_all(grants).await;
        let new = granted.iter().filter(|granted| matches!(granted, Ok(OperatorGrantOutcome::New(_)))).count();
        assert!(new == 1 && granted.iter().all(Result::is_ok), "{granted:?}");
    }
}
