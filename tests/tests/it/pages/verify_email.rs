//! Verification of e-mail addresses, and the limits of wrong passwords.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use grabd_tests::mail_server::{MailServer, TlsMode};

use super::mail::{request_password_reset, start_app_with_mail};
use super::users::{first_team, invite};
use super::visitor::{PASSWORD, PageResponse, Visitor, start_app};

const NEW: &str = "quite another password";

/// The path of a link, without the origin.
fn path(app: &TestApp, link: &str) -> Result<String> {
    Ok(link.strip_prefix(app.service.public_url()).with_context(|| link.to_owned())?.to_owned())
}

/// Submits the form of a link.
pub(super) async fn use_link(visitor: &mut Visitor<'_>, link: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    let page = visitor.get(link).await?;
    let (form_token, token) = (page.hidden_field("form_token")?, page.hidden_field("token")?);
    let form = [&[("form_token", &*form_token), ("token", &*token)], fields].concat();
    visitor.post(link.split('?').next().unwrap_or_default(), &form).await
}

async fn create_key(visitor: &mut Visitor<'_>, team: &str, environment: &str) -> Result<PageResponse> {
    let path = format!("{team}/keys");
    let form_token = visitor.get(&path).await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("name", "A key"), ("environment", environment), ("scopes", "read")];
    visitor.post(&path, &form).await
}

