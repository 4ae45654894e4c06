//! Devices, vision deficiencies and fixed clocks, through the whole service.

use anyhow::{Result, ensure};
use grabd_tests::harness::TestApp;
use image::GenericImageView as _;
use serde_json::json;

use super::files::credits;

#[tokio::test(flavor = "multi_thread")]
async fn page_looks_as_asked_and_unknown_looks_are_refused_without_charge() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let (_, phone) = app.capture("/tiny", json!({ "device": "galaxy-s24", "scale": 1 })).await?;
    assert_eq!(image::load_from_memory(&phone)?.dimensions(), (360, 780));
    let moving = || json!({ "freeze_all": true, "vision": "achromatopsia", "block": ["chats", "social"] });
    // Scripts draw random pixels on this page.
    let (grab, first) = app.capture("/noise", moving()).await?;
    assert_eq!(grab["blocked"], json!({ "guard": 0, "ads": 0, "trackers": 0, "asked": 0 }));
    let (_, again) = app.capture("/noise", moving()).await?;
    ensure!(first == again, "the captures differ");
    assert_eq!(credits(&app).await?, json!(0));
    for (name, value, allowed) in [
        ("device", json!("iphone-1"), "one of \"desktop\", \"phone\", \"tablet\", \"iphone-se\", "),
        ("vision", json!("blurredVision"), "one of \"none\", \"deuteranopia\", "),
        (
            "block",
            json!(["chat"]),
            "an array of some of \"ads\", \"trackers\", \"cookie_banners\", \"chats\", \"social\"",
        ),
        ("freeze_all", json!("all"), "true or false"),
    ] {
        let refused = app.create_refused(json!({ "url": app.site.url("/tiny"), name: value })).await?;
        ensure!(refused.message.starts_with(&format!("`{name}` must be {allowed}")), "{refused:?}");
    }
    app.finish().await
}
