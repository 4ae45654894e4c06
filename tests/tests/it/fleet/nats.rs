//! A NATS server of a test.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
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
}

impl NatsServer {
    pub(super) async fn start() -> Result<Self> {
        Self::start_on("-1").await
    }

    async fn start_on(port: &str) -> Result<Self> {
        let program = if Path::new(PROGRAM).exists() { PROGRAM } else { "nats-server" };
        let mut command = Command::new(program);
        command.args(["--addr", "127.0.0.1", "--port", port]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("nats-server is missing: run script/setup --tests")?;
        let mut log = lines(child.stderr.take().context("stderr")?);
        let address = |line: &String| Some(line.split_once("client connections on ")?.1.trim().to_owned());
        let is_up = |lines: &Vec<String>| lines.iter().any(|line| line.contains("Server is ready"));
        let up = timeout(WAIT_LIMIT, log.wait_for(is_up)).await.context("NATS did not start")?;
        let address = up.context("NATS exited")?.iter().find_map(address).context("an address")?;
        Ok(Self { child, address })
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
        *self = Self::start_on(&port).await?;
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
