//! Each done live grab costs exactly one credit.

use anyhow::Result;
use futures::future::join_all;
use grabd_tests::harness::{REFUSED, TestApp};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creates_cannot_overspend_and_only_done_grabs_cost() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    // Failed captures cost nothing.
    for (path, status) in [("/nocontent", 500), ("/status/403", 422), ("/download", 500), ("/loop", 500)] {
        let (seen, answer) = app.create(json!({ "url": app.site.url(path) })).await?;
        assert_eq!(seen, status, "{path}: {answer}");
    }
    let away = app.site.url(&format!("/redirect?to=http://{REFUSED}:8801/"));
    let (status, answer) = app.create(json!({ "url": away })).await?;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("ssrf_detected")));
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(5));

    // Sixteen concurrent creates for five credits.
    let creates = (0..16).map(|_| app.create(json!({ "url": app.site.url("/tiny") })));
    let mut statuses: Vec<u16> = Vec::new();
    for answer in join_all(creates).await {
        statuses.push(answer?.0);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; 5], vec![402; 11]].concat());

    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"], json!({"subscription": 0, "prepaid": 0, "total": 0, "held": 0}));
    let (_, done) = app.get("/grabs?status=done&limit=100", app.live()).await?;
    assert_eq!(done["data"].as_array().map(Vec::len), Some(5));
    // Placeholders still work.
    let body = json!({ "url": "https://example.com/" });
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
    assert_eq!(request.send().await?.status(), 200);
    app.finish().await
}
