//! A NATS server of a test.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::crash_recovery::service::lines;

/// Debian installs it here, which is not in the path of every user.
const PROGRAM: &str = "/usr/sbin/nats-server";
/// Time limit for the start. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A running server on loopback. It is killed when dropped.
pub(super) struct NatsServer {
    child: Child,
    address: String,
    /// The address of its statistics.
    monitor: String,
    log: watch::Receiver<Vec<String>>,
    /// A file with settings.
    settings: Option<tempfile::TempPath>,
}

impl NatsServer {
    pub(super) async fn start() -> Result<Self> {
        Self::start_on("-1", None).await
    }

    /// One that soon disconnects clients that do not read.
    pub(super) async fn start_with_slow_consumers() -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(b"max_pending: 1048576\nwrite_deadline: \"100ms\"\n")?;
        Self::start_on("-1", Some(file.into_temp_path())).await
    }

    async fn start_on(port: &str, settings: Option<tempfile::TempPath>) -> Result<Self> {
        let program = if Path::new(PROGRAM).exists() { PROGRAM } else { "nats-server" };
        let mut command = Command::new(program);
        command.args(["--addr", "127.0.0.1", "--port", port, "--http_port", "-1"]);
        if let Some(settings) = &settings {
            command.arg("--config").arg(settings);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("nats-server is missing: run script/setup --tests")?;
        let mut log = lines(child.stderr.take().context("stderr")?);
        let address_after =
            |words: &'static str| move |line: &String| Some(line.split_once(words)?.1.trim().to_owned());
        let is_up = |lines: &Vec<String>| lines.iter().any(|line| line.contains("Server is ready"));
        let up = timeout(WAIT_LIMIT, log.wait_for(is_up)).await.context("NATS did not start")?;
        let up = up.context("NATS exited")?;
        let address = up.iter().find_map(address_after("client connections on ")).context("an address")?;
        let monitor = up.iter().find_map(address_after("http monitor on ")).context("the address of the monitor")?;
        drop(up);
        Ok(Self { child, address, monitor, log, settings })
    }

    pub(super) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Kills the server.
    pub(super) async fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Starts it again at the same address.
    pub(super) async fn start_again(&mut self) -> Result<()> {
        let port = self.address.rsplit_once(':').context("a port")?.1.to_owned();
        *self = Self::start_on(&port, self.settings.take()).await?;
        Ok(())
    }

    /// Number of subscriptions of its clients.
    pub(super) async fn subscriptions(&self) -> Result<u64> {
        let url = format!("http://{}/subsz", self.monitor);
        let statistics: Value = grabd_tests::client::client().build()?.get(url).send().await?.json().await?;
        statistics["num_subscriptions"].as_u64().context("a number")
    }

    /// Waits for a line of the log.
    pub(super) async fn wait_for_log(&self, text: &str) -> Result<()> {
        let has_line = |lines: &Vec<String>| lines.iter().any(|line| line.contains(text));
        let mut log = self.log.clone();
        let waited = timeout(WAIT_LIMIT, log.wait_for(has_line)).await;
        waited.with_context(|| format!("no “{text}”: {:?}", self.log.borrow()))?.context("NATS exited")?;
        Ok(())
    }

    /// Publishes more than fits into the buffers of a connection.
    pub(super) async fn flood(&self, subject: &str) -> Result<()> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.write_all(b"CONNECT {\"verbose\":false}\r\n").await?;
        let payload = "x".repeat(32 << 10);
        let message = format!("PUB {subject} {}\r\n{payload}\r\n", payload.len());
        for _ in 0..512 {
            stream.write_all(message.as_bytes()).await?;
        }
        stream.write_all(b"PING\r\n").await?;
        let mut received = lines(stream);
        let is_pong = |lines: &Vec<String>| lines.iter().any(|line| line.starts_with("PONG"));
        timeout(WAIT_LIMIT, received.wait_for(is_pong)).await.context("no response")?.context("closed")?;
        Ok(())
    }

    /// Publishes a message, and waits until the server has it.
    pub(super) async fn publish(&self, subject: &str, payload: &str) -> Result<()> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let length = payload.len();
        let text = format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {length}\r\n{payload}\r\nPING\r\n");
        stream.write_all(text.as_bytes()).await?;
        let mut received = lines(stream);
        let is_pong = |lines: &Vec<String>| lines.iter().any(|line| line.starts_with("PONG"));
        timeout(WAIT_LIMIT, received.wait_for(is_pong)).await.context("no response")?.context("closed")?;
        Ok(())
    }
}
