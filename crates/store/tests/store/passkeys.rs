//! Passkeys: they turn the second factor on and off, answer each challenge once, and are erased with their user.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::accounts::{Email, PASSKEYS};
use grabd_domain::ids::{PasskeyId, TeamId, UserId};
use grabd_store::accounts::{
    AddPasskeyOutcome, Challenge, FactorUse, InitialTeam, NewPasskey, NewSecondFactor, NewSession, NewUser, PasskeyUse,
    RemovePasskeyOutcome, SecondFactorSignIn, SecondFactorSignInOutcome,
};
use grabd_store::retention::DeleteUserOutcome;

use crate::harness::{NOW, TestDb, on_both};

async fn user(db: &TestDb, email: &str) -> UserId {
    let id = UserId(db.id());
    let (email, initial_team) = (Email::parse(email).unwrap(), InitialTeam::New(TeamId(db.id()), "A team".into()));
    let user = NewUser { id, email, password_hash: "former".into(), initial_team, verified: true, now: NOW };
    db.store.accounts().create_user(user).await.unwrap();
    id
}

fn challenge(number: u8) -> Challenge {
    Challenge { hash: [number; 32], expires_at: NOW + Duration::from_secs(300) }
}

/// A passkey with this number, which turns the second factor on.
fn first(db: &TestDb, user: UserId, number: u8) -> NewPasskey {
    NewPasskey {
        id: PasskeyId(db.id()),
        user,
        name: "Phone".into(),
        credential_id: vec![number; 16],
        credential: "{}".into(),
        counter: 0,
        challenge: challenge(number),
        recovery_codes: Some(vec![[number; 32]]),
        keep: [1; 32],
        now: NOW,
    }
}

/// A passkey of a user whose second factor is on.
fn another(db: &TestDb, user: UserId, number: u8) -> NewPasskey {
    NewPasskey { recovery_codes: None, ..first(db, user, number) }
}

async fn add(db: &TestDb, new: &NewPasskey) -> AddPasskeyOutcome {
    db.store.accounts().add_passkey(new.clone()).await.unwrap()
}

fn session(user: UserId, hash: u8) -> NewSession {
    NewSession { hash: [hash; 32], user, now: NOW, expires_at: NOW + Duration::from_secs(60) }
}

fn used(id: PasskeyId, number: u8, counter: u32) -> FactorUse {
    FactorUse::Passkey(PasskeyUse { id, challenge: challenge(number), counter, now: NOW })
}

async fn sign_in(db: &TestDb, user: UserId, hash: u8, factor: FactorUse) -> SecondFactorSignInOutcome {
    let sign_in = SecondFactorSignIn { session: session(user, hash), password_hash: None, factor };
    db.store.accounts().sign_in_with_second_factor(sign_in).await.unwrap()
}

async fn is_open(db: &TestDb, hash: u8) -> bool {
    db.store.accounts().find_session(&[hash; 32], NOW).await.unwrap().is_some()
}

