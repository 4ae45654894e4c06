//! A browser that dies takes no grab with it and costs nobody twice.

use anyhow::{Context, Result};
use futures::future::join_all;
use grabd_tests::harness::Harness;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn its_grabs_are_rendered_again_and_billed_once() -> Result<()> {
    let harness = Harness::start(10, &[]).await?;
    let slow = harness.site.url("/slow/1500");
    let creates = join_all((0..3).map(|_| harness.create(json!({ "url": slow }))));
    let killer = async {
        // As soon as the pages have been asked for, the browser is in the middle of it.
        harness.site.wait_for_hits("/slow/1500", 3).await;
        let browser = harness.service.health().pids.first().copied().context("a browser")?;
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
    let (_, usage) = harness.get("/usage", harness.live()).await?;
    assert_eq!((&usage["credits"]["total"], &usage["credits"]["held"]), (&json!(7), &json!(0)));
    harness.finish().await
}
