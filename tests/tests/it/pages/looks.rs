//! Every page in each of its states: behaviour in a real browser, accessibility, and HTML validity.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use grabd::serve::Rendering;
use grabd_domain::ids::TeamId;
use grabd_engine::clock::Clock;
use grabd_store::accounts::NewTeam;
use grabd_tests::forward::LocalOrigin;
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::mail_server::{MailServer, TlsMode};
use grabd_tests::programs::run;
use grabd_tests::stripe::WEBHOOK_SECRET;
use serde_json::json;
use uuid::Uuid;

use super::app_access::forget_creators;
use super::billing::{BillingApp, history};
use super::mail::{request_password_reset, start_app_with_mail};
use super::monitors::monitor_with_runs;
use super::operator::set_operator;
use super::run_script;
use super::team::team_of;
use super::visitor::{PASSWORD, Visitor, start_app, start_capturing_app};
use super::webhooks::create_webhook;

/// The directory for screenshots of all pages, if set.
const SCREENSHOTS: &str = "GRABD_TEST_SCREENSHOTS";

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_and_app_pages_pass_all_audits() -> Result<()> {
    let (app, closed) = (start_app(&[]).await?, TestApp::start_without_browser(0, &[]).await?);
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": app.service.public_url(),
        "closed": closed.service.public_url(),
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("walk.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    closed.finish().await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_pages_pass_all_audits() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    team_of(&app, "ada@example.com", 25).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": app.service.public_url(),
        "site": app.site.origin(),
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("grabs.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn key_and_account_pages_pass_all_audits() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let (silent, mailing) = (start_app(&[]).await?, start_app_with_mail(&server, "", &[]).await?);
    Visitor::with_account(&mailing, "ada@example.com").await?;
    request_password_reset(&mailing, "ada@example.com").await?;
    let reset = server.wait_for(0).await?.link()?;
    walk("account.mjs", &silent, &mailing, &reset).await?;
    silent.finish().await?;
    mailing.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn second_factor_pages_pass_all_audits() -> Result<()> {
    let app = start_app(&[("security.require_second_factor_for_operators", "true")]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    set_operator(&app, "ada@example.com", true).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": app.service.public_url(),
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("second_factor.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn passkey_pages_pass_all_audits_and_a_browser_signs_in() -> Result<()> {
    let local = LocalOrigin::listen().await?;
    let origin = local.origin();
    let app = start_app(&[("oauth.auth_url", &origin)]).await?;
    let _forwarded = local.forward(app.service.http());
    Visitor::with_account(&app, "ada@example.com").await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": origin,
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("passkeys.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn team_pages_pass_all_audits() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let (silent, mailing) = (start_app(&[]).await?, start_app_with_mail(&server, "", &[]).await?);
    Visitor::with_account(&mailing, "ada@example.com").await?;
    walk("teams.mjs", &silent, &mailing, "").await?;
    silent.finish().await?;
    mailing.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_pages_pass_all_audits() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    Visitor::with_sign_up(&app, "ada@example.com").await?;
    let link = server.wait_for(0).await?.link()?;
    walk("verify.mjs", &app, &app, &link).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_pages_pass_all_audits() -> Result<()> {
    let app = start_capturing_app(&[("webhooks.allow_http", "true")]).await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let bobs = team_of(&app, "bob@example.com", 0).await?;
    let former = format!("http://{ALLOWED}/former");
    create_webhook(&mut bob, bobs, &[("url", &*former), ("events", "*"), ("environment", "live")]).await?;
    forget_creators(&app).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    team_of(&app, "ada@example.com", 25).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": app.service.public_url(),
        "site": app.site.origin(),
        "allowed": ALLOWED,
        "email": "ada@example.com",
        "former": "bob@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("webhooks.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn monitor_pages_pass_all_audits() -> Result<()> {
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    let monitor = monitor_with_runs(&app, "bob@example.com").await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": app.service.public_url(),
        "email": "ada@example.com",
        "watcher": "bob@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
        "monitor": monitor,
    });
    let output = run_script("monitors.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn site_pages_pass_all_audits() -> Result<()> {
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    team_of(&app, "ada@example.com", 5).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": app.service.public_url(),
        "site": app.site.origin(),
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("sites.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await
}

/// Runs a walk through a service without mail and one with mail, and validates the pages.
async fn walk(script: &'static str, silent: &TestApp, mailing: &TestApp, reset: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "silent": silent.service.public_url(),
        "mailing": mailing.service.public_url(),
        "reset": reset,
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script(script, &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn billing_pages_pass_all_audits() -> Result<()> {
    let (billing_app, app) = (BillingApp::open().await?, start_app(&[]).await?);
    for app in [&billing_app.app, &app] {
        Visitor::with_account(app, "ada@example.com").await?;
    }
    let busy = billing_app.app.team.team;
    billing_app.app.create_member("bob@example.com").await?;
    history(&billing_app.app, busy).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": billing_app.app.service.public_url(),
        "stripe": billing_app.stripe.url(),
        "secret": WEBHOOK_SECRET,
        "closed": app.service.public_url(),
        "email": "ada@example.com",
        "busy": "bob@example.com",
        "past": format!("/teams/{busy}/billing"),
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("billing.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    app.finish().await?;
    billing_app.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_user_journey_passes_all_audits() -> Result<()> {
    let billing_app = BillingApp::with(Rendering::Chromium).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": billing_app.app.service.public_url(),
        "site": billing_app.app.site.origin(),
        "stripe": billing_app.stripe.url(),
        "secret": WEBHOOK_SECRET,
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("journey.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    billing_app.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_pages_pass_all_audits() -> Result<()> {
    let fresh = TestApp::start(0, &[("accounts.sign_up", "true")]).await?;
    let settings = [
        ("accounts.sign_up", "true"),
        ("browser.slots", "1"),
        ("limits.async_queue", "3"),
        ("abuse.deny_domains", "config.example.net"),
    ];
    let busy = TestApp::start(9000, &settings).await?;
    for app in [&fresh, &busy] {
        Visitor::with_account(app, "olga@example.com").await?;
        set_operator(app, "olga@example.com", true).await?;
    }
    Visitor::with_account(&busy, "ada@example.com").await?;
    busy.create_member("a.rather.long.address.of.somebody@department.example.com").await?;
    let others = "The society of those whose names are long";
    for number in 0..30_u32 {
        let (id, now) = (TeamId(Uuid::from_u128(u128::from(number) + 1)), Clock::system().now());
        busy.service.store().accounts().create_team(NewTeam { id, name: format!("{others} {number}"), now }).await?;
    }
    // An endpoint that does not support TLS, two failures, and a queue that stays full during the walk.
    let hook = busy.site.url("/tiny").replace("http:", "https:");
    let hook = busy.client.post(format!("{}/webhooks", busy.base())).json(&json!({ "url": hook }));
    ensure!(hook.bearer_auth(busy.live()).send().await?.status() == 201, "no endpoint");
    for (path, wait, status) in [
        ("/tiny", "respond-async", 202),
        ("/tiny", "", 200),
        ("/status/403", "", 422),
        ("/nocontent", "", 500),
        ("/hang", "respond-async", 202),
        ("/hang", "respond-async", 202),
        ("/hang", "respond-async", 202),
    ] {
        let create = busy.client.post(format!("{}/grabs", busy.base())).bearer_auth(busy.live()).header("prefer", wait);
        let answer = create.json(&json!({ "url": busy.site.url(path) })).send().await?;
        ensure!(answer.status() == status, "{path}: {} {}", answer.status(), answer.text().await?);
    }
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "fresh": fresh.service.public_url(),
        "busy": busy.service.public_url(),
        "team": busy.team.team.to_string(),
        "others": others,
        "operator": "olga@example.com",
        "member": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let output = run_script("operator.mjs", &arguments).await?;
    assert_eq!(output, "no findings\n");
    validate(dir.path()).await?;
    fresh.finish().await?;
    busy.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn style_sheet_is_valid() -> Result<()> {
    run_validator(&["--css".to_owned(), "crates/web/assets/style.css".to_owned()]).await
}

/// Validates the HTML of all pages in a directory.
async fn validate(dir: &Path) -> Result<()> {
    let pages = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    ensure!(pages.len() >= 10, "the walk saved {} pages", pages.len());
    run_validator(&pages.iter().map(|page| page.display().to_string()).collect::<Vec<_>>()).await
}

/// Runs the validator of HTML and CSS.
async fn run_validator(files: &[String]) -> Result<()> {
    // It runs for seconds: code that is compiled quickly and not well takes half of the processor time.
    let machine = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss4m"];
    let options = ["-jar", "node_modules/vnu-jar/build/dist/vnu.jar", "--Werror"];
    let mut arguments: Vec<_> = machine.into_iter().chain(options).map(str::to_owned).collect();
    arguments.extend_from_slice(files);
    let (success, output) = run(Path::new("java"), &arguments).await?;
    ensure!(success && output.is_empty(), "the validator reports:\n{output}");
    Ok(())
}
