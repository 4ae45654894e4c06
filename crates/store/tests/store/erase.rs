//! Deletion of teams and accounts, and their erasure.

use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::grabs::Class;
use grabd_domain::idempotency::IdempotencyKey;
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_store::accounts::{InitialTeam, NewInvitation, NewKey, NewSession, NewUser, SuspendOutcome, TeamRuleError};
use grabd_store::grabs::{Created, FailureSource, NewGrab, NewRecord};
use grabd_store::retention::{DeleteUserOutcome, Erasure};
use grabd_store::{Actor, Store};

use crate::harness::{NOW, TestDb, completion, failing, on_both};

async fn user(db: &TestDb, email: &str, place: InitialTeam) -> UserId {
    let id = UserId(db.id());
    let email = Email::parse(email).unwrap();
    let user = NewUser { id, email, password_hash: "x".into(), initial_team: place, verified: true, now: NOW };
    acting(db, id).accounts().create_user(user).await.unwrap();
    id
}

/// The store for changes by a user.
fn acting(db: &TestDb, user: UserId) -> Store {
    let address = Some("2001:db8::7".parse().unwrap());
    db.store.acting_as(Actor { name: format!("user:{user}"), address, now: NOW })
}

async fn key(db: &TestDb, team: TeamId, by: UserId, hash: u8) {
    let key = NewKey {
        id: KeyId(db.id()),
        team,
        environment: Environment::Live,
        name: "A key".into(),
        hash: [hash; 32],
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: Some(by),
        now: NOW,
    };
    acting(db, by).accounts().create_team_key(key, by).await.unwrap().unwrap();
}

/// Erases until nothing is left, in the smallest steps. Returns their number.
async fn erase_all(db: &TestDb) -> u32 {
    let mut steps = 0;
    while let Some(erasure) = db.store.retention().list_erasures().await.unwrap().first().copied() {
        steps += 1;
        assert!(steps < 1000, "the erasure does not end");
        if let Erasure::Team(team) = erasure
            && db.store.retention().erase_team(team, NOW, 1).await.unwrap()
        {
            continue;
        }
        db.store.retention().erase_audit(erasure, 1).await.unwrap();
    }
    steps
}

