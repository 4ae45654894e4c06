//! Accounts that were never verified expire, unless something would be lost with them.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::grabs::{ImageKey, RenderMetadata, State};
use grabd_domain::ids::{EndpointId, GrabId, InvitationId, KeyId, TeamId, UserId};
use grabd_domain::target::TargetUrl;
use grabd_domain::team_limits::LimitChange;
use grabd_domain::webhooks::{Creator, Events, Registration};
use grabd_store::accounts::{InitialTeam, NewInvitation, NewKey, NewSession, NewUser};
use grabd_store::grabs::{NewPlaceholder, PlaceholderOutcome};
use grabd_store::retention::{Erasure, ExpiredUsers, PurgedGrabs};
use grabd_store::webhooks::NewEndpoint;

use crate::harness::{NOW, TestDb, on_both, spec};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// When accounts that were created at `NOW` expire.
const LATER: Timestamp = Timestamp::from_ms(NOW.as_ms() + 30 * 24 * 60 * 60 * 1000 + 1);

/// Creates a user with a new team. An address that was not verified is what sign-up leaves with a mail server.
async fn sign_up(db: &TestDb, email: &str, verified: bool) -> (UserId, TeamId) {
    let (id, team) = (UserId(db.id()), TeamId(db.id()));
    let initial_team = InitialTeam::New(team, "A team".into());
    let email = Email::parse(email).unwrap();
    let user = NewUser { id, email, password_hash: "x".into(), initial_team, verified, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    (id, team)
}

async fn expire(db: &TestDb, now: Timestamp) -> ExpiredUsers {
    db.store.retention().expire_unverified(now - DAY * 30, None, now, 50, 9).await.unwrap()
}

async fn invite(db: &TestDb, team: TeamId, by: UserId, email: &str) {
    let new = NewInvitation {
        id: InvitationId(db.id()),
        hash: [7; 32],
        team,
        email: Email::parse(email).unwrap(),
        role: Role::Member,
        by,
        now: NOW,
        expires_at: LATER + DAY,
        mailed: false,
    };
    db.store.accounts().invite(new).await.unwrap().unwrap();
}

async fn create_key(db: &TestDb, team: TeamId, by: UserId, environment: Environment, now: Timestamp) -> KeyId {
    let key = NewKey {
        id: KeyId(db.id()),
        team,
        environment,
        name: "A key".into(),
        hash: [9; 32],
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: Some(by),
        now,
    };
    let id = key.id;
    db.store.accounts().create_team_key(key, by).await.unwrap().unwrap();
    id
}

async fn capture(db: &TestDb, team: TeamId) {
    let id = GrabId(db.id());
    let image = Some(ImageKey::new(id.0.as_u128(), "png"));
    let metadata = RenderMetadata::default();
    let outcome = State::Done { finished_at: NOW, image, size_bytes: 1, execution_ms: 1, metadata };
    let (idempotency, fingerprint) = (None, None);
    let new = NewPlaceholder {
        id,
        team,
        creator: None,
        spec: spec(),
        now: NOW,
        outcome,
        idempotency,
        fingerprint,
        ceiling: None,
    };
    assert_eq!(db.store.grabs().create_placeholder(new).await.unwrap(), PlaceholderOutcome::Stored);
}

async fn register_webhook(db: &TestDb, team: TeamId) {
    let url = TargetUrl::restore("https://example.com/hook").unwrap();
    let registration = Registration { url, events: Events::parse(&["*"]).unwrap(), description: "A hook".into() };
    let (id, environment) = (EndpointId(db.id()), Environment::Test);
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
    db.store.webhooks().register_endpoint(new).await.unwrap();
}

/// Everything that keeps an account, each of which is tested alone.
const REASONS: [&str; 20] = [
    "verified",
    "operator",
    "suspended",
    "session",
    "verification link",
    "password link",
    "invited elsewhere",
    "app",
    "other member",
    "only a member",
    "suspended team",
    "credits",
    "spent credits",
    "grab",
    "purged grab",
    "live key",
    "new test key",
    "used test key",
    "webhook",
    "own limit",
];

/// Gives an account one reason to be kept.
async fn give(db: &TestDb, reason: &str, user: UserId, team: TeamId, email: &str) {
    let (store, id) = (&db.store, db.literal(user.0));
    let set = async |change: &str| {
        db.execute_raw(&format!("UPDATE \"user\" SET {change} WHERE id = {id}")).await.unwrap();
    };
    match reason {
        "verified" => set("verified_at = 1").await,
        "operator" => assert!(store.accounts().set_operator(user, true).await.unwrap()),
        "suspended" => assert!(store.accounts().suspend_user(user, "spam", NOW).await.unwrap()),
        "session" => {
            let session = NewSession { hash: [1; 32], user, now: NOW, expires_at: LATER + DAY };
            store.accounts().open_session(session).await.unwrap();
        }
        "verification link" => store.accounts().create_verification([2; 32], user, LATER + DAY).await.unwrap(),
        "password link" => store.accounts().create_password_reset([3; 32], user, LATER + DAY).await.unwrap(),
        "invited elsewhere" => {
            let (bob, theirs) = sign_up(db, "bob@example.com", true).await;
            invite(db, theirs, bob, email).await;
        }
        "app" => {
            let columns = "id, team_id, user_id, env, client_id, client_name, resources, created_at, expires_at";
            let (grant, team) = (db.literal(db.id()), db.literal(team.0));
            let values = format!("{grant}, {team}, {id}, 1, 'app', 'An app', '', 1, {}", LATER.as_ms() + 9);
            db.execute_raw(&format!("INSERT INTO oauth_grant ({columns}) VALUES ({values})")).await.unwrap();
        }
        "other member" => {
            let (bob, _) = sign_up(db, "bob@example.com", true).await;
            store.accounts().add_member(team, bob, NOW).await.unwrap();
        }
        "only a member" => {
            let (_, theirs) = sign_up(db, "bob@example.com", true).await;
            store.accounts().add_member(theirs, user, NOW).await.unwrap();
        }
        "suspended team" => {
            store.accounts().suspend_team(team, "spam", NOW).await.unwrap();
        }
        "credits" => {
            db.grant(team, grabd_domain::credits::LotKind::Prepaid, 1, None).await;
        }
        "spent credits" => {
            db.grant(team, grabd_domain::credits::LotKind::Prepaid, 1, None).await;
            let leased = db.leased(team).await;
            store.grabs().complete(crate::harness::completion(&leased)).await.unwrap().unwrap();
            store.retention().purge_grabs(PurgedGrabs::Live, LATER, LATER, 9).await.unwrap();
        }
        "grab" => capture(db, team).await,
        "purged grab" => {
            capture(db, team).await;
            // With the one of the case before.
            assert_eq!(store.retention().purge_grabs(PurgedGrabs::Test, NOW + DAY, NOW + DAY, 9).await.unwrap(), 2);
        }
        "live key" => drop(create_key(db, team, user, Environment::Live, NOW).await),
        "new test key" => drop(create_key(db, team, user, Environment::Test, LATER - DAY).await),
        "used test key" => {
            let key = create_key(db, team, user, Environment::Test, NOW).await;
            store.accounts().touch_keys(vec![key], LATER - DAY).await.unwrap();
        }
        "webhook" => register_webhook(db, team).await,
        "own limit" => {
            store.limits().change_team_limits(team, vec![LimitChange::parse("keys=5").unwrap()], NOW).await.unwrap();
        }
        other => panic!("{other} is not in the list"),
    }
}

on_both! {
    async fn unused_account_expires_with_its_team_and_is_recorded(db) {
        let (eve, team) = sign_up(db, "eve@example.com", false).await;
        assert_eq!(expire(db, LATER - Duration::from_millis(1)).await, ExpiredUsers::default());
        let done = expire(db, LATER).await;
        assert_eq!(done, ExpiredUsers { expired: vec![(eve, vec![team])], next: None });
        assert!(db.store.accounts().find_user_by_id(eve).await.unwrap().is_none());
        assert_eq!(db.store.accounts().find_team(team).await.unwrap().unwrap().deleted_at, Some(LATER));
        let mut erasures = db.store.retention().list_erasures().await.unwrap();
        erasures.sort_by_key(|erasure| matches!(erasure, Erasure::User(_)));
        assert_eq!(erasures, [Erasure::Team(team), Erasure::User(eve)]);
        let trail = db.store.audit().list_audit(Timestamp::from_ms(0), None, 9).await.unwrap();
        let entries: Vec<_> =
            trail.iter().map(|entry| (entry.actor.as_str(), entry.action.as_str(), entry.target.clone())).collect();
        assert_eq!(entries, [("service", "user.expire", eve.to_string())]);
        assert_eq!(expire(db, LATER).await, ExpiredUsers::default());
    }

    async fn account_with_something_to_lose_is_kept(db) {
        for reason in REASONS {
            let email = "eve@example.com";
            let (eve, team) = sign_up(db, email, false).await;
            give(db, reason, eve, team, email).await;
            assert_eq!(expire(db, LATER).await.expired, [], "{reason}");
            assert!(db.store.accounts().find_user_by_id(eve).await.unwrap().is_some(), "{reason}");
            // The next case begins without it. Users and sessions of this one are in nobody's way.
            db.execute_raw("DELETE FROM api_key").await.unwrap();
            db.execute_raw("DELETE FROM \"user\"").await.unwrap();
        }
        let nothing = sign_up(db, "eve@example.com", false).await;
        assert_eq!(expire(db, LATER).await.expired, [(nothing.0, vec![nothing.1])]);
    }

    async fn what_has_expired_itself_keeps_no_account(db) {
        let (eve, team) = sign_up(db, "eve@example.com", false).await;
        let session = NewSession { hash: [1; 32], user: eve, now: NOW, expires_at: LATER };
        db.store.accounts().open_session(session).await.unwrap();
        db.store.accounts().create_verification([2; 32], eve, LATER).await.unwrap();
        db.store.accounts().create_password_reset([3; 32], eve, LATER).await.unwrap();
        let key = create_key(db, team, eve, Environment::Test, NOW).await;
        db.store.accounts().touch_keys(vec![key], NOW + DAY).await.unwrap();
        assert_eq!(expire(db, LATER + DAY - Duration::from_millis(1)).await.expired, []);
        assert_eq!(expire(db, LATER + DAY).await.expired, [(eve, vec![team])]);
    }

    async fn accounts_are_examined_in_order_and_a_bounded_number_expires(db) {
        let mut users = Vec::new();
        for number in 0..5 {
            let (user, team) = sign_up(db, &format!("{number}@example.com"), false).await;
            users.push((user, vec![team]));
        }
        // The second one is kept.
        capture(db, users[1].1[0]).await;
        let round = async |after, limit, room| {
            let done = db.store.retention().expire_unverified(LATER - DAY * 30, after, LATER, limit, room).await.unwrap();
            (done.expired, done.next)
        };
        let position = |at: usize| Some((NOW, users[at].0));
        assert_eq!(round(None, 2, 9).await, (users[..1].to_vec(), position(1)));
        assert_eq!(round(position(1), 9, 1).await, (users[2..3].to_vec(), position(2)));
        assert_eq!(round(position(2), 9, 9).await, (users[3..].to_vec(), None));
        assert_eq!(round(None, 9, 9).await, (Vec::new(), None));
    }
}
