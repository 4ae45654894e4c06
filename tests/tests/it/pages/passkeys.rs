//! Passkeys: adding, using and removing them, and what is refused. A browser with a virtual device is in `looks.rs`.

use anyhow::{Context, Result, ensure};
use grabd_domain::Timestamp;
use grabd_tests::authenticator::Authenticator;
use grabd_tests::harness::TestApp;
use grabd_tests::mail_server::{MailServer, TlsMode};
use grabd_tests::passkey::Passkey;
use serde_json::Value;

use super::mail::start_app_with_mail;
use super::operator::set_operator;
use super::visitor::{PASSWORD, PageResponse, Visitor, start_app};

const ADA: &str = "ada@example.com";
const EVE: &str = "eve@example.com";
/// The origin of the web app. Nothing is requested from it: the pages are served on a local address.
const ORIGIN: &str = "https://grabd.example";
const LIST: &str = "/account/passkeys";
const NEW: &str = "/account/passkeys/new";
const ADD: &str = "/account/passkeys/add";

async fn start() -> Result<TestApp> {
    start_app(&[("oauth.auth_url", ORIGIN)]).await
}

/// Sends a form of the account, with its token.
async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    let form_token = visitor.get("/account").await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// The options in the page that creates a passkey.
fn options(page: &PageResponse) -> Result<Value> {
    let text = page.body.split("data-options=\"").nth(1).and_then(|rest| rest.split('"').next());
    let text = text.with_context(|| page.body.clone())?.replace("&#34;", "\"").replace("&#38;", "&");
    Ok(serde_json::from_str(&text)?)
}

/// The first step of adding a passkey. `proof` are the fields of the second factor, if it is on.
async fn confirm(visitor: &mut Visitor<'_>, proof: &[(&str, &str)]) -> Result<(String, Value)> {
    let page = send(visitor, NEW, &[&[("name", "Phone"), ("password", PASSWORD)], proof].concat()).await?;
    ensure!(page.status == 200, "{} {}", page.status, page.body);
    Ok((page.hidden_field("token")?, options(&page)?))
}

