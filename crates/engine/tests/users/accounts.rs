//! Sign-up, sign-in and sign-out.

use std::time::Duration;

use grabd_domain::accounts::{DEVICE_LIFE, Role, SESSION_IDLE, SESSION_LIFE};
use grabd_domain::credentials::DeviceToken;
use grabd_engine::accounts::{
    self, CreateUserError, Membership, SignInError, SignInSource, SignUpError, SignedUp, find_session,
    list_memberships, sign_in, sign_out, sign_up,
};
use grabd_store::accounts::InitialTeam;

use crate::test_core::{HOME, NOW, PASSWORD, TestCore, TestOptions, elsewhere, signed_in, user};

const ADA: &str = "ada@example.com";
const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test]
async fn sign_in_opens_a_session_that_sign_out_ends() {
    let test = TestCore::new().await;
    let core = &test.core;
    let token = signed_in(core, " Ada@Example.COM", PASSWORD, &HOME).await;
    let session = find_session(core, &token).await.unwrap().unwrap();
    assert_eq!((session.user.id, session.user.email.as_str()), (test.user, ADA));
    let other = signed_in(core, ADA, PASSWORD, &HOME).await;
    assert_ne!(find_session(core, &other).await.unwrap().unwrap().csrf, session.csrf);
    assert_eq!(session.csrf.len(), 43);
    assert!(!token.expose().contains(&session.csrf));

    sign_out(core, &token).await.unwrap();
    assert!(find_session(core, &token).await.unwrap().is_none());
    assert!(find_session(core, &other).await.unwrap().is_some());
    sign_out(core, &token).await.unwrap();
    test.end().await;
}

#[tokio::test]
async fn wrong_password_and_unknown_address_give_the_same_error() {
    let test = TestCore::new().await;
    for (email, password) in [
        (ADA, "correct horse battery stapler"),
        (ADA, ""),
        (ADA, &PASSWORD.to_uppercase()),
        (ADA, &"x".repeat(1 << 20)),
        ("eve@example.com", PASSWORD),
        ("not an address", PASSWORD),
        ("", ""),
    ] {
        let result = sign_in(&test.core, email, password, &HOME).await;
        assert_eq!(result, Err(SignInError::InvalidCredentials), "{email}");
    }
    test.end().await;
}

#[tokio::test]
async fn session_is_extended_by_use_up_to_its_maximum_life() {
    let test = TestCore::new().await;
    let core = &test.core;
    let idle = signed_in(core, ADA, PASSWORD, &HOME).await;
    let used = signed_in(core, ADA, PASSWORD, &HOME).await;
    let mut passed = Duration::ZERO;
    while passed + SESSION_IDLE - MOMENT < SESSION_LIFE {
        test.advance(SESSION_IDLE - MOMENT);
        passed += SESSION_IDLE - MOMENT;
        assert!(find_session(core, &used).await.unwrap().is_some(), "{passed:?}");
    }
    assert!(find_session(core, &idle).await.unwrap().is_none());
    test.advance(SESSION_LIFE - passed - MOMENT);
    assert!(find_session(core, &used).await.unwrap().is_some());
    test.advance(MOMENT);
    assert!(find_session(core, &used).await.unwrap().is_none());
    test.end().await;
}

/// Signs in at home, and returns the source with the device that is remembered.
async fn signed_in_device(test: &TestCore) -> SignInSource {
    let session = signed_in(&test.core, ADA, PASSWORD, &HOME).await;
    let device = accounts::remember_device(&test.core, &session, &HOME).await.unwrap();
    SignInSource { device: Some(device), ..HOME }
}

