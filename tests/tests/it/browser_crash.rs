//! A browser crash loses no grab and charges nothing twice.

use anyhow::{Context, Result};
use futures::future::join_all;
use grabd_tests::harness::TestApp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn grabs_of_a_crashed_browser_are_rendered_again_and_billed_once() -> Result<()> {
    let app = TestApp::start(10, &[]).await?;
    let slow = app.site.url("/slow/1500");
    let creates = join_all((0..3).map(|_| app.create(json!({ "url": slow }))));
    let killer = async {
        // All captures are in progress once their pages have been requested.
        app.site.wait_for_hits("/slow/1500", 3).await;
        let browser = app.service.health().pids.first().copied().context("a browser")?;
        let pid = i32::try_from(browser).ok().and_then(Pid::from_raw).context("a pid")?;
        kill_process(pid, Signal::KILL)?;
        Ok::<_, anyhow::Error>(())
    };
    let (answers, killed) = tokio::join!(creates, killer);
    killed?;
    for answer in answers {
        let (status, grab) = answer?;
        assert_eq!(status, 200, "{grab}");
    }
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!((&usage["credits"]["total"], &usage["credits"]["held"]), (&json!(7), &json!(0)));
    app.finish().await
}