fn recovery_codes(page: &PageResponse) -> Result<Vec<String>> {
    let text = page.body.split("id=\"codes\"").nth(1).and_then(|rest| rest.split('>').nth(1));
    let text = text.and_then(|rest| rest.split('<').next()).with_context(|| page.body.clone())?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Adds the first passkey. Returns it and the recovery codes.
async fn add_first(visitor: &mut Visitor<'_>) -> Result<(Passkey, Vec<String>)> {
    let (token, options) = confirm(visitor, &[]).await?;
    let (passkey, created) = Passkey::create(ORIGIN, &options)?;
    let added = send(visitor, ADD, &[("token", &token), ("passkey", &created)]).await?;
    ensure!(added.status == 200, "{} {}", added.status, added.body);
    Ok((passkey, recovery_codes(&added)?))
}

/// A challenge: its token and options.
async fn challenge(visitor: &mut Visitor<'_>) -> Result<(String, Value)> {
    let answer = visitor.get("/sign-in/passkey/challenge").await?;
    ensure!(answer.status == 200 && answer.header("cache-control") == "no-store", "{}", answer.body);
    let json = answer.json()?;
    Ok((json["token"].as_str().context("a token")?.to_owned(), json["options"].clone()))
}

/// Sends an answer from the sign-in page.
async fn send_answer(visitor: &mut Visitor<'_>, token: &str, answer: &str) -> Result<PageResponse> {
    let form_token = visitor.get("/sign-in").await?.hidden_field("form_token")?;
    let fields = [("form_token", &*form_token), ("next", ""), ("passkey_token", token), ("passkey", answer)];
    visitor.post("/sign-in/passkey", &fields).await
}

async fn sign_in(visitor: &mut Visitor<'_>, passkey: &mut Passkey) -> Result<PageResponse> {
    let (token, options) = challenge(visitor).await?;
    let answer = passkey.answer(&options)?;
    send_answer(visitor, &token, &answer).await
}

/// The path of the only passkey in the list.
async fn path_of_passkey(visitor: &mut Visitor<'_>) -> Result<String> {
    let list = visitor.get(LIST).await?;
    let id = list.body.split("href=\"/account/passkeys/").nth(1).and_then(|rest| rest.split('"').next());
    Ok(format!("{LIST}/{}", id.with_context(|| list.body.clone())?))
}

#[tokio::test(flavor = "multi_thread")]
async fn passkey_is_added_used_renamed_and_removed() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[("oauth.auth_url", ORIGIN)]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let mut elsewhere = Visitor::new(&app);
    ensure!(elsewhere.sign_in(ADA, PASSWORD, "").await?.location() == "/grabs");
    // The password is needed, and mistakes keep the name.
    let refused = send(&mut ada, NEW, &[("name", "Pocket"), ("password", "wrong password")]).await?;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("The password is wrong") && refused.body.contains("value=\"Pocket\""));
    let (mut passkey, codes) = add_first(&mut ada).await?;
    assert_eq!(codes.len(), 10);
    assert!(ada.is_signed_in().await? && !elsewhere.is_signed_in().await?);
    assert!(server.wait_for(0).await?.text().contains("A passkey was added. It can sign in without the password."));
    assert!(ada.get(LIST).await?.body.contains("Never used"));

    // It signs in alone, and is the second factor of the password.
    let answer = sign_in(&mut elsewhere, &mut passkey).await?;
    assert_eq!((answer.status, answer.location()), (303, "/grabs"), "{}", answer.body);
    assert!(elsewhere.is_signed_in().await?);
    assert!(ada.get(LIST).await?.body.contains("Last used"));
    let mut other = Visitor::new(&app);
    assert_eq!(other.sign_in(ADA, PASSWORD, "/apps").await?.location(), "/sign-in/code?next=%2Fapps");
    assert!(!other.is_signed_in().await?);
    let page = other.get("/sign-in/code?next=%2Fapps").await?;
    assert!(page.body.contains("Use your passkey") && page.body.contains(">Recovery code</label>"), "{}", page.body);
    assert!(page.header("content-security-policy").contains("connect-src 'self'"));
    let (token, options) = challenge(&mut other).await?;
    let form_token = page.hidden_field("form_token")?;
    let answer = passkey.answer(&options)?;
    let fields = [("form_token", &*form_token), ("next", "/apps"), ("second_step", "")];
    let fields = [&fields[..], &[("passkey_token", &*token), ("passkey", &*answer)]].concat();
    let answer = other.post("/sign-in/passkey", &fields).await?;
    assert_eq!((answer.status, answer.location()), (303, "/apps"), "{}", answer.body);
    // Recovery codes work as well.
    let mut other = Visitor::new(&app);
    other.sign_in(ADA, PASSWORD, "").await?;
    let form_token = other.get("/sign-in/code").await?.hidden_field("form_token")?;
    let answer = other.post("/sign-in/code", &[("form_token", &*form_token), ("code", &*codes[0])]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/grabs"), "{}", answer.body);

    let path = path_of_passkey(&mut ada).await?;
    let long = "x".repeat(61);
    assert_eq!(send(&mut ada, &format!("{path}/name"), &[("name", &long)]).await?.status, 422);
    let renamed = send(&mut ada, &format!("{path}/name"), &[("name", "Blue key")]).await?;
    assert_eq!((renamed.status, renamed.location()), (303, "/account/passkeys?renamed"));
    assert!(ada.get(LIST).await?.body.contains("Blue key"));
    // Its removal needs the password and the second factor, which can be the passkey itself.
    let remove = format!("{path}/remove");
    for (fields, complaint) in [
        ([("password", "wrong password"), ("code", &*codes[1])], "The password is wrong"),
        ([("password", PASSWORD), ("code", "")], "Enter the 6 digits"),
        ([("password", PASSWORD), ("code", &*codes[0])], "The code is wrong"),
    ] {
        let refused = send(&mut ada, &remove, &fields).await?;
        assert!(refused.status == 422 && refused.body.contains(complaint), "{complaint}: {}", refused.body);
    }
    let (token, options) = challenge(&mut ada).await?;
    let answer = passkey.answer(&options)?;
    let fields = [("password", PASSWORD), ("passkey_token", &*token), ("passkey", &*answer)];
    let removed = send(&mut ada, &remove, &fields).await?;
    assert_eq!((removed.status, removed.location()), (303, "/account/passkeys?off"), "{}", removed.body);
    let refused = sign_in(&mut Visitor::new(&app), &mut passkey).await?;
    assert!(refused.status == 422 && refused.body.contains("This passkey is not known here"), "{}", refused.body);
    assert_eq!(Visitor::new(&app).sign_in(ADA, PASSWORD, "").await?.location(), "/grabs", "the second factor is off");
    let trail = app.service.store().audit().list_audit(Timestamp::from_ms(0), None, 100).await?;
    let mut actions: Vec<&str> = trail.iter().map(|entry| &*entry.action).collect();
    actions.retain(|action| action.starts_with("passkey"));
    actions.reverse();
    assert_eq!(actions, ["passkey.add", "passkey.rename", "passkey.remove"]);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_replayed_forged_or_of_others_are_refused() -> Result<()> {
    let app = start().await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let mut eve = Visitor::with_account(&app, EVE).await?;
    let (mut hers, _) = add_first(&mut ada).await?;
    let (mut foreign, _) = add_first(&mut eve).await?;
    let mut thief = Visitor::new(&app);
    let refuse = async |visitor: &mut Visitor<'_>, token: &str, answer: &str, complaint: &str| -> Result<()> {
        let refused = send_answer(visitor, token, answer).await?;
        ensure!(refused.status == 422 && refused.body.contains(complaint), "{complaint}: {}", refused.body);
        ensure!(!visitor.is_signed_in().await?);
        Ok(())
    };
    // A challenge is answered once.
    let (token, options) = challenge(&mut thief).await?;
    let answer = hers.answer(&options)?;
    let mut owner = Visitor::new(&app);
    assert_eq!(send_answer(&mut owner, &token, &answer).await?.status, 303);
    refuse(&mut thief, &token, &answer, "used before").await?;
    // Also by a device that does not count.
    hers.is_counting = false;
    hers.counter = 0;
    let (token, options) = challenge(&mut thief).await?;
    refuse(&mut thief, &token, &hers.answer(&options)?, "used before").await?;
    hers.is_counting = true;
    // A copy of the device is behind.
    hers.counter = 0;
    let (token, options) = challenge(&mut thief).await?;
    refuse(&mut thief, &token, &hers.answer(&options)?, "used before").await?;
    hers.counter = 50;
    // Another challenge, page, host or user, no user verification, and a damaged token.
    let (other_token, _) = challenge(&mut thief).await?;
    let (token, options) = challenge(&mut thief).await?;
    refuse(&mut thief, &other_token, &hers.answer(&options)?, "was not accepted").await?;
    for origin in
        ["https://evil.example", "http://grabd.example", "https://sub.grabd.example", "https://grabd.example:444"]
    {
        hers.origin = origin.to_owned();
        refuse(&mut thief, &token, &hers.answer(&options)?, "was not accepted").await?;
    }
    hers.origin = ORIGIN.to_owned();
    hers.host = "evil.example".to_owned();
    refuse(&mut thief, &token, &hers.answer(&options)?, "was not accepted").await?;
    hers.host = "grabd.example".to_owned();
    hers.verifies_user = false;
    refuse(&mut thief, &token, &hers.answer(&options)?, "was not accepted").await?;
    hers.verifies_user = true;
    let user = std::mem::replace(&mut hers.user, foreign.user.clone());
    refuse(&mut thief, &token, &hers.answer(&options)?, "was not accepted").await?;
    hers.user = user;
    refuse(&mut thief, &token, "{}", "was not accepted").await?;
    refuse(&mut thief, &token[1..], &hers.answer(&options)?, "more than five minutes").await?;
    refuse(&mut thief, "", &hers.answer(&options)?, "more than five minutes").await?;
    // After Ada's password, Eve's passkey signs in nobody.
    thief.sign_in(ADA, PASSWORD, "").await?;
    let form_token = thief.get("/sign-in/code").await?.hidden_field("form_token")?;
    let answer = foreign.answer(&options)?;
    let fields = [("form_token", &*form_token), ("second_step", ""), ("passkey_token", &*token), ("passkey", &*answer)];
    let refused = thief.post("/sign-in/passkey", &fields).await?;
    assert!(refused.status == 422 && refused.body.contains("belongs to another account"), "{}", refused.body);
    assert!(refused.body.contains(ADA) && !thief.is_signed_in().await?);
    // Nor does it confirm a change of Ada's.
    let remove = format!("{}/remove", path_of_passkey(&mut ada).await?);
    let answer = foreign.answer(&options)?;
    let fields = [("password", PASSWORD), ("passkey_token", &*token), ("passkey", &*answer)];
    assert_eq!(send(&mut ada, &remove, &fields).await?.status, 422);
    assert_eq!(send(&mut eve, &remove, &fields).await?.status, 404);
    // All that was refused has used up nothing.
    let answer = hers.answer(&options)?;
    assert_eq!(send_answer(&mut Visitor::new(&app), &token, &answer).await?.status, 303);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_passkey_needs_a_fresh_confirmation_in_the_same_session() -> Result<()> {
    let app = start().await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let mut eve = Visitor::with_account(&app, EVE).await?;
    let refuse = async |visitor: &mut Visitor<'_>, token: &str, created: &str, status: u16| -> Result<()> {
        let refused = send(visitor, ADD, &[("token", token), ("passkey", created)]).await?;
        ensure!(refused.status == status, "{} {}", refused.status, refused.body);
        Ok(())
    };
    let (token, options) = confirm(&mut ada, &[]).await?;
    let (mut first, created) = Passkey::create(ORIGIN, &options)?;
    refuse(&mut eve, &token, &created, 400).await?;
    refuse(&mut ada, "", &created, 400).await?;
    refuse(&mut ada, &token, "{}", 400).await?;
    first.origin = "https://evil.example".to_owned();
    refuse(&mut ada, &token, &first.created(&options)?, 400).await?;
    first.origin = ORIGIN.to_owned();
    first.verifies_user = false;
    refuse(&mut ada, &token, &first.created(&options)?, 400).await?;
    first.verifies_user = true;
    let mut same_user = Visitor::new(&app);
    same_user.sign_in(ADA, PASSWORD, "").await?;
    refuse(&mut same_user, &token, &created, 400).await?;
    let (token_before, options_before) = confirm(&mut ada, &[]).await?;
    let added = send(&mut ada, ADD, &[("token", &token), ("passkey", &created)]).await?;
    assert_eq!(added.status, 200, "{}", added.body);
    let codes = recovery_codes(&added)?;
    // A confirmation counts once, and not for a second factor that was off.
    refuse(&mut ada, &token, &created, 400).await?;
    let (_, other) = Passkey::create(ORIGIN, &options_before)?;
    refuse(&mut ada, &token_before, &other, 400).await?;
    // Now the second factor is needed: the password alone adds nothing.
    let fields = [("name", "Phone"), ("password", PASSWORD)];
    assert_eq!(send(&mut ada, NEW, &fields).await?.status, 422);
    let (token, options) = confirm(&mut ada, &[("code", &codes[0])]).await?;
    assert_eq!(options["excludeCredentials"].as_array().map(Vec::len), Some(1));
    // The same passkey is not added twice, and not to another account.
    refuse(&mut ada, &token, &first.created(&options)?, 400).await?;
    let (_, created) = Passkey::create(ORIGIN, &options)?;
    let added = send(&mut ada, ADD, &[("token", &token), ("passkey", &created)]).await?;
    assert_eq!((added.status, added.location()), (303, "/account/passkeys?added"), "{}", added.body);
    let refused = send(&mut ada, NEW, &[("name", "Phone"), ("password", PASSWORD), ("code", &codes[0])]).await?;
    assert_eq!(refused.status, 422, "the code was used up");
    let (token, options) = confirm(&mut eve, &[]).await?;
    refuse(&mut eve, &token, &first.created(&options)?, 409).await?;
    // Ten, and no more.
    for number in 2..10 {
        let (token, options) = challenge(&mut ada).await?;
        let answer = first.answer(&options)?;
        let (token, options) = confirm(&mut ada, &[("passkey_token", &token), ("passkey", &answer)]).await?;
        let (_, created) = Passkey::create(ORIGIN, &options)?;
        let added = send(&mut ada, ADD, &[("token", &token), ("passkey", &created)]).await?;
        assert_eq!(added.status, 303, "{number}: {}", added.body);
    }
    assert!(ada.get(LIST).await?.body.contains("at most 10 passkeys"));
    let fields = [("name", "Phone"), ("password", PASSWORD), ("code", &*codes[1])];
    assert_eq!(send(&mut ada, NEW, &fields).await?.status, 409);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn passkey_is_a_second_factor_of_operators_and_of_nobody_who_is_suspended() -> Result<()> {
    let settings = [("oauth.auth_url", ORIGIN), ("security.require_second_factor_for_operators", "true")];
    let app = start_app(&settings).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    set_operator(&app, ADA, true).await?;
    assert_eq!(ada.get("/operator").await?.location(), "/account/second-factor?required");
    assert!(ada.get("/account/second-factor?required").await?.body.contains("href=\"/account/passkeys/new\""));
    let (mut passkey, codes) = add_first(&mut ada).await?;
    assert_eq!(ada.get("/operator").await?.status, 200);
    let status = ada.get("/account/second-factor").await?;
    assert!(status.body.contains("sign-in asks for a passkey or a recovery code"), "{}", status.body);
    assert_eq!(sign_in(&mut Visitor::new(&app), &mut passkey).await?.status, 303);
    let trail = app.service.store().audit().list_audit(Timestamp::from_ms(0), None, 100).await?;
    assert!(trail.iter().any(|entry| entry.action == "operator.sign_in" && entry.target == ADA), "{trail:?}");
    let user = trail.iter().find(|entry| entry.action == "passkey.add").context("an entry")?.target.parse()?;
    let store = app.service.store();
    store.accounts().suspend_user(user, "abuse", app.service.core().now()).await?;
    let refused = sign_in(&mut Visitor::new(&app), &mut passkey).await?;
    assert!(refused.status == 403 && refused.body.contains("suspended"), "{}", refused.body);
    store.accounts().restore_user(user, app.service.core().now()).await?;
    // Turning off the second factor removes the passkeys.
    let mut ada = Visitor::new(&app);
    assert_eq!(sign_in(&mut ada, &mut passkey).await?.status, 303);
    let fields = [("password", PASSWORD), ("code", &*codes[0])];
    assert_eq!(send(&mut ada, "/account/second-factor/off", &fields).await?.status, 303);
    assert_eq!(store.accounts().list_passkeys(user).await?, []);
    assert_eq!(sign_in(&mut Visitor::new(&app), &mut passkey).await?.status, 422);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn authenticator_app_is_added_beside_passkeys_and_replaced() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[("oauth.auth_url", ORIGIN)]).await?;
    let now = || app.service.core().now();
    let mut ada = Visitor::with_account(&app, ADA).await?;
    // Without a second factor there is the page that turns it on.
    let (page, status) = ("/account/second-factor/app", "/account/second-factor");
    assert_eq!(ada.get(page).await?.location(), status);
    let (mut passkey, codes) = add_first(&mut ada).await?;
    assert!(ada.get(status).await?.body.contains(">Add an authenticator app</a>"));
    let shown = ada.get(page).await?;
    let secret = shown.body.split("id=\"secret\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let phone = Authenticator::with(secret.context("a secret")?)?;
    let setup = shown.hidden_field("setup")?;
    let code = phone.code(now(), 0)?;
    // The password and the second factor are needed, and mistakes keep the secret that was scanned.
    for (app_code, password, code, complaint) in [
        ("12", PASSWORD, &*codes[0], "Enter the 6 digits that the new app shows."),
        (&*code, "wrong password", &*codes[0], "The password is wrong"),
        (&*code, PASSWORD, "", "Enter the 6 digits"),
        (&*code, PASSWORD, &*code, "The code is wrong"),
    ] {
        let fields = [("setup", &*setup), ("app_code", app_code), ("password", password), ("code", code)];
        let refused = send(&mut ada, page, &fields).await?;
        assert!(refused.status == 422 && refused.body.contains(complaint), "{complaint}: {}", refused.body);
        assert_eq!(refused.hidden_field("setup")?, setup);
    }
    let fields = [("setup", "forged"), ("app_code", &*code), ("password", PASSWORD), ("code", &*codes[0])];
    assert_eq!(send(&mut ada, page, &fields).await?.status, 400);
    let (token, options) = challenge(&mut ada).await?;
    let answer = passkey.answer(&options)?;
    let fields = [("setup", &*setup), ("app_code", &*code), ("password", PASSWORD)];
    let fields = [&fields[..], &[("passkey_token", &*token), ("passkey", &*answer)]].concat();
    let added = send(&mut ada, page, &fields).await?;
    assert_eq!((added.status, added.location()), (303, "/account/second-factor?app"), "{}", added.body);
    assert!(server.wait_for(1).await?.text().contains("An authenticator app was set up"));
    let shown = ada.get(added.location()).await?;
    assert!(
        shown.body.contains("Authenticator app set up") && shown.body.contains(">Change the authenticator app</a>")
    );
    assert!(shown.body.contains("<strong>10</strong> unused."), "{}", shown.body);
    // It signs in after the password.
    let mut other = Visitor::new(&app);
    other.sign_in(ADA, PASSWORD, "").await?;
    let form_token = other.get("/sign-in/code").await?.hidden_field("form_token")?;
    let code = phone.code(now(), 1)?;
    let answer = other.post("/sign-in/code", &[("form_token", &*form_token), ("code", &*code)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/grabs"), "{}", answer.body);
    // A new phone, confirmed by a recovery code: codes of the former one are refused, the passkey stays.
    let shown = ada.get(page).await?;
    let secret = shown.body.split("id=\"secret\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let new_phone = Authenticator::with(secret.context("a secret")?)?;
    let (setup, code) = (shown.hidden_field("setup")?, new_phone.code(now(), 0)?);
    let fields = [("setup", &*setup), ("app_code", &*code), ("password", PASSWORD), ("code", &*codes[0])];
    assert_eq!(send(&mut ada, page, &fields).await?.status, 303);
    let mut other = Visitor::new(&app);
    other.sign_in(ADA, PASSWORD, "").await?;
    for (phone, status) in [(&phone, 422), (&new_phone, 303)] {
        let form_token = other.get("/sign-in/code").await?.hidden_field("form_token")?;
        let code = phone.code(now(), 1)?;
        let answer = other.post("/sign-in/code", &[("form_token", &*form_token), ("code", &*code)]).await?;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    assert_eq!(sign_in(&mut Visitor::new(&app), &mut passkey).await?.status, 303);
    let trail = app.service.store().audit().list_audit(Timestamp::from_ms(0), None, 100).await?;
    assert_eq!(trail.iter().filter(|entry| entry.action == "second_factor.app").count(), 2);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn passkeys_are_not_offered_where_browsers_do_not_allow_them() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    assert_eq!(Visitor::new(&app).get("/sign-in/passkey/challenge").await?.status, 403);
    assert!(!Visitor::new(&app).get("/sign-in").await?.body.contains("passkey"));
    assert!(!ada.get("/account").await?.body.contains("asskey"));
    assert!(ada.get(LIST).await?.body.contains("Passkeys are not available here"));
    assert_eq!(ada.get(NEW).await?.status, 403);
    assert_eq!(send(&mut ada, NEW, &[("name", "Phone"), ("password", PASSWORD)]).await?.status, 403);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unverified_user_cannot_add_a_passkey() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[("oauth.auth_url", ORIGIN)]).await?;
    let mut eve = Visitor::with_sign_up(&app, EVE).await?;
    let fields = [("name", "Phone"), ("password", PASSWORD)];
    for answer in [eve.get(NEW).await?, send(&mut eve, NEW, &fields).await?] {
        assert!(answer.status == 403 && answer.body.contains("Verify your e-mail address first"), "{}", answer.body);
    }
    app.finish().await
}
