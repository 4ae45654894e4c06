//! Signing up, in and out.

use std::time::Duration;

use grabd_domain::accounts::{Role, SESSION_IDLE, SESSION_LIFE};
use grabd_engine::accounts::{
    self, CreatePersonError, Membership, SignInError, SignUpError, find_session, list_memberships, sign_in, sign_out,
    sign_up,
};
use grabd_store::Place;

use crate::house::{House, NOW, PASSWORD, Wishes, person};

const ADA: &str = "ada@example.com";
const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test]
async fn who_knows_the_password_gets_a_session_until_they_sign_out() {
    let house = House::new().await;
    let core = &house.core;
    let token = sign_in(core, " Ada@Example.COM", PASSWORD).await.unwrap();
    let session = find_session(core, &token).await.unwrap().unwrap();
    assert_eq!((session.person.id, session.person.email.as_str()), (house.user, ADA));
    let other = sign_in(core, ADA, PASSWORD).await.unwrap();
    assert_ne!(find_session(core, &other).await.unwrap().unwrap().csrf, session.csrf);
    assert_eq!(session.csrf.len(), 43);
    assert!(!token.expose().contains(&session.csrf));

    sign_out(core, &token).await.unwrap();
    assert!(find_session(core, &token).await.unwrap().is_none());
    assert!(find_session(core, &other).await.unwrap().is_some());
    sign_out(core, &token).await.unwrap();
    house.end().await;
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_are_answered_alike() {
    let house = House::new().await;
    for (email, password) in [
        (ADA, "correct horse battery stapler"),
        (ADA, ""),
        (ADA, &PASSWORD.to_uppercase()),
        (ADA, &"x".repeat(1 << 20)),
        ("eve@example.com", PASSWORD),
        ("not an address", PASSWORD),
        ("", ""),
    ] {
        let answer = sign_in(&house.core, email, password).await;
        assert_eq!(answer, Err(SignInError::Wrong), "{email}");
    }
    house.end().await;
}

#[tokio::test]
async fn a_session_slides_but_not_for_ever() {
    let house = House::new().await;
    let core = &house.core;
    let idle = sign_in(core, ADA, PASSWORD).await.unwrap();
    let used = sign_in(core, ADA, PASSWORD).await.unwrap();
    let mut passed = Duration::ZERO;
    while passed + SESSION_IDLE - MOMENT < SESSION_LIFE {
        house.advance(SESSION_IDLE - MOMENT);
        passed += SESSION_IDLE - MOMENT;
        assert!(find_session(core, &used).await.unwrap().is_some(), "{passed:?}");
    }
    assert!(find_session(core, &idle).await.unwrap().is_none());
    house.advance(SESSION_LIFE - passed - MOMENT);
    assert!(find_session(core, &used).await.unwrap().is_some());
    house.advance(MOMENT);
    assert!(find_session(core, &used).await.unwrap().is_none());
    house.end().await;
}

#[tokio::test]
async fn after_ten_wrong_passwords_an_account_waits_and_others_do_not() {
    let house = House::new().await;
    let core = &house.core;
    person(&house.store, "bob@example.com").await;
    for _ in 0..10 {
        assert_eq!(sign_in(core, ADA, "wrong").await, Err(SignInError::Wrong));
    }
    // Even the right one, or a guesser would be told which one it was.
    let waiting = sign_in(core, "ADA@example.com", PASSWORD).await;
    assert_eq!(waiting, Err(SignInError::TooMany { retry_after_s: 90 }));
    assert!(sign_in(core, "bob@example.com", PASSWORD).await.is_ok());
    // An address that nobody has is no different.
    for _ in 0..10 {
        assert_eq!(sign_in(core, "eve@example.com", "wrong").await, Err(SignInError::Wrong));
    }
    assert!(matches!(sign_in(core, "eve@example.com", "wrong").await, Err(SignInError::TooMany { .. })));

    house.advance(Duration::from_secs(90));
    assert!(sign_in(core, ADA, PASSWORD).await.is_ok());
    // A right one costs nothing.
    assert!(sign_in(core, ADA, PASSWORD).await.is_ok());
    house.end().await;
}

#[tokio::test]
async fn signing_up_is_closed_unless_the_operator_opens_it() {
    let house = House::new().await;
    assert_eq!(sign_up(&house.core, "bob@example.com", PASSWORD).await, Err(SignUpError::Closed));
    assert!(!house.core.may_sign_up());
    house.end().await;
}

#[tokio::test]
async fn who_signs_up_is_signed_in_and_owns_a_team_without_credits() {
    let house = House::with(Wishes { sign_up: true, ..Wishes::default() }).await;
    let core = &house.core;
    // A team that an operator made and nobody is in, is not given to whoever comes along.
    accounts::create_team(&house.store, "default", 1000, NOW).await.unwrap();
    let token = sign_up(core, "Bob@example.com", PASSWORD).await.unwrap();
    let session = find_session(core, &token).await.unwrap().unwrap();
    assert_eq!(session.person.email.as_str(), "bob@example.com");
    let memberships = list_memberships(core, session.person.id).await.unwrap();
    let [Membership { team, team_name, role, live_credits }] = memberships.as_slice() else {
        panic!("{memberships:?}");
    };
    assert_eq!((team_name.as_str(), *role, *live_credits), ("bob", Role::Owner, 0));
    assert_eq!(house.store.list_keys(*team).await.unwrap(), []);
    assert!(sign_in(core, "bob@example.com", PASSWORD).await.is_ok());

    assert_eq!(sign_up(core, "bob@example.com", PASSWORD).await, Err(SignUpError::EmailTaken));
    assert!(matches!(sign_up(core, "bob", PASSWORD).await, Err(SignUpError::Email(_))));
    assert!(matches!(sign_up(core, "eve@example.com", "too short").await, Err(SignUpError::Password(_))));
    house.end().await;
}

#[tokio::test]
async fn memberships_tell_what_live_grabs_could_cost() {
    let house = House::new().await;
    accounts::grant_prepaid(&house.store, house.team, 7, "order 1", NOW).await.unwrap();
    let ends = NOW + Duration::from_secs(60);
    accounts::start_subscription(&house.store, house.team, 5, ends, "order 2", NOW).await.unwrap();
    let credits = async || list_memberships(&house.core, house.user).await.unwrap()[0].live_credits;
    assert_eq!(credits().await, 12);
    house.advance(Duration::from_secs(60));
    assert_eq!(credits().await, 7);
    house.end().await;
}

#[tokio::test]
async fn an_operator_makes_people_with_passwords_that_will_do() {
    let house = House::new().await;
    let email = grabd_domain::accounts::Email::parse("bob@example.com").unwrap();
    let create = async |password: &str| {
        accounts::create_person(&house.store, &email, password, Place::In(house.team), NOW).await
    };
    assert!(matches!(create("too short").await, Err(CreatePersonError::Password(_))));
    let (_, team, role) = create(PASSWORD).await.unwrap();
    assert_eq!((team, role), (house.team, Role::Member));
    assert!(matches!(create(PASSWORD).await, Err(CreatePersonError::EmailTaken)));
    house.end().await;
}
