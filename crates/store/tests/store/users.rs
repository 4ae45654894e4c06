//! Users, their first teams and their sessions.

use std::time::Duration;

use grabd_domain::accounts::{Email, Role, SESSION_IDLE, SESSIONS};
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::Error;
use grabd_store::accounts::{CreateUserOutcome, InitialTeam, NewSession, NewUser};

use crate::harness::{NOW, TestDb, on_both};

fn new_user(db: &TestDb, email: &str, initial_team: InitialTeam) -> NewUser {
    let (id, email) = (UserId(db.id()), Email::parse(email).unwrap());
    NewUser { id, email, password_hash: "$argon2id$".into(), initial_team, verified: true, now: NOW }
}

fn new_team(db: &TestDb) -> (TeamId, String) {
    (TeamId(db.id()), "Their own".to_owned())
}

fn session(user: UserId, hash: u8) -> NewSession {
    NewSession { hash: [hash; 32], user, now: NOW, expires_at: NOW + SESSION_IDLE }
}

on_both! {
    async fn create_user_with_a_new_team_makes_an_owner(db) {
        let (team, name) = new_team(db);
        let ada = new_user(db, "ada@example.com", InitialTeam::New(team, name.clone()));
        let id = ada.id;
        assert_eq!(
            db.store.accounts().create_user(ada).await.unwrap(),
            CreateUserOutcome::Created { team, role: Role::Owner }
        );
        assert_eq!(db.store.accounts().list_memberships(id).await.unwrap(), [(team, name, Role::Owner)]);
        let found = db.store.accounts().find_user(&Email::parse("Ada@Example.com").unwrap()).await.unwrap().unwrap();
        assert_eq!((found.id, found.email.as_str(), found.created_at), (id, "ada@example.com", NOW));
        let login = db.store.accounts().find_login(&found.email).await.unwrap().unwrap();
        assert_eq!((login.user, login.password_hash.as_str()), (id, "$argon2id$"));
        assert_eq!(db.store.accounts().list_users().await.unwrap(), [found]);
        assert!(db.store.accounts().find_login(&Email::parse("eve@example.com").unwrap()).await.unwrap().is_none());
    }

    async fn create_user_with_a_used_address_changes_nothing(db) {
        let (first, second) = (new_team(db), new_team(db));
        let initial_team = InitialTeam::New(first.0, first.1);
        db.store.accounts().create_user(new_user(db, "ada@example.com", initial_team)).await.unwrap();
        let again = new_user(db, "ADA@example.com", InitialTeam::New(second.0, second.1));
        assert_eq!(db.store.accounts().create_user(again).await.unwrap(), CreateUserOutcome::EmailTaken);
        assert_eq!(db.store.accounts().find_team(second.0).await.unwrap(), None);
        assert_eq!(db.store.accounts().list_users().await.unwrap().len(), 1);
    }

    async fn first_user_in_a_team_is_owner_and_later_ones_are_members(db) {
        let team = db.team(0).await;
        for (email, role) in [("ada@example.com", Role::Owner), ("bob@example.com", Role::Member)] {
            let user = new_user(db, email, InitialTeam::Existing(team));
            assert_eq!(db.store.accounts().create_user(user).await.unwrap(), CreateUserOutcome::Created { team, role });
        }
        let nowhere = new_user(db, "eve@example.com", InitialTeam::Existing(TeamId(db.id())));
        assert_eq!(db.store.accounts().create_user(nowhere).await.unwrap(), CreateUserOutcome::TeamInactive);
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        let inactive = new_user(db, "eve@example.com", InitialTeam::Existing(team));
        assert_eq!(db.store.accounts().create_user(inactive).await.unwrap(), CreateUserOutcome::TeamInactive);
        assert_eq!(db.store.accounts().list_users().await.unwrap().len(), 2);
    }

    async fn operator_adds_members_and_the_first_one_is_owner(db) {
        let (own, name) = new_team(db);
        let ada = new_user(db, "ada@example.com", InitialTeam::New(own, name));
        let ada_id = ada.id;
        db.store.accounts().create_user(ada).await.unwrap();
        let team = db.team(0).await;
        let orphans = async || -> Vec<TeamId> {
            let teams = db.store.accounts().list_teams_without_members(5).await.unwrap();
            teams.into_iter().map(|team| team.id).collect()
        };
        assert_eq!(orphans().await, [team]);
        assert_eq!(db.store.accounts().add_member(team, ada_id, NOW).await.unwrap(), Some(Role::Owner));
        assert_eq!(orphans().await, []);
        assert_eq!(db.store.accounts().add_member(team, ada_id, NOW).await.unwrap(), Some(Role::Owner), "it is idempotent");
        let (bob_own, name) = new_team(db);
        let bob = new_user(db, "bob@example.com", InitialTeam::New(bob_own, name));
        let bob_id = bob.id;
        db.store.accounts().create_user(bob).await.unwrap();
        assert_eq!(db.store.accounts().add_member(team, bob_id, NOW).await.unwrap(), Some(Role::Member));
        assert_eq!(db.store.accounts().add_member(TeamId(db.id()), bob_id, NOW).await.unwrap(), None);
        assert_eq!(db.store.accounts().list_memberships(bob_id).await.unwrap().len(), 2);
    }

    async fn inactive_teams_are_not_listed(db) {
        let (team, name) = new_team(db);
        let ada = new_user(db, "ada@example.com", InitialTeam::New(team, name));
        let id = ada.id;
        db.store.accounts().create_user(ada).await.unwrap();
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(db.store.accounts().list_memberships(id).await.unwrap(), []);
    }

    async fn session_ends_on_expiry_close_and_removal_of_its_user(db) {
        let (team, name) = new_team(db);
        let ada = new_user(db, "ada@example.com", InitialTeam::New(team, name));
        let id = ada.id;
        db.store.accounts().create_user(ada).await.unwrap();
        for hash in [1, 2, 3] {
            db.store.accounts().open_session(session(id, hash)).await.unwrap();
        }
        let orphan = db.store.accounts().open_session(session(UserId(db.id()), 9)).await;
        assert!(matches!(orphan, Err(Error::Constraint(_))), "{orphan:?}");

        let last = NOW + SESSION_IDLE - Duration::from_millis(1);
        let found = db.store.accounts().find_session(&[1; 32], last).await.unwrap().unwrap();
        assert_eq!((found.user.id, found.created_at, found.seen_at), (id, NOW, NOW));
        assert_eq!(db.store.accounts().find_session(&[1; 32], NOW + SESSION_IDLE).await.unwrap(), None);
        assert_eq!(db.store.accounts().find_session(&[7; 32], NOW).await.unwrap(), None);

        db.store.accounts().extend_session([1; 32], last, last + SESSION_IDLE).await.unwrap();
        let found = db.store.accounts().find_session(&[1; 32], NOW + SESSION_IDLE).await.unwrap().unwrap();
        assert_eq!((found.created_at, found.seen_at), (NOW, last));

        db.store.accounts().close_session([2; 32]).await.unwrap();
        assert_eq!(db.store.accounts().find_session(&[2; 32], NOW).await.unwrap(), None);
        // A late use does not reopen it.
        db.store.accounts().extend_session([2; 32], NOW, last).await.unwrap();
        assert_eq!(db.store.accounts().find_session(&[2; 32], NOW).await.unwrap(), None);

        assert_eq!(db.store.accounts().purge_sessions(NOW + SESSION_IDLE, 100).await.unwrap(), 1);
        assert_eq!(db.store.accounts().purge_sessions(NOW + SESSION_IDLE, 100).await.unwrap(), 0);
        assert!(db.store.accounts().remove_user(id).await.unwrap());
        assert_eq!(db.store.accounts().find_session(&[1; 32], last).await.unwrap(), None);
        assert!(!db.store.accounts().remove_user(id).await.unwrap());
        assert!(db.store.accounts().find_team(team).await.unwrap().is_some(), "teams stay");
    }

    async fn new_session_ends_the_one_that_was_used_the_longest_time_ago_beyond_the_limit(db) {
        let (team, name) = new_team(db);
        let ada = new_user(db, "ada@example.com", InitialTeam::New(team, name));
        let id = ada.id;
        db.store.accounts().create_user(ada).await.unwrap();
        let all = u8::try_from(SESSIONS).unwrap();
        for hash in 1..=all {
            let now = NOW + Duration::from_secs(u64::from(hash));
            db.store.accounts().open_session(NewSession { now, ..session(id, hash) }).await.unwrap();
        }
        let later = NOW + Duration::from_secs(u64::from(all) + 1);
        db.store.accounts().extend_session([1; 32], later, later + SESSION_IDLE).await.unwrap();
        db.store.accounts().open_session(NewSession { now: later, ..session(id, all + 1) }).await.unwrap();
        for (hash, is_open) in [(1, true), (2, false), (3, true), (all + 1, true)] {
            assert_eq!(db.store.accounts().find_session(&[hash; 32], later).await.unwrap().is_some(), is_open, "{hash}");
        }
    }

    async fn purge_sessions_deletes_the_oldest_up_to_the_limit(db) {
        let (team, name) = new_team(db);
        let ada = new_user(db, "ada@example.com", InitialTeam::New(team, name));
        let id = ada.id;
        db.store.accounts().create_user(ada).await.unwrap();
        for hash in 1..=5 {
            let expires_at = NOW + Duration::from_secs(u64::from(hash));
            db.store.accounts().open_session(NewSession { expires_at, ..session(id, hash) }).await.unwrap();
        }
        assert_eq!(db.store.accounts().purge_sessions(NOW + Duration::from_secs(4), 3).await.unwrap(), 3);
        assert_eq!(db.store.accounts().purge_sessions(NOW + Duration::from_secs(4), 3).await.unwrap(), 1);
        assert!(db.store.accounts().find_session(&[5; 32], NOW).await.unwrap().is_some());
    }
}
