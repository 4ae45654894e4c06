//! Deletion on request: the picture goes, the grab stays.

use anyhow::{Context, Result};
use grabd_tests::harness::Harness;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn delete(harness: &Harness, id: &str, key: &str) -> Result<(StatusCode, Value)> {
    let url = format!("{}/grabs/{id}", harness.base());
    let response = harness.client.request(Method::DELETE, url).bearer_auth(key).send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    Ok((status, if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_picture_is_gone_and_its_grab_stays() -> Result<()> {
    let harness = Harness::start(3, &[]).await?;
    let (live, _) = harness.capture("/tiny", json!({})).await?;
    let request = harness.client.post(format!("{}/grabs", harness.base())).bearer_auth(harness.test());
    let test: Value = request.json(&json!({ "url": "https://example.com/" })).send().await?.json().await?;

    for (grab, owner, stranger) in [(&live, harness.live(), harness.test()), (&test, harness.test(), harness.live())] {
        let id = grab["id"].as_str().context("id")?;
        let address = grab["image_url"].as_str().context("image_url")?;
        let address = if address.starts_with('/') {
            format!("{}{address}", harness.service.public_url())
        } else {
            address.to_owned()
        };
        let image = || harness.client.get(&address).send();
        assert_eq!(image().await?.status(), 200);

        // Somebody else's grab is as unknown as any other, and stays whole.
        for (id, key) in [(id, stranger), ("01993e1c-7b1a-7000-8000-0123456789ab", owner), ("x", owner)] {
            let (status, body) = delete(&harness, id, key).await?;
            assert_eq!((status.as_u16(), &body["error"]["code"]), (404, &json!("not_found")), "{id}");
        }
        assert_eq!(image().await?.status(), 200);

        // At once, and as often as somebody asks.
        for _ in 0..2 {
            assert_eq!(delete(&harness, id, owner).await?, (StatusCode::NO_CONTENT, Value::Null));
            assert_eq!(image().await?.status(), 404);
        }
        let (status, after) = harness.get(&format!("/grabs/{id}"), owner).await?;
        let mut expected = grab.clone();
        expected["image_url"] = Value::Null;
        assert_eq!((status, after), (200, expected));
    }
    let (_, usage) = harness.get("/usage", harness.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(2), "a picture that was taken stays paid for");
    let left = files(&harness.data_dir().join("images"))?;
    assert!(left.is_empty(), "{left:?}");
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_a_grab_is_told_of_its_deletion() -> Result<()> {
    let harness = Harness::start(1, &[("browser.slots", "1")]).await?;
    // The shot waits, so that the grab is open while it is deleted.
    let body = json!({ "url": harness.site.url("/tiny"), "delay_ms": 3000 });
    let request = harness.client.post(format!("{}/grabs?async=true", harness.base())).bearer_auth(harness.live());
    let grab: Value = request.json(&body).send().await?.json().await?;
    let id = grab["id"].as_str().context("id")?;
    assert_eq!(delete(&harness, id, harness.live()).await?.0, StatusCode::NO_CONTENT);
    let events = harness.client.get(format!("{}/grabs/{id}/events", harness.base())).bearer_auth(harness.live());
    let told = events.send().await?.text().await?;
    let last = told.lines().rfind(|line| line.starts_with("data: ")).context("an event")?;
    let last: Value = serde_json::from_str(last.trim_start_matches("data: "))?;
    assert_eq!((&last["status"], &last["image_url"]), (&json!("done"), &Value::Null), "{told}");
    harness.finish().await
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