on_both! {
    async fn first_passkey_turns_the_second_factor_on_and_the_last_one_off(db) {
        let ada = user(db, "ada@example.com").await;
        for hash in [1, 2] {
            assert!(db.store.accounts().open_session(session(ada, hash)).await.unwrap());
        }
        let (one, two) = (first(db, ada, 1), another(db, ada, 2));
        // Confirmed while the second factor was on, which it is not.
        assert_eq!(add(db, &two).await, AddPasskeyOutcome::Obsolete);
        assert_eq!(add(db, &one).await, AddPasskeyOutcome::Added);
        assert_eq!([is_open(db, 1).await, is_open(db, 2).await], [true, false]);
        assert!(!db.store.accounts().open_session(session(ada, 3)).await.unwrap(), "the password alone opens no session");
        let factor = db.store.accounts().find_second_factor(ada).await.unwrap().unwrap();
        assert_eq!((factor.secret, factor.recovery_codes), (None, 1));
        assert_eq!(db.store.vault().list_sealed_second_factors(None, 9).await.unwrap(), [], "there is no secret to replace");
        // Confirmed while it was off.
        assert_eq!(add(db, &first(db, ada, 3)).await, AddPasskeyOutcome::Obsolete);
        assert_eq!(add(db, &two).await, AddPasskeyOutcome::Added);
        assert!(is_open(db, 1).await);
        let remove = async |id, factor| db.store.accounts().remove_passkey(ada, id, factor).await.unwrap();
        assert_eq!(remove(PasskeyId(db.id()), used(two.id, 9, 1)).await, RemovePasskeyOutcome::Unknown);
        assert_eq!(remove(one.id, used(two.id, 9, 1)).await, RemovePasskeyOutcome::Removed { turned_off: false });
        assert_eq!(remove(two.id, used(two.id, 9, 2)).await, RemovePasskeyOutcome::CodeRefused);
        let code = FactorUse::RecoveryCode([1; 32]);
        assert_eq!(remove(two.id, code).await, RemovePasskeyOutcome::Removed { turned_off: true });
        assert!(!db.store.accounts().has_second_factor(ada).await.unwrap());
        assert!(db.store.accounts().open_session(session(ada, 4)).await.unwrap());
    }

    async fn second_factor_with_an_app_stays_on_without_passkeys(db) {
        let ada = user(db, "ada@example.com").await;
        let (secret, recovery_codes) = (vec![7; 61], vec![[5; 32]]);
        let app = NewSecondFactor { user: ada, secret, step: 1, recovery_codes, keep: [1; 32], now: NOW };
        assert!(db.store.accounts().turn_on_second_factor(app).await.unwrap());
        let passkey = another(db, ada, 1);
        assert_eq!(add(db, &passkey).await, AddPasskeyOutcome::Added);
        let removed = db.store.accounts().remove_passkey(ada, passkey.id, FactorUse::Step(2)).await.unwrap();
        assert_eq!(removed, RemovePasskeyOutcome::Removed { turned_off: false });
        assert!(db.store.accounts().has_second_factor(ada).await.unwrap());
        // On behalf of an operator, passkeys are removed with the second factor.
        assert_eq!(add(db, &another(db, ada, 2)).await, AddPasskeyOutcome::Added);
        assert!(db.store.accounts().remove_second_factor(ada).await.unwrap());
        assert_eq!(db.store.accounts().list_passkeys(ada).await.unwrap(), []);
    }

    async fn passkeys_are_unique_and_limited(db) {
        let (ada, eve) = (user(db, "ada@example.com").await, user(db, "eve@example.com").await);
        assert_eq!(add(db, &first(db, ada, 1)).await, AddPasskeyOutcome::Added);
        let same = NewPasskey { challenge: challenge(100), ..another(db, ada, 1) };
        assert_eq!(add(db, &same).await, AddPasskeyOutcome::AlreadyAdded);
        let same = NewPasskey { challenge: challenge(101), ..first(db, eve, 1) };
        assert_eq!(add(db, &same).await, AddPasskeyOutcome::AlreadyAdded);
        assert!(!db.store.accounts().has_second_factor(eve).await.unwrap());
        let same_challenge = NewPasskey { challenge: challenge(1), ..another(db, ada, 2) };
        assert_eq!(add(db, &same_challenge).await, AddPasskeyOutcome::Obsolete);
        for number in 2..=u8::try_from(PASSKEYS).unwrap() {
            assert_eq!(add(db, &another(db, ada, number)).await, AddPasskeyOutcome::Added, "{number}");
        }
        assert_eq!(add(db, &another(db, ada, 50)).await, AddPasskeyOutcome::TooMany);
        assert_eq!(add(db, &first(db, eve, 51)).await, AddPasskeyOutcome::Added, "others are not affected");
    }

    async fn challenge_is_answered_once_and_the_counter_grows(db) {
        let (ada, eve) = (user(db, "ada@example.com").await, user(db, "eve@example.com").await);
        let (hers, foreign) = (first(db, ada, 1), first(db, eve, 2));
        for passkey in [&hers, &foreign] {
            assert_eq!(add(db, passkey).await, AddPasskeyOutcome::Added);
        }
        for (hash, user, factor, is_accepted) in [
            (20, ada, used(hers.id, 20, 0), true),
            (21, ada, used(hers.id, 20, 0), false),
            (22, ada, used(hers.id, 22, 7), true),
            (23, ada, used(hers.id, 23, 7), false),
            (24, ada, used(hers.id, 24, 6), false),
            (25, ada, used(hers.id, 25, 0), false),
            (26, ada, used(foreign.id, 26, 8), false),
            // What was refused has used up nothing.
            (27, ada, used(hers.id, 25, 8), true),
            (28, eve, used(foreign.id, 26, 8), true),
            (29, eve, used(foreign.id, 22, 9), false),
        ] {
            let outcome = sign_in(db, user, hash, factor).await;
            let expected =
                if is_accepted { SecondFactorSignInOutcome::SignedIn } else { SecondFactorSignInOutcome::CodeRefused };
            assert_eq!((outcome, is_open(db, hash).await), (expected, is_accepted), "{hash}");
        }
        let found = db.store.accounts().find_passkey(&[1; 16]).await.unwrap().unwrap();
        assert_eq!((found.user, found.counter, found.last_used_at), (ada, 8, Some(NOW)));
        assert_eq!(db.store.accounts().find_passkey(&[9; 16]).await.unwrap(), None);
        db.store.accounts().suspend_user(eve, "abuse", NOW).await.unwrap();
        let refused = sign_in(db, eve, 40, used(foreign.id, 40, 20)).await;
        assert_eq!((refused, is_open(db, 40).await), (SecondFactorSignInOutcome::PasswordObsolete, false));
    }

    async fn of_concurrent_answers_to_a_challenge_one_is_accepted(db) {
        let ada = user(db, "ada@example.com").await;
        let passkey = first(db, ada, 1);
        assert_eq!(add(db, &passkey).await, AddPasskeyOutcome::Added);
        let outcomes = join_all((30..38).map(|hash| sign_in(db, ada, hash, used(passkey.id, 30, 0)))).await;
        let accepted = outcomes.iter().filter(|outcome| **outcome == SecondFactorSignInOutcome::SignedIn).count();
        assert_eq!(accepted, 1, "{outcomes:?}");
    }

    async fn passkey_is_renamed_only_by_its_user(db) {
        let (ada, eve) = (user(db, "ada@example.com").await, user(db, "eve@example.com").await);
        let passkey = first(db, ada, 1);
        assert_eq!(add(db, &passkey).await, AddPasskeyOutcome::Added);
        assert!(!db.store.accounts().rename_passkey(eve, passkey.id, "Hers".into()).await.unwrap());
        assert!(db.store.accounts().rename_passkey(ada, passkey.id, "Blue key".into()).await.unwrap());
        assert_eq!(db.store.accounts().list_passkeys(ada).await.unwrap()[0].name, "Blue key");
    }

    async fn passkeys_are_erased_with_their_user_and_challenges_when_they_expire(db) {
        let (ada, eve) = (user(db, "ada@example.com").await, user(db, "eve@example.com").await);
        for (user, number) in [(ada, 1), (eve, 2)] {
            assert_eq!(add(db, &first(db, user, number)).await, AddPasskeyOutcome::Added);
        }
        let deleted = db.store.retention().delete_user(ada, NOW).await.unwrap();
        assert!(matches!(deleted, DeleteUserOutcome::Deleted { .. }), "{deleted:?}");
        assert!(db.store.accounts().remove_user(eve).await.unwrap());
        for number in [1, 2] {
            assert_eq!(db.store.accounts().find_passkey(&[number; 16]).await.unwrap(), None);
        }
        let expiry = challenge(1).expires_at;
        assert_eq!(db.store.accounts().purge_challenges(expiry - Duration::from_millis(1), 9).await.unwrap(), 0);
        assert_eq!(db.store.accounts().purge_challenges(expiry, 1).await.unwrap(), 1);
        assert_eq!(db.store.accounts().purge_challenges(expiry, 9).await.unwrap(), 1);
    }
}
