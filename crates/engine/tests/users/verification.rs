//! Verified e-mail addresses: what needs one, and who gets the account.

use grabd_domain::accounts::{Email, Role, VERIFICATION_LIFE};
use grabd_domain::credentials::{Environment, VerificationToken};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::team_limits::{LimitChange, LimitError};
use grabd_engine::accounts::{
    self, InviteError, InviteOutcome, KeyLimits, SignUpError, SignedUp, TeamError, User, VerificationError,
    VerificationRequest, find_session, sign_in,
};
use grabd_engine::oauth::{self, AuthorizationError};
use grabd_engine::operator::{self, ChangeLimitsOutcome, Operator, OperatorAccess};
use sha2::{Digest, Sha256};

use crate::test_core::{HOME, PASSWORD, TestCore, TestOptions, request};

const EVE: &str = "eve@example.com";
const NEW: &str = "quite another password";

/// A core with open sign-up and a mail server.
async fn mailing() -> TestCore {
    TestCore::with(TestOptions { sign_up: true, mail: true, ..TestOptions::default() }).await
}

/// Signs up. Returns the user and their team.
async fn sign_up(test: &TestCore, email: &str) -> (User, TeamId) {
    let token = match accounts::sign_up(&test.core, email, PASSWORD, HOME.address).await {
        Ok(SignedUp::SignedIn(token)) => token,
        other => panic!("{email}: {:?}", other.err()),
    };
    let user = find_session(&test.core, &token).await.unwrap().unwrap().user;
    let team = accounts::list_teams(&test.core, user.id).await.unwrap()[0].team;
    (user, team)
}

/// The token of a new link for this user. That of the mail is only there.
async fn link(test: &TestCore, user: UserId, secret: char) -> String {
    let token = VerificationToken::new(&secret.to_string().repeat(43)).unwrap().expose().to_owned();
    let hash = Sha256::digest(token.as_bytes()).into();
    test.store.accounts().create_verification(hash, user, test.core.now() + VERIFICATION_LIFE).await.unwrap();
    token
}

#[tokio::test]
async fn unverified_user_can_look_around_and_not_create_teams_live_keys_or_invitations() {
    let test = mailing().await;
    let core = &test.core;
    let (eve, team) = sign_up(&test, EVE).await;
    assert!(!eve.verified && !accounts::is_verified(core, eve.id).await.unwrap());
    let live =
        async || accounts::create_key(core, eve.id, team, Environment::Live, "A key", KeyLimits::default()).await;
    let invite = async || accounts::invite(core, &eve, team, "bob@example.com", Role::Member).await;
    let found = async || accounts::create_own_team(core, eve.id, "Another").await;
    let checked = oauth::check_request(core, &request(&test.app().await)).await.unwrap();
    let allow = async |environment| oauth::allow(core, eve.id, checked.clone(), team, environment).await;
    assert_eq!(live().await, Err(TeamError::Unverified));
    assert_eq!(invite().await, Err(InviteError::Team(TeamError::Unverified)));
    assert_eq!(found().await, Err(TeamError::Unverified));
    assert!(matches!(allow(Environment::Live).await, Err(AuthorizationError::Page(text)) if text.contains("verified")));
    assert!(accounts::create_key(core, eve.id, team, Environment::Test, "A key", KeyLimits::default()).await.is_ok());
    assert!(allow(Environment::Test).await.is_ok());

    let token = link(&test, eve.id, 'v').await;
    accounts::verify_email(core, eve.id, &token).await.unwrap();
    assert!(accounts::is_verified(core, eve.id).await.unwrap());
    assert!(live().await.is_ok() && found().await.is_ok() && allow(Environment::Live).await.is_ok());
    assert_eq!(invite().await, Ok(InviteOutcome::Mailed));
    assert_eq!(accounts::request_verification(core, eve.id).await, Ok(VerificationRequest::NotNeeded));
    test.end().await;
}