/// Tries wrong passwords until one is refused. Returns their number.
async fn exhaust(test: &TestCore, email: &str, source: &SignInSource) -> usize {
    let mut tries = 0;
    loop {
        match sign_in(&test.core, email, "wrong", source).await {
            Err(SignInError::InvalidCredentials) => tries += 1,
            Err(SignInError::TooMany { .. }) => return tries,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn ten_wrong_passwords_rate_limit_only_that_account_and_network() {
    let test = TestCore::new().await;
    let core = &test.core;
    user(&test.store, "bob@example.com").await;
    assert_eq!(exhaust(&test, ADA, &HOME).await, 10);
    // The right password is refused as well, so a guesser cannot tell it apart.
    let waiting = sign_in(core, "ADA@example.com", PASSWORD, &HOME).await;
    assert_eq!(waiting, Err(SignInError::TooMany { retry_after_s: 90 }));
    assert!(sign_in(core, "bob@example.com", PASSWORD, &HOME).await.is_ok());
    assert!(sign_in(core, ADA, PASSWORD, &elsewhere(1)).await.is_ok());
    // Unknown addresses are limited in the same way.
    assert_eq!(exhaust(&test, "eve@example.com", &HOME).await, 10);

    test.advance(Duration::from_secs(90));
    assert!(sign_in(core, ADA, PASSWORD, &HOME).await.is_ok());
    // A right password takes no try.
    assert!(sign_in(core, ADA, PASSWORD, &HOME).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn attackers_can_neither_lock_out_a_known_device_nor_a_known_network_and_stay_bounded() {
    let test = TestCore::new().await;
    let core = &test.core;
    let device = signed_in_device(&test).await;
    // From many networks, against an account and against an unknown address.
    for email in [ADA, "nobody@example.com"] {
        let mut tries = 0;
        for number in 0..12 {
            tries += exhaust(&test, email, &elsewhere(number)).await;
        }
        assert_eq!(tries, 100, "{email}");
    }
    // A first sign-in from elsewhere is slowed, and not locked.
    let refused = sign_in(core, ADA, PASSWORD, &elsewhere(99)).await;
    assert_eq!(refused, Err(SignInError::TooMany { retry_after_s: 36 }));
    // The owner, from the usual network with another browser, and with the known device.
    assert!(sign_in(core, ADA, PASSWORD, &HOME).await.is_ok());
    assert!(sign_in(core, ADA, PASSWORD, &device).await.is_ok());
    let on_the_road = SignInSource { address: elsewhere(1).address, ..device.clone() };
    assert!(sign_in(core, ADA, PASSWORD, &on_the_road).await.is_ok());
    // An attacker in the owner's network does not lock the device.
    assert_eq!(exhaust(&test, ADA, &HOME).await, 10);
    assert!(sign_in(core, ADA, PASSWORD, &device).await.is_ok());
    // A stolen device token has a limit of its own.
    assert_eq!(exhaust(&test, ADA, &on_the_road).await, 10);
    test.advance(Duration::from_secs(36));
    assert!(sign_in(core, ADA, PASSWORD, &elsewhere(99)).await.is_ok());
    test.end().await;
}

#[tokio::test]
async fn devices_of_others_and_planted_tokens_are_not_exempt() {
    let test = TestCore::new().await;
    let core = &test.core;
    user(&test.store, "eve@example.com").await;
    let session = signed_in(core, "eve@example.com", PASSWORD, &elsewhere(1)).await;
    let eves = accounts::remember_device(core, &session, &elsewhere(1)).await.unwrap();
    let planted = DeviceToken::new(&"x".repeat(43)).unwrap();
    let kept = accounts::remember_device(core, &session, &SignInSource { device: Some(eves.clone()), ..HOME }).await;
    assert_eq!(kept.unwrap(), eves, "the token of a known device is kept");
    let replaced = SignInSource { device: Some(planted.clone()), ..HOME };
    assert_ne!(accounts::remember_device(core, &session, &replaced).await.unwrap(), planted);
    for number in 0..12 {
        exhaust(&test, ADA, &elsewhere(100 + number)).await;
    }
    for device in [eves, planted] {
        let source = SignInSource { device: Some(device), ..elsewhere(1) };
        assert!(matches!(sign_in(core, ADA, PASSWORD, &source).await, Err(SignInError::TooMany { .. })));
    }
    test.end().await;
}

#[tokio::test]
async fn device_is_forgotten_after_its_life() {
    let test = TestCore::new().await;
    let device = signed_in_device(&test).await;
    test.advance(DEVICE_LIFE - MOMENT);
    assert_eq!(exhaust(&test, ADA, &elsewhere(1)).await, 10);
    assert_eq!(exhaust(&test, ADA, &SignInSource { address: elsewhere(1).address, ..device.clone() }).await, 10);
    test.advance(MOMENT);
    let devices = test.store.accounts().list_devices(test.user, test.core.now() - DEVICE_LIFE).await.unwrap();
    assert_eq!(devices, []);
    test.end().await;
}

#[tokio::test]
async fn sign_up_is_disabled_by_default() {
    let test = TestCore::new().await;
    assert_eq!(sign_up(&test.core, "bob@example.com", PASSWORD, HOME.address).await, Err(SignUpError::Closed));
    assert!(!test.core.may_sign_up());
    test.end().await;
}

#[tokio::test]
async fn sign_up_opens_a_session_and_creates_a_team_without_credits() {
    let test = TestCore::with(TestOptions { sign_up: true, ..TestOptions::default() }).await;
    let core = &test.core;
    // An existing team without members is not assigned to a new user.
    accounts::create_team(&test.store, "default", 1000, NOW).await.unwrap();
    let Ok(SignedUp::SignedIn(token)) = sign_up(core, "Bob@example.com", PASSWORD, HOME.address).await else {
        panic!("no session")
    };
    let session = find_session(core, &token).await.unwrap().unwrap();
    assert_eq!(session.user.email.as_str(), "bob@example.com");
    let memberships = list_memberships(core, session.user.id).await.unwrap();
    let [Membership { team, team_name, role, live_credits }] = memberships.as_slice() else {
        panic!("{memberships:?}");
    };
    assert_eq!((team_name.as_str(), *role, *live_credits), ("bob", Role::Owner, 0));
    assert_eq!(test.store.accounts().list_keys(*team).await.unwrap(), []);
    assert!(sign_in(core, "bob@example.com", PASSWORD, &HOME).await.is_ok());

    assert_eq!(sign_up(core, "bob@example.com", PASSWORD, HOME.address).await, Err(SignUpError::EmailTaken));
    assert!(matches!(sign_up(core, "bob", PASSWORD, HOME.address).await, Err(SignUpError::Email(_))));
    assert!(matches!(sign_up(core, "eve@example.com", "too short", HOME.address).await, Err(SignUpError::Password(_))));
    test.end().await;
}

#[tokio::test]
async fn memberships_report_spendable_credits() {
    let test = TestCore::new().await;
    accounts::grant_prepaid(&test.store, test.team, 7, "order 1", NOW).await.unwrap();
    let ends = NOW + Duration::from_secs(60);
    accounts::start_subscription(&test.store, test.team, 5, ends, "order 2", NOW).await.unwrap();
    let credits = async || list_memberships(&test.core, test.user).await.unwrap()[0].live_credits;
    assert_eq!(credits().await, 12);
    test.advance(Duration::from_secs(60));
    assert_eq!(credits().await, 7);
    test.end().await;
}

#[tokio::test]
async fn create_user_checks_password_and_address() {
    let test = TestCore::new().await;
    let email = grabd_domain::accounts::Email::parse("bob@example.com").unwrap();
    let create = async |password: &str| {
        accounts::create_user(&test.store, &email, password, InitialTeam::Existing(test.team), NOW).await
    };
    assert!(matches!(create("too short").await, Err(CreateUserError::Password(_))));
    let (_, team, role) = create(PASSWORD).await.unwrap();
    assert_eq!((team, role), (test.team, Role::Member));
    assert!(matches!(create(PASSWORD).await, Err(CreateUserError::EmailTaken)));
    test.end().await;
}
