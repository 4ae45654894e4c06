//! Every page in each of its states: its behaviour in a real browser, its accessibility, and its HTML.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use grabd_domain::ids::TeamId;
use grabd_engine::clock::Clock;
use grabd_store::NewTeam;
use grabd_tests::harness::{ALLOWED, Harness};
use grabd_tests::mail_server::{MailServer, Secrecy};
use grabd_tests::programs::run;
use grabd_tests::stripe::WEBHOOK_SECRET;
use serde_json::json;
use uuid::Uuid;

use super::billing::{Shop, history};
use super::mail::{forget, house_with};
use super::operator::appoint;
use super::run_script;
use super::team::team_of;
use super::visitor::{PASSWORD, Visitor, open_house};

/// Where photographs of all pages go, if anybody wants some.
const SCREENSHOTS: &str = "GRABD_TEST_SCREENSHOTS";

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_accessible_valid_and_does_what_it_says() -> Result<()> {
    let (house, closed) = (open_house(&[]).await?, Harness::start(0, &[]).await?);
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": house.service.public_url(),
        "closed": closed.service.public_url(),
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let said = run_script("walk.mjs", &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await?;
    closed.finish().await?;
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_made_watched_and_deleted_in_a_browser() -> Result<()> {
    let house = open_house(&[]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    team_of(&house, "ada@example.com", 25).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": house.service.public_url(),
        "site": house.site.origin(),
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let said = run_script("grabs.mjs", &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await?;
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_accounts_are_so_too() -> Result<()> {
    let server = MailServer::start(Secrecy::None).await?;
    let (silent, mailing) = (open_house(&[]).await?, house_with(&server, "", &[]).await?);
    Visitor::with_account(&mailing, "ada@example.com").await?;
    forget(&mailing, "ada@example.com").await?;
    let reset = server.wait_for(0).await?.link()?;
    walk("account.mjs", &silent, &mailing, &reset).await?;
    silent.finish().await?;
    mailing.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_and_their_invitations_are_so_too() -> Result<()> {
    let server = MailServer::start(Secrecy::None).await?;
    let (silent, mailing) = (open_house(&[]).await?, house_with(&server, "", &[]).await?);
    walk("teams.mjs", &silent, &mailing, "").await?;
    silent.finish().await?;
    mailing.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_so_too() -> Result<()> {
    let house = open_house(&[("webhooks.allow_http", "true")]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    team_of(&house, "ada@example.com", 25).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": house.service.public_url(),
        "site": house.site.origin(),
        "allowed": ALLOWED,
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let said = run_script("webhooks.mjs", &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await?;
    house.finish().await
}

/// Walks through pages of a service that sends no mail and of one that does, and validates them.
async fn walk(script: &'static str, silent: &Harness, mailing: &Harness, reset: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "silent": silent.service.public_url(),
        "mailing": mailing.service.public_url(),
        "reset": reset,
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let said = run_script(script, &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_looked_at_and_credits_are_bought_in_a_browser() -> Result<()> {
    let (shop, house) = (Shop::open().await?, open_house(&[]).await?);
    for house in [&shop.house, &house] {
        Visitor::with_account(house, "ada@example.com").await?;
    }
    let busy = shop.house.team.team;
    shop.house.welcome("bob@example.com").await?;
    history(&shop.house, busy).await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": shop.house.service.public_url(),
        "stripe": shop.stripe.url(),
        "secret": WEBHOOK_SECRET,
        "closed": house.service.public_url(),
        "email": "ada@example.com",
        "busy": "bob@example.com",
        "past": format!("/teams/{busy}/billing"),
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let said = run_script("billing.mjs", &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await?;
    house.finish().await?;
    shop.house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_up_buys_captures_and_leaves() -> Result<()> {
    let shop = Shop::open().await?;
    let dir = tempfile::tempdir()?;
    let arguments = json!({
        "origin": shop.house.service.public_url(),
        "site": shop.house.site.origin(),
        "stripe": shop.stripe.url(),
        "secret": WEBHOOK_SECRET,
        "email": "ada@example.com",
        "password": PASSWORD,
        "dir": dir.path(),
        "screenshots": std::env::var_os(SCREENSHOTS).map(PathBuf::from),
    });
    let said = run_script("journey.mjs", &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await?;
    shop.house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_look_after_a_service_in_a_browser() -> Result<()> {
    let fresh = Harness::start(0, &[("accounts.sign_up", "true")]).await?;
    let settings = [("accounts.sign_up", "true"), ("browser.slots", "1"), ("limits.async_queue", "3")];
    let busy = Harness::start(9000, &settings).await?;
    for house in [&fresh, &busy] {
        Visitor::with_account(house, "olga@example.com").await?;
        appoint(house, "olga@example.com", true).await?;
    }
    Visitor::with_account(&busy, "ada@example.com").await?;
    busy.welcome("a.rather.long.address.of.somebody@department.example.com").await?;
    let others = "The society of those whose names are long";
    for number in 0..30_u32 {
        let (id, now) = (TeamId(Uuid::from_u128(u128::from(number) + 1)), Clock::system().now());
        busy.service.store().create_team(NewTeam { id, name: format!("{others} {number}"), now }).await?;
    }
    // An endpoint that does not speak TLS, two failures, and a queue that is full for longer than the walk.
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
    let said = run_script("operator.mjs", &arguments).await?;
    assert_eq!(said, "nothing is wrong\n");
    validate(dir.path()).await?;
    fresh.finish().await?;
    busy.finish().await
}

/// Holds every page of a directory, and the style sheet, to what is written down about HTML and CSS.
async fn validate(dir: &Path) -> Result<()> {
    let pages = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    ensure!(pages.len() >= 12, "the walk left {} pages", pages.len());
    let (validator, sheet) = ("node_modules/vnu-jar/build/dist/vnu.jar", "crates/web/assets/style.css");
    let mut arguments = ["-jar", validator, "--Werror", "--also-check-css", sheet].map(str::to_owned).to_vec();
    arguments.extend(pages.iter().map(|page| page.display().to_string()));
    let (is_content, said) = run(Path::new("java"), &arguments).await?;
    ensure!(is_content && said.is_empty(), "the validator says:\n{said}");
    Ok(())
}
