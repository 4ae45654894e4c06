//! Restricted keys, the deletion of teams and accounts, and the export of a team's data.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::Balance;
use grabd_domain::team_limits::LimitChange;
use grabd_engine::clock::Clock;
use grabd_tests::harness::{PASSWORD, TestApp};
use serde_json::{Value, json};

use super::users::first_team;
use super::visitor::{PASSWORD as VISITOR_PASSWORD, PageResponse, Visitor, start_app};

/// Upper limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);

async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    let form_token = visitor.get(path).await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

fn shown_key(page: &PageResponse) -> Result<String> {
    let key = page.body.split("value=\"sk_").nth(1).and_then(|rest| rest.split('"').next());
    Ok(format!("sk_{}", key.with_context(|| format!("no key in {}", page.body))?))
}

#[tokio::test(flavor = "multi_thread")]
async fn restricted_key_is_forbidden_what_it_lacks() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let keys = format!("{}/keys", first_team(&mut ada).await?);
    let form = |scopes: &'static [&'static str], days: &'static str| {
        let mut fields = vec![("name", "dashboard"), ("environment", "test"), ("days", days)];
        fields.extend(scopes.iter().map(|scope| ("scopes", *scope)));
        fields
    };
    for (fields, complaint) in [
        (form(&[], ""), "at least one permission"),
        (form(&["admin"], ""), "at least one permission"),
        (form(&["read"], "0"), "from 1 to 3650"),
        (form(&["read"], "soon"), "from 1 to 3650"),
    ] {
        let refused = send(&mut ada, &keys, &fields).await?;
        assert!(refused.status == 422 && refused.body.contains(complaint), "{fields:?}: {}", refused.body);
    }
    let key = shown_key(&send(&mut ada, &keys, &form(&["read"], "30")).await?)?;
    assert_eq!(app.get("/usage", &key).await?.0, 200);
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(&key);
    let refused = request.json(&json!({ "url": "https://example.com/" })).send().await?;
    assert_eq!(refused.status(), 403);
    let metadata = format!("resource_metadata=\"{}/.well-known/oauth-protected-resource\"", app.service.public_url());
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"grabs\", {metadata}");
    assert_eq!(refused.headers()["www-authenticate"], challenge);
    let body: Value = refused.json().await?;
    assert_eq!(body["error"]["code"], "forbidden");
    ensure!(body["error"]["message"].as_str().is_some_and(|text| text.contains("`create`")), "{body}");
    let list = ada.get(&keys).await?;
    for shown in ["Only read", "Expires <time", "by <bdi>ada@example.com</bdi>", "0 captures in 30 days"] {
        assert!(list.body.contains(shown), "{shown}: {}", list.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_exports_and_deletes_a_team_and_everything_is_erased() -> Result<()> {
    let app = TestApp::start(9, &[("accounts.sign_up", "true"), ("browser.slots", "1")]).await?;
    let (store, team) = (app.service.store(), app.team.team);
    app.create_member("ada@example.com").await?;
    let mut ada = Visitor::new(&app);
    ensure!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status == 303);
    let (done, _) = app.capture("/tiny", json!({})).await?;
    let image = done["image_url"].as_str().context("image_url")?.to_owned();
    for path in ["/hang", "/tiny"] {
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.live());
        let request = request.header("prefer", "respond-async").json(&json!({ "url": app.site.url(path) }));
        assert_eq!(request.send().await?.status(), 202);
    }
    app.site.wait_for_hits("/hang", 1).await;
    store.limits().change_team_limits(team, vec![LimitChange::parse("keys=7")?], Clock::system().now()).await?;

    let export = ada.get(&format!("/teams/{team}/export")).await?;
    assert!(export.header("content-disposition").starts_with("attachment; filename=\"grabd-team-"));
    let lines: Vec<Value> = export.body.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    for (kind, count) in [("team", 1), ("limit", 1), ("member", 1), ("key", 2), ("grab", 3), ("ledger", 2), ("end", 1)]
    {
        assert_eq!(kinds.iter().filter(|known| **known == kind).count(), count, "{kind}: {kinds:?}");
    }
    assert_eq!(kinds.last(), Some(&"end"));
    for secret in [app.live(), app.test()] {
        assert!(!export.body.contains(secret), "the export has no keys");
    }

    let page = format!("/teams/{team}/delete");
    let name = store.accounts().find_team(team).await?.context("team")?.name;
    for (name, password, complaint) in
        [("Another", PASSWORD, "name of the team exactly"), (&*name, "wrong password", "password is wrong")]
    {
        let refused = send(&mut ada, &page, &[("name", name), ("password", password)]).await?;
        assert!(refused.status == 422 && refused.body.contains(complaint), "{}", refused.body);
    }
    assert_eq!(app.get("/usage", app.live()).await?.0, 200, "nothing is deleted without confirmation");
    let deleted = send(&mut ada, &page, &[("name", &name), ("password", PASSWORD)]).await?;
    assert_eq!((deleted.status, deleted.location()), (303, "/teams?deleted"), "{}", deleted.body);

    for key in [app.live(), app.test()] {
        assert_eq!(app.get("/usage", key).await?.0, 401);
    }
    assert_eq!(ada.get(&format!("/teams/{team}/grabs")).await?.status, 404);
    let balance = Balance::of(&store.credits().lots(team).await?, Clock::system().now());
    assert_eq!((balance.prepaid, balance.held), (8, 0), "credits of open grabs are released");
    // The sweep erases the rest.
    tokio::time::timeout(LIMIT, async {
        loop {
            let left = store.grabs().export_grabs(team, Environment::Live, None, 9).await?.grabs.len();
            let gone = app.client.get(&image).send().await?.status() == 404;
            if left == 0 && gone && store.retention().list_erasures().await?.is_empty() {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .context("the erasure did not end")??;
    assert_eq!(store.credits().verify_ledger().await?, []);
    let trail = store.audit().list_audit(Timestamp::from_ms(0), None, 100).await?;
    ensure!(trail.iter().any(|entry| entry.action == "team.delete"), "{trail:?}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn user_deletes_their_account_and_is_signed_out() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    let keys = format!("{team}/keys");
    let fields = [("name", "A key"), ("environment", "test"), ("scopes", "read")];
    let key = shown_key(&send(&mut ada, &keys, &fields).await?)?;
    let refused = send(&mut ada, "/account/delete", &[("password", "wrong password")]).await?;
    assert!(refused.status == 422 && refused.body.contains("password is wrong"), "{}", refused.body);
    let mut elsewhere = Visitor::new(&app);
    ensure!(elsewhere.sign_in("ada@example.com", VISITOR_PASSWORD, "").await?.status == 303);
    let deleted = send(&mut ada, "/account/delete", &[("password", VISITOR_PASSWORD)]).await?;
    assert_eq!((deleted.status, deleted.location()), (303, "/sign-in?deleted"), "{}", deleted.body);
    assert_eq!(app.get("/usage", &key).await?.0, 401, "the team had no other member");
    for visitor in [&mut ada, &mut elsewhere] {
        assert!(visitor.get("/account").await?.location().starts_with("/sign-in"));
    }
    let mut again = Visitor::new(&app);
    assert_eq!(again.sign_in("ada@example.com", VISITOR_PASSWORD, "").await?.status, 422);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_user_cannot_sign_in_and_is_told_so() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let store = app.service.store();
    let users = store.accounts().list_users().await?;
    let user = users.iter().find(|user| user.email.as_str() == "ada@example.com").context("a person")?.id;
    store.accounts().suspend_user(user, "spam", Clock::system().now()).await?;
    assert!(ada.get("/account").await?.location().starts_with("/sign-in"));
    let mut again = Visitor::new(&app);
    let refused = again.sign_in("ada@example.com", VISITOR_PASSWORD, "").await?;
    assert!(refused.status == 403 && refused.body.contains("account is suspended"), "{}", refused.body);
    assert!(!refused.body.contains("spam"), "the reason is for operators");
    let wrong = again.sign_in("ada@example.com", "a wrong password", "").await?;
    assert_eq!(wrong.status, 422, "only who knows the password learns of the suspension");
    store.accounts().restore_user(user, Clock::system().now()).await?;
    assert_eq!(again.sign_in("ada@example.com", VISITOR_PASSWORD, "").await?.status, 303);
    app.finish().await
}