on_both! {
    async fn only_an_owner_deletes_a_team_and_all_access_ends_at_once(db) {
        let team = db.team(5).await;
        let ada = user(db, "ada@example.com", InitialTeam::Existing(team)).await;
        let bob = user(db, "bob@example.com", InitialTeam::Existing(team)).await;
        let eve = user(db, "eve@example.com", InitialTeam::New(TeamId(db.id()), "Hers".into())).await;
        key(db, team, bob, 1).await;
        let open = db.pending(team).await;
        for (by, expected) in [(bob, TeamRuleError::NotOwner), (eve, TeamRuleError::NotMember)] {
            assert_eq!(db.store.retention().delete_team(team, Some(by), NOW).await.unwrap(), Err(expected));
        }
        assert!(db.store.accounts().authenticate(&[1; 32]).await.unwrap().is_some());

        assert_eq!(acting(db, ada).retention().delete_team(team, Some(ada), NOW).await.unwrap(), Ok(()));
        assert_eq!(db.store.accounts().authenticate(&[1; 32]).await.unwrap(), None);
        assert_eq!(db.store.accounts().list_memberships(ada).await.unwrap(), []);
        assert_eq!(db.store.accounts().list_members(team).await.unwrap(), []);
        let create = db.store.grabs().create(db.new_grab(team, Class::Sync)).await.unwrap();
        assert_eq!(create, Created::TeamInactive);
        assert_eq!(db.store.accounts().open_grabs_of(team, 9).await.unwrap(), [open]);
        assert_eq!(db.store.accounts().restore_team(team, NOW).await.unwrap(), SuspendOutcome::UnknownTeam);
        let again = db.store.retention().delete_team(team, None, NOW).await.unwrap();
        assert_eq!(again, Err(TeamRuleError::NotMember));
        let deleted = db.store.accounts().find_team(team).await.unwrap().unwrap();
        assert_eq!((deleted.name.as_str(), deleted.deleted_at), ("Deleted team", Some(NOW)));
    }

    async fn erasure_of_a_team_leaves_only_a_ledger_that_adds_up(db) {
        let team = db.team(5).await;
        let ada = user(db, "ada@example.com", InitialTeam::Existing(team)).await;
        let invited = NewInvitation {
            id: grabd_domain::ids::InvitationId(db.id()),
            hash: [3; 32],
            team,
            email: Email::parse("guest@example.com").unwrap(),
            role: Role::Member,
            by: ada,
            now: NOW,
            expires_at: NOW + std::time::Duration::from_secs(99),
            mailed: false,
        };
        acting(db, ada).accounts().invite(invited).await.unwrap().unwrap();
        let record = |key: &str| Some(NewRecord { key: IdempotencyKey::parse(key).unwrap(), fingerprint: [1; 32], only_of: None });
        for key in ["a", "b", "c"] {
            let new = NewGrab { idempotency: record(key), ..db.new_grab(team, Class::Sync) };
            db.store.grabs().create(new).await.unwrap();
            let leased = db.lease_one().await;
            db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        }
        let other = db.team(1).await;
        let theirs = db.leased(other).await;
        db.store.grabs().complete(completion(&theirs)).await.unwrap().unwrap();
        let open = db.pending(team).await;

        acting(db, ada).retention().delete_team(team, Some(ada), NOW).await.unwrap().unwrap();
        // An open grab is not erased; it has to end first, which releases its credit.
        assert!(db.store.retention().erase_team(team, NOW, 9).await.unwrap());
        db.store.grabs().fail(failing(open, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
        assert_eq!(db.credits(team).await, (2, 0));
        assert!(erase_all(db).await > 2);
        assert_eq!(db.store.retention().list_erasures().await.unwrap(), []);

        let page = db.store.grabs().export_grabs(team, Environment::Live, None, 9).await.unwrap();
        assert_eq!(page.grabs, []);
        assert_eq!(db.store.grabs().due_images(NOW, 9).await.unwrap().len(), 3);
        assert_eq!(db.store.credits().ledger(team, None, 9).await.unwrap().len(), 4, "one grant and three spent credits");
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);
        let page = db.store.grabs().export_grabs(other, Environment::Live, None, 9).await.unwrap();
        assert_eq!(page.grabs.len(), 1, "other teams are not affected");
        let trail = db.store.audit().list_audit(grabd_domain::Timestamp::from_ms(0), None, 99).await.unwrap();
        let of_team: Vec<_> = trail.iter().filter(|entry| entry.team == Some(team)).collect();
        assert!(of_team.iter().any(|entry| entry.action == "team.delete"), "{of_team:?}");
        assert!(of_team.iter().all(|entry| !entry.target.contains('@')), "{of_team:?}");
        assert!(of_team.iter().any(|entry| entry.target == "(erased)"), "{of_team:?}");
    }

    async fn deleted_team_that_never_had_credits_leaves_nothing(db) {
        for (credits, is_left) in [(0, false), (1, true)] {
            let team = db.team(credits).await;
            db.store.retention().delete_team(team, None, NOW).await.unwrap().unwrap();
            erase_all(db).await;
            assert_eq!(db.store.accounts().find_team(team).await.unwrap().is_some(), is_left, "{credits}");
        }
    }

    async fn erasures_are_continued_in_turn(db) {
        let mut teams = Vec::new();
        for _ in 0..12 {
            let team = db.team(0).await;
            db.store.retention().delete_team(team, None, NOW).await.unwrap().unwrap();
            teams.push(Erasure::Team(team));
        }
        let first = db.store.retention().next_erasures(None).await.unwrap();
        assert_eq!(first, teams[..10]);
        let next = db.store.retention().next_erasures(first.last().copied()).await.unwrap();
        assert_eq!(next, [&teams[10..], &teams[..8]].concat());
        let next = db.store.retention().next_erasures(Some(teams[11])).await.unwrap();
        assert_eq!(next, first);
    }

    async fn account_is_not_deleted_while_others_need_its_owner(db) {
        let team = db.team(0).await;
        let ada = user(db, "ada@example.com", InitialTeam::Existing(team)).await;
        let bob = user(db, "bob@example.com", InitialTeam::Existing(team)).await;
        let refused = db.store.retention().delete_user(ada, NOW).await.unwrap();
        assert_eq!(refused, DeleteUserOutcome::OnlyOwner { teams: vec!["A team".into()] });
        assert!(db.store.accounts().find_user_by_id(ada).await.unwrap().is_some());
        // A member, and an owner among several, may.
        db.store.accounts().set_role(team, bob, Role::Owner, ada).await.unwrap().unwrap();
        let deleted = db.store.retention().delete_user(ada, NOW).await.unwrap();
        assert_eq!(deleted, DeleteUserOutcome::Deleted { teams: Vec::new() });
        assert_eq!(db.store.accounts().list_members(team).await.unwrap().len(), 1);
        assert_eq!(db.store.retention().delete_user(ada, NOW).await.unwrap(), DeleteUserOutcome::UnknownUser);
    }

    async fn deleted_account_leaves_no_personal_data(db) {
        let (own, shared) = (TeamId(db.id()), db.team(0).await);
        let bob = user(db, "bob@example.com", InitialTeam::Existing(shared)).await;
        let ada = user(db, "ada@example.com", InitialTeam::New(own, "Hers".into())).await;
        db.store.accounts().add_member(shared, ada, NOW).await.unwrap();
        key(db, shared, ada, 1).await;
        key(db, own, ada, 2).await;
        key(db, shared, bob, 4).await;
        let session = NewSession { hash: [5; 32], user: ada, now: NOW, expires_at: NOW + std::time::Duration::from_secs(9) };
        db.store.accounts().open_session(session).await.unwrap();
        let operator = db.store.acting_as(Actor { name: "command:uid 0".into(), address: None, now: NOW });
        let deleted = operator.retention().delete_user(ada, NOW).await.unwrap();
        assert_eq!(deleted, DeleteUserOutcome::Deleted { teams: vec![own] });
        assert_eq!(db.store.accounts().find_session(&[5; 32], NOW).await.unwrap(), None);
        assert_eq!(db.store.accounts().authenticate(&[2; 32]).await.unwrap(), None);
        assert!(db.store.accounts().authenticate(&[1; 32]).await.unwrap().is_some(), "keys of a shared team stay");
        let creators: Vec<_> =
            db.store.accounts().list_keys(shared).await.unwrap().iter().map(|key| key.created_by).collect();
        assert_eq!(creators, [None, Some(bob)]);

        erase_all(db).await;
        let trail = db.store.audit().list_audit(grabd_domain::Timestamp::from_ms(0), None, 99).await.unwrap();
        let hers = format!("user:{ada}");
        assert!(trail.iter().any(|entry| entry.actor == hers), "the entries stay: {trail:?}");
        for entry in &trail {
            assert!(entry.target != "ada@example.com" && (entry.actor != hers || entry.address.is_none()), "{entry:?}");
        }
        assert!(trail.iter().any(|entry| entry.target == "bob@example.com" && entry.address.is_some()), "{trail:?}");
    }

    async fn audit_trail_can_only_lose_personal_data(db) {
        let ada = user(db, "ada@example.com", InitialTeam::New(TeamId(db.id()), "Hers".into())).await;
        for change in [
            "action = 'x'", "actor = 'x'", "at = 1", "target = 'x'", "detail = 'x'", "address = 'x'", "id = 99",
        ] {
            assert!(db.execute_raw(&format!("UPDATE audit SET {change}")).await.is_err(), "{change}");
        }
        assert!(db.execute_raw("DELETE FROM audit").await.is_err());
        db.execute_raw("UPDATE audit SET target = '(erased)', address = NULL, detail = NULL").await.unwrap();
        let trail = db.store.audit().list_audit(grabd_domain::Timestamp::from_ms(0), None, 9).await.unwrap();
        assert_eq!((trail[0].action.as_str(), trail[0].actor.clone()), ("user.create", format!("user:{ada}")));
    }

    async fn suspended_user_has_no_session_until_restored(db) {
        let ada = user(db, "ada@example.com", InitialTeam::New(TeamId(db.id()), "Hers".into())).await;
        let open = |hash| {
            let expires_at = NOW + std::time::Duration::from_secs(9);
            db.store.accounts().open_session(NewSession { hash: [hash; 32], user: ada, now: NOW, expires_at })
        };
        open(1).await.unwrap();
        assert!(db.store.accounts().suspend_user(ada, "spam", NOW).await.unwrap());
        assert!(!db.store.accounts().suspend_user(ada, "again", NOW).await.unwrap());
        open(2).await.unwrap();
        for hash in [1, 2] {
            assert_eq!(db.store.accounts().find_session(&[hash; 32], NOW).await.unwrap(), None);
        }
        let suspension = db.store.accounts().find_user_by_id(ada).await.unwrap().unwrap().suspension.unwrap();
        assert_eq!((suspension.at, suspension.reason.as_str()), (NOW, "spam"));
        assert!(db.store.accounts().restore_user(ada, NOW).await.unwrap());
        assert!(!db.store.accounts().restore_user(ada, NOW).await.unwrap());
        assert_eq!(db.store.accounts().find_session(&[1; 32], NOW).await.unwrap(), None, "the suspension ended it");
        assert!(db.store.accounts().find_session(&[2; 32], NOW).await.unwrap().is_some());
    }
}