async fn sign_out(visitor: &mut Visitor<'_>) -> Result<()> {
    let form_token = visitor.get("/apps").await?.hidden_field("form_token")?;
    assert_eq!(visitor.post("/sign-out", &[("form_token", &form_token)]).await?.status, 303);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_up_sends_a_link_that_verifies_the_signed_in_user() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_sign_up(&app, "ada@example.com").await?;
    let email = server.wait_for(0).await?;
    assert_eq!(email.envelope.1, "<ada@example.com>");
    assert!(email.header("Subject").is_some_and(|subject| subject.starts_with("Verify your e-mail address")));
    let link = path(&app, &email.link()?)?;

    // They can look around and use a test key; the rest needs the verified address.
    let team = first_team(&mut ada).await?;
    let page = ada.get(&format!("{team}/people")).await?;
    assert!(page.body.contains("Verify your e-mail address: open the link"), "{}", page.body);
    assert_eq!(create_key(&mut ada, &team, "test").await?.status, 200);
    let form_token = page.hidden_field("form_token")?;
    for (path, fields) in [
        ("/teams".to_owned(), &[("name", "Another")][..]),
        (format!("{team}/keys"), &[("name", "A key"), ("environment", "live"), ("scopes", "read")]),
        (format!("{team}/invitations"), &[("email", "bob@example.com"), ("role", "member")]),
        (format!("{team}/billing/checkout"), &[("package", "x")]),
    ] {
        let answer = ada.post(&path, &[&[("form_token", &*form_token)], fields].concat()).await?;
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
        assert!(answer.body.contains("Verify your e-mail address first"), "{path}: {}", answer.body);
    }

    // The button sends another link, and both are valid.
    let answer = ada.post("/verify-email/send", &[("form_token", &*form_token)]).await?;
    assert!(answer.status == 200 && answer.body.contains("We sent a link to ada@example.com"), "{}", answer.body);
    let second = path(&app, &server.wait_for(1).await?.link()?)?;
    assert_ne!(second, link);
    let page = ada.get(&link).await?;
    assert!(page.body.contains("You are signed in as") && !page.body.contains("type=\"password\""), "{}", page.body);
    let answer = use_link(&mut ada, &link, &[]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/capture?verified"));
    assert_eq!(ada.get(&link).await?.status, 404);
    assert_eq!(ada.get(&second).await?.status, 404, "all links are used up");
    let page = ada.get(&format!("{team}/people")).await?;
    assert!(!page.body.contains("Send another link"), "{}", page.body);
    assert_eq!(create_key(&mut ada, &team, "live").await?.status, 200);
    assert_eq!(invite(&mut ada, &team, "bob@example.com", "member").await?.status, 303);
    assert!(server.wait_for(2).await?.text().contains("the team \"ada\""));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_that_need_a_verified_address_keep_what_was_entered() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_sign_up(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    let form_token = ada.get("/teams").await?.hidden_field("form_token")?;
    for (path, field, value) in
        [("/teams".to_owned(), "name", "Another"), (format!("{team}/invitations"), "email", "bob@example.com")]
    {
        let entered = [("form_token", &*form_token), (field, value), ("role", "member")];
        let answer = ada.post(&path, &entered).await?;
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
        assert!(answer.body.contains(&format!("value=\"{value}\"")), "{path}: {}", answer.body);
        assert!(answer.body.contains(&format!("<a href=\"#{field}\">Verify your e-mail")), "{path}: {}", answer.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_say_what_verification_gives_and_the_capture_form_shows_the_credits() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[("accounts.trial_credits", "50")]).await?;
    let sign_up = Visitor::new(&app).get("/sign-up").await?;
    assert!(sign_up.body.contains("to get 50 free captures"), "{}", sign_up.body);
    let mut ada = Visitor::with_sign_up(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    let page = ada.get(&format!("{team}/people")).await?;
    assert!(page.body.contains("Verify your e-mail address to get 50 free captures"), "{}", page.body);
    let link = path(&app, &server.wait_for(0).await?.link()?)?;
    let page = ada.get(&link).await?;
    assert!(page.body.contains("Verify the address to get 50 free captures"), "{}", page.body);

    let answer = use_link(&mut ada, &link, &[]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/capture?verified"));
    let form = ada.get(answer.location()).await?.location().to_owned();
    assert!(form.starts_with(&format!("{team}/capture?verified")), "{form}");
    let page = ada.get(&form).await?;
    assert!(page.body.contains("E-mail address verified. You have 50 credits."), "{}", page.body);
    assert!(!page.body.contains("free captures"), "{}", page.body);
    let ledger = ada.get(&format!("{team}/billing/ledger")).await?;
    assert!(ledger.body.contains("Welcome credits") && !ledger.body.contains(">Grant<"), "{}", ledger.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_trial_credits_pages_promise_none() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_sign_up(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    let page = ada.get(&format!("{team}/people")).await?;
    assert!(page.body.contains("Verify your e-mail address: open the link"), "{}", page.body);
    let link = path(&app, &server.wait_for(0).await?.link()?)?;
    let answer = use_link(&mut ada, &link, &[]).await?;
    let form = ada.get(answer.location()).await?.location().to_owned();
    let page = ada.get(&form).await?;
    assert!(page.body.contains("E-mail address verified.") && !page.body.contains("You have"), "{}", page.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn account_of_a_hijacker_goes_to_the_owner_of_the_address() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut eve = Visitor::with_sign_up(&app, "ada@example.com").await?;
    let team = first_team(&mut eve).await?;
    let made = create_key(&mut eve, &team, "test").await?;
    let key = made.body.split("value=\"sk_").nth(1).and_then(|rest| rest.split('"').next()).context("a key")?;
    let key = format!("sk_{key}");
    assert_eq!(app.get("/usage", &key).await?.0, 200);
    let first = path(&app, &server.wait_for(0).await?.link()?)?;

    // Ada signs up and gets no session. The link asks for a password.
    let mut ada = Visitor::new(&app);
    let form_token = ada.get("/sign-up").await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("email", "ada@example.com"), ("password", NEW)];
    let answer = ada.post("/sign-up", &form).await?;
    assert!(answer.status == 200 && answer.body.contains("Check your e-mail"), "{}", answer.body);
    assert!(!ada.is_signed_in().await?);
    let second = path(&app, &server.wait_for(1).await?.link()?)?;
    for _ in 0..2 {
        assert!(ada.get(&second).await?.body.contains("Set the password and verify"));
    }
    assert_eq!(use_link(&mut ada, &second, &[("password", "short")]).await?.status, 422);
    let answer = use_link(&mut ada, &second, &[("password", NEW)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/capture?verified"));
    assert!(ada.is_signed_in().await?);

    // Nothing of the hijacker is left.
    assert!(!eve.is_signed_in().await?);
    assert_eq!(Visitor::new(&app).sign_in("ada@example.com", PASSWORD, "").await?.status, 422);
    assert_eq!(app.get("/usage", &key).await?.0, 401);
    assert_eq!(ada.get(&first).await?.status, 404);
    // A verified account is not taken over by another sign-up.
    let mut late = Visitor::new(&app);
    let form_token = late.get("/sign-up").await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("email", "ada@example.com"), ("password", PASSWORD)];
    assert_eq!(late.post("/sign-up", &form).await?.status, 422);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn attacker_elsewhere_locks_neither_the_device_nor_the_network_nor_the_reset() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[("http.trusted_proxies", "127.0.0.1/32")]).await?;
    let at = |address: String| vec![("x-forwarded-for", address)];
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    assert!(ada.cookies.contains_key("grabd_device"));
    sign_out(&mut ada).await?;
    ada.headers = at("192.0.2.1".to_owned());
    assert_eq!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    sign_out(&mut ada).await?;
    assert!(ada.cookies.contains_key("grabd_device"), "the device is remembered after signing out");

    // The attacker has many networks, each of another customer, and is slowed.
    let mut statuses = Vec::new();
    for network in 0..11 {
        let mut eve = Visitor::new(&app);
        eve.headers = at(format!("2001:db8:{network}::1"));
        for _ in 0..10 {
            statuses.push(eve.sign_in("ada@example.com", "not the password", "").await?.status);
        }
    }
    // 100 at once, and one more every 36 seconds that the test takes.
    let guesses = statuses.iter().filter(|status| **status == 422).count();
    assert!((100..110).contains(&guesses) && statuses.contains(&429), "{guesses}");

    // Without the device from the network of its last sign-in, with it from anywhere, and with a link from anywhere.
    let mut browser = Visitor::new(&app);
    browser.headers = at("192.0.2.1".to_owned());
    assert_eq!(browser.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    ada.headers = at("198.51.100.1".to_owned());
    assert_eq!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    // An attacker in the usual network uses up its limits, and the device has its own.
    let mut eve = Visitor::new(&app);
    eve.headers = at("192.0.2.1".to_owned());
    let form_token = eve.get("/sign-in").await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("email", "ada@example.com"), ("password", "not the password")];
    let mut refusals = 0;
    for _ in 0..30 {
        refusals += usize::from(eve.post("/sign-in", &form).await?.status == 429);
    }
    assert!(refusals >= 15, "{refusals}");
    sign_out(&mut ada).await?;
    ada.headers = at("192.0.2.1".to_owned());
    assert_eq!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    request_password_reset(&app, "ada@example.com").await?;
    let reset = path(&app, &server.wait_for(0).await?.link()?)?;
    let mut phone = Visitor::new(&app);
    phone.headers = at("2001:db8:1:1::1".to_owned());
    let answer = use_link(&mut phone, &reset, &[("password", NEW)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/account?reset"));
    assert!(phone.is_signed_in().await? && !browser.is_signed_in().await?);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn team_names_with_addresses_are_refused() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    let form_token = ada.get(&format!("{team}/people")).await?.hidden_field("form_token")?;
    for name in ["Win at https://evil.example", "evil.example", "eve@evil.example"] {
        for path in ["/teams".to_owned(), format!("{team}/name")] {
            let answer = ada.post(&path, &[("form_token", &*form_token), ("name", name)]).await?;
            assert_eq!(answer.status, 422, "{path} {name}");
            assert!(answer.body.contains("must not contain a web or e-mail address"), "{}", answer.body);
        }
    }
    app.finish().await
}
