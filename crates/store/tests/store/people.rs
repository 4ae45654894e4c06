//! People, where they belong, and their sessions.

use std::time::Duration;

use grabd_domain::accounts::{Email, Role, SESSION_IDLE};
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::{Error, NewPerson, NewSession, Place, Welcomed};

use crate::harness::{NOW, World, on_both};

fn new_person(world: &World, email: &str, place: Place) -> NewPerson {
    let (id, email) = (UserId(world.id()), Email::parse(email).unwrap());
    NewPerson { id, email, password_hash: "$argon2id$".into(), place, now: NOW }
}

fn new_team(world: &World) -> (TeamId, String) {
    (TeamId(world.id()), "Their own".to_owned())
}

fn session(user: UserId, hash: u8) -> NewSession {
    NewSession { hash: [hash; 32], user, now: NOW, expires_at: NOW + SESSION_IDLE }
}

on_both! {
    async fn somebody_comes_with_a_team_of_their_own(world) {
        let (team, name) = new_team(world);
        let ada = new_person(world, "ada@example.com", Place::New(team, name.clone()));
        let id = ada.id;
        assert_eq!(world.store.create_person(ada).await.unwrap(), Welcomed::Yes { team, role: Role::Owner });
        assert_eq!(world.store.list_memberships(id).await.unwrap(), [(team, name, Role::Owner)]);
        let found = world.store.find_person(&Email::parse("Ada@Example.com").unwrap()).await.unwrap().unwrap();
        assert_eq!((found.id, found.email.as_str(), found.created_at), (id, "ada@example.com", NOW));
        let login = world.store.find_login(&found.email).await.unwrap().unwrap();
        assert_eq!((login.user, login.password_hash.as_str()), (id, "$argon2id$"));
        assert_eq!(world.store.list_people().await.unwrap(), [found]);
        assert!(world.store.find_login(&Email::parse("eve@example.com").unwrap()).await.unwrap().is_none());
    }

    async fn an_address_is_taken_once_and_nothing_is_left_of_the_second(world) {
        let (first, second) = (new_team(world), new_team(world));
        let place = Place::New(first.0, first.1);
        world.store.create_person(new_person(world, "ada@example.com", place)).await.unwrap();
        let again = new_person(world, "ADA@example.com", Place::New(second.0, second.1));
        assert_eq!(world.store.create_person(again).await.unwrap(), Welcomed::EmailTaken);
        assert_eq!(world.store.find_team(second.0).await.unwrap(), None);
        assert_eq!(world.store.list_people().await.unwrap().len(), 1);
    }

    async fn the_first_in_a_team_owns_it_and_the_next_ones_are_members(world) {
        let team = world.team(0).await;
        for (email, role) in [("ada@example.com", Role::Owner), ("bob@example.com", Role::Member)] {
            let person = new_person(world, email, Place::In(team));
            assert_eq!(world.store.create_person(person).await.unwrap(), Welcomed::Yes { team, role });
        }
        let nowhere = new_person(world, "eve@example.com", Place::In(TeamId(world.id())));
        assert_eq!(world.store.create_person(nowhere).await.unwrap(), Welcomed::TeamInactive);
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        let inactive = new_person(world, "eve@example.com", Place::In(team));
        assert_eq!(world.store.create_person(inactive).await.unwrap(), Welcomed::TeamInactive);
        assert_eq!(world.store.list_people().await.unwrap().len(), 2);
    }

    async fn the_only_team_that_nobody_is_in_gets_its_owner(world) {
        let orphan_or_new = |world: &World| {
            let (id, name) = new_team(world);
            (id, Place::OrphanOrNew(id, name))
        };
        // None: a new one.
        let (own, place) = orphan_or_new(world);
        let ada = new_person(world, "ada@example.com", place);
        assert_eq!(world.store.create_person(ada).await.unwrap(), Welcomed::Yes { team: own, role: Role::Owner });
        // One: that one.
        let default = world.team(0).await;
        let (_, place) = orphan_or_new(world);
        let bob = new_person(world, "bob@example.com", place);
        assert_eq!(world.store.create_person(bob).await.unwrap(), Welcomed::Yes { team: default, role: Role::Owner });
        // Two: nobody can say which one, so a new one.
        let (_one, _two) = (world.team(0).await, world.team(0).await);
        let (own, place) = orphan_or_new(world);
        let eve = new_person(world, "eve@example.com", place);
        assert_eq!(world.store.create_person(eve).await.unwrap(), Welcomed::Yes { team: own, role: Role::Owner });
    }

    async fn inactive_teams_are_not_listed(world) {
        let (team, name) = new_team(world);
        let ada = new_person(world, "ada@example.com", Place::New(team, name));
        let id = ada.id;
        world.store.create_person(ada).await.unwrap();
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(world.store.list_memberships(id).await.unwrap(), []);
    }

    async fn a_session_ends_by_itself_when_it_is_closed_and_with_its_person(world) {
        let (team, name) = new_team(world);
        let ada = new_person(world, "ada@example.com", Place::New(team, name));
        let id = ada.id;
        world.store.create_person(ada).await.unwrap();
        for hash in [1, 2, 3] {
            world.store.open_session(session(id, hash)).await.unwrap();
        }
        let stray = world.store.open_session(session(UserId(world.id()), 9)).await;
        assert!(matches!(stray, Err(Error::Constraint(_))), "{stray:?}");

        let last = NOW + SESSION_IDLE - Duration::from_millis(1);
        let found = world.store.find_session(&[1; 32], last).await.unwrap().unwrap();
        assert_eq!((found.person.id, found.created_at, found.seen_at), (id, NOW, NOW));
        assert_eq!(world.store.find_session(&[1; 32], NOW + SESSION_IDLE).await.unwrap(), None);
        assert_eq!(world.store.find_session(&[7; 32], NOW).await.unwrap(), None);

        world.store.extend_session([1; 32], last, last + SESSION_IDLE).await.unwrap();
        let found = world.store.find_session(&[1; 32], NOW + SESSION_IDLE).await.unwrap().unwrap();
        assert_eq!((found.created_at, found.seen_at), (NOW, last));

        world.store.close_session([2; 32]).await.unwrap();
        assert_eq!(world.store.find_session(&[2; 32], NOW).await.unwrap(), None);
        // A use that was on its way does not open it again.
        world.store.extend_session([2; 32], NOW, last).await.unwrap();
        assert_eq!(world.store.find_session(&[2; 32], NOW).await.unwrap(), None);

        assert_eq!(world.store.purge_sessions(NOW + SESSION_IDLE, 100).await.unwrap(), 1);
        assert_eq!(world.store.purge_sessions(NOW + SESSION_IDLE, 100).await.unwrap(), 0);
        assert!(world.store.remove_person(id).await.unwrap());
        assert_eq!(world.store.find_session(&[1; 32], last).await.unwrap(), None);
        assert!(!world.store.remove_person(id).await.unwrap());
        assert!(world.store.find_team(team).await.unwrap().is_some(), "teams stay");
    }

    async fn sweeping_sessions_is_bounded_and_takes_the_oldest(world) {
        let (team, name) = new_team(world);
        let ada = new_person(world, "ada@example.com", Place::New(team, name));
        let id = ada.id;
        world.store.create_person(ada).await.unwrap();
        for hash in 1..=5 {
            let expires_at = NOW + Duration::from_secs(u64::from(hash));
            world.store.open_session(NewSession { expires_at, ..session(id, hash) }).await.unwrap();
        }
        assert_eq!(world.store.purge_sessions(NOW + Duration::from_secs(4), 3).await.unwrap(), 3);
        assert_eq!(world.store.purge_sessions(NOW + Duration::from_secs(4), 3).await.unwrap(), 1);
        assert!(world.store.find_session(&[5; 32], NOW).await.unwrap().is_some());
    }
}
