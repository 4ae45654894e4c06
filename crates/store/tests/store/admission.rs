//! Payers in the queue, slots for payers that have paid, the limit of the expected wait, and delays.

use std::time::Duration;

use grabd_domain::accounts::Email;
use grabd_domain::admission::{Payer, Throughput, WaitLimit};
use grabd_domain::credits::LotKind;
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Class, Grab, State};
use grabd_domain::ids::{GrabId, PayerId, TeamId, UserId};
use grabd_domain::teams::TeamName;
use grabd_store::accounts::{InitialTeam, NewUser};
use grabd_store::credits::Grant;
use grabd_store::grabs::{Created, FailGrab, FailureSource, NewGrab};

use crate::harness::{NOW, TestDb, blocked, facts, on_both};

const FREE: [&str; 2] = ["hand:", "team:"];
const S: Duration = Duration::from_secs(1);

/// Creates a user with this many teams that have credits nobody paid for.
async fn owner(db: &TestDb, teams: usize) -> (UserId, Vec<TeamId>) {
    let (id, first) = (UserId(db.id()), TeamId(db.id()));
    let email = Email::parse(&format!("{id}@example.com")).unwrap();
    let initial_team = InitialTeam::New(first, "A team".into());
    let user = NewUser { id, email, password_hash: "x".into(), initial_team, verified: true, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    let mut all = vec![first];
    for _ in 1..teams {
        let team = TeamId(db.id());
        db.store
            .accounts()
            .create_owned_team(team, TeamName::parse("Another").unwrap(), id, NOW)
            .await
            .unwrap()
            .unwrap();
        all.push(team);
    }
    for team in &all {
        grant(db, *team, LotKind::Prepaid, &format!("team:{team}")).await;
    }
    (id, all)
}

async fn grant(db: &TestDb, team: TeamId, kind: LotKind, source_ref: &str) {
    let expires_at = (kind == LotKind::Subscription).then_some(NOW + S);
    let grant = Grant { team, kind, credits: 100, expires_at, source_ref: source_ref.to_owned(), now: NOW };
    db.store.credits().grant(grant).await.unwrap();
}

/// Creates a pending synchronous grab of this payer.
async fn pending(db: &TestDb, team: TeamId, payer: Payer) -> GrabId {
    let new = NewGrab { payer, ..db.new_grab(team, Class::Sync) };
    let id = new.id;
    assert_eq!(db.store.grabs().create(new).await.unwrap(), Created::Pending);
    id
}

/// The teams of the next jobs.
async fn lease(db: &TestDb, slots: usize, only_paid: bool) -> Vec<TeamId> {
    let request = grabd_store::grabs::LeaseRequest { only_paid, ..db.lease_request(Class::Sync, slots, NOW) };
    db.store.grabs().lease(request).await.unwrap().into_iter().map(|job| job.team).collect()
}

on_both! {
    async fn payer_is_the_first_owner_or_the_team(db) {
        let (user, teams) = owner(db, 2).await;
        for team in &teams {
            let expected = Payer { id: PayerId(user.0), has_paid: false };
            assert_eq!(db.store.credits().payer(*team, &FREE).await.unwrap(), expected);
        }
        // A second owner changes nothing.
        let (other, _) = owner(db, 1).await;
        let member = format!("INSERT INTO member (team_id, user_id, role, created_at) VALUES ({}, {}, 0, {})",
            db.literal(teams[0].0), db.literal(other.0), NOW.as_ms() + 1);
        db.execute_raw(&member).await.unwrap();
        assert_eq!(db.store.credits().payer(teams[0], &FREE).await.unwrap().id, PayerId(user.0));
        let ownerless = db.team(0).await;
        assert_eq!(db.store.credits().payer(ownerless, &FREE).await.unwrap(), Payer::of_team(ownerless));
    }

    async fn payer_has_paid_once_one_of_its_teams_has(db) {
        let (_, teams) = owner(db, 2).await;
        grant(db, teams[0], LotKind::Prepaid, "hand:0001").await;
        assert!(!db.store.credits().payer(teams[1], &FREE).await.unwrap().has_paid);
        grant(db, teams[0], LotKind::Prepaid, "stripe:pi_1").await;
        assert!(db.store.credits().payer(teams[1], &FREE).await.unwrap().has_paid);
        let (_, others) = owner(db, 1).await;
        assert!(!db.store.credits().payer(others[0], &FREE).await.unwrap().has_paid);
        grant(db, others[0], LotKind::Subscription, "hand:0002").await;
        assert!(db.store.credits().payer(others[0], &FREE).await.unwrap().has_paid);
    }

    async fn many_teams_of_one_payer_get_one_share(db) {
        let (user, teams) = owner(db, 6).await;
        let many = Payer { id: PayerId(user.0), has_paid: false };
        for team in teams.iter().cycle().take(60) {
            pending(db, *team, many).await;
        }
        let single = db.team(10).await;
        for _ in 0..10 {
            pending(db, single, Payer::of_team(single)).await;
        }
        let leased = lease(db, 20, false).await;
        assert_eq!(leased.iter().filter(|team| **team == single).count(), 10, "{leased:?}");
        // Nobody else waits, so the payer gets all slots.
        assert_eq!(lease(db, 20, false).await.len(), 20);
    }

    async fn kept_slots_lease_only_jobs_of_paying_payers(db) {
        let (free, paying) = (db.team(9).await, db.team(9).await);
        for _ in 0..3 {
            pending(db, free, Payer::of_team(free)).await;
        }
        let payer = Payer { has_paid: true, ..Payer::of_team(paying) };
        let last = pending(db, paying, payer).await;
        let request = grabd_store::grabs::LeaseRequest { only_paid: true, ..db.lease_request(Class::Sync, 4, NOW) };
        let leased = db.store.grabs().lease(request).await.unwrap();
        assert_eq!(leased.iter().map(|job| (job.grab, job.payer)).collect::<Vec<_>>(), [(last, payer)]);
        assert_eq!(lease(db, 4, false).await, [free; 3]);
    }

    async fn create_is_refused_when_its_expected_wait_is_too_long(db) {
        let (busy, team) = (db.team(9).await, db.team(1).await);
        for _ in 0..3 {
            let other = db.team(1).await;
            pending(db, other, Payer::of_team(other)).await;
        }
        let shared = Throughput { slots: 2, idle: 0, render: 4 * S };
        // Three grabs are ahead, so the grab starts after four renders of two slots.
        let wait = |longest| Some(WaitLimit { longest, shared, kept: None });
        let new = NewGrab { wait: wait(7 * S), ..db.new_grab(team, Class::Sync) };
        assert_eq!(db.store.grabs().create(new.clone()).await.unwrap(), Created::WaitTooLong { expected: 8 * S });
        // Nothing is held or stored.
        assert_eq!(db.credits(team).await, (1, 0));
        assert_eq!(db.store.grabs().find_grab(team, grabd_domain::credentials::Environment::Live, new.id).await.unwrap(), None);
        // A flood of another payer is behind the first grab of this one.
        for _ in 0..9 {
            pending(db, busy, Payer::of_team(busy)).await;
        }
        let accepted = NewGrab { wait: wait(10 * S), ..new };
        assert_eq!(db.store.grabs().create(accepted).await.unwrap(), Created::Pending);
    }

    async fn payer_that_has_paid_waits_only_for_kept_slots(db) {
        for _ in 0..8 {
            let free = db.team(1).await;
            pending(db, free, Payer::of_team(free)).await;
        }
        let team = db.team(2).await;
        let shared = Throughput { slots: 1, idle: 0, render: 20 * S };
        let kept = Throughput { slots: 1, idle: 0, render: S };
        let wait = Some(WaitLimit { longest: 3 * S, shared, kept: Some(kept) });
        let payer = Payer { has_paid: true, ..Payer::of_team(team) };
        let new = NewGrab { payer, wait, ..db.new_grab(team, Class::Sync) };
        assert_eq!(db.store.grabs().create(new.clone()).await.unwrap(), Created::Pending);
        // Grabs of payers that have paid ahead count.
        let tight = Some(WaitLimit { longest: S, shared, kept: Some(kept) });
        let other = db.team(1).await;
        let payer = Payer { has_paid: true, ..Payer::of_team(other) };
        let next = NewGrab { payer, wait: tight, ..db.new_grab(other, Class::Sync) };
        assert_eq!(db.store.grabs().create(next).await.unwrap(), Created::WaitTooLong { expected: 2 * S });
    }

    async fn grab_with_a_free_slot_is_never_refused(db) {
        let team = db.team(1).await;
        let shared = Throughput { slots: 1, idle: 0, render: 60 * S };
        let wait = Some(WaitLimit { longest: S, shared, kept: None });
        let new = NewGrab { wait, lease: Some(db.new_lease()), ..db.new_grab(team, Class::Sync) };
        assert!(matches!(db.store.grabs().create(new).await.unwrap(), Created::Leased { .. }));
    }

    async fn delayed_jobs_wait_and_do_not_hold_the_queue(db) {
        let (blocked_team, other) = (db.team(9).await, db.team(9).await);
        let first = pending(db, blocked_team, Payer::of_team(blocked_team)).await;
        for _ in 0..5 {
            pending(db, other, Payer::of_team(other)).await;
        }
        // The head of the queue moves on.
        assert_eq!(lease(db, 3, false).await, [blocked_team, other, other]);
        let waiting = pending(db, blocked_team, Payer::of_team(blocked_team)).await;
        let payer = Payer::of_team(blocked_team).id;
        assert_eq!(db.store.grabs().delay_jobs(payer, NOW + 10 * S).await.unwrap(), 1, "the leased job is not delayed");
        assert_eq!(db.store.grabs().delay_jobs(payer, NOW + 5 * S).await.unwrap(), 0, "a delay is never shortened");
        // The delayed job has no turn.
        let third = db.team(2).await;
        pending(db, third, Payer::of_team(third)).await;
        assert_eq!(lease(db, 2, false).await, [other, third]);
        // Nor does it let a new payer overtake the other one.
        let fourth = db.team(2).await;
        for _ in 0..2 {
            pending(db, fourth, Payer::of_team(fourth)).await;
        }
        assert_eq!(lease(db, 9, false).await, [other, fourth, other, fourth]);
        let request = db.lease_request(Class::Sync, 9, NOW + 10 * S);
        let late = db.store.grabs().lease(request).await.unwrap();
        assert_eq!(late.iter().map(|job| job.grab).collect::<Vec<_>>(), [waiting]);
        assert_ne!(first, waiting);
    }

    async fn cause_of_a_failure_is_stored(db) {
        let team = db.team(4).await;
        for cause in ErrorCause::ALL {
            let leased = db.leased(team).await;
            let source = FailureSource::Lease(leased.token);
            let failure = blocked().caused_by(cause);
            let failing = FailGrab { grab: leased.grab, source, failure: failure.clone(), metadata: facts(), now: NOW };
            let ended = db.store.grabs().fail(failing).await.unwrap().unwrap();
            assert!(matches!(&ended.grab.state, State::Failed { failure: stored, .. } if *stored == failure));
        }
        // Failures of earlier versions have the cause of their code.
        db.execute_raw("UPDATE grab SET error_cause = NULL").await.unwrap();
        let leased = db.leased(team).await;
        let failing = crate::harness::failing(leased.grab, FailureSource::Lease(leased.token), NOW);
        db.store.grabs().fail(failing).await.unwrap().unwrap();
        db.execute_raw("UPDATE grab SET error_cause = NULL").await.unwrap();
        let grab = db.grab(team, leased.grab).await;
        assert!(matches!(&grab.state, State::Failed { failure, .. } if failure.cause == ErrorCause::Target));
    }

    async fn timeout_in_the_queue_is_not_the_targets_fault(db) {
        let team = db.team(2).await;
        let rendering = db.leased(team).await.grab;
        let waiting = db.pending(team).await;
        let other = db.team(1).await;
        let delayed = db.pending(other).await;
        let late = NOW + 30 * S;
        db.store.grabs().delay_jobs(PayerId(other.0), late + S).await.unwrap();
        let ended = db.store.grabs().expire_jobs(late, 9).await.unwrap();
        let cause = |grab: Grab| {
            let State::Failed { failure, .. } = &grab.state else { panic!("{grab:?}") };
            (grab.id, failure.cause)
        };
        let mut causes: Vec<_> = ended.into_iter().map(cause).collect();
        causes.sort_unstable_by_key(|(id, _)| *id);
        assert_eq!(causes, [
            (rendering, ErrorCause::Target),
            (waiting, ErrorCause::Service),
            (delayed, ErrorCause::Request),
        ]);
    }
}
