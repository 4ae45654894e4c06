//! Ads and trackers are blocked by the operator's lists, or not at all.

use anyhow::Result;
use grabd_domain::credits::Balance;
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

async fn create(app: &TestApp, path: &str, block: &[&str], key: &str) -> Result<(u16, Value)> {
    let body = json!({ "url": app.site.url(path), "block": block });
    let response = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&body).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn content_without_a_list_is_rejected_with_what_the_operator_must_do() -> Result<()> {
    let directory = tempfile::tempdir()?;
    // A broken list does not prevent the start.
    std::fs::write(directory.path().join("ads.txt"), "<!doctype html><title>404</title>")?;
    std::fs::write(directory.path().join("trackers.txt"), "||tracker.example^\n")?;
    let app = TestApp::start(9, &[("browser.filter_lists", &*directory.path().to_string_lossy())]).await?;
    for key in [app.live(), app.test()] {
        let (status, body) = create(&app, "/tiny", &["cookie_banners", "ads"], key).await?;
        assert_eq!((status, &body["error"]["code"]), (400, &json!("bad_request")), "{body}");
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(
            ["`block`", "ads.txt", "`browser.filter_lists`"].iter().all(|part| message.contains(part)),
            "{message}"
        );
        assert_eq!(create(&app, "/tiny", &["nothing"], key).await?.0, 400);
    }
    let (status, grab) = create(&app, "/tiny", &["trackers", "cookie_banners"], app.live()).await?;
    assert_eq!((status, &grab["blank"], &grab["consent"]), (200, &json!(false), &Value::Null), "{grab}");
    assert_eq!(grab["blocked"], json!({ "guard": 0, "ads": 0, "trackers": 0, "asked": 0 }));
    // Requests that block nothing are answered as before.
    let (_, grab) = create(&app, "/tiny", &[], app.live()).await?;
    assert!(["consent", "blocked"].iter().all(|name| grab.get(name).is_none()), "{grab}");
    assert_eq!(grab["challenge"], Value::Null);
    let balance = Balance::of(&app.service.store().credits().lots(app.team.team).await?, Clock::system().now());
    assert_eq!((balance.prepaid, balance.held), (7, 0));
    app.finish().await
}