#[tokio::test]
async fn team_has_its_own_limit_of_invitations_per_day() {
    let test = mailing().await;
    let core = &test.core;
    test.store.accounts().set_operator(test.user, true).await.unwrap();
    let token = sign_in(core, "ada@example.com", PASSWORD, &HOME).await.unwrap().into_session().unwrap();
    let session = find_session(core, &token).await.unwrap().unwrap();
    let OperatorAccess::Granted(operator) = Operator::from_session(core, &session).await.unwrap() else {
        panic!("she is an operator");
    };
    let change = async |change: Result<LimitChange, LimitError>| {
        let outcome = operator::change_limits(core, &operator, test.team, vec![change.unwrap()]).await.unwrap();
        assert_eq!(outcome, ChangeLimitsOutcome::Changed);
    };
    let invite = async |email: &str| accounts::invite(core, &session.user, test.team, email, Role::Member).await;
    change(LimitChange::parse("invitations_per_day=1")).await;
    assert_eq!(invite("a@example.com").await, Ok(InviteOutcome::Mailed));
    assert_eq!(invite("b@example.com").await, Err(InviteError::TooMany));
    change(LimitChange::parse("invitations_per_day=2")).await;
    assert_eq!(invite("b@example.com").await, Ok(InviteOutcome::Mailed));
    assert_eq!(invite("c@example.com").await, Ok(InviteOutcome::Mailed));
    assert_eq!(invite("d@example.com").await, Err(InviteError::TooMany));
    change(LimitChange::reset("invitations_per_day")).await;
    assert_eq!(invite("d@example.com").await, Ok(InviteOutcome::Mailed));
    test.end().await;
}

#[tokio::test]
async fn accounts_count_as_verified_without_a_mail_server() {
    let test = TestCore::with(TestOptions { sign_up: true, ..TestOptions::default() }).await;
    let (eve, team) = sign_up(&test, EVE).await;
    assert!(
        eve.verified && test.store.accounts().find_user_by_id(eve.id).await.unwrap().unwrap().verified_at.is_some()
    );
    assert!(
        accounts::create_key(&test.core, eve.id, team, Environment::Live, "A key", KeyLimits::default()).await.is_ok()
    );
    assert_eq!(accounts::request_verification(&test.core, eve.id).await, Ok(VerificationRequest::NotNeeded));
    let again = accounts::sign_up(&test.core, EVE, PASSWORD, HOME.address).await;
    assert_eq!(again, Err(SignUpError::EmailTaken));
    test.end().await;
}

#[tokio::test]
async fn account_created_by_somebody_else_goes_to_the_reader_of_the_mail() {
    let test = mailing().await;
    let core = &test.core;
    // Somebody creates an account with the address, and keeps a session, a device and a key.
    let Ok(SignedUp::SignedIn(stolen)) = accounts::sign_up(core, EVE, PASSWORD, HOME.address).await else {
        panic!("no session")
    };
    accounts::remember_device(core, &stolen, &HOME).await.unwrap();
    let user = find_session(core, &stolen).await.unwrap().unwrap().user;
    let team = accounts::list_teams(core, user.id).await.unwrap()[0].team;
    let key =
        accounts::create_key(core, user.id, team, Environment::Test, "A key", KeyLimits::default()).await.unwrap();
    let key_hash: [u8; 32] = Sha256::digest(key.expose().as_bytes()).into();
    assert!(test.store.accounts().authenticate(&key_hash).await.unwrap().is_some());

    // The owner of the address signs up. Nothing changes, and no session is opened, until they use the link.
    assert_eq!(accounts::sign_up(core, EVE, NEW, HOME.address).await, Ok(SignedUp::LinkSent));
    assert!(sign_in(core, EVE, NEW, &HOME).await.is_err());
    let token = link(&test, user.id, 'v').await;
    assert_eq!(accounts::find_verification(core, &token).await.unwrap().unwrap().email, user.email);
    assert!(matches!(
        accounts::take_over_account(core, &token, "too short").await,
        Err(VerificationError::Password(_))
    ));
    let session = accounts::take_over_account(core, &token, NEW).await.unwrap().into_session().unwrap();
    assert!(find_session(core, &session).await.unwrap().unwrap().user.verified);
    assert!(find_session(core, &stolen).await.unwrap().is_none());
    assert!(sign_in(core, EVE, PASSWORD, &HOME).await.is_err());
    assert!(sign_in(core, EVE, NEW, &HOME).await.is_ok());
    assert_eq!(test.store.accounts().authenticate(&key_hash).await.unwrap(), None);
    assert_eq!(accounts::take_over_account(core, &token, NEW).await, Err(VerificationError::InvalidLink));
    assert_eq!(accounts::sign_up(core, EVE, PASSWORD, HOME.address).await, Err(SignUpError::EmailTaken));
    test.end().await;
}

