//! Second factors: codes that are used up once, sessions that need them, and their erasure.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::accounts::{
    FactorUse, InitialTeam, NewAuthenticatorApp, NewSecondFactor, NewSession, NewUser, SecondFactorSignIn,
    SecondFactorSignInOutcome,
};
use grabd_store::retention::DeleteUserOutcome;
use grabd_store::{Actor, Store};
use sea_orm::{ConnectionTrait, Statement};

use crate::harness::{NOW, TestDb, on_both};

/// The step of the code that confirmed the second factor.
const STEP: i64 = 1000;
const PASSWORD_HASH: &str = "former";

async fn user(db: &TestDb, email: &str) -> UserId {
    let id = UserId(db.id());
    let (email, initial_team) = (Email::parse(email).unwrap(), InitialTeam::New(TeamId(db.id()), "A team".into()));
    let password_hash = PASSWORD_HASH.to_owned();
    db.store
        .accounts()
        .create_user(NewUser { id, email, password_hash, initial_team, verified: true, now: NOW })
        .await
        .unwrap();
    id
}

fn session(user: UserId, hash: u8) -> NewSession {
    NewSession { hash: [hash; 32], user, now: NOW, expires_at: NOW + Duration::from_secs(60) }
}

fn factor(user: UserId) -> NewSecondFactor {
    let recovery_codes = vec![[11; 32], [12; 32], [13; 32]];
    NewSecondFactor { user, secret: vec![7; 61], step: STEP, recovery_codes, keep: [1; 32], now: NOW }
}

/// A user with a second factor and the session 1.
async fn user_with_factor(db: &TestDb, email: &str) -> UserId {
    let user = user(db, email).await;
    assert!(db.store.accounts().open_session(session(user, 1)).await.unwrap());
    assert!(db.store.accounts().turn_on_second_factor(factor(user)).await.unwrap());
    user
}

async fn sign_in(store: &Store, user: UserId, hash: u8, factor: FactorUse) -> SecondFactorSignInOutcome {
    let sign_in =
        SecondFactorSignIn { session: session(user, hash), password_hash: Some(PASSWORD_HASH.into()), factor };
    store.accounts().sign_in_with_second_factor(sign_in).await.unwrap()
}

async fn is_open(db: &TestDb, hash: u8) -> bool {
    db.store.accounts().find_session(&[hash; 32], NOW).await.unwrap().is_some()
}

async fn rows(db: &TestDb, table: &str) -> i64 {
    let raw = db.raw_connection().await;
    let statement = Statement::from_string(raw.get_database_backend(), format!("SELECT COUNT(*) AS n FROM {table}"));
    let row = raw.query_one_raw(statement).await.unwrap().unwrap();
    raw.close().await.unwrap();
    row.try_get("", "n").unwrap()
}

