//! Commands of the operator about keys, teams and users.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use grabd::config::Config;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::{Environment, Scope};
use grabd_engine::vault::{Vault, begin_rotation};
use grabd_tests::harness::TestApp;
use serde_json::json;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: grabd::admin::Args,
}

/// Runs `grabd admin …` with the SQLite database in the data directory.
async fn admin(data_dir: &Path, args: &[&str]) -> Result<bool> {
    let settings = BTreeMap::from([("data_dir", data_dir.display().to_string())]);
    let Cli { args } = Cli::try_parse_from([&["admin"], args].concat())?;
    grabd::admin::run(&Config::with(&settings)?, args).await
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_created_with_scopes_and_expiry_and_its_usage_is_counted() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let (dir, store, team) = (app.data_dir(), app.service.store(), app.team.team);
    let id = team.to_string();
    for wrong in [["--scopes", "admin"], ["--expires-days", "0"], ["--expires-days", "3651"]] {
        assert!(admin(&dir, &[&["key", "create", &*id][..], &wrong].concat()).await.is_err(), "{wrong:?}");
    }
    let create = ["key", "create", &id, "--name", "x", "--scopes", "read,manage", "--expires-days", "30"];
    ensure!(admin(&dir, &create).await?);
    let keys = store.accounts().list_keys(team).await?;
    let key = keys.iter().find(|key| key.name == "x").context("the key")?;
    assert_eq!(key.scopes.iter().collect::<Vec<_>>(), [Scope::Read, Scope::Manage]);
    let days = key.expires_at.context("an expiry")?.since(key.created_at).as_secs() / 86_400;
    assert_eq!((days, key.created_by), (30, None));
    // Grabs are counted for the key that created them.
    app.capture("/tiny", json!({})).await?;
    let usage = store.accounts().key_usage(team, key.created_at - std::time::Duration::from_secs(60)).await?;
    let live = keys.iter().find(|key| key.environment == Environment::Live && key.name != "x").context("a key")?;
    assert_eq!(usage.len(), 1);
    assert_eq!(usage.get(&live.id).map(|usage| (usage.grabs, usage.credits)), Some((1, 1)));
    ensure!(admin(&dir, &["key", "list", &id]).await?);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_suspends_and_deletes_users_and_teams() -> Result<()> {
    let app = TestApp::start_without_browser(5, &[]).await?;
    let (dir, store, team) = (app.data_dir(), app.service.store(), app.team.team);
    for email in ["ada@example.com", "bob@example.com"] {
        app.create_member(email).await?;
    }
    let user = async |email: &str| anyhow::Ok(store.accounts().find_user(&Email::parse(email)?).await?);
    ensure!(admin(&dir, &["user", "suspend", "bob@example.com", "--reason", "spam"]).await?);
    assert!(user("bob@example.com").await?.context("bob")?.suspension.is_some());
    ensure!(admin(&dir, &["user", "restore", "bob@example.com"]).await?);
    assert!(user("bob@example.com").await?.context("bob")?.suspension.is_none());
    // The only owner of a team with other members.
    let refused = admin(&dir, &["user", "delete", "ada@example.com"]).await.err().context("a refusal")?;
    assert!(format!("{refused:#}").contains("only owner"), "{refused:#}");
    ensure!(admin(&dir, &["user", "delete", "bob@example.com"]).await?);
    assert_eq!(user("bob@example.com").await?, None);

    let (id, name) = (team.to_string(), store.accounts().find_team(team).await?.context("team")?.name);
    ensure!(admin(&dir, &["team", "export", &id]).await?);
    assert!(admin(&dir, &["team", "delete", &id, "--confirm", "another"]).await.is_err());
    assert_eq!(app.get("/usage", app.live()).await?.0, 200);
    ensure!(admin(&dir, &["team", "delete", &id, "--confirm", &name]).await?);
    assert_eq!(app.get("/usage", app.live()).await?.0, 401);
    assert!(admin(&dir, &["team", "delete", &id, "--confirm", "Deleted team"]).await.is_err(), "it is deleted already");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_rotation_of_the_key_file_is_completed_by_the_same_command() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let nothing = admin(dir.path(), &["secrets", "rotate"]).await.err().context("a refusal")?;
    assert!(format!("{nothing:#}").contains("nothing is encrypted"), "{nothing:#}");
    let path = dir.path().join("secrets.key");
    drop(Vault::open(&path)?);
    let before = std::fs::read_to_string(&path)?;
    // The former command replaced the key, and was interrupted before it had encrypted everything again.
    ensure!(begin_rotation(&path)?);
    let during = std::fs::read_to_string(&path)?;
    assert_eq!(during.lines().nth(1), before.lines().next());
    ensure!(admin(dir.path(), &["secrets", "rotate"]).await?);
    let after = std::fs::read_to_string(&path)?;
    assert_eq!((after.lines().count(), after.lines().next()), (1, during.lines().next()));
    ensure!(admin(dir.path(), &["secrets", "rotate"]).await?);
    assert_ne!(std::fs::read_to_string(&path)?, after, "a complete rotation makes another key");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_replaces_the_secrets_of_links_and_webhooks() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (dir, store, key) = (app.data_dir(), app.service.store(), app.team.test_id.to_string());
    let body = json!({ "url": "https://example.com/hook", "events": ["*"] });
    let request = app.client.post(format!("{}/webhooks", app.base())).bearer_auth(app.test()).json(&body);
    let webhook: serde_json::Value = request.send().await?.error_for_status()?.json().await?;
    let webhook = webhook["id"].as_str().context("an id")?;
    let secret = async || {
        let signer = store.accounts().find_link_signer(app.team.test_id).await?.context("the key is in use")?;
        anyhow::Ok(signer.sealed_secret)
    };
    ensure!(admin(&dir, &["key", "link", &key]).await?);
    let former = secret().await?;
    ensure!(admin(&dir, &["key", "link", &key]).await? && secret().await? == former);
    ensure!(admin(&dir, &["key", "link", &key, "--replace"]).await? && secret().await? != former);
    ensure!(admin(&dir, &["webhook", "rotate", webhook]).await?);
    for wrong in [["webhook", "rotate", "x"], ["webhook", "rotate", &key]] {
        assert!(admin(&dir, &wrong).await.is_err(), "{wrong:?}");
    }
    let trail = store.audit().list_audit(grabd_domain::Timestamp::from_ms(0), None, 100).await?;
    let actions: Vec<_> = trail.iter().map(|entry| entry.action.as_str()).collect();
    for action in ["key.link_secret", "key.link_secret.replace", "webhook.secret"] {
        assert!(actions.contains(&action), "{action}: {actions:?}");
    }
    app.finish().await
}
