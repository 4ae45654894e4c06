//! The second factor: its pages, the second step of a sign-in, and what cannot be reached between the steps.

use std::future::Future;

use anyhow::{Context, Result, ensure};
use grabd_domain::Timestamp;
use grabd_tests::authenticator::Authenticator;
use grabd_tests::harness::TestApp;
use grabd_tests::mail_server::{MailServer, TlsMode};

use super::mail::{request_password_reset, start_app_with_mail};
use super::operator::set_operator;
use super::visitor::{PASSWORD, PageResponse, Visitor, authorization_path, register, start_app};

const ADA: &str = "ada@example.com";
const PAGE: &str = "/account/second-factor";
const NEW: &str = "quite another password";
/// A code of digits, which is wrong but for once in three hundred thousand times.
const DIGITS: &str = "000000";
/// A recovery code that nobody has.
const UNKNOWN: &str = "aaaa-aaaa-aaaa-aaaa";

/// What a user keeps.
struct Factor {
    app: Authenticator,
    recovery_codes: Vec<String>,
}

/// The value of the field with this id.
fn shown(page: &PageResponse, id: &str) -> Result<String> {
    let rest = page.body.split(&format!("id=\"{id}\" value=\"")).nth(1).and_then(|rest| rest.split('"').next());
    rest.map(str::to_owned).with_context(|| format!("no {id} in {}", page.body))
}

