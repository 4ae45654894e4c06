//! An operator suspends a team: its keys and pages are refused at once, its open grabs end uncharged, and its images
//! stay.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::Timestamp;
use grabd_domain::credits::Balance;
use grabd_engine::clock::Clock;
use grabd_tests::harness::{PASSWORD, TestApp};
use serde_json::{Value, json};

use super::operator::operator;
use super::visitor::Visitor;

/// Upper limit of every wait.
const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn suspended_team_is_refused_everywhere_until_it_is_restored() -> Result<()> {
    let app = TestApp::start(9, &[("accounts.sign_up", "true"), ("browser.slots", "1")]).await?;
    let (store, team) = (app.service.store(), app.team.team);
    app.create_member("ada@example.com").await?;
    let mut ada = Visitor::new(&app);
    ensure!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status == 303);
    let mut olga = operator(&app).await?;
    let (done, _) = app.capture("/tiny", json!({})).await?;
    let image = done["image_url"].as_str().context("image_url")?.to_owned();
    // One is in the browser, two are waiting.
    let mut open = Vec::new();
    for path in ["/hang", "/tiny", "/tiny"] {
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.live());
        let request = request.header("prefer", "respond-async").json(&json!({ "url": app.site.url(path) }));
        let created: Value = request.send().await?.json().await?;
        open.push(created["id"].as_str().context("id")?.to_owned());
    }
    app.site.wait_for_hits("/hang", 1).await;

    let page = format!("/operator/teams/{team}");
    let token = olga.get(&page).await?.hidden_field("form_token")?;
    let form = |reason| [("form_token", token.clone()), ("suspend_reason", reason)];
    for (reason, status) in [("", 422), ("phishing pages", 303), ("phishing pages", 303)] {
        let form = form(reason.to_owned());
        let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(olga.post(&format!("{page}/suspend"), &form).await?.status, status, "{reason}");
    }
    let shown = olga.get(&page).await?;
    assert!(shown.body.contains("phishing pages") && shown.body.contains("Restore team"), "{}", shown.body);

    // Keys and pages, at once.
    for key in [app.live(), app.test()] {
        let (status, body) = app.get("/usage", key).await?;
        assert_eq!((status, &body["error"]["code"]), (401, &json!("unauthorized")));
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("team is suspended"), "{message}");
    }
    let (status, body) = app.create(json!({ "url": app.site.url("/tiny") })).await?;
    assert_eq!((status, &body["error"]["code"]), (401, &json!("unauthorized")));
    for path in ["grabs", "keys", "people", "billing"] {
        let refused = ada.get(&format!("/teams/{team}/{path}")).await?;
        assert!(refused.status == 403 && refused.body.contains("This team is suspended"), "{path}: {}", refused.body);
    }
    let teams = ada.get("/teams").await?;
    assert!(teams.body.contains("is suspended"), "{}", teams.body);
    // The reason is for operators.
    assert!(!teams.body.contains("phishing"), "{}", teams.body);
    let stranger = Visitor::with_account(&app, "eve@example.com").await?.get(&format!("/teams/{team}/grabs")).await?;
    assert_eq!(stranger.status, 404);

    // Open grabs ended uncharged, and the image stays.
    let balance = Balance::of(&store.credits().lots(team).await?, Clock::system().now());
    assert_eq!((balance.prepaid, balance.held), (8, 0));
    assert_eq!(app.client.get(&image).send().await?.status(), 200);

    let trail = store.audit().list_audit(Timestamp::from_ms(0), None, 100).await?;
    let suspended: Vec<_> = trail.iter().filter(|entry| entry.action == "team.suspend").collect();
    let [entry] = &suspended[..] else { anyhow::bail!("{trail:?}") };
    assert_eq!(entry.email.as_deref(), Some("olga@example.com"));
    assert_eq!((entry.team, entry.detail.as_deref()), (Some(team), Some("phishing pages")));
    assert_eq!(entry.address.as_deref(), Some("127.0.0.1"));
    let audit = olga.get("/operator/audit").await?;
    assert!(audit.body.contains("team.suspend") && audit.body.contains("olga@example.com"), "{}", audit.body);

    assert_eq!(olga.post(&format!("{page}/restore"), &[("form_token", &token)]).await?.status, 303);
    assert_eq!(ada.get(&format!("/teams/{team}/grabs")).await?.status, 200);
    for id in &open {
        let (status, grab) = app.get(&format!("/grabs/{id}"), app.live()).await?;
        assert_eq!((status, &grab["status"]), (200, &json!("failed")), "{grab}");
        assert!(grab["error_message"].as_str().is_some_and(|text| text.contains("suspended")), "{grab}");
    }
    // The slot is free again.
    tokio::time::timeout(LIMIT, app.capture("/tiny", json!({}))).await??;
    app.finish().await
}