#[tokio::test]
async fn link_is_valid_for_a_day_and_one_account() {
    let test = mailing().await;
    let core = &test.core;
    let (eve, _) = sign_up(&test, EVE).await;
    let (bob, _) = sign_up(&test, "bob@example.com").await;
    let token = link(&test, eve.id, 'v').await;
    for bad in ["", "gev_", &token[..token.len() - 1], &format!("gpr_{}", "v".repeat(43))] {
        assert_eq!(accounts::verify_email(core, eve.id, bad).await, Err(VerificationError::InvalidLink), "{bad}");
        assert_eq!(accounts::find_verification(core, bad).await, Ok(None), "{bad}");
    }
    assert_eq!(accounts::verify_email(core, bob.id, &token).await, Err(VerificationError::InvalidLink));
    test.advance(VERIFICATION_LIFE);
    assert_eq!(accounts::verify_email(core, eve.id, &token).await, Err(VerificationError::InvalidLink));
    assert_eq!(accounts::take_over_account(core, &token, NEW).await, Err(VerificationError::InvalidLink));
    assert!(!accounts::is_verified(core, eve.id).await.unwrap());
    test.end().await;
}

#[tokio::test]
async fn verification_messages_to_one_address_are_limited() {
    let test = mailing().await;
    let (eve, _) = sign_up(&test, EVE).await;
    let mut requests = Vec::new();
    for _ in 0..6 {
        requests.push(accounts::request_verification(&test.core, eve.id).await.unwrap());
    }
    // The first of five was sent at sign-up.
    let sent = requests.iter().filter(|request| **request == VerificationRequest::Sent).count();
    assert_eq!((sent, requests.pop()), (4, Some(VerificationRequest::TooMany)));
    // A sign-up of somebody else for the address sends no more either.
    assert_eq!(accounts::sign_up(&test.core, EVE, NEW, HOME.address).await, Ok(SignedUp::LinkSent));
    test.end().await;
}

#[tokio::test]
async fn user_of_an_operator_is_verified() {
    let test = mailing().await;
    assert!(accounts::is_verified(&test.core, test.user).await.unwrap());
    let email = Email::parse("ada@example.com").unwrap();
    assert!(test.store.accounts().find_user(&email).await.unwrap().unwrap().verified_at.is_some());
    test.end().await;
}

/// The credits of all teams of a user.
async fn credits(test: &TestCore, user: UserId) -> u32 {
    let memberships = accounts::list_memberships(&test.core, user).await.unwrap();
    memberships.iter().map(|membership| membership.live_credits).sum()
}

#[tokio::test]
async fn verified_user_gets_the_trial_credits_once_however_the_address_is_verified() {
    let options = TestOptions { sign_up: true, mail: true, trial_credits: 10, ..TestOptions::default() };
    let test = TestCore::with(options).await;
    let core = &test.core;
    let (eve, team) = sign_up(&test, "eve@example.com").await;
    assert_eq!(credits(&test, eve.id).await, 0, "the address is not verified");
    accounts::verify_email(core, eve.id, &link(&test, eve.id, 'a').await).await.unwrap();
    assert_eq!(credits(&test, eve.id).await, 10);
    assert!(!test.store.credits().payer(team, &["trial:"]).await.unwrap().has_paid, "nobody paid for them");

    // A reset by a verified user grants nothing more.
    test.clock.advance(std::time::Duration::from_secs(60));
    let reset = format!("gpr_{}", "r".repeat(43));
    let hash = Sha256::digest(reset.as_bytes()).into();
    test.store.accounts().create_password_reset(hash, eve.id, core.now() + VERIFICATION_LIFE).await.unwrap();
    accounts::reset_password(core, &reset, NEW).await.unwrap();
    assert_eq!(credits(&test, eve.id).await, 10);

    let (bob, _) = sign_up(&test, "bob@example.com").await;
    accounts::take_over_account(core, &link(&test, bob.id, 'b').await, NEW).await.unwrap();
    assert_eq!(credits(&test, bob.id).await, 10);

    let (carl, _) = sign_up(&test, "carl@example.com").await;
    let reset = format!("gpr_{}", "s".repeat(43));
    let hash = Sha256::digest(reset.as_bytes()).into();
    test.store.accounts().create_password_reset(hash, carl.id, core.now() + VERIFICATION_LIFE).await.unwrap();
    accounts::reset_password(core, &reset, NEW).await.unwrap();
    assert_eq!(credits(&test, carl.id).await, 10);
}

#[tokio::test]
async fn without_trial_credits_verification_grants_nothing() {
    let test = mailing().await;
    let (eve, _) = sign_up(&test, "eve@example.com").await;
    accounts::verify_email(&test.core, eve.id, &link(&test, eve.id, 'a').await).await.unwrap();
    assert_eq!(credits(&test, eve.id).await, 0);
}
