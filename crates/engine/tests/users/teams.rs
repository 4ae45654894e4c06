//! Invitations, membership and password changes.

use std::time::Duration;

use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::INVITATION_LIFE;
use grabd_engine::accounts::{
    self, ChangePasswordError, InvitationSignUpError, InviteError, InviteOutcome, KeyLimits, SignInOutcome, TeamError,
    User, find_invitation, find_session, sign_in,
};

use crate::test_core::{HOME, PASSWORD, TestCore, signed_in, user};

const NEW: &str = "quite another password";

fn user_of(id: UserId, email: &str) -> User {
    User { id, email: Email::parse(email).unwrap(), operator: false, verified: true }
}

/// Invites an address and returns the token of the link. Mail is not configured, so the link is returned.
async fn invite(test: &TestCore, team: TeamId, email: &str, role: Role) -> String {
    let ada = user_of(test.user, "ada@example.com");
    match accounts::invite(&test.core, &ada, team, email, role).await.unwrap() {
        InviteOutcome::Link(link) => link.split_once("/invitation?token=").unwrap().1.to_owned(),
        InviteOutcome::Mailed => panic!("mail is not configured"),
    }
}

#[tokio::test]
async fn invitation_is_valid_for_seven_days_and_one_address() {
    let test = TestCore::new().await;
    let (bob, _) = user(&test.store, "bob@example.com").await;
    let (eve, _) = user(&test.store, "eve@example.com").await;
    let (bob, eve) = (user_of(bob, "bob@example.com"), user_of(eve, "eve@example.com"));
    let token = invite(&test, test.team, " Bob@Example.com", Role::Member).await;
    let found = find_invitation(&test.core, &token).await.unwrap().unwrap();
    assert_eq!((found.email.as_str(), found.invited_by.as_str()), ("bob@example.com", "ada@example.com"));
    assert_eq!(accounts::accept_invitation(&test.core, &eve, &token).await, Err(TeamError::NotFound));
    test.advance(INVITATION_LIFE);
    assert_eq!(find_invitation(&test.core, &token).await.unwrap(), None);
    assert_eq!(accounts::accept_invitation(&test.core, &bob, &token).await, Err(TeamError::NotFound));
    assert_eq!(
        accounts::sign_up_with_invitation(&test.core, &token, PASSWORD).await.unwrap_err(),
        InvitationSignUpError::InvalidLink
    );

    let token = invite(&test, test.team, "bob@example.com", Role::Member).await;
    test.advance(INVITATION_LIFE - Duration::from_millis(1));
    assert_eq!(accounts::accept_invitation(&test.core, &bob, &token).await, Ok(test.team));
    let again = accounts::invite(&test.core, &bob, test.team, "eve@example.com", Role::Owner).await;
    assert_eq!(again, Err(InviteError::Team(TeamError::NotOwner)));
    test.end().await;
}

#[tokio::test]
async fn leaving_a_team_ends_app_grants_at_once() {
    let test = TestCore::new().await;
    let (bob, _) = user(&test.store, "bob@example.com").await;
    let token = invite(&test, test.team, "bob@example.com", Role::Owner).await;
    accounts::accept_invitation(&test.core, &user_of(bob, "bob@example.com"), &token).await.unwrap();
    test.connect(&test.app().await).await;
    assert_eq!(grabd_engine::oauth::list_apps(&test.core, test.user).await.unwrap().len(), 1);
    accounts::leave(&test.core, test.user, test.team).await.unwrap();
    assert_eq!(grabd_engine::oauth::list_apps(&test.core, test.user).await.unwrap(), []);
    let created =
        accounts::create_key(&test.core, test.user, test.team, Environment::Live, "A key", KeyLimits::default()).await;
    assert_eq!(created, Err(TeamError::NotMember));
    assert_eq!(accounts::leave(&test.core, bob, test.team).await, Err(TeamError::LastOwner));
    test.end().await;
}

#[tokio::test]
async fn change_password_needs_the_current_one_and_ends_other_sessions() {
    let test = TestCore::new().await;
    let core = &test.core;
    let ada = user_of(test.user, "ada@example.com");
    let this = signed_in(core, "ada@example.com", PASSWORD, &HOME).await;
    let other = signed_in(core, "ada@example.com", PASSWORD, &HOME).await;
    let wrong = accounts::change_password(core, &ada, &this, NEW, NEW).await;
    assert_eq!(wrong, Err(ChangePasswordError::WrongPassword));
    let short = accounts::change_password(core, &ada, &this, PASSWORD, "short").await;
    assert!(matches!(short, Err(ChangePasswordError::InvalidNewPassword(_))), "{short:?}");
    assert!(find_session(core, &other).await.unwrap().is_some());
    accounts::change_password(core, &ada, &this, PASSWORD, NEW).await.unwrap();
    assert!(find_session(core, &this).await.unwrap().is_some());
    assert!(find_session(core, &other).await.unwrap().is_none());
    assert!(sign_in(core, "ada@example.com", PASSWORD, &HOME).await.is_err());
    assert!(sign_in(core, "ada@example.com", NEW, &HOME).await.is_ok());
    test.end().await;
}

/// Sessions that are opened with the former password during the change are ended as well.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_sign_in_does_not_survive_a_password_change() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("grabd.sqlite").display());
    let test = TestCore::at(&url, crate::test_core::TestOptions::default()).await;
    let core = &test.core;
    let ada = user_of(test.user, "ada@example.com");
    let (mut from, mut to) = (PASSWORD, NEW);
    for _ in 0..6 {
        let this = signed_in(core, "ada@example.com", from, &HOME).await;
        let concurrent = (0..3).map(|_| sign_in(core, "ada@example.com", from, &HOME));
        let change = accounts::change_password(core, &ada, &this, from, to);
        let (changed, concurrent) = tokio::join!(change, futures::future::join_all(concurrent));
        changed.unwrap();
        for token in concurrent.into_iter().flatten().filter_map(SignInOutcome::into_session) {
            assert!(
                find_session(core, &token).await.unwrap().is_none(),
                "a session of the former password is still valid"
            );
        }
        std::mem::swap(&mut from, &mut to);
    }
    test.end().await;
}
