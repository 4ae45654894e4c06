//! Limits that are overridden for a team.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::ids::{EndpointId, GrabId, InvitationId, KeyId, PayerId, TeamId, UserId};
use grabd_domain::target::TargetUrl;
use grabd_domain::team_limits::{LimitChange, TeamLimit};
use grabd_domain::webhooks::{Creator, Events, Registration};
use grabd_store::Actor;
use grabd_store::accounts::{
    InitialTeam, InvitedSignUp, NewInvitation, NewKey, NewUser, SignUpOutcome, TeamResult, TeamRuleError,
};
use grabd_store::limits::{ChangeLimitsOutcome, StoredLimit};
use grabd_store::retention::PurgedGrabs;
use grabd_store::webhooks::{NewEndpoint, RegisterOutcome};

use crate::harness::{NOW, TestDb, completion, on_both};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn change(db: &TestDb, team: TeamId, changes: &[&str]) -> ChangeLimitsOutcome {
    let parse = |text: &&str| LimitChange::parse(text).or_else(|_| LimitChange::reset(text)).unwrap();
    db.store.limits().change_team_limits(team, changes.iter().map(parse).collect(), NOW).await.unwrap()
}

async fn limits(db: &TestDb, team: TeamId) -> Vec<(TeamLimit, u32)> {
    let mut limits: Vec<_> = db.store.limits().team_limits(team).await.unwrap();
    limits.sort_by_key(|stored| stored.limit);
    limits.into_iter().map(|stored| (stored.limit, stored.value)).collect()
}

/// Creates a user with a new team.
async fn owner(db: &TestDb, email: &str, at: Timestamp) -> (UserId, TeamId) {
    let (id, team) = (UserId(db.id()), TeamId(db.id()));
    let initial_team = InitialTeam::New(team, "A team".into());
    let email = Email::parse(email).unwrap();
    let user = NewUser { id, email, password_hash: "x".into(), initial_team, verified: true, now: at };
    db.store.accounts().create_user(user).await.unwrap();
    (id, team)
}

fn hash(db: &TestDb) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(db.id().as_bytes());
    hash
}

async fn create_key(db: &TestDb, team: TeamId, by: UserId) -> TeamResult {
    let key = NewKey {
        id: KeyId(db.id()),
        team,
        environment: Environment::Live,
        name: "A key".into(),
        hash: hash(db),
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: Some(by),
        now: NOW,
    };
    db.store.accounts().create_team_key(key, by).await.unwrap()
}

/// Invites an address, and returns the hash of the invitation.
async fn invite(db: &TestDb, team: TeamId, by: UserId, email: &str) -> TeamResult<[u8; 32]> {
    let hash = hash(db);
    let new = NewInvitation {
        id: InvitationId(db.id()),
        hash,
        team,
        email: Email::parse(email).unwrap(),
        role: Role::Member,
        by,
        now: NOW,
        expires_at: NOW + DAY,
        mailed: false,
    };
    db.store.accounts().invite(new).await.unwrap().map(|()| hash)
}

async fn join(db: &TestDb, hash: [u8; 32]) -> SignUpOutcome {
    let user = UserId(db.id());
    let sign_up = InvitedSignUp { hash, user, password_hash: "x".into(), verified: true, now: NOW };
    db.store.accounts().sign_up_invited(sign_up).await.unwrap()
}

async fn register(db: &TestDb, team: TeamId) -> RegisterOutcome {
    let url = TargetUrl::restore("https://example.com/hook").unwrap();
    let events = Events::parse::<&str>(&[]).unwrap();
    let registration = Registration { url, events, description: "A hook".into() };
    let (id, environment) = (EndpointId(db.id()), Environment::Live);
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
    db.store.webhooks().register_endpoint(new).await.unwrap()
}

