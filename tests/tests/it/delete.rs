//! Deletion on request: the image is deleted, the grab remains.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn delete(app: &TestApp, id: &str, key: &str) -> Result<(StatusCode, Value)> {
    let url = format!("{}/grabs/{id}", app.base());
    let response = app.client.request(Method::DELETE, url).bearer_auth(key).send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    Ok((status, if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? }))
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_removes_the_image_and_keeps_the_grab() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let (live, _) = app.capture("/tiny", json!({})).await?;
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    let test: Value = request.json(&json!({ "url": "https://example.com/" })).send().await?.json().await?;

    for (grab, owner, stranger) in [(&live, app.live(), app.test()), (&test, app.test(), app.live())] {
        let id = grab["id"].as_str().context("id")?;
        let address = grab["image_url"].as_str().context("image_url")?;
        let address = if address.starts_with('/') {
            format!("{}{address}", app.service.public_url())
        } else {
            address.to_owned()
        };
        let image = || app.client.get(&address).send();
        assert_eq!(image().await?.status(), 200);

        // Grabs of other environments are not found, and are not deleted.
        for (id, key) in [(id, stranger), ("01993e1c-7b1a-7000-8000-0123456789ab", owner), ("x", owner)] {
            let (status, body) = delete(&app, id, key).await?;
            assert_eq!((status.as_u16(), &body["error"]["code"]), (404, &json!("not_found")), "{id}");
        }
        assert_eq!(image().await?.status(), 200);

        // Deletion takes effect at once and is idempotent.
        for _ in 0..2 {
            assert_eq!(delete(&app, id, owner).await?, (StatusCode::NO_CONTENT, Value::Null));
            assert_eq!(image().await?.status(), 404);
        }
        let (status, after) = app.get(&format!("/grabs/{id}"), owner).await?;
        let mut expected = grab.clone();
        expected["image_url"] = Value::Null;
        assert_eq!((status, after), (200, expected));
    }
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(2), "a deleted image is not refunded");
    let left = files(&app.data_dir().join("images"))?;
    assert!(left.is_empty(), "{left:?}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_of_an_open_grab_is_visible_to_watchers() -> Result<()> {
    let app = TestApp::start(1, &[("browser.slots", "1")]).await?;
    // The delay keeps the grab open while it is deleted.
    let body = json!({ "url": app.site.url("/tiny"), "delay_ms": 3000 });
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let grab: Value = request.json(&body).send().await?.json().await?;
    let id = grab["id"].as_str().context("id")?;
    assert_eq!(delete(&app, id, app.live()).await?.0, StatusCode::NO_CONTENT);
    let events = app.client.get(format!("{}/grabs/{id}/events", app.base())).bearer_auth(app.live());
    let events_text = events.send().await?.text().await?;
    let last = events_text.lines().rfind(|line| line.starts_with("data: ")).context("an event")?;
    let last: Value = serde_json::from_str(last.trim_start_matches("data: "))?;
    assert_eq!((&last["status"], &last["image_url"]), (&json!("done"), &Value::Null), "{events_text}");
    app.finish().await
}

fn files(directory: &std::path::Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}
