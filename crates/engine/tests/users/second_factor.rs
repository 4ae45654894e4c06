//! Sign-in with a second factor, and changes of it.

use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use grabd_domain::accounts::{RECOVERY_CODES, SECOND_FACTOR_SETUP_LIFE, SIGN_IN_LIFE};
use grabd_domain::credentials::SessionToken;
use grabd_engine::accounts::{
    self, CodeError, CodeSignInError, PasswordConfirmationError, PendingSignIn, SecondFactorError, SignInOutcome,
    SignInSource, User, find_session, sign_in_with_code,
};
use grabd_engine::export;
use grabd_engine::operator::{Operator, OperatorAccess};
use grabd_store::retention::DeleteUserOutcome;
use sha2::{Digest, Sha256};

use crate::authenticator::{Authenticator, STEP};
use crate::test_core::{HOME, PASSWORD, TestCore, TestOptions, elsewhere, signed_in};

const ADA: &str = "ada@example.com";
const NEW: &str = "quite another password";
const MOMENT: Duration = Duration::from_millis(1);
const WRONG: CodeSignInError = CodeSignInError::Code(CodeError::Wrong);

/// The user of a test, with a second factor.
struct Ada {
    user: User,
    /// The session that turned it on.
    session: SessionToken,
    app: Authenticator,
    recovery_codes: Vec<String>,
}

impl Ada {
    /// Turns on the second factor with the current code.
    async fn of(test: &TestCore) -> Self {
        let core = &test.core;
        let session = signed_in(core, ADA, PASSWORD, &HOME).await;
        let user = find_session(core, &session).await.unwrap().unwrap().user;
        let setup = accounts::new_second_factor_setup(core, &user);
        let app = Authenticator::with(&setup.secret);
        let code = app.code(core.now());
        let turned_on = accounts::turn_on_second_factor(core, &user, &session, &setup.token, PASSWORD, &code).await;
        Self { user, session, app, recovery_codes: turned_on.unwrap() }
    }
}

/// A core, and its user with a second factor whose next code is unused.
async fn with_factor() -> (TestCore, Ada) {
    let test = TestCore::new().await;
    let ada = Ada::of(&test).await;
    test.advance(STEP);
    (test, ada)
}

fn pending(outcome: SignInOutcome) -> PendingSignIn {
    match outcome {
        SignInOutcome::CodeNeeded(pending) => pending,
        SignInOutcome::SignedIn(_) => panic!("no code was needed"),
    }
}

/// The first step of a sign-in.
async fn password(test: &TestCore, source: &SignInSource) -> PendingSignIn {
    pending(accounts::sign_in(&test.core, ADA, PASSWORD, source).await.unwrap())
}

/// Both steps.
async fn sign_in(test: &TestCore, code: &str, source: &SignInSource) -> Result<SessionToken, CodeSignInError> {
    sign_in_with_code(&test.core, &password(test, source).await, code, source).await
}

/// A code of digits that the app does not show around now.
fn wrong_code(test: &TestCore, ada: &Ada) -> String {
    let now = test.core.now();
    let shown = [now - STEP, now, now + STEP].map(|at| ada.app.code(at));
    (0..4).map(|number| format!("{number:06}")).find(|code| !shown.contains(code)).unwrap()
}