fn recovery_codes(page: &PageResponse) -> Result<Vec<String>> {
    let text = page.body.split("id=\"codes\"").nth(1).and_then(|rest| rest.split('>').nth(1));
    let text = text.and_then(|rest| rest.split('<').next()).with_context(|| page.body.clone())?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Sends a form of the account, with its token.
async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    let form_token = visitor.get("/account").await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// Turns the second factor on. The code of the current step is used up.
async fn turn_on(app: &TestApp, visitor: &mut Visitor<'_>) -> Result<Factor> {
    let page = visitor.get(PAGE).await?;
    ensure!(page.status == 200, "{}", page.body);
    let (authenticator, setup) = (Authenticator::with(&shown(&page, "secret")?)?, page.hidden_field("setup")?);
    let code = authenticator.code(app.service.core().now(), 0)?;
    let on = send(visitor, PAGE, &[("setup", &setup), ("code", &code), ("password", PASSWORD)]).await?;
    ensure!(on.status == 200 && on.header("cache-control") == "no-store", "{}", on.body);
    Ok(Factor { app: authenticator, recovery_codes: recovery_codes(&on)? })
}

/// Sends a code on the second page of a sign-in.
async fn send_code(visitor: &mut Visitor<'_>, page: &str, code: &str) -> Result<PageResponse> {
    let shown = visitor.get(page).await?;
    ensure!(shown.status == 200, "{} {}", shown.status, shown.location());
    let (form_token, next) = (shown.hidden_field("form_token")?, shown.hidden_field("next")?);
    visitor.post("/sign-in/code", &[("form_token", &*form_token), ("next", &*next), ("code", code)]).await
}

/// The first step of a sign-in. Returns the path of the second.
async fn first_step(visitor: &mut Visitor<'_>, next: &str) -> Result<String> {
    let answer = visitor.sign_in(ADA, PASSWORD, next).await?;
    ensure!(answer.status == 303 && answer.location().starts_with("/sign-in/code?next="), "{}", answer.location());
    Ok(answer.location().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn second_factor_is_set_up_used_and_turned_off() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let mut elsewhere = Visitor::new(&app);
    ensure!(elsewhere.sign_in(ADA, PASSWORD, "").await?.location() == "/grabs");
    let page = ada.get(PAGE).await?;
    assert!(page.body.contains("<svg class=\"qr\"") && !page.header("content-security-policy").contains("unsafe"));
    assert_ne!(shown(&page, "secret")?, shown(&ada.get(PAGE).await?, "secret")?, "each page has a new secret");
    // Mistakes keep the secret that was scanned.
    let setup = page.hidden_field("setup")?;
    let code = Authenticator::with(&shown(&page, "secret")?)?.code(app.service.core().now(), 0)?;
    for (setup, code, password, status, complaint) in [
        (&*setup, "12 34", PASSWORD, 422, "Enter the 6 digits"),
        (&*setup, &*code, "wrong password", 422, "The password is wrong"),
        ("forged", &*code, PASSWORD, 400, "set-up has expired"),
    ] {
        let refused = send(&mut ada, PAGE, &[("setup", setup), ("code", code), ("password", password)]).await?;
        assert_eq!(refused.status, status, "{}", refused.body);
        assert!(refused.body.contains(complaint), "{complaint}: {}", refused.body);
        if status == 422 {
            assert_eq!(shown(&refused, "secret")?, shown(&page, "secret")?);
        }
    }
    assert!(elsewhere.is_signed_in().await?);
    let factor = turn_on(&app, &mut ada).await?;
    assert_eq!(factor.recovery_codes.len(), 10);
    assert!(ada.is_signed_in().await? && !elsewhere.is_signed_in().await?);
    assert!(server.wait_for(0).await?.text().contains("was turned on"));
    let status = ada.get(PAGE).await?;
    assert!(status.body.contains("<strong>10</strong> unused."), "{}", status.body);
    assert!(!status.body.contains(&factor.recovery_codes[0]));

    // The code of the next step is accepted already; so it is one that is valid for at least half a minute.
    let second = first_step(&mut elsewhere, "/apps?x=y").await?;
    assert!(!elsewhere.is_signed_in().await?);
    for (code, complaint) in [("", "Enter the 6 digits"), (UNKNOWN, "The code is wrong")] {
        let refused = send_code(&mut elsewhere, &second, code).await?;
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains(complaint), "{}", refused.body);
    }
    let code = factor.app.code(app.service.core().now(), 1)?;
    let answer = send_code(&mut elsewhere, &second, &code).await?;
    assert_eq!((answer.status, answer.location()), (303, "/apps?x=y"), "{}", answer.body);
    assert!(elsewhere.is_signed_in().await? && !elsewhere.cookies.contains_key("grabd_sign_in"));
    let mut thief = Visitor::new(&app);
    let second = first_step(&mut thief, "").await?;
    let replayed = send_code(&mut thief, &second, &code).await?;
    assert!(replayed.status == 422 && replayed.body.contains("was used before"), "{}", replayed.body);
    assert!(!thief.is_signed_in().await?);

    // Recovery codes, and new ones.
    let page = thief.get(&second.replace("?", "?recovery&")).await?;
    assert!(page.body.contains(">Recovery code</label>"), "{}", page.body);
    let answer = send_code(&mut thief, &second, &factor.recovery_codes[0]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/grabs"));
    assert!(server.wait_for(1).await?.text().contains("recovery code was used"));
    let codes = format!("{PAGE}/recovery-codes");
    assert!(ada.get(&codes).await?.body.contains("former recovery codes stop working"));
    let fields = [("password", PASSWORD), ("code", &*factor.recovery_codes[1])];
    let new = recovery_codes(&send(&mut ada, &codes, &fields).await?)?;
    assert!(server.wait_for(2).await?.text().contains("New recovery codes"));
    let refused = send(&mut ada, &codes, &[("password", PASSWORD), ("code", &*factor.recovery_codes[2])]).await?;
    assert_eq!(refused.status, 422);

    // Off again.
    let off = format!("{PAGE}/off");
    let refused = send(&mut ada, &off, &[("password", "wrong password"), ("code", &*new[0])]).await?;
    assert!(refused.status == 422 && refused.body.contains("The password is wrong"), "{}", refused.body);
    let answer = send(&mut ada, &off, &[("password", PASSWORD), ("code", &*new[0])]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/account?second-factor-off"), "{}", answer.body);
    assert!(server.wait_for(3).await?.text().contains("was turned off"));
    assert_eq!(Visitor::new(&app).sign_in(ADA, PASSWORD, "").await?.location(), "/grabs");
    for path in [&codes, &off] {
        assert_eq!(ada.get(path).await?.location(), PAGE);
        assert_eq!(send(&mut ada, path, &[("password", PASSWORD), ("code", &*new[1])]).await?.status, 409);
    }
    let trail = app.service.store().audit().list_audit(Timestamp::from_ms(0), None, 100).await?;
    let mut actions: Vec<&str> = trail.iter().map(|entry| &*entry.action).collect();
    actions.retain(|action| action.starts_with("second_factor"));
    actions.reverse();
    let expected = ["on", "recovery_code_use", "recovery_codes", "off"].map(|what| format!("second_factor.{what}"));
    assert_eq!(actions, expected);
    assert!(trail.iter().any(|entry| entry.action == "second_factor.on" && entry.address.is_some()));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_reachable_between_the_steps() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    set_operator(&app, ADA, true).await?;
    turn_on(&app, &mut ada).await?;
    let (team, own_token) = {
        let keys = ada.get("/keys").await?.location().to_owned();
        let token = ada.get("/account").await?.hidden_field("form_token")?;
        (keys.strip_suffix("/keys").context("a team")?.to_owned(), token)
    };
    let mut half = Visitor::new(&app);
    let second = first_step(&mut half, "").await?;
    let token = half.cookies.get("grabd_sign_in").context("a cookie")?.clone();
    let request = authorization_path(&register(&app).await?, &[])?;
    let pages =
        ["/account", PAGE, "/grabs", "/apps", "/teams", "/keys", "/account/delete", "/account/second-factor/off"];
    let of_team = ["keys", "people", "grabs", "billing", "webhooks", "requests", "capture", "export"];
    let pages = pages.map(str::to_owned).into_iter().chain(of_team.map(|page| format!("{team}/{page}")));
    // The token as a session is not accepted either.
    let mut forger = Visitor::new(&app);
    forger.cookies.insert("grabd_session".to_owned(), token.clone());
    for page in pages.chain([request]) {
        for visitor in [&mut half, &mut forger] {
            let answer = visitor.get(&page).await?;
            assert!(
                answer.status == 303 && answer.location().starts_with("/sign-in?next="),
                "{page}: {}",
                answer.status
            );
        }
    }
    assert_eq!(half.get("/operator").await?.status, 404);
    let visit_token = half.get(&second).await?.hidden_field("form_token")?;
    let unknown = uuid::Uuid::from_u128(0x0199_f3a1_7c52_7d0e_9b7a_3f0c_5c1e_2a44).to_string();
    for path in grabd_web::form_paths(app.service.core().clone()) {
        let mut named = path.replace("/teams/{team}", &team);
        while let Some((start, rest)) = named.split_once('{') {
            named = format!("{start}{unknown}{}", rest.split_once('}').map_or("", |(_, end)| end));
        }
        // What visitors may do without an account needs the token of the visit.
        let form_token = if path.starts_with("/sign-in") { &own_token } else { &visit_token };
        let fields = [("form_token", &**form_token), ("ticket", "unknown"), ("password", PASSWORD), ("code", DIGITS)];
        let answer = half.post(&named, &fields).await?;
        let is_for_visitors =
            ["/", "/sign-up", "/sign-out", "/forgotten-password", "/new-password", "/invitation", "/verify-email"];
        assert!(
            [403, 404].contains(&answer.status) || is_for_visitors.contains(&&*path),
            "{path}: {} {}",
            answer.status,
            answer.body
        );
    }
    assert!(!half.is_signed_in().await? && ada.is_signed_in().await?);
    let answer = app.get("/usage", &token).await?;
    assert_eq!(answer.0, 401, "{}", answer.1);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_the_code_needs_the_first_step_in_the_same_browser() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let factor = turn_on(&app, &mut ada).await?;
    let mut stranger = Visitor::new(&app);
    assert_eq!(stranger.get("/sign-in/code?next=%2Fapps").await?.location(), "/sign-in?next=%2Fapps");
    stranger.cookies.insert("grabd_sign_in".to_owned(), "A".repeat(130));
    let expired = stranger.get("/sign-in/code?next=%2Fapps").await?;
    assert_eq!((expired.status, expired.location()), (303, "/sign-in?expired=&next=%2Fapps"));
    assert!(!stranger.cookies.contains_key("grabd_sign_in"));
    assert!(stranger.get(expired.location()).await?.body.contains("This sign-in expired."));

    let mut half = Visitor::new(&app);
    let second = first_step(&mut half, "").await?;
    let page = half.get(&second).await?;
    assert!(page.body.contains(ADA) && page.body.contains("inputmode=\"numeric\""), "{}", page.body);
    // Without the browser's cookie, the form leads back to the first step, and uses up nothing.
    let form_token = stranger.get("/sign-in").await?.hidden_field("form_token")?;
    let code = factor.recovery_codes[0].clone();
    let refused = stranger.post("/sign-in/code", &[("form_token", &*form_token), ("code", &*code)]).await?;
    assert_eq!((refused.status, refused.location()), (303, "/sign-in?expired=&next=%2Fgrabs"));
    // Other sites cannot send the form.
    half.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(send_code(&mut half, &second, &code).await?.status, 403);
    half.headers.clear();
    assert_eq!(send_code(&mut half, "/sign-in/code?next=%2F%2Fevil.example", &code).await?.location(), "/grabs");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_are_limited_with_a_message_and_the_owner_is_told() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let factor = turn_on(&app, &mut ada).await?;
    let mut guesser = Visitor::new(&app);
    let second = first_step(&mut guesser, "").await?;
    for _ in 0..5 {
        assert_eq!(send_code(&mut guesser, &second, UNKNOWN).await?.status, 422);
    }
    let told = server.wait_for(1).await?;
    assert!(told.envelope.1.contains(ADA) && told.text().contains("several wrong codes"), "{}", told.text());
    let refused = send_code(&mut guesser, &second, &factor.recovery_codes[0]).await?;
    assert_eq!(refused.status, 429);
    assert!(refused.body.contains("Too many wrong codes for your account. Try again in "), "{}", refused.body);
    assert!((1..=180).contains(&refused.header("retry-after").parse::<u32>()?), "{}", refused.header("retry-after"));
    // The owner's browser, in the same network, has tries of its own.
    let form_token = ada.get("/account").await?.hidden_field("form_token")?;
    ensure!(ada.post("/sign-out", &[("form_token", &*form_token)]).await?.status == 303);
    let second = first_step(&mut ada, "").await?;
    assert_eq!(send_code(&mut ada, &second, &factor.recovery_codes[0]).await?.location(), "/grabs");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn authorization_of_an_app_needs_the_code() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let factor = turn_on(&app, &mut ada).await?;
    let request = authorization_path(&register(&app).await?, &[])?;
    let mut visitor = Visitor::new(&app);
    let sign_in = visitor.get(&request).await?.location().to_owned();
    let next = visitor.get(&sign_in).await?.hidden_field("next")?;
    let second = first_step(&mut visitor, &next).await?;
    assert!(visitor.get(&second).await?.body.contains("To connect an app to your account"));
    let answer = send_code(&mut visitor, &second, &factor.recovery_codes[0]).await?;
    assert_eq!((answer.status, answer.location()), (303, &*request));
    let page = visitor.get(&request).await?;
    assert!(visitor.decide(&page, "allow", &[]).await?.redirect_param("code")?.starts_with("gac_"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn password_reset_asks_for_the_code() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let factor = turn_on(&app, &mut ada).await?;
    server.wait_for(0).await?;
    request_password_reset(&app, ADA).await?;
    let link = server.wait_for(1).await?.link()?;
    let link = link.strip_prefix(app.service.public_url()).context("a link")?;
    let mut reader = Visitor::new(&app);
    let page = reader.get(link).await?;
    let (form_token, token) = (page.hidden_field("form_token")?, page.hidden_field("token")?);
    let form = [("form_token", &*form_token), ("token", &*token), ("password", NEW)];
    let answer = reader.post("/new-password", &form).await?;
    assert_eq!((answer.status, answer.location()), (303, "/sign-in/code?next=%2Faccount%3Freset"), "{}", answer.body);
    assert!(!reader.is_signed_in().await? && !ada.is_signed_in().await?);
    let second = answer.location().to_owned();
    assert_eq!(send_code(&mut reader, &second, UNKNOWN).await?.status, 422);
    let answer = send_code(&mut reader, &second, &factor.recovery_codes[0]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/account?reset"));
    assert!(reader.is_signed_in().await?);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_pages_need_a_second_factor_if_the_setting_says_so() -> Result<()> {
    let app = start_app(&[("security.require_second_factor_for_operators", "true")]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    assert_eq!(ada.get("/operator").await?.status, 404);
    set_operator(&app, ADA, true).await?;
    let needed = "/account/second-factor?required";
    for path in ["/operator", "/operator/teams", "/operator/audit", "/operator/nothing"] {
        let answer = ada.get(path).await?;
        assert_eq!((answer.status, answer.location()), (303, needed), "{path}");
    }
    let team = app.team.team;
    let grant = format!("/operator/teams/{team}/credits");
    let suspend = format!("/operator/teams/{team}/suspend");
    for path in [&grant, &suspend] {
        let fields = [("credits", "100"), ("reason", "for free"), ("once", "x")];
        let answer = send(&mut ada, path, &fields).await?;
        assert_eq!((answer.status, answer.location()), (303, needed), "{path}");
    }
    let state = app.service.store().accounts().find_team(team).await?.context("the team")?;
    assert!(state.suspension.is_none(), "{state:?}");
    assert!(ada.get(needed).await?.body.contains("operator pages of this service need a second factor"));
    assert_eq!(ada.get("/grabs").await?.status, 303, "other pages are not affected");
    let factor = turn_on(&app, &mut ada).await?;
    assert_eq!(ada.get("/operator").await?.status, 200);
    let fields = [("password", PASSWORD), ("code", &*factor.recovery_codes[0])];
    assert_eq!(send(&mut ada, "/account/second-factor/off", &fields).await?.status, 303);
    assert_eq!(ada.get("/operator").await?.location(), needed);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unverified_user_cannot_set_up_a_second_factor() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut eve = Visitor::with_sign_up(&app, "eve@example.com").await?;
    for answer in
        [eve.get(PAGE).await?, send(&mut eve, PAGE, &[("setup", "x"), ("code", DIGITS), ("password", PASSWORD)]).await?]
    {
        assert!(answer.status == 403 && answer.body.contains("Verify your e-mail address first"), "{}", answer.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_simultaneous_sign_ins_with_one_code_one_succeeds() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, ADA).await?;
    let factor = turn_on(&app, &mut ada).await?;
    let (mut one, mut other) = (Visitor::new(&app), Visitor::new(&app));
    let (first, second) = (first_step(&mut one, "").await?, first_step(&mut other, "").await?);
    let code = factor.app.code(app.service.core().now(), 1)?;
    let (first, second) = both(send_code(&mut one, &first, &code), send_code(&mut other, &second, &code)).await?;
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 422]);
    assert_ne!(one.is_signed_in().await?, other.is_signed_in().await?);
    app.finish().await
}

async fn both<T>(one: impl Future<Output = Result<T>>, other: impl Future<Output = Result<T>>) -> Result<(T, T)> {
    tokio::try_join!(one, other)
}
