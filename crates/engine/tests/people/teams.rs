//! Teams in the hands of their people, and what time ends.

use std::time::Duration;

use grabd_domain::accounts::{Email, Role};
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::INVITATION_LIFE;
use grabd_engine::accounts::{
    self, ArriveError, ChangePasswordError, InviteError, Person, Sent, TeamError, find_invitation, find_session,
    sign_in,
};

use crate::house::{House, PASSWORD, person};

const NEW: &str = "quite another password";

fn named(id: UserId, email: &str) -> Person {
    Person { id, email: Email::parse(email).unwrap(), operator: false }
}

/// The token of an invitation that is passed on by hand, since no letters are sent in this house.
async fn invite(house: &House, team: TeamId, email: &str, role: Role) -> String {
    let ada = named(house.user, "ada@example.com");
    match accounts::invite(&house.core, &ada, team, email, role).await.unwrap() {
        Sent::ByHand(link) => link.split_once("/invitation?token=").unwrap().1.to_owned(),
        Sent::Mailed => panic!("nobody sends letters here"),
    }
}

#[tokio::test]
async fn an_invitation_counts_for_seven_days_and_for_one_address() {
    let house = House::new().await;
    let (bob, _) = person(&house.store, "bob@example.com").await;
    let (eve, _) = person(&house.store, "eve@example.com").await;
    let (bob, eve) = (named(bob, "bob@example.com"), named(eve, "eve@example.com"));
    let token = invite(&house, house.team, " Bob@Example.com", Role::Member).await;
    let found = find_invitation(&house.core, &token).await.unwrap().unwrap();
    assert_eq!((found.email.as_str(), found.invited_by.as_str()), ("bob@example.com", "ada@example.com"));
    assert_eq!(accounts::accept(&house.core, &eve, &token).await, Err(TeamError::Unknown));
    house.advance(INVITATION_LIFE);
    assert_eq!(find_invitation(&house.core, &token).await.unwrap(), None);
    assert_eq!(accounts::accept(&house.core, &bob, &token).await, Err(TeamError::Unknown));
    assert_eq!(accounts::arrive(&house.core, &token, PASSWORD).await.unwrap_err(), ArriveError::Unknown);

    let token = invite(&house, house.team, "bob@example.com", Role::Member).await;
    house.advance(INVITATION_LIFE - Duration::from_millis(1));
    assert_eq!(accounts::accept(&house.core, &bob, &token).await, Ok(house.team));
    let again = accounts::invite(&house.core, &bob, house.team, "eve@example.com", Role::Owner).await;
    assert_eq!(again, Err(InviteError::Team(TeamError::NotOwner)));
    house.end().await;
}

#[tokio::test]
async fn whoever_leaves_takes_their_apps_along_at_once() {
    let house = House::new().await;
    let (bob, _) = person(&house.store, "bob@example.com").await;
    let token = invite(&house, house.team, "bob@example.com", Role::Owner).await;
    accounts::accept(&house.core, &named(bob, "bob@example.com"), &token).await.unwrap();
    house.connect(&house.app().await).await;
    assert_eq!(grabd_engine::oauth::list_apps(&house.core, house.user).await.unwrap().len(), 1);
    accounts::leave(&house.core, house.user, house.team).await.unwrap();
    assert_eq!(grabd_engine::oauth::list_apps(&house.core, house.user).await.unwrap(), []);
    let asked = accounts::make_key(&house.core, house.user, house.team, Environment::Live, "A key").await;
    assert_eq!(asked, Err(TeamError::NotIn));
    assert_eq!(accounts::leave(&house.core, bob, house.team).await, Err(TeamError::LastOwner));
    house.end().await;
}

#[tokio::test]
async fn a_password_is_changed_by_whoever_knows_it_and_only_their_session_goes_on() {
    let house = House::new().await;
    let core = &house.core;
    let ada = named(house.user, "ada@example.com");
    let this = sign_in(core, "ada@example.com", PASSWORD).await.unwrap();
    let other = sign_in(core, "ada@example.com", PASSWORD).await.unwrap();
    let wrong = accounts::change_password(core, &ada, &this, NEW, NEW).await;
    assert_eq!(wrong, Err(ChangePasswordError::Wrong));
    let short = accounts::change_password(core, &ada, &this, PASSWORD, "short").await;
    assert!(matches!(short, Err(ChangePasswordError::New(_))), "{short:?}");
    assert!(find_session(core, &other).await.unwrap().is_some());
    accounts::change_password(core, &ada, &this, PASSWORD, NEW).await.unwrap();
    assert!(find_session(core, &this).await.unwrap().is_some());
    assert!(find_session(core, &other).await.unwrap().is_none());
    assert!(sign_in(core, "ada@example.com", PASSWORD).await.is_err());
    assert!(sign_in(core, "ada@example.com", NEW).await.is_ok());
    house.end().await;
}

/// Whoever signs in with the former password while it is being changed does not stay.
#[tokio::test(flavor = "multi_thread")]
async fn no_session_slips_past_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("grabd.sqlite").display());
    let house = House::at(&url, crate::house::Wishes::default()).await;
    let core = &house.core;
    let ada = named(house.user, "ada@example.com");
    let (mut from, mut to) = (PASSWORD, NEW);
    for _ in 0..6 {
        let this = sign_in(core, "ada@example.com", from).await.unwrap();
        let thieves = (0..3).map(|_| sign_in(core, "ada@example.com", from));
        let change = accounts::change_password(core, &ada, &this, from, to);
        let (changed, thieves) = tokio::join!(change, futures::future::join_all(thieves));
        changed.unwrap();
        for token in thieves.into_iter().flatten() {
            assert!(find_session(core, &token).await.unwrap().is_none(), "a thief has stayed");
        }
        std::mem::swap(&mut from, &mut to);
    }
    house.end().await;
}
