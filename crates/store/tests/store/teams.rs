//! What people may do with their teams, and what nobody may.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{InvitationId, KeyId, TeamId, UserId};
use grabd_domain::teams::{INVITATION_LIFE, INVITATIONS, KEYS, Name, TEAMS};
use grabd_store::{Arrival, Arrived, NewInvitation, NewKey, NewPerson, NewSession, PasswordChange, Place, Refusal};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, World, on_both};

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

/// Somebody with a team of their own.
async fn owner(world: &World, text: &str) -> (UserId, TeamId) {
    let (id, team) = (UserId(world.id()), TeamId(world.id()));
    let place = Place::New(team, "A team".into());
    let person = NewPerson { id, email: email(text), password_hash: "former".into(), place, now: NOW };
    world.store.create_person(person).await.unwrap();
    (id, team)
}

/// Somebody who comes into a team.
async fn join(world: &World, team: TeamId, by: UserId, user: UserId, text: &str, role: Role) {
    let new = invitation(world, team, by, text, role);
    let hash = new.hash;
    world.store.invite(new).await.unwrap().unwrap();
    assert_eq!(world.store.accept(hash, user, email(text), NOW).await.unwrap(), Ok(team));
}

fn invitation(world: &World, team: TeamId, by: UserId, text: &str, role: Role) -> NewInvitation {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(world.id().as_bytes());
    let id = InvitationId(world.id());
    NewInvitation { id, hash, team, email: email(text), role, by, now: NOW, expires_at: NOW + INVITATION_LIFE }
}

fn key(world: &World, team: TeamId) -> NewKey {
    let id = world.id();
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(id.as_bytes());
    let (name, last4) = ("A key".into(), "3-_9".into());
    NewKey { id: KeyId(id), team, environment: Environment::Live, name, hash, last4, now: NOW }
}

async fn roles(world: &World, team: TeamId) -> Vec<Role> {
    world.store.list_members(team).await.unwrap().iter().map(|member| member.role).collect()
}