on_both! {
    async fn turning_on_ends_other_sessions_and_later_ones_need_a_code(db) {
        let (ada, eve) = (user(db, "ada@example.com").await, user(db, "eve@example.com").await);
        for (user, hash) in [(ada, 1), (ada, 2), (eve, 3)] {
            assert!(db.store.accounts().open_session(session(user, hash)).await.unwrap());
        }
        assert!(!db.store.accounts().has_second_factor(ada).await.unwrap());
        assert!(db.store.accounts().turn_on_second_factor(factor(ada)).await.unwrap());
        assert_eq!([is_open(db, 1).await, is_open(db, 2).await, is_open(db, 3).await], [true, false, true]);
        assert!(!db.store.accounts().open_session(session(ada, 4)).await.unwrap());
        assert!(!is_open(db, 4).await);
        assert!(db.store.accounts().open_session(session(eve, 5)).await.unwrap(), "others are not affected");
        let found = db.store.accounts().find_second_factor(ada).await.unwrap().unwrap();
        assert_eq!((found.secret, found.last_step, found.created_at, found.recovery_codes), (Some(vec![7; 61]), STEP, NOW, 3));
        // A second one does not replace it.
        let other = NewSecondFactor { secret: vec![8; 61], keep: [9; 32], ..factor(ada) };
        assert!(!db.store.accounts().turn_on_second_factor(other).await.unwrap());
        assert!(is_open(db, 1).await);
        assert_eq!(db.store.accounts().find_second_factor(ada).await.unwrap().unwrap().secret, Some(vec![7; 61]));
    }

    async fn code_is_accepted_once_and_only_after_the_last_one(db) {
        let ada = user_with_factor(db, "ada@example.com").await;
        for (step, expected) in [
            (STEP, SecondFactorSignInOutcome::CodeRefused),
            (STEP - 1, SecondFactorSignInOutcome::CodeRefused),
            (STEP + 2, SecondFactorSignInOutcome::SignedIn),
            (STEP + 2, SecondFactorSignInOutcome::CodeRefused),
            (STEP + 1, SecondFactorSignInOutcome::CodeRefused),
            (STEP + 3, SecondFactorSignInOutcome::SignedIn),
        ] {
            let hash = u8::try_from(step - STEP + 20).unwrap();
            let before = is_open(db, hash).await;
            assert_eq!(sign_in(&db.store, ada, hash, FactorUse::Step(step)).await, expected, "{step}");
            let is_new = expected == SecondFactorSignInOutcome::SignedIn;
            assert_eq!(is_open(db, hash).await, before || is_new, "{step}");
        }
    }

    async fn new_app_replaces_the_former_one_and_needs_an_unused_code(db) {
        let ada = user_with_factor(db, "ada@example.com").await;
        let eve = user(db, "eve@example.com").await;
        let app = |user, factor| NewAuthenticatorApp { user, secret: vec![9; 61], step: STEP + 5, factor };
        for (user, used) in [
            (ada, FactorUse::Step(STEP)),
            (ada, FactorUse::RecoveryCode([9; 32])),
            (eve, FactorUse::RecoveryCode([11; 32])),
            (eve, FactorUse::Step(STEP + 1)),
        ] {
            assert!(!db.store.accounts().set_authenticator_app(app(user, used)).await.unwrap(), "{used:?}");
        }
        let found = db.store.accounts().find_second_factor(ada).await.unwrap().unwrap();
        assert_eq!((found.secret, found.last_step, found.recovery_codes), (Some(vec![7; 61]), STEP, 3));
        let both = [11, 11].map(|code| db.store.accounts().set_authenticator_app(app(ada, FactorUse::RecoveryCode([code; 32]))));
        let accepted = join_all(both).await.into_iter().filter(|set| *set.as_ref().unwrap()).count();
        assert_eq!(accepted, 1, "of two uses of a code, one is refused");
        let found = db.store.accounts().find_second_factor(ada).await.unwrap().unwrap();
        assert_eq!((found.secret, found.last_step, found.recovery_codes), (Some(vec![9; 61]), STEP + 5, 2));
        assert!(is_open(db, 1).await, "sessions stay");
        // The code that confirmed the app is used up.
        let refused = sign_in(&db.store, ada, 20, FactorUse::Step(STEP + 5)).await;
        assert_eq!(refused, SecondFactorSignInOutcome::CodeRefused);
        assert_eq!(db.store.accounts().find_second_factor(eve).await.unwrap().map(|found| found.last_step), None);
    }

    async fn of_concurrent_uses_of_a_code_one_is_accepted(db) {
        let ada = user_with_factor(db, "ada@example.com").await;
        for factor in [FactorUse::Step(STEP + 1), FactorUse::RecoveryCode([11; 32])] {
            let first = if matches!(factor, FactorUse::Step(_)) { 30 } else { 50 };
            let outcomes = join_all((first..first + 8).map(|hash| sign_in(&db.store, ada, hash, factor))).await;
            let accepted = outcomes.iter().filter(|outcome| **outcome == SecondFactorSignInOutcome::SignedIn).count();
            assert_eq!(accepted, 1, "{factor:?}: {outcomes:?}");
        }
        assert_eq!(rows(db, "session").await, 3);
    }

    async fn recovery_code_works_once_for_its_user(db) {
        let ada = user_with_factor(db, "ada@example.com").await;
        let eve = user(db, "eve@example.com").await;
        let code = FactorUse::RecoveryCode([11; 32]);
        assert_eq!(sign_in(&db.store, eve, 2, code).await, SecondFactorSignInOutcome::CodeRefused);
        assert_eq!(sign_in(&db.store, ada, 3, code).await, SecondFactorSignInOutcome::SignedIn);
        assert_eq!(sign_in(&db.store, ada, 4, code).await, SecondFactorSignInOutcome::CodeRefused);
        assert_eq!(db.store.accounts().find_second_factor(ada).await.unwrap().unwrap().recovery_codes, 2);
        // New ones replace the rest.
        let spare = FactorUse::RecoveryCode([12; 32]);
        assert!(!db.store.accounts().replace_recovery_codes(ada, code, vec![[21; 32]]).await.unwrap());
        assert!(db.store.accounts().replace_recovery_codes(ada, spare, vec![[21; 32], [22; 32], [23; 32]]).await.unwrap());
        assert_eq!(db.store.accounts().find_second_factor(ada).await.unwrap().unwrap().recovery_codes, 3);
        let former = FactorUse::RecoveryCode([13; 32]);
        assert_eq!(sign_in(&db.store, ada, 5, former).await, SecondFactorSignInOutcome::CodeRefused);
        let new = FactorUse::RecoveryCode([22; 32]);
        assert_eq!(sign_in(&db.store, ada, 5, new).await, SecondFactorSignInOutcome::SignedIn);
    }

    async fn obsolete_password_opens_no_session_and_uses_up_no_code(db) {
        let ada = user_with_factor(db, "ada@example.com").await;
        let obsolete = SecondFactorSignIn {
            session: session(ada, 2),
            password_hash: Some("another".into()),
            factor: FactorUse::RecoveryCode([11; 32]),
        };
        let outcome = db.store.accounts().sign_in_with_second_factor(obsolete).await.unwrap();
        assert_eq!(outcome, SecondFactorSignInOutcome::PasswordObsolete);
        db.store.accounts().suspend_user(ada, "spam", NOW).await.unwrap();
        let code = FactorUse::RecoveryCode([11; 32]);
        assert_eq!(sign_in(&db.store, ada, 2, code).await, SecondFactorSignInOutcome::PasswordObsolete);
        db.store.accounts().restore_user(ada, NOW).await.unwrap();
        assert_eq!(sign_in(&db.store, ada, 2, code).await, SecondFactorSignInOutcome::SignedIn);
    }

    async fn turning_off_needs_a_code_and_an_operator_does_not(db) {
        let (ada, eve) = (user_with_factor(db, "ada@example.com").await, user(db, "eve@example.com").await);
        assert!(!db.store.accounts().turn_off_second_factor(ada, FactorUse::Step(STEP)).await.unwrap());
        assert!(!db.store.accounts().turn_off_second_factor(ada, FactorUse::RecoveryCode([9; 32])).await.unwrap());
        assert!(db.store.accounts().has_second_factor(ada).await.unwrap());
        assert!(db.store.accounts().turn_off_second_factor(ada, FactorUse::Step(STEP + 1)).await.unwrap());
        assert_eq!((rows(db, "second_factor").await, rows(db, "recovery_code").await), (0, 0));
        assert!(db.store.accounts().open_session(session(ada, 6)).await.unwrap());
        assert!(!db.store.accounts().turn_off_second_factor(ada, FactorUse::Step(STEP + 2)).await.unwrap());

        assert!(!db.store.accounts().remove_second_factor(eve).await.unwrap());
        assert!(db.store.accounts().turn_on_second_factor(factor(eve)).await.unwrap());
        assert!(db.store.accounts().remove_second_factor(eve).await.unwrap());
        assert_eq!((rows(db, "second_factor").await, rows(db, "recovery_code").await), (0, 0));
    }

    async fn changes_and_used_recovery_codes_are_in_the_audit_trail(db) {
        let ada = user(db, "ada@example.com").await;
        let store = db.store.acting_as(Actor { name: format!("user:{ada}"), address: None, now: NOW });
        assert!(store.accounts().turn_on_second_factor(factor(ada)).await.unwrap());
        assert!(!store.accounts().turn_on_second_factor(factor(ada)).await.unwrap());
        sign_in(&store, ada, 2, FactorUse::Step(STEP + 1)).await;
        sign_in(&store, ada, 3, FactorUse::RecoveryCode([11; 32])).await;
        sign_in(&store, ada, 4, FactorUse::RecoveryCode([11; 32])).await;
        assert!(store.accounts().replace_recovery_codes(ada, FactorUse::Step(STEP + 2), vec![[21; 32]]).await.unwrap());
        assert!(store.accounts().turn_off_second_factor(ada, FactorUse::RecoveryCode([21; 32])).await.unwrap());
        assert!(store.accounts().turn_on_second_factor(factor(ada)).await.unwrap());
        assert!(store.accounts().remove_second_factor(ada).await.unwrap());
        assert!(!store.accounts().remove_second_factor(ada).await.unwrap());
        let trail = store.audit().list_audit(Timestamp::from_ms(0), None, 99).await.unwrap();
        let mut actions: Vec<_> = trail.iter().map(|entry| (entry.action.as_str(), entry.target.clone())).collect();
        actions.reverse();
        let expected = [
            "second_factor.on",
            "second_factor.recovery_code_use",
            "second_factor.recovery_codes",
            "second_factor.off",
            "second_factor.on",
            "second_factor.remove",
        ];
        assert_eq!(actions, expected.map(|action| (action, ada.to_string())));
    }

    async fn deletion_of_the_account_erases_secret_and_codes(db) {
        let (ada, eve) = (user_with_factor(db, "ada@example.com").await, user(db, "eve@example.com").await);
        assert!(db.store.accounts().turn_on_second_factor(factor(eve)).await.unwrap());
        let deleted = db.store.retention().delete_user(ada, NOW).await.unwrap();
        assert!(matches!(deleted, DeleteUserOutcome::Deleted { .. }), "{deleted:?}");
        assert_eq!((rows(db, "second_factor").await, rows(db, "recovery_code").await), (1, 3));
        assert!(db.store.accounts().remove_user(eve).await.unwrap());
        assert_eq!((rows(db, "second_factor").await, rows(db, "recovery_code").await), (0, 0));
    }

    async fn reseal_replaces_only_the_secret_that_was_read(db) {
        let (ada, eve) = (user_with_factor(db, "ada@example.com").await, user(db, "eve@example.com").await);
        assert!(db.store.accounts().turn_on_second_factor(factor(eve)).await.unwrap());
        let first = db.store.vault().list_sealed_second_factors(None, 1).await.unwrap();
        assert_eq!(first, [(ada, vec![7; 61])]);
        assert_eq!(db.store.vault().list_sealed_second_factors(Some(ada), 9).await.unwrap(), [(eve, vec![7; 61])]);
        assert!(!db.store.vault().reseal_second_factor(ada, vec![6; 61], vec![8; 61]).await.unwrap());
        assert!(db.store.vault().reseal_second_factor(ada, vec![7; 61], vec![8; 61]).await.unwrap());
        let found = db.store.accounts().find_second_factor(ada).await.unwrap().unwrap();
        assert_eq!((found.secret, found.last_step), (Some(vec![8; 61]), STEP));
        assert_eq!(db.store.accounts().find_second_factor(eve).await.unwrap().unwrap().secret, Some(vec![7; 61]));
    }
}

/// A sign-in with the password alone and turning on the second factor cannot both have the last word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_without_a_code_survives_turning_on_on_postgres() {
    let db = TestDb::postgres().await;
    for round in 0..20 {
        let ada = user(&db, &format!("ada{round}@example.com")).await;
        let (opened, turned_on) = tokio::join!(
            db.store.accounts().open_session(session(ada, 100 + round)),
            db.store.accounts().turn_on_second_factor(factor(ada))
        );
        assert!(turned_on.unwrap());
        opened.unwrap();
        assert!(!is_open(&db, 100 + round).await, "round {round}");
    }
    db.finish().await;
}
