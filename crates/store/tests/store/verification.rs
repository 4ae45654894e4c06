//! Verified e-mail addresses and remembered devices.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::{DEVICE_LIFE, DEVICES, Email, Role, VERIFICATION_LIFE, VERIFICATIONS};
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::ids::{InvitationId, KeyId, MonitorId, ProxyId, TeamId, UserId};
use grabd_domain::monitor::MonitorState;
use grabd_domain::teams::INVITATION_LIFE;
use grabd_store::Store;
use grabd_store::accounts::{
    Device, InitialTeam, InvitedSignUp, NewDevice, NewInvitation, NewKey, NewSession, NewUser, SignUpOutcome,
};
use grabd_store::monitors::{CreateMonitorOutcome, MonitorRef};

use crate::harness::{NOW, TestDb, on_both};
use crate::monitors::{new_monitor, spec};
use crate::proxies::new_proxy;

const LATER: Timestamp = Timestamp::from_ms(NOW.as_ms() + 1000);
const MOMENT: Duration = Duration::from_millis(1);

/// Creates a user with a new team, whose address is not verified.
async fn stranger(db: &TestDb, email: &str) -> (UserId, TeamId) {
    user(db, email, false).await
}

async fn user(db: &TestDb, email: &str, verified: bool) -> (UserId, TeamId) {
    let (id, team) = (UserId(db.id()), TeamId(db.id()));
    let (email, initial_team) = (Email::parse(email).unwrap(), InitialTeam::New(team, "A team".into()));
    let user = NewUser { id, email, password_hash: "former".into(), initial_team, verified, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    (id, team)
}

async fn verified_at(store: &Store, user: UserId) -> Option<Timestamp> {
    store.accounts().find_user_by_id(user).await.unwrap().unwrap().verified_at
}

async fn password(store: &Store, email: &str) -> String {
    store.accounts().find_login(&Email::parse(email).unwrap()).await.unwrap().unwrap().password_hash
}

/// Gives access to the account in the ways that are open to whoever created it. Returns the hash of a key.
async fn prepare_access(db: &TestDb, user: UserId, team: TeamId) -> [u8; 32] {
    let session = NewSession { hash: [1; 32], user, now: NOW, expires_at: NOW + VERIFICATION_LIFE };
    db.store.accounts().open_session(session).await.unwrap();
    db.store.accounts().create_password_reset([2; 32], user, NOW + VERIFICATION_LIFE).await.unwrap();
    db.store.accounts().remember_device(NewDevice { user, hash: [3; 32], network: [4; 32], now: NOW }).await.unwrap();
    let hash = [5; 32];
    let key = NewKey {
        id: KeyId(db.id()),
        team,
        environment: Environment::Test,
        name: "A key".into(),
        hash,
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: None,
        now: NOW,
    };
    db.store.accounts().create_team_key(key, user).await.unwrap().unwrap();
    assert!(db.store.accounts().authenticate(&hash).await.unwrap().is_some());
    hash
}

async fn assert_no_access(store: &Store, user: UserId, key: [u8; 32]) {
    assert!(store.accounts().find_session(&[1; 32], NOW).await.unwrap().is_none());
    assert!(store.accounts().find_reset(&[2; 32], NOW).await.unwrap().is_none());
    assert_eq!(store.accounts().list_devices(user, NOW - MOMENT).await.unwrap(), []);
    assert!(store.accounts().authenticate(&key).await.unwrap().is_none());
}

on_both! {
    async fn signed_in_user_verifies_once_and_keeps_their_access(db) {
        let (ada, team) = stranger(db, "ada@example.com").await;
        let key = prepare_access(db, ada, team).await;
        let (eve, _) = stranger(db, "eve@example.com").await;
        for hash in [[7; 32], [8; 32]] {
            db.store.accounts().create_verification(hash, ada, NOW + VERIFICATION_LIFE).await.unwrap();
        }
        assert_eq!(db.store.accounts().find_verification(&[7; 32], NOW).await.unwrap(), Some(ada));
        assert!(!db.store.accounts().verify_email([7; 32], eve, NOW).await.unwrap(), "the token is for somebody else");
        assert!(!db.store.accounts().verify_email([7; 32], ada, NOW + VERIFICATION_LIFE).await.unwrap(), "it has expired");
        assert_eq!(verified_at(&db.store, ada).await, None);
        assert!(db.store.accounts().verify_email([7; 32], ada, LATER).await.unwrap());
        assert_eq!(verified_at(&db.store, ada).await, Some(LATER));
        assert_eq!(password(&db.store, "ada@example.com").await, "former");
        assert!(db.store.accounts().find_session(&[1; 32], NOW).await.unwrap().is_some());
        assert!(db.store.accounts().authenticate(&key).await.unwrap().is_some());
        for hash in [[7; 32], [8; 32]] {
            assert!(!db.store.accounts().verify_email(hash, ada, LATER).await.unwrap(), "all tokens are used up");
            assert_eq!(db.store.accounts().take_over_account(hash, "new".into(), LATER).await.unwrap(), None);
        }
        assert_eq!(verified_at(&db.store, eve).await, None);
    }

    async fn reader_of_the_mail_takes_the_account_over_and_all_former_access_ends(db) {
        let (ada, team) = stranger(db, "ada@example.com").await;
        let key = prepare_access(db, ada, team).await;
        db.store.accounts().create_verification([7; 32], ada, NOW + VERIFICATION_LIFE).await.unwrap();
        db.store.proxies().create(new_proxy(ProxyId(db.id()), team)).await.unwrap();
        let expired = NOW + VERIFICATION_LIFE;
        assert_eq!(db.store.accounts().take_over_account([7; 32], "new".into(), expired).await.unwrap(), None);
        assert_eq!(db.store.accounts().take_over_account([7; 32], "new".into(), LATER).await.unwrap(), Some(ada));
        assert_eq!(verified_at(&db.store, ada).await, Some(LATER));
        assert_eq!(password(&db.store, "ada@example.com").await, "new");
        assert_no_access(&db.store, ada, key).await;
        // Somebody else would read what captures send.
        assert_eq!(db.store.proxies().list(team, Environment::Live, None).await.unwrap(), []);
        assert_eq!(db.store.accounts().take_over_account([7; 32], "again".into(), LATER).await.unwrap(), None);
        assert_eq!(password(&db.store, "ada@example.com").await, "new");
    }

    async fn password_reset_of_an_unverified_account_verifies_it_and_ends_all_former_access(db) {
        let (ada, team) = stranger(db, "ada@example.com").await;
        let key = prepare_access(db, ada, team).await;
        assert_eq!(db.store.accounts().reset_password([2; 32], "new".into(), LATER).await.unwrap(), Some(ada));
        assert_eq!(verified_at(&db.store, ada).await, Some(LATER));
        assert_eq!(password(&db.store, "ada@example.com").await, "new");
        assert_no_access(&db.store, ada, key).await;
    }

    async fn password_reset_of_a_verified_account_keeps_its_keys(db) {
        let (ada, team) = user(db, "ada@example.com", true).await;
        let key = prepare_access(db, ada, team).await;
        assert_eq!(db.store.accounts().reset_password([2; 32], "new".into(), LATER).await.unwrap(), Some(ada));
        assert_eq!(verified_at(&db.store, ada).await, Some(NOW));
        assert!(db.store.accounts().authenticate(&key).await.unwrap().is_some());
        assert_eq!(db.store.accounts().list_devices(ada, NOW - MOMENT).await.unwrap(), []);
    }

    async fn monitors_of_a_team_without_other_members_are_paused_by_a_take_over(db) {
        let (ada, team) = stranger(db, "ada@example.com").await;
        let (_, other) = stranger(db, "bob@example.com").await;
        let mut monitors = Vec::new();
        for team in [team, other] {
            let new = new_monitor(MonitorId(db.id()), team, spec(|_| ()));
            monitors.push(MonitorRef { team, environment: new.environment, grant: None, monitor: new.id });
            assert!(matches!(db.store.monitors().create(new).await.unwrap(), CreateMonitorOutcome::Created(_)));
        }
        for monitor in &monitors {
            assert!(db.store.monitors().set_feed(*monitor, Some([8; 32])).await.unwrap());
        }
        db.execute_raw("UPDATE monitors SET held_until = 1, held_change_id = id").await.unwrap();
        db.store.accounts().create_verification([7; 32], ada, NOW + VERIFICATION_LIFE).await.unwrap();
        assert_eq!(db.store.accounts().take_over_account([7; 32], "new".into(), LATER).await.unwrap(), Some(ada));
        assert_eq!(db.store.monitors().held_alerts(LATER, 9).await.unwrap(), [monitors[1].monitor]);
        let mut states = Vec::new();
        for monitor in monitors {
            let found = db.store.monitors().find(monitor).await.unwrap().unwrap();
            states.push((found.state, found.next_run_at, found.has_feed));
        }
        assert_eq!(states, [(MonitorState::Paused, None, false), (MonitorState::Active, Some(NOW), true)]);
    }

    async fn keys_of_a_shared_team_survive_a_take_over(db) {
        let (ada, team) = stranger(db, "ada@example.com").await;
        let key = prepare_access(db, ada, team).await;
        let (bob, _) = user(db, "bob@example.com", true).await;
        assert_eq!(db.store.accounts().add_member(team, bob, NOW).await.unwrap(), Some(Role::Member));
        db.store.accounts().create_verification([7; 32], ada, NOW + VERIFICATION_LIFE).await.unwrap();
        assert_eq!(db.store.accounts().take_over_account([7; 32], "new".into(), LATER).await.unwrap(), Some(ada));
        assert!(db.store.accounts().authenticate(&key).await.unwrap().is_some());
    }

    async fn mailed_invitation_verifies_the_address_and_others_do_not(db) {
        let (owner, team) = user(db, "ada@example.com", true).await;
        for (number, mailed) in [(1, true), (2, false)] {
            let email = Email::parse(&format!("new{number}@example.com")).unwrap();
            let known = format!("known{number}@example.com");
            let (stranger, own) = stranger(db, &known).await;
            let invitation = |email: &Email, hash| NewInvitation {
                id: InvitationId(db.id()),
                hash,
                team,
                email: email.clone(),
                role: Role::Member,
                by: owner,
                now: NOW,
                expires_at: NOW + INVITATION_LIFE,
                mailed,
            };
            db.store.accounts().invite(invitation(&email, [10 + number; 32])).await.unwrap().unwrap();
            let user = UserId(db.id());
            let sign_up =
                InvitedSignUp { hash: [10 + number; 32], user, password_hash: "x".into(), verified: false, now: LATER };
            let joined = db.store.accounts().sign_up_invited(sign_up.clone()).await.unwrap();
            assert_eq!(joined, SignUpOutcome::Joined { team, user });
            assert_eq!(verified_at(&db.store, user).await, mailed.then_some(LATER));

            // An unverified account is taken over only with a link that was mailed.
            let known = Email::parse(&known).unwrap();
            db.store.accounts().invite(invitation(&known, [20 + number; 32])).await.unwrap().unwrap();
            let sign_up = InvitedSignUp { hash: [20 + number; 32], ..sign_up };
            if mailed {
                let key = prepare_access(db, stranger, own).await;
                let joined = db.store.accounts().sign_up_invited(sign_up).await.unwrap();
                assert_eq!(joined, SignUpOutcome::Joined { team, user: stranger });
                assert_eq!(password(&db.store, known.as_str()).await, "x");
                assert_no_access(&db.store, stranger, key).await;
            } else {
                assert_eq!(db.store.accounts().sign_up_invited(sign_up).await.unwrap(), SignUpOutcome::EmailTaken);
                let accepted = db.store.accounts().accept_invitation([20 + number; 32], stranger, known, LATER).await.unwrap();
                assert_eq!((accepted, verified_at(&db.store, stranger).await), (Ok(team), None));
            }
        }
        let (bob, _) = stranger(db, "bob@example.com").await;
        let invitation = NewInvitation {
            id: InvitationId(db.id()),
            hash: [30; 32],
            team,
            email: Email::parse("bob@example.com").unwrap(),
            role: Role::Member,
            by: owner,
            now: NOW,
            expires_at: NOW + INVITATION_LIFE,
            mailed: true,
        };
        let email = invitation.email.clone();
        db.store.accounts().invite(invitation).await.unwrap().unwrap();
        assert_eq!(db.store.accounts().accept_invitation([30; 32], bob, email, LATER).await.unwrap(), Ok(team));
        assert_eq!(verified_at(&db.store, bob).await, Some(LATER));
    }

    async fn verification_tokens_are_limited_and_purged(db) {
        let (ada, _) = stranger(db, "ada@example.com").await;
        let count = u8::try_from(VERIFICATIONS).unwrap() + 2;
        for number in 0..count {
            let expires_at = NOW + VERIFICATION_LIFE + MOMENT * u32::from(number);
            db.store.accounts().create_verification([number; 32], ada, expires_at).await.unwrap();
        }
        for number in 0..count {
            let found = db.store.accounts().find_verification(&[number; 32], NOW).await.unwrap();
            assert_eq!(found.is_some(), number >= 2, "{number}");
        }
        assert_eq!(db.store.accounts().purge_email_tokens(NOW + VERIFICATION_LIFE + MOMENT, 99).await.unwrap(), 0);
        assert_eq!(db.store.accounts().purge_email_tokens(NOW + VERIFICATION_LIFE + MOMENT * 3, 99).await.unwrap(), 2);
        assert_eq!(db.store.accounts().purge_email_tokens(NOW + VERIFICATION_LIFE * 2, 2).await.unwrap(), 2, "limited");
    }

    async fn devices_are_limited_and_purged(db) {
        let (ada, _) = user(db, "ada@example.com", true).await;
        let (bob, _) = user(db, "bob@example.com", true).await;
        let device = |user, number: u8| NewDevice {
            user,
            hash: [number; 32],
            network: [number; 32],
            now: NOW + MOMENT * u32::from(number),
        };
        let count = u8::try_from(DEVICES).unwrap();
        for number in 1..=count {
            db.store.accounts().remember_device(device(ada, number)).await.unwrap();
        }
        // A later sign-in updates the device, so that the second one is now the oldest.
        let again = NewDevice { network: [99; 32], now: LATER, ..device(ada, 1) };
        db.store.accounts().remember_device(again).await.unwrap();
        db.store.accounts().remember_device(device(ada, count + 1)).await.unwrap();
        db.store.accounts().remember_device(device(bob, 1)).await.unwrap();
        let listed = db.store.accounts().list_devices(ada, NOW).await.unwrap();
        assert_eq!(listed.len(), usize::from(count));
        assert_eq!(listed[0], Device { hash: [1; 32], network: [99; 32] });
        assert!(!listed.iter().any(|device| device.hash == [2; 32]));
        assert_eq!(db.store.accounts().list_devices(bob, NOW).await.unwrap(), [Device { hash: [1; 32], network: [1; 32] }]);
        assert_eq!(db.store.accounts().list_devices(bob, NOW + MOMENT).await.unwrap(), []);
        assert!(db.store.accounts().is_known_device(&[1; 32], NOW).await.unwrap());
        assert!(!db.store.accounts().is_known_device(&[2; 32], NOW).await.unwrap());

        assert_eq!(db.store.accounts().purge_devices(NOW + DEVICE_LIFE, 99).await.unwrap(), 0);
        // Bob's, and Ada's third.
        assert_eq!(db.store.accounts().purge_devices(NOW + DEVICE_LIFE + MOMENT * 3, 1).await.unwrap(), 1, "limited");
        assert_eq!(db.store.accounts().purge_devices(NOW + DEVICE_LIFE + MOMENT * 3, 99).await.unwrap(), 1);
        assert_eq!(db.store.accounts().list_devices(bob, NOW - MOMENT).await.unwrap(), []);
    }
}