on_both! {
    async fn only_the_people_of_a_team_make_and_revoke_its_keys(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let (eve, _) = owner(world, "eve@example.com").await;
        let store = &world.store;
        let new = key(world, team);
        let (id, hash) = (new.id, new.hash);
        assert_eq!(store.make_key(new, ada).await.unwrap(), Ok(()));
        assert_eq!(store.make_key(key(world, team), eve).await.unwrap(), Err(Refusal::NotIn));
        assert_eq!(store.revoke_team_key(team, id, eve, NOW).await.unwrap(), Err(Refusal::NotIn));
        let (bob, other) = owner(world, "bob@example.com").await;
        // A key is not found through another team, not even one's own.
        assert_eq!(store.revoke_team_key(other, id, bob, NOW).await.unwrap(), Err(Refusal::Unknown));
        assert!(store.authenticate(&hash).await.unwrap().is_some());

        join(world, team, ada, bob, "bob@example.com", Role::Member).await;
        assert_eq!(store.make_key(key(world, team), bob).await.unwrap(), Ok(()));
        assert_eq!(store.revoke_team_key(team, id, bob, NOW).await.unwrap(), Ok(()));
        assert_eq!(store.revoke_team_key(team, id, ada, NOW).await.unwrap(), Err(Refusal::Unknown));
        assert_eq!(store.authenticate(&hash).await.unwrap(), None);
        world.meddle("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(store.make_key(key(world, team), ada).await.unwrap(), Err(Refusal::NotIn));
    }

    async fn a_team_has_a_bounded_number_of_open_keys(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let mut last = None;
        for _ in 0..KEYS {
            let new = key(world, team);
            last = Some(new.id);
            assert_eq!(world.store.make_key(new, ada).await.unwrap(), Ok(()));
        }
        assert_eq!(world.store.make_key(key(world, team), ada).await.unwrap(), Err(Refusal::Full));
        assert_eq!(world.store.revoke_team_key(team, last.unwrap(), ada, NOW).await.unwrap(), Ok(()));
        assert_eq!(world.store.make_key(key(world, team), ada).await.unwrap(), Ok(()));
    }

    async fn only_owners_change_who_is_in_a_team_and_what_it_is_called(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let (bob, _) = owner(world, "bob@example.com").await;
        let (eve, elsewhere) = owner(world, "eve@example.com").await;
        let store = &world.store;
        join(world, team, ada, bob, "bob@example.com", Role::Member).await;
        for (by, refusal) in [(bob, Refusal::NotOwner), (eve, Refusal::NotIn)] {
            assert_eq!(store.rename_team(team, name("Theirs"), by).await.unwrap(), Err(refusal));
            assert_eq!(store.appoint(team, bob, Role::Owner, by).await.unwrap(), Err(refusal));
            assert_eq!(store.dismiss(team, ada, by).await.unwrap(), Err(refusal));
            let new = invitation(world, team, by, "x@example.com", Role::Owner);
            assert_eq!(store.invite(new).await.unwrap(), Err(refusal));
        }
        let new = invitation(world, team, ada, "x@example.com", Role::Member);
        let id = new.id;
        store.invite(new).await.unwrap().unwrap();
        assert_eq!(store.withdraw(team, id, bob).await.unwrap(), Err(Refusal::NotOwner));
        assert_eq!(store.withdraw(elsewhere, id, eve).await.unwrap(), Err(Refusal::Unknown));
        assert_eq!(store.withdraw(team, id, ada).await.unwrap(), Ok(()));
        assert_eq!(store.withdraw(team, id, ada).await.unwrap(), Err(Refusal::Unknown));
        // Nobody is reached through a team they are not in.
        assert_eq!(store.appoint(elsewhere, bob, Role::Owner, eve).await.unwrap(), Err(Refusal::Unknown));
        assert_eq!(store.dismiss(elsewhere, bob, eve).await.unwrap(), Err(Refusal::Unknown));

        assert_eq!(store.rename_team(team, name("Ours"), ada).await.unwrap(), Ok(()));
        assert_eq!(store.find_membership(team, bob).await.unwrap(), Some(("Ours".to_owned(), Role::Member)));
        assert_eq!(store.appoint(team, bob, Role::Owner, ada).await.unwrap(), Ok(()));
        assert_eq!(store.dismiss(team, ada, bob).await.unwrap(), Ok(()));
        assert_eq!(store.find_membership(team, ada).await.unwrap(), None);
    }

    async fn a_team_keeps_its_last_owner(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let (bob, _) = owner(world, "bob@example.com").await;
        let store = &world.store;
        join(world, team, ada, bob, "bob@example.com", Role::Member).await;
        assert_eq!(store.leave_team(team, ada).await.unwrap(), Err(Refusal::LastOwner));
        assert_eq!(store.dismiss(team, ada, ada).await.unwrap(), Err(Refusal::LastOwner));
        assert_eq!(store.appoint(team, ada, Role::Member, ada).await.unwrap(), Err(Refusal::LastOwner));
        assert_eq!(store.appoint(team, ada, Role::Owner, ada).await.unwrap(), Ok(()));
        assert_eq!(store.leave_team(team, bob).await.unwrap(), Ok(()));
        assert_eq!(store.leave_team(team, bob).await.unwrap(), Err(Refusal::NotIn));
        assert_eq!(roles(world, team).await, [Role::Owner]);
    }

    async fn of_owners_who_go_at_once_one_stays(world) {
        const ROUNDS: usize = 12;
        let mut people = Vec::new();
        for number in 0..4 {
            let text = format!("{number}@example.com");
            people.push((owner(world, &text).await.0, text));
        }
        for round in 0..ROUNDS {
            let team = TeamId(world.id());
            let (first, _) = people[0];
            world.store.found_team(team, name("A team"), first, NOW).await.unwrap().unwrap();
            for (user, text) in &people[1..] {
                join(world, team, first, *user, text, Role::Owner).await;
            }
            let going: Vec<_> = people
                .iter()
                .enumerate()
                .map(|(number, (user, _))| {
                    let (store, user) = (world.store.clone(), *user);
                    TaskTracker::new().spawn(async move {
                        match (number + round) % 3 {
                            0 => store.leave_team(team, user).await,
                            1 => store.dismiss(team, user, user).await,
                            _ => store.appoint(team, user, Role::Member, user).await,
                        }
                    })
                })
                .collect();
            let went = join_all(going).await;
            let refused = went.into_iter().filter(|went| {
                let went = went.as_ref().unwrap().as_ref().unwrap();
                assert!(matches!(went, Ok(()) | Err(Refusal::LastOwner)), "{went:?}");
                went.is_err()
            });
            let refused = refused.count();
            let owners = roles(world, team).await.into_iter().filter(|role| *role == Role::Owner).count();
            assert_eq!((refused, owners), (1, 1), "round {round}");
        }
    }

    async fn an_invitation_lets_one_person_in_once_and_in_time(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let (bob, _) = owner(world, "bob@example.com").await;
        let (eve, _) = owner(world, "eve@example.com").await;
        let store = &world.store;
        let new = invitation(world, team, ada, "bob@example.com", Role::Owner);
        let hash = new.hash;
        store.invite(new.clone()).await.unwrap().unwrap();
        let late = NOW + INVITATION_LIFE;
        let unknown = Err(Refusal::Unknown);
        assert_eq!(store.accept(hash, bob, email("bob@example.com"), late).await.unwrap(), unknown);
        assert_eq!(store.accept(hash, eve, email("eve@example.com"), NOW).await.unwrap(), unknown);
        assert_eq!(store.accept([9; 32], bob, email("bob@example.com"), NOW).await.unwrap(), unknown);
        // The next one for the same address replaces it.
        let next = invitation(world, team, ada, "bob@example.com", Role::Member);
        let next_hash = next.hash;
        store.invite(next).await.unwrap().unwrap();
        assert_eq!(store.accept(hash, bob, email("bob@example.com"), NOW).await.unwrap(), unknown);
        let attempts = (0..8).map(|_| {
            let store = store.clone();
            TaskTracker::new().spawn(async move { store.accept(next_hash, bob, email("bob@example.com"), NOW).await })
        });
        let outcomes = join_all(attempts.collect::<Vec<_>>()).await;
        let came = outcomes.iter().filter(|outcome| *outcome.as_ref().unwrap().as_ref().unwrap() == Ok(team)).count();
        assert_eq!(came, 1);
        assert_eq!(roles(world, team).await, [Role::Owner, Role::Member]);
        let again = invitation(world, team, ada, "bob@example.com", Role::Owner);
        assert_eq!(store.invite(again).await.unwrap(), Err(Refusal::AlreadyIn));
    }

    async fn whoever_has_no_account_comes_in_with_a_new_one(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let new = invitation(world, team, ada, "bob@example.com", Role::Member);
        let hash = new.hash;
        world.store.invite(new).await.unwrap().unwrap();
        let arrival = |hash| Arrival { hash, user: UserId(world.id()), password_hash: "new".into(), now: NOW };
        let unknown = Arrived::Refused(Refusal::Unknown);
        assert_eq!(world.store.arrive(arrival([9; 32])).await.unwrap(), unknown);
        let late = Arrival { now: NOW + INVITATION_LIFE, ..arrival(hash) };
        assert_eq!(world.store.arrive(late).await.unwrap(), unknown);
        assert_eq!(world.store.arrive(arrival(hash)).await.unwrap(), Arrived::Yes(team));
        assert_eq!(world.store.arrive(arrival(hash)).await.unwrap(), unknown);
        let bob = world.store.find_person(&email("bob@example.com")).await.unwrap().unwrap();
        assert_eq!(world.store.list_memberships(bob.id).await.unwrap(), [(team, "A team".to_owned(), Role::Member)]);

        // Nobody gets an account that is somebody else's.
        owner(world, "eve@example.com").await;
        let new = invitation(world, team, ada, "eve@example.com", Role::Member);
        let hash = new.hash;
        world.store.invite(new).await.unwrap().unwrap();
        assert_eq!(world.store.arrive(arrival(hash)).await.unwrap(), Arrived::EmailTaken);
        assert_eq!(roles(world, team).await.len(), 2);
        assert!(world.store.find_invitation(&hash, NOW).await.unwrap().is_some());
    }

    async fn an_invitation_ends_with_the_power_of_whoever_gave_it(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let (bob, _) = owner(world, "bob@example.com").await;
        let store = &world.store;
        for end in 0..3 {
            join(world, team, ada, bob, "bob@example.com", Role::Owner).await;
            let new = invitation(world, team, bob, "x@example.com", Role::Owner);
            let hash = new.hash;
            store.invite(new).await.unwrap().unwrap();
            assert_eq!(store.list_invitations(team, NOW).await.unwrap().len(), 1);
            match end {
                0 => store.leave_team(team, bob).await.unwrap().unwrap(),
                1 => store.dismiss(team, bob, ada).await.unwrap().unwrap(),
                _ => store.appoint(team, bob, Role::Member, ada).await.unwrap().unwrap(),
            }
            assert_eq!(store.find_invitation(&hash, NOW).await.unwrap(), None, "{end}");
        }
    }

    async fn invitations_and_teams_are_bounded(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        for number in 0..INVITATIONS {
            let new = invitation(world, team, ada, &format!("{number}@example.com"), Role::Member);
            assert_eq!(world.store.invite(new).await.unwrap(), Ok(()));
        }
        let one_more = invitation(world, team, ada, "more@example.com", Role::Member);
        assert_eq!(world.store.invite(one_more.clone()).await.unwrap(), Err(Refusal::Full));
        // Those that count no more make room.
        let later = NewInvitation { now: NOW + INVITATION_LIFE, ..one_more };
        assert_eq!(world.store.invite(later).await.unwrap(), Ok(()));
        let foundings = (0..TEAMS + 3).map(|_| {
            let (store, id) = (world.store.clone(), TeamId(world.id()));
            TaskTracker::new().spawn(async move { store.found_team(id, name("Another"), ada, NOW).await })
        });
        let founded = join_all(foundings.collect::<Vec<_>>()).await;
        let founded = founded.iter().filter(|founded| founded.as_ref().unwrap().as_ref().unwrap().is_ok()).count();
        assert_eq!(founded as u64, TEAMS - 1);
    }

    async fn a_changed_password_ends_every_session_but_one(world) {
        let (ada, _) = owner(world, "ada@example.com").await;
        let (eve, _) = owner(world, "eve@example.com").await;
        let store = &world.store;
        let expires_at = NOW + Duration::from_secs(60);
        for (hash, user) in [(1, ada), (2, ada), (3, ada), (4, eve)] {
            store.open_session(NewSession { hash: [hash; 32], user, now: NOW, expires_at }).await.unwrap();
        }
        store.note_agent([1; 32], "A browser".into()).await.unwrap();
        store.keep_reset([7; 32], ada, expires_at).await.unwrap();
        let listed = store.list_sessions(ada, NOW).await.unwrap();
        assert_eq!(listed.iter().map(|session| session.hash[0]).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(listed[0].agent.as_deref(), Some("A browser"));
        assert_eq!(store.list_sessions(ada, expires_at).await.unwrap(), []);
        assert!(!store.end_session(ada, [4; 32]).await.unwrap(), "a session of somebody else");
        assert!(store.end_session(ada, [3; 32]).await.unwrap());

        let change = |former: &str| PasswordChange {
            user: ada,
            former_hash: former.into(),
            password_hash: "next".into(),
            keep: [2; 32],
        };
        assert!(!store.change_password(change("another")).await.unwrap());
        assert_eq!(store.list_sessions(ada, NOW).await.unwrap().len(), 2);
        assert!(store.change_password(change("former")).await.unwrap());
        let left: Vec<_> = store.list_sessions(ada, NOW).await.unwrap().iter().map(|session| session.hash[0]).collect();
        assert_eq!(left, [2]);
        assert_eq!(store.list_sessions(eve, NOW).await.unwrap().len(), 1);
        assert_eq!(store.find_reset(&[7; 32], NOW).await.unwrap(), None);
        assert_eq!(store.find_login(&email("ada@example.com")).await.unwrap().unwrap().password_hash, "next");
    }

    async fn a_reset_is_used_once_and_in_time_and_ends_all_sessions(world) {
        let (ada, _) = owner(world, "ada@example.com").await;
        let (eve, _) = owner(world, "eve@example.com").await;
        let store = &world.store;
        let expires_at = NOW + Duration::from_secs(60);
        for (hash, user) in [(1, ada), (2, ada), (4, eve)] {
            store.open_session(NewSession { hash: [hash; 32], user, now: NOW, expires_at }).await.unwrap();
        }
        store.keep_reset([7; 32], ada, expires_at).await.unwrap();
        store.keep_reset([8; 32], ada, expires_at).await.unwrap();
        store.keep_reset([9; 32], eve, expires_at).await.unwrap();
        assert_eq!(store.reset_password([7; 32], "next".into(), expires_at).await.unwrap(), None);
        assert_eq!(store.reset_password([6; 32], "next".into(), NOW).await.unwrap(), None);
        // Only some rounds are close enough to be a race.
        for round in 20..40 {
            store.keep_reset([round; 32], ada, expires_at).await.unwrap();
            let attempts = (0..8).map(|_| {
                let store = store.clone();
                TaskTracker::new().spawn(async move { store.reset_password([round; 32], "next".into(), NOW).await })
            });
            let outcomes = join_all(attempts.collect::<Vec<_>>()).await;
            let used = outcomes.iter().filter(|outcome| outcome.as_ref().unwrap().as_ref().unwrap().is_some()).count();
            assert_eq!(used, 1);
        }
        assert_eq!(store.list_sessions(ada, NOW).await.unwrap(), []);
        assert_eq!(store.list_sessions(eve, NOW).await.unwrap().len(), 1);
        assert_eq!(store.find_reset(&[8; 32], NOW).await.unwrap(), None, "the other ways are closed too");
        assert_eq!(store.find_reset(&[9; 32], NOW).await.unwrap(), Some(eve));
        assert_eq!(store.find_login(&email("ada@example.com")).await.unwrap().unwrap().password_hash, "next");
    }

    async fn links_that_count_no_more_are_forgotten(world) {
        let (ada, team) = owner(world, "ada@example.com").await;
        let new = invitation(world, team, ada, "bob@example.com", Role::Member);
        world.store.invite(new).await.unwrap().unwrap();
        world.store.keep_reset([7; 32], ada, NOW + INVITATION_LIFE).await.unwrap();
        assert_eq!(world.store.purge_links(NOW, 10).await.unwrap(), 0);
        assert_eq!(world.store.purge_links(NOW + INVITATION_LIFE, 10).await.unwrap(), 2);
    }
}