on_both! {
    async fn limits_are_overridden_and_reset_with_an_entry_in_the_audit_trail(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let operator = db.store.acting_as(Actor { name: "command:uid 0".into(), address: None, now: NOW });
        let version = db.store.limits().team_limits_version().await.unwrap();
        let changes = ["keys=5", "images_days=0", "keys=7"].map(|text| LimitChange::parse(text).unwrap());
        let outcome = operator.limits().change_team_limits(team, changes.to_vec(), NOW).await.unwrap();
        assert_eq!(outcome, ChangeLimitsOutcome::Changed);
        assert_eq!(limits(db, team).await, [(TeamLimit::ImagesDays, 0), (TeamLimit::Keys, 7)], "the last one applies");
        let changed = db.store.limits().team_limits_version().await.unwrap();
        assert_ne!(changed, version);

        let again = operator.limits().change_team_limits(team, changes[1..].to_vec(), NOW).await.unwrap();
        assert_eq!(again, ChangeLimitsOutcome::Unchanged);
        assert_eq!(change(db, other, &["keys"]).await, ChangeLimitsOutcome::Unchanged);
        assert_eq!(db.store.limits().team_limits_version().await.unwrap(), changed);
        assert_eq!(change(db, TeamId(db.id()), &["keys=5"]).await, ChangeLimitsOutcome::UnknownTeam);
        assert_eq!(change(db, team, &["images_days", "members=3"]).await, ChangeLimitsOutcome::Changed);
        assert_ne!(db.store.limits().team_limits_version().await.unwrap(), changed);
        assert_eq!(limits(db, team).await, [(TeamLimit::Keys, 7), (TeamLimit::Members, 3)]);
        assert_eq!(limits(db, other).await, []);

        let trail = db.store.audit().list_audit(Timestamp::from_ms(0), None, 9).await.unwrap();
        let entries: Vec<_> = trail.iter().map(|entry| (entry.action.as_str(), entry.team)).collect();
        assert_eq!(entries, [("team.limits", Some(team))]);
        assert_eq!(trail[0].detail.as_deref(), Some("keys=5 images_days=0 keys=7"));
    }

    async fn limits_of_a_deleted_team_are_deleted(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        for team in [team, other] {
            assert_eq!(change(db, team, &["keys=5"]).await, ChangeLimitsOutcome::Changed);
        }
        db.store.retention().delete_team(team, None, NOW).await.unwrap().unwrap();
        let left = StoredLimit { team: other, limit: TeamLimit::Keys, value: 5 };
        assert_eq!(db.store.limits().list_team_limits().await.unwrap(), [left]);
        assert_eq!(change(db, team, &["keys=5"]).await, ChangeLimitsOutcome::UnknownTeam);
    }

    async fn row_that_cannot_be_read_hides_no_other(db) {
        let team = db.team(0).await;
        change(db, team, &["keys=5"]).await;
        let id = db.literal(team.0);
        let row = format!("INSERT INTO team_limit (team_id, name, value, changed_at) VALUES ({id}, 'later', 1, 1)");
        db.execute_raw(&row).await.unwrap();
        assert_eq!(limits(db, team).await, [(TeamLimit::Keys, 5)]);
        assert_eq!(db.store.limits().list_team_limits().await.unwrap().len(), 1);
    }

    async fn own_limit_of_keys_replaces_the_usual_one(db) {
        let (ada, team) = owner(db, "ada@example.com", NOW).await;
        change(db, team, &["keys=1"]).await;
        assert_eq!(create_key(db, team, ada).await, Ok(()));
        assert_eq!(create_key(db, team, ada).await, Err(TeamRuleError::LimitReached));
        change(db, team, &["keys"]).await;
        assert_eq!(create_key(db, team, ada).await, Ok(()));
    }

    async fn own_limit_of_invitations_replaces_the_usual_one(db) {
        let (ada, team) = owner(db, "ada@example.com", NOW).await;
        change(db, team, &["invitations=1"]).await;
        assert!(invite(db, team, ada, "a@example.com").await.is_ok());
        assert_eq!(invite(db, team, ada, "b@example.com").await, Err(TeamRuleError::LimitReached));
        change(db, team, &["invitations"]).await;
        assert!(invite(db, team, ada, "b@example.com").await.is_ok());
    }

    async fn own_limit_of_members_replaces_the_usual_one(db) {
        let (ada, team) = owner(db, "ada@example.com", NOW).await;
        change(db, team, &["members=2"]).await;
        let invited = [invite(db, team, ada, "a@example.com").await, invite(db, team, ada, "b@example.com").await];
        assert!(matches!(join(db, invited[0].unwrap()).await, SignUpOutcome::Joined { .. }));
        assert_eq!(join(db, invited[1].unwrap()).await, SignUpOutcome::Refused(TeamRuleError::LimitReached));
        change(db, team, &["members"]).await;
        assert!(matches!(join(db, invited[1].unwrap()).await, SignUpOutcome::Joined { .. }));
    }

    async fn own_limit_of_webhooks_replaces_the_usual_one(db) {
        let team = db.team(0).await;
        change(db, team, &["webhooks=1"]).await;
        assert!(matches!(register(db, team).await, RegisterOutcome::Registered(_)));
        assert_eq!(register(db, team).await, RegisterOutcome::TooMany { limit: 1 });
        change(db, team, &["webhooks=0"]).await;
        assert_eq!(register(db, team).await, RegisterOutcome::TooMany { limit: 0 });
        change(db, team, &["webhooks"]).await;
        assert!(matches!(register(db, team).await, RegisterOutcome::Registered(_)));
    }

    async fn budget_of_a_payer_is_the_lowest_of_its_teams(db) {
        let (ada, first) = owner(db, "ada@example.com", NOW).await;
        let (bob, theirs) = owner(db, "bob@example.com", NOW + DAY).await;
        let second = TeamId(db.id());
        let name = grabd_domain::teams::TeamName::parse("Another").unwrap();
        db.store.accounts().create_owned_team(second, name, ada, NOW).await.unwrap().unwrap();
        let unowned = db.team(0).await;
        // A later owner of a team does not change its account.
        db.store.accounts().add_member(first, bob, NOW + DAY).await.unwrap();
        db.store.accounts().set_role(first, bob, Role::Owner, ada).await.unwrap().unwrap();
        for (team, value) in [(first, 30), (second, 10), (theirs, 5), (unowned, 7)] {
            change(db, team, &[&format!("failed_seconds_per_minute={value}")]).await;
        }
        change(db, unowned, &["keys=1"]).await;
        let budgets = db.store.limits().list_payer_budgets().await.unwrap();
        let of = |account| budgets.get(&PayerId(account)).copied();
        assert_eq!((of(ada.0), of(bob.0), of(unowned.0)), (Some(10), Some(5), Some(7)));
        assert_eq!(budgets.len(), 3);
        change(db, second, &["failed_seconds_per_minute"]).await;
        assert_eq!(db.store.limits().list_payer_budgets().await.unwrap().get(&PayerId(ada.0)), Some(&30));
    }

    async fn ended_grabs_are_read_in_the_order_of_their_ends(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        let mut ended = Vec::new();
        for (days, team) in [(1, team), (2, other), (3, team)] {
            let leased = db.leased(team).await;
            let mut done = completion(&leased);
            done.now = NOW + DAY * days;
            db.store.grabs().complete(done).await.unwrap().unwrap();
            ended.push((leased.grab, team));
        }
        db.pending(team).await;
        let read = async |from: Timestamp, limit| {
            let range = from..NOW + DAY * 3;
            let read = db.store.retention().ended_grabs(PurgedGrabs::Live, range, NOW, limit).await.unwrap();
            (read.grabs.iter().map(|grab| (grab.id, grab.team)).collect::<Vec<_>>(), read.next, read.is_full)
        };
        let start = Timestamp::from_ms(0);
        assert_eq!(read(start, 9).await, (ended[..2].to_vec(), NOW + DAY * 2, false));
        assert_eq!(read(start, 1).await, (ended[..1].to_vec(), NOW + DAY, true));
        // The same one again: the next read begins after it.
        let after = NOW + DAY + Duration::from_millis(1);
        assert_eq!(read(NOW + DAY, 1).await, (ended[..1].to_vec(), after, true));
        assert_eq!(read(after, 1).await, (ended[1..2].to_vec(), NOW + DAY * 2, true));

        // Only the named ones are deleted, and of these only those that ended early enough.
        let named = |at: usize| vec![ended[at].0];
        let later = NOW + DAY * 3;
        let purge = |grabs| db.store.retention().purge_these_grabs(PurgedGrabs::Live, later, later, grabs);
        assert_eq!(purge(named(2)).await.unwrap(), 0, "it ended too late");
        assert_eq!(db.store.retention().purge_these_images(later, later, named(0)).await.unwrap(), 1);
        assert_eq!(db.store.retention().purge_these_images(later, later, named(0)).await.unwrap(), 0);
        assert_eq!(purge(named(0)).await.unwrap(), 1);
        let exist = async |id: GrabId| !db.store.grabs().find_grabs(&[id]).await.unwrap().is_empty();
        assert_eq!((exist(ended[0].0).await, exist(ended[1].0).await, exist(ended[2].0).await), (false, true, true));
    }
}

#[tokio::test]
async fn limit_of_the_queue_is_taken_from_its_former_column() {
    let db = TestDb::sqlite().await;
    let (own, usual) = (db.team(0).await, db.team(0).await);
    // As a former version left it.
    for statement in [
        "DROP TABLE team_limit",
        "DROP INDEX user_unverified",
        "DELETE FROM seaql_migrations WHERE version = 'm0015_team_limits'",
        "DELETE FROM schema_step WHERE name = 'm0015_team_limits'",
        &format!("UPDATE team SET async_queue_limit = 7 WHERE id = {}", db.literal(own.0)),
    ] {
        db.execute_raw(statement).await.unwrap();
    }
    db.store.migrate().await.unwrap();
    assert_eq!(limits(&db, own).await, [(TeamLimit::AsyncQueue, 7)]);
    assert_eq!(limits(&db, usual).await, []);
    db.finish().await;
}
