//! How long a grab of a tiny page takes: through [`Chromium`], and as the least a program with chromiumoxide would do
//! in a prepared context. Alternating, so that both meet the same machine.
//!
//! `cargo run --release -p grabd-browser --example tiny -- [grabs] [user]`

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chromiumoxide::Browser;
use chromiumoxide::cdp::browser_protocol::page::{CaptureScreenshotFormat, EventLoadEventFired};
use chromiumoxide::cdp::browser_protocol::target::{CreateBrowserContextParams, CreateTargetParams};
use chromiumoxide::handler::HandlerConfig;
use chromiumoxide::page::{Page, ScreenshotParams};
use futures::StreamExt;
use grabd_browser::{Chromium, Options, find_executable};
use grabd_domain::address::Policy;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::ids::GrabId;
use grabd_domain::render::{RenderTask, Renderer};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio_util::task::TaskTracker;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PAGE: &str = "<!doctype html><title>Tiny</title><h1>Hello</h1><p>A tiny page.";

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let grabs: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(40);
    let tracker = TaskTracker::new();
    let url = serve(&tracker).await?;
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711))?;

    let policy = Policy { allow: vec!["127.0.0.2/32".parse()?], ..Policy::default() };
    let guard = grabd_egress::Guard::new(grabd_egress::Options { policy: policy.clone(), ..Default::default() })?;
    let chromium =
        Chromium::start(Options { recycle_after: u32::MAX, ..Options::new(directory.path().join("ours")) }, guard)
            .await?;
    let request = CaptureRequest { url: Some(url.clone()), ..CaptureRequest::default() };
    let spec = CaptureSpec::parse(&request, &policy)?;
    let task = RenderTask { id: GrabId(uuid::Uuid::nil()), spec, budget: Duration::from_secs(25), alone: false };

    let mut bare = Bare::start(directory.path(), &tracker).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..grabs + 5 {
        let page = bare.prepare().await?;
        // Let both come to rest; what they do in the background is not what is measured.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let started = Instant::now();
        grab_bare(&page, &url).await?;
        let bare_took = started.elapsed();
        tokio::time::sleep(Duration::from_millis(150)).await;
        let capture = chromium.render(task.clone()).await?;
        if round >= 5 {
            theirs.push(bare_took);
            ours.push(Duration::from_millis(capture.execution_ms.into()));
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!("grabd {ours:?}, bare chromiumoxide {theirs:?}, ratio {:.2}", ours.as_secs_f64() / theirs.as_secs_f64());
    bare.process.kill().await?;
    chromium.shutdown().await;
    Ok(())
}

/// A second browser, over a port, as chromiumoxide wants it.
struct Bare {
    browser: Browser,
    process: tokio::process::Child,
}

impl Bare {
    async fn start(directory: &std::path::Path, tracker: &TaskTracker) -> Result<Self> {
        let profile = directory.join("bare");
        std::fs::create_dir(&profile)?;
        std::fs::set_permissions(&profile, PermissionsExt::from_mode(0o777))?;
        let mut command = tokio::process::Command::new(find_executable(None, "").ok_or("no browser")?);
        command
            .args(["--headless", "--remote-debugging-port=0", "--hide-scrollbars", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env_clear()
            .env("HOME", &profile)
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let mut process = command.spawn()?;
        let mut lines = BufReader::new(process.stderr.take().ok_or("no stderr")?).lines();
        let address = loop {
            let line = lines.next_line().await?.ok_or("the browser ended")?;
            if let Some(address) = line.strip_prefix("DevTools listening on ") {
                break address.to_owned();
            }
        };
        let config = HandlerConfig { ignore_https_errors: false, viewport: None, ..HandlerConfig::default() };
        let (browser, mut handler) = Browser::connect_with_config(address, config).await?;
        tracker.spawn(async move { while handler.next().await.is_some() {} });
        Ok(Self { browser, process })
    }

    async fn prepare(&mut self) -> Result<Page> {
        let context = CreateBrowserContextParams::builder().dispose_on_detach(true).build();
        let context = self.browser.create_browser_context(context).await?;
        let target =
            CreateTargetParams::builder().url("about:blank").browser_context_id(context).width(1280).height(720);
        Ok(self.browser.new_page(target.build()?).await?)
    }
}

async fn grab_bare(page: &Page, url: &str) -> Result<Vec<u8>> {
    let mut loaded = page.event_listener::<EventLoadEventFired>().await?;
    page.execute(chromiumoxide::cdp::browser_protocol::page::NavigateParams::new(url)).await?;
    loaded.next().await.ok_or("no load event")?;
    let params = ScreenshotParams::builder().format(CaptureScreenshotFormat::Png).build();
    let params = ScreenshotParams { cdp_params: fast(params.cdp_params), ..params };
    Ok(page.screenshot(params).await?)
}

fn fast(
    params: chromiumoxide::cdp::browser_protocol::page::CaptureScreenshotParams,
) -> chromiumoxide::cdp::browser_protocol::page::CaptureScreenshotParams {
    chromiumoxide::cdp::browser_protocol::page::CaptureScreenshotParams { optimize_for_speed: Some(true), ..params }
}

async fn serve(tracker: &TaskTracker) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{PAGE}",
        PAGE.len()
    );
    tracker.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            if stream.read(&mut head).await.is_ok() {
                // A browser that hung up asks again.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    Ok(url)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
