//! A browser without proxy, rules or policies: the control for hostile pages.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use grabd_browser::find_executable;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

const START_LIMIT: Duration = Duration::from_secs(20);

/// The unprivileged user that runs the browser if the tests run as root.
const NOBODY: u32 = 65_534;

/// A running browser, killed when dropped. It is controlled over HTTP, because an attached debugger would delay workers
/// and frames of other sites.
pub struct UnguardedBrowser {
    tabs: String,
    client: crate::client::Client,
    process: Child,
    _reading: DropGuard,
    _profile: tempfile::TempDir,
}

impl UnguardedBrowser {
    /// Starts a browser. It resolves only this machine's names, so that tests stay on this machine.
    ///
    /// # Errors
    /// If the browser does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        let program = find_executable(None, "").context("chromium-headless-shell; run script/setup")?;
        let mut command = Command::new(program);
        command
            .args(["--headless", "--remote-debugging-port=0", "--no-first-run", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--disable-component-update", "--mute-audio"])
            // Use the local address instead of an mDNS name, whose lookup other machines would receive.
            .arg("--disable-features=WebRtcHideLocalIpsWithMdns")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env_clear()
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(profile.path(), Some(NOBODY), Some(NOBODY))?;
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut process = command.spawn()?;
        let mut lines = BufReader::new(process.stderr.take().context("stderr")?).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.strip_prefix("DevTools listening on ws://") {
                    let (authority, _) = address.split_once('/').context("a path")?;
                    return Ok(format!("http://{authority}/json"));
                }
            }
            anyhow::bail!("the browser exited")
        };
        let tabs = timeout(START_LIMIT, listening).await??;
        let reading = CancellationToken::new();
        // Drain stderr, because a full pipe would block the browser.
        TaskTracker::new().spawn(
            reading
                .clone()
                .run_until_cancelled_owned(async move { while let Ok(Some(_)) = lines.next_line().await {} }),
        );
        let client = crate::client::client().timeout(START_LIMIT).build()?;
        Ok(Self { tabs, client, process, _reading: reading.drop_guard(), _profile: profile })
    }

    /// Opens a page in a new tab and returns the tab's id. All tabs share one browser context.
    ///
    /// # Errors
    /// If the browser does not open a tab.
    pub async fn open(&self, url: &str) -> anyhow::Result<String> {
        let answer = self.client.put(format!("{}/new?{url}", self.tabs)).send().await?.error_for_status()?;
        let tab: serde_json::Value = answer.json().await?;
        Ok(tab["id"].as_str().context("a tab has an id")?.to_owned())
    }

    /// Closes a tab.
    ///
    /// # Errors
    /// If there is no such tab.
    pub async fn close(&self, tab: &str) -> anyhow::Result<()> {
        self.client.get(format!("{}/close/{tab}", self.tabs)).send().await?.error_for_status()?;
        Ok(())
    }

    /// Kills the browser.
    ///
    /// # Errors
    /// If it has already ended.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }
}
