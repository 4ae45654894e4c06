//! One credit per done live grab, exactly.

use anyhow::Result;
use futures::future::join_all;
use grabd_tests::harness::{Harness, REFUSED};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn nobody_overspends_and_only_pictures_cost() -> Result<()> {
    let harness = Harness::start(5, &[]).await?;
    // What gives no picture costs nothing.
    for (path, status) in [("/nocontent", 500), ("/status/403", 422), ("/download", 500), ("/loop", 500)] {
        let (seen, answer) = harness.create(json!({ "url": harness.site.url(path) })).await?;
        assert_eq!(seen, status, "{path}: {answer}");
    }
    let away = harness.site.url(&format!("/redirect?to=http://{REFUSED}:8801/"));
    let (status, answer) = harness.create(json!({ "url": away })).await?;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("ssrf_detected")));
    let (_, usage) = harness.get("/usage", harness.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(5));

    // Sixteen at once want five credits.
    let creates = (0..16).map(|_| harness.create(json!({ "url": harness.site.url("/tiny") })));
    let mut statuses: Vec<u16> = Vec::new();
    for answer in join_all(creates).await {
        statuses.push(answer?.0);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; 5], vec![402; 11]].concat());

    let (_, usage) = harness.get("/usage", harness.live()).await?;
    assert_eq!(usage["credits"], json!({"subscription": 0, "prepaid": 0, "total": 0, "held": 0}));
    let (_, done) = harness.get("/grabs?status=done&limit=100", harness.live()).await?;
    assert_eq!(done["data"].as_array().map(Vec::len), Some(5));
    // Placeholders go on.
    let body = json!({ "url": "https://example.com/" });
    let request = harness.client.post(format!("{}/grabs", harness.base())).bearer_auth(harness.test()).json(&body);
    assert_eq!(request.send().await?.status(), 200);
    harness.finish().await
}
