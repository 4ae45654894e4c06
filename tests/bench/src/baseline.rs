//! The baseline: chromiumoxide with the same browser and a prepared context, without grabd.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use chromiumoxide::cdp::browser_protocol::emulation::SetDeviceMetricsOverrideParams;
use chromiumoxide::cdp::browser_protocol::page::{
    CaptureScreenshotFormat, CaptureScreenshotParams, EventLoadEventFired, NavigateParams, Viewport,
};
use chromiumoxide::cdp::browser_protocol::target::{CreateBrowserContextParams, CreateTargetParams};
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use chromiumoxide::handler::HandlerConfig;
use chromiumoxide::{Browser, Page};
use futures::StreamExt;
use tokio_util::task::TaskTracker;

use grabd_tests::process_tree::ProcessTree;

/// A browser driven directly.
pub(crate) struct Baseline {
    browser: Browser,
    process: Child,
    _profile: tempfile::TempDir,
}

/// A context and its page, ready to navigate.
pub(crate) struct Prepared {
    context: BrowserContextId,
    page: Page,
}

/// Waits for fonts and for the images in the viewport: the minimum that an image needs.
const READY: &str = "Promise.all([document.fonts.ready, ...[...document.images].filter(i => {
    const r = i.getBoundingClientRect(); return r.top < innerHeight && r.bottom > 0;
}).map(i => i.decode().catch(() => {}))]).then(() => true)";

/// Loads lazy images: scrolls through the page in steps of one viewport, then back to the top.
const SCROLL: &str = "(async () => {
    for (let y = 0; y < Math.min(document.documentElement.scrollHeight, 16384); y += innerHeight) {
        scrollTo(0, y); await new Promise(requestAnimationFrame);
    }
    scrollTo(0, 0);
    const captured = (i) => i.getBoundingClientRect().top + scrollY < 16384;
    await Promise.all([...document.images].filter(captured).map(i => i.decode().catch(() => {})));
    return Math.min(document.documentElement.scrollHeight, 16384);
})()";

/// The unprivileged user that runs the browser if the benchmark runs as root.
const NOBODY: u32 = 65_534;

impl Baseline {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts the browser with further flags.
    pub(crate) async fn start_with(flags: &[String]) -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut command = Command::new("chromium-headless-shell");
        command
            .args(["--headless", "--remote-debugging-port=0", "--no-first-run", "--hide-scrollbars", "--mute-audio"])
            .args(["--disable-background-networking", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(profile.path(), Some(NOBODY), Some(NOBODY))?;
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut process = command.spawn().context("chromium-headless-shell; run script/setup")?;
        let stderr = process.stderr.take().context("stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned))
            .context("the browser did not print its DevTools URL")?;
        // Drain stderr, because a full pipe would block the browser.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let config = HandlerConfig { ignore_https_errors: false, viewport: None, ..HandlerConfig::default() };
        let (browser, mut handler) = Browser::connect_with_config(address, config).await?;
        TaskTracker::new().spawn(async move { while handler.next().await.is_some() {} });
        Ok(Self { browser, process, _profile: profile })
    }

    pub(crate) fn tree(&self) -> ProcessTree {
        ProcessTree(self.process.id())
    }

    pub(crate) async fn prepare(&self) -> anyhow::Result<Prepared> {
        let context = self.browser.create_browser_context(CreateBrowserContextParams::default()).await?;
        let target = CreateTargetParams::builder().url("about:blank").browser_context_id(context.clone()).build();
        let page = self.browser.new_page(target.map_err(anyhow::Error::msg)?).await?;
        page.execute(SetDeviceMetricsOverrideParams::new(1280, 720, 1.0, false)).await?;
        Ok(Prepared { context, page })
    }

    pub(crate) async fn grab(&self, prepared: &Prepared, url: &str, full_page: bool) -> anyhow::Result<Vec<u8>> {
        let page = &prepared.page;
        let mut loaded = page.event_listener::<EventLoadEventFired>().await?;
        page.execute(NavigateParams::new(url)).await?;
        loaded.next().await.context("the load event did not fire")?;
        let mut shot =
            CaptureScreenshotParams::builder().format(CaptureScreenshotFormat::Png).optimize_for_speed(true).build();
        if full_page {
            let height: f64 = page.evaluate(awaited(SCROLL)?).await?.into_value()?;
            shot.clip = Some(Viewport { x: 0.0, y: 0.0, width: 1280.0, height, scale: 1.0 });
            shot.capture_beyond_viewport = Some(true);
        } else {
            page.evaluate(awaited(READY)?).await?;
        }
        Ok(page.screenshot(shot).await?)
    }

    pub(crate) async fn dispose(&self, prepared: Prepared) -> anyhow::Result<()> {
        Ok(self.browser.dispose_browser_context(prepared.context).await?)
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.browser.close().await?;
        self.process.wait()?;
        Ok(())
    }
}

fn awaited(script: &str) -> anyhow::Result<EvaluateParams> {
    let evaluate = EvaluateParams::builder().expression(script).await_promise(true).return_by_value(true).build();
    evaluate.map_err(anyhow::Error::msg)
}
