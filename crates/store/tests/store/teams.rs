//! Team management: keys, members, invitations, passwords.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::ids::{InvitationId, KeyId, TeamId, UserId};
use grabd_domain::teams::{INVITATION_LIFE, INVITATIONS, KEYS, TEAMS, TeamName};
use grabd_store::accounts::{
    InitialTeam, InvitedSignUp, NewInvitation, NewKey, NewSession, NewUser, PasswordChange, SignUpOutcome,
    TeamRuleError,
};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, TestDb, on_both};

fn name(text: &str) -> TeamName {
    TeamName::parse(text).unwrap()
}

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

/// Creates a user with a new team.
async fn owner(db: &TestDb, text: &str) -> (UserId, TeamId) {
    let (id, team) = (UserId(db.id()), TeamId(db.id()));
    let initial_team = InitialTeam::New(team, "A team".into());
    let user =
        NewUser { id, email: email(text), password_hash: "former".into(), initial_team, verified: true, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    (id, team)
}

/// Invites a user and accepts the invitation.
async fn join(db: &TestDb, team: TeamId, by: UserId, user: UserId, text: &str, role: Role) {
    let new = invitation(db, team, by, text, role);
    let hash = new.hash;
    db.store.accounts().invite(new).await.unwrap().unwrap();
    assert_eq!(db.store.accounts().accept_invitation(hash, user, email(text), NOW).await.unwrap(), Ok(team));
}

fn invitation(db: &TestDb, team: TeamId, by: UserId, text: &str, role: Role) -> NewInvitation {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(db.id().as_bytes());
    let id = InvitationId(db.id());
    NewInvitation {
        id,
        hash,
        team,
        email: email(text),
        role,
        by,
        now: NOW,
        expires_at: NOW + INVITATION_LIFE,
        mailed: false,
    }
}

fn key(db: &TestDb, team: TeamId) -> NewKey {
    let id = db.id();
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(id.as_bytes());
    let (name, last4) = ("A key".into(), "3-_9".into());
    NewKey {
        id: KeyId(id),
        team,
        environment: Environment::Live,
        name,
        hash,
        last4,
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: None,
        now: NOW,
    }
}

async fn roles(db: &TestDb, team: TeamId) -> Vec<Role> {
    db.store.accounts().list_members(team).await.unwrap().iter().map(|member| member.role).collect()
}

on_both! {
    async fn only_members_create_and_revoke_keys(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (eve, _) = owner(db, "eve@example.com").await;
        let store = &db.store;
        let new = key(db, team);
        let (id, hash) = (new.id, new.hash);
        assert_eq!(store.accounts().create_team_key(new, ada).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().create_team_key(key(db, team), eve).await.unwrap(), Err(TeamRuleError::NotMember));
        assert_eq!(store.accounts().revoke_team_key(team, id, eve, NOW).await.unwrap(), Err(TeamRuleError::NotMember));
        let (bob, other) = owner(db, "bob@example.com").await;
        // A key is not found through another team.
        assert_eq!(store.accounts().revoke_team_key(other, id, bob, NOW).await.unwrap(), Err(TeamRuleError::NotFound));
        assert!(store.accounts().authenticate(&hash).await.unwrap().is_some());

        join(db, team, ada, bob, "bob@example.com", Role::Member).await;
        assert_eq!(store.accounts().create_team_key(key(db, team), bob).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().revoke_team_key(team, id, bob, NOW).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().revoke_team_key(team, id, ada, NOW).await.unwrap(), Err(TeamRuleError::NotFound));
        assert_eq!(store.accounts().authenticate(&hash).await.unwrap(), None);
        db.execute_raw("UPDATE team SET status = 1").await.unwrap();
        assert_eq!(store.accounts().create_team_key(key(db, team), ada).await.unwrap(), Err(TeamRuleError::NotMember));
    }

    async fn open_keys_of_a_team_are_limited(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let mut last = None;
        for _ in 0..KEYS {
            let new = key(db, team);
            last = Some(new.id);
            assert_eq!(db.store.accounts().create_team_key(new, ada).await.unwrap(), Ok(()));
        }
        assert_eq!(db.store.accounts().create_team_key(key(db, team), ada).await.unwrap(), Err(TeamRuleError::LimitReached));
        assert_eq!(db.store.accounts().revoke_team_key(team, last.unwrap(), ada, NOW).await.unwrap(), Ok(()));
        assert_eq!(db.store.accounts().create_team_key(key(db, team), ada).await.unwrap(), Ok(()));
    }

    async fn only_owners_rename_the_team_and_manage_members(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (bob, _) = owner(db, "bob@example.com").await;
        let (eve, elsewhere) = owner(db, "eve@example.com").await;
        let store = &db.store;
        join(db, team, ada, bob, "bob@example.com", Role::Member).await;
        for (by, refusal) in [(bob, TeamRuleError::NotOwner), (eve, TeamRuleError::NotMember)] {
            assert_eq!(store.accounts().rename_team(team, name("Theirs"), by).await.unwrap(), Err(refusal));
            assert_eq!(store.accounts().set_role(team, bob, Role::Owner, by).await.unwrap(), Err(refusal));
            assert_eq!(store.accounts().remove_team_member(team, ada, by).await.unwrap(), Err(refusal));
            let new = invitation(db, team, by, "x@example.com", Role::Owner);
            assert_eq!(store.accounts().invite(new).await.unwrap(), Err(refusal));
        }
        let new = invitation(db, team, ada, "x@example.com", Role::Member);
        let id = new.id;
        store.accounts().invite(new).await.unwrap().unwrap();
        assert_eq!(store.accounts().withdraw_invitation(team, id, bob).await.unwrap(), Err(TeamRuleError::NotOwner));
        assert_eq!(store.accounts().withdraw_invitation(elsewhere, id, eve).await.unwrap(), Err(TeamRuleError::NotFound));
        assert_eq!(store.accounts().withdraw_invitation(team, id, ada).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().withdraw_invitation(team, id, ada).await.unwrap(), Err(TeamRuleError::NotFound));
        // Members cannot be changed through a team they do not belong to.
        assert_eq!(store.accounts().set_role(elsewhere, bob, Role::Owner, eve).await.unwrap(), Err(TeamRuleError::NotFound));
        assert_eq!(store.accounts().remove_team_member(elsewhere, bob, eve).await.unwrap(), Err(TeamRuleError::NotFound));

        assert_eq!(store.accounts().rename_team(team, name("Ours"), ada).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().find_membership(team, bob).await.unwrap(), Some(("Ours".to_owned(), Role::Member)));
        assert_eq!(store.accounts().set_role(team, bob, Role::Owner, ada).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().remove_team_member(team, ada, bob).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().find_membership(team, ada).await.unwrap(), None);
    }

    async fn last_owner_cannot_leave_or_lose_the_role(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (bob, _) = owner(db, "bob@example.com").await;
        let store = &db.store;
        join(db, team, ada, bob, "bob@example.com", Role::Member).await;
        assert_eq!(store.accounts().leave_team(team, ada).await.unwrap(), Err(TeamRuleError::LastOwner));
        assert_eq!(store.accounts().remove_team_member(team, ada, ada).await.unwrap(), Err(TeamRuleError::LastOwner));
        assert_eq!(store.accounts().set_role(team, ada, Role::Member, ada).await.unwrap(), Err(TeamRuleError::LastOwner));
        assert_eq!(store.accounts().set_role(team, ada, Role::Owner, ada).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().leave_team(team, bob).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().leave_team(team, bob).await.unwrap(), Err(TeamRuleError::NotMember));
        assert_eq!(roles(db, team).await, [Role::Owner]);
    }

    async fn keys_need_a_role_with_access_to_them(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (bob, _) = owner(db, "bob@example.com").await;
        let store = &db.store;
        join(db, team, ada, bob, "bob@example.com", Role::Billing).await;
        assert_eq!(roles(db, team).await, [Role::Owner, Role::Billing]);
        let made = key(db, team);
        let id = made.id;
        assert_eq!(store.accounts().create_team_key(made, ada).await.unwrap(), Ok(()));
        for role in [Role::Viewer, Role::Billing] {
            assert_eq!(store.accounts().set_role(team, bob, role, ada).await.unwrap(), Ok(()));
            assert_eq!(store.accounts().find_membership(team, bob).await.unwrap(), Some(("A team".to_owned(), role)));
            let refused = Err(TeamRuleError::NotAllowed);
            assert_eq!(store.accounts().create_team_key(key(db, team), bob).await.unwrap(), refused, "{role:?}");
            assert_eq!(store.accounts().revoke_team_key(team, id, bob, NOW).await.unwrap(), refused, "{role:?}");
            let set = store.accounts().set_role(team, bob, Role::Owner, bob).await.unwrap();
            assert_eq!(set, Err(TeamRuleError::NotOwner), "{role:?}");
            let last = store.accounts().set_role(team, ada, role, ada).await.unwrap();
            assert_eq!(last, Err(TeamRuleError::LastOwner), "{role:?}");
        }
        assert_eq!(store.accounts().set_role(team, bob, Role::Member, ada).await.unwrap(), Ok(()));
        assert_eq!(store.accounts().revoke_team_key(team, id, bob, NOW).await.unwrap(), Ok(()));
    }

    async fn alert_of_the_balance_needs_a_role_that_may_set_it(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (bob, _) = owner(db, "bob@example.com").await;
        let store = &db.store;
        join(db, team, ada, bob, "bob@example.com", Role::Member).await;
        for (role, expected) in [
            (Role::Member, Err(TeamRuleError::NotAllowed)),
            (Role::Viewer, Err(TeamRuleError::NotAllowed)),
            (Role::Billing, Ok(())),
            (Role::Owner, Ok(())),
        ] {
            store.accounts().set_role(team, bob, role, ada).await.unwrap().unwrap();
            assert_eq!(store.credits().set_alert_below(team, 7, bob, NOW).await.unwrap(), expected, "{role:?}");
        }
    }

    async fn concurrent_leaving_owners_keep_one_owner(db) {
        const ROUNDS: usize = 12;
        let mut users = Vec::new();
        for number in 0..4 {
            let text = format!("{number}@example.com");
            users.push((owner(db, &text).await.0, text));
        }
        for round in 0..ROUNDS {
            let team = TeamId(db.id());
            let (first, _) = users[0];
            db.store.accounts().create_owned_team(team, name("A team"), first, NOW).await.unwrap().unwrap();
            for (user, text) in &users[1..] {
                join(db, team, first, *user, text, Role::Owner).await;
            }
            let leaving: Vec<_> = users
                .iter()
                .enumerate()
                .map(|(number, (user, _))| {
                    let (store, user) = (db.store.clone(), *user);
                    TaskTracker::new().spawn(async move {
                        match (number + round) % 3 {
                            0 => store.accounts().leave_team(team, user).await,
                            1 => store.accounts().remove_team_member(team, user, user).await,
                            _ => store.accounts().set_role(team, user, Role::Member, user).await,
                        }
                    })
                })
                .collect();
            let outcomes = join_all(leaving).await;
            let refused = outcomes.into_iter().filter(|outcomes| {
                let outcomes = outcomes.as_ref().unwrap().as_ref().unwrap();
                assert!(matches!(outcomes, Ok(()) | Err(TeamRuleError::LastOwner)), "{outcomes:?}");
                outcomes.is_err()
            });
            let refused = refused.count();
            let owners = roles(db, team).await.into_iter().filter(|role| *role == Role::Owner).count();
            assert_eq!((refused, owners), (1, 1), "round {round}");
        }
    }

    async fn invitation_is_accepted_once_before_expiry(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (bob, _) = owner(db, "bob@example.com").await;
        let (eve, _) = owner(db, "eve@example.com").await;
        let store = &db.store;
        let new = invitation(db, team, ada, "bob@example.com", Role::Owner);
        let hash = new.hash;
        store.accounts().invite(new.clone()).await.unwrap().unwrap();
        let late = NOW + INVITATION_LIFE;
        let unknown = Err(TeamRuleError::NotFound);
        assert_eq!(store.accounts().accept_invitation(hash, bob, email("bob@example.com"), late).await.unwrap(), unknown);
        assert_eq!(store.accounts().accept_invitation(hash, eve, email("eve@example.com"), NOW).await.unwrap(), unknown);
        assert_eq!(store.accounts().accept_invitation([9; 32], bob, email("bob@example.com"), NOW).await.unwrap(), unknown);
        // A new invitation of the same address replaces it.
        let next = invitation(db, team, ada, "bob@example.com", Role::Member);
        let next_hash = next.hash;
        store.accounts().invite(next).await.unwrap().unwrap();
        assert_eq!(store.accounts().accept_invitation(hash, bob, email("bob@example.com"), NOW).await.unwrap(), unknown);
        let attempts = (0..8).map(|_| {
            let store = store.clone();
            TaskTracker::new()
                .spawn(async move { store.accounts().accept_invitation(next_hash, bob, email("bob@example.com"), NOW).await })
        });
        let outcomes = join_all(attempts.collect::<Vec<_>>()).await;
        let accepted =
            outcomes.iter().filter(|outcome| *outcome.as_ref().unwrap().as_ref().unwrap() == Ok(team)).count();
        assert_eq!(accepted, 1);
        assert_eq!(roles(db, team).await, [Role::Owner, Role::Member]);
        let again = invitation(db, team, ada, "bob@example.com", Role::Owner);
        assert_eq!(store.accounts().invite(again).await.unwrap(), Err(TeamRuleError::AlreadyMember));
    }

    async fn invited_user_signs_up_with_a_new_account(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let new = invitation(db, team, ada, "bob@example.com", Role::Member);
        let hash = new.hash;
        db.store.accounts().invite(new).await.unwrap().unwrap();
        let sign_up = |hash| {
            let user = UserId(db.id());
            InvitedSignUp { hash, user, password_hash: "new".into(), verified: false, now: NOW }
        };
        let unknown = SignUpOutcome::Refused(TeamRuleError::NotFound);
        assert_eq!(db.store.accounts().sign_up_invited(sign_up([9; 32])).await.unwrap(), unknown);
        let late = InvitedSignUp { now: NOW + INVITATION_LIFE, ..sign_up(hash) };
        assert_eq!(db.store.accounts().sign_up_invited(late).await.unwrap(), unknown);
        assert!(matches!(
            db.store.accounts().sign_up_invited(sign_up(hash)).await.unwrap(),
            SignUpOutcome::Joined { team: joined, .. } if joined == team
        ));
        assert_eq!(db.store.accounts().sign_up_invited(sign_up(hash)).await.unwrap(), unknown);
        let bob = db.store.accounts().find_user(&email("bob@example.com")).await.unwrap().unwrap();
        assert_eq!(db.store.accounts().list_memberships(bob.id).await.unwrap(), [(team, "A team".to_owned(), Role::Member)]);

        // An address in use cannot be taken over.
        owner(db, "eve@example.com").await;
        let new = invitation(db, team, ada, "eve@example.com", Role::Member);
        let hash = new.hash;
        db.store.accounts().invite(new).await.unwrap().unwrap();
        assert_eq!(db.store.accounts().sign_up_invited(sign_up(hash)).await.unwrap(), SignUpOutcome::EmailTaken);
        assert_eq!(roles(db, team).await.len(), 2);
        assert!(db.store.accounts().find_invitation(&hash, NOW).await.unwrap().is_some());
    }

    async fn invitation_ends_when_the_inviter_is_no_longer_owner(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let (bob, _) = owner(db, "bob@example.com").await;
        let store = &db.store;
        for end in 0..3 {
            join(db, team, ada, bob, "bob@example.com", Role::Owner).await;
            let new = invitation(db, team, bob, "x@example.com", Role::Owner);
            let hash = new.hash;
            store.accounts().invite(new).await.unwrap().unwrap();
            assert_eq!(store.accounts().list_invitations(team, NOW).await.unwrap().len(), 1);
            match end {
                0 => store.accounts().leave_team(team, bob).await.unwrap().unwrap(),
                1 => store.accounts().remove_team_member(team, bob, ada).await.unwrap().unwrap(),
                _ => store.accounts().set_role(team, bob, Role::Member, ada).await.unwrap().unwrap(),
            }
            assert_eq!(store.accounts().find_invitation(&hash, NOW).await.unwrap(), None, "{end}");
        }
    }

    async fn invitations_and_teams_are_limited(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        for number in 0..INVITATIONS {
            let new = invitation(db, team, ada, &format!("{number}@example.com"), Role::Member);
            assert_eq!(db.store.accounts().invite(new).await.unwrap(), Ok(()));
        }
        let one_more = invitation(db, team, ada, "more@example.com", Role::Member);
        assert_eq!(db.store.accounts().invite(one_more.clone()).await.unwrap(), Err(TeamRuleError::LimitReached));
        // Expired invitations do not count.
        let later = NewInvitation { now: NOW + INVITATION_LIFE, ..one_more };
        assert_eq!(db.store.accounts().invite(later).await.unwrap(), Ok(()));
        let creates = (0..TEAMS + 3).map(|_| {
            let (store, id) = (db.store.clone(), TeamId(db.id()));
            TaskTracker::new().spawn(async move { store.accounts().create_owned_team(id, name("Another"), ada, NOW).await })
        });
        let created = join_all(creates.collect::<Vec<_>>()).await;
        let created = created.iter().filter(|created| created.as_ref().unwrap().as_ref().unwrap().is_ok()).count();
        assert_eq!(created as u64, TEAMS - 1);
    }

    async fn password_change_ends_all_other_sessions(db) {
        let (ada, _) = owner(db, "ada@example.com").await;
        let (eve, _) = owner(db, "eve@example.com").await;
        let store = &db.store;
        let expires_at = NOW + Duration::from_secs(60);
        for (hash, user) in [(1, ada), (2, ada), (3, ada), (4, eve)] {
            store.accounts().open_session(NewSession { hash: [hash; 32], user, now: NOW, expires_at }).await.unwrap();
        }
        store.accounts().set_session_agent([1; 32], "A browser".into()).await.unwrap();
        store.accounts().create_password_reset([7; 32], ada, expires_at).await.unwrap();
        let listed = store.accounts().list_sessions(ada, NOW).await.unwrap();
        assert_eq!(listed.iter().map(|session| session.hash[0]).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(listed[0].agent.as_deref(), Some("A browser"));
        assert_eq!(store.accounts().list_sessions(ada, expires_at).await.unwrap(), []);
        assert!(!store.accounts().end_session(ada, [4; 32]).await.unwrap(), "another person's session");
        assert!(store.accounts().end_session(ada, [3; 32]).await.unwrap());

        let change = |former: &str| PasswordChange {
            user: ada,
            former_hash: former.into(),
            password_hash: "next".into(),
            keep: [2; 32],
        };
        assert!(!store.accounts().change_password(change("another")).await.unwrap());
        assert_eq!(store.accounts().list_sessions(ada, NOW).await.unwrap().len(), 2);
        assert!(store.accounts().change_password(change("former")).await.unwrap());
        let left: Vec<_> = store.accounts().list_sessions(ada, NOW).await.unwrap().iter().map(|session| session.hash[0]).collect();
        assert_eq!(left, [2]);
        assert_eq!(store.accounts().list_sessions(eve, NOW).await.unwrap().len(), 1);
        assert_eq!(store.accounts().find_reset(&[7; 32], NOW).await.unwrap(), None);
        assert_eq!(store.accounts().find_login(&email("ada@example.com")).await.unwrap().unwrap().password_hash, "next");
    }

    async fn password_reset_is_used_once_before_expiry_and_ends_all_sessions(db) {
        let (ada, _) = owner(db, "ada@example.com").await;
        let (eve, _) = owner(db, "eve@example.com").await;
        let store = &db.store;
        let expires_at = NOW + Duration::from_secs(60);
        for (hash, user) in [(1, ada), (2, ada), (4, eve)] {
            store.accounts().open_session(NewSession { hash: [hash; 32], user, now: NOW, expires_at }).await.unwrap();
        }
        store.accounts().create_password_reset([7; 32], ada, expires_at).await.unwrap();
        store.accounts().create_password_reset([8; 32], ada, expires_at).await.unwrap();
        store.accounts().create_password_reset([9; 32], eve, expires_at).await.unwrap();
        assert_eq!(store.accounts().reset_password([7; 32], "next".into(), expires_at).await.unwrap(), None);
        assert_eq!(store.accounts().reset_password([6; 32], "next".into(), NOW).await.unwrap(), None);
        // Repeat, because not every round is a race.
        for round in 20..40 {
            store.accounts().create_password_reset([round; 32], ada, expires_at).await.unwrap();
            let attempts = (0..8).map(|_| {
                let store = store.clone();
                TaskTracker::new().spawn(async move { store.accounts().reset_password([round; 32], "next".into(), NOW).await })
            });
            let outcomes = join_all(attempts.collect::<Vec<_>>()).await;
            let used = outcomes.iter().filter(|outcome| outcome.as_ref().unwrap().as_ref().unwrap().is_some()).count();
            assert_eq!(used, 1);
        }
        assert_eq!(store.accounts().list_sessions(ada, NOW).await.unwrap(), []);
        assert_eq!(store.accounts().list_sessions(eve, NOW).await.unwrap().len(), 1);
        assert_eq!(store.accounts().find_reset(&[8; 32], NOW).await.unwrap(), None, "other reset tokens are deleted");
        assert_eq!(store.accounts().find_reset(&[9; 32], NOW).await.unwrap(), Some(eve));
        assert_eq!(store.accounts().find_login(&email("ada@example.com")).await.unwrap().unwrap().password_hash, "next");
    }

    async fn expired_invitations_and_resets_are_purged(db) {
        let (ada, team) = owner(db, "ada@example.com").await;
        let new = invitation(db, team, ada, "bob@example.com", Role::Member);
        db.store.accounts().invite(new).await.unwrap().unwrap();
        db.store.accounts().create_password_reset([7; 32], ada, NOW + INVITATION_LIFE).await.unwrap();
        assert_eq!(db.store.accounts().purge_email_tokens(NOW, 10).await.unwrap(), 0);
        assert_eq!(db.store.accounts().purge_email_tokens(NOW + INVITATION_LIFE, 10).await.unwrap(), 2);
    }
}