#[tokio::test]
async fn password_alone_opens_no_session_and_each_code_opens_one() {
    let (test, ada) = with_factor().await;
    let core = &test.core;
    let waiting = password(&test, &HOME).await;
    assert_eq!(accounts::find_pending_sign_in(core, &waiting).await.unwrap().unwrap().email.as_str(), ADA);
    // The token is not one of a session.
    assert_eq!(SessionToken::parse(waiting.expose()), None);
    let open = accounts::list_sessions(core, test.user, &ada.session).await.unwrap();
    assert_eq!(open.len(), 1, "{open:?}");

    let code = ada.app.code(core.now());
    let session = sign_in_with_code(core, &waiting, &code, &HOME).await.unwrap();
    assert_eq!(find_session(core, &session).await.unwrap().unwrap().user.id, test.user);
    // Neither the same code nor an earlier one is accepted again, also for another sign-in.
    let earlier = ada.app.code(core.now() - STEP);
    for used in [&code, &earlier] {
        let refused = sign_in(&test, used, &HOME).await;
        assert_eq!(refused, Err(CodeSignInError::Code(CodeError::AlreadyUsed)));
    }
    test.advance(STEP);
    assert!(sign_in(&test, &ada.app.code(core.now()), &HOME).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn code_that_turned_the_second_factor_on_does_not_sign_in() {
    let test = TestCore::new().await;
    let ada = Ada::of(&test).await;
    let refused = sign_in(&test, &ada.app.code(test.core.now()), &HOME).await;
    assert_eq!(refused, Err(CodeSignInError::Code(CodeError::AlreadyUsed)));
    test.end().await;
}

#[tokio::test]
async fn code_is_accepted_one_step_early_and_late() {
    let (test, ada) = with_factor().await;
    test.advance(STEP * 10);
    let now = test.core.now();
    for (code_of, expected) in [
        (now - STEP * 2, Err(WRONG)),
        (now + STEP * 2, Err(WRONG)),
        (now - STEP, Ok(())),
        (now, Ok(())),
        (now + STEP, Ok(())),
    ] {
        let result = sign_in(&test, &ada.app.code(code_of), &HOME).await;
        assert_eq!(result.map(drop), expected, "{code_of}");
    }
    test.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_sign_ins_with_one_code_one_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("grabd.sqlite").display());
    let test = TestCore::at(&url, TestOptions::default()).await;
    let ada = Ada::of(&test).await;
    test.advance(STEP);
    for (number, code) in [ada.app.code(test.core.now()), ada.recovery_codes[0].clone()].iter().enumerate() {
        let waiting = password(&test, &HOME).await;
        let results = join_all((0..4).map(|_| sign_in_with_code(&test.core, &waiting, code, &HOME))).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{code}: {results:?}");
        // The refused ones took three tries.
        test.advance(Duration::from_secs(1000) * u32::try_from(number + 1).unwrap());
    }
    test.end().await;
}

#[tokio::test]
async fn wrong_codes_are_limited_for_the_account_and_known_devices_have_their_own_tries() {
    let test = TestCore::new().await;
    let core = &test.core;
    let session = signed_in(core, ADA, PASSWORD, &HOME).await;
    let device = accounts::remember_device(core, &session, &HOME).await.unwrap();
    let device = SignInSource { device: Some(device), ..HOME };
    let ada = Ada::of(&test).await;
    test.advance(STEP * 10);
    let wrong = wrong_code(&test, &ada);
    // Somebody who has the password guesses from many networks, among them that of the owner.
    for number in 0..4 {
        assert_eq!(sign_in(&test, &wrong, &elsewhere(number)).await, Err(WRONG));
    }
    assert_eq!(sign_in(&test, "aaaa-aaaa-aaaa-aaaa", &HOME).await, Err(WRONG), "recovery codes share the limit");
    let refused = Err(CodeSignInError::Code(CodeError::TooMany { retry_after_s: 180 }));
    let right = ada.app.code(core.now());
    for source in [HOME, elsewhere(9)] {
        assert_eq!(sign_in(&test, &right, &source).await, refused, "a right code is refused as well");
        assert_eq!(sign_in(&test, &ada.recovery_codes[0], &source).await, refused);
    }
    // The owner, with the known device. A right code takes no try.
    for _ in 0..6 {
        assert!(sign_in(&test, &ada.app.code(core.now()), &device).await.is_ok());
        test.advance(STEP);
    }
    // The six steps took as long as one more try of the others.
    let wrong = wrong_code(&test, &ada);
    assert_eq!(sign_in(&test, &wrong, &elsewhere(9)).await, Err(WRONG));
    assert!(matches!(
        sign_in(&test, &wrong, &elsewhere(9)).await,
        Err(CodeSignInError::Code(CodeError::TooMany { .. }))
    ));
    // A stolen device token has a limit of its own.
    for _ in 0..5 {
        assert_eq!(sign_in(&test, &wrong, &device).await, Err(WRONG));
    }
    let refused = sign_in(&test, &wrong, &device).await;
    assert_eq!(refused, Err(CodeSignInError::Code(CodeError::TooMany { retry_after_s: 180 })));
    test.end().await;
}

#[tokio::test]
async fn malformed_codes_take_no_try() {
    let (test, ada) = with_factor().await;
    let waiting = password(&test, &HOME).await;
    for text in ["", "12345", "1234567", "abcd", "abcd-efgh-ijkl-mno1", &"1".repeat(10_000)] {
        let result = sign_in_with_code(&test.core, &waiting, text, &HOME).await;
        assert_eq!(result, Err(CodeSignInError::Code(CodeError::Malformed)), "{text:.20}");
    }
    let code = ada.app.code(test.core.now());
    let spaced = format!(" {} {}", &code[..3], &code[3..]);
    assert!(sign_in_with_code(&test.core, &waiting, &spaced, &HOME).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn recovery_codes_work_once_each() {
    let (test, ada) = with_factor().await;
    assert_eq!(ada.recovery_codes.len(), RECOVERY_CODES);
    let left = async || accounts::find_second_factor(&test.core, test.user).await.unwrap().unwrap().recovery_codes;
    for (number, code) in ada.recovery_codes.iter().enumerate() {
        let typed = if number % 2 == 0 { code.clone() } else { code.replace('-', " ").to_uppercase() };
        assert!(sign_in(&test, &typed, &HOME).await.is_ok(), "{typed}");
        assert_eq!(left().await, u64::try_from(RECOVERY_CODES - number - 1).unwrap());
        assert_eq!(sign_in(&test, code, &HOME).await, Err(WRONG));
        test.advance(Duration::from_secs(180));
    }
    assert!(sign_in(&test, &ada.app.code(test.core.now()), &HOME).await.is_ok(), "the app still works");
    test.end().await;
}

#[tokio::test]
async fn new_recovery_codes_void_the_former_ones() {
    let (test, ada) = with_factor().await;
    let core = &test.core;
    let replace = async |password: &str, code: &str| {
        let answer = accounts::FactorAnswer::Code(code);
        accounts::replace_recovery_codes(core, &ada.user, &ada.session, password, answer).await
    };
    let wrong_password = SecondFactorError::Password(PasswordConfirmationError::Wrong);
    let code = ada.app.code(core.now());
    assert_eq!(replace("wrong password", &code).await, Err(wrong_password));
    let wrong = wrong_code(&test, &ada);
    assert_eq!(replace(PASSWORD, &wrong).await, Err(SecondFactorError::Code(CodeError::Wrong)));
    let new = replace(PASSWORD, &code).await.unwrap();
    assert_eq!(replace(PASSWORD, &code).await, Err(SecondFactorError::Code(CodeError::AlreadyUsed)));
    assert_eq!(new.len(), RECOVERY_CODES);
    assert_eq!(sign_in(&test, &ada.recovery_codes[3], &HOME).await, Err(WRONG));
    assert!(sign_in(&test, &new[3], &HOME).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn pending_sign_in_ends_with_time_password_and_account() {
    let (test, ada) = with_factor().await;
    let core = &test.core;
    let expired = |result: Result<SessionToken, CodeSignInError>| result == Err(CodeSignInError::Expired);

    let waiting = password(&test, &HOME).await;
    test.advance(SIGN_IN_LIFE - MOMENT);
    assert!(accounts::find_pending_sign_in(core, &waiting).await.unwrap().is_some());
    test.advance(MOMENT);
    assert!(accounts::find_pending_sign_in(core, &waiting).await.unwrap().is_none());
    assert!(expired(sign_in_with_code(core, &waiting, &ada.app.code(core.now()), &HOME).await));

    let waiting = password(&test, &HOME).await;
    accounts::change_password(core, &ada.user, &ada.session, PASSWORD, NEW).await.unwrap();
    accounts::change_password(core, &ada.user, &ada.session, NEW, PASSWORD).await.unwrap();
    assert!(expired(sign_in_with_code(core, &waiting, &ada.app.code(core.now()), &HOME).await));

    let waiting = password(&test, &HOME).await;
    test.store.accounts().suspend_user(test.user, "spam", core.now()).await.unwrap();
    assert!(expired(sign_in_with_code(core, &waiting, &ada.app.code(core.now()), &HOME).await));
    test.store.accounts().restore_user(test.user, core.now()).await.unwrap();
    assert!(sign_in_with_code(core, &waiting, &ada.app.code(core.now()), &HOME).await.is_ok(), "no code was used up");

    let waiting = password(&test, &HOME).await;
    let deleted = test.store.retention().delete_user(test.user, core.now()).await.unwrap();
    assert!(matches!(deleted, DeleteUserOutcome::Deleted { .. }), "{deleted:?}");
    assert!(expired(sign_in_with_code(core, &waiting, &ada.recovery_codes[0], &HOME).await));
    for planted in ["x", &"A".repeat(130)] {
        let planted = PendingSignIn::parse(planted).unwrap();
        assert!(accounts::find_pending_sign_in(core, &planted).await.unwrap().is_none());
    }
    test.end().await;
}

#[tokio::test]
async fn password_reset_needs_the_code_as_well() {
    let (test, ada) = with_factor().await;
    let core = &test.core;
    let token = format!("gpr_{}", "r".repeat(43));
    let hash = Sha256::digest(token.as_bytes()).into();
    test.store.accounts().create_password_reset(hash, test.user, core.now() + SIGN_IN_LIFE).await.unwrap();
    let before = password(&test, &HOME).await;
    let waiting = pending(accounts::reset_password(core, &token, NEW).await.unwrap());
    assert!(find_session(core, &ada.session).await.unwrap().is_none());
    let code = ada.app.code(core.now());
    let former = sign_in_with_code(core, &before, &code, &HOME).await;
    assert_eq!(former, Err(CodeSignInError::Expired), "the former password opens nothing");
    assert_eq!(sign_in_with_code(core, &waiting, &wrong_code(&test, &ada), &HOME).await, Err(WRONG));
    assert!(sign_in_with_code(core, &waiting, &code, &HOME).await.is_ok());
    assert!(accounts::find_second_factor(core, test.user).await.unwrap().is_some());
    test.end().await;
}

#[tokio::test]
async fn turning_on_needs_the_password_and_the_code_of_the_shown_secret() {
    let test = TestCore::new().await;
    let core = &test.core;
    let session = signed_in(core, ADA, PASSWORD, &HOME).await;
    let other = signed_in(core, ADA, PASSWORD, &HOME).await;
    let user = find_session(core, &session).await.unwrap().unwrap().user;
    let turn_on = async |token: &str, password: &str, code: &str| {
        accounts::turn_on_second_factor(core, &user, &session, token, password, code).await.map(drop)
    };
    let setup = accounts::new_second_factor_setup(core, &user);
    assert_eq!(setup.secret.len(), 32);
    assert!(
        setup.uri.starts_with("otpauth://totp/grabd%20auth.grabd.example:ada%40example.com?secret="),
        "{}",
        setup.uri
    );
    assert!(setup.uri.contains(&setup.secret));
    let shown = accounts::find_second_factor_setup(core, &user, &setup.token).unwrap();
    assert_eq!(shown.secret, setup.secret);
    let app = Authenticator::with(&setup.secret);
    let foreign = Authenticator::with(&accounts::new_second_factor_setup(core, &user).secret);
    let code = app.code(core.now());
    for (token, password, code, error) in [
        ("x", PASSWORD, &*code, SecondFactorError::SetupExpired),
        (&*setup.token, "wrong", &*code, SecondFactorError::Password(PasswordConfirmationError::Wrong)),
        (&*setup.token, PASSWORD, &*foreign.code(core.now()), SecondFactorError::Code(CodeError::Wrong)),
        (&*setup.token, PASSWORD, "aaaa-aaaa-aaaa-aaaa", SecondFactorError::Code(CodeError::Malformed)),
    ] {
        assert_eq!(turn_on(token, password, code).await, Err(error));
    }
    let unverified = User { verified: false, ..user.clone() };
    let refused = accounts::turn_on_second_factor(core, &unverified, &session, &setup.token, PASSWORD, &code).await;
    assert_eq!(refused, Err(SecondFactorError::Unverified));
    assert!(find_session(core, &other).await.unwrap().is_some());

    assert_eq!(turn_on(&setup.token, PASSWORD, &code).await, Ok(()));
    assert!(find_session(core, &session).await.unwrap().is_some());
    assert!(find_session(core, &other).await.unwrap().is_none());
    test.advance(STEP);
    let again = turn_on(&setup.token, PASSWORD, &app.code(core.now())).await;
    assert_eq!(again, Err(SecondFactorError::AlreadyOn));
    test.advance(SECOND_FACTOR_SETUP_LIFE);
    assert!(accounts::find_second_factor_setup(core, &user, &setup.token).is_none());
    test.end().await;
}

#[tokio::test]
async fn turning_off_needs_the_password_and_a_code() {
    let (test, ada) = with_factor().await;
    let core = &test.core;
    let turn_off = async |password: &str, code: &str| {
        let answer = accounts::FactorAnswer::Code(code);
        accounts::turn_off_second_factor(core, &ada.user, &ada.session, password, answer).await
    };
    let code = ada.app.code(core.now());
    let wrong_password = SecondFactorError::Password(PasswordConfirmationError::Wrong);
    assert_eq!(turn_off("wrong", &code).await, Err(wrong_password));
    // Codes are limited for each session.
    let wrong = wrong_code(&test, &ada);
    for _ in 0..5 {
        assert_eq!(turn_off(PASSWORD, &wrong).await, Err(SecondFactorError::Code(CodeError::Wrong)));
    }
    let refused = turn_off(PASSWORD, &code).await;
    assert_eq!(refused, Err(SecondFactorError::Code(CodeError::TooMany { retry_after_s: 180 })));
    test.advance(Duration::from_secs(180));
    assert!(accounts::find_second_factor(core, test.user).await.unwrap().is_some());
    // A recovery code does as well, since the app may be lost.
    assert_eq!(turn_off(PASSWORD, &ada.recovery_codes[0]).await, Ok(()));
    assert_eq!(accounts::find_second_factor(core, test.user).await.unwrap(), None);
    assert!(find_session(core, &ada.session).await.unwrap().is_some());
    let refused = turn_off(PASSWORD, &ada.recovery_codes[1]).await;
    assert_eq!(refused, Err(SecondFactorError::Code(CodeError::NotOn)));
    signed_in(core, ADA, PASSWORD, &HOME).await;
    test.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_sign_in_without_a_code_does_not_survive_turning_on() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("grabd.sqlite").display());
    let test = TestCore::at(&url, TestOptions::default()).await;
    let core = &test.core;
    let session = signed_in(core, ADA, PASSWORD, &HOME).await;
    let user = find_session(core, &session).await.unwrap().unwrap().user;
    let setup = accounts::new_second_factor_setup(core, &user);
    let code = Authenticator::with(&setup.secret).code(core.now());
    let turn_on = accounts::turn_on_second_factor(core, &user, &session, &setup.token, PASSWORD, &code);
    let sign_ins = join_all((0..6).map(|_| accounts::sign_in(core, ADA, PASSWORD, &HOME)));
    let (turned_on, outcomes) = tokio::join!(turn_on, sign_ins);
    turned_on.unwrap();
    for opened in outcomes.into_iter().flatten().filter_map(SignInOutcome::into_session) {
        assert!(find_session(core, &opened).await.unwrap().is_none(), "a session without a code is still open");
    }
    test.end().await;
}

#[tokio::test]
async fn operators_need_a_second_factor_if_the_setting_says_so() {
    for required in [false, true] {
        let options = TestOptions { second_factor_for_operators: required, ..TestOptions::default() };
        let test = TestCore::with(options).await;
        let core = &test.core;
        let access = async |session: &SessionToken| {
            let session = find_session(core, session).await.unwrap().unwrap();
            Operator::from_session(core, &session).await.unwrap()
        };
        let before = signed_in(core, ADA, PASSWORD, &HOME).await;
        assert_eq!(access(&before).await, OperatorAccess::Denied);
        test.store.accounts().set_operator(test.user, true).await.unwrap();
        let is_granted = matches!(access(&before).await, OperatorAccess::Granted(_));
        assert_eq!(is_granted, !required);
        assert_eq!(access(&before).await == OperatorAccess::SecondFactorNeeded, required);
        let ada = Ada::of(&test).await;
        assert!(matches!(access(&ada.session).await, OperatorAccess::Granted(_)));
        test.end().await;
    }
}

/// The secrets are random, so a match means that one was stored or exported.
#[tokio::test]
async fn neither_database_nor_export_contains_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grabd.db");
    let test = TestCore::at(&format!("sqlite://{}", file.display()), TestOptions::default()).await;
    let export = async || {
        let chunks: Vec<_> = export::team_export(&test.core, test.team).await.unwrap().try_collect().await.unwrap();
        String::from_utf8(chunks.concat()).unwrap()
    };
    assert!(export().await.contains("\"second_factor\":false"));
    let ada = Ada::of(&test).await;
    let (user, secret, exported) = (test.user, ada.app.secret, export().await);
    let shown = data_encoding::BASE32_NOPAD.encode(&secret);
    assert!(exported.contains(&user.to_string()) && exported.contains("\"second_factor\":true"), "{exported}");
    test.end().await;
    let bytes = std::fs::read(&file).unwrap();
    let contains = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(contains(ADA.as_bytes()) && contains(user.0.as_bytes()), "the file does not have the data of this test");
    assert!(!contains(&secret) && !contains(shown.as_bytes()) && !exported.contains(&shown));
    for code in &ada.recovery_codes {
        let compact = code.replace('-', "");
        for form in [code.clone(), compact.clone(), compact.to_uppercase()] {
            assert!(!contains(form.as_bytes()) && !exported.contains(&form), "{form}");
        }
    }
}
